//! A manager without a volume: for storage engines that bring their own metadata, for benches and for tests.

use core::error::Error;

use f2fs_format::bits;
use f2fs_format::feature::Features;
use f2fs_format::sit::{ENTRIES_PER_BLOCK, SitBlock};
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, Nid, SegmentNo};

use crate::{LogState, SegmentConfig, SegmentError, SegmentManager, SegmentTable};

impl SegmentConfig {
    /// The configuration of a main area of `main_segments` segments that no superblock describes, in sections of
    /// `segs_per_sec`, with nothing reserved. The areas before it have the sizes that mkfs.f2fs would give them; an
    /// engine that has no use for them takes [`main_blkaddr`](Geometry::main_blkaddr) off each address. How much of it
    /// users can fill is said in the [crate's documentation](crate#sizes-and-exhaustion).
    ///
    /// # Errors
    /// [`SegmentError::Config`], if the sections do not make up the segments, six logs do not fit (one section each),
    /// or the addresses need more than 32 bits.
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

impl LogState {
    /// Where the log stands, as 8 bytes for an owner's checkpoint record. The summary, which goes there too, is a block
    /// of its own.
    #[must_use]
    pub fn position(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.segment.0.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.next_offset.to_le_bytes());
        bytes[6] = self.alloc_type;
        bytes
    }

    /// The log that stood at a [`position`](Self::position), with its summary. A position that makes no sense is found
    /// by [`SegmentManager::load`].
    #[must_use]
    pub fn from_position([s0, s1, s2, s3, n0, n1, alloc_type, _]: [u8; 8], summary: Box<SummaryBlock>) -> LogState {
        LogState {
            segment: SegmentNo(u32::from_le_bytes([s0, s1, s2, s3])),
            next_offset: u16::from_le_bytes([n0, n1]),
            alloc_type,
            summary,
        }
    }
}

impl SegmentManager {
    /// The manager that a checkpoint record describes, for an owner that keeps the table where [`Geometry::sit_block`]
    /// says: `read` is asked for the current copy of each block, in ascending order. The SIT journal is that in the
    /// summary of the cold-data log; a table of many segments is loaded faster by [`SegmentTable`], on several threads.
    ///
    /// # Errors
    /// [`SegmentError::Table`] if `read` fails; otherwise as [`open`](SegmentManager::open).
    pub fn load<E: Into<Box<dyn Error + Send + Sync>>>(
        config: SegmentConfig,
        sit_bitmap: Vec<u8>,
        logs: [LogState; 6],
        mut read: impl FnMut(BlockAddr) -> Result<Box<SitBlock>, E>,
    ) -> Result<SegmentManager, SegmentError> {
        let geometry = &config.geometry;
        let journal = logs[LogType::ColdData.index()].summary.journal.sit_entries().unwrap_or_default();
        let table = SegmentTable::new(geometry.main_segments, &journal)?;
        for index in 0..geometry.sit_blocks() {
            let second = sit_bitmap.len() as u64 * 8 > u64::from(index) && bits::msb::test(&sit_bitmap, index as usize);
            let addr = geometry.sit_block(index, second);
            let block = read(addr).map_err(|source| SegmentError::Table { addr, source: source.into() })?;
            let first = index * ENTRIES_PER_BLOCK as u32;
            let here = (geometry.main_segments.saturating_sub(first) as usize).min(ENTRIES_PER_BLOCK);
            table.load(SegmentNo(first), &block.entries[..here])?;
        }
        SegmentManager::open(config, table, sit_bitmap, logs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_comes_back_from_what_its_checkpoint_wrote() -> Result<(), SegmentError> {
        use f2fs_format::summary::Summary;
        // More segments than one block of the table has entries.
        let config = || SegmentConfig::embedded(120, 1);
        let manager = SegmentManager::empty(config()?)?;
        let mut runs = Vec::new();
        for nid in 0..60 {
            let summaries: Vec<Summary> = (0..1000).map(|slot| Summary::new(Nid(nid + 5), 0, slot)).collect();
            manager.allocate(LogType::WarmData, &summaries[..700], 1, &mut runs)?;
        }
        let flush = manager.begin_checkpoint(0)?;
        let geometry = config()?.geometry;
        let read = |addr: BlockAddr| {
            let written = flush.sit_blocks.iter().find(|write| geometry.sit_block(write.index, write.second) == addr);
            Ok::<_, SegmentError>(written.map_or(Box::new(SitBlock::ZERO), |write| write.block.clone()))
        };
        let logs = || flush.logs.each_ref().map(|log| LogState::from_position(log.position(), log.summary.clone()));
        // Three blocks of the table need three bits.
        let again = SegmentManager::load(config()?, flush.sit_bitmap[..1].to_vec(), logs(), read)?;
        assert_eq!((again.valid_blocks(), again.free_segments()), (42_000, manager.free_segments()));
        assert_eq!(again.next_block(LogType::WarmData), manager.next_block(LogType::WarmData));
        assert!(runs.iter().all(|run| again.is_valid(run.addr)));
        let fails = SegmentManager::load(config()?, flush.sit_bitmap.clone(), logs(), |_| Err("unreadable"));
        assert!(matches!(fails, Err(SegmentError::Table { addr, .. }) if geometry.sit_block(0, true) == addr));
        Ok(())
    }

    #[test]
    fn a_log_comes_back_from_its_position() {
        let log = LogState {
            segment: SegmentNo(0x0102_0304),
            next_offset: 0x1ff,
            alloc_type: 1,
            summary: SummaryBlock::new_box(),
        };
        assert_eq!(log.position(), [4, 3, 2, 1, 0xff, 1, 1, 0]);
        let again = LogState::from_position(log.position(), log.summary.clone());
        assert_eq!(
            (again.segment, again.next_offset, again.alloc_type),
            (log.segment, log.next_offset, log.alloc_type)
        );
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (segments, per_section, expected) in [(24, 0, 0), (25, 2, 2), (10, 2, 6), (u32::MAX, 1, (1 << 23) - 2)] {
            match SegmentConfig::embedded(segments, per_section) {
                Err(SegmentError::Config { expected: said, .. }) => assert_eq!(said, expected, "{segments}"),
                other => panic!("{segments} in {per_section}: {other:?}"),
            }
        }
    }

    /// All segments that have addresses can be used, and no other one.
    #[test]
    fn the_largest_has_all_segments_that_have_addresses() {
        let most = (1 << 23) - 2;
        let (mut fits, mut too_many) = (most / 2, most);
        while too_many - fits > 1 {
            let middle = u32::midpoint(fits, too_many);
            *if SegmentConfig::embedded(middle, 1).is_ok() { &mut fits } else { &mut too_many } = middle;
        }
        let geometry = SegmentConfig::embedded(fits, 1).unwrap().geometry;
        assert_eq!(geometry.segment_count, most);
        assert_eq!(u64::from(geometry.main_end().0), (1 << 32) - 512);
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

    #[test]
    fn the_areas_lie_one_behind_the_other_and_have_room_for_their_tables() {
        for main_segments in [6, 28_160, 28_161, 60_000, 1_000_000] {
            let geometry = SegmentConfig::embedded(main_segments, 1).unwrap().geometry;
            let segment = |addr: BlockAddr| {
                assert!(addr.0.is_multiple_of(BLOCKS_PER_SEGMENT));
                addr.0 / BLOCKS_PER_SEGMENT
            };
            let starts = [
                geometry.cp_blkaddr,
                geometry.sit_blkaddr,
                geometry.nat_blkaddr,
                geometry.ssa_blkaddr,
                geometry.main_blkaddr,
                geometry.main_end(),
            ]
            .map(segment);
            let sizes =
                [2, geometry.sit_segments, geometry.nat_segments, geometry.ssa_segments, geometry.main_segments];
            assert_eq!(starts[0], 1, "behind the superblock's");
            for (at, size) in sizes.into_iter().enumerate() {
                assert_eq!(starts[at + 1] - starts[at], size, "area {at} of {main_segments} segments");
            }
            // The table stands there twice, with an entry for each segment; a summary has a block.
            assert!(geometry.sit_blocks() <= geometry.sit_segments / 2 * BLOCKS_PER_SEGMENT);
            assert!(geometry.sit_segments / 2 * BLOCKS_PER_SEGMENT * ENTRIES_PER_BLOCK as u32 >= main_segments);
            assert!(geometry.ssa_segments * BLOCKS_PER_SEGMENT >= main_segments);
        }
    }
}
