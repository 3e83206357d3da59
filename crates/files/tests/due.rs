//! When checkpoints and cleanings are due, and who does them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use f2fs_device::MemoryDevice;
use f2fs_device_test::{FlushedDevice, Random};
use f2fs_files::{FileSystem, FlusherOptions, Options};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{VolumeOptions, WriteStat};

fn open(device: &Arc<MemoryDevice>) -> FileSystem {
    FileSystem::open(device.clone(), Options::new()).unwrap()
}

/// A file that goes before the next checkpoint leaves nothing for it.
#[test]
fn files_that_come_and_go_are_not_dirty() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device);
    fs.checkpoint().unwrap();
    let before = fs.statfs();
    for round in 0..20_000 {
        let path = format!("/{}", round % 7);
        fs.create_file(&path, 0o644).unwrap();
        fs.remove_file(&path).unwrap();
        let dirty = fs.statfs().dirty_nodes;
        assert!(dirty <= 16, "{dirty} dirty nodes after {round} files");
    }
    assert_eq!(fs.statfs().written.checkpoints, before.written.checkpoints, "checkpoints of nothing");
    fs.close().unwrap();
    assert_clean(&device);
}

/// Many of them make a checkpoint due all the same: their NIDs are free with that only.
#[test]
fn files_that_come_and_go_are_counted() {
    let device = formatted(64, &FormatOptions::default());
    let options = Options::new().volume(VolumeOptions::new().dirty_nodes(1000));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    let before = fs.statfs().written.checkpoints;
    for _ in 0..10_000 {
        fs.create_file("/file", 0o644).unwrap();
        fs.remove_file("/file").unwrap();
    }
    let checkpoints = fs.statfs().written.checkpoints - before;
    assert!((5..=20).contains(&checkpoints), "{checkpoints}");
}

/// Where few NIDs are left, those of files that are gone come back in time.
#[test]
fn freed_nids_come_back() {
    for policy in ["sharded", "kernel-scan", "clue"] {
        let device = formatted(64, &FormatOptions::default());
        let volume = VolumeOptions::new().nid_policy(policy.parse().unwrap());
        let fs = FileSystem::open(device.clone(), Options::new().volume(volume)).unwrap();
        fs.hold_nids(100).unwrap();
        for round in 0..2000 {
            fs.create_file("/file", 0o644).unwrap_or_else(|error| panic!("{policy}, round {round}: {error}"));
            fs.remove_file("/file").unwrap();
        }
        fs.close().unwrap();
        assert_clean(&device);
    }
}

/// Holes are there with a checkpoint, so one is written before the last free segments are taken.
#[test]
fn overwrites_of_a_full_volume_need_no_cleaning() {
    let device = formatted(256, &FormatOptions::default());
    let fs = open(&device);
    let file = fs.create_file("/file", 0o644).unwrap();
    let stat = fs.statfs();
    let blocks = (stat.user_blocks - stat.valid_blocks) / 100 * 90;
    for block in (0..blocks).step_by(64) {
        file.write_at(&[1; 64 << 12], block << 12).unwrap();
    }
    fs.checkpoint().unwrap();
    let before = fs.write_stat();
    let mut random = Random::new(1);
    for _ in 0..3 * blocks {
        file.write_at(&[2; 4096], random.below_u64(blocks) << 12).unwrap();
    }
    let written = fs.write_stat().minus(&before);
    assert_eq!((written.cleanings_alone, written.victims), (0, 0), "{written:?}");
    // Each makes room for eight segments at least.
    assert!(written.checkpoints <= 3 * blocks / 4096, "{} of {} writes", written.checkpoints, 3 * blocks);
    fs.close().unwrap();
    assert_clean(&device);
}

/// Overwrites half of a volume, and makes and removes files beside; gives the counts of it.
fn mixed(mib: u64, options: &FormatOptions, rounds: u64) -> WriteStat {
    let device = formatted(mib, options);
    let fs = open(&device);
    let file = fs.create_file("/file", 0o644).unwrap();
    let blocks = (fs.statfs().user_blocks - fs.statfs().valid_blocks) / 2;
    for block in (0..blocks).step_by(64) {
        file.write_at(&[1; 64 << 12], block << 12).unwrap();
    }
    fs.checkpoint().unwrap();
    let (before, mut random) = (fs.write_stat(), Random::new(1));
    for round in 0..rounds {
        file.write_at(&[2; 4096], random.below_u64(blocks) << 12).unwrap();
        if round % 4 == 0 {
            let _ = fs.remove_file("/small");
            fs.create_file("/small", 0o644).unwrap().write_at(&[3; 4096], 0).unwrap();
        }
    }
    let written = fs.write_stat().minus(&before);
    fs.close().unwrap();
    assert_clean(&device);
    written
}

/// A checkpoint is written for what it makes, not for each operation, whatever the size of sections.
#[test]
fn checkpoints_are_few_with_large_sections() {
    let rounds = 200_000;
    let written = mixed(1024, &FormatOptions::default().with_sections(16, 1), rounds);
    assert!(written.checkpoints <= rounds / 2048, "{written:?}");
}

#[test]
fn small_volumes_are_seldom_cleaned() {
    for mib in [64, 96] {
        let written = mixed(mib, &FormatOptions::default(), 50_000);
        assert!(written.cleanings_alone <= 5, "{mib} MiB: {written:?}");
    }
}

/// Where no NID is left and none comes back, nothing is written for those who ask.
#[test]
fn failing_creations_write_nothing() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device);
    fs.hold_nids(10).unwrap();
    let error = (0..).find_map(|name| fs.create_file(format!("/{name}"), 0o644).err()).unwrap();
    assert!(error.is_no_space(), "{error}");
    let before = fs.write_stat().checkpoints;
    (0..50).for_each(|_| assert!(fs.create_file("/another", 0o644).is_err()));
    assert_eq!(fs.write_stat().checkpoints, before);
}

/// With a flusher operations write no checkpoint, as long as there is room; without it they do.
#[test]
fn a_flusher_writes_the_checkpoints() {
    let memory = formatted(256, &FormatOptions::default());
    // Whether this thread flushed.
    let (seen, this) = (Arc::new(AtomicBool::new(false)), thread::current().id());
    let device = {
        let seen = seen.clone();
        let note = move || {
            if thread::current().id() == this {
                seen.store(true, Ordering::Relaxed);
            }
        };
        Arc::new(FlushedDevice::new(memory.clone(), note))
    };
    let options = Options::new().volume(VolumeOptions::new().dirty_nodes(2000));
    let fs = FileSystem::open(device.clone(), options).unwrap();
    // What wakes it are the operations.
    let flusher = fs.start_flusher(FlusherOptions::default().interval(Duration::from_secs(3600))).unwrap();
    seen.store(false, Ordering::Relaxed);
    let before = fs.statfs().written.checkpoints;
    let end = Instant::now() + Duration::from_secs(60);
    for number in 0.. {
        if fs.statfs().written.checkpoints >= before + 3 {
            break;
        }
        assert!(Instant::now() < end, "nobody writes checkpoints");
        fs.create_file(format!("/{number}"), 0o644).unwrap();
        // Slow enough for the flusher on a busy machine.
        while fs.statfs().dirty_nodes > 3000 {
            assert!(Instant::now() < end, "nobody writes checkpoints");
            thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(!seen.load(Ordering::Relaxed), "an operation wrote a checkpoint");
    drop(flusher);
    for number in 0..3000 {
        fs.create_file(format!("/more-{number}"), 0o644).unwrap();
    }
    assert!(seen.load(Ordering::Relaxed), "nobody wrote one");
    fs.close().unwrap();
    assert_clean(&memory);
}
