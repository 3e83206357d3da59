//! Holes and the valid runs between them, in the order in which a log meets them.

use f2fs_format::BLOCKS_PER_SEGMENT;

use crate::map::BlockMap;

/// The valid blocks between two holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gap {
    /// A run of so many blocks that are in use.
    Valid(u32),
    /// The end of a segment: the next hole is elsewhere on the device.
    Break,
}

impl Gap {
    /// Blocks in use.
    #[must_use]
    pub const fn blocks(self) -> u32 {
        match self {
            Gap::Valid(blocks) => blocks,
            Gap::Break => 0,
        }
    }
}

/// Blocks of a layout at most: 4 TiB.
const MOST: u32 = 1 << 30;

/// Holes and gaps in turn, with a hole at both ends, of up to 2^30 blocks in all. Blocks behind them are left out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    holes: Vec<u32>,
    gaps: Vec<Gap>,
    /// Those of both.
    blocks: u32,
}

impl Layout {
    /// No hole at all.
    #[must_use]
    pub fn new() -> Layout {
        Layout::default()
    }

    /// Appends a gap and a hole; the gap is left out before the first hole. Empty holes and runs are not allowed in a
    /// layout: an empty hole adds nothing, an empty run joins two holes.
    pub fn push(&mut self, gap: Gap, hole: u32) {
        let gap_blocks = if self.holes.is_empty() { 0 } else { gap.blocks() };
        let blocks = self.blocks.saturating_add(gap_blocks).saturating_add(hole);
        if hole == 0 || blocks > MOST {
            return;
        }
        self.blocks = blocks;
        match self.holes.last_mut() {
            None => self.holes.push(hole),
            Some(last) if gap == Gap::Valid(0) => *last += hole,
            Some(_) => {
                self.gaps.push(gap);
                self.holes.push(hole);
            }
        }
    }

    /// Appends the holes of a segment from block `from` on, given the blocks that are taken in it.
    pub fn push_segment(&mut self, taken: &BlockMap, from: u32) {
        let mut gap = Gap::Break;
        let mut at = from;
        while let Some(start) = taken.next(at, false) {
            let end = taken.next(start, true).unwrap_or(BLOCKS_PER_SEGMENT);
            if gap != Gap::Break {
                gap = Gap::Valid(start - at);
            }
            self.push(gap, end - start);
            (gap, at) = (Gap::Valid(0), end);
        }
    }

    /// The holes, in blocks: one more than there are gaps, or none.
    #[must_use]
    pub fn holes(&self) -> &[u32] {
        &self.holes
    }

    /// The valid blocks between them.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Blocks of all holes and gaps.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Blocks of all holes.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.holes.iter().map(|hole| u64::from(*hole)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_becomes_holes_and_gaps() {
        let mut taken = BlockMap::EMPTY;
        taken.insert(0, 4);
        taken.insert(10, 3);
        taken.insert(500, 12);
        let mut layout = Layout::new();
        layout.push_segment(&taken, 0);
        assert_eq!((layout.holes(), layout.gaps()), (&[6, 487][..], &[Gap::Valid(3)][..]));
        layout.push_segment(&taken, 12);
        assert_eq!(layout.holes(), [6, 487, 487]);
        assert_eq!(layout.gaps(), [Gap::Valid(3), Gap::Break]);
        assert_eq!(layout.room(), 980);
        let mut full = BlockMap::EMPTY;
        full.insert(0, 512);
        layout.push_segment(&full, 0);
        assert_eq!(layout.room(), 980);
    }

    #[test]
    fn a_layout_has_so_many_blocks_and_no_more() {
        let mut layout = Layout::new();
        // In front of the first hole there is no gap.
        layout.push(Gap::Valid(u32::MAX), MOST - 10);
        layout.push(Gap::Valid(0), 3);
        layout.push(Gap::Valid(4), 0);
        layout.push(Gap::Valid(4), 4);
        assert_eq!((layout.holes(), layout.gaps()), (&[MOST - 7][..], &[][..]));
        layout.push(Gap::Valid(4), 3);
        assert_eq!((layout.holes(), layout.gaps()), (&[MOST - 7, 3][..], &[Gap::Valid(4)][..]));
        assert_eq!((layout.blocks(), layout.room()), (MOST, u64::from(MOST) - 4));
        layout.push(Gap::Break, 1);
        assert_eq!(layout.blocks(), MOST);
    }
}
