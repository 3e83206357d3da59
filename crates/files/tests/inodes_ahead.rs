//! Inodes that are read before they are asked for, many at once.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use f2fs_device::{BlockDevice, Claims, DeviceError, DeviceInfo, MemoryDevice, Op, Request, Ticket, Zone, ZoneChange};
use f2fs_files::{FileSystem, Nid, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

/// Counts how often something is read, and how many requests that are.
#[derive(Debug)]
struct Counted {
    inner: Arc<MemoryDevice>,
    batches: AtomicUsize,
    requests: AtomicUsize,
}

impl Counted {
    fn new(inner: &Arc<MemoryDevice>) -> Arc<Counted> {
        Arc::new(Counted { inner: inner.clone(), batches: AtomicUsize::new(0), requests: AtomicUsize::new(0) })
    }

    /// Batches and requests since this was asked last.
    fn take(&self) -> (usize, usize) {
        (self.batches.swap(0, Ordering::Relaxed), self.requests.swap(0, Ordering::Relaxed))
    }
}

impl BlockDevice for Counted {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let reads = requests.iter().filter(|request| request.op == Op::Read).count();
        self.requests.fetch_add(reads, Ordering::Relaxed);
        self.batches.fetch_add(usize::from(reads > 0), Ordering::Relaxed);
        self.inner.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.inner.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.inner.change_zone(start, change)
    }
}

const FILES: usize = 400;

fn with_files() -> Arc<MemoryDevice> {
    let device = formatted(128, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    (0..FILES).for_each(|number| drop(fs.create_file(format!("/d/{number}"), 0o644).unwrap()));
    fs.close().unwrap();
    device
}

fn listed(fs: &FileSystem) -> Vec<(Vec<u8>, Nid)> {
    fs.read_dir("/d").unwrap().map(|entry| entry.map(|entry| (entry.name, entry.ino)).unwrap()).collect()
}

#[test]
fn they_are_read_in_few_batches_and_then_found_in_memory() {
    let device = Counted::new(&with_files());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let names = listed(&fs);
    assert_eq!(names.len(), FILES);
    let all: Vec<Nid> = names.iter().map(|(_, ino)| *ino).collect();
    device.take();
    fs.read_inodes_ahead(&all);
    // 128 together, and two blocks of the NAT by themselves.
    let (batches, requests) = device.take();
    assert!((FILES..FILES + 3).contains(&requests) && batches <= FILES.div_ceil(128) + 2, "{requests} in {batches}");
    let directory = fs.inode_at("/d").unwrap();
    for (name, ino) in &names {
        assert_eq!(directory.lookup(name).unwrap().metadata().unwrap().ino, *ino);
    }
    fs.read_inodes_ahead(&all);
    assert_eq!(device.take(), (0, 0));
}

#[test]
fn a_tree_that_is_removed_is_read_so() {
    let device = Counted::new(&with_files());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    listed(&fs);
    device.take();
    fs.remove_all("/d").unwrap();
    let (batches, requests) = device.take();
    assert!(requests >= FILES && batches < FILES / 10, "{requests} in {batches}");
    fs.close().unwrap();
}

/// It is a hint: who asks for what is not there, or cannot be read, is told so by what they ask for then.
#[test]
fn numbers_of_no_inode_are_passed_over() {
    let fs = FileSystem::open(with_files(), Options::new()).unwrap();
    let most = fs.volume().geometry().max_nid();
    fs.read_inodes_ahead(&[0, 1, 2, 3, most - 1, most, u32::MAX].map(Nid));
    fs.read_inodes_ahead(&[]);
    let gone = fs.inode_at("/d/7").unwrap().ino();
    fs.remove_file("/d/7").unwrap();
    fs.read_inodes_ahead(&[gone]);
    assert_eq!(fs.inode(gone).unwrap_err().raw_os_error(), 2, "ENOENT");
    fs.close().unwrap();
    fs.read_inodes_ahead(&[gone]);
}
