//! Segments that a checkpoint frees are discarded, unless the volume was opened without that.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_device_test::RecordingDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

#[test]
fn freed_segments_are_discarded_if_that_is_asked_for() {
    for discard in [true, false] {
        let device = MemoryDevice::new((64 << 20) >> 12);
        format(&device, &FormatOptions::default()).unwrap();
        let device = Arc::new(RecordingDevice::new(device));
        let options = Options::new().volume(VolumeOptions::new().discard(discard));
        let fs = FileSystem::open(device.clone(), options).unwrap();
        fs.create_file("/large", 0o644).unwrap().write_at(&vec![1; 12 << 20], 0).unwrap();
        fs.checkpoint().unwrap();
        let before = device.counts().discards;
        fs.remove_file("/large").unwrap();
        fs.checkpoint().unwrap();
        fs.checkpoint().unwrap();
        assert_eq!(device.counts().discards > before, discard, "{before}, then {}", device.counts().discards);
    }
}
