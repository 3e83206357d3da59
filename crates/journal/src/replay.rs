//! Records in their order: by stamp, and among equal stamps by lane.

use crate::geometry::HEADER;
use crate::geometry::Ring;
use crate::header::Header;
use crate::payload_sum::PayloadSum;
use crate::scan::{Bounds, LaneReport};
use crate::window::Window;
use crate::{Error, Medium, Record};

/// A walk through the records of all lanes.
#[derive(Debug)]
pub struct Replay<'a, M> {
    lanes: Vec<Cursor<'a, M>>,
    /// The last stamp that is wanted.
    most: u64,
    payload: Vec<u8>,
}

/// A walk through a lane.
#[derive(Debug)]
struct Cursor<'a, M> {
    lane: usize,
    window: Window<'a, M>,
    ring: Ring,
    bounds: Bounds,
    /// The record that comes next.
    position: u64,
    end: u64,
    /// Its stamp, if it was looked at; `None` in it if there is no record.
    next: Option<u64>,
}

impl<'a, M: Medium> Replay<'a, M> {
    pub(crate) fn new(medium: &'a M, header: &Header, lanes: &[LaneReport]) -> Self {
        let busy = lanes.iter().enumerate().filter(|(_, report)| report.records > 0);
        let cursor = |(lane, report): (usize, &LaneReport)| {
            let ring = header.geometry.ring(lane);
            let window = Window::new(medium, ring, report.head);
            let bounds = header.bounds(lane);
            Cursor { lane, window, ring, bounds, position: report.head, end: report.end, next: None }
        };
        Replay { lanes: busy.map(cursor).collect(), most: u64::MAX, payload: Vec::new() }
    }

    /// Ends before the first record with a higher stamp.
    #[must_use]
    pub fn up_to(self, stamp: u64) -> Self {
        Replay { most: stamp, ..self }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// The medium's, and [`Error::Changed`] if a record has changed since the journal was opened.
    pub fn advance(&mut self) -> Result<Option<Record<'_>>, Error> {
        let mut first: Option<(u64, usize)> = None;
        for (at, cursor) in self.lanes.iter_mut().enumerate() {
            // Lanes come by their number, so the first of equal stamps is that of the lowest lane.
            if let Some(stamp) = cursor.peek()?
                && first.is_none_or(|(least, _)| stamp < least)
            {
                first = Some((stamp, at));
            }
        }
        let Some((stamp, at)) = first.filter(|(stamp, _)| *stamp <= self.most) else { return Ok(None) };
        let Some(cursor) = self.lanes.get_mut(at) else { return Ok(None) };
        let (lane, position) = (cursor.lane, cursor.position);
        cursor.take(&mut self.payload)?;
        Ok(Some(Record { stamp, lane, position, payload: &self.payload }))
    }
}

impl<M: Medium> Cursor<'_, M> {
    fn changed(&self) -> Error {
        Error::Changed { lane: self.lane, position: self.position }
    }

    /// The stamp of the next record.
    fn peek(&mut self) -> Result<Option<u64>, Error> {
        if self.next.is_none() && self.position < self.end {
            let header = self.window.header(self.position)?;
            let header = header.filter(|header| header.position.get() == self.position);
            let header = header.filter(|header| header.is_sound(self.bounds.seed)).ok_or_else(|| self.changed())?;
            self.next = Some(header.stamp.get());
        }
        Ok(self.next)
    }

    /// Reads the next record's payload, and goes on to the one behind it.
    fn take(&mut self, payload: &mut Vec<u8>) -> Result<(), Error> {
        payload.clear();
        let header = self.window.header(self.position)?.ok_or_else(|| self.changed())?;
        let length = header.length.get() as usize;
        let bytes = self.ring.footprint(length as u64);
        let bytes = bytes.filter(|bytes| *bytes <= self.end - self.position).ok_or_else(|| self.changed())?;
        payload.reserve(length);
        let mut sum = PayloadSum::new(length);
        while payload.len() < length {
            let at = self.position + (HEADER + payload.len()) as u64;
            let piece = self.window.slice(at, length - payload.len())?;
            if piece.is_empty() {
                return Err(self.changed());
            }
            sum.update(piece);
            payload.extend_from_slice(piece);
        }
        if sum.value() != header.payload_sum.get() {
            return Err(self.changed());
        }
        self.position += bytes;
        self.next = None;
        Ok(())
    }
}
