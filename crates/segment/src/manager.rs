//! The segment manager: construction, and the state that it reports.
//!
//! # Locking
//!
//! The manager holds all locks of the crate. In their order, which the crate's documentation has as well:
//!
//! | Field | a lock protects | held |
//! |---|---|---|
//! | `sit` | where the entries stand on the device, the pending checkpoint, what was prepared for the next one | for all of `prepare_checkpoint`, `begin_checkpoint`, `end_checkpoint` |
//! | `lanes` | one lane each: its segment, the next block, the summary; or that it is closed | for one allocation |
//! | `heads` | one log each: the same | for one allocation, and to copy its state |
//! | `index` | the dirty segments by room, sections by cost and age | to find a segment or a victim, and to mark it |
//! | `states` | one segment each: its maps, counts, age and phase; and the first use of a segment (`states.rs`) | to take a run, to free blocks, to look |
//! | `free`, `changed`, `retired` | what their files say | for one change |
//!
//! - No two heads are held at once, nor two lanes, nor two segments, nor two of the last row. A lane may be held when a
//!   head is locked (`on_lane.rs`), not the other way round.
//! - A head or lane stays locked while its log changes its segment, in all steps: the new segment is claimed, the old
//!   summary is put aside, and only then does the old segment get another phase. While the summary of a segment with
//!   holes is read from the device ([`SummarySource`]) the head or lane is held, and nothing else.
//! - [`summary`](SegmentManager::summary) looks at one place after the other, and holds one lock at a time. Its order
//!   is the way that a summary goes when a log leaves.
//! - `dirty` has a bit for each segment, set with that segment's lock held. `valid`, `prefree`, `begun`, `durable` and
//!   `pressure` are atomics, read without a lock: reports, thresholds, and numbers of checkpoints.

use std::collections::BTreeSet;

use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, SegmentNo};
use f2fs_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use f2fs_sync::{CachePadded, Mutex, MutexGuard, PlainArc, ShardedCounter, protocol_value};

use crate::config::SummarySource;
use crate::free::FreeSpace;
use crate::head::{Head, LogState};
use crate::index::{Changed, Index};
use crate::lanes::Lanes;
use crate::opening::{Found, check_sizes, equal, note_journaled, take_logs};
use crate::pressure::Pressure;
use crate::retired::Retired;
use crate::segment::Segment;
use crate::sit::{DirtyEntries, Prepared, Sit};
use crate::states::States;
use crate::zoning::Zoning;
use crate::{SegmentConfig, SegmentError, SegmentInfo, SegmentTable};

/// The state of the main area: which blocks are valid, where each log writes, which segments are free, dirty or
/// prefree.
///
/// Planning only: it reads and writes nothing itself. See the crate's documentation for the locking model, and
/// [`allocate`](SegmentManager::allocate), [`invalidate`](SegmentManager::invalidate),
/// [`begin_checkpoint`](SegmentManager::begin_checkpoint) for the three things that it does.
#[derive(Debug)]
pub struct SegmentManager {
    pub(crate) geometry: Geometry,
    pub(crate) reserved_segments: u32,
    overprovision_segments: u32,
    pub(crate) source: Option<Source>,
    /// Whether logs may go on in segments with valid blocks, to fill their holes.
    pub(crate) may_fill: bool,
    pub(crate) states: States,
    pub(crate) zoning: Zoning,
    pub(crate) may_write_aside: bool,
    heads: [CachePadded<Mutex<Head>>; 6],
    pub(crate) lanes: Lanes,
    pub(crate) free: FreeSpace,
    pub(crate) changed: Changed,
    pub(crate) index: Mutex<Index>,
    pub(crate) retired: Retired,
    pub(crate) dirty: DirtyEntries,
    pub(crate) sit: Mutex<Sit>,
    /// Valid blocks.
    pub(crate) valid: ShardedCounter,
    pub(crate) prefree: CachePadded<AtomicU32>,
    /// Checkpoints begun, and how many had been when the last durable one had just begun. Both count the one that was
    /// opened.
    pub(crate) begun: CachePadded<AtomicU64>,
    pub(crate) durable: AtomicU64,
    pub(crate) pressure: CachePadded<Pressure>,
}

/// A summary source that can be printed.
pub(crate) struct Source(pub(crate) PlainArc<dyn SummarySource>);

impl core::fmt::Debug for Source {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SummarySource")
    }
}

impl SegmentManager {
    /// Takes over the state that a checkpoint describes.
    ///
    /// `entries` holds one SIT entry for each main segment, the journal applied; `sit_bitmap` is the SIT version bitmap
    /// of the checkpoint (most significant bit first, set: the second copy is in use); `logs` are in the order of their
    /// numbers.
    ///
    /// # Errors
    /// Every contradiction between the table, the logs and the geometry ([`SegmentError`], all variants but `NoSpace`).
    #[allow(clippy::needless_pass_by_value)] // taken over, as `open` takes its table
    pub fn new(
        config: SegmentConfig,
        entries: Vec<RawSitEntry>,
        sit_bitmap: Vec<u8>,
        logs: [LogState; 6],
    ) -> Result<SegmentManager, SegmentError> {
        let segments = config.geometry.main_segments;
        equal("SIT entries (one a main segment)", segments.into(), entries.len() as u64)?;
        let table = SegmentTable::new(segments, &[])?;
        table.load(SegmentNo(0), &entries)?;
        SegmentManager::open(config, table, sit_bitmap, logs)
    }

    /// Takes over the state that a checkpoint describes, from a table that was loaded piece by piece: what a large main
    /// area calls for. The rest is as for [`new`](Self::new).
    ///
    /// Costs two passes over the words of the table (4 bytes a segment), and for each segment with valid blocks its
    /// place in the victim index.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn open(
        config: SegmentConfig,
        table: SegmentTable,
        sit_bitmap: Vec<u8>,
        logs: [LogState; 6],
    ) -> Result<SegmentManager, SegmentError> {
        let geometry = config.geometry;
        check_sizes(&geometry, &table, &sit_bitmap)?;
        let mut journaled: BTreeSet<SegmentNo> = config.journaled.into_iter().collect();
        journaled.extend(table.journaled);
        note_journaled(&mut journaled, &logs, geometry.main_segments)?;

        let states = table.states;
        let (heads, holders) = take_logs(&geometry, &states, logs)?;
        let zoning = Zoning::new(&geometry, config.section_capacity);
        let Found { index, valid, used } = Found::of(&geometry, &zoning, &states);
        let free = FreeSpace::new(&geometry, zoning, used.into_iter());
        for (log, segment) in LogType::ALL.into_iter().zip(holders) {
            if let Some(segment) = segment {
                free.stands(log, segment);
            }
        }
        let may_ssr = config.ssr && !zoning.in_order;
        Ok(SegmentManager {
            reserved_segments: config.reserved_segments,
            overprovision_segments: config.overprovision_segments,
            may_fill: may_ssr && config.summaries.is_some(),
            // Roll-forward needs them on zones too: it takes blocks into use in segments that lanes left.
            source: protocol_value!("zones_without_summaries", config.summaries, config.summaries.filter(|_| may_ssr))
                .map(Source),
            states,
            zoning,
            may_write_aside: config.aside,
            heads,
            lanes: Lanes::new(config.lanes),
            free,
            changed: Changed::new(),
            index: Mutex::new(index),
            retired: Retired::new(),
            dirty: DirtyEntries::new(geometry.main_segments),
            sit: Mutex::new(Sit { bitmap: sit_bitmap, journaled, pending: None, prepared: Prepared::default() }),
            valid: ShardedCounter::new(valid),
            prefree: CachePadded::new(AtomicU32::new(0)),
            begun: CachePadded::new(AtomicU64::new(1)),
            durable: AtomicU64::new(1),
            pressure: CachePadded::new(Pressure::new(config.user_floor)),
            geometry,
        })
    }

    /// The areas of the volume.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// A segment, locked; one that was never used is given a state. The number must have been checked.
    pub(crate) fn lock(&self, segment: SegmentNo) -> MutexGuard<'_, Segment> {
        self.states.lock(segment)
    }

    /// A log's lock.
    pub(crate) fn head(&self, log: LogType) -> MutexGuard<'_, Head> {
        self.heads[log.index()].lock()
    }

    /// The segment and offset of an address of the main area.
    pub(crate) fn locate(&self, addr: BlockAddr) -> Result<(SegmentNo, u32), SegmentError> {
        self.geometry.locate(addr).ok_or_else(|| SegmentError::OutsideMain {
            addr,
            start: self.geometry.main_blkaddr,
            end: self.geometry.main_end(),
        })
    }

    /// Marks a segment's entry as changed. Called with its lock held.
    pub(crate) fn mark_dirty(&self, segment: SegmentNo, state: &mut Segment) {
        if !state.dirty {
            state.dirty = true;
            self.dirty.mark(segment);
        }
    }

    /// Whether a block is valid now; false outside the main area.
    #[must_use]
    pub fn is_valid(&self, addr: BlockAddr) -> bool {
        self.geometry.locate(addr).is_some_and(|(segment, offset)| {
            self.states.get(segment).is_some_and(|state| state.lock().valid_map.contains(offset))
        })
    }

    /// Free segments: those that a log may take now. Prefree ones do not count; on zones, nor do those of sections that
    /// are not free.
    #[must_use]
    pub fn free_segments(&self) -> u32 {
        if self.zoning.in_order { self.free.sections() * self.zoning.segments() } else { self.free.segments() }
    }

    /// Blocks that can be written in so many free segments, on zones of whole sections.
    #[must_use]
    pub fn blocks_in(&self, segments: u32) -> u64 {
        if self.zoning.in_order {
            u64::from(segments / self.zoning.segments()) * u64::from(self.zoning.section())
        } else {
            u64::from(segments) * u64::from(BLOCKS_PER_SEGMENT)
        }
    }

    /// Blocks of a section that can be written.
    #[must_use]
    pub fn section_blocks(&self) -> u32 {
        self.zoning.section()
    }

    /// Segments of a section in which a block can be written.
    #[must_use]
    pub fn section_segments(&self) -> u32 {
        self.zoning.segments()
    }

    /// Free sections: those whose segments are all free.
    #[must_use]
    pub fn free_sections(&self) -> u32 {
        self.free.sections()
    }

    /// Segments that become free with the next durable checkpoint.
    #[must_use]
    pub fn prefree_segments(&self) -> u32 {
        self.prefree.load(Ordering::Relaxed)
    }

    /// Valid blocks of the main area. Exact when nothing else runs.
    #[must_use]
    pub fn valid_blocks(&self) -> u64 {
        self.valid.sum().max(0) as u64
    }

    /// Segments kept back for cleaning.
    #[must_use]
    pub fn reserved_segments(&self) -> u32 {
        self.reserved_segments
    }

    /// Segments that user data may never count on.
    #[must_use]
    pub fn overprovision_segments(&self) -> u32 {
        self.overprovision_segments
    }

    /// A segment's state.
    ///
    /// # Errors
    /// [`SegmentError::OutsideTable`].
    pub fn segment(&self, segment: SegmentNo) -> Result<SegmentInfo, SegmentError> {
        self.check(segment)?;
        Ok(self.states.find(segment).state().info(segment))
    }

    pub(crate) fn check(&self, segment: SegmentNo) -> Result<(), SegmentError> {
        let segments = self.geometry.main_segments;
        if segment.0 < segments { Ok(()) } else { Err(SegmentError::OutsideTable { segment, segments }) }
    }

    /// Where a log stands.
    #[must_use]
    pub fn log(&self, log: LogType) -> LogState {
        self.head(log).state()
    }

    /// The block that a log will hand out next; [`BlockAddr::NULL`] for a log that a read-only volume does not have.
    #[must_use]
    pub fn next_block(&self, log: LogType) -> BlockAddr {
        if !self.geometry.has_log(log) {
            return BlockAddr::NULL;
        }
        let head = self.head(log);
        self.geometry.block_at(head.segment, head.next)
    }

    /// The summary of a segment, where it is newer than its SSA block: that of a log's segment, or of one that a log
    /// left since the last checkpoint. `None`: the SSA block is right. The answer holds as long as no log takes or
    /// leaves the segment, so for one that a cleaner has marked as its victim.
    #[must_use]
    pub fn summary(&self, segment: SegmentNo) -> Option<Box<SummaryBlock>> {
        let held = |log: LogType| {
            let head = self.head(log);
            (head.segment == segment).then(|| head.summary.clone())
        };
        // A log that leaves a segment puts the summary aside before it lets go, so in this order none is missed.
        LogType::ALL
            .into_iter()
            .find_map(held)
            .or_else(|| self.lanes.summary(segment))
            .or_else(|| self.retired.get(segment))
    }
}
