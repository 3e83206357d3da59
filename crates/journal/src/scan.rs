//! Where a lane ends, and why.
//!
//! Records are followed from the head. The first thing that is not a record of this lane at this position ends it. Then
//! the whole ring behind that is searched once more, for a record whose batch began when all before it was durable: if
//! there is one behind the end, then the end is damage, and not a power cut. So it is if the lane was longer when it
//! was last opened to append. Each grain is read three times at most.

use f2fs_sync::protocol_value;

use crate::geometry::{HEADER, MOST_POSITION, Ring};
use crate::payload_sum::PayloadSum;
use crate::record::Header;
use crate::window::Window;
use crate::{Medium, MediumError};

/// How a lane ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum LaneEnd {
    /// There is no further record, or no trace of one that says more than that.
    Clean,
    /// There is a part of a record, which a power cut interrupted. It had not been acknowledged.
    Torn,
    /// A record that had been acknowledged is damaged, and the records behind it are lost: there is a sound record
    /// behind it.
    Damaged {
        /// Where such a record begins, or the end that the lane had when the journal was last opened to append.
        evidence: u64,
    },
    /// The medium cannot be read here. Records from here on are lost, if there were any.
    Unreadable(MediumError),
    /// The lane could not be read at an earlier time, and is not used any more. It holds nothing.
    Retired,
}

/// The finds in a lane. Positions count the bytes that were ever given to records in this lane.
#[derive(Debug)]
#[non_exhaustive]
pub struct LaneReport {
    /// The position of the first record.
    pub head: u64,
    /// The position at which the lane ends.
    pub end: u64,
    /// The offset on the medium at which it ends.
    pub end_offset: u64,
    /// How many records there are.
    pub records: u64,
    /// The stamp of the last record; if there is none, the stamp below which no record is missing.
    pub stamp: u64,
    /// How it ended.
    pub how: LaneEnd,
    /// How many whole records there are behind the end, if the lane is damaged.
    pub behind: u64,
    /// Their positions.
    pub(crate) behind_at: Vec<u64>,
    /// Where a lane that is damaged begins again: no record that was ever there has so high a position.
    pub(crate) resume: u64,
    /// The epoch of the last record.
    pub(crate) epoch: u32,
}

impl LaneReport {
    /// Whether all records that were acknowledged are there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self.how {
            LaneEnd::Clean | LaneEnd::Torn | LaneEnd::Retired => true,
            LaneEnd::Damaged { .. } | LaneEnd::Unreadable(_) => false,
        }
    }
}

/// The records that a lane may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) seed: u32,
    /// The header's epoch: no record has a later one.
    pub(crate) epoch: u32,
    /// All records have a higher stamp.
    pub(crate) stamp: u64,
    /// Where the lane ended when that epoch began.
    pub(crate) start: u64,
}

/// The find at a position.
enum Found {
    /// A record that takes so many bytes.
    Record { bytes: u64, stamp: u64, epoch: u32 },
    /// No record of this lane at this position.
    Nothing,
    /// A part of one.
    Part,
}

/// Follows a lane to its end.
pub(crate) fn scan(medium: &impl Medium, ring: Ring, head: u64, bounds: Bounds) -> LaneReport {
    let mut window = Window::new(medium, ring, head);
    let mut report = LaneReport {
        head,
        end: head,
        end_offset: 0,
        records: 0,
        stamp: bounds.stamp,
        how: LaneEnd::Clean,
        behind: 0,
        behind_at: Vec::new(),
        resume: head,
        epoch: 0,
    };
    while report.end - head < ring.bytes {
        match look(&mut window, ring, &report, bounds) {
            Ok(Found::Record { bytes, stamp, epoch }) => {
                report.end += bytes;
                report.records += 1;
                (report.stamp, report.epoch) = (stamp, epoch);
            }
            Ok(Found::Nothing) => break,
            Ok(Found::Part) => {
                report.how = LaneEnd::Torn;
                break;
            }
            Err(error) => {
                report.how = LaneEnd::Unreadable(error);
                break;
            }
        }
    }
    report.end_offset = ring.offset(report.end);
    report.resume = report.end;
    if matches!(report.how, LaneEnd::Unreadable(_)) {
        return report;
    }
    if report.end < bounds.start {
        report.how = LaneEnd::Damaged { evidence: bounds.start };
    }
    if report.end - head < ring.bytes {
        look_behind(&mut window, ring, &mut report, bounds);
    }
    if !matches!(report.how, LaneEnd::Damaged { .. }) {
        // What stands behind a torn record belongs to its batch, and was not acknowledged.
        report.behind_at.clear();
    } else {
        // Beyond all that could be seen, and all that could not: one header before this one, the ring was used twice at
        // most.
        let beyond = report.resume.max(head.saturating_add(2 * ring.bytes)).max(bounds.start);
        report.resume = beyond.div_ceil(ring.bytes).saturating_mul(ring.bytes);
    }
    report.behind = report.behind_at.len() as u64;
    report
}

/// The find at the end of the records followed so far.
fn look<M: Medium>(
    window: &mut Window<'_, M>,
    ring: Ring,
    report: &LaneReport,
    bounds: Bounds,
) -> Result<Found, MediumError> {
    let position = report.end;
    let Some(header) = window.header(position)? else { return Ok(Found::Nothing) };
    // A lane that was never written to holds zeros, which say position 0.
    if header.position.get() != position || header.is_zero() {
        return Ok(Found::Nothing);
    }
    if !header.is_sound(bounds.seed) {
        return Ok(Found::Part);
    }
    let (epoch, stamp, length) = (header.epoch.get(), header.stamp.get(), u64::from(header.length.get()));
    let new = position >= bounds.start;
    // It was left behind the end by an earlier power cut, and had not been acknowledged.
    if new && protocol_value!("journal_epoch_unchecked", epoch < bounds.epoch, false) {
        return Ok(Found::Nothing);
    }
    let room = ring.bytes - (position - report.head);
    let room = if new { room } else { room.min(bounds.start - position) };
    let bytes = ring.footprint(length).filter(|bytes| *bytes <= room);
    let epochs = report.epoch..=if new { bounds.epoch } else { bounds.epoch.saturating_sub(1) };
    let in_order = header.batch.get() <= position && epochs.contains(&epoch) && stamp > report.stamp;
    let Some(bytes) = bytes.filter(|_| in_order) else { return Ok(Found::Part) };
    Ok(if has_payload(window, position, &header)? { Found::Record { bytes, stamp, epoch } } else { Found::Part })
}

/// Whether the payload of a record is as it was written.
fn has_payload<M: Medium>(window: &mut Window<'_, M>, position: u64, header: &Header) -> Result<bool, MediumError> {
    let length = header.length.get() as usize;
    let mut sum = PayloadSum::new(length);
    let (mut at, mut left) = (position + HEADER as u64, length);
    while left > 0 {
        let piece = window.slice(at, left)?;
        if piece.is_empty() {
            return Ok(false);
        }
        sum.update(piece);
        at += piece.len() as u64;
        left -= piece.len();
    }
    Ok(sum.value() == header.payload_sum.get())
}

/// Looks behind the end for a record that could not be there if this were the end.
fn look_behind<M: Medium>(window: &mut Window<'_, M>, ring: Ring, report: &mut LaneReport, bounds: Bounds) {
    let limit = report.head + ring.bytes;
    let mut at = report.end;
    // Where the next record can begin. What says that it begins in another one is none, and its payload is not read: else
    // a journal that somebody made up would be read once for each of its grains.
    let mut free = report.end;
    while at < limit {
        // Bytes that cannot be read say nothing.
        if let Ok(Some(header)) = window.header(at) {
            let (position, batch) = (header.position.get(), header.batch.get());
            // One that a power cut left behind an earlier end is none.
            let is_left_over = position >= bounds.start && header.epoch.get() < bounds.epoch;
            let is_new = position == at && at >= free && !is_left_over && header.stamp.get() > report.stamp;
            if is_new && header.is_sound(bounds.seed) {
                report.behind_at.extend(has_payload(window, at, &header).is_ok_and(|whole| whole).then_some(at));
                free = at.saturating_add(ring.footprint(u64::from(header.length.get())).unwrap_or(ring.bytes));
            }
            let later = position >= at && position < MOST_POSITION && (position - at).is_multiple_of(ring.bytes);
            if later && batch > report.end && batch <= position && header.is_sound(bounds.seed) {
                if !matches!(report.how, LaneEnd::Damaged { .. }) {
                    report.how = LaneEnd::Damaged { evidence: position };
                }
                let bytes = ring.footprint(u64::from(header.length.get())).unwrap_or(ring.bytes);
                report.resume = report.resume.max(position.saturating_add(bytes.min(ring.bytes)));
            }
        }
        at += ring.grain;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
