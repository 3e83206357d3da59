//! Which SIT entries a checkpoint must write, and where to.
//!
//! An entry is found on disk in the journal, else in the one of its block's two copies that the version bitmap names.
//! An entry that leaves the journal must therefore be in its block by then, and a block is always written whole, to the
//! copy that the last durable checkpoint does not use.

use std::collections::{BTreeMap, BTreeSet};

use f2fs_format::SegmentNo;
use f2fs_format::bits::msb;
use f2fs_format::sit::{ENTRIES_PER_BLOCK, RawSitEntry, SitBlock};
use f2fs_sync::atomic::{AtomicU64, Ordering};

use crate::map::BlockMap;

/// One bit a segment: its entry differs from what the last checkpoint wrote. Set with the segment's lock held, and only
/// when its own flag goes up, so once for a segment and checkpoint.
#[derive(Debug)]
pub(crate) struct DirtyEntries(Box<[AtomicU64]>);

impl DirtyEntries {
    pub(crate) fn new(segments: u32) -> DirtyEntries {
        DirtyEntries((0..segments.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn mark(&self, segment: SegmentNo) {
        self.0[segment.index() / 64].fetch_or(1 << (segment.0 % 64), Ordering::Relaxed);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Empties the set and hands its members out in ascending order.
    pub(crate) fn take(&self) -> Vec<SegmentNo> {
        let mut taken = Vec::new();
        for (index, word) in (0u32..).zip(&self.0) {
            // A load first: most words of a large volume are zero, and a swap writes to its cache line.
            let mut bits = if word.load(Ordering::Relaxed) == 0 { 0 } else { word.swap(0, Ordering::Relaxed) };
            while bits != 0 {
                taken.push(SegmentNo(index * 64 + bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
        taken
    }
}

/// A block of the table that a checkpoint writes.
#[derive(Clone, Debug)]
pub struct SitBlockWrite {
    /// Its number in the table.
    pub index: u32,
    /// The copy to write.
    pub second: bool,
    /// Its content.
    pub block: Box<SitBlock>,
}

/// A segment whose entry was frozen by a checkpoint that is not durable yet.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) segment: SegmentNo,
    /// Blocks that were taken but not valid: free once the checkpoint is durable.
    pub(crate) freed: BlockMap,
    /// Whether it was prefree.
    pub(crate) prefree: bool,
}

/// What was looked at beside operations, for the next checkpoint: all of it holds but for the segments that are dirty
/// again.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) frozen: BTreeMap<SegmentNo, Frozen>,
    pub(crate) blocks: BTreeMap<u32, Box<SitBlock>>,
}

/// A checkpoint between its two halves.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) frozen: Vec<Frozen>,
    pub(crate) bitmap: Vec<u8>,
    pub(crate) journaled: BTreeSet<SegmentNo>,
    /// The number of the summaries' flush.
    pub(crate) flush: u64,
    /// How many checkpoints had been begun with this one.
    pub(crate) begun: u64,
}

/// Where the entries stand on disk, as of the last durable checkpoint.
#[derive(Debug)]
pub(crate) struct Sit {
    pub(crate) bitmap: Vec<u8>,
    pub(crate) journaled: BTreeSet<SegmentNo>,
    pub(crate) pending: Option<Pending>,
    pub(crate) prepared: Prepared,
}

/// The blocks to write, each with its place.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) journal: Vec<SegmentNo>,
    pub(crate) blocks: Vec<u32>,
}

impl Sit {
    /// Divides the entries that changed, and those that stand in the journal now, between journal and blocks: the
    /// blocks with the fewest of them give theirs to the journal as long as it has room.
    pub(crate) fn plan(&self, changed: impl Iterator<Item = SegmentNo>, capacity: usize) -> Plan {
        let mut groups: BTreeMap<u32, BTreeSet<SegmentNo>> = BTreeMap::new();
        for segment in changed.chain(self.journaled.iter().copied()) {
            groups.entry(place(segment).0).or_default().insert(segment);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, members)| members.len());
        let mut plan = Plan { journal: Vec::new(), blocks: Vec::new() };
        for (block, members) in groups {
            if plan.journal.len() + members.len() <= capacity {
                plan.journal.extend(members);
            } else {
                plan.blocks.push(block);
            }
        }
        plan.journal.sort();
        plan.blocks.sort_unstable();
        plan
    }
}

/// The block of the table that has a segment's entry, and the place in it.
pub(crate) fn place(segment: SegmentNo) -> (u32, usize) {
    (segment.0 / ENTRIES_PER_BLOCK as u32, segment.index() % ENTRIES_PER_BLOCK)
}

/// Builds a block of the table; segments behind the end of the main area are zero.
pub(crate) fn build_block(index: u32, segments: u32, entry: impl Fn(SegmentNo) -> RawSitEntry) -> Box<SitBlock> {
    let mut block = Box::new(SitBlock::ZERO);
    let first = index * ENTRIES_PER_BLOCK as u32;
    for (segment, slot) in (first..segments).zip(&mut block.entries) {
        *slot = entry(SegmentNo(segment));
    }
    block
}

/// The copy of a block that is not in use; the bitmap then says that it is.
pub(crate) fn flip(bitmap: &mut [u8], index: u32) -> bool {
    msb::flip(bitmap, index as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(changed: &[u32], journaled: &[u32], capacity: usize) -> (Vec<u32>, Vec<u32>) {
        let sit = Sit {
            bitmap: Vec::new(),
            journaled: journaled.iter().copied().map(SegmentNo).collect(),
            pending: None,
            prepared: Prepared::default(),
        };
        let plan = sit.plan(changed.iter().copied().map(SegmentNo), capacity);
        (plan.journal.iter().map(|segment| segment.0).collect(), plan.blocks)
    }

    #[test]
    fn the_journal_spares_as_many_blocks_as_it_can() {
        let each = ENTRIES_PER_BLOCK as u32;
        let changed = [0, 1, 2, 3, each, 2 * each + 1];
        assert_eq!(plan(&changed, &[], 6), (changed.to_vec(), vec![]));
        // Four of one block, or one each of two.
        assert_eq!(plan(&changed, &[], 5), (vec![each, 2 * each + 1], vec![0]));
        assert_eq!(plan(&changed, &[], 1), (vec![each], vec![0, 2]));
        assert_eq!(plan(&changed, &[], 0), (vec![], vec![0, 1, 2]));
        // What stands in the journal stays there or goes to its block; each entry once.
        assert_eq!(plan(&[1], &[1, each + 9], 2), (vec![1, each + 9], vec![]));
        assert_eq!(plan(&[1, 2, each], &[each + 9], 2), (vec![1, 2], vec![1]));
    }

    #[test]
    fn entries_and_blocks_come_in_ascending_order() {
        let each = ENTRIES_PER_BLOCK as u32;
        assert_eq!(plan(&[5, 4, 2 * each], &[], 3), (vec![4, 5, 2 * each], vec![]));
        assert_eq!(plan(&[0, 1, 2, each, each + 1, 2 * each], &[], 0), (vec![], vec![0, 1, 2]));
    }

    #[test]
    fn changed_entries_are_counted_and_taken_once() {
        let dirty = DirtyEntries::new(200);
        for segment in [199, 0, 63, 64, 63] {
            dirty.mark(SegmentNo(segment));
        }
        assert_eq!(dirty.count(), 4);
        assert_eq!(dirty.take(), [0, 63, 64, 199].map(SegmentNo));
        assert_eq!((dirty.count(), dirty.take()), (0, vec![]));
    }

    #[test]
    fn a_block_ends_with_the_main_area() {
        let mut entry = RawSitEntry::ZERO;
        entry.set_blocks(f2fs_format::LogType::WarmData, 0);
        let first = ENTRIES_PER_BLOCK as u32;
        let block = build_block(1, first + 3, |segment| {
            assert!((first..first + 3).contains(&segment.0));
            entry
        });
        assert!(block.entries[..3].iter().all(|known| *known == entry));
        assert!(block.entries[3..].iter().all(|behind| *behind == RawSitEntry::ZERO));
        let mut bitmap = [0];
        assert_eq!([flip(&mut bitmap, 1), flip(&mut bitmap, 1), flip(&mut bitmap, 0)], [true, false, true]);
        assert_eq!(bitmap, [0x80]);
    }
}
