//! A lane in memory: a ring, and who may append to it.
//!
//! Locking rules: a lane's lock is held over the stores of a batch and the fence behind them, so all before a durable
//! record is durable, and nobody sees a position that is not. An append holds one lane's lock at most. A mark takes the
//! locks of all lanes, by ascending number, and holds them together. No other lock is taken under a lane's lock.

use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_sync::{Mutex, MutexGuard, protocol_never, protocol_value};
use zerocopy::IntoBytes;

use crate::geometry::{MOST_POSITION, Ring};
use crate::record::{Appended, Entry, Header};
use crate::{Error, Gather, Medium};

/// A lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) number: usize,
    pub(crate) ring: Ring,
    pub(crate) seed: u32,
    pub(crate) state: Mutex<LaneState>,
}

/// The part of a lane that changes.
#[derive(Debug)]
pub(crate) struct LaneState {
    /// Where the oldest record begins that may not be written over.
    pub(crate) head: u64,
    /// Where the next record begins.
    pub(crate) tail: u64,
    /// The stamp of the last record.
    pub(crate) clock: u64,
    pub(crate) closed: Option<Closed>,
}

/// Why a lane takes no records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// An append is under way, or one failed: its record may be there or not.
    Append,
    /// A record was damaged: the lane begins again at this position once its space is taken back.
    Damaged { resume: u64 },
    /// It could not be read.
    Unreadable,
}

/// The properties of the journal that an append needs.
#[derive(Debug)]
pub(crate) struct Terms<'a, M> {
    pub(crate) medium: &'a M,
    pub(crate) epoch: u32,
    /// Set when something could not be made durable.
    pub(crate) failed: &'a AtomicBool,
}

impl LaneState {
    /// Bytes that are free; none in a lane that is closed.
    pub(crate) fn free(&self, ring: Ring) -> u64 {
        if self.closed.is_some() { 0 } else { ring.bytes.saturating_sub(self.tail.saturating_sub(self.head)) }
    }
}

impl Lane {
    /// Appends a batch, for which there is room.
    ///
    /// # Errors
    /// [`Error::Exhausted`], and the medium's. The lane is closed after one of those.
    pub(crate) fn append<M: Medium>(
        &self,
        mut state: MutexGuard<'_, LaneState>,
        terms: &Terms<'_, M>,
        after: u64,
        entries: &[Entry<'_>],
        footprint: u64,
    ) -> Result<Appended, Error> {
        let begun = state.clock.max(after);
        let stamp = begun.checked_add(entries.len() as u64);
        let stamp = stamp.ok_or(Error::Exhausted { what: "stamps", value: begun })?;
        let position = state.tail;
        let tail = position.saturating_add(footprint);
        if tail >= MOST_POSITION {
            return Err(Error::Exhausted { what: "positions", value: position });
        }
        let free = state.free(self.ring).saturating_sub(footprint);
        // Until it ends well, and also if the medium panics.
        state.closed = Some(Closed::Append);
        protocol_never!("journal_unlocked_before_fence", {
            *state = LaneState { tail, clock: stamp, closed: None, ..*state };
            drop(state);
            self.write(terms, begun, position, entries)?;
            return Ok(Appended { first: begun + 1, stamp, lane: self.number, position, free });
        });
        self.write(terms, begun, position, entries)?;
        *state = LaneState { tail, clock: stamp, closed: None, ..*state };
        Ok(Appended { first: begun + 1, stamp, lane: self.number, position, free })
    }

    /// Writes the records of a batch, and makes them durable.
    fn write<M: Medium>(
        &self,
        terms: &Terms<'_, M>,
        mut stamp: u64,
        batch: u64,
        entries: &[Entry<'_>],
    ) -> Result<(), Error> {
        let mut position = batch;
        for entry in entries {
            stamp += 1;
            let header = Header::new(entry, terms.epoch, position, stamp, batch).sealed(self.seed);
            let bytes = Gather::new(header.as_bytes(), entry.parts, entry.bytes as usize);
            let alone = entries.len() == 1 && self.ring.in_one_piece(position, bytes.len());
            if protocol_value!("journal_fence_left_out", alone, false) {
                let written = terms.medium.write_durably(self.ring.offset(position), bytes);
                return written.map_err(|error| terms.fail(error));
            }
            self.ring.write(terms.medium, position, bytes)?;
            position += (bytes.len() as u64).next_multiple_of(self.ring.grain);
        }
        protocol_never!("journal_fence_left_out", return Ok(()));
        terms.medium.persist().map_err(|error| terms.fail(error))
    }
}

impl<M> Terms<'_, M> {
    /// Bytes that could not be made durable may be those of other lanes, too: nothing more is promised.
    fn fail(&self, error: crate::MediumError) -> Error {
        self.failed.store(true, Ordering::Release);
        error.into()
    }
}
