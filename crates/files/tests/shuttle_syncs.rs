//! Syncs of the whole file system under random schedules, into the log and into a journal: what a power cut leaves
//! behind each of them is checked, opened and read. As in `shuttle_files.rs`, requests are on their way until somebody
//! waits for them.
//!
//! ```text
//! mutant: sync_forgets_arrivals, killed by: syncs_of_four_threads
//! mutant: group_commit_wakes_waiter, killed by: syncs_of_four_threads
//! mutant: sync_forgets_those_in_front, killed by: syncs_and_nothing_else
//! mutant: journal_flush_of_data, killed by: syncs_of_four_threads_into_a_journal
//! mutant: journal_retired_beside_log, killed by: syncs_of_four_threads_whose_journal_is_detached
//! mutant: journal_names_in_no_order, killed by: names_of_two_threads_into_a_journal
//! ```
#![cfg(shuttle)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod shuttle_common;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::pmem::SimulatedRegion;
use f2fs_device_test::{FaultDevice, FaultRule, LateDevice, RecordingDevice};
use f2fs_files::{FileSystem, JournalMode, JournalOptions, Options, RenameMode, create_journal};
use f2fs_journal::RegionMedium;
use f2fs_sync::scenario::{priorities, random};
use f2fs_sync::{Arc, Mutex};
use shuttle_common::{BLOCK, ahead, each, formatted, judge, options, read, spawn};

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

/// Runs a scenario under so many random schedules, and as many with random priorities that change so often.
fn scheduled(name: &str, schedules: usize, changes: usize, scenario: impl Fn() + Send + Sync + Clone + 'static) {
    random(name, schedules, scenario.clone());
    priorities(name, schedules, changes, scenario);
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
fn syncs_of_threads(mode: Option<JournalMode>, log: fn() -> Options, beside: Beside) {
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
        _ => log(),
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
    scheduled("syncs_of_four_threads", 60, 4, || syncs_of_threads(None, ahead, NOTHING));
}

/// Checkpoints freeze and are written meanwhile: whichever of them a crash leads to, what was synced is there.
#[test]
fn syncs_of_four_threads_beside_checkpoints() {
    scheduled("syncs_of_four_threads_beside_checkpoints", 60, 4, || {
        syncs_of_threads(None, ahead, Beside::Checkpoints(3))
    });
}

/// Each thread writes its own nodes into the one chain.
#[test]
fn syncs_side_by_side() {
    scheduled("syncs_side_by_side", 60, 4, || syncs_of_threads(None, each, NOTHING));
}

#[test]
fn syncs_side_by_side_beside_checkpoints() {
    scheduled("syncs_side_by_side_beside_checkpoints", 60, 4, || syncs_of_threads(None, each, Beside::Checkpoints(3)));
}

/// Threads that do nothing but change their file and sync it are often in the chain at the same time.
fn syncs_of_old_files() {
    let device = Arc::new(RecordingDevice::new(formatted().snapshot()));
    let fs = Arc::new(FileSystem::open(device.clone(), each()).unwrap());
    for number in 0..4_u8 {
        fs.create_file(format!("/{number}"), 0o644).unwrap().write_at(&[0; 100], 0).unwrap();
    }
    fs.checkpoint().unwrap();
    let images = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..4_u8)
        .map(|number| {
            let (device, images) = (Arc::clone(&device), Arc::clone(&images));
            spawn(&fs, move |fs| {
                let file = fs.open_file(format!("/{number}")).unwrap();
                for round in 1..3_u8 {
                    file.write_at(&[round; 100], 0).unwrap();
                    file.sync_all().unwrap();
                    images.lock().push((number, round, cut(&device, None).0));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    drop(fs);
    for (number, round, image) in images.lock().drain(..) {
        judge(&image);
        let fs = FileSystem::open(Arc::new(image), each()).unwrap();
        let found = read(&fs, &format!("/{number}"));
        assert!(found.iter().all(|byte| (round..3).contains(byte)), "{number} has {} after round {round}", found[0]);
    }
}

#[test]
fn syncs_and_nothing_else() {
    scheduled("syncs_and_nothing_else", 100, 4, syncs_of_old_files);
}

/// One write fails, whosoever it is. The syncs that were promised before, or are promised nevertheless, are there.
fn syncs_of_which_one_fails() {
    let device = Arc::new(RecordingDevice::new(formatted().snapshot()));
    let faults = Arc::new(FaultDevice::new(device.clone()));
    let fs = Arc::new(FileSystem::open(faults.clone(), each()).unwrap());
    for number in 0..5_u8 {
        fs.create_file(format!("/{number}"), 0o644).unwrap().write_at(&[1; BLOCK], 0).unwrap();
    }
    fs.checkpoint().unwrap();
    for number in 0..5_u8 {
        fs.open_file(format!("/{number}")).unwrap().write_at(&[2; BLOCK], 0).unwrap();
    }
    faults.arm(FaultRule::on([Operation::Write]).after(2));
    let threads: Vec<_> =
        (0..5_u8).map(|number| spawn(&fs, move |fs| fs.open_file(format!("/{number}")).unwrap().sync_all())).collect();
    let promised: Vec<bool> = threads.into_iter().map(|thread| thread.join().unwrap().is_ok()).collect();
    assert!(promised.contains(&false) && fs.volume().stopped().is_some());
    faults.disarm();
    drop(fs);
    let log = device.log();
    for image in [device.snapshot(), log.image_at(log.events().len(), |_, _| false)] {
        judge(&image);
        let fs = FileSystem::open(Arc::new(image), each()).unwrap();
        for (number, promised) in promised.iter().enumerate() {
            let found = read(&fs, &format!("/{number}"));
            assert!(found == [2; BLOCK] || (!promised && found == [1; BLOCK]), "{number} of {promised:?}");
        }
        fs.close().unwrap();
    }
}

#[test]
fn syncs_beside_one_that_fails() {
    scheduled("syncs_beside_one_that_fails", 300, 4, syncs_of_which_one_fails);
}

#[test]
fn syncs_of_four_threads_into_a_journal() {
    let body = || syncs_of_threads(Some(JournalMode::Ordered), ahead, NOTHING);
    scheduled("syncs_of_four_threads_into_a_journal", 60, 4, body);
}

#[test]
fn syncs_of_four_threads_with_data_into_a_journal() {
    let body = || syncs_of_threads(Some(JournalMode::Journal), ahead, NOTHING);
    scheduled("syncs_of_four_threads_with_data_into_a_journal", 60, 4, body);
}

/// Checkpoints freeze meanwhile, and take the space of records back.
#[test]
fn syncs_of_four_threads_into_a_journal_beside_checkpoints() {
    for mode in [JournalMode::Ordered, JournalMode::Journal] {
        let body = move || syncs_of_threads(Some(mode), ahead, Beside::Checkpoints(3));
        scheduled("syncs_of_four_threads_into_a_journal_beside_checkpoints", 40, 4, body);
    }
}

/// No sync goes to the log while records are needed: an opening could not tell which of both is newer.
#[test]
fn syncs_of_four_threads_whose_journal_is_detached() {
    let body = || syncs_of_threads(Some(JournalMode::Ordered), ahead, Beside::Detached);
    scheduled("syncs_of_four_threads_whose_journal_is_detached", 40, 4, body);
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
    scheduled("overwrites_beside_syncs_with_data", 150, 3, overwrites_beside_syncs_into_a_journal);
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
    scheduled("names_of_two_threads_into_a_journal", 12, 3, names_into_a_journal);
}
