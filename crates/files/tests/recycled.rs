//! Memory that held other data does not shine through: what is written into holes has zeros around it.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options};

#[test]
fn the_rest_of_a_block_in_a_hole_is_zero() {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let sevens = fs.create_file("/sevens", 0o644).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.set_len(8 << 20).unwrap();
    for (offset, len) in [(5_u64, 100_000), (1_000_003, 90_000), (2_097_100, 2_000_000), (8_300_000, 70_001)] {
        // Whatever memory is used next held sevens.
        sevens.write_at(&vec![7; 2 << 20], 0).unwrap();
        file.write_at(&vec![9; len], offset).unwrap();
        file.set_len(9 << 20).unwrap();
        let mut around = vec![1; len + 20_000];
        let start = offset.saturating_sub(10_000);
        let read = file.read_at(&mut around, start).unwrap();
        let before = (offset - start) as usize;
        assert!(around[..before].iter().all(|byte| *byte == 0), "in front of {offset}");
        assert!(around[before..before + len].iter().all(|byte| *byte == 9), "at {offset}");
        assert!(around[before + len..read].iter().all(|byte| *byte == 0), "behind {offset} + {len}");
    }
}
