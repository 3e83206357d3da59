//! Where files have data, as `next_data` tells it.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::single_range_in_vec_init)] // a list of ranges that happens to have one

use std::ops::Range;

use f2fs_files::{AllocateFlags, File, FileSystem, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

/// All ranges from an offset on.
fn ranges(file: &File, mut from: u64) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    while let Some(range) = file.next_data(from).unwrap() {
        assert!(range.start >= from && range.end > range.start && range.end <= file.size(), "{range:?} from {from}");
        from = range.end;
        all.push(range);
    }
    all
}

fn file_system() -> FileSystem {
    FileSystem::open(formatted(256, &FormatOptions::default()), Options::new()).unwrap()
}

#[test]
fn every_range_of_a_sparse_file_is_told_and_nothing_else() {
    let fs = file_system();
    let file = fs.create_file("/sparse", 0o644).unwrap();
    file.set_len(3 << 40).unwrap();
    assert_eq!(ranges(&file, 0), []);
    // In the inode, in direct nodes, below each kind of indirect node, and the last block.
    let pages = [0, 1, 7, 922, 923, 5000, 5001, 2_000_000, 400_000_000, (3 << 28) - 1];
    for page in pages {
        file.write_at(&[1; 4096], page * 4096).unwrap();
    }
    let told: Vec<u64> =
        ranges(&file, 0).iter().flat_map(|range| range.clone().step_by(4096)).map(|at| at / 4096).collect();
    assert_eq!(told, pages);
    assert_eq!(file.next_data(8192 + 5).unwrap(), Some(7 * 4096..8 * 4096));
    assert_eq!(file.next_data(4096 + 5).unwrap(), Some(4096 + 5..8192), "from the middle of a block");
    for beyond in [3 << 40, u64::MAX] {
        assert_eq!(file.next_data(beyond).unwrap(), None);
    }
    // The same from the device.
    drop(file);
    fs.checkpoint().unwrap();
    assert_eq!(ranges(&fs.open_file("/sparse").unwrap(), 5001 * 4096).len(), 4);
}

/// A range may begin in the middle of one node and end in another one.
#[test]
fn an_allocation_reserves_blocks_below_each_node_of_its_range() {
    let fs = file_system();
    let nodes = 3;
    for flags in [AllocateFlags::NONE, AllocateFlags::ZERO_RANGE] {
        let file = fs.create_file(format!("/{flags:?}"), 0o644).unwrap();
        file.allocate(100 * 4096, 2000 * 4096, flags).unwrap();
        assert_eq!(file.metadata().unwrap().blocks, nodes + 2000, "{flags:?}");
    }
}

#[test]
fn data_in_the_inode_reserved_blocks_and_an_odd_end() {
    let fs = file_system();
    let file = fs.create_file("/f", 0o644).unwrap();
    assert_eq!(ranges(&file, 0), []);
    file.write_at(b"inline", 10).unwrap();
    assert_eq!((ranges(&file, 0), ranges(&file, 12), ranges(&file, 16)), (vec![0..16], vec![12..16], vec![]));
    file.write_at(&[1; 10_001], 0).unwrap();
    assert_eq!(ranges(&file, 0), [0..10_001]);
    file.allocate(1 << 20, 1 << 20, AllocateFlags::NONE).unwrap();
    assert_eq!(ranges(&file, 0), [0..12_288], "what is reserved reads as zeros");
    let dense = fs.create_file("/dense", 0o644).unwrap();
    dense.write_at(&vec![1; 70 << 20], 0).unwrap();
    let told = ranges(&dense, 0);
    assert!(told.len() >= 2 && told.windows(2).all(|pair| pair[0].end == pair[1].start), "{told:?}");
    assert_eq!((told[0].start, told.last().unwrap().end), (0, 70 << 20));
}
