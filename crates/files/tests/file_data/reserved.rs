//! Allocations that end with an error on the way.

use std::num::NonZeroUsize;
use std::sync::Arc;

use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_files::{AllocateFlags, FileSystem, Options};
use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::FormatOptions;

use crate::{BLOCK, content, open};

/// Blocks of the file: one in each node, which the allocation has to read.
const SPREAD: u64 = 8;
const STRIDE: u64 = ADDRS_PER_BLOCK as u64 * BLOCK as u64;

/// What was reserved until a node could not be read is given back: the file, and the room for others, are as before.
#[test]
fn what_was_reserved_before_an_error_is_given_back() {
    let small =
        Options::new().volume(VolumeOptions::new().node_cache(NonZeroUsize::MIN)).inode_cache(NonZeroUsize::MIN);
    let base = formatted(160, &FormatOptions::default());
    let fs = open(&base, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    for number in 0..SPREAD {
        file.write_at(&[7; BLOCK], number * STRIDE + 3 * BLOCK as u64).unwrap();
    }
    let end = file.size();
    // And some behind the end, which the file had before.
    file.allocate(end + 10 * BLOCK as u64, 5 * BLOCK as u64, AllocateFlags::KEEP_SIZE).unwrap();
    drop(file);
    fs.close().unwrap();
    drop(fs);
    let wanted = {
        let fs = open(&Arc::new(base.snapshot()), Options::new());
        content(&fs.open_file("/file").unwrap())
    };
    let mut failed = 0;
    for flags in [AllocateFlags::NONE, AllocateFlags::KEEP_SIZE] {
        // Within the file, from the middle of a block on, and over its end.
        for (from, to) in [(0, end - 5 * BLOCK as u64), (5000, end - 1), (0, end + 3 * BLOCK as u64)] {
            for n in 0..7 {
                let what = format!("{flags:?}, {from} .. {to}, read {n}");
                let memory = Arc::new(base.snapshot());
                let faulty = Arc::new(FaultDevice::new(memory.clone()));
                let fs = FileSystem::open(faulty.clone(), small.clone()).unwrap();
                let file = fs.open_file("/file").unwrap();
                let before = (file.metadata().unwrap().blocks, fs.statfs().valid_blocks, file.size());
                faulty.arm(FaultRule::on([Operation::Read]).after(n));
                let result = file.allocate(from, to - from, flags);
                faulty.disarm();
                if result.is_ok() {
                    assert_eq!(faulty.faults(), 0, "{what}");
                    continue;
                }
                failed += 1;
                let after = (file.metadata().unwrap().blocks, fs.statfs().valid_blocks, file.size());
                assert_eq!(after, before, "{what}");
                assert!(content(&file) == wanted, "{what}");
                // It is found again, where it fits.
                file.allocate(from, to - from, flags).unwrap();
                file.set_len(end).unwrap();
                assert!(content(&file) == wanted, "{what}");
                drop(file);
                fs.close().unwrap();
                drop(fs);
                if n % 3 == 0 {
                    assert_clean(&memory);
                }
            }
        }
    }
    assert!(failed > 20, "{failed}");
}
