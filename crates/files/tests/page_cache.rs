//! The page cache: a read returns what any thread wrote, wherever it is; space is counted by the write; errors are
//! told.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::time::Duration;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule, HeldDevice};
use f2fs_files::{FileSystem, FlusherOptions, FsError, Options, ReadSlice, Time, WriteSlice};
use f2fs_sync::atomic::{AtomicI64, Ordering};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};
use f2fs_volume::format::FormatOptions;

const BLOCK: usize = 4096;

fn cached(device: &Arc<MemoryDevice>, bytes: u64) -> FileSystem {
    FileSystem::open(device.clone(), Options::new().page_cache(bytes)).unwrap()
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 12) as u8).wrapping_add(seed)).collect()
}

fn content(fs: &FileSystem, path: &str) -> Vec<u8> {
    let file = fs.open_file(path).unwrap();
    let mut bytes = vec![0; file.size() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

#[test]
fn a_write_stays_in_memory_until_a_sync() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 8 << 20);
    fs.checkpoint().unwrap();
    let file = fs.create_file("/f", 0o644).unwrap();
    let before = fs.stats();
    file.write_at(&pattern(100_000, 1), 0).unwrap();
    let stats = fs.stats();
    assert_eq!(stats.user_blocks_written, before.user_blocks_written);
    assert_eq!((stats.dirty_pages, stats.cached_pages), (25, 25));
    assert_eq!(stats.valid_blocks - before.valid_blocks, 25, "space is counted by the write");
    assert_eq!(file.metadata().unwrap().size, 100_000);
    assert_eq!(file.metadata().unwrap().blocks, 26, "with those that have a place");
    file.sync_all().unwrap();
    let stats = fs.stats();
    assert_eq!(stats.user_blocks_written - before.user_blocks_written, 25);
    assert_eq!(stats.user_requests - before.user_requests, 1, "one run of the log");
    assert_eq!((stats.dirty_pages, stats.cached_pages), (0, 25));
    assert_eq!(file.metadata().unwrap().blocks, 26);
    drop((file, fs));
    let again = Arc::new(device.snapshot());
    assert_eq!(content(&cached(&again, 0), "/f"), pattern(100_000, 1));
}

/// A long write of whole blocks is a large request by itself: it goes to the device at once, over what is dirty there.
#[test]
fn a_long_write_goes_past_the_cache() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 32 << 20);
    let file = fs.create_file("/f", 0o644).unwrap();
    let mut all = pattern((2 << 20) + 100, 1);
    file.write_at(&all, 0).unwrap();
    assert_eq!(fs.stats().dirty_pages, 513, "no whole blocks");
    let long = pattern(1 << 20, 7);
    file.write_at(&long, 8192).unwrap();
    all[8192..][..1 << 20].copy_from_slice(&long);
    assert!(content(&fs, "/f") == all);
    let stats = fs.stats();
    assert!(stats.dirty_pages == 257 && stats.user_blocks_written >= 512, "{stats:?}");
    fs.checkpoint().unwrap();
    drop(file);
    assert!(content(&cached(&Arc::new(device.snapshot()), 0), "/f") == all);
}

/// A page that is dirty for long goes to the device with the next write, whichever way that write takes itself.
#[test]
fn old_pages_are_written_by_writes_that_pass() {
    static SECONDS: AtomicI64 = AtomicI64::new(1000);
    let now = || Time { seconds: SECONDS.load(Ordering::Relaxed), nanoseconds: 0 };
    for (next, left) in [(100, 1), (1 << 20, 0)] {
        let device = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device, Options::new().page_cache(32 << 20).clock(now)).unwrap();
        // Nobody else does it: there was somebody once.
        drop(fs.start_flusher(FlusherOptions::default().interval(Duration::from_secs(3600))).unwrap());
        let [old, new] = ["/old", "/new"].map(|path| fs.create_file(path, 0o644).unwrap());
        old.write_at(&pattern(100_000, 1), 0).unwrap();
        SECONDS.fetch_add(4, Ordering::Relaxed);
        new.write_at(&[1], 1 << 20).unwrap();
        assert_eq!(fs.stats().dirty_pages, 26);
        SECONDS.fetch_add(2, Ordering::Relaxed);
        new.write_at(&pattern(next, 2), 0).unwrap();
        assert_eq!(fs.stats().dirty_pages, left, "behind a write of {next} bytes");
    }
}

#[test]
fn many_small_files_go_out_together() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 8 << 20);
    for number in 0..300u32 {
        fs.create_file(format!("/{number}"), 0o644).unwrap().write_at(&pattern(BLOCK, number as u8), 0).unwrap();
    }
    let before = fs.stats();
    fs.checkpoint().unwrap();
    let after = fs.stats();
    // 300 blocks of data and those of the directory.
    assert!(after.user_requests - before.user_requests < 20, "{} requests", after.user_requests - before.user_requests);
    drop(fs);
    let again = cached(&Arc::new(device.snapshot()), 0);
    for number in 0..300u32 {
        assert_eq!(content(&again, &format!("/{number}")), pattern(BLOCK, number as u8));
    }
}

/// A cache of 64 pages, and a file of 2000 blocks.
#[test]
fn a_cache_that_is_too_small_works_and_stays_within_its_memory() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 64 * 4160);
    let file = fs.create_file("/f", 0o644).unwrap();
    let all = pattern(2000 * BLOCK, 3);
    for (number, piece) in all.chunks(5000).enumerate() {
        assert_eq!(file.write_at(piece, 5000 * number as u64).unwrap(), piece.len());
        let stats = fs.stats();
        assert!(stats.cached_pages <= 64 && stats.dirty_pages <= 32, "{stats:?}");
    }
    assert!(content(&fs, "/f") == all);
    assert!(fs.stats().cached_pages <= 64);
    fs.close().unwrap();
    assert!(content(&cached(&device, 0), "/f") == all);
}

#[test]
fn reads_and_writes_past_the_cache_agree_with_it() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 8 << 20);
    let file = fs.create_file("/f", 0o644).unwrap();
    let mut model = pattern(40 * BLOCK, 1);
    file.write_at(&model, 0).unwrap();
    // Past the cache, over what is dirty.
    let ones = vec![0xAA; 3 * BLOCK];
    let mut writes = [WriteSlice::new(2 * BLOCK as u64 + 100, &ones), WriteSlice::new(30 * BLOCK as u64, &ones)];
    file.write_many(4, &mut writes).unwrap();
    model[2 * BLOCK + 100..5 * BLOCK + 100].fill(0xAA);
    model[30 * BLOCK..33 * BLOCK].fill(0xAA);
    assert!(content(&fs, "/f") == model);
    file.write_durable(&[0xBB; 5000], 50).unwrap();
    model[50..5050].fill(0xBB);
    assert!(content(&fs, "/f") == model);
    // Dirty again, and read past the cache.
    file.write_at(&[0xCC; 9000], 7777).unwrap();
    model[7777..16_777].fill(0xCC);
    let mut buf = f2fs_device::AlignedBuf::new(8);
    assert_eq!(file.read_into(&mut buf, 0).unwrap(), 8 * BLOCK);
    assert!(buf.as_bytes() == &model[..8 * BLOCK]);
    let mut bytes = vec![0; model.len()];
    let mut reads: Vec<_> =
        bytes.chunks_mut(6000).enumerate().map(|(number, part)| ReadSlice::new(6000 * number as u64, part)).collect();
    file.read_many(8, &mut reads).unwrap();
    assert!(bytes == model);
    file.punch_hole(10_000, 20_000).unwrap();
    model[10_000..30_000].fill(0);
    file.set_len(50_001).unwrap();
    model.truncate(50_001);
    assert!(content(&fs, "/f") == model);
    file.set_len(60_000).unwrap();
    model.resize(60_000, 0);
    file.write_at(b"end", 70_000).unwrap();
    model.resize(70_000, 0);
    model.extend_from_slice(b"end");
    assert!(content(&fs, "/f") == model);
    assert_eq!(file.seek_hole(0).unwrap(), Some(12_288));
    fs.checkpoint().unwrap();
    drop((file, fs));
    assert!(content(&cached(&Arc::new(device.snapshot()), 0), "/f") == model);
}

/// Others go on beside the checkpoint that a durable write needs: what they read and write over is what it wrote.
#[test]
fn a_durable_write_that_takes_a_checkpoint_leaves_no_old_page() {
    let device = formatted(64, &FormatOptions::default());
    let held = Arc::new(HeldDevice::new(device.clone()));
    let fs = Arc::new(FileSystem::open(held.clone(), Options::new().page_cache(8 << 20)).unwrap());
    let file = fs.create_file("/f", 0o644).unwrap();
    let mut model = pattern(3 * BLOCK, 1);
    file.write_at(&model, 0).unwrap();
    fs.checkpoint().unwrap();
    // With two names its own nodes do not make it durable.
    fs.link("/f", "/g").unwrap();
    assert!(content(&fs, "/f") == model && fs.stats().cached_pages == 3);
    let found = within(Duration::from_secs(120), {
        let (fs, held) = (fs.clone(), held.clone());
        move || {
            held.hold_next(Operation::Flush);
            let writer = std::thread::spawn(move || file.write_durable(&[0xAA; BLOCK], 1000).map(|_| file));
            held.wait_until_held();
            let found = content(&fs, "/f");
            fs.open_file("/g").unwrap().write_at(&[0xBB; 2000], 6000).unwrap();
            held.release();
            writer.join().unwrap().unwrap();
            found
        }
    });
    model[1000..1000 + BLOCK].fill(0xAA);
    assert!(found == model, "while the checkpoint is written");
    model[6000..8000].fill(0xBB);
    assert!(content(&fs, "/f") == model, "over a part of a block that was durable");
    fs.close().unwrap();
    drop(fs);
    assert_clean(&device);
    assert!(content(&cached(&device, 0), "/f") == model);
}

/// Space runs out in a write, never in a sync or a checkpoint; all that a write took is there.
#[test]
fn space_runs_out_in_the_write() {
    for step in [BLOCK, 3 * BLOCK + 17, 300_000] {
        let device = formatted(56, &FormatOptions::default());
        let fs = cached(&device, 128 << 20);
        let file = fs.create_file("/f", 0o644).unwrap();
        let piece = pattern(step, 5);
        let mut size = 0;
        let error = loop {
            match file.write_at(&piece, size) {
                Ok(written) => size += written as u64,
                Err(error) => break error,
            }
        };
        assert!(error.is_no_space(), "{error}");
        file.sync_all().unwrap();
        fs.checkpoint().unwrap();
        assert_eq!(file.size(), size);
        let stat = fs.statfs();
        assert!(stat.user_blocks - stat.valid_blocks < 4, "{stat:?}");
        drop((file, fs));
        let again = cached(&Arc::new(device.snapshot()), 0);
        let found = content(&again, "/f");
        assert_eq!(found.len() as u64, size);
        assert!(found.chunks(step).all(|part| part == &piece[..part.len()]), "step {step}");
    }
}

#[test]
fn a_file_that_is_removed_is_never_written() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 32 << 20);
    fs.checkpoint().unwrap();
    let before = fs.stats();
    for len in [BLOCK, 1 << 19] {
        fs.create_file("/f", 0o644).unwrap().write_at(&pattern(len, 1), 0).unwrap();
        fs.remove_file("/f").unwrap();
    }
    let file = fs.create_file("/open", 0o644).unwrap();
    file.write_at(&pattern(BLOCK, 1), 0).unwrap();
    fs.remove_file("/open").unwrap();
    drop(file);
    assert_eq!(fs.stats().dirty_pages, 0);
    fs.checkpoint().unwrap();
    let after = fs.stats();
    assert_eq!(after.valid_blocks, before.valid_blocks);
    // The directory's blocks are written, and nothing else.
    assert!(after.user_blocks_written - before.user_blocks_written < 3, "{after:?}");
}

/// What a file loses at once is dropped, not written; what is left of the block with the new end is there.
#[test]
fn what_is_cut_off_is_never_written() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 32 << 20);
    let file = fs.create_file("/f", 0o644).unwrap();
    fs.checkpoint().unwrap();
    let before = fs.stats();
    for (size, written) in [(0, 0), (4 * BLOCK, 4), (5 * BLOCK + 7, 6)] {
        let before = fs.stats();
        let all = pattern(200 * BLOCK, 1);
        file.write_at(&all, 0).unwrap();
        file.set_len(size as u64).unwrap();
        assert!(content(&fs, "/f") == all[..size]);
        file.sync_all().unwrap();
        let after = fs.stats();
        // The block with the new end: once as it was, once without its end.
        assert!(after.user_blocks_written - before.user_blocks_written <= written + 1, "{size}: {after:?}");
        assert_eq!(after.dirty_pages, 0);
        assert_eq!(file.metadata().unwrap().blocks, 1 + size.div_ceil(BLOCK) as u64);
        file.set_len(200 * BLOCK as u64).unwrap();
        let found = content(&fs, "/f");
        assert!(found[..size] == all[..size] && found[size..].iter().all(|byte| *byte == 0));
        file.set_len(0).unwrap();
    }
    fs.checkpoint().unwrap();
    assert_eq!(fs.stats().valid_blocks, before.valid_blocks);
    drop(file);
    fs.close().unwrap();
    drop(fs);
    assert_clean(&device);
}

/// The first number of a page's file is never that of another file.
#[test]
fn a_file_with_the_number_of_a_removed_one_does_not_find_its_pages() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 8 << 20);
    let mut seen = std::collections::HashSet::new();
    for round in 0..200u32 {
        let file = fs.create_file("/f", 0o644).unwrap();
        seen.insert(file.ino());
        file.set_len(3 * BLOCK as u64).unwrap();
        let mut bytes = vec![1; 3 * BLOCK];
        file.read_at(&mut bytes, 0).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0), "round {round}");
        file.write_at(&[7; 3 * BLOCK], 0).unwrap();
        file.read_at(&mut bytes, 0).unwrap();
        drop(file);
        fs.remove_file("/f").unwrap();
        fs.checkpoint().unwrap();
    }
    assert!(seen.len() < 200, "no number came back: the test shows nothing");
}

#[test]
fn a_huge_cache_and_a_tiny_one_open() {
    let device = formatted(64, &FormatOptions::default());
    for bytes in [1, 4096, 65_536, u64::MAX] {
        let fs = cached(&device, bytes);
        let file = fs.open_file("/f").or_else(|_| fs.create_file("/f", 0o644)).unwrap();
        file.write_at(&pattern(70_000, 9), 10).unwrap();
        let mut bytes = vec![0; 70_000];
        file.read_at(&mut bytes, 10).unwrap();
        assert!(bytes == pattern(70_000, 9));
        fs.close().unwrap();
    }
}

#[test]
fn what_is_dirty_at_the_close_is_durable_and_a_closed_file_system_says_so() {
    let device = formatted(64, &FormatOptions::default());
    let fs = cached(&device, 8 << 20);
    let file = fs.create_file("/f", 0o644).unwrap();
    file.write_at(&pattern(9000, 1), 0).unwrap();
    fs.close().unwrap();
    assert!(matches!(file.write_at(&[1; 5000], 0), Err(FsError::Volume(_))));
    assert_eq!(content(&cached(&Arc::new(device.snapshot()), 0), "/f"), pattern(9000, 1));
}

/// An error of write-back is told to each handle that was open, once, and nothing is lost: the next sync writes it.
#[test]
fn an_error_of_write_back_is_told_to_each_handle_once() {
    let memory = formatted(64, &FormatOptions::default());
    let device = Arc::new(FaultDevice::new(memory.clone()));
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(32 << 20)).unwrap();
    let one = fs.create_file("/f", 0o644).unwrap();
    let two = fs.open_file("/f").unwrap();
    let other = fs.create_file("/other", 0o644).unwrap();
    let reference = fs.root().unwrap().lookup("f").unwrap();
    fs.checkpoint().unwrap();
    one.write_at(&pattern(9000, 1), 0).unwrap();
    device.arm(FaultRule::on([Operation::Write]).for_good());
    // Whoever asks for all that is dirty is told of the error as well.
    assert!(fs.checkpoint().is_err());
    device.disarm();
    let told = |file: &f2fs_files::File| matches!(file.sync_all(), Err(FsError::WriteBack(_)));
    assert!(told(&one), "the first sync is told");
    assert!(!told(&one), "told twice");
    assert!(told(&two), "the other handle is told");
    assert!(!told(&two) && !told(&other));
    assert!(matches!(reference.sync_all(), Err(FsError::WriteBack(_))), "so is a reference to the inode");
    assert!(reference.sync_all().is_ok());
    assert!(!told(&fs.open_file("/f").unwrap()), "somebody has seen it");
    assert_eq!(fs.stats().dirty_pages, 0);
    drop((one, two, other, reference, fs));
    assert_eq!(content(&cached(&Arc::new(memory.snapshot()), 0), "/f"), pattern(9000, 1));
}

/// Read-ahead: a file that is read in small pieces comes in large requests, one that is read here and there does not.
#[test]
fn a_sequence_is_read_ahead() {
    let memory = formatted(64, &FormatOptions::default());
    let fs = cached(&memory, 0);
    let all = pattern(600 * BLOCK, 2);
    fs.create_file("/f", 0o644).unwrap().write_at(&all, 0).unwrap();
    fs.close().unwrap();
    let fs = cached(&memory, 16 << 20);
    let file = fs.open_file("/f").unwrap();
    let mut piece = vec![0; 1000];
    file.read_at(&mut piece, 300 * BLOCK as u64).unwrap();
    assert_eq!(fs.stats().cached_pages, 1, "a place by itself");
    for at in (0..all.len() - 1000).step_by(1000) {
        file.read_at(&mut piece, at as u64).unwrap();
        assert!(piece == all[at..at + 1000]);
        if at == 0 {
            assert!(fs.stats().cached_pages > 10, "read ahead");
        }
    }
    assert_eq!(fs.stats().cached_pages, 600);
}

/// Threads write, read, cut and remove files in a cache that is always full, beside checkpoints; the last write of each
/// is left.
#[test]
fn threads_in_a_cache_that_is_full() {
    let device = formatted(128, &FormatOptions::default());
    let fs = cached(&device, 64 * 4160);
    fs.create_file("/shared", 0o644).unwrap();
    let last: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let fs = &fs;
                scope.spawn(move || {
                    let shared = fs.open_file("/shared").unwrap();
                    let own = fs.create_file(format!("/{thread}"), 0o644).unwrap();
                    let (mut part, base) = (vec![0; 40 * BLOCK], thread * 40 * BLOCK as u64);
                    let mut seed = thread + 1;
                    for round in 0..300_u64 {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let (at, len) = ((seed >> 33) as usize % (39 * BLOCK), 1 + (seed >> 50) as usize % 9000);
                        let len = len.min(part.len() - at);
                        let bytes = pattern(len, round as u8);
                        part[at..at + len].copy_from_slice(&bytes);
                        shared.write_at(&bytes, base + at as u64).unwrap();
                        own.write_at(&bytes, at as u64).unwrap();
                        match round % 37 {
                            0 => shared.sync_all().unwrap(),
                            7 => drop(fs.checkpoint().unwrap()),
                            11 => own.set_len(at as u64).unwrap(),
                            17 => fs.remove_file(format!("/{thread}")).unwrap_or(()),
                            _ => {}
                        }
                        let mut found = vec![0; len];
                        let read = shared.read_at(&mut found, base + at as u64).unwrap();
                        assert!(found[..read] == bytes[..] && read == len, "thread {thread}, round {round}");
                    }
                    part
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let stats = fs.stats();
    assert!(stats.cached_pages <= 64 && stats.dirty_pages <= 32, "{stats:?}");
    let check = |fs: &FileSystem, when: &str| {
        let all = content(fs, "/shared");
        for (thread, (part, found)) in last.iter().zip(all.chunks(40 * BLOCK)).enumerate() {
            let differs = found.iter().zip(part).position(|(found, wanted)| found != wanted);
            assert_eq!(differs, None, "{when}: first difference in the part of thread {thread}");
        }
    };
    check(&fs, "with the cache");
    fs.close().unwrap();
    drop(fs);
    assert_clean(&device);
    check(&cached(&device, 0), "opened again");
}

/// `cargo test -p f2fs-files --features mutants --test page_cache` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let found = |test, mutant, sign| f2fs_sync::assert_found(test, &[mutant], sign);
    found("a_write_stays_in_memory_until_a_sync", "cached_written_back_twice", "assertion");
    found("a_write_stays_in_memory_until_a_sync", "cached_sync_leaves_dirty", "assertion");
    found("many_small_files_go_out_together", "cached_checkpoint_leaves_dirty", "panicked");
    found(
        "an_error_of_write_back_is_told_to_each_handle_once",
        "cached_error_told_to_nobody",
        "the first sync is told",
    );
    found("reads_and_writes_past_the_cache_agree_with_it", "cached_page_outlives_a_write", "assertion");
    found(
        "a_durable_write_that_takes_a_checkpoint_leaves_no_old_page",
        "cached_page_outlives_a_range",
        "while the checkpoint is written",
    );
    found("what_is_cut_off_is_never_written", "cached_cut_leaves_dirty", "Stats");
    found("a_cache_that_is_too_small_works_and_stays_within_its_memory", "cached_dropped_while_dirty", "panicked");
}
