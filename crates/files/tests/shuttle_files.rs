//! The whole file system under random schedules: threads on a small volume whose requests are on their way until
//! somebody waits for them. Every lock, atomic and thread from the device up is shuttle's; what a schedule leaves is
//! checked, opened and read.
//!
//! ```text
//! mutant: segment_move_ignores_overwrite, killed by: overwrites_beside_the_cleaner
//! mutant: sync_forgets_arrivals, killed by: syncs_of_four_threads
//! mutant: group_commit_wakes_waiter, killed by: syncs_of_four_threads
//! mutant: journal_flush_of_data, killed by: syncs_of_four_threads_into_a_journal
//! mutant: journal_retired_beside_log, killed by: syncs_of_four_threads_whose_journal_is_detached
//! mutant: journal_names_in_no_order, killed by: names_of_two_threads_into_a_journal
//! mutant: gate_turn_back_counts_down, killed by: names_of_four_threads_beside_checkpoints
//! mutant: checkpoint_freezes_behind_the_gate, killed by: names_of_four_threads_beside_checkpoints
//! mutant: node_ahead_changes_in_place, killed by: attributes_written_ahead
//! mutant: rename_waits_with_a_stripe, killed by: files_change_places_between_directories
//! mutant: rename_moves_directories_as_files, killed by: directories_move_into_each_other
//! mutant: directory_block_clean_before_its_copy, killed by: names_of_four_threads_written_ahead
//! ```
#![cfg(shuttle)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_check::{CheckOptions, check};
use f2fs_device::MemoryDevice;
use f2fs_device_test::pmem::SimulatedRegion;
use f2fs_device_test::{LateDevice, RecordingDevice};
use f2fs_files::{FileSystem, JournalMode, JournalOptions, Options, Pace, RenameMode, create_journal};
use f2fs_journal::RegionMedium;
use f2fs_sync::scenario::{priorities, random};
use f2fs_sync::{Arc, Mutex, thread};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

const BLOCK: usize = 4096;

fn formatted() -> Arc<MemoryDevice> {
    formatted_with(64)
}

fn formatted_with(mib: u64) -> Arc<MemoryDevice> {
    let device = MemoryDevice::new((mib << 20) >> 12);
    format(&device, &FormatOptions::default()).unwrap();
    Arc::new(device)
}

fn options() -> Options {
    // Unused state leaves memory at once.
    let blocks = std::num::NonZeroUsize::MIN;
    Options::new().volume(VolumeOptions::new().lanes(1)).dentry_cache(blocks).lock_memory(0)
}

/// Options with which checkpoints write all that is dirty before they keep operations out.
fn ahead() -> Options {
    options().volume(VolumeOptions::new().lanes(1).nodes_left_to_freeze(0))
}

fn opened(device: &Arc<MemoryDevice>) -> Arc<FileSystem> {
    opened_with(device, options())
}

fn opened_with(device: &Arc<MemoryDevice>, options: Options) -> Arc<FileSystem> {
    Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), options).unwrap())
}

fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    let file = fs.open_file(path).unwrap();
    let mut bytes = vec![0; file.size() as usize];
    let read = file.read_at(&mut bytes, 0).unwrap();
    // Another thread may have cut it meanwhile.
    bytes.truncate(read);
    bytes
}

/// The volume is consistent. Only for when no other thread runs: the check's work stays in this one, the only one that
/// shuttle knows.
fn judge(device: &MemoryDevice) {
    std::thread_local! {
        static ALONE: () = {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
            // A pool of the thread that asked for it.
            std::mem::forget(pool);
        };
    }
    ALONE.with(|()| ());
    let report = check(device, &CheckOptions::new().threads(0)).unwrap();
    assert!(report.is_consistent() && report.complete, "{report}");
}

/// Closes the volume, and looks at what is on it.
fn close(fs: Arc<FileSystem>, device: &Arc<MemoryDevice>) -> FileSystem {
    fs.close().unwrap();
    drop(fs);
    judge(device);
    FileSystem::open(device.clone(), options().read_only(true)).unwrap()
}

/// Empties two sections.
fn clean(fs: &FileSystem) {
    for _ in 0..2 {
        fs.clean_step(Pace::Urgent).unwrap();
    }
}

fn spawn<T: Send + 'static>(
    fs: &Arc<FileSystem>,
    body: impl FnOnce(&FileSystem) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let fs = Arc::clone(fs);
    thread::spawn(move || body(&fs))
}

/// The images of two checkpoints, which a thread writes.
fn images(fs: &Arc<FileSystem>, device: &Arc<MemoryDevice>) -> thread::JoinHandle<Vec<MemoryDevice>> {
    let device = Arc::clone(device);
    let image = move |fs: &FileSystem| {
        fs.checkpoint().unwrap();
        device.snapshot()
    };
    spawn(fs, move |fs| vec![image(fs), image(fs)])
}

/// The slots of a file name blocks that the device does not have yet, in a segment of which little else is left.
#[test]
fn a_durable_write_beside_the_cleaner() {
    let body = || {
        let device = formatted();
        let fs = opened(&device);
        let file = fs.create_file("/file", 0o644).unwrap();
        file.write_at(&[1; 64 * BLOCK], 0).unwrap();
        // The next write ends in another segment.
        fs.create_file("/filler", 0o644).unwrap().write_at(&[9; 430 * BLOCK], 0).unwrap();
        fs.checkpoint().unwrap();
        fs.remove_file("/filler").unwrap();
        let writer = spawn(&fs, |fs| fs.open_file("/file").unwrap().write_durable(&[2; 64 * BLOCK], 0).unwrap());
        let cleaner = spawn(&fs, clean);
        writer.join().unwrap();
        cleaner.join().unwrap();
        assert!(read(&fs, "/file") == [2; 64 * BLOCK]);
        assert!(read(&close(fs, &device), "/file") == [2; 64 * BLOCK]);
    };
    random("a_durable_write_beside_the_cleaner", 100, body);
    priorities("a_durable_write_beside_the_cleaner", 100, 3, body);
}

/// Blocks that the cleaner moves are overwritten, cut off and read.
#[test]
fn overwrites_beside_the_cleaner() {
    let body = || {
        let device = formatted();
        let fs = opened(&device);
        fs.create_file("/file", 0o644).unwrap().write_at(&[1; 12 * BLOCK], 0).unwrap();
        fs.create_file("/filler", 0o644).unwrap().write_at(&[9; 500 * BLOCK], 0).unwrap();
        fs.checkpoint().unwrap();
        fs.remove_file("/filler").unwrap();
        let cleaner = spawn(&fs, clean);
        let writer = spawn(&fs, |fs| {
            let file = fs.open_file("/file").unwrap();
            for at in 0..4 {
                file.write_at(&[2; BLOCK], at * BLOCK as u64).unwrap();
            }
        });
        let cutter = spawn(&fs, |fs| fs.open_file("/file").unwrap().set_len(10 * BLOCK as u64).unwrap());
        let reader = spawn(&fs, |fs| {
            let found = read(fs, "/file");
            assert!(found.chunks(BLOCK).all(|block| block == [1; BLOCK] || block == [2; BLOCK]));
        });
        for thread in [cleaner, writer, cutter, reader] {
            thread.join().unwrap();
        }
        let mut expected = [1; 10 * BLOCK];
        expected[..4 * BLOCK].fill(2);
        assert!(read(&fs, "/file") == expected);
        assert!(read(&close(fs, &device), "/file") == expected);
    };
    random("overwrites_beside_the_cleaner", 100, body);
    priorities("overwrites_beside_the_cleaner", 100, 4, body);
}

/// A checkpoint has a truncation whole or not at all: what was cut off does not come back when the file grows.
#[test]
fn truncations_beside_checkpoints() {
    let body = || {
        let device = formatted();
        let fs = opened(&device);
        let paths = ["/one", "/two", "/three"];
        for path in paths {
            fs.create_file(path, 0o644).unwrap().write_at(&[1; 4 * BLOCK], 0).unwrap();
        }
        fs.checkpoint().unwrap();
        let cut = |path| spawn(&fs, move |fs| fs.open_file(path).unwrap().set_len(BLOCK as u64).unwrap());
        let threads = paths.map(cut);
        let images = images(&fs, &device);
        for thread in threads {
            thread.join().unwrap();
        }
        for image in images.join().unwrap() {
            judge(&image);
            let fs = FileSystem::open(Arc::new(image), options()).unwrap();
            for path in paths {
                let found = read(&fs, path);
                assert!(found == [1; 4 * BLOCK] || found == [1; BLOCK], "{} bytes", found.len());
                fs.open_file(path).unwrap().set_len(4 * BLOCK as u64).unwrap();
                let grown = read(&fs, path);
                assert!(grown[found.len()..].iter().all(|byte| *byte == 0), "what was cut off is back");
            }
        }
        drop(close(fs, &device));
    };
    random("truncations_beside_checkpoints", 50, body);
    priorities("truncations_beside_checkpoints", 150, 5, body);
}

/// The journal of a volume, in simulated memory.
type Memory = Arc<RegionMedium<SimulatedRegion>>;

/// Options with a journal on this medium.
fn journaled(memory: &Memory, mode: JournalMode) -> Options {
    options().journal(JournalOptions::new(memory.clone(), mode))
}

/// The volume after a power cut, and its journal if it has one, if all is lost that was not made durable.
fn cut(device: &RecordingDevice, journal: Option<&Memory>) -> (MemoryDevice, Option<Memory>) {
    // The journal first: what it says is durable on the device by then.
    let journal = journal.map(|memory| {
        let left = SimulatedRegion::on(memory.region().cut().lost().media());
        Arc::new(RegionMedium::new(left))
    });
    let log = device.log();
    (log.image_at(log.events().len(), |_, _| false), journal)
}

/// What happens beside syncs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// So many checkpoints.
    Checkpoints(usize),
    /// The journal is detached.
    Detached,
}

const NOTHING: Beside = Beside::Checkpoints(0);

/// Synced data is there when all that was not flushed is gone, whoever wrote it to the device.
fn syncs_of_threads(mode: Option<JournalMode>, beside: Beside) {
    // More than waits for the group: it is sent at once, and the leader waits for it.
    const LONG: usize = 17;
    let blocks = |number: u8| if number == 0 { LONG } else { 1 };
    let device = Arc::new(RecordingDevice::new(formatted().snapshot()));
    let journal = mode.map(|_| Arc::new(RegionMedium::new(SimulatedRegion::new(256 << 10))));
    if let Some(memory) = &journal {
        create_journal(device.clone(), memory.clone(), false).unwrap();
    }
    let with = |journal: &Option<Memory>| match (journal, mode) {
        (Some(journal), Some(mode)) => journaled(journal, mode),
        _ => ahead(),
    };
    let fs = Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), with(&journal)).unwrap());
    fs.create_file("/shared", 0o644).unwrap().write_at(&[1; 4 * BLOCK], 0).unwrap();
    fs.checkpoint().unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let mut threads: Vec<_> = (0..4_u8)
        .map(|number| {
            let (device, images, journal) = (Arc::clone(&device), Arc::clone(&images), journal.clone());
            spawn(&fs, move |fs| {
                let own = fs.create_file(format!("/{number}"), 0o644).unwrap();
                own.write_at(&[number; 5000], 0).unwrap();
                own.sync_all().unwrap();
                let shared = fs.open_file("/shared").unwrap();
                let (at, data) = (usize::from(number) * LONG * BLOCK, vec![7; blocks(number) * BLOCK]);
                if number % 2 == 0 {
                    shared.write_durable(&data, at as u64).unwrap();
                } else {
                    shared.write_at(&data, at as u64).unwrap();
                    shared.sync_all().unwrap();
                }
                let image = cut(&device, journal.as_ref());
                images.lock().push((number, image));
            })
        })
        .collect();
    match beside {
        Beside::Checkpoints(number) => (0..number).for_each(|_| assert!(fs.checkpoint().is_ok())),
        Beside::Detached => {
            // There are records by then.
            threads.remove(0).join().unwrap();
            fs.detach_journal().unwrap();
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(mode.is_none() || beside != NOTHING || fs.volume().journal_usage().unwrap().used != 0);
    drop(fs);
    for (number, (image, journal)) in images.lock().drain(..) {
        judge(&image);
        let fs = FileSystem::open(Arc::new(image), with(&journal)).unwrap();
        assert!(read(&fs, &format!("/{number}")) == [number; 5000]);
        let shared = read(&fs, "/shared");
        let of_thread = &shared[usize::from(number) * LONG * BLOCK..][..blocks(number) * BLOCK];
        assert!(of_thread.iter().all(|byte| *byte == 7), "of thread {number}");
        fs.close().unwrap();
    }
}

#[test]
fn syncs_of_four_threads() {
    random("syncs_of_four_threads", 60, || syncs_of_threads(None, NOTHING));
    priorities("syncs_of_four_threads", 60, 4, || syncs_of_threads(None, NOTHING));
}

/// Checkpoints freeze and are written meanwhile: whichever of them a crash leads to, what was synced is there.
#[test]
fn syncs_of_four_threads_beside_checkpoints() {
    random("syncs_of_four_threads_beside_checkpoints", 60, || syncs_of_threads(None, Beside::Checkpoints(3)));
    priorities("syncs_of_four_threads_beside_checkpoints", 60, 4, || syncs_of_threads(None, Beside::Checkpoints(3)));
}

#[test]
fn syncs_of_four_threads_into_a_journal() {
    let body = || syncs_of_threads(Some(JournalMode::Ordered), NOTHING);
    random("syncs_of_four_threads_into_a_journal", 60, body);
    priorities("syncs_of_four_threads_into_a_journal", 60, 4, body);
}

#[test]
fn syncs_of_four_threads_with_data_into_a_journal() {
    let body = || syncs_of_threads(Some(JournalMode::Journal), NOTHING);
    random("syncs_of_four_threads_with_data_into_a_journal", 60, body);
    priorities("syncs_of_four_threads_with_data_into_a_journal", 60, 4, body);
}

/// Checkpoints freeze meanwhile, and take the space of records back.
#[test]
fn syncs_of_four_threads_into_a_journal_beside_checkpoints() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        let body = move || syncs_of_threads(Some(mode), Beside::Checkpoints(3));
        random("syncs_of_four_threads_into_a_journal_beside_checkpoints", 40, body);
        priorities("syncs_of_four_threads_into_a_journal_beside_checkpoints", 40, 4, body);
    }
}

/// No sync goes to the log while records are needed: an opening could not tell which of both is newer.
#[test]
fn syncs_of_four_threads_whose_journal_is_detached() {
    let body = || syncs_of_threads(Some(JournalMode::Ordered), Beside::Detached);
    random("syncs_of_four_threads_whose_journal_is_detached", 40, body);
    priorities("syncs_of_four_threads_whose_journal_is_detached", 40, 4, body);
}

/// A file is overwritten again and again beside syncs of it: each sync leaves what was there before, or what came
/// since, and no bytes of a place that nothing was written to.
fn overwrites_beside_syncs_into_a_journal() {
    let device = Arc::new(RecordingDevice::new(formatted().snapshot()));
    let journal = Arc::new(RegionMedium::new(SimulatedRegion::new(256 << 10)));
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let with = journaled(&journal, JournalMode::Journal);
    let fs = Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), with).unwrap());
    fs.create_file("/file", 0o644).unwrap().write_at(&[1; 2 * BLOCK], 0).unwrap();
    fs.checkpoint().unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let writer = spawn(&fs, move |fs| {
        let file = fs.open_file("/file").unwrap();
        for round in 2..6 {
            file.write_at(&[round; BLOCK], 0).unwrap();
        }
    });
    let syncing = {
        let (device, images, journal) = (Arc::clone(&device), Arc::clone(&images), journal.clone());
        spawn(&fs, move |fs| {
            let file = fs.open_file("/file").unwrap();
            for round in 2..5 {
                file.write_at(&[round; 100], BLOCK as u64).unwrap();
                file.sync_data().unwrap();
                images.lock().push((round, cut(&device, Some(&journal))));
            }
        })
    };
    writer.join().unwrap();
    syncing.join().unwrap();
    drop(fs);
    for (round, (image, left)) in images.lock().drain(..) {
        judge(&image);
        let fs = FileSystem::open(Arc::new(image), journaled(&left.unwrap(), JournalMode::Journal)).unwrap();
        let found = read(&fs, "/file");
        assert!((1..6).contains(&found[0]) && found[..BLOCK].iter().all(|byte| *byte == found[0]), "{}", found[0]);
        assert!(found[BLOCK..BLOCK + 100].iter().all(|byte| *byte == round), "of round {round}");
        fs.close().unwrap();
    }
}

#[test]
fn overwrites_beside_syncs_with_data() {
    random("overwrites_beside_syncs_with_data", 150, overwrites_beside_syncs_into_a_journal);
    priorities("overwrites_beside_syncs_with_data", 150, 3, overwrites_beside_syncs_into_a_journal);
}

/// Files that are made and synced, and then moved or removed, beside another thread that does the same: what each
/// thread synced is there, by a record of the file or by one of all names that either of them wrote.
fn names_into_a_journal() {
    let device = Arc::new(RecordingDevice::new(formatted().snapshot()));
    let journal = Arc::new(RegionMedium::new(SimulatedRegion::new(256 << 10)));
    create_journal(device.clone(), journal.clone(), false).unwrap();
    // A record waits for a flush of the data that it names: time enough for the other thread.
    let with = |journal: &Memory| journaled(journal, JournalMode::Ordered);
    let fs = Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), with(&journal)).unwrap());
    let images = Arc::new(Mutex::new(Vec::new()));
    let threads = (0..2_u8).map(|number| {
        let (device, images, journal) = (Arc::clone(&device), Arc::clone(&images), journal.clone());
        spawn(&fs, move |fs| {
            let mut names = Vec::new();
            let cut = |names: &Vec<String>| images.lock().push((number, names.clone(), cut(&device, Some(&journal))));
            for round in 0..3 {
                let name = format!("/{number}-{round}");
                let file = fs.create_file(&name, 0o644).unwrap();
                file.write_at(&[number; 5000], 0).unwrap();
                file.sync_all().unwrap();
                names.push(name.clone());
                cut(&names);
                names.pop();
                if round == 1 {
                    fs.remove_file(&name).unwrap();
                } else {
                    names.push(format!("{name}-moved"));
                    fs.rename(&name, names.last().unwrap(), RenameMode::Replace).unwrap();
                }
                fs.root().unwrap().sync_all().unwrap();
                cut(&names);
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    drop(fs);
    for (number, mut names, (image, left)) in images.lock().drain(..) {
        judge(&image);
        let fs = FileSystem::open(Arc::new(image), with(&left.unwrap())).unwrap();
        let listed = fs.open_dir("/").unwrap().entries().map(|entry| entry.unwrap().name).collect::<Vec<_>>();
        let own = |name: &Vec<u8>| name.starts_with(format!("{number}-").as_bytes());
        let mut found: Vec<_> =
            listed.iter().filter(|name| own(name)).map(|name| format!("/{}", name.escape_ascii())).collect();
        found.sort();
        names.sort();
        assert_eq!(found, names);
        assert!(names.iter().all(|name| read(&fs, name) == [number; 5000]));
        fs.close().unwrap();
    }
}

#[test]
fn names_of_two_threads_into_a_journal() {
    random("names_of_two_threads_into_a_journal", 12, names_into_a_journal);
    priorities("names_of_two_threads_into_a_journal", 12, 3, names_into_a_journal);
}

/// Names come, move and go; whatever a checkpoint has of that is consistent.
fn names_of_threads(options_of: fn() -> Options) {
    // With less room no node is written ahead.
    let device = formatted_with(256);
    let fs = opened_with(&device, options_of());
    for dir in ["/d", "/e"] {
        fs.create_dir(dir, 0o755).unwrap();
    }
    for path in ["/d/one", "/d/three", "/e/two"] {
        fs.create_file(path, 0o644).unwrap().write_at(path.as_bytes(), 0).unwrap();
    }
    // So many that they do not fit into the inode.
    for (dir, number) in ["/d", "/e"].into_iter().flat_map(|dir| (0..8).map(move |number| (dir, number))) {
        fs.link("/d/three", format!("{dir}/{number}-{}", "long".repeat(50))).unwrap();
    }
    fs.checkpoint().unwrap();
    let threads = [
        spawn(&fs, |fs| {
            let file = fs.create_file("/d/short-lived", 0o644).unwrap();
            file.write_at(&[1; 5000], 0).unwrap();
            fs.remove_file("/d/short-lived").unwrap();
            file.write_at(&[1; 5000], 9000).unwrap();
        }),
        spawn(&fs, |fs| fs.rename("/d/one", "/e/two", RenameMode::Replace).unwrap()),
        spawn(&fs, |fs| {
            fs.link("/d/three", "/e/four").unwrap();
            fs.remove_file("/d/three").unwrap();
        }),
        spawn(&fs, |fs| {
            fs.create_dir("/d/sub", 0o755).unwrap();
            fs.rename("/d/sub", "/e/sub", RenameMode::NoReplace).unwrap();
        }),
    ];
    let images = images(&fs, &device);
    for thread in threads {
        thread.join().unwrap();
    }
    for image in images.join().unwrap() {
        judge(&image);
        // Files without a name go.
        let image = Arc::new(image);
        FileSystem::open(image.clone(), options()).unwrap().close().unwrap();
        judge(&image);
    }
    let fs = close(fs, &device);
    let names = |dir: &str| {
        let entries = fs.read_dir(dir).unwrap().map(Result::unwrap);
        let mut names: Vec<_> = entries.map(|entry| String::from_utf8(entry.name).unwrap()).collect();
        names.retain(|name| name.len() < 200);
        names.sort();
        names
    };
    assert_eq!((names("/d"), names("/e")), (vec![], ["four", "sub", "two"].map(String::from).to_vec()));
    assert_eq!((read(&fs, "/e/two"), read(&fs, "/e/four")), (b"/d/one".to_vec(), b"/d/three".to_vec()));
}

/// Files go from one directory to the other and back, under names of the same stripe.
#[test]
fn files_change_places_between_directories() {
    random("files_change_places_between_directories", 60, || {
        let device = formatted();
        let fs = opened(&device);
        let stripe = |name: &str| f2fs_format::hash::dentry_hash(name.as_bytes()) % 64;
        let same = (0..).map(|number| format!("b{number}")).find(|name| stripe(name) == stripe("a")).unwrap();
        let paths = ["a".to_owned(), same].map(|name| ["d", "e"].map(|directory| format!("/{directory}/{name}")));
        fs.create_dir("/d", 0o755).unwrap();
        fs.create_dir("/e", 0o755).unwrap();
        // One begins in each directory.
        let ways = [paths[0].clone(), [paths[1][1].clone(), paths[1][0].clone()]];
        for [here, _] in &ways {
            fs.create_file(here, 0o644).unwrap().write_at(here.as_bytes(), 0).unwrap();
        }
        let threads = ways.clone().map(|[here, there]| {
            spawn(&fs, move |fs| {
                for _ in 0..4 {
                    fs.rename(&here, &there, RenameMode::Replace).unwrap();
                    fs.rename(&there, &here, RenameMode::NoReplace).unwrap();
                }
                fs.rename(&here, &there, RenameMode::Replace).unwrap();
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let fs = close(fs, &device);
        for [here, there] in &ways {
            assert_eq!((read(&fs, there), fs.exists(here).unwrap()), (here.clone().into_bytes(), false));
        }
    });
}

/// Of two directories that are moved into each other, one is, and the other is refused.
#[test]
fn directories_move_into_each_other() {
    random("directories_move_into_each_other", 60, || {
        let device = formatted();
        let fs = opened(&device);
        fs.create_dir("/d", 0o755).unwrap();
        fs.create_dir("/e", 0o755).unwrap();
        let threads = [
            spawn(&fs, |fs| fs.rename("/d", "/e/d", RenameMode::Replace).is_ok()),
            spawn(&fs, |fs| fs.rename("/e", "/d/e", RenameMode::Replace).is_ok()),
        ];
        let moved = threads.map(|thread| thread.join().unwrap());
        assert!(moved[0] != moved[1], "{moved:?}");
        let fs = close(fs, &device);
        assert!(fs.exists("/d/e").unwrap() != fs.exists("/e/d").unwrap());
    });
}

#[test]
fn names_of_four_threads_beside_checkpoints() {
    random("names_of_four_threads_beside_checkpoints", 100, || names_of_threads(options));
    priorities("names_of_four_threads_beside_checkpoints", 100, 5, || names_of_threads(options));
}

/// An inode that changes again after it was written for the next checkpoint is in that one as it is then.
#[test]
fn attributes_written_ahead() {
    const CHANGES: u16 = 6;
    let body = || {
        // With less room nothing is written ahead.
        let device = formatted_with(256);
        let fs = opened_with(&device, ahead());
        let paths = ["/one", "/two", "/three"];
        paths.iter().for_each(|path| drop(fs.create_file(path, 0o600).unwrap()));
        let change = |path: &'static str| {
            spawn(&fs, move |fs| (1..=CHANGES).for_each(|mode| fs.set_permissions(path, mode).unwrap()))
        };
        let threads = paths.map(change);
        for _ in 0..4 {
            fs.checkpoint().unwrap();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        let fs = close(fs, &device);
        for path in paths {
            assert_eq!(fs.metadata(path).unwrap().permissions, CHANGES, "{path}");
        }
    };
    random("attributes_written_ahead", 150, body);
    priorities("attributes_written_ahead", 150, 4, body);
}

/// The same, where nodes and dentry blocks change after they were written for the next checkpoint.
#[test]
fn names_of_four_threads_written_ahead() {
    random("names_of_four_threads_written_ahead", 60, || names_of_threads(ahead));
    priorities("names_of_four_threads_written_ahead", 100, 5, || names_of_threads(ahead));
}
