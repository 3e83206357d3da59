//! Where a block's new place and its owner's address slot meet: overwriting against moving.
//!
//! A writer and a cleaner may both be about to give a block a new place. Each writes its copy first, and only then changes the
//! address slot, under the lock of the node's page. Whoever comes second sees what the first one left:
//!
//! ```text
//!   writer:  write new at W ...... lock page { old = slot; slot = W }  invalidate old
//!   cleaner: copy F to T ......... lock page { slot == F ? slot = T }  yes: invalidate F     no: invalidate T
//! ```
//!
//! So exactly the places that no slot names become invalid, each once, in either order. A writer must not invalidate what it
//! read from the slot before it wrote: that may have moved. `F` is not written again before the next durable checkpoint, so
//! who reads it by an address that it has looked up keeps reading the right bytes until it leaves the gate.

use core::ops::DerefMut;

use f2fs_format::BlockAddr;
use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_sync::mutant;

use crate::{Run, SegmentError, SegmentManager};

impl SegmentManager {
    /// Finishes a move from `from` to `to`: the slot gets `to` if it still holds `from`, and the place that lost is freed.
    /// `lock` locks the node's page. Tells whether the block moved.
    ///
    /// # Errors
    /// [`SegmentError::NotValid`] if SIT and node contradict each other.
    pub fn switch_slot<G: DerefMut<Target = NodeBlock>>(
        &self,
        lock: impl FnOnce() -> G,
        slot: usize,
        (from, to): (BlockAddr, BlockAddr),
        features: Features,
        now: u64,
    ) -> Result<bool, SegmentError> {
        let moved = {
            let mut page = lock();
            let holds = page.address(slot, features) == Some(from) || mutant("segment_move_ignores_overwrite");
            if holds {
                page.set_address(slot, to, features);
            }
            holds
        };
        self.invalidate(if moved { from } else { to }, now)?;
        Ok(moved)
    }

    /// Finishes an overwrite: the slots from `first` on get the addresses of `fresh`, and what they held until then is freed.
    /// `lock` locks the node's page. Holes and reservations (`NEW_ADDR`) are nothing to free.
    ///
    /// # Errors
    /// [`SegmentError::NotValid`] if SIT and node contradict each other; the slots are changed all the same.
    pub fn overwrite_slots<G: DerefMut<Target = NodeBlock>>(
        &self,
        lock: impl Fn() -> G,
        first: usize,
        fresh: &[BlockAddr],
        features: Features,
        now: u64,
    ) -> Result<(), SegmentError> {
        let mut runs: Vec<Run> = Vec::new();
        let read = |page: &NodeBlock, slot| page.address(slot, features).unwrap_or(BlockAddr::NULL);
        let early = mutant("segment_overwrite_reads_early").then(|| read(&lock(), first));
        {
            let mut page = lock();
            for (slot, addr) in (first..).zip(fresh) {
                let old = early.unwrap_or_else(|| read(&page, slot));
                page.set_address(slot, *addr, features);
                if old.is_real() {
                    match runs.last_mut() {
                        Some(last) if last.addr.offset(last.len) == old => last.len += 1,
                        _ => runs.push(Run { addr: old, len: 1 }),
                    }
                }
            }
        }
        runs.into_iter().try_for_each(|run| self.invalidate_run(run, now))
    }
}
