//! Where a block's new place and the address slot that names it meet: [`switch_slots`]. Nothing else has a slot of a
//! node name another block while the volume runs. (A directory that leaves its inode reserves slots that named
//! nothing.)
//!
//! A writer and a cleaner may both be about to give a block a new place. Each writes its copy first, and only then
//! changes the address slot, under the lock of the node's page. The second of the two sees the slot as the first left
//! it:
//!
//! ```text
//!   writer:  write new at W ...... lock page { old = slot; slot = W }  invalidate old
//!   cleaner: copy F to T ......... lock page { slot == F ? slot = T }  yes: invalidate F     no: invalidate T
//! ```
//!
//! So exactly the places that no slot names become invalid, each once, in either order. A writer must not invalidate an
//! address that it read from the slot before it wrote: the block may have moved. `F` is not written again before the
//! next durable checkpoint. So a reader that has looked up its address reads the right bytes until it leaves the gate.
//!
//! The pages are unlocked when blocks are invalidated: [`Displaced`] takes the addresses from one to the other.

use core::ops::{DerefMut, Range};

use f2fs_format::BlockAddr;
use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_sync::protocol_value;

use crate::Run;

/// The change of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is.
    Keep,
    /// From now on it names this block, or none ([`BlockAddr::NULL`], [`BlockAddr::NEW`]).
    To(BlockAddr),
    /// A block moves: the slot names `to` if it names `from` until then. Somebody was quicker otherwise, and `to` is
    /// not needed.
    Move {
        /// Where the block was when it was copied.
        from: BlockAddr,
        /// Where its copy is.
        to: BlockAddr,
    },
}

/// Blocks that no slot names any more, and that have to be invalidated: runs in the order in which they came.
#[derive(Debug, Default)]
#[must_use = "blocks that no slot names have to be invalidated"]
pub struct Displaced {
    /// The last run; the ones before it. Most writes displace one run, and need no list for it.
    last: Option<Run>,
    before: Vec<Run>,
}

impl Displaced {
    /// Adds a block. [`BlockAddr::NULL`] and [`BlockAddr::NEW`] are no blocks.
    #[inline]
    pub fn add(&mut self, addr: BlockAddr) {
        if !addr.is_real() {
            return;
        }
        match &mut self.last {
            Some(run) if run.addr.offset(run.len) == addr => run.len += 1,
            last => self.before.extend(last.replace(Run { addr, len: 1 })),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The runs.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.before.iter().copied().chain(self.last)
    }

    /// Takes the runs.
    pub fn take(&mut self) -> impl Iterator<Item = Run> + use<> {
        core::mem::take(&mut self.before).into_iter().chain(self.last.take())
    }
}

/// Gives slots of one node new addresses, under the lock of its page, and adds what they do not name any more to
/// `displaced`.
///
/// `lock` locks the page. `change` decides for each slot, by its number and its address. `named` is told the new
/// address of each slot that was changed. Both are called with the page locked.
#[inline]
pub fn switch_slots<G: DerefMut<Target = NodeBlock>>(
    mut lock: impl FnMut() -> G,
    slots: Range<usize>,
    features: Features,
    mut change: impl FnMut(usize, BlockAddr) -> Change,
    displaced: &mut Displaced,
    mut named: impl FnMut(usize, BlockAddr),
) {
    let read = |page: &NodeBlock, slot| page.address(slot, features).unwrap_or(BlockAddr::NULL);
    let early = protocol_value!("segment_overwrite_reads_early", None, Some(read(&lock(), slots.start)));
    let mut page = lock();
    for slot in slots {
        let old = read(&page, slot);
        let (to, old) = match change(slot, old) {
            Change::Keep => continue,
            Change::To(to) => (to, early.unwrap_or(old)),
            Change::Move { from, to } if protocol_value!("segment_move_ignores_overwrite", from == old, true) => {
                (to, from)
            }
            Change::Move { to, .. } => {
                displaced.add(to);
                continue;
            }
        };
        page.set_address(slot, to, features);
        named(slot, to);
        displaced.add(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::{RefCell, RefMut};
    use f2fs_format::Nid;

    fn run(addr: u32, len: u32) -> Run {
        Run { addr: BlockAddr(addr), len }
    }

    #[test]
    fn displaced_blocks_are_runs_in_the_order_in_which_they_came() {
        let mut displaced = Displaced::default();
        assert!(displaced.is_empty());
        for addr in [BlockAddr::NULL, BlockAddr::NEW] {
            displaced.add(addr);
        }
        assert!(displaced.is_empty() && displaced.runs().next().is_none());
        for addr in [700, 701, 702, 600, 601, 603, 602] {
            displaced.add(BlockAddr(addr));
        }
        let expected = [run(700, 3), run(600, 2), run(603, 1), run(602, 1)];
        assert!(!displaced.is_empty());
        assert!(displaced.runs().eq(expected));
        assert!(displaced.take().eq(expected));
        assert!(displaced.is_empty() && displaced.take().next().is_none());
    }

    #[test]
    fn a_slot_gets_its_address_and_what_it_named_is_displaced() {
        let features = Features(0);
        let mut node = NodeBlock::new_box();
        // A direct node: one of another inode.
        (node.footer.nid, node.footer.ino) = (Nid(9).into(), Nid(8).into());
        for slot in 0..4 {
            node.set_address(slot, BlockAddr(100 + slot as u32), features);
        }
        let page = RefCell::new(node);
        let lock = || RefMut::map(page.borrow_mut(), |node| &mut **node);
        let (mut displaced, mut named) = (Displaced::default(), Vec::new());
        let change = |slot, old| match slot {
            0 => Change::Keep,
            1 => Change::To(BlockAddr(900)),
            2 => Change::Move { from: old, to: BlockAddr(901) },
            // Somebody was quicker.
            _ => Change::Move { from: BlockAddr(77), to: BlockAddr(902) },
        };
        switch_slots(lock, 0..4, features, change, &mut displaced, |slot, to| named.push((slot, to)));
        let now: Vec<u32> = (0..4).map(|slot| page.borrow().address(slot, features).unwrap().0).collect();
        assert_eq!(now, [100, 900, 901, 103]);
        assert_eq!(named, [(1, BlockAddr(900)), (2, BlockAddr(901))]);
        assert!(displaced.runs().eq([run(101, 2), run(902, 1)]));
    }
}
