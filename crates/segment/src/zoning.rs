//! How much of the main area can be written, and in which order: on zones, not all of a section, and from its start to
//! its end.

use f2fs_format::feature::Features;
use f2fs_format::{BLOCKS_PER_SEGMENT, Geometry, SegmentNo};

/// The blocks of each section that can be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zoning {
    segs_per_sec: u32,
    /// Blocks of a section that can be written, from its start on.
    capacity: u32,
    /// Whether sections are zones: each is written from its start to its end, and begun again when all of it is free.
    pub(crate) in_order: bool,
}

impl Zoning {
    /// `capacity`: the blocks of each section that can be written, if not all.
    pub(crate) fn new(geometry: &Geometry, capacity: Option<u32>) -> Zoning {
        let blocks = geometry.segs_per_sec.saturating_mul(BLOCKS_PER_SEGMENT);
        Zoning {
            segs_per_sec: geometry.segs_per_sec,
            capacity: capacity.unwrap_or(blocks).clamp(1, blocks),
            in_order: geometry.features.contains(Features::BLKZONED),
        }
    }

    /// Blocks that can be written of a section.
    pub(crate) fn section(&self) -> u32 {
        self.capacity
    }

    /// Blocks that may be in use in a section, at most: those behind its capacity, too, which a kernel before 6.4 wrote
    /// where no zone is.
    pub(crate) fn largest_section(&self) -> u32 {
        self.segs_per_sec.saturating_mul(BLOCKS_PER_SEGMENT)
    }

    /// Segments of a section in which a block can be written.
    pub(crate) fn segments(&self) -> u32 {
        self.capacity.div_ceil(BLOCKS_PER_SEGMENT)
    }

    /// Blocks of a segment that can be written, from its start on.
    pub(crate) fn segment(&self, segment: SegmentNo) -> u32 {
        let before = segment.0 % self.segs_per_sec * BLOCKS_PER_SEGMENT;
        self.capacity.saturating_sub(before).min(BLOCKS_PER_SEGMENT)
    }

    /// Whether a zone begins with a segment.
    pub(crate) fn begins_zone(&self, segment: SegmentNo) -> bool {
        self.in_order && segment.0.is_multiple_of(self.segs_per_sec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::geometry;

    #[test]
    fn a_capacity_cuts_the_end_of_each_section() {
        let geometry = geometry(24, 4, 1);
        let zoning = Zoning::new(&geometry, Some(1100));
        let usable = |section: u32| [0, 1, 2, 3].map(|at| zoning.segment(SegmentNo(4 * section + at)));
        assert_eq!((usable(0), usable(1)), ([512, 512, 76, 0], [512, 512, 76, 0]));
        assert_eq!((zoning.section(), zoning.segments(), zoning.largest_section()), (1100, 3, 2048));
        let all = Zoning::new(&geometry, None);
        assert_eq!((all.section(), all.segments(), all.segment(SegmentNo(7))), (2048, 4, 512));
        assert_eq!(Zoning::new(&geometry, Some(u32::MAX)).section(), 2048);
    }
}
