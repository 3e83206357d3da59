//! Copies of a range to another file, or to another place of the same one.

use std::sync::Arc;

use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule, HeldDevice, bytes};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};
use f2fs_volume::format::FormatOptions;

use crate::nearly_full::NearlyFull;
use crate::{BLOCK, LIMIT, content, open};

const MIB: usize = 1 << 20;

/// Data and holes of any length, over a file that had something everywhere.
#[test]
fn a_copy_has_the_data_and_the_holes() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let from = fs.create_file("/from", 0o644).unwrap();
    let mut source = vec![0; 4 * MIB + 5000];
    // More than a piece, a part of a block, and a hole at the end.
    for (at, len) in [(10 * BLOCK, 5 * MIB / 2), (3 * MIB + 100, 50)] {
        let data = bytes(len, at as u64);
        from.write_at(&data, at as u64).unwrap();
        source[at..at + len].copy_from_slice(&data);
    }
    from.set_len(source.len() as u64).unwrap();
    for (number, (offset, to_offset, len, old)) in [
        (0, 0, u64::MAX, 0),
        (0, 0, u64::MAX, 6 * MIB),
        (100, 3000, 4 * MIB as u64, 6 * MIB),
        (5 * BLOCK as u64 + 1, BLOCK as u64, MIB as u64 + 1, 3 * BLOCK),
        (3 * MIB as u64, 20_000, 2000, 100),
        (source.len() as u64 - 10, 0, 100, 0),
        (source.len() as u64, 0, 100, 100),
        (0, 0, 0, 100),
    ]
    .into_iter()
    .enumerate()
    {
        let to = fs.create_file(format!("/to-{number}"), 0o644).unwrap();
        to.write_at(&vec![9; old], 0).unwrap();
        let copied = from.copy_range(offset, &to, to_offset, len).unwrap();
        let part = &source[offset as usize..];
        let part = &part[..part.len().min(len as usize)];
        assert_eq!(copied, part.len() as u64, "{number}");
        let mut wanted = vec![9; old];
        if !part.is_empty() {
            wanted.resize(wanted.len().max(to_offset as usize + part.len()), 0);
            wanted[to_offset as usize..][..part.len()].copy_from_slice(part);
        }
        assert!(content(&to) == wanted, "{number}");
        // With no more blocks than the source has, where blocks came upon blocks.
        if (offset, to_offset, len) == (0, 0, u64::MAX) && old == 0 {
            assert_eq!(to.metadata().unwrap().blocks, from.metadata().unwrap().blocks);
        }
        drop(to);
        fs.remove_file(format!("/to-{number}")).unwrap();
    }
    drop(from);
    fs.close().unwrap();
    assert_clean(&device);
}

/// Within one file, ranges that touch are copied, and those that share a byte are refused, before anything is done.
#[test]
fn ranges_of_one_file_must_not_overlap() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    let other = fs.create_file("/other", 0o644).unwrap();
    let data = bytes(30_000, 1);
    let size = data.len() as u64;
    for (offset, to_offset, len, fits) in [
        (0, 10_000, 10_000, true),
        (10_000, 0, 10_000, true),
        (0, size, u64::MAX, true),
        (0, 9999, 10_000, false),
        (9999, 0, 10_000, false),
        (5, 5, 1, false),
        (20_000, 29_999, u64::MAX, false),
    ] {
        file.set_len(0).unwrap();
        file.write_at(&data, 0).unwrap();
        let copied = file.copy_range(offset, &file, to_offset, len);
        let len = len.min(size - offset) as usize;
        let mut wanted = data.clone();
        if fits {
            assert_eq!(copied.unwrap(), len as u64);
            wanted.resize(wanted.len().max(to_offset as usize + len), 0);
            wanted[to_offset as usize..][..len].copy_from_slice(&data[offset as usize..][..len]);
        } else {
            assert!(matches!(copied, Err(FsError::Invalid(_))), "{offset}, {to_offset}, {len}");
        }
        assert!(content(&file) == wanted, "{offset}, {to_offset}, {len}");
        // Of two files anything goes.
        file.set_len(size).unwrap();
        assert_eq!(file.copy_range(offset, &other, to_offset, len as u64).unwrap(), len as u64);
    }
}

/// What fits below the greatest size is copied; there and behind it nothing fits.
#[test]
fn a_copy_ends_at_the_greatest_size() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let [from, to] = ["/from", "/to"].map(|path| fs.create_file(path, 0o644).unwrap());
    let Err(FsError::FileTooLarge { limit, .. }) = to.set_len(u64::MAX) else { panic!("no limit") };
    let data = bytes(3 * BLOCK, 1);
    from.write_at(&data, 0).unwrap();
    for behind in [limit, limit + 1, u64::MAX] {
        let result = from.copy_range(0, &to, behind, 100);
        assert!(matches!(result, Err(FsError::FileTooLarge { .. })), "{behind}: {result:?}");
        assert_eq!(from.copy_range(0, &to, behind, 0).unwrap(), 0, "of nothing");
    }
    assert_eq!(to.size(), 0);
    assert_eq!(from.copy_range(0, &to, limit - 5000, u64::MAX).unwrap(), 5000);
    let mut found = vec![0; 6000];
    assert_eq!(to.read_at(&mut found, limit - 5000).unwrap(), 5000);
    assert!(found[..5000] == data[..5000] && to.size() == limit);
}

/// Where space runs out on the way, the caller is told how far it went.
#[test]
fn a_copy_goes_as_far_as_there_is_space() {
    let full = NearlyFull::new(Options::new());
    // A hole, which takes none, and data: the source stands on blocks that are there already.
    let from = full.fs.open_file("/filler").unwrap();
    let to = &full.file;
    assert!(from.copy_range(0, to, BLOCK as u64, 2 * MIB as u64).unwrap_err().is_no_space());
    assert_eq!(content(to), vec![1; BLOCK]);
    // All of a piece and no more, or a part of the next one.
    for left in [100, 256, 300, 550] {
        full.leave(left);
        let copied = from.copy_range(0, to, BLOCK as u64, 2 * MIB as u64).unwrap();
        assert_eq!(copied, (left * BLOCK as u64).min(2 * MIB as u64), "{left}");
        assert_eq!(to.size(), BLOCK as u64 + copied);
        let (found, mut wanted) = (content(to), vec![0; copied as usize]);
        from.read_at(&mut wanted, 0).unwrap();
        assert!(found[..BLOCK] == [1; BLOCK] && found[BLOCK..] == wanted, "{left}");
        to.set_len(BLOCK as u64).unwrap();
    }
}

/// An error of the device is told, whatever was copied before it.
#[test]
fn an_error_on_the_way_is_told() {
    for operation in [Operation::Read, Operation::Write] {
        let device = Arc::new(FaultDevice::new(formatted(64, &FormatOptions::default())));
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let [from, to] = ["/from", "/to"].map(|path| fs.create_file(path, 0o644).unwrap());
        from.write_at(&bytes(8 * MIB, 1), 0).unwrap();
        // A piece is two requests at most.
        device.arm(FaultRule::on([operation]).after(4));
        let error = from.copy_range(0, &to, 0, u64::MAX).unwrap_err();
        assert!(device.faults() == 1 && error.device().is_some(), "{error}");
        assert!(to.size() >= MIB as u64, "{operation:?}: {}", to.size());
    }
}

/// The source is cut while it is copied: what is left of it is copied, and that is no error.
#[test]
fn a_source_that_is_cut_meanwhile_ends_there() {
    within(LIMIT, || {
        for left in [100, MIB as u64, MIB as u64 + 5000] {
            let device = Arc::new(HeldDevice::new(formatted(64, &FormatOptions::default())));
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            let [from, to] = ["/from", "/to"].map(|path| Arc::new(fs.create_file(path, 0o644).unwrap()));
            let data = bytes(3 * MIB, 1);
            from.write_at(&data, 0).unwrap();
            device.hold_next(Operation::Write);
            let copy = {
                let (from, to) = (from.clone(), to.clone());
                std::thread::spawn(move || from.copy_range(0, &to, 0, u64::MAX))
            };
            device.wait_until_held();
            // The first piece was read.
            from.set_len(left).unwrap();
            device.release();
            let copied = copy.join().unwrap().unwrap();
            assert_eq!(copied, left.max(MIB as u64));
            assert!(content(&to) == data[..copied as usize]);
        }
    });
}
