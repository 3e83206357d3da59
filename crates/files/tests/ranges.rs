//! Calls on one file at the same time: what excludes each other does, and nothing else; each sees the whole of another
//! one or nothing of it; what is remembered of addresses is never stale.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::HeldDevice;
use f2fs_device_test::Random;
use f2fs_files::{AllocateFlags, File, FileSystem, Options, RangeLock, ReadSlice, WriteSlice};
use f2fs_test_kit::volumes::{assert_clean, formatted, scale, within};
use f2fs_volume::format::FormatOptions;

const BLOCK: usize = 4096;
const LIMIT: Duration = Duration::from_secs(120);
const LOCKS: [RangeLock; 2] = [RangeLock::Extent, RangeLock::Btree];

/// Blocks that all hold the same byte, or panics.
#[track_caller]
fn uniform(read: &[u8]) -> u8 {
    assert!(read.iter().all(|byte| *byte == read[0]), "a call was seen in part: {} and others", read[0]);
    read[0]
}

/// A file system whose device can hold requests back, and a file of `blocks` blocks of ones.
fn held(lock: RangeLock, blocks: usize) -> (Arc<MemoryDevice>, Arc<HeldDevice>, FileSystem, Arc<File>) {
    let inner = formatted(64, &FormatOptions::default());
    let device = Arc::new(HeldDevice::new(inner.clone()));
    let fs = FileSystem::open(device.clone(), Options::new().range_lock(lock)).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    assert_eq!(file.write_at(&vec![1; blocks * BLOCK], 0).unwrap(), blocks * BLOCK);
    // Addresses are known from here on.
    file.read_at(&mut vec![0; blocks * BLOCK], 0).unwrap();
    (inner, device, fs, Arc::new(file))
}

fn read_block(file: &File, block: u64) -> u8 {
    let mut read = [0; BLOCK];
    assert_eq!(file.read_at(&mut read, block * BLOCK as u64).unwrap(), BLOCK);
    uniform(&read)
}

fn read_two(file: &File, first: u64) -> u8 {
    let mut read = [0; 2 * BLOCK];
    assert_eq!(file.read_at(&mut read, first * BLOCK as u64).unwrap(), 2 * BLOCK);
    uniform(&read)
}

/// Starts `work` on a thread, and returns when its request is held back.
fn until_held<T: Send + 'static>(
    device: &HeldDevice,
    operation: Operation,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    device.hold_next(operation);
    let thread = std::thread::spawn(work);
    device.wait_until_held();
    thread
}

fn spawn<T: Send + 'static>(
    file: &Arc<File>,
    work: impl FnOnce(&File) -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    let file = file.clone();
    std::thread::spawn(move || work(&file))
}

/// That the thread waits cannot be seen from outside but by time.
fn assert_waits<T>(thread: &std::thread::JoinHandle<T>) {
    std::thread::sleep(Duration::from_millis(30));
    assert!(!thread.is_finished(), "it did not wait");
}

#[test]
fn readers_run_while_a_writer_of_another_range_is_at_the_device() {
    within(LIMIT, || {
        for lock in LOCKS {
            let (inner, device, fs, file) = held(lock, 64);
            let writer = {
                let file = file.clone();
                until_held(&device, Operation::Write, move || {
                    file.write_at(&[2; 4 * BLOCK], 10 * BLOCK as u64).unwrap()
                })
            };
            // Whoever has another range ends while the writer is held back.
            assert_eq!((read_block(&file, 9), read_block(&file, 14), read_block(&file, 63)), (1, 1, 1));
            assert_eq!(file.write_at(&[3; BLOCK], 20 * BLOCK as u64).unwrap(), BLOCK);
            assert_eq!(file.write_at(&[4; BLOCK], 64 * BLOCK as u64).unwrap(), BLOCK);
            assert_eq!((read_block(&file, 20), read_block(&file, 64)), (3, 4));
            file.set_len(64 * BLOCK as u64).unwrap();
            file.allocate(70 * BLOCK as u64, 10, AllocateFlags::NONE).unwrap();
            // Whoever wants one of its blocks waits.
            let reader = spawn(&file, |file| read_block(file, 13));
            let many = spawn(&file, |file| {
                let mut bufs = [[0; BLOCK]; 3];
                let mut reads: Vec<_> =
                    bufs.iter_mut().zip([0, 11, 1]).map(|(buf, at)| ReadSlice::new(at * BLOCK as u64, buf)).collect();
                file.read_many(4, &mut reads).unwrap();
                bufs.map(|buf| uniform(&buf))
            });
            let cut = spawn(&file, |file| file.set_len(14 * BLOCK as u64).unwrap());
            assert_waits(&reader);
            assert!(!many.is_finished());
            drop(cut);
            device.release();
            assert_eq!(writer.join().unwrap(), 4 * BLOCK);
            assert_eq!((reader.join().unwrap(), many.join().unwrap()), (2, [1, 2, 1]), "{lock:?}");
            drop(file);
            fs.close().unwrap();
            assert_clean(&inner);
        }
    });
}

#[test]
fn readers_of_the_same_blocks_share_them() {
    within(LIMIT, || {
        let (_, device, _fs, file) = held(RangeLock::Extent, 16);
        let first = {
            let file = file.clone();
            until_held(&device, Operation::Read, move || read_two(&file, 5))
        };
        assert_eq!(read_two(&file, 5), 1);
        let writer = spawn(&file, |file| file.write_at(&[2; BLOCK], 5 * BLOCK as u64).unwrap());
        assert_waits(&writer);
        device.release();
        assert_eq!((first.join().unwrap(), writer.join().unwrap()), (1, BLOCK));
        assert_eq!(read_block(&file, 5), 2);
    });
}

/// A read inside one block locks nothing: its writer does not wait, and the read finds what was there when it began.
#[test]
fn a_writer_does_not_wait_for_readers_inside_its_block() {
    within(LIMIT, || {
        let (inner, device, fs, file) = held(RangeLock::Extent, 16);
        let reader = {
            let file = file.clone();
            until_held(&device, Operation::Read, move || read_block(&file, 5))
        };
        assert_eq!(file.write_at(&[2; BLOCK], 5 * BLOCK as u64).unwrap(), BLOCK);
        assert_eq!(read_block(&file, 5), 2);
        file.set_len(5 * BLOCK as u64).unwrap();
        // Its place stays as it was until a checkpoint, and that waits for the reader.
        let checkpoint = std::thread::spawn(move || {
            fs.checkpoint().unwrap();
            fs
        });
        assert_waits(&checkpoint);
        device.release();
        assert_eq!(reader.join().unwrap(), 1);
        let fs = checkpoint.join().unwrap();
        drop(file);
        fs.close().unwrap();
        assert_clean(&inner);
    });
}

#[test]
fn truncation_waits_for_readers_behind_the_new_end_only() {
    within(LIMIT, || {
        for lock in LOCKS {
            let (inner, device, fs, file) = held(lock, 64);
            let reader = {
                let file = file.clone();
                until_held(&device, Operation::Read, move || read_two(&file, 29))
            };
            file.set_len(31 * BLOCK as u64).unwrap();
            assert_eq!(file.size(), 31 * BLOCK as u64);
            let cut = spawn(&file, |file| file.set_len(30 * BLOCK as u64 + 7).unwrap());
            assert_waits(&cut);
            assert_eq!(file.size(), 31 * BLOCK as u64, "the size changes when the blocks can");
            device.release();
            assert_eq!(reader.join().unwrap(), 1);
            cut.join().unwrap();
            assert_eq!(file.size(), 30 * BLOCK as u64 + 7);
            drop(file);
            fs.close().unwrap();
            assert_clean(&inner);
        }
    });
}

/// Records of several blocks are overwritten while others read them, blocks are moved by the cleaner, checkpoints make
/// freed places free, and the places are used again at once.
#[test]
fn nobody_sees_a_part_of_a_write_or_a_block_of_somebody_else() {
    const RECORD: usize = 3 * BLOCK;
    const RECORDS: u64 = 300;
    within(LIMIT, || {
        for lock in LOCKS {
            let device = formatted(56, &FormatOptions::default());
            // Room for few addresses: some are known, some are not.
            let options =
                Options::new().range_lock(lock).address_cache(if lock == RangeLock::Extent { 2600 } else { 1 << 20 });
            let fs = FileSystem::open(device.clone(), options).unwrap();
            let file = fs.create_file("/records", 0o644).unwrap();
            let other = fs.create_file("/other", 0o644).unwrap();
            for record in 0..RECORDS {
                file.write_at(&[1; RECORD], record * RECORD as u64).unwrap();
            }
            let steps = 250 * scale("F2FS_STRESS") as u64;
            let left = AtomicU64::new(4);
            std::thread::scope(|scope| {
                let (fs, file, other, left) = (&fs, &file, &other, &left);
                for thread in 0..4_u64 {
                    scope.spawn(move || {
                        let mut random = Random::new(thread);
                        for step in 0..steps {
                            let byte = 1 + (step % 250) as u8;
                            let at = |random: &mut Random| random.below(RECORDS as usize) as u64 * RECORD as u64;
                            if thread % 2 == 0 {
                                assert_eq!(file.write_at(&[byte; RECORD], at(&mut random)).unwrap(), RECORD);
                            } else {
                                let record = [byte; RECORD];
                                let mut writes: Vec<_> =
                                    (0..8).map(|_| WriteSlice::new(at(&mut random), &record)).collect();
                                file.write_many(4, &mut writes).unwrap();
                            }
                        }
                        left.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                for thread in 0..3_u64 {
                    scope.spawn(move || {
                        let mut random = Random::new(100 + thread);
                        while left.load(Ordering::Relaxed) > 0 {
                            let mut bufs = vec![[0; RECORD]; 16];
                            let mut reads: Vec<_> = bufs
                                .iter_mut()
                                .map(|buf| ReadSlice::new(random.below(RECORDS as usize) as u64 * RECORD as u64, buf))
                                .collect();
                            if thread == 0 {
                                file.read_many(8, &mut reads).unwrap();
                            } else {
                                for read in &mut reads {
                                    assert_eq!(file.read_at(read.buf, read.offset).unwrap(), RECORD);
                                }
                            }
                            for buf in &bufs {
                                assert_ne!(uniform(buf), 255, "a block of another file");
                            }
                        }
                    });
                }
                scope.spawn(move || {
                    // Whatever becomes free is soon full of something else.
                    while left.load(Ordering::Relaxed) > 0 {
                        other.write_at(&vec![255; 600 * BLOCK], 0).unwrap();
                        fs.checkpoint().unwrap();
                        fs.clean().unwrap();
                    }
                });
            });
            drop((file, other));
            fs.close().unwrap();
            assert_clean(&device);
        }
    });
}

/// Files that grow at many places at once: the size is never behind what was written, and nothing but zeros is read
/// where nobody wrote.
#[test]
fn writers_of_different_ranges_grow_a_file_together() {
    const BLOCKS: usize = 480;
    within(LIMIT, || {
        for lock in LOCKS {
            let device = formatted(64, &FormatOptions::default());
            let fs = FileSystem::open(device.clone(), Options::new().range_lock(lock)).unwrap();
            let file = fs.create_file("/file", 0o644).unwrap();
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let (fs, file, done) = (&fs, &file, &done);
                let writers: Vec<_> = (0..4)
                    .map(|thread| {
                        scope.spawn(move || {
                            for block in (thread..BLOCKS).step_by(4) {
                                // Every block of the file once, in an order of its own.
                                let block = block * 7 % BLOCKS;
                                let data = [1 + (block % 250) as u8; BLOCK];
                                file.write_at(&data, (block * BLOCK) as u64).unwrap();
                                assert!(file.size() >= ((block + 1) * BLOCK) as u64);
                            }
                        })
                    })
                    .collect();
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut size = 0;
                        while !done.load(Ordering::Relaxed) {
                            let mut read = vec![0xee; (BLOCKS + 1) * BLOCK];
                            let len = file.read_at(&mut read, 0).unwrap();
                            assert!(len >= size && len % BLOCK == 0, "{len} bytes, {size} before");
                            size = len;
                            for (block, data) in read[..len].chunks(BLOCK).enumerate() {
                                let byte = uniform(data);
                                assert!(byte == 0 || byte == 1 + (block % 250) as u8, "block {block}: {byte}");
                            }
                            fs.checkpoint().unwrap();
                        }
                    });
                }
                for writer in writers {
                    let result = writer.join();
                    done.store(true, Ordering::Relaxed);
                    result.unwrap();
                }
            });
            assert_eq!(file.size(), (BLOCKS * BLOCK) as u64);
            for block in 0..BLOCKS as u64 {
                assert_eq!(read_block(&file, block), 1 + (block % 250) as u8);
            }
            drop(file);
            fs.close().unwrap();
            assert_clean(&device);
        }
    });
}

/// Truncation, allocation, writing, appending and reading of one file, all at once, with the file now inline and now
/// large. Byte n of the file is f(n), zero, or not there.
#[test]
fn the_end_of_a_file_moves_under_readers_and_writers() {
    const MOST: usize = 3 << 20;
    let pattern: Arc<Vec<u8>> = Arc::new((0..MOST + 100_000).map(|n| 1 + (n / 100 % 251) as u8).collect());
    within(LIMIT, move || {
        for lock in LOCKS {
            let device = formatted(64, &FormatOptions::default());
            let fs = FileSystem::open(device.clone(), Options::new().range_lock(lock)).unwrap();
            let rounds = 3 * scale("F2FS_STRESS");
            for round in 0..rounds {
                let file = fs.create_file(format!("/file-{round}"), 0o644).unwrap();
                let left = AtomicU64::new(5);
                std::thread::scope(|scope| {
                    let (fs, file, left, pattern) = (&fs, &file, &left, &pattern);
                    for thread in 0..5 {
                        scope.spawn(move || {
                            let mut random = Random::new((round * 10 + thread) as u64);
                            for step in 0..60 {
                                // At first within the inode.
                                let most = if step < 10 { 3000 } else { MOST };
                                let offset = random.below(most);
                                let longest = if random.chance(4) { 90_000 } else { 5000 };
                                let len = 1 + random.below(longest);
                                match (thread, random.below(4)) {
                                    (0, 0 | 1) => file.set_len(offset as u64).unwrap(),
                                    (0, _) => file
                                        .allocate(
                                            offset as u64,
                                            len as u64,
                                            AllocateFlags::NONE.keep_size(random.chance(2)),
                                        )
                                        .unwrap(),
                                    (1, 0) => {
                                        let mut writes: Vec<_> = (0..6)
                                            .map(|_| {
                                                let at = random.below(most);
                                                WriteSlice::new(at as u64, &pattern[at..at + random.below(20_000)])
                                            })
                                            .collect();
                                        file.write_many(1 + random.below(8), &mut writes).unwrap();
                                    }
                                    _ => {
                                        let wrote = file.write_at(&pattern[offset..offset + len], offset as u64);
                                        assert_eq!(wrote.unwrap(), len);
                                    }
                                }
                            }
                            left.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                    for thread in 0..2 {
                        scope.spawn(move || {
                            let mut random = Random::new(1000 + thread);
                            while left.load(Ordering::Relaxed) > 0 {
                                let offset = random.below(MOST);
                                let mut read = vec![0xff; random.below(200_000)];
                                let len = file.read_at(&mut read, offset as u64).unwrap();
                                let wanted = &pattern[offset..];
                                let wrong = (0..len).find(|&n| read[n] != 0 && read[n] != wanted[n]);
                                assert_eq!(wrong, None, "at {offset}");
                                if random.chance(8) {
                                    fs.checkpoint().unwrap();
                                }
                            }
                        });
                    }
                });
                let mut all = vec![0xff; MOST + 200_000];
                let len = file.read_at(&mut all, 0).unwrap();
                assert_eq!(len as u64, file.size());
                assert_eq!(len as u64, file.metadata().unwrap().size);
                // The same without anything remembered.
                file.sync_all().unwrap();
                let fresh = FileSystem::open(Arc::new(device.snapshot()), Options::new().read_only(true)).unwrap();
                let mut again = vec![0xfe; MOST + 200_000];
                let read = fresh.open_file(format!("/file-{round}")).unwrap().read_at(&mut again, 0).unwrap();
                assert!(read == len && again[..len] == all[..len]);
            }
            fs.close().unwrap();
            assert_clean(&device);
        }
    });
}
