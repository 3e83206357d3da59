//! An open segment: the place where a log writes next, and the owners of the blocks that it has written.

use f2fs_format::checkpoint::alloc_type;
use f2fs_format::summary::{SummaryBlock, TYPE_DATA, TYPE_NODE};
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};

use crate::SegmentError;
use crate::map::BlockMap;

/// How a log takes blocks from its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocType {
    /// In order, from a segment that was free.
    Lfs,
    /// From the holes of a dirty segment (slack space recycling).
    Ssr,
}

impl AllocType {
    /// The number in the checkpoint.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            AllocType::Lfs => alloc_type::LFS,
            AllocType::Ssr => alloc_type::SSR,
        }
    }

    /// The type with this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<AllocType> {
        match number {
            alloc_type::LFS => Some(AllocType::Lfs),
            alloc_type::SSR => Some(AllocType::Ssr),
            _ => None,
        }
    }
}

/// One of the six logs, as a checkpoint records it.
#[derive(Clone, Debug)]
pub struct LogState {
    /// The segment that it writes into.
    pub segment: SegmentNo,
    /// The block of it that it writes next, 0 ..= 511.
    pub next_offset: u16,
    /// 0 (LFS) or 1 (SSR).
    pub alloc_type: u8,
    /// The summary of its segment. The journal in it is not the manager's: the owner of the checkpoint pack fills it.
    pub summary: Box<SummaryBlock>,
}

/// The head of a log, behind the log's lock. Between two calls `next` is a block that may be written.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) segment: SegmentNo,
    pub(crate) next: u32,
    pub(crate) alloc: AllocType,
    /// All valid blocks of the segment beyond `next` were written before the last durable checkpoint: they may be read
    /// back and rewritten in its place.
    pub(crate) settled: bool,
    pub(crate) summary: Box<SummaryBlock>,
}

/// The entry type of a log's summaries.
pub(crate) fn entry_type(log: LogType) -> u8 {
    if log.is_node() { TYPE_NODE } else { TYPE_DATA }
}

impl Head {
    /// A head from a checkpoint, checked against its segment's map.
    pub(crate) fn from_state(log: LogType, state: LogState, valid: &BlockMap) -> Result<Head, SegmentError> {
        let (segment, offset) = (state.segment, state.next_offset);
        let alloc =
            AllocType::from_number(state.alloc_type).ok_or(SegmentError::AllocType { log, found: state.alloc_type })?;
        if u32::from(offset) >= BLOCKS_PER_SEGMENT || valid.contains(offset.into()) {
            return Err(SegmentError::LogOffset { log, segment, offset });
        }
        if alloc == AllocType::Lfs
            && let Some(found) = valid.next(offset.into(), true)
        {
            return Err(SegmentError::LogAhead { log, segment, offset, found });
        }
        let mut summary = state.summary;
        summary.entry_type = entry_type(log);
        Ok(Head { segment, next: offset.into(), alloc, settled: true, summary })
    }

    /// The head as a checkpoint records it.
    pub(crate) fn state(&self) -> LogState {
        LogState {
            segment: self.segment,
            next_offset: self.next as u16,
            alloc_type: self.alloc.number(),
            summary: self.summary.clone(),
        }
    }

    /// Blocks of the segment's holes that may still be written.
    pub(crate) fn room_in_holes(&self, taken: &BlockMap) -> u32 {
        BLOCKS_PER_SEGMENT - self.next - taken.count_from(self.next)
    }
}
