//! Small volumes in memory, and their judges.

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use f2fs_check::{CheckOptions, FindingKind, check};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::path_from_bytes;
use f2fs_volume::format::{FormatOptions, format};

/// How much more than usual a test is to do, by an environment variable.
pub fn scale(variable: &str) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

pub fn formatted(mib: u64, options: &FormatOptions) -> Arc<MemoryDevice> {
    let device = MemoryDevice::new((mib << 20) >> 12);
    format(&device, options).unwrap();
    Arc::new(device)
}

pub fn at(path: &[u8]) -> &Path {
    path_from_bytes(path)
}

/// Both judges, after a clean close or a checkpoint.
#[track_caller]
pub fn assert_clean(device: &MemoryDevice) {
    // The volume may be open.
    let report = check(&device.snapshot(), &CheckOptions::default()).unwrap();
    assert!(report.is_clean() && report.complete, "{report}");
    f2fs_oracle::assert_clean(saved(device).path());
}

/// The library's own judge: nothing worse than a torn copy. Only Linux leaves blocks behind the end of a file.
#[track_caller]
pub fn assert_consistent(device: &dyn BlockDevice) {
    let report = check(device, &CheckOptions::new().threads(2)).unwrap();
    assert!(report.is_consistent() && report.complete && !report.has(FindingKind::BehindEnd), "{report}");
}

/// The device as a file that lives as long as the returned value.
pub fn saved(device: &MemoryDevice) -> tempfile::TempPath {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    device.save(&path).unwrap();
    path
}

pub trait TempPathExt {
    fn path(&self) -> &Path;
}

impl TempPathExt for tempfile::TempPath {
    fn path(&self) -> &Path {
        self
    }
}

/// Runs `work` on a thread of its own and fails if it does not end in time: a deadlock is a failure, not a hang.
#[track_caller]
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = work();
        let _ = done.send(());
        result
    });
    match wait.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still running after {limit:?}: a deadlock, or no end"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {}
    }
    thread.join().unwrap_or_else(|cause: Box<dyn Any + Send>| std::panic::resume_unwind(cause))
}
