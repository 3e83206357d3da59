//! Settings that the owner gives the manager at the start.

use core::error::Error;

use f2fs_format::summary::SummaryBlock;
use f2fs_format::{Geometry, SegmentNo};
use f2fs_sync::PlainArc;

/// Where the manager gets the summary of a segment that no log has held since the last checkpoint: its SSA block.
///
/// Asked only when a log takes a segment with holes, with that log's lock held, as the kernel does (`change_curseg`).
pub trait SummarySource: Send + Sync {
    /// The summary block of a segment, as it stands in the SSA.
    ///
    /// # Errors
    /// The owner's error.
    fn read_summary(&self, segment: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>>;
}

/// The caller's class, which decides how many free sections must be left for the others.
///
/// | Class | must leave |
/// |---|---|
/// | [`User`](Class::User) | the worst case of dirty nodes and dentries, and [`user_floor`](SegmentConfig::user_floor) sections |
/// | [`Cleaner`](Class::Cleaner) | the worst case of dirty nodes and dentries |
/// | [`Checkpoint`](Class::Checkpoint) | nothing |
///
/// A volume whose users leave that much can always write a checkpoint, and a cleaner always finds room to move blocks
/// to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// File data written for a user.
    User,
    /// Blocks moved by the cleaner.
    Cleaner,
    /// Nodes and directory blocks written back, above all by a checkpoint.
    Checkpoint,
}

/// Configuration of a [`SegmentManager`](crate::SegmentManager).
///
/// # Memory
///
/// What a manager takes depends on the main area that is described here:
///
/// | for | bytes |
/// |---|---|
/// | each segment | 4.6; on sections of several segments 4.5, and 4 for each section |
/// | each segment with valid blocks, or used since the open | about 250 more, until the manager is dropped |
/// | each log, each open lane, each segment that a log left since the last checkpoint | 4096 more: a summary |
/// | all sections together | 4160 for each segment that one section has: a list for each number of valid blocks |
///
/// So 8 million segments (15 TiB) take 37 MB when they are empty, and 2 GB when all are in use. Sections of a million
/// segments take 4 GB also when all of them are empty.
#[derive(Clone)]
#[non_exhaustive]
pub struct SegmentConfig {
    /// The areas of the volume.
    pub geometry: Geometry,
    /// Segments kept back for cleaning (`rsvd_segment_count`).
    pub reserved_segments: u32,
    /// Segments that user data may never count on (`overprov_segment_count`).
    pub overprovision_segments: u32,
    /// Sections that [`Class::User`] leaves free beside the worst case of dirty nodes: one for each log.
    pub user_floor: u32,
    /// Segments whose SIT entry stands in the journal of the checkpoint that was opened. What is in the journal of the
    /// cold-data log's summary is known without being said here.
    pub journaled: Vec<SegmentNo>,
    /// Where old summaries come from. Without it no log takes a segment with holes (SSR).
    pub summaries: Option<PlainArc<dyn SummarySource>>,
    /// Open segments of each log but warm node, the one that checkpoints record among them.
    pub lanes: usize,
    /// Whether SSR may be used at all. Zoned volumes (`blkzoned`) never use it.
    pub ssr: bool,
    /// How many blocks of each section can be written, from its start on: the capacity of the zones that most sections
    /// are. Linux has the same for all sections, also those where no zone is (since 6.4). `None`: all of them.
    pub section_capacity: Option<u32>,
    /// Whether nodes that are written before their checkpoint have segments of their own: one more open segment for
    /// each log of nodes. Without them none is written ahead.
    pub aside: bool,
}

impl core::fmt::Debug for SegmentConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SegmentConfig")
            .field("main_segments", &self.geometry.main_segments)
            .field("segs_per_sec", &self.geometry.segs_per_sec)
            .field("reserved_segments", &self.reserved_segments)
            .field("overprovision_segments", &self.overprovision_segments)
            .field("ssr", &(self.ssr && self.summaries.is_some()))
            .finish_non_exhaustive()
    }
}

impl SegmentConfig {
    /// The configuration of a volume: its areas, and two numbers of its checkpoint.
    #[must_use]
    pub fn new(geometry: Geometry, reserved_segments: u32, overprovision_segments: u32) -> SegmentConfig {
        SegmentConfig {
            geometry,
            reserved_segments,
            overprovision_segments,
            user_floor: 6,
            journaled: Vec::new(),
            summaries: None,
            lanes: 1,
            ssr: true,
            section_capacity: None,
            aside: true,
        }
    }

    /// Says which SIT entries stand in the journal.
    #[must_use]
    pub fn journaled(mut self, segments: impl IntoIterator<Item = SegmentNo>) -> SegmentConfig {
        self.journaled.extend(segments);
        self
    }

    /// Says where old summaries come from, which allows SSR.
    #[must_use]
    pub fn summaries(mut self, source: PlainArc<dyn SummarySource>) -> SegmentConfig {
        self.summaries = Some(source);
        self
    }

    /// Says how many blocks can be written of each section. 0 is taken for 1, and more than a section has for all of it.
    #[must_use]
    pub fn section_capacity(mut self, blocks: u32) -> SegmentConfig {
        self.section_capacity = Some(blocks);
        self
    }

    /// Says whether nodes may be written before their checkpoint, to segments of their own.
    #[must_use]
    pub fn aside(mut self, allowed: bool) -> SegmentConfig {
        self.aside = allowed;
        self
    }

    /// Allows or forbids SSR.
    #[must_use]
    pub fn ssr(mut self, allowed: bool) -> SegmentConfig {
        self.ssr = allowed;
        self
    }

    /// Sets how many segments each log may have open at once, for [`allocate_on`](crate::SegmentManager::allocate_on).
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> SegmentConfig {
        self.lanes = lanes.max(1);
        self
    }

    /// Sets the sections that user data leaves free beside the worst case of dirty nodes.
    #[must_use]
    pub fn user_floor(mut self, sections: u32) -> SegmentConfig {
        self.user_floor = sections;
        self
    }
}
