//! A volume is closed by several threads: what was done is all there afterwards, and an error or a panic of one of them
//! leaves the last checkpoint.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use f2fs_device::{BlockDevice, KeptZones, MemoryDevice, Operation, ZoneLayout};
use f2fs_device_test::{Fault, FaultDevice, FaultRule, SlowDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_format::feature::Features;
use f2fs_test_kit::volumes::{assert_clean, assert_consistent, formatted, within};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

const DIRECTORIES: usize = 8;
/// More nodes in all than one thread writes at once.
const FILES: usize = 500;
/// A volume takes a second or so to close, if nobody waits for good.
const LIMIT: Duration = Duration::from_secs(240);

fn open(device: Arc<dyn BlockDevice>) -> FileSystem {
    let volume = VolumeOptions::new().threads(3).dirty_nodes(u64::MAX / 2);
    FileSystem::open(device, Options::new().volume(volume)).unwrap()
}

fn fill(fs: &FileSystem) {
    for directory in 0..DIRECTORIES {
        fs.create_dir(format!("/{directory}"), 0o755).unwrap();
        for file in 0..FILES {
            fs.create_file(format!("/{directory}/{file}"), 0o644).unwrap();
        }
    }
}

fn names(fs: &FileSystem, path: &str) -> usize {
    fs.read_dir(path).unwrap().map(Result::unwrap).count()
}

#[test]
fn several_threads_write_and_all_is_there() {
    let inner = formatted(256, &FormatOptions::default());
    let writers = Arc::new(Mutex::new(HashSet::new()));
    let noted = writers.clone();
    // Slow enough for the other threads to get their part.
    let slow = SlowDevice::new(inner.clone(), move |_| {
        noted.lock().unwrap().insert(thread::current().id());
        1e-3
    });
    let fs = open(Arc::new(slow));
    fill(&fs);
    writers.lock().unwrap().clear();
    fs.close().unwrap();
    let writers = writers.lock().unwrap().len();
    assert!(writers > 1, "{writers} threads wrote");
    assert_clean(&inner);
    let fs = open(inner);
    assert!((0..DIRECTORIES).all(|directory| names(&fs, &format!("/{directory}")) == FILES));
}

/// At each of some requests on the way: an error, and a panic. `reopened` is the device as a later process finds it.
fn a_fault_leaves_the_last_checkpoint(
    made: fn() -> Arc<MemoryDevice>,
    reopened: fn(&Arc<MemoryDevice>) -> Arc<dyn BlockDevice>,
) {
    for after in [0, 1, 3, 8, 12] {
        for fault in [Fault::Error(5), Fault::Panic] {
            let memory = made();
            let device = Arc::new(FaultDevice::new(reopened(&memory)));
            let fs = open(device.clone());
            fs.create_dir("/kept", 0o755).unwrap();
            fs.checkpoint().unwrap();
            fill(&fs);
            device.arm(FaultRule::on([Operation::Write]).after(after).fault(fault));
            let panics = matches!(fault, Fault::Panic);
            match catch_unwind(AssertUnwindSafe(|| fs.close())) {
                Ok(closed) => assert!(closed.is_err() && !panics, "{after}: {closed:?}"),
                Err(_) => assert!(panics, "{after}"),
            }
            // It is stopped, or stays open, if it was the layer above the volume that failed. Nothing more becomes durable.
            let _ = fs.create_file("/late", 0o644);
            device.disarm();
            drop(fs);
            drop(device);
            let fs = open(reopened(&memory));
            assert_eq!(names(&fs, "/"), 1, "{after}");
            fill(&fs);
            fs.close().unwrap();
            drop(fs);
            assert_consistent(&*reopened(&memory));
        }
    }
}

#[test]
fn a_fault_leaves_the_last_checkpoint_of_a_plain_device() {
    within(LIMIT, || {
        a_fault_leaves_the_last_checkpoint(|| formatted(256, &FormatOptions::default()), |memory| memory.clone());
    });
}

/// A thread waits for blocks in front of its own in their zone, which another one that failed does not write.
#[test]
fn a_fault_leaves_the_last_checkpoint_of_zones() {
    fn zones() -> Arc<MemoryDevice> {
        let layout = ZoneLayout::new(1024).with_conventional(8);
        let blocks = KeptZones::<Arc<MemoryDevice>>::blocks_needed(&layout, 72).unwrap();
        let memory = Arc::new(MemoryDevice::new(blocks));
        let device = KeptZones::create(memory.clone(), layout).unwrap();
        format(&device, &FormatOptions::default().with_features(Features::BLKZONED)).unwrap();
        memory
    }
    within(LIMIT, || {
        a_fault_leaves_the_last_checkpoint(zones, |memory| Arc::new(KeptZones::open(memory.clone()).unwrap()));
    });
}

/// What an operation beside the close has done is there, or it failed.
#[test]
fn nothing_is_lost_beside_a_close() {
    let device = formatted(256, &FormatOptions::default());
    let fs = open(device.clone());
    fill(&fs);
    fs.create_dir("/beside", 0o755).unwrap();
    let start = Barrier::new(3);
    let done: usize = thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let (fs, start) = (&fs, &start);
                scope.spawn(move || {
                    start.wait();
                    (0..)
                        .take_while(|number| fs.create_file(format!("/beside/{worker}-{number}"), 0o644).is_ok())
                        .count()
                })
            })
            .collect();
        start.wait();
        fs.close().unwrap();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_clean(&device);
    drop(fs);
    assert_eq!(names(&open(device), "/beside"), done);
}
