//! What the scenarios of files have in common: small volumes, and what is looked at when the threads have ended.
#![allow(dead_code)] // each scenario file uses a part

use f2fs_check::{CheckOptions, check};
use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_sync::{Arc, thread};
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::{SyncWriters, VolumeOptions};

pub(crate) const BLOCK: usize = 4096;

pub(crate) fn formatted() -> Arc<MemoryDevice> {
    formatted_with(64)
}

pub(crate) fn formatted_with(mib: u64) -> Arc<MemoryDevice> {
    let device = MemoryDevice::new((mib << 20) >> 12);
    format(&device, &FormatOptions::default()).unwrap();
    Arc::new(device)
}

pub(crate) fn options() -> Options {
    // Unused state leaves memory at once.
    let blocks = std::num::NonZeroUsize::MIN;
    Options::new().volume(VolumeOptions::new().lanes(1)).dentry_cache(blocks).lock_memory(0)
}

/// Options with which checkpoints write all that is dirty before they keep operations out.
pub(crate) fn ahead() -> Options {
    options().volume(VolumeOptions::new().lanes(1).nodes_left_to_freeze(0))
}

/// The same, and each sync writes its own nodes.
pub(crate) fn each() -> Options {
    let volume = VolumeOptions::new().lanes(1).nodes_left_to_freeze(0).sync_writers(SyncWriters::Each);
    options().volume(volume)
}

pub(crate) fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    let file = fs.open_file(path).unwrap();
    let mut bytes = vec![0; file.size() as usize];
    let read = file.read_at(&mut bytes, 0).unwrap();
    // Another thread may have cut it meanwhile.
    bytes.truncate(read);
    bytes
}

/// The volume is consistent. Only for when no other thread runs: the check's work stays in this one, the only one that
/// shuttle knows.
pub(crate) fn judge(device: &MemoryDevice) {
    std::thread_local! {
        static ALONE: () = {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
            // A pool of the thread that asked for it.
            std::mem::forget(pool);
        };
    }
    ALONE.with(|()| ());
    let report = check(device, &CheckOptions::new().threads(0)).unwrap();
    assert!(report.is_consistent() && report.complete, "{report}");
}

pub(crate) fn spawn<T: Send + 'static>(
    fs: &Arc<FileSystem>,
    body: impl FnOnce(&FileSystem) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let fs = Arc::clone(fs);
    thread::spawn(move || body(&fs))
}
