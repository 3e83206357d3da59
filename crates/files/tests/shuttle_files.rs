//! The whole file system under random schedules: threads on a small volume whose requests are on their way until
//! somebody waits for them. Every lock, atomic and thread from the device up is shuttle's; what a schedule leaves is
//! checked, opened and read.
//!
//! ```text
//! mutant: segment_move_ignores_overwrite, killed by: overwrites_beside_the_cleaner
//! mutant: gate_turn_back_counts_down, killed by: names_of_four_threads_beside_checkpoints
//! mutant: checkpoint_freezes_behind_the_gate, killed by: names_of_four_threads_beside_checkpoints
//! mutant: node_ahead_changes_in_place, killed by: attributes_written_ahead
//! mutant: rename_waits_with_a_stripe, killed by: files_change_places_between_directories
//! mutant: rename_moves_directories_as_files, killed by: directories_move_into_each_other
//! mutant: directory_block_clean_before_its_copy, killed by: names_of_four_threads_written_ahead
//! ```
#![cfg(shuttle)]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod shuttle_common;

use f2fs_device::MemoryDevice;
use f2fs_device_test::LateDevice;
use f2fs_files::{FileSystem, Options, Pace, RenameMode};
use f2fs_sync::scenario::{priorities, random};
use f2fs_sync::{Arc, thread};
use shuttle_common::{BLOCK, ahead, formatted, formatted_with, judge, options, read, spawn};

fn opened(device: &Arc<MemoryDevice>) -> Arc<FileSystem> {
    opened_with(device, options())
}

fn opened_with(device: &Arc<MemoryDevice>, options: Options) -> Arc<FileSystem> {
    Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), options).unwrap())
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
    // Schedules by priorities find what these threads can do wrong much sooner.
    priorities("names_of_four_threads_written_ahead", 100, 5, || names_of_threads(ahead));
    random("names_of_four_threads_written_ahead", 60, || names_of_threads(ahead));
}
