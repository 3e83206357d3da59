//! The cost of opening a volume of 16 TiB, in requests and in memory.
#![allow(clippy::unwrap_used)] // what fails here is a failed test

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use allocation_counter::measure;
use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Request, Ticket};
use f2fs_device_test::SparseDevice;
use f2fs_format::{LogType, Nid, SegmentNo};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{NewNode, Reason, Volume, VolumeOptions};

/// The largest file of ext4, less what does not make up a segment.
const BLOCKS: u64 = (16 << 40 >> 12) - 512;

/// A device that counts what is read from it.
#[derive(Debug)]
struct Counted {
    inner: SparseDevice,
    requests: AtomicU64,
    /// Blocks read, and how many of them from where a test looks.
    read: AtomicU64,
    watched: Mutex<Range<u64>>,
    read_watched: AtomicU64,
}

impl Counted {
    fn new() -> Counted {
        let zero = || AtomicU64::new(0);
        let inner = SparseDevice::new(BLOCKS);
        Counted { inner, requests: zero(), read: zero(), watched: Mutex::new(0..0), read_watched: zero() }
    }

    /// Requests, blocks read, and those of them in a range, of a call.
    fn count<T>(&self, watched: Range<u64>, call: impl FnOnce() -> T) -> (T, [u64; 3]) {
        *self.watched.lock().unwrap() = watched;
        let counters = [&self.requests, &self.read, &self.read_watched];
        counters.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        let result = call();
        (result, counters.map(|counter| counter.load(Ordering::Relaxed)))
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
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn execute(&self, request: Request) -> Completion {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if request.op == Op::Read {
            let watched = self.watched.lock().unwrap();
            let blocks = request.start..request.start + request.blocks();
            self.read.fetch_add(request.blocks(), Ordering::Relaxed);
            let seen = blocks.end.min(watched.end).saturating_sub(blocks.start.max(watched.start));
            self.read_watched.fetch_add(seen, Ordering::Relaxed);
        }
        self.inner.execute(request)
    }
}

fn fresh() -> Arc<Counted> {
    let device = Arc::new(Counted::new());
    Volume::format(&*device, &FormatOptions::default()).unwrap();
    device
}

#[test]
fn opening_for_reading_reads_neither_sit_nor_summaries() {
    let device = fresh();
    let options = VolumeOptions::new().read_only(true);
    let geometry = Volume::open(device.clone(), &options).unwrap().geometry().clone();
    let sit = u64::from(geometry.sit_blkaddr.0)..u64::from(geometry.nat_blkaddr.0);
    let mut opened = None;
    let (memory, [requests, read, of_sit]) = device.count(sit.clone(), || {
        measure(|| {
            let volume = Volume::open(device.clone(), &options).unwrap();
            drop(volume.nodes().get(geometry.root_ino).unwrap());
            opened = Some(volume);
        })
    });
    assert_eq!(of_sit, 0);
    assert!(requests <= 24 && read <= 128, "{requests} requests, {read} blocks");
    assert!(memory.bytes_max < 32 << 20, "{} bytes", memory.bytes_max);
    let volume = opened.unwrap();
    assert_eq!(volume.stat().free_segments, geometry.main_segments - 6);

    // Who asks for a segment has one block read, and once.
    let far = SegmentNo(geometry.main_segments - 1);
    let root = volume.last_checkpoint().log(LogType::HotNode);
    let [.., of_sit] = device.count(sit.clone(), || assert_eq!(volume.segment(far).unwrap().valid, 0)).1;
    assert_eq!(of_sit, 1);
    let in_use = geometry.block_at(root.segment, 0);
    let ask = || {
        assert!(volume.data().is_in_use(in_use).unwrap());
        assert!(!volume.data().is_in_use(in_use.offset(u32::from(root.next_offset))).unwrap());
        assert_eq!(volume.segment(root.segment).unwrap().valid, 1);
    };
    assert!(device.count(sit.clone(), ask).1[2] <= 1);
    assert_eq!(device.count(sit, ask).1[2], 0);
    assert!(volume.segment(SegmentNo(geometry.main_segments)).is_err());

    // Who asks for many of them does not have all of their blocks in memory: 1024 of these 3000.
    let many = || (0..geometry.main_segments).step_by(55).take(3000);
    let all = measure(|| many().for_each(|at| drop(volume.segment(SegmentNo(at)))));
    assert!(many().count() == 3000 && all.bytes_max < 8 << 20, "{} bytes", all.bytes_max);
}

#[test]
fn opening_for_writing_takes_eight_bytes_a_segment() {
    let device = fresh();
    for threads in [1, 3] {
        let options = VolumeOptions::new().threads(threads);
        let mut opened = None;
        let (memory, [_, read, _]) =
            device.count(0..0, || measure(|| opened = Some(Volume::open(device.clone(), &options).unwrap())));
        let volume = opened.unwrap();
        let geometry = volume.geometry().clone();
        let segments = u64::from(geometry.main_segments);
        let held = memory.bytes_current;
        // Memory that another thread allocates is not counted.
        assert!(held > 0 && held as u64 <= 8 * segments, "{held} bytes for {segments} segments");
        let buffers = 4 << 20;
        assert!(memory.bytes_max <= 8 * segments + buffers, "{} bytes", memory.bytes_max);
        // One copy of the table.
        assert!(read <= u64::from(geometry.sit_blocks()) + 128, "{read} blocks of {}", geometry.sit_blocks());

        // It is a volume like any other.
        let more = measure(|| {
            let op = volume.begin().unwrap();
            let new = NewNode { ino: None, offset: 0, directory: false };
            let nid: Nid = volume.nodes().create(&op, new).unwrap().nid();
            drop(op);
            volume.checkpoints().write(Reason::Sync).unwrap();
            assert!(volume.recovery().has_node(nid).unwrap());
        });
        assert!(more.bytes_current < 1 << 20, "{} bytes more", more.bytes_current);
        let before = volume.stat();
        volume.close().unwrap();
        drop(volume);
        let again = Volume::open(device.clone(), &VolumeOptions::new().read_only(true)).unwrap();
        assert_eq!((again.stat().valid_nodes, again.stat().valid_blocks), (before.valid_nodes, before.valid_blocks));
    }
}
