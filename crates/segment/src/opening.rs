//! What a segment manager is opened from: the checks of it, the logs, and one pass over the segments.
//!
//! # Locking
//!
//! Nobody else knows the segments yet; the locks of [`States`] are taken one at a time.

use std::collections::BTreeSet;

use f2fs_format::summary::Journal;
use f2fs_format::{Geometry, LogType, SegmentNo};
use f2fs_sync::{CachePadded, Mutex};

use crate::head::{Head, LogState};
use crate::index::Index;
use crate::map::BlockMap;
use crate::segment::Phase;
use crate::states::States;
use crate::zoning::Zoning;
use crate::{SegmentError, SegmentTable};

pub(crate) fn equal(what: &'static str, expected: u64, found: u64) -> Result<(), SegmentError> {
    if expected == found { Ok(()) } else { Err(SegmentError::Config { what, expected, found }) }
}

/// The table and the bitmap are of a main area of this size.
pub(crate) fn check_sizes(geometry: &Geometry, table: &SegmentTable, sit_bitmap: &[u8]) -> Result<(), SegmentError> {
    let segments = geometry.main_segments;
    equal("segments of the table", segments.into(), table.segments().into())?;
    equal(
        "segments of all sections",
        u64::from(geometry.sections) * u64::from(geometry.segs_per_sec),
        segments.into(),
    )?;
    let needed = geometry.sit_blocks().div_ceil(8) as usize;
    if sit_bitmap.len() < needed {
        return Err(SegmentError::Config {
            what: "bytes of the SIT version bitmap (at least)",
            expected: needed as u64,
            found: sit_bitmap.len() as u64,
        });
    }
    Ok(())
}

/// Adds the segments whose entries stand in the journal of the cold data log's summary.
pub(crate) fn note_journaled(
    journaled: &mut BTreeSet<SegmentNo>,
    logs: &[LogState; 6],
    segments: u32,
) -> Result<(), SegmentError> {
    let in_summary = logs[LogType::ColdData.index()].summary.journal.sit_entries().unwrap_or_default();
    journaled.extend(in_summary.iter().map(|(segment, _)| *segment));
    match journaled.iter().find(|segment| segment.0 >= segments) {
        Some(&segment) => Err(SegmentError::OutsideTable { segment, segments }),
        None => Ok(()),
    }
}

/// The logs' heads, and the segment that each stands in, which is current from here on.
pub(crate) type Logs = ([CachePadded<Mutex<Head>>; 6], [Option<SegmentNo>; 6]);

/// Puts the logs where the checkpoint left them. No two may stand in one segment, and none in one of another type.
pub(crate) fn take_logs(geometry: &Geometry, states: &States, logs: [LogState; 6]) -> Result<Logs, SegmentError> {
    let segments = geometry.main_segments;
    let mut holders: [Option<SegmentNo>; 6] = [None; 6];
    let mut heads = Vec::with_capacity(6);
    for (log, mut state) in LogType::ALL.into_iter().zip(logs) {
        let segment = state.segment;
        if !geometry.has_log(log) {
            // It stands nowhere, and nothing is ever written.
            heads.push(CachePadded::new(Mutex::new(Head::from_state(log, state, &BlockMap::default())?)));
            continue;
        }
        if segment.0 >= segments {
            return Err(SegmentError::LogOutside { log, segment, segments });
        }
        if let Some(first) = holders.iter().position(|holder| *holder == Some(segment)) {
            return Err(SegmentError::SharedSegment { segment, first: LogType::ALL[first], second: log });
        }
        holders[log.index()] = Some(segment);
        let mut held = states.lock(segment);
        if held.log != log {
            // The kernel accepts another type on a segment that nothing was written to yet.
            if held.valid != 0 {
                return Err(SegmentError::LogType { log, segment, found: held.log });
            }
            held.log = log;
        }
        held.phase = Phase::Current;
        state.summary.journal = Journal::ZERO;
        heads.push(CachePadded::new(Mutex::new(Head::from_state(log, state, &held.valid_map)?)));
    }
    match <[_; 6]>::try_from(heads) {
        Ok(heads) => Ok((heads, holders)),
        Err(_) => Err(SegmentError::Config { what: "logs", expected: 6, found: 0 }),
    }
}

/// What one pass over the segments that were ever used finds.
pub(crate) struct Found {
    /// Victims for the cleaner.
    pub(crate) index: Index,
    /// Valid blocks.
    pub(crate) valid: i64,
    /// Segments that are not free.
    pub(crate) used: Vec<SegmentNo>,
}

impl Found {
    pub(crate) fn of(geometry: &Geometry, zoning: &Zoning, states: &States) -> Found {
        let mut index = Index::new(geometry.segs_per_sec, zoning.largest_section());
        let mut valid = 0i64;
        let mut used = Vec::with_capacity(states.used() as usize);
        states.each_used(|segment, state| {
            index.update(segment, state);
            valid += i64::from(state.valid);
            if state.phase != Phase::Free {
                used.push(segment);
            }
        });
        Found { index, valid, used }
    }
}
