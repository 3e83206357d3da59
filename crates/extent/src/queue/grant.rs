//! Who among the waiting requests gets its locks, and when: under the queue's lock, by the rules in [`queue`](crate::queue).

use f2fs_sync::atomic::Ordering::SeqCst;
use f2fs_sync::{Arc, MutexGuard, mutant};

use super::{Queue, Request, State};
use crate::claim::Claim;
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::Cell;
use crate::word::{self, Mode, QUEUED};
use crate::words::Words;

/// Doorbells to ring when the queue's lock is released.
struct Bells {
    cells: [Option<Arc<Cell>>; Bells::MOST],
    count: usize,
}

impl Bells {
    const MOST: usize = 16;

    fn new() -> Bells {
        Bells { cells: [const { None }; Bells::MOST], count: 0 }
    }

    fn full(&self) -> bool {
        self.count == Bells::MOST
    }

    fn push(&mut self, cell: Option<Arc<Cell>>) {
        if cell.is_some() {
            self.cells[self.count] = cell;
            self.count += 1;
        }
    }

    fn ring(self) {
        for cell in self.cells.into_iter().flatten() {
            cell.grant();
        }
    }
}

impl ExtentTable {
    /// Grants what can be granted among the requests that touch `released`, and rings their bells with the lock released.
    pub(super) fn settle<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, released: &[Claim]) {
        let mut everyone = false;
        loop {
            let mut bells = Bells::new();
            let mut at = 0;
            while at < queue.requests.len() && !bells.full() {
                let request = &queue.requests[at];
                let crowded = request.crowded;
                let touched = everyone || request.claims.overlap(released);
                if request.state == State::Waiting && touched && self.grantable(&mut queue, at) {
                    // Readers that stayed behind it for the sake of order may have nothing to do with `released`.
                    everyone |= crowded;
                    let before = queue.requests.len();
                    bells.push(self.grant(&mut queue, at));
                    // A request that left the list has its successor in its place.
                    at += usize::from(queue.requests.len() == before);
                    if mutant("release_wakes_one_only") {
                        break;
                    }
                } else {
                    at += 1;
                }
            }
            let again = bells.full();
            drop(queue);
            bells.ring();
            if !again {
                return;
            }
            queue = self.queue_or_new().lock();
        }
    }

    /// Whether nothing stands in the way of the waiting request at `at`.
    pub(super) fn grantable(&self, queue: &mut Queue, at: usize) -> bool {
        // Holders in the words first: when a hot block is busy, this ends the matter for most of its queue.
        let request = &queue.requests[at];
        let mut crowded = false;
        let free = request.claims.in_words().all(|claim| {
            Words::of(claim.range).all(|(number, bytes)| {
                let word = self.word(number).map_or(0, |word| word.load(SeqCst));
                let fits =
                    claim.mode.fits(word, bytes) || (mutant("grant_ignores_the_crowd") && claim.mode == Mode::Shared);
                crowded |= !fits && !word::excludes(word, bytes, claim.mode);
                fits
            })
        });
        queue.requests[at].crowded = crowded;
        if !free {
            return false;
        }
        let request = &queue.requests[at];
        let behind = queue.requests.iter().enumerate().any(|(other, older)| match older.state {
            State::Held => older.claims.conflict(&request.claims),
            State::Waiting => {
                other < at
                    && !mutant("grant_overtakes")
                    && (older.claims.conflict(&request.claims)
                        || older.crowded && older.claims.overlap(request.claims.as_slice()))
            }
        });
        !behind && self.covers(&mut queue.requests[at])
    }

    /// Whether no holder in the words excludes the request's covering claims; where there is one is remembered.
    fn covers(&self, request: &mut Request) -> bool {
        let (from, mut start) = request.looked;
        for (index, claim) in request.claims.iter().enumerate().skip(from) {
            let range = claim.covering().then(|| BlockRange::new(claim.range.first().max(start), claim.range.last()));
            if let Some(holder) = range.flatten().and_then(|range| self.first_holder(range, claim.mode, true)) {
                request.looked = (index, holder);
                return false;
            }
            start = 0;
        }
        true
    }

    /// Gives the request at `at` its locks; it leaves the list unless it has covering claims.
    pub(super) fn grant(&self, queue: &mut Queue, at: usize) -> Option<Arc<Cell>> {
        queue.requests[at].state = State::Held;
        let waited = queue.requests[at].since.map(|since| since.elapsed());
        if let Some(waited) = waited {
            queue.stats.waits += 1;
            queue.stats.waited += waited;
            queue.stats.longest = queue.stats.longest.max(waited);
        }
        let claims = queue.requests[at].claims.clone();
        for claim in claims.in_words() {
            for (number, bytes) in Words::of(claim.range) {
                let unwanted = QUEUED & bytes & !queue.wanted(number);
                if let Some((word, mark)) = self.spot(number) {
                    // One step: the holder comes, the bits that no other request wants go. They are all set.
                    word.fetch_add(claim.mode.weight(bytes).wrapping_sub(unwanted), SeqCst);
                    mark.inspect(|mark| mark.set());
                }
            }
        }
        let cell = queue.requests[at].cell.take();
        if !claims.covering() {
            queue.requests.remove(at);
        }
        cell
    }
}
