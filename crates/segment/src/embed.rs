//! A manager without a volume: for storage engines that bring their own metadata, for benches and for tests.

use f2fs_format::feature::Features;
use f2fs_format::sit::ENTRIES_PER_BLOCK;
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, Nid, SegmentNo};

use crate::{LogState, SegmentConfig, SegmentError, SegmentManager, SegmentTable};

impl SegmentConfig {
    /// The configuration of a main area of `main_segments` segments that no superblock describes, in sections of
    /// `segs_per_sec`, with nothing reserved. The areas before it have the sizes that mkfs.f2fs would give them; an engine
    /// that has no use for them takes [`main_blkaddr`](Geometry::main_blkaddr) off each address. How much of it users can fill
    /// is said in the [crate's documentation](crate#sizes-and-exhaustion).
    ///
    /// # Errors
    /// [`SegmentError::Config`], if the sections do not make up the segments, six logs do not fit (one section each), or the
    /// addresses need more than 32 bits.
    pub fn embedded(main_segments: u32, segs_per_sec: u32) -> Result<SegmentConfig, SegmentError> {
        let wrong = |what, expected: u64, found: u64| Err(SegmentError::Config { what, expected, found });
        if segs_per_sec == 0 || !main_segments.is_multiple_of(segs_per_sec) {
            return wrong("segments of whole sections", segs_per_sec.into(), main_segments.into());
        }
        if main_segments / segs_per_sec < LogType::ALL.len() as u32 {
            return wrong("sections (at least)", LogType::ALL.len() as u64, (main_segments / segs_per_sec).into());
        }
        let sit_segments = 2 * main_segments.div_ceil(ENTRIES_PER_BLOCK as u32 * BLOCKS_PER_SEGMENT);
        let ssa_segments = main_segments.div_ceil(BLOCKS_PER_SEGMENT);
        // Two segments each for checkpoints and for nodes' addresses; the first of the device holds the superblock.
        let before = 4 + sit_segments + ssa_segments;
        let segments = u64::from(before) + u64::from(main_segments);
        let limit = u64::from(u32::MAX / BLOCKS_PER_SEGMENT) - 1;
        if segments > limit {
            return wrong("segments of all areas (at most)", limit, segments);
        }
        let at = |segment: u32| BlockAddr((1 + segment) * BLOCKS_PER_SEGMENT);
        let geometry = Geometry {
            block_count: (1 + segments) * u64::from(BLOCKS_PER_SEGMENT),
            features: Features(0),
            segment0_blkaddr: at(0),
            cp_blkaddr: at(0),
            sit_blkaddr: at(2),
            nat_blkaddr: at(2 + sit_segments),
            ssa_blkaddr: at(4 + sit_segments),
            main_blkaddr: at(before),
            segment_count: segments as u32,
            sit_segments,
            nat_segments: 2,
            ssa_segments,
            main_segments,
            sections: main_segments / segs_per_sec,
            segs_per_sec,
            secs_per_zone: 1,
            cp_payload: 0,
            root_ino: Nid(3),
        };
        Ok(SegmentConfig::new(geometry, 0, 0))
    }
}

impl LogState {
    /// The six logs of an empty main area: each at the start of the section of its number.
    #[must_use]
    pub fn at_the_start(geometry: &Geometry) -> [LogState; 6] {
        LogType::ALL.map(|log| LogState {
            segment: SegmentNo(u32::from(log.number()) * geometry.segs_per_sec),
            next_offset: 0,
            alloc_type: 0,
            summary: SummaryBlock::new_box(),
        })
    }
}

impl SegmentManager {
    /// A manager of an empty main area.
    ///
    /// # Errors
    /// As [`new`](SegmentManager::new).
    pub fn empty(config: SegmentConfig) -> Result<SegmentManager, SegmentError> {
        let table = SegmentTable::new(config.geometry.main_segments, &[])?;
        let bitmap = vec![0; config.geometry.sit_bitmap_size()];
        let logs = LogState::at_the_start(&config.geometry);
        SegmentManager::open(config, table, bitmap, logs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (segments, per_section, expected) in [(24, 0, 0), (25, 2, 2), (10, 2, 6), (u32::MAX, 1, (1 << 23) - 2)] {
            match SegmentConfig::embedded(segments, per_section) {
                Err(SegmentError::Config { expected: said, .. }) => assert_eq!(said, expected, "{segments}"),
                other => panic!("{segments} in {per_section}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_largest_and_the_smallest_have_room() {
        for (segments, per_section) in [(6, 1), (12, 2), (8_300_000, 1)] {
            let geometry = SegmentConfig::embedded(segments, per_section).unwrap().geometry;
            assert_eq!(geometry.main_end().0, geometry.block_count as u32);
            assert!(geometry.sit_bitmap_size() * 8 >= geometry.sit_blocks() as usize);
        }
        let manager = SegmentManager::empty(SegmentConfig::embedded(12, 2).unwrap()).unwrap();
        assert_eq!((manager.free_segments(), manager.free_sections(), manager.valid_blocks()), (6, 0, 0));
    }
}
