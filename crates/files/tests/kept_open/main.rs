//! Files that processors keep open for all who open them: they are what their names mean, and end when they should.
//!
//! `F2FS_STRESS=20` does 20 times as much where threads meet.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod damage;
mod ends;
mod names;

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{File, FileSystem, FsError, Options};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

fn empty(options: Options) -> (Arc<MemoryDevice>, FileSystem) {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), options).unwrap();
    (device, fs)
}

/// Inodes, nodes and blocks in use.
fn used(fs: &FileSystem) -> (u64, u64, u64) {
    let stat = fs.statfs();
    (stat.valid_inodes, stat.valid_nodes, stat.valid_blocks)
}

/// Ends a volume on which no more is left than there was at first.
fn end(device: &MemoryDevice, fs: &FileSystem, nothing: (u64, u64, u64)) {
    assert_eq!(used(fs), nothing);
    assert!(fs.volume().orphans().is_empty());
    fs.close().unwrap();
    assert_clean(device);
}

fn content(file: &File) -> String {
    let mut bytes = vec![0; file.size() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    String::from_utf8(bytes).unwrap()
}

fn make(fs: &FileSystem, path: &str, bytes: &str) {
    fs.create_file(path, 0o644).unwrap().write_at(bytes.as_bytes(), 0).unwrap();
}

/// Opens a file so often that this thread's processor keeps it open.
fn opened(fs: &FileSystem, path: &str) -> Vec<File> {
    (0..4).map(|_| fs.open_file(path).unwrap()).collect()
}

/// Whether all who open a name get the file with this content.
fn means(fs: &FileSystem, path: &str, bytes: &str) -> bool {
    opened(fs, path).iter().all(|file| content(file) == bytes)
}

fn gone(fs: &FileSystem, path: &str) -> bool {
    matches!(fs.open_file(path), Err(FsError::NotFound))
}
