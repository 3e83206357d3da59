//! The data of files where something is in the way: a volume that is nearly full, a device that fails, another thread
//! that changes the file meanwhile, blocks that were moved, and the greatest size.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod cached;
mod copies;
mod due;
mod durable;
mod edges;
mod long;
mod moved;
mod names;
mod nearly_full;
mod reserved;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_files::{File, FileSystem, Options};

const BLOCK: usize = 4096;
/// Blocks that lie so far from each other have nodes of their own.
const STRIDE: u64 = 5 << 20;
const LIMIT: Duration = Duration::from_secs(120);

fn open(device: &Arc<MemoryDevice>, options: Options) -> FileSystem {
    FileSystem::open(device.clone(), options).unwrap()
}

/// All bytes of a file.
fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0xee; file.size() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}
