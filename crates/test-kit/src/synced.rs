//! Volumes with files that were synced after a checkpoint.

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_format::feature::Features;
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{FsyncMode, VolumeOptions};

use crate::volumes::formatted;

pub fn content(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 4096 * 7 + at % 251) as u8 ^ seed).collect()
}

pub fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    let file = fs.open_file(path).unwrap();
    let mut bytes = vec![0; file.size() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

pub fn start(features: Features, mode: FsyncMode) -> (Arc<MemoryDevice>, FileSystem) {
    // fsck.f2fs 1.15 takes the end of the main area for lower than it is, by the metadata's segments, when it follows a
    // chain: the volume is larger than all data that is written to it.
    let device = formatted(128, &FormatOptions::default().with_features(features));
    let options = Options::new().volume(VolumeOptions::new().fsync(mode));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    // The first sync after an opening would be one.
    fs.checkpoint().unwrap();
    (device, fs)
}
