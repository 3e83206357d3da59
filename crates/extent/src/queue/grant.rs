//! Who among the waiting requests gets its locks, and when: under the queue's lock, by the rules in
//! [`queue`](crate::queue).

use f2fs_sync::atomic::Ordering::SeqCst;
use f2fs_sync::{Arc, MutexGuard, protocol_never, protocol_value};

use super::{Queue, Request, State, Ticket};
use crate::claim::Claim;
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::Cell;
use crate::word::{self, QUEUED};
use crate::words::Words;

/// Where a granted request holds the claims that are not covering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Words,
    /// A block has as many readers as its byte can count.
    List,
}

/// Doorbells to ring when the queue's lock is released, and the tickets to tell.
struct Bells {
    cells: [Option<Arc<Cell>>; Bells::MOST],
    tickets: [Ticket; Bells::MOST],
    count: usize,
}

impl Bells {
    const MOST: usize = if cfg!(loom) { 2 } else { 16 };

    fn new() -> Bells {
        Bells { cells: [const { None }; Bells::MOST], tickets: [Ticket::NONE; Bells::MOST], count: 0 }
    }

    fn full(&self) -> bool {
        self.count == Bells::MOST
    }

    fn push(&mut self, ticket: Ticket, cell: Option<Arc<Cell>>) {
        if cell.is_some() {
            self.cells[self.count] = cell;
            self.tickets[self.count] = ticket;
            self.count += 1;
        }
    }

    fn ring(self) {
        for (cell, ticket) in self.cells.into_iter().zip(self.tickets).take(self.count) {
            if let Some(cell) = cell {
                cell.grant(ticket);
            }
        }
    }
}

impl ExtentTable {
    /// Grants all requests that touch `released` and can be granted, and rings their bells with the lock released.
    pub(super) fn settle<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, released: &[Claim]) {
        if queue.requests.is_empty() {
            return;
        }
        loop {
            let mut bells = Bells::new();
            let mut at = 0;
            while at < queue.requests.len() && !bells.full() {
                let request = &queue.requests[at];
                let waits = request.state == State::Waiting && request.claims.overlap(released);
                if waits && let Some(place) = self.grantable(&mut queue, at) {
                    // In its place is its successor, or itself, which waits no longer.
                    let (ticket, cell) = self.grant(&mut queue, at, place);
                    bells.push(ticket, cell);
                    protocol_never!("release_wakes_one_only", break);
                } else {
                    at += 1;
                }
            }
            let again = protocol_value!("settle_stops_at_full_bells", bells.full(), false);
            drop(queue);
            bells.ring();
            if !again {
                return;
            }
            queue = self.queue_or_new().lock();
        }
    }

    /// Where the waiting request at `at` can be held, if nothing stands in its way.
    pub(super) fn grantable(&self, queue: &mut Queue, at: usize) -> Option<Place> {
        // Holders in the words first: when a hot block is busy, this ends the matter for most of its queue.
        let request = &queue.requests[at];
        let mut place = Place::Words;
        let free = request.claims.in_words().all(|claim| {
            Words::of(claim.range).all(|(number, bytes)| {
                let word = self.word(number).map_or(0, |word| word.load(SeqCst));
                if protocol_value!("grant_ignores_the_crowd", !claim.mode.fits(word, bytes), false) {
                    place = Place::List;
                }
                !word::excludes(word, bytes, claim.mode)
            })
        });
        if !free {
            return None;
        }
        let behind = queue.requests.iter().enumerate().any(|(other, older)| match older.state {
            State::Covering | State::Overflow { .. } => older.claims.conflict(&request.claims),
            State::Waiting => {
                protocol_value!("grant_overtakes", other < at, false) && older.claims.conflict(&request.claims)
            }
        });
        (!behind && self.covers(&mut queue.requests[at])).then_some(place)
    }

    /// Whether no holder in the words excludes the request's covering claims; where there is one is remembered.
    fn covers(&self, request: &mut Request) -> bool {
        // Claims are ascending and disjoint: of those behind the first one, all blocks are behind `start` too.
        let (from, start) = request.looked;
        for (index, claim) in request.claims.iter().enumerate().skip(from) {
            let range = claim.covering().then(|| BlockRange::new(claim.range.first().max(start), claim.range.last()));
            if let Some(holder) = range.flatten().and_then(|range| self.first_holder(range, claim.mode, true)) {
                request.looked = (index, holder);
                return false;
            }
        }
        true
    }

    /// Gives the request at `at` its locks, in this place: the ticket to release them with, and the doorbell to ring.
    /// The request leaves the list if all its claims are in the words.
    pub(super) fn grant(&self, queue: &mut Queue, at: usize, place: Place) -> (Ticket, Option<Arc<Cell>>) {
        queue.requests[at].state = match place {
            Place::Words => State::Covering,
            Place::List => State::Overflow { holders: 1 },
        };
        let waited = queue.requests[at].since.map(|since| since.elapsed());
        if let Some(waited) = waited {
            queue.stats.waits += 1;
            queue.stats.waited += waited;
            queue.stats.longest = queue.stats.longest.max(waited);
        }
        let claims = queue.requests[at].claims.clone();
        for claim in claims.in_words().filter(|_| protocol_value!("overflow_keeps_no_bit", place == Place::Words, true))
        {
            for (number, bytes) in Words::of(claim.range) {
                let bits = QUEUED & bytes;
                let unwanted = bits & !queue.wanted(number, bits);
                if let Some((word, mark)) = self.spot(number) {
                    // One step: the holder comes, the bits that no other request wants go. They are all set.
                    let holder = if place == Place::Words { claim.mode.weight(bytes) } else { 0 };
                    word.fetch_add(holder.wrapping_sub(unwanted), SeqCst);
                    mark.inspect(|mark| mark.set());
                }
            }
        }
        let cell = queue.requests[at].cell.take();
        if place == Place::List {
            protocol_never!("overflow_tells_no_ticket", return (Ticket::NONE, cell));
        }
        if place == Place::List || claims.covering() {
            return (queue.requests[at].ticket, cell);
        }
        queue.requests.remove(at);
        (Ticket::NONE, cell)
    }
}
