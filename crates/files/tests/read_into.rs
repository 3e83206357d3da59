//! Reads into memory that the device transfers to give what other reads give.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{AlignedBuf, BlockDevice};
use f2fs_device_test::{Random, bytes};
use f2fs_files::{AllocateFlags, FileSystem, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

/// A file inline, and one with holes, reserved blocks, pieces written in no order and an end within a block.
#[test]
fn the_same_bytes_and_lengths() {
    let device = formatted(128, &FormatOptions::default());
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let inline = fs.create_file("/inline", 0o644).unwrap();
    inline.write_at(&bytes(900, 1), 0).unwrap();
    let large = fs.create_file("/large", 0o644).unwrap();
    large.write_at(&bytes(3 << 20, 2), 0).unwrap();
    for block in [7, 300, 5, 6, 8, 100] {
        large.write_at(&bytes(4096, block), block * 4096).unwrap();
    }
    large.allocate(4 << 20, 40_000, AllocateFlags::KEEP_SIZE).unwrap();
    large.write_at(&bytes(10_000, 3), (5 << 20) + 10).unwrap();
    let mut random = Random::new(4);
    for file in [&inline, &large] {
        let size = file.metadata().unwrap().size as usize;
        for turn in 0..2000 {
            let offset = match turn % 4 {
                0 => random.below(size + 5000),
                1 => size / 4096 * 4096,
                _ => random.below(size / 4096 + 2) * 4096,
            } as u64;
            let blocks = *random.one_of(&[1, 1, 1, 2, 3, 16, 255, 256, 257, 600]);
            let mut into = AlignedBuf::new(blocks);
            into.as_bytes_mut().fill(0xee);
            let mut wanted = vec![0xee; blocks * 4096];
            let read = file.read_at(&mut wanted, offset).unwrap();
            assert_eq!(file.read_into(&mut into, offset).unwrap(), read, "{offset} {blocks}");
            assert!(into.as_bytes()[..read] == wanted[..read], "{offset} {blocks}");
            assert_eq!(into.blocks(), blocks);
        }
        assert_eq!(file.read_into(&mut AlignedBuf::new(0), 0).unwrap(), 0);
    }
}

/// What stands on the device behind the end of a file is not handed out: another system may have left something there.
#[test]
fn nothing_from_behind_the_end() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap().write_at(&bytes(4096 + 3999, 1), 0).unwrap();
    fs.close().unwrap();
    drop(fs);
    let whole = bytes(4096 + 3999, 1);
    let last = (0..device.info().blocks).filter(|block| {
        let found = device.read(*block, 1).unwrap();
        found.block(0)[..3999] == whole[4096..]
    });
    for block in last.collect::<Vec<_>>() {
        let mut found = *device.read(block, 1).unwrap().block(0);
        found[3999..].fill(0xdd);
        device.write_slice(block, &found).unwrap();
    }
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let file = fs.open_file("/file").unwrap();
    let mut into = AlignedBuf::new(2);
    assert_eq!(file.read_into(&mut into, 0).unwrap(), whole.len());
    assert!(into.as_bytes()[..whole.len()] == whole);
    assert!(into.as_bytes()[whole.len()..].iter().all(|byte| *byte == 0));
}
