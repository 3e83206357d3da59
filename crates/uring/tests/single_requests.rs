//! One request is one system call: no ring sees it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;

use f2fs_device::{AlignedBuf, BlockDevice, Request};
use f2fs_uring::{Direct, Engine, OpenOptions, UringDevice};

/// Entries that all rings of this process have been given, by what the kernel says of their descriptors.
fn entries() -> u64 {
    let rings = fs::read_dir("/proc/self/fd")
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().contains("io_uring")));
    let told = |name: &std::ffi::OsStr| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", name.to_string_lossy())).unwrap();
        let tail = info.lines().find_map(|line| line.strip_prefix("SqTail:")).map(|tail| tail.trim().parse::<u64>());
        tail.unwrap().unwrap()
    };
    rings.map(|entry| told(&entry.file_name())).sum()
}

#[test]
fn only_batches_and_queues_use_rings() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for direct in [Direct::Required, Direct::Off] {
        let path = dir.path().join(format!("{direct:?}"));
        let options = OpenOptions::new().engine(Engine::IoUring).direct(direct);
        let device = UringDevice::create(&path, 64 * 4096, options).unwrap();
        let before = entries();
        let mut buf = AlignedBuf::from_bytes(&[7]);
        device.write_from(3, &mut buf).unwrap();
        device.write_fua(4, buf).unwrap();
        device.flush().unwrap();
        let pair = || vec![AlignedBuf::new(1), AlignedBuf::new(2)];
        device.execute(Request::vectored(f2fs_device::Op::Write, 8, pair())).result.unwrap();
        let back = device.execute(Request::vectored(f2fs_device::Op::Read, 3, pair())).into_bufs().unwrap();
        assert_eq!((back[0].as_bytes()[0], back[1].as_bytes()[0]), (7, 7));
        device.discard(9, 1).unwrap();
        assert_eq!(entries(), before, "single requests, {direct:?}");

        // The judge sees what goes through a ring.
        let batch = (0..3).map(|block| Request::read(block, AlignedBuf::new(1))).collect();
        assert!(device.submit(batch).wait().iter().all(|completion| completion.result.is_ok()));
        assert_eq!(entries(), before + 3, "a batch, {direct:?}");
    }
}
