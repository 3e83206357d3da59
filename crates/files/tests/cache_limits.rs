//! The cache of nodes comes back to its limit after it had to grow beyond it.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::FormatOptions;

/// More than ten times the smallest cache holds: 256 shards with four nodes each.
const FILES: usize = 20_000;

fn path(number: usize) -> String {
    format!("/{}/{number}", number % 16)
}

fn volume() -> Arc<MemoryDevice> {
    let device = formatted(256, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for directory in 0..16 {
        fs.create_dir(format!("/{directory}"), 0o755).unwrap();
    }
    for number in 0..FILES {
        fs.create_file(path(number), 0o644).unwrap();
    }
    fs.close().unwrap();
    device
}

fn open(device: &Arc<MemoryDevice>) -> FileSystem {
    let small = VolumeOptions::new().node_cache(NonZeroUsize::MIN);
    FileSystem::open(device.clone(), Options::new().volume(small).inode_cache(NonZeroUsize::MIN)).unwrap()
}

/// Nodes that are dirty cannot go, so the cache grows. When a checkpoint has written them, it does not stay as large.
#[test]
fn the_node_cache_shrinks_after_a_checkpoint() {
    let fs = open(&volume());
    let look =
        |range: std::ops::Range<usize>| range.for_each(|number| assert_eq!(fs.metadata(path(number)).unwrap().size, 0));
    look(0..FILES / 2);
    let small = fs.stats().cached_nodes;
    assert!(small < 4000, "{small} nodes");
    for number in 0..FILES / 2 {
        fs.set_permissions(path(number), 0o600).unwrap();
    }
    let large = fs.stats().cached_nodes;
    assert!(large > 4 * small, "{large} nodes are no more than {small}: the test is too small");
    fs.checkpoint().unwrap();
    look(FILES / 2..FILES);
    let after = fs.stats().cached_nodes;
    assert!(after < 2 * small, "{after} nodes, {small} before any were dirty, {large} when many were");
}
