#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_sync::PlainArc;

use super::*;
use crate::format::FormatOptions;
use crate::samples::{inode, leave_free, plain, segments};
use crate::{Reason, VolumeOptions};

#[test]
fn orphans_are_listed_until_they_are_freed() {
    let volume = plain(64);
    assert!(volume.orphans().is_empty());
    let (one, other) = (inode(&volume).nid(), inode(&volume).nid());
    let op = volume.begin().unwrap();
    volume.add_orphan(&op, volume.orphan_room().unwrap(), other);
    volume.add_orphan(&op, volume.orphan_room().unwrap(), one);
    assert_eq!(volume.orphans(), [one.min(other), one.max(other)]);
    assert!(volume.is_orphan(one) && volume.is_orphan(other) && !volume.is_orphan(volume.geometry.root_ino));
    assert!(volume.remove_orphan(&op, one) && !volume.remove_orphan(&op, one));
    assert_eq!((volume.orphans(), volume.is_orphan(one)), (vec![other], false));
}

#[test]
fn a_checkpoint_ends_an_epoch() {
    let volume = plain(64);
    let first = volume.epoch();
    for round in 1..4 {
        let version = volume.last_checkpoint().version;
        volume.checkpoints().write(Reason::Sync).unwrap();
        assert_eq!((volume.epoch(), volume.last_checkpoint().version), (first + round, version + 1));
    }
    assert_eq!(volume.footer_version() & u64::from(u32::MAX), volume.last_checkpoint().version & u64::from(u32::MAX));
}

/// The time goes on where the last opening left it.
#[test]
fn time_in_use_is_added_up() {
    let mut volume = plain(64);
    volume.clock = Clock::new(5000);
    let now = volume.elapsed();
    assert!((5000..6000).contains(&now), "{now}");
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert!((5000..6000).contains(&volume.last_checkpoint().elapsed_time));
}

#[test]
fn one_writes_to_a_volume_or_many_read_it() {
    let device = PlainArc::new(MemoryDevice::new(64 << 8));
    crate::format::format(&*device, &FormatOptions::default()).unwrap();
    let open = |read_only| Volume::open(device.clone(), &VolumeOptions::new().read_only(read_only));
    let readers = [open(true).unwrap(), open(true).unwrap()];
    assert!(matches!(open(false), Err(VolumeError::AlreadyOpen(_))));
    assert!(readers.iter().all(Volume::is_read_only));
    drop(readers);
    let writer = open(false).unwrap();
    assert!(!writer.is_read_only());
    assert!(matches!(open(true), Err(VolumeError::AlreadyOpen(_))));
    writer.close().unwrap();
    assert!(open(false).is_ok(), "it is closed");
}

#[test]
fn logs_write_into_holes_when_free_segments_are_few() {
    let volume = plain(256);
    let most = 2 * segments(&volume).reserved_sections();
    leave_free(&volume, most + 1);
    assert!(!volume.writes_into_holes());
    leave_free(&volume, most);
    assert!(volume.writes_into_holes());
    let device = volume.device().clone();
    drop(volume);
    let reader = Volume::open(device, &VolumeOptions::new().read_only(true)).unwrap();
    assert!(!reader.writes_into_holes());
}

/// Only the first cause is told.
#[test]
fn a_volume_stops_once() {
    let volume = plain(64);
    assert!(volume.stop_for(StopCause::Panic) && !volume.stop_for(StopCause::Closed));
    assert_eq!(volume.stopped(), Some(&StopCause::Panic));
    assert!(matches!(volume.begin(), Err(VolumeError::Stopped { reason: StopCause::Panic })));
    let volume = plain(64);
    volume.stop_after_panic();
    assert_eq!(volume.stopped(), Some(&StopCause::Panic));
}

/// What waits for a checkpoint that fails does not go on when the gate opens.
#[test]
fn an_operation_that_waited_for_the_end_is_refused() {
    for _ in 0..20 {
        let volume = plain(64);
        let waits = f2fs_sync::atomic::AtomicBool::new(false);
        let alone = volume.alone();
        std::thread::scope(|scope| {
            let operation = scope.spawn(|| {
                waits.store(true, f2fs_sync::atomic::Ordering::SeqCst);
                volume.begin().map(drop)
            });
            while !waits.load(f2fs_sync::atomic::Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // By now it is about to wait at the gate, or does so soon: refused it is either way.
            (0..1000).for_each(|_| std::thread::yield_now());
            volume.stop_for(StopCause::Panic);
            drop(alone);
            assert!(matches!(operation.join().unwrap(), Err(VolumeError::Stopped { .. })));
        });
    }
}

/// An operation is of one volume: whatever is asked of another one with it is told.
#[test]
#[cfg(debug_assertions)]
fn operations_on_another_volume_are_told() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let (one, other) = (plain(64), plain(64));
    let node = inode(&other);
    let op = one.begin().unwrap();
    let told = |call: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        assert!(payload.downcast_ref::<&str>().is_some_and(|text| text.contains("on another volume")));
    };
    told(&|| drop(other.data().reserve(&op, 1)));
    told(&|| drop(other.data().reserve_delayed(&op, 1)));
    told(&|| other.data().unreserve(&op, 1));
    told(&|| other.add_orphan(&op, other.orphan_room().unwrap(), node.nid()));
    told(&|| {
        other.remove_orphan(&op, node.nid());
    });
    told(&|| drop(other.slots().clear(&op, &node, 0..1, |_, _| {})));
    let keep = |_, _| f2fs_segment::Change::Keep;
    told(&|| drop(other.slots().change(&op, &node, 0..1, keep, |_, _| {})));
    assert!(other.stopped().is_none());
}
