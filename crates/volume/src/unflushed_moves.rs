//! Moved blocks that the device may not have kept yet.
//!
//! A step of the cleaner writes blocks to other places, and lets slots name them. The next checkpoint flushes the device
//! before it is valid. But a sync of a file may write its nodes before that, and a crash leave the nodes and not the
//! blocks, which were durable at their old places. So a sync flushes first, if anything has moved since the last one.
//! Thus many sections cost one flush, or none.
//!
//! # Locking
//!
//! `order` is closed while slots of moved blocks change, and node pages are locked in it. A sync is inside from the flush
//! on until its nodes are written: syncs of different processors write no common line for it. With a journal syncs hold
//! nothing: there each step flushes for itself. A journal is attached before its first sync waits for a checkpoint, so
//! steps that began without one are over by then.

use f2fs_device::{BlockDevice, DeviceError};
use f2fs_sync::atomic::{AtomicBool, Ordering::Relaxed};
use f2fs_sync::{ClosedGate, Gate, GateGuard, protocol_value};

/// Whether there are any.
#[derive(Debug)]
pub(crate) struct UnflushedMoves {
    order: Gate,
    /// Set by who has closed `order`, cleared by who is inside of it, or has closed the volume's gate.
    some: AtomicBool,
}

impl UnflushedMoves {
    pub(crate) fn new() -> UnflushedMoves {
        UnflushedMoves { order: Gate::new(), some: AtomicBool::new(false) }
    }

    /// Slots may name blocks that were written and not flushed, until this is dropped.
    pub(crate) fn land(&self) -> ClosedGate<'_> {
        let order = self.order.close();
        self.some.store(true, Relaxed);
        order
    }

    /// Nodes may be synced until this is dropped: all blocks that they name are durable if they were moved.
    pub(crate) fn sync(&self, device: &dyn BlockDevice) -> Result<Option<GateGuard<'_>>, DeviceError> {
        let order = self.order.enter();
        if self.some.load(Relaxed) {
            flush(device)?;
            self.some.store(false, Relaxed);
        }
        let order = Some(order);
        Ok(protocol_value!("moves_land_beside_syncs", order, order.and(None)))
    }

    /// The checkpoint that is frozen flushes what has moved. The gate is closed, and syncs wait until it is durable.
    pub(crate) fn freeze(&self) {
        self.some.store(false, Relaxed);
    }
}

/// Makes moved blocks durable.
pub(crate) fn flush(device: &dyn BlockDevice) -> Result<(), DeviceError> {
    protocol_value!("cleaner_flush_left_out", device.flush(), Ok(()))
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use f2fs_device::{MemoryDevice, Operation};
    use f2fs_device_test::{FaultDevice, FaultRule, FlushedDevice};
    use f2fs_sync::PlainArc;
    use f2fs_sync::atomic::AtomicU32;

    /// A sync flushes what was moved before it, once, and says if that failed.
    #[test]
    fn moved_blocks_are_flushed_before_a_sync_names_them() {
        let flushes = PlainArc::new(AtomicU32::new(0));
        let faults = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(10))));
        let count = flushes.clone();
        let device = FlushedDevice::new(faults.clone(), move || {
            count.fetch_add(1, Relaxed);
        });
        let moves = UnflushedMoves::new();
        let sync = || {
            let before = flushes.load(Relaxed);
            let order = moves.sync(&device);
            order.map(|order| {
                assert!(order.is_some(), "nothing moves meanwhile");
                flushes.load(Relaxed) - before
            })
        };
        assert_eq!(sync().unwrap(), 0, "nothing was moved");
        drop(moves.land());
        assert_eq!((sync().unwrap(), sync().unwrap()), (1, 0));
        drop(moves.land());
        drop(moves.land());
        faults.arm(FaultRule::on([Operation::Flush]));
        assert!(sync().is_err());
        assert!(sync().is_err(), "they are no more durable than before");
        moves.freeze();
        assert_eq!(sync().unwrap(), 0, "the checkpoint flushes");
    }
}
