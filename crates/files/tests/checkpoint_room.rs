//! Operations beside a checkpoint that has much to write: they leave room for it, and they let it come to its end.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use f2fs_device::{BlockDevice, MemoryDevice, Operation};
use f2fs_device_test::{HeldDevice, SlowDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::{FormatOptions, format};

/// Nodes that the checkpoint writes ahead, more than are written at once.
const NODES: u32 = 12_000;
/// Blocks of the file that is overwritten.
const BLOCKS: u64 = 256;

/// A checkpoint has taken its nodes and written few of them. Whoever writes data meanwhile must not take the segments
/// that the others need.
#[test]
fn nodes_that_a_checkpoint_has_taken_keep_their_room() {
    let memory = Arc::new(MemoryDevice::new((288 << 20) >> 12));
    format(&*memory, &FormatOptions::default()).unwrap();
    let held = Arc::new(HeldDevice::new(memory.clone() as Arc<dyn BlockDevice>));
    let volume = VolumeOptions::new().dirty_nodes(u64::MAX / 2);
    let fs = FileSystem::open(held.clone(), Options::new().volume(volume)).unwrap();
    fs.create_dir("/d", 0o755).unwrap();
    for number in 0..NODES {
        fs.create_file(format!("/d/{number}"), 0o644).unwrap();
    }
    let file = fs.create_file("/data", 0o644).unwrap();
    fs.checkpoint().unwrap();
    for number in 0..NODES {
        fs.set_permissions(format!("/d/{number}"), 0o600).unwrap();
    }

    let (written, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    held.hold_next(Operation::Write);
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| fs.checkpoint());
        held.wait_until_held();
        let writer = scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                let block = written.load(Ordering::Relaxed) % BLOCKS;
                assert_eq!(file.write_at(&[1; 4096], block * 4096).unwrap(), 4096);
                if block.is_multiple_of(4) {
                    // A node that is dirty: it has the dirty ones counted.
                    fs.set_permissions(format!("/d/{}", block * 8), 0o644).unwrap();
                }
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Until the writer waits for the checkpoint: on a busy machine it may rest now and then for other reasons.
        let (mut before, mut quiet) = (u64::MAX, 0);
        while quiet < 5 && !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(200));
            let now = written.load(Ordering::Relaxed);
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
        }
        held.release();
        checkpoint.join().unwrap().unwrap();
        enough.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    let written = written.into_inner();
    assert!(written > BLOCKS, "{written} blocks were written beside it");
    drop(file);
    fs.close().unwrap();

    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image");
    memory.save(&image).unwrap();
    f2fs_oracle::assert_clean(&image);
}

/// Threads change nodes faster than the device takes them. Few are left to the freeze, while which all have to wait. On a machine
/// that is busy with other things the thread of the checkpoint may wait for its turn while the others work: one checkpoint of
/// several has to come to its end so.
#[test]
fn a_checkpoint_comes_to_its_end_beside_threads_that_are_faster() {
    // With a fault in it none of them does: two are enough to show that.
    let checkpoints = if std::env::var_os("F2FS_MUTANT").is_some() { 2 } else { 8 };
    let frozen: Vec<_> = (0..checkpoints).map(|_| left_to_the_freeze()).take_while(|nodes| *nodes >= FEW).collect();
    assert!(frozen.len() < checkpoints, "{frozen:?} nodes were left to the freeze");
}

/// Of 16,000 nodes.
const FEW: u64 = 3000;

/// Nodes that are left to the freeze of a checkpoint of 16,000 that four threads change all the time.
fn left_to_the_freeze() -> u64 {
    let memory = MemoryDevice::new((1 << 30) >> 12);
    format(&memory, &FormatOptions::default()).unwrap();
    let slow = SlowDevice::new(memory, |blocks| blocks as f64 * 20e-6);
    let volume = VolumeOptions::new().dirty_nodes(u64::MAX / 2);
    let fs = FileSystem::open(Arc::new(slow), Options::new().volume(volume)).unwrap();
    for thread in 0..4 {
        fs.create_dir(format!("/{thread}"), 0o755).unwrap();
        for number in 0..4000 {
            fs.create_file(format!("/{thread}/{number}"), 0o644).unwrap();
        }
    }
    let enough = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        for thread in 0..4 {
            let (fs, enough) = (&fs, &enough);
            scope.spawn(move || {
                for number in (0..4000).cycle().take_while(|_| !enough.load(Ordering::Relaxed)) {
                    fs.set_permissions(format!("/{thread}/{number}"), 0o600).unwrap();
                }
            });
        }
        let report = fs.checkpoint();
        enough.store(true, Ordering::Relaxed);
        report.unwrap()
    });
    fs.close().unwrap();
    report.frozen_nodes
}

#[cfg(feature = "mutants")]
#[test]
fn faults_are_found() {
    let test = "nodes_that_a_checkpoint_has_taken_keep_their_room";
    f2fs_sync::assert_found(test, &["taken_nodes_have_no_room"], "NoSpace");
    let test = "a_checkpoint_comes_to_its_end_beside_threads_that_are_faster";
    f2fs_sync::assert_found(test, &["brake_left_open"], "were left to the freeze");
}
