//! What several tests of the file system share. Each of them uses a part of it.
#![allow(dead_code)]

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use f2fs_check::{CheckOptions, check};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::path_from_bytes;
use f2fs_volume::format::{FormatOptions, format};

/// Small random numbers, the same in every run (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mix = self.0;
        mix = (mix ^ mix >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mix ^ mix >> 31
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// How much more than usual a test is to do, by an environment variable.
pub(crate) fn scale(variable: &str) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Bytes that differ from seed to seed and from place to place.
pub(crate) fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut all = Vec::with_capacity(len + 8);
    while all.len() < len {
        all.extend_from_slice(&random.next().to_le_bytes());
    }
    all.truncate(len);
    all
}

pub(crate) fn formatted(mib: u64, options: &FormatOptions) -> Arc<MemoryDevice> {
    let device = MemoryDevice::new((mib << 20) >> 12);
    format(&device, options).unwrap();
    Arc::new(device)
}

pub(crate) fn at(path: &[u8]) -> &Path {
    path_from_bytes(path)
}

/// Both judges, after a clean close or a checkpoint.
#[track_caller]
pub(crate) fn assert_clean(device: &MemoryDevice) {
    // The volume may be open.
    let report = check(&device.snapshot(), &CheckOptions::default()).unwrap();
    assert!(report.is_clean() && report.complete, "{report}");
    f2fs_oracle::assert_clean(saved(device).path());
}

/// The library's own judge: nothing worse than a torn copy.
#[track_caller]
pub(crate) fn assert_consistent(device: &dyn BlockDevice) {
    let report = check(device, &CheckOptions::new().threads(2)).unwrap();
    assert!(report.is_consistent() && report.complete, "{report}");
}

/// The device as a file that lives as long as what is returned.
pub(crate) fn saved(device: &MemoryDevice) -> tempfile::TempPath {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    device.save(&path).unwrap();
    path
}

pub(crate) trait TempPathExt {
    fn path(&self) -> &Path;
}

impl TempPathExt for tempfile::TempPath {
    fn path(&self) -> &Path {
        self
    }
}

/// Runs `work` on a thread of its own and fails if it does not end in time: a deadlock is a failure, not a hang.
#[track_caller]
pub(crate) fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
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
