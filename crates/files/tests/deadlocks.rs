//! Operations that take several locks, against each other, in every direction: they must end, and leave a tree.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_device_test::Random;
use f2fs_files::{DirectoryLock, FileSystem, FsError, Options, RenameMode};
use f2fs_test_kit::volumes::{assert_clean, formatted, scale, within};
use f2fs_volume::format::FormatOptions;

const LIMIT: Duration = Duration::from_secs(120);
const LOCKS: [DirectoryLock; 2] = [DirectoryLock::Bucket, DirectoryLock::Whole];

fn open(lock: DirectoryLock) -> (Arc<MemoryDevice>, FileSystem) {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new().directory_lock(lock)).unwrap();
    (device, fs)
}

/// The errors that operations in a race may return. Every other one is a failure.
#[track_caller]
fn tolerate<T>(result: Result<T, FsError>) -> bool {
    match result {
        Ok(_) => true,
        Err(
            FsError::NotFound
            | FsError::Exists
            | FsError::NotEmpty
            | FsError::IntoItself
            | FsError::NotDirectory
            | FsError::IsDirectory,
        ) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Runs `threads` threads, each `rounds` times, with checkpoints meanwhile; then closes and checks.
fn race(lock: DirectoryLock, threads: u64, rounds: usize, work: impl Fn(&FileSystem, u64, &mut Random) + Send + Sync) {
    let (device, fs) = open(lock);
    fs.create_dir("/a", 0o755).unwrap();
    fs.create_dir("/b", 0o755).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (fs, work) = (&fs, &work);
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    for _ in 0..rounds {
                        work(fs, thread, &mut random);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs.checkpoint().unwrap();
                std::thread::yield_now();
            }
        });
        for worker in workers {
            let result = worker.join();
            if result.is_err() {
                done.store(true, Ordering::Relaxed);
            }
            result.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn a_directory_cannot_replace_what_it_stands_in() {
    for lock in LOCKS {
        within(Duration::from_secs(20), move || {
            let (device, fs) = open(lock);
            for path in ["/a", "/a/b", "/a/b/c", "/a/b/c/d"] {
                fs.create_dir(path, 0o755).unwrap();
            }
            fs.create_file("/a/b/file", 0o644).unwrap();
            // The parent, and the parent's parent.
            assert!(matches!(fs.rename("/a/b", "/a", RenameMode::Replace), Err(FsError::NotEmpty)));
            assert!(matches!(fs.rename("/a/b/c", "/a", RenameMode::Replace), Err(FsError::NotEmpty)));
            assert!(matches!(fs.rename("/a/b/c/d", "/a/b", RenameMode::Replace), Err(FsError::NotEmpty)));
            assert!(matches!(fs.rename("/a/b/file", "/a", RenameMode::Replace), Err(FsError::NotEmpty)));
            assert!(matches!(fs.rename("/a/b", "/a", RenameMode::NoReplace), Err(FsError::Exists)));
            assert!(matches!(fs.rename("/a/b", "/a", RenameMode::Exchange), Err(FsError::IntoItself)));
            assert!(matches!(fs.rename("/a", "/a/b", RenameMode::Exchange), Err(FsError::IntoItself)));
            assert!(matches!(fs.rename("/a", "/a/b/new", RenameMode::Replace), Err(FsError::IntoItself)));
            fs.rename("/a/b/c", "/a/c", RenameMode::Replace).unwrap();
            fs.close().unwrap();
            assert_clean(&device);
        });
    }
}

#[test]
fn renames_between_two_directories_in_both_directions() {
    for lock in LOCKS {
        within(LIMIT, move || {
            race(lock, 16, 60 * scale("F2FS_STRESS"), |fs, thread, random| {
                let name = |random: &mut Random| format!("d{}", random.below(4));
                let (from, to) = if thread % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
                tolerate(fs.create_dir(format!("{from}/{}", name(random)), 0o755));
                let source = format!("{from}/{}", name(random));
                let target = format!("{to}/{}", name(random));
                let mode = *random.one_of(&[RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange]);
                tolerate(fs.rename(source, target, mode));
            });
        });
    }
}

#[test]
fn creation_against_removal_of_the_directory() {
    for lock in LOCKS {
        within(LIMIT, move || {
            race(lock, 16, 60 * scale("F2FS_STRESS"), |fs, thread, random| {
                let dir = format!("/a/d{}", random.below(2));
                match thread % 4 {
                    0 => {
                        tolerate(fs.create_dir(&dir, 0o755));
                    }
                    1 => {
                        tolerate(fs.remove_dir(&dir));
                    }
                    2 => {
                        let file = format!("{dir}/f{thread}");
                        if tolerate(fs.create_file(&file, 0o644)) {
                            // The new file keeps its directory alive: its own thread alone removes it.
                            assert!(tolerate(fs.remove_file(&file)), "{file} is gone");
                        }
                    }
                    _ => {
                        let below = format!("{dir}/s{thread}");
                        if tolerate(fs.create_dir(&below, 0o755)) {
                            assert!(tolerate(fs.remove_dir(&below)), "{below} is gone");
                        }
                    }
                }
            });
        });
    }
}

#[test]
fn subtrees_change_places_and_move_into_each_other() {
    for lock in LOCKS {
        within(LIMIT, move || {
            race(lock, 12, 80 * scale("F2FS_STRESS"), |fs, _, random| {
                // Paths of depth one to four over three names: they are ancestors of each other most of the time.
                let path = |random: &mut Random| {
                    (0..=random.below(4)).map(|_| format!("/{}", ["a", "b", "c"][random.below(3)])).collect::<String>()
                };
                let (one, two) = (path(random), path(random));
                match random.below(5) {
                    0 => tolerate(fs.create_dir(&one, 0o755)),
                    1 => tolerate(fs.remove_dir(&one)),
                    2 => tolerate(fs.rename(&one, &two, RenameMode::Exchange)),
                    3 => tolerate(fs.rename(&one, &two, RenameMode::NoReplace)),
                    _ => tolerate(fs.rename(&one, &two, RenameMode::Replace)),
                };
            });
        });
    }
}
