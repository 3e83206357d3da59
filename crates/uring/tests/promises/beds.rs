//! The devices that are asked: each back end, with the file below it if there is one.

use std::path::PathBuf;
use std::sync::Arc;

use f2fs_device::{AlignedBuf, BLOCK_SIZE, BlockDevice, MemoryDevice};
use f2fs_device_test::pmem::SimulatedRegion;
use f2fs_device_test::{FaultDevice, RecordingDevice};
use f2fs_pmem::{MemoryRegion, PmemDevice};
use f2fs_uring::{Direct, Engine, NvmeDevice, OpenOptions, UringDevice};

pub(crate) const BLOCKS: u64 = 2048;

/// A device, and the file below it if there is one.
pub(crate) struct Bed {
    pub(crate) device: Arc<dyn BlockDevice>,
    pub(crate) path: Option<PathBuf>,
    _dir: Option<tempfile::TempDir>,
}

fn file(dir: &str, options: OpenOptions) -> Bed {
    let dir = tempfile::tempdir_in(dir).unwrap();
    let path = dir.path().join("image");
    let device = UringDevice::create(&path, BLOCKS * BLOCK_SIZE as u64 + 100, options).unwrap();
    Bed { device, path: Some(path), _dir: Some(dir) }
}

/// Where the build lies is a disk; the usual temporary directory may be in memory, without direct transfers.
const DISK: &str = env!("CARGO_TARGET_TMPDIR");

pub(crate) fn memory() -> Bed {
    Bed { device: Arc::new(MemoryDevice::new(BLOCKS)), path: None, _dir: None }
}

pub(crate) fn wrapped() -> Bed {
    let recording = RecordingDevice::new(MemoryDevice::new(BLOCKS));
    Bed { device: Arc::new(FaultDevice::new(Arc::new(recording))), path: None, _dir: None }
}

pub(crate) fn uring_direct() -> Bed {
    let bed = file(DISK, OpenOptions::new().engine(Engine::IoUring).direct(Direct::Required));
    assert!(bed.device.info().description.starts_with("io_uring, O_DIRECT, "), "{}", bed.device.info().description);
    bed
}

pub(crate) fn uring_tmpfs() -> Bed {
    let bed = file("/dev/shm", OpenOptions::new().engine(Engine::IoUring));
    assert!(
        bed.device.info().description.starts_with("io_uring, buffered: tmpfs"),
        "{}",
        bed.device.info().description
    );
    bed
}

pub(crate) fn uring_buffered() -> Bed {
    file(DISK, OpenOptions::new().engine(Engine::IoUring).direct(Direct::Off))
}

/// Its queues have a thread of the kernel that submits, which sleeps soon.
pub(crate) fn uring_watched() -> Bed {
    let watched = OpenOptions::new().engine(Engine::IoUring).sq_poll(Some(std::time::Duration::from_millis(5)));
    let bed = file(DISK, watched);
    let description = &bed.device.info().description;
    assert!(description.starts_with("io_uring with SQPOLL, "), "{description}");
    bed
}

pub(crate) fn syscalls_direct() -> Bed {
    let bed = file(DISK, OpenOptions::new().engine(Engine::Syscalls).direct(Direct::Required));
    let description = &bed.device.info().description;
    assert!(description.starts_with("preadv/pwritev (as asked), O_DIRECT, "), "{description}");
    bed
}

pub(crate) fn syscalls_tmpfs() -> Bed {
    file("/dev/shm", OpenOptions::new().engine(Engine::Syscalls))
}

pub(crate) fn pmem_memory() -> Bed {
    let region = MemoryRegion::new((BLOCKS as usize) * BLOCK_SIZE + 100).unwrap();
    Bed { device: Arc::new(PmemDevice::new(region)), path: None, _dir: None }
}

/// A mapped file. Where the build lies is no persistent memory, so that a flush is a system call; the guest's tests
/// have some.
pub(crate) fn pmem_file() -> Bed {
    let dir = tempfile::tempdir_in(DISK).unwrap();
    let path = dir.path().join("image");
    std::fs::File::create(&path).unwrap().set_len(BLOCKS * BLOCK_SIZE as u64 + 100).unwrap();
    let device = PmemDevice::open(&path, f2fs_pmem::OpenOptions::new()).unwrap();
    assert!(device.info().description.contains("no DAX"), "{}", device.info().description);
    Bed { device, path: Some(path), _dir: Some(dir) }
}

pub(crate) fn pmem_simulated() -> Bed {
    let region = SimulatedRegion::new((BLOCKS as usize) * BLOCK_SIZE);
    Bed { device: Arc::new(PmemDevice::new(region)), path: None, _dir: None }
}

/// The device that `F2FS_TEST_DEVICE` names, of exactly 8 MiB: its content is lost. `F2FS_TEST_POLLING` has the words
/// `io`, `sq`, both or neither. The guest's tests run these on NVMe namespaces.
pub(crate) fn named() -> Bed {
    let path = PathBuf::from(std::env::var_os("F2FS_TEST_DEVICE").expect("F2FS_TEST_DEVICE names the device"));
    let polling = std::env::var("F2FS_TEST_POLLING").unwrap_or_default();
    let idle = polling.contains("sq").then_some(std::time::Duration::from_millis(50));
    let options = OpenOptions::new().engine(Engine::IoUring).io_poll(polling.contains("io")).sq_poll(idle);
    let device: Arc<dyn BlockDevice> = if NvmeDevice::is_at(&path) {
        let device = NvmeDevice::open(&path, options).unwrap();
        device.write_zeroes(0, BLOCKS).unwrap();
        device
    } else {
        let device = UringDevice::open(&path, options).unwrap();
        device.write(0, AlignedBuf::new(BLOCKS as usize)).unwrap();
        device
    };
    println!("{}", device.info().description);
    Bed { device, path: None, _dir: None }
}
