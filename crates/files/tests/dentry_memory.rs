//! A walk over a large tree does not keep all of its names in memory, and what goes comes back.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};
use f2fs_volume::format::FormatOptions;

const LIMIT: Duration = Duration::from_secs(120);
const BLOCK: i64 = 4096;

fn name(directory: usize, number: usize) -> String {
    format!("/{directory}/{number}-{}", "x".repeat(60))
}

/// So many directories with so many links of one file in each.
fn tree(directories: usize, names: usize) -> Arc<MemoryDevice> {
    let device = formatted(512, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for directory in 0..directories {
        fs.create_dir(format!("/{directory}"), 0o755).unwrap();
        fs.create_file(name(directory, 0), 0o644).unwrap();
        for number in 1..names {
            fs.link(name(directory, 0), name(directory, number)).unwrap();
        }
    }
    fs.close().unwrap();
    device
}

fn opened(device: &Arc<MemoryDevice>, blocks: usize) -> FileSystem {
    FileSystem::open(device.clone(), Options::new().dentry_cache(NonZeroUsize::new(blocks).unwrap())).unwrap()
}

/// Bytes that looking for names leaves allocated.
fn kept(fs: &FileSystem, directories: usize, names: usize) -> i64 {
    let walk = || {
        for directory in 0..directories {
            assert_eq!(fs.read_dir(format!("/{directory}")).unwrap().count(), names);
            for number in (0..names).step_by(97) {
                fs.metadata(name(directory, number)).unwrap();
            }
        }
    };
    allocation_counter::measure(walk).bytes_current
}

#[test]
fn many_directories_and_large_ones_stay_within_the_limit() {
    // Some 60 blocks each; and one of 3,000.
    for (directories, names) in [(60, 1000), (1, 50_000)] {
        let device = tree(directories, names);
        let all = kept(&opened(&device, usize::MAX >> 16), directories, names);
        assert!(all > 2500 * BLOCK, "{} blocks", all / BLOCK);
        let few = kept(&opened(&device, 400), directories, names);
        // The inodes and their locks count as well; processors remember so few directories. On machines with many
        // processors each directory has more locks, 64 bytes each.
        let locks = f2fs_sync::stripes_here(64) + f2fs_sync::stripes_here(16) - (64 + 16);
        let beyond = (directories * locks * 64) as i64;
        assert!(few < 1000 * BLOCK + beyond, "{} blocks of {}", few / BLOCK, all / BLOCK);
    }
}

#[test]
fn names_are_changed_while_blocks_go_and_come() {
    const THREADS: usize = 4;
    const NAMES: usize = 300;
    let device = tree(THREADS, NAMES);
    let fs = Arc::new(opened(&device, 3));
    within(LIMIT, {
        let fs = fs.clone();
        move || {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let fs = &fs;
                    scope.spawn(move || {
                        for number in 1..NAMES {
                            let other = (thread + number) % THREADS;
                            fs.metadata(name(other, 0)).unwrap();
                            fs.remove_file(name(thread, number)).unwrap();
                            fs.create_file(format!("/{other}/new-{thread}-{number}"), 0o600).unwrap();
                            if number % 60 == 0 {
                                fs.checkpoint().unwrap();
                            }
                        }
                    });
                }
            });
        }
    });
    let mut found = 0;
    for directory in 0..THREADS {
        found += fs.read_dir(format!("/{directory}")).unwrap().count();
        assert!(fs.metadata(name(directory, 0)).is_ok() && fs.metadata(name(directory, 1)).is_err());
    }
    assert_eq!(found, THREADS * NAMES);
    fs.close().unwrap();
    drop(fs);
    assert_clean(&device);
}
