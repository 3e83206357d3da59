//! The counts that an embedder exports (`cargo test -p f2fs --features serde --test counts`).
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs::device::MemoryDevice;
use f2fs::volume::format::format;
use f2fs::{FileSystem, Options};

#[test]
fn counts_are_exported_under_their_names() {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.create_file("/first", 0o644).unwrap().write_at(&[7; 40_960], 0).unwrap();
    fs.checkpoint().unwrap();
    let stats = fs.stats();
    let json = serde_json::to_value(stats).unwrap();
    let fields = json.as_object().unwrap();
    assert_eq!(fields.len(), stats.named().count());
    for (name, _, value) in stats.named() {
        assert_eq!(fields[name], value, "{name}");
    }
    assert!(stats.user_blocks_written >= 10 && stats.blocks_written() > stats.user_blocks_written);
    let (user, valid) = (fs.statfs().user_blocks, fs.statfs().valid_blocks);
    assert_eq!((stats.user_blocks, stats.valid_blocks, stats.stopped, stats.orphans), (user, valid, 0, 0));
}
