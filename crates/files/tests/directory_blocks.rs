//! Directory blocks that come and go between checkpoints.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options, RenameMode};
use f2fs_volume::format::{FormatOptions, format};

const NAMES: usize = 600;

/// With the last of its names a block is freed. It does not stay in memory until the next checkpoint.
#[test]
fn blocks_that_are_freed_do_not_stay_in_memory() {
    let device = Arc::new(MemoryDevice::new(64 << 8));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let name = |directory: usize, n: usize| format!("/{directory}/a-name-of-some-length-{n}");
    for directory in 0..2 {
        fs.create_dir(format!("/{directory}"), 0o755).unwrap();
    }
    (0..NAMES).for_each(|n| drop(fs.create_file(name(0, n), 0o644).unwrap()));
    let there_and_back = || {
        for (from, to) in [(0, 1), (1, 0)] {
            (0..NAMES).for_each(|n| fs.rename(name(from, n), name(to, n), RenameMode::Replace).unwrap());
        }
    };
    there_and_back();
    let moved = allocation_counter::measure(|| (0..30).for_each(|_| there_and_back()));
    assert!(moved.bytes_current < 256 << 10, "{} bytes stay in memory", moved.bytes_current);
    fs.remove_dir("/1").unwrap();
    fs.close().unwrap();
    f2fs_test_kit::volumes::assert_clean(&device);
}
