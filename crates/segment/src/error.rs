//! The errors of the segment manager.

use core::error::Error;

use f2fs_format::{BlockAddr, LogType, SegmentNo};
use thiserror::Error;

/// An error of the segment manager, with the numbers that show it.
///
/// [`NoSpace`](SegmentError::NoSpace) is an answer; everything else means that the caller and the table contradict each
/// other, or that a block could not be read. Whatever the error, the state is as it was before the call.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// No segment can be had for a log. Nothing was taken.
    #[error(
        "no segment is left for the {} log: {free} free, {prefree} free after the next checkpoint, {floor} sections kept back",
        log.name()
    )]
    NoSpace {
        /// The log that asked.
        log: LogType,
        /// Free segments.
        free: u32,
        /// Segments that become free with the next durable checkpoint.
        prefree: u32,
        /// Sections that the caller's class must leave free.
        floor: u32,
    },
    /// The configuration is not possible.
    #[error("{what}: expected {expected}, found {found}")]
    Config {
        /// The quantity.
        what: &'static str,
        /// The right value.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// A segment's type is not the number of a log.
    #[error("segment {segment}: type {found} is not in the range 0 to 5")]
    BadType {
        /// The segment.
        segment: SegmentNo,
        /// The type in its SIT entry.
        found: u8,
    },
    /// A segment's count does not agree with its valid map.
    #[error("segment {segment}: {count} valid blocks stated, {mapped} in the map")]
    BadCount {
        /// The segment.
        segment: SegmentNo,
        /// The count in its SIT entry.
        count: u32,
        /// Bits set in its map.
        mapped: u32,
    },
    /// A log's segment lies outside the main area.
    #[error("the {} log names segment {segment}, but there are only {segments} segments", log.name())]
    LogOutside {
        /// The log.
        log: LogType,
        /// Its segment.
        segment: SegmentNo,
        /// Segments of the main area.
        segments: u32,
    },
    /// Two logs have one segment.
    #[error("segment {segment} is claimed by the {} log and by the {} log", first.name(), second.name())]
    SharedSegment {
        /// The segment.
        segment: SegmentNo,
        /// One of the logs.
        first: LogType,
        /// The other.
        second: LogType,
    },
    /// The segment of a log has another type.
    #[error("segment {segment} of the {} log has the type of the {} log", log.name(), found.name())]
    LogType {
        /// The log.
        log: LogType,
        /// Its segment.
        segment: SegmentNo,
        /// The type in the segment's SIT entry.
        found: LogType,
    },
    /// The next block of a log is not free, or lies outside its segment.
    #[error("the {} log in segment {segment}: next block {offset} is not free", log.name())]
    LogOffset {
        /// The log.
        log: LogType,
        /// Its segment.
        segment: SegmentNo,
        /// Its next block.
        offset: u16,
    },
    /// A log that writes in order has a valid block in front of it.
    #[error("the {} log in segment {segment}: block {found} is valid, though the log stands at {offset}", log.name())]
    LogAhead {
        /// The log.
        log: LogType,
        /// Its segment.
        segment: SegmentNo,
        /// Its next block.
        offset: u16,
        /// The valid block behind it.
        found: u32,
    },
    /// A log's allocation type is neither LFS nor SSR.
    #[error("the {} log has the unknown allocation type {found}", log.name())]
    AllocType {
        /// The log.
        log: LogType,
        /// The value in the checkpoint.
        found: u8,
    },
    /// An address outside the main area.
    #[error("block {addr} is not in the main area {start}..{end}")]
    OutsideMain {
        /// The address.
        addr: BlockAddr,
        /// First block of the main area.
        start: BlockAddr,
        /// First block behind it.
        end: BlockAddr,
    },
    /// A segment outside the main area.
    #[error("there is no segment {segment}: the main area has {segments}")]
    OutsideTable {
        /// The segment.
        segment: SegmentNo,
        /// Segments of the main area.
        segments: u32,
    },
    /// A segment's entry was loaded before.
    #[error("the entry of segment {segment} was loaded twice")]
    LoadedTwice {
        /// The segment, or the first of those that were loaded together.
        segment: SegmentNo,
    },
    /// A block that should be valid is not.
    #[error("block {addr} (segment {segment}, block {offset} of it) is not valid")]
    NotValid {
        /// The address.
        addr: BlockAddr,
        /// Its segment.
        segment: SegmentNo,
        /// Its place there.
        offset: u32,
    },
    /// A block that should be free is valid, now or in the last checkpoint.
    #[error("block {addr} (segment {segment}, block {offset} of it) is already in use")]
    InUse {
        /// The address.
        addr: BlockAddr,
        /// Its segment.
        segment: SegmentNo,
        /// Its place there.
        offset: u32,
    },
    /// A segment that was taken as free, or as one with holes, is not.
    #[error("segment {segment} should be {expected}, but is {found} with {valid} valid blocks")]
    Phase {
        /// The segment.
        segment: SegmentNo,
        /// The right type.
        expected: &'static str,
        /// The type found.
        found: &'static str,
        /// Its valid blocks.
        valid: u32,
    },
    /// A log of nodes was given where one of data is needed, or the other way round.
    #[error("the {} log takes no {expected} blocks", log.name())]
    WrongLog {
        /// The log.
        log: LogType,
        /// The subject of the call.
        expected: &'static str,
    },
    /// A block of the table could not be read.
    #[error("cannot read block {addr} of the segment information table: {source}")]
    Table {
        /// Where it stands.
        addr: BlockAddr,
        /// The owner's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The summary of a segment could not be read.
    #[error("cannot read the summary of segment {segment}: {source}")]
    Source {
        /// The segment.
        segment: SegmentNo,
        /// The owner's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}
