//! Many threads at the limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use f2fs_files::{FileSystem, Options};
use f2fs_volume::format::FormatOptions;

use crate::fill::{LIMIT, assert_content, check_round, content, fill_directory, numbers, open, rounds};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};

#[test]
fn eight_threads_until_nothing_fits() {
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        for round in 0..rounds() {
            let failures = AtomicU64::new(0);
            let all: Vec<Vec<usize>> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8u64)
                    .map(|thread| {
                        let (fs, failures) = (&fs, &failures);
                        scope.spawn(move || {
                            let dir = format!("/t{thread}");
                            // Another thread may have taken the last block before this one has begun.
                            if let Err(error) = fs.create_dir(&dir, 0o755) {
                                numbers(&error);
                                return Vec::new();
                            }
                            let (sizes, error) = fill_directory(fs, &dir, |name| 1 + (name as usize * 4001) % 70_000);
                            numbers(&error);
                            failures.fetch_add(1, Ordering::Relaxed);
                            sizes
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(failures.load(Ordering::Relaxed) > 0);
            for (thread, sizes) in all.iter().enumerate() {
                check_round(&fs, &device, &format!("/t{thread}"), sizes, |name| 1 + (name as usize * 4001) % 70_000);
            }
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let fs = &fs;
                    scope.spawn(move || {
                        let dir = format!("/t{thread}");
                        if fs.exists(&dir).unwrap() {
                            fs.remove_all(&dir).unwrap();
                        }
                    });
                }
            });
            fs.checkpoint().unwrap();
            assert_eq!(fs.read_dir("/").unwrap().count(), 0, "round {round}");
        }
        fs.close().unwrap();
        assert_clean(&device);
    });
}

/// Thirty-two threads fill the volume, overwrite what they have when nothing more fits, delete every other file, clean
/// beside each other, and fill it again; in the end everything is deleted, and every block is free again. Ten rounds,
/// each on the volume as the one before left it, with the ways of writing into holes in turn, every other one beside a
/// background cleaner.
#[test]
fn thirty_two_threads_at_the_limit() {
    const THREADS: u64 = 32;
    within(LIMIT, || {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device);
        for thread in 0..THREADS {
            fs.create_dir(format!("/{thread}"), 0o755).unwrap();
        }
        fs.close().unwrap();
        let empty = fs.statfs().valid_blocks;
        drop(fs);
        let length = |seed: u64| 4096 + (seed as usize).wrapping_mul(977) % 60_000;
        let path = |thread: u64, name: u64| format!("/{thread}/{name}");
        for round in 0..5 * rounds() as u64 {
            let ways = ["selective-optimal", "ssr", "selective-optimal+27", "partial", "selective-greedy"];
            let allocation = ways[round as usize % ways.len()].parse::<f2fs_volume::Allocation>().unwrap();
            let volume = f2fs_volume::VolumeOptions::new().allocation(allocation);
            let fs = FileSystem::open(device.clone(), Options::new().volume(volume)).unwrap();
            assert_eq!(fs.statfs().valid_blocks, empty, "round {round}");
            let pace = f2fs_files::CleanerOptions::default().urgent_interval(Duration::from_millis(5));
            let cleaner = (round % 2 == 0).then(|| fs.start_cleaner(pace).unwrap());
            let everybody = |work: &(dyn Fn(&FileSystem, u64) + Sync)| {
                std::thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let fs = &fs;
                        scope.spawn(move || work(fs, thread));
                    }
                });
            };
            // The contents that each file must have: its seed and its length, by thread and name.
            let held: Vec<std::sync::Mutex<Vec<(u64, u64, usize)>>> =
                (0..THREADS).map(|_| Default::default()).collect();
            let fill = |again: bool| {
                everybody(&|fs, thread| {
                    let mut mine = held[thread as usize].lock().unwrap();
                    for name in 0.. {
                        let name = name + if again { 10_000 } else { 0 };
                        let seed = round << 40 | thread << 20 | name;
                        let wanted = content(seed, length(seed));
                        let file = match fs.create_file(path(thread, name), 0o644) {
                            Ok(file) => file,
                            Err(error) => {
                                numbers(&error);
                                return;
                            }
                        };
                        let mut written = 0;
                        while written < wanted.len() {
                            match file.write_at(&wanted[written..], written as u64) {
                                Ok(more) => written += more,
                                Err(error) => {
                                    numbers(&error);
                                    break;
                                }
                            }
                        }
                        mine.push((name, seed, written));
                        if written < wanted.len() {
                            return;
                        }
                    }
                });
            };
            let verify = || {
                everybody(&|fs, thread| {
                    for (name, seed, size) in held[thread as usize].lock().unwrap().iter() {
                        let wanted = content(*seed, length(*seed));
                        assert_content(fs, &path(thread, *name), &wanted[..*size]);
                    }
                });
            };
            fill(false);
            verify();
            // Every block goes to a new place, though there is no room for one more.
            everybody(&|fs, thread| {
                for (name, seed, size) in held[thread as usize].lock().unwrap().iter() {
                    let file = fs.open_file(path(thread, *name)).unwrap();
                    let wanted = content(*seed, length(*seed));
                    if *size > 4096 {
                        assert_eq!(file.write_at(&wanted[4096..*size], 4096).unwrap(), *size - 4096);
                    }
                    // And a block here and there, which leaves single holes.
                    for block in (0..*size / 4096).step_by(3) {
                        let start = block * 4096;
                        let part = &wanted[start..start + 4096];
                        assert_eq!(file.write_at(part, start as u64).unwrap(), 4096);
                    }
                }
            });
            verify();
            everybody(&|fs, thread| {
                held[thread as usize].lock().unwrap().retain(|(name, ..)| {
                    let keep = name % 2 == 0;
                    if !keep {
                        fs.remove_file(path(thread, *name)).unwrap();
                    }
                    keep
                });
                while thread % 8 == 0
                    && fs.clean_step(f2fs_files::Pace::Urgent).unwrap().is_some_and(|step| step.segments > 0)
                {
                }
            });
            fs.clean().unwrap();
            fill(true);
            verify();
            if let Some(cleaner) = cleaner {
                assert_eq!(cleaner.failed(), None);
            }
            fs.checkpoint().unwrap();
            assert_clean(&device);
            everybody(&|fs, thread| {
                for (name, ..) in held[thread as usize].lock().unwrap().iter() {
                    fs.remove_file(path(thread, *name)).unwrap();
                }
            });
            everybody(&|fs, thread| {
                for entry in fs.read_dir(format!("/{thread}")).unwrap().map(Result::unwrap) {
                    // Made, but without room for a single byte.
                    let name = String::from_utf8(entry.name).unwrap();
                    fs.remove_file(format!("/{thread}/{name}")).unwrap();
                }
                fs.remove_dir(format!("/{thread}")).unwrap();
                fs.create_dir(format!("/{thread}"), 0o755).unwrap();
            });
            fs.checkpoint().unwrap();
            assert_eq!(fs.statfs().valid_blocks, empty, "round {round}");
            fs.close().unwrap();
            assert_clean(&device);
        }
    });
}
