//! The work that goes on when a request panics.

use std::collections::BTreeMap;
use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{AllocateFlags, FileSystem, Options, Pace, RenameMode, SetMode};
use f2fs_volume::format::FormatOptions;

use crate::judge::file;
use f2fs_device_test::bytes;
use f2fs_test_kit::volumes::formatted;

/// A workload, and what it may rely on.
pub(crate) struct Run {
    pub(crate) inner: Arc<MemoryDevice>,
    /// The device as it was when the last checkpoint had succeeded.
    pub(crate) good: MemoryDevice,
    /// Files that were synced since, and not touched again.
    pub(crate) synced: BTreeMap<Vec<u8>, String>,
    /// The one that a sync is about.
    pub(crate) pending: Option<(Vec<u8>, String)>,
}

impl Run {
    pub(crate) fn checkpointed(&mut self) {
        self.good = self.inner.snapshot();
        self.synced.clear();
    }

    fn checkpoint(&mut self, fs: &FileSystem) {
        fs.checkpoint().unwrap();
        self.checkpointed();
    }

    fn sync(&mut self, fs: &FileSystem, path: &str, len: usize, durable: bool) {
        let content = bytes(len, len as u64);
        let new = fs.create_file(path, 0o644).unwrap();
        self.pending = Some((path.into(), file(&content, 1)));
        if durable {
            new.write_durable(&content, 0).unwrap();
        } else {
            new.write_at(&content, 0).unwrap();
            new.sync_all().unwrap();
        }
        self.synced.extend(self.pending.take());
    }

    pub(crate) fn work(&mut self, fs: &FileSystem) {
        for round in 0..2 {
            let dir = format!("/dir-{round}");
            fs.create_dir(&dir, 0o755).unwrap();
            for name in 0..6 {
                let file = fs.create_file(format!("{dir}/file-{name}"), 0o644).unwrap();
                file.write_at(&bytes(1 + name as usize * 3000, name), name * 1000).unwrap();
            }
            self.checkpoint(fs);
            self.sync(fs, &format!("/old/synced-{round}"), 30_000, false);
            self.sync(fs, &format!("/old/durable-{round}"), 5000, true);
            fs.set_xattr(format!("{dir}/file-1"), "user.large", &[3; 2500], SetMode::Any).unwrap();
            fs.rename(format!("{dir}/file-2"), format!("{dir}/moved"), RenameMode::Replace).unwrap();
            fs.rename(format!("{dir}/file-3"), format!("{dir}/file-4"), RenameMode::Replace).unwrap();
            fs.rename("/old/a", "/old/b", RenameMode::Exchange).unwrap();
            fs.remove_file(format!("/old/names/{round}")).unwrap();
            // With the handle open when it loses its name.
            let held = fs.open_file(format!("{dir}/file-5")).unwrap();
            fs.remove_file(format!("{dir}/file-5")).unwrap();
            self.checkpoint(fs);
            let large = fs.open_file("/old/large").unwrap();
            large.write_at(&bytes(50_000, round), 1_000_000 + round * 70_000).unwrap();
            large.set_len(900_000 - round * 300_000).unwrap();
            large.allocate(1_200_000, 100_000, AllocateFlags::KEEP_SIZE).unwrap();
            drop(held);
            fs.remove_all(format!("/old/tree-{round}")).unwrap();
            while fs.clean_step(Pace::Urgent).unwrap().is_some_and(|step| step.segments == 0) {}
            fs.clean_step(Pace::Urgent).unwrap();
            self.checkpoint(fs);
            fs.remove_file(format!("{dir}/file-4")).unwrap();
            self.sync(fs, &format!("{dir}/synced"), 100, false);
            fs.clean().unwrap();
            self.checkpoint(fs);
        }
        fs.close().unwrap();
        self.checkpointed();
    }
}

/// The volume before the workload.
pub(crate) fn prepared() -> MemoryDevice {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    for path in ["/old", "/old/names", "/old/a", "/old/b", "/old/tree-0", "/old/tree-1"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    for name in 0..150 {
        fs.create_file(format!("/old/names/{name}"), 0o644).unwrap();
    }
    for round in 0..2 {
        for name in 0..5 {
            let path = format!("/old/tree-{round}/{name}");
            fs.create_file(path, 0o644).unwrap().write_at(&[5; 9000], 0).unwrap();
        }
    }
    fs.create_file("/old/large", 0o644).unwrap().write_at(&bytes(2 << 20, 1), 0).unwrap();
    fs.close().unwrap();
    device.snapshot()
}
