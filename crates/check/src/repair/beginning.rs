//! What a repair begins with: the device, and what was decided before the tables are read.

use f2fs_device::BlockDevice;
use f2fs_sync::PlainArc;

use super::overlay::Overlay;

/// What a repair begins with.
pub(super) struct Beginning {
    /// The device, with the blocks that were put back.
    pub(super) overlay: Overlay,
    /// What was decided, if there was something to decide.
    pub(super) actions: Vec<String>,
}

impl Beginning {
    /// The device as it is.
    pub(super) fn new(device: &PlainArc<dyn BlockDevice>) -> Beginning {
        Beginning { overlay: Overlay::new(device.clone()), actions: Vec::new() }
    }
}
