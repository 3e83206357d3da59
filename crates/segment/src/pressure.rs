//! The dirty blocks that a checkpoint would have to write, as the owner of the segments told them last
//! (`thresholds.rs`).

use f2fs_sync::atomic::{AtomicU32, Ordering};

/// The dirty blocks that a checkpoint would have to write.
#[derive(Debug)]
pub(crate) struct Pressure {
    pub(crate) dirty_nodes: AtomicU32,
    pub(crate) dirty_dents: AtomicU32,
    pub(crate) user_floor: u32,
}

impl Pressure {
    pub(crate) fn new(user_floor: u32) -> Pressure {
        Pressure { dirty_nodes: AtomicU32::new(0), dirty_dents: AtomicU32::new(0), user_floor }
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.dirty_nodes.load(Ordering::Relaxed)
    }

    pub(crate) fn dents(&self) -> u32 {
        self.dirty_dents.load(Ordering::Relaxed)
    }
}
