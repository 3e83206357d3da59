//! Changing address slots of a volume's nodes: the new address in, the old block freed.
//!
//! Every such change is one call of [`f2fs_segment::switch_slots`], here or by a [`Flight`](crate::Flight) that lands.

use core::ops::Range;

use f2fs_format::BlockAddr;
use f2fs_segment::{Change, Displaced, switch_slots};

use crate::{Node, Op, Volume, VolumeError};

/// The address slots of nodes: [`Volume::slots`].
#[derive(Clone, Copy, Debug)]
pub struct Slots<'a>(pub(crate) &'a Volume);

impl Slots<'_> {
    /// Changes slots of a node, and frees the blocks that they do not name any more; reservations stay. `change`
    /// decides for each slot, and `named` is told the new address of each one that was changed. Both are called with
    /// the node's page locked.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that an old block was not in use; the slots are changed all the same.
    pub fn change(
        self,
        op: &Op<'_>,
        node: &Node,
        slots: Range<usize>,
        change: impl FnMut(usize, BlockAddr) -> Change,
        named: impl FnMut(usize, BlockAddr),
    ) -> Result<(), VolumeError> {
        op.expect_of(self.0);
        let mut displaced = Displaced::default();
        switch_slots(|| node.write(op), slots, self.0.features(), change, &mut displaced, named);
        self.0.attached_journal.forget(node.ino(), &displaced);
        self.free_displaced(&mut displaced)
    }

    /// Makes holes: what the slots held is free, blocks and reservations (`NEW_ADDR`). `named` is told of each that was
    /// no hole, with the page locked. Returns how many these were; a node without any does not become dirty.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub fn clear(
        self,
        op: &Op<'_>,
        node: &Node,
        slots: Range<usize>,
        mut named: impl FnMut(usize, BlockAddr),
    ) -> Result<u64, VolumeError> {
        op.expect_of(self.0);
        let named_slots = node.read().named_slots(slots, self.0.features());
        if named_slots.is_empty() {
            return Ok(0);
        }
        let clear = |_, old: BlockAddr| if old.is_null() { Change::Keep } else { Change::To(BlockAddr::NULL) };
        let mut cleared = 0;
        let freed = self.change(op, node, named_slots, clear, |slot, addr| {
            cleared += 1;
            named(slot, addr);
        });
        freed?;
        self.0.space.give_blocks(cleared);
        Ok(cleared)
    }

    /// Takes blocks out of use that slots named.
    pub(crate) fn free_displaced(self, displaced: &mut Displaced) -> Result<(), VolumeError> {
        if displaced.is_empty() {
            return Ok(());
        }
        let now = self.0.clock.now();
        displaced.take().try_for_each(|run| self.0.segments.invalidate_run(run, now))
    }
}
