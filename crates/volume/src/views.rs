//! Accessors for the views of a volume: its operations by subject.
//!
//! The state of a volume stands in `volume.rs` and in the parts below it. A view has none: it is the volume, with the
//! operations of one subject, which stand in the view's own file.

use crate::balance::Balance;
use crate::checkpoint::Checkpoints;
use crate::cleaner::Cleaning;
use crate::data_blocks::DataBlocks;
use crate::journaling::Journaling;
use crate::nids::Nids;
use crate::nodes::Nodes;
use crate::recovery::Recovery;
use crate::slots::Slots;
use crate::sync::Syncs;
use crate::volume::Volume;

impl Volume {
    /// Nodes by their NIDs: finding, making, freeing them.
    #[must_use]
    #[inline]
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes(self)
    }

    /// Data blocks: reserving and reading them. They are written by a [`Flight`](crate::Flight).
    #[must_use]
    #[inline]
    pub fn data(&self) -> DataBlocks<'_> {
        DataBlocks(self)
    }

    /// Address slots of nodes: the new address in, the old block freed.
    #[must_use]
    #[inline]
    pub fn slots(&self) -> Slots<'_> {
        Slots(self)
    }

    /// Node IDs: what can be allocated, and the work of their allocator.
    #[must_use]
    #[inline]
    pub fn nids(&self) -> Nids<'_> {
        Nids(self)
    }

    /// When a checkpoint or a cleaning is due.
    #[must_use]
    #[inline]
    pub fn balance(&self) -> Balance<'_> {
        Balance(self)
    }

    /// Checkpoints: all changes durable, or none.
    #[must_use]
    #[inline]
    pub fn checkpoints(&self) -> Checkpoints<'_> {
        Checkpoints(self)
    }

    /// Syncs of single files.
    #[must_use]
    #[inline]
    pub fn syncs(&self) -> Syncs<'_> {
        Syncs(self)
    }

    /// The cleaner: free segments out of segments with few valid blocks.
    #[must_use]
    #[inline]
    pub fn cleaning(&self) -> Cleaning<'_> {
        Cleaning(self)
    }

    /// The journal that syncs go to, if there is one.
    #[must_use]
    #[inline]
    pub fn journal(&self) -> Journaling<'_> {
        Journaling(self)
    }

    /// Recovery of what was synced after the last checkpoint.
    #[must_use]
    #[inline]
    pub fn recovery(&self) -> Recovery<'_> {
        Recovery(self)
    }
}
