//! Small file systems for the models: what is on the device is made once, and opened in each iteration.
#![allow(dead_code)] // not every file of models uses all of it

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use f2fs_device::MemoryDevice;
pub(crate) use f2fs_device_test::LateDevice;
use f2fs_device_test::RecordingDevice;
use f2fs_files::{FileSystem, Options, Time};
use f2fs_sync::Arc;
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};
use f2fs_volume::models::Image;

pub(crate) const BLOCK: usize = 4096;

/// A file system in a model.
pub(crate) struct Small {
    pub(crate) device: Arc<MemoryDevice>,
    pub(crate) fs: Arc<FileSystem>,
}

/// Unused state leaves memory as soon as there is a reason to look.
pub(crate) fn options() -> Options {
    let one = NonZeroUsize::MIN;
    let volume = VolumeOptions::new().lanes(1).threads(1).node_cache(one);
    Options::new().volume(volume).dentry_cache(one).inode_cache(one).lock_memory(0).clock(clock)
}

/// One tick of the time of files, in which it is later each time: what a model does must not depend on the real time.
fn clock() -> Time {
    static NANOSECONDS: AtomicU32 = AtomicU32::new(0);
    Time { seconds: 1_700_000_000, nanoseconds: NANOSECONDS.fetch_add(1, Relaxed) % 1_000_000 }
}

/// The contents of a device after `fill` and a clean end.
pub(crate) fn image(fill: impl Fn(&FileSystem) + Send + Sync + 'static) -> Image {
    Image::new(move |device| {
        format(&**device, &FormatOptions::default()).unwrap();
        let fs = FileSystem::open(device.clone(), options()).unwrap();
        fill(&fs);
        fs.close().unwrap();
    })
}

impl Small {
    /// The file system on an image, of which nothing is in memory.
    pub(crate) fn open(image: &Image) -> Small {
        Small::on(image.device())
    }

    pub(crate) fn on(device: Arc<MemoryDevice>) -> Small {
        let fs = Arc::new(FileSystem::open(device.clone(), options()).unwrap());
        Small { device, fs }
    }

    /// The same, on a device whose requests happen when somebody waits for them.
    pub(crate) fn late(image: &Image) -> Small {
        let device = image.device();
        let fs = Arc::new(FileSystem::open(Arc::new(LateDevice::new(device.clone())), options()).unwrap());
        Small { device, fs }
    }

    /// Closes it, and opens what is on the device. No handle is open any more.
    pub(crate) fn again(self) -> Small {
        self.fs.close().unwrap();
        drop(self.fs);
        Small::on(self.device)
    }

    /// Inodes, nodes and blocks in use.
    pub(crate) fn used(&self) -> (u64, u64, u64) {
        let stat = self.fs.statfs();
        (stat.valid_inodes, stat.valid_nodes, stat.valid_blocks)
    }
}

/// The file system on an image, on a device that records what comes to it and does it when somebody waits. From its first
/// checkpoint on, which is written here, syncs need none.
pub(crate) fn recorded(image: &Image, options: Options) -> (Arc<RecordingDevice>, Arc<FileSystem>) {
    let device = Arc::new(RecordingDevice::new(image.device().snapshot()));
    let fs = FileSystem::open(Arc::new(LateDevice::new(device.clone())), options).unwrap();
    fs.checkpoint().unwrap();
    (device, Arc::new(fs))
}

pub(crate) fn read(fs: &FileSystem, path: &str) -> Vec<u8> {
    let file = fs.open_file(path).unwrap();
    let mut bytes = vec![0; file.size() as usize];
    let len = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(len);
    bytes
}

/// The names of a directory, sorted, `.` and `..` aside.
pub(crate) fn names(fs: &FileSystem, path: &str) -> Vec<String> {
    let all = fs.read_dir(path).unwrap().map(Result::unwrap);
    let mut names: Vec<_> = all.map(|entry| String::from_utf8(entry.name).unwrap()).collect();
    names.retain(|name| name != "." && name != "..");
    names.sort();
    names
}
