//! The page cache beside writers, errors, and long cuts.

use std::num::NonZeroUsize;
use std::sync::Arc;

use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule, HeldDevice, RecordingDevice, bytes};
use f2fs_files::{AllocateFlags, FileSystem, FsError, Options};
use f2fs_test_kit::volumes::{formatted, within};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::FormatOptions;

use crate::{BLOCK, LIMIT, STRIDE, content, open};

fn small(cache: u64) -> Options {
    let volume = VolumeOptions::new().node_cache(NonZeroUsize::MIN);
    Options::new().volume(volume).inode_cache(NonZeroUsize::MIN).page_cache(cache)
}

/// Blocks that somebody writes are not read ahead: the old content would be kept, and found instead of the new one.
#[test]
fn who_reads_ahead_leaves_alone_what_is_being_written() {
    within(LIMIT, || {
        let memory = formatted(64, &FormatOptions::default());
        let fs = open(&memory, Options::new());
        fs.create_file("/file", 0o644).unwrap().write_at(&[1; 20 * BLOCK], 0).unwrap();
        fs.close().unwrap();
        drop(fs);
        let device = Arc::new(HeldDevice::new(memory));
        let fs = FileSystem::open(device.clone(), Options::new().page_cache(8 << 20)).unwrap();
        let file = Arc::new(fs.open_file("/file").unwrap());
        device.hold_next(Operation::Write);
        let writer = {
            let file = file.clone();
            std::thread::spawn(move || file.write_durable(&[2; 2 * BLOCK], 5 * BLOCK as u64))
        };
        device.wait_until_held();
        let mut found = [0; 100];
        file.read_at(&mut found, 0).unwrap();
        let kept = fs.stats().cached_pages;
        device.release();
        writer.join().unwrap().unwrap();
        assert_eq!((kept, found), (1, [1; 100]));
        let mut wanted = vec![1; 20 * BLOCK];
        wanted[5 * BLOCK..7 * BLOCK].fill(2);
        assert!(content(&file) == wanted);
        assert_eq!(fs.stats().cached_pages, 20);
    });
}

/// Read ahead stops at the end of the file, and at a page that is there.
#[test]
fn no_more_is_read_than_there_is() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    fs.create_file("/file", 0o644).unwrap().write_at(&[1; 40 * BLOCK], 0).unwrap();
    fs.close().unwrap();
    drop(fs);
    let fs = open(&device, Options::new().page_cache(8 << 20));
    let file = fs.open_file("/file").unwrap();
    let mut found = [0; 2 * BLOCK];
    let mut read = |block: usize| {
        file.read_at(&mut found, (block * BLOCK) as u64).unwrap();
        fs.stats().cached_pages
    };
    assert_eq!(read(9), 2, "a place by itself");
    assert_eq!(read(0), 11, "up to those");
    // All of what was read ahead is read: it goes on.
    assert_eq!(read(8), 11);
    assert_eq!(read(38), 13);
    let mut rest = vec![0; 27 * BLOCK];
    file.read_at(&mut rest, 11 * BLOCK as u64).unwrap();
    assert!(rest.iter().all(|byte| *byte == 1) && fs.stats().cached_pages == 40);
}

/// A write that finds a node that cannot be read takes no room, and leaves no page.
#[test]
fn a_write_that_fails_gives_its_room_back() {
    let memory = formatted(64, &FormatOptions::default());
    let fs = open(&memory, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[1; BLOCK], 0).unwrap();
    file.write_at(&[1; BLOCK], 1000 * BLOCK as u64).unwrap();
    drop(file);
    fs.close().unwrap();
    drop(fs);
    let device = Arc::new(FaultDevice::new(memory));
    let fs = FileSystem::open(device.clone(), small(8 << 20)).unwrap();
    let file = fs.open_file("/file").unwrap();
    let before = (fs.statfs().valid_blocks, file.metadata().unwrap().blocks);
    // From holes below the inode to holes below the node.
    let (data, from) = (vec![2; 200 * BLOCK + 100], 800 * BLOCK as u64);
    device.arm(FaultRule::on([Operation::Read]));
    assert!(file.write_at(&data, from).unwrap_err().device().is_some());
    assert_eq!((fs.statfs().valid_blocks, file.metadata().unwrap().blocks), before);
    assert_eq!(fs.stats().dirty_pages, 0);
    // So does one whose last block cannot be read, of which a part stays.
    device.arm(FaultRule::on([Operation::Read]).after(1));
    assert!(file.write_at(&data, from).unwrap_err().device().is_some());
    assert_eq!((fs.statfs().valid_blocks, file.metadata().unwrap().blocks), before);
    assert_eq!((fs.stats().dirty_pages, device.faults()), (0, 2));
    assert_eq!(file.write_at(&data, from).unwrap(), data.len());
    assert_eq!(fs.stats().dirty_pages, 201);
    assert_eq!(fs.statfs().valid_blocks, before.0 + 200, "one block was there");
    file.sync_all().unwrap();
    assert_eq!(file.metadata().unwrap().blocks, before.1 + 200);
}

/// A file of more nodes than one operation empties is cut, and the device fails on the way: dirty pages that are behind
/// the size then are gone, and do not come back when the file grows.
#[test]
fn a_long_cut_that_fails_leaves_no_pages_behind_the_end() {
    const SPREAD: u64 = 45;
    let base = formatted(64, &FormatOptions::default());
    let fs = open(&base, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    for number in 0..SPREAD {
        file.write_at(&[7; BLOCK], number * STRIDE).unwrap();
    }
    drop(file);
    fs.close().unwrap();
    drop(fs);
    let mut failed = 0;
    for n in [1, 5, 20, 34, 36] {
        let device = Arc::new(FaultDevice::new(Arc::new(base.snapshot())));
        let fs = FileSystem::open(device.clone(), small(1 << 20)).unwrap();
        let file = fs.open_file("/file").unwrap();
        let old = file.size();
        // Over a block, and over holes.
        let dirty = [(SPREAD - 1) * STRIDE, (SPREAD - 1) * STRIDE - BLOCK as u64, STRIDE - BLOCK as u64];
        for at in dirty {
            file.write_at(&[9; BLOCK], at).unwrap();
        }
        device.arm(FaultRule::on([Operation::Read]).after(n));
        let result = file.set_len(100);
        device.disarm();
        failed += u64::from(result.is_err());
        let size = file.size();
        assert!(result.is_err() || size == 100);
        file.set_len(old).unwrap();
        for at in dirty.into_iter().chain((0..SPREAD).map(|number| number * STRIDE)) {
            let mut found = [1; BLOCK];
            file.read_at(&mut found, at).unwrap();
            let left = size.saturating_sub(at).min(BLOCK as u64) as usize;
            let byte = if dirty.contains(&at) { 9 } else { 7 };
            assert!(found[..left].iter().all(|found| *found == byte), "read {n}: {at} below {size}");
            assert!(found[left..].iter().all(|found| *found == 0), "read {n}: {at} behind {size}");
        }
        file.set_len(0).unwrap();
        drop(file);
        fs.remove_file("/file").unwrap();
        fs.checkpoint().unwrap();
        assert_eq!(fs.stats().dirty_pages, 0, "read {n}");
    }
    assert!(failed >= 3, "{failed}");
}

/// What goes past the cache takes along the dirty pages of its own blocks, and no others, which may be somebody else's.
#[test]
fn dirty_pages_beside_a_range_stay_as_they_are() {
    type Change = fn(&f2fs_files::File);
    const AT: u64 = 4 * BLOCK as u64;
    let changes: [(&str, Change, u64); 7] = [
        ("a hole", |file| file.punch_hole(AT, AT).unwrap(), 8),
        ("zeros", |file| file.zero_range(AT, AT).unwrap(), 8),
        ("an allocation", |file| file.allocate(AT, AT, AllocateFlags::NONE).unwrap(), 8),
        ("a hole of parts", |file| file.punch_hole(AT + 10, AT - 20).unwrap(), 8),
        ("zeros of parts", |file| file.zero_range(AT + 10, AT - 20).unwrap(), 8),
        ("a cut", |file| file.set_len(AT).unwrap(), 4),
        ("a cut within a block", |file| file.set_len(AT + 10).unwrap(), 4),
    ];
    for (what, change, left) in changes {
        let device = formatted(64, &FormatOptions::default());
        let fs = open(&device, Options::new().page_cache(8 << 20));
        let file = fs.create_file("/file", 0o644).unwrap();
        file.write_at(&[1; 12 * BLOCK], 0).unwrap();
        let before = fs.stats();
        change(&file);
        let after = fs.stats();
        assert_eq!(after.dirty_pages, left, "{what}");
        if what == "a cut" {
            assert_eq!(after.user_blocks_written, before.user_blocks_written, "nothing of what was cut is written");
        }
        let found = content(&file);
        let zero = match what {
            "a hole" | "zeros" => 4 * BLOCK..8 * BLOCK,
            "a hole of parts" | "zeros of parts" => 4 * BLOCK + 10..8 * BLOCK - 10,
            _ => 0..0,
        };
        assert!(found.iter().enumerate().all(|(at, byte)| *byte == u8::from(!zero.contains(&at))), "{what}");
    }
}

/// Runs that are longer than a request are kept as what they are, whatever lies behind them on the device.
#[test]
fn long_runs_are_kept_block_by_block() {
    const PART: usize = 150;
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let [file, other] = ["/file", "/other"].map(|path| fs.create_file(path, 0o644).unwrap());
    let data = bytes(3 * PART * BLOCK, 1);
    for (number, part) in data.chunks(PART * BLOCK).enumerate() {
        file.write_at(part, (number * PART * BLOCK) as u64).unwrap();
        other.append(&[9; PART * BLOCK]).unwrap();
    }
    drop((file, other));
    fs.close().unwrap();
    drop(fs);
    for len in [PART * BLOCK, 3 * PART * BLOCK, 70 * BLOCK, BLOCK] {
        let fs = open(&Arc::new(device.snapshot()), Options::new().page_cache(8 << 20));
        let file = fs.open_file("/file").unwrap();
        // From the device, and from the cache.
        for _ in 0..2 {
            for (number, wanted) in data.chunks(len).enumerate() {
                let mut found = vec![0; wanted.len()];
                file.read_at(&mut found, (number * len) as u64).unwrap();
                assert!(found == wanted, "{len} bytes, part {number}");
            }
        }
        assert_eq!(fs.stats().cached_pages, 3 * PART as u64);
    }
}

/// Appends begin and end anywhere in a block; one of nothing changes nothing.
#[test]
fn appends_of_any_length() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new().page_cache(8 << 20));
    let file = fs.create_file("/file", 0o644).unwrap();
    let all = bytes(60 * BLOCK, 1);
    let mut end = 0;
    for len in [0, 5000, 3191, 0, 2, 4094, 1, 4095, 4096, 4097, 1, 8191, 2, 0, 20_000, 1] {
        let before = file.metadata().unwrap();
        assert_eq!(file.append(&all[end..end + len]).unwrap(), end as u64);
        end += len;
        assert_eq!(file.size(), end as u64);
        if len == 0 {
            assert_eq!(file.metadata().unwrap(), before);
        }
    }
    assert!(content(&file) == all[..end]);
    file.sync_all().unwrap();
    assert!(content(&open(&Arc::new(device.snapshot()), Options::new()).open_file("/file").unwrap()) == all[..end]);
}

/// A file that is read from its start on comes in few requests, which get larger: no request for each piece.
#[test]
fn a_sequence_costs_few_requests() {
    const BLOCKS: usize = 1000;
    let memory = formatted(64, &FormatOptions::default());
    let fs = open(&memory, Options::new());
    fs.create_file("/file", 0o644).unwrap().write_at(&bytes(BLOCKS * BLOCK, 1), 0).unwrap();
    fs.close().unwrap();
    let device = Arc::new(RecordingDevice::new(memory.snapshot()));
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(8 << 20)).unwrap();
    let file = fs.open_file("/file").unwrap();
    let before = device.counts();
    let mut piece = [0; 2 * BLOCK];
    for at in (0..BLOCKS * BLOCK).step_by(piece.len()) {
        file.read_at(&mut piece, at as u64).unwrap();
    }
    let counts = device.counts();
    let (reads, blocks) = (counts.reads - before.reads, counts.blocks_read - before.blocks_read);
    // 512 KiB at most in one, and a node or two.
    assert!(reads < 25 && blocks < BLOCKS as u64 + 5, "{reads} reads of {blocks} blocks");
    // Here and there nothing is read ahead.
    let mut fetched = 0;
    let other = FileSystem::open(Arc::new(memory.snapshot()), Options::new().page_cache(8 << 20)).unwrap();
    let file = other.open_file("/file").unwrap();
    for at in [900, 700, 500, 300, 100] {
        file.read_at(&mut piece, at * BLOCK as u64).unwrap();
        fetched += 2;
        assert_eq!(other.stats().cached_pages, fetched);
    }
}

/// Nothing is read ahead of the greatest size, where there can be no block.
#[test]
fn the_last_blocks_of_the_greatest_file_are_read() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new().page_cache(8 << 20));
    let file = fs.create_file("/file", 0o644).unwrap();
    let Err(FsError::FileTooLarge { limit, .. }) = file.set_len(u64::MAX) else { panic!("no limit") };
    let data = bytes(3 * BLOCK, 1);
    file.write_at(&data, limit - data.len() as u64).unwrap();
    file.sync_all().unwrap();
    drop((file, fs));
    let fs = open(&Arc::new(device.snapshot()), Options::new().page_cache(8 << 20));
    let file = fs.open_file("/file").unwrap();
    for (block, wanted) in data.chunks(BLOCK).enumerate() {
        let mut found = [0; BLOCK];
        assert_eq!(file.read_at(&mut found, limit - ((3 - block) * BLOCK) as u64).unwrap(), BLOCK);
        assert!(found == wanted, "{block}");
    }
}

/// What is read ahead and cannot be read is no error of who asked for something else.
#[test]
fn an_error_ahead_is_told_to_those_who_ask_for_it() {
    let memory = formatted(64, &FormatOptions::default());
    let fs = open(&memory, Options::new());
    fs.create_file("/file", 0o644).unwrap().write_at(&[7; 20 * BLOCK], 0).unwrap();
    fs.close().unwrap();
    drop(fs);
    let device = Arc::new(FaultDevice::new(memory.clone()));
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(8 << 20)).unwrap();
    let file = fs.open_file("/file").unwrap();
    let mut found = [0; 100];
    // The request that reads ahead.
    device.arm(FaultRule::on([Operation::Read]));
    assert_eq!(file.read_at(&mut found, 0).unwrap(), 100);
    assert!(device.faults() == 1 && found == [7; 100]);
    device.arm(FaultRule::on([Operation::Read]).for_good());
    assert!(file.read_at(&mut found, BLOCK as u64).unwrap_err().device().is_some());
    assert_eq!(file.read_at(&mut found, 0).unwrap(), 100, "from the cache");
    device.disarm();
    assert!(content(&file) == [7; 20 * BLOCK]);
}
