//! The queue of a table: requests that wait, and covering claims that are held.
//!
//! # Rules
//!
//! A request comes here when the fast path failed or does not apply: a holder or an older request is in its way, it
//! covers a large range, or a covering claim is near. The queue's lock protects the list of requests, the `queued` bits
//! of all words, the writing of the hull, and every grant of a request in the list.
//!
//! ```text
//!             enqueue                     grant                        release
//!   (caller) ─────────► waiting ────────────────────► granted ────────────────────► gone
//!                          │                             │ a covering claim stays in the list as `held`
//!                          └── withdraw ──► gone         └ others are in the words, and leave the list
//!   edges that do not exist: granted ──► waiting; waiting ──► gone without clearing its queued bits
//! ```
//!
//! *Order.* The list is in order of arrival. A request is granted when it conflicts with no older waiting request, with no
//! held covering claim and with no holder in the words: all its claims at once, so it never holds one while it waits for
//! another. Hence no overtaking among requests that conflict, no starvation, and no deadlock among single requests.
//!
//! *Who wakes whom.* A waiting request has set the `queued` bit of each of its blocks, or widened the hull, before it looked
//! at the words for the last time. Whoever releases a block changes the word first and looks at the bit (in the value that
//! this change returned) and the hull afterwards; if either concerns it, it comes here and goes through the list for the
//! requests that touch what it released. So either the request saw the release, or the releaser sees the request.
//!
//! *While a request's bits are set*, newcomers to its blocks come here too; the states of its blocks can only fall, except by
//! grants under this lock. That is why a grant may look first and add afterwards.
//!
//! *A covering request* looks at the words of its range in ascending order and, when it finds a holder, remembers where. It
//! starts when no older request conflicts; from then on whoever takes a block in its range sees the hull and backs out, so
//! what was free stays free, and the words are gone through once, however many releases there are.
//!
//! Nothing is allocated with the lock held (room for a request is made before), and nobody is woken with it held.

mod grant;

use std::collections::VecDeque;
use std::time::Instant;

use f2fs_sync::atomic::Ordering::SeqCst;
use f2fs_sync::{Arc, Mutex, MutexGuard, mutant};

use crate::claim::{Claim, Claims};
use crate::geometry::BLOCKS_PER_WORD;
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::{Cell, WaitStats};
use crate::word::{self, Mode, QUEUED};
use crate::words::Words;

/// The name of a request in its table's queue; [`Ticket::NONE`] for locks that are in words only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

impl Ticket {
    pub(crate) const NONE: Ticket = Ticket(0);

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self == Ticket::NONE
    }
}

#[derive(Debug)]
struct Request {
    ticket: Ticket,
    claims: Claims,
    state: State,
    /// Waits for room among the readers of some block: later readers of the same blocks stay behind it.
    crowded: bool,
    /// Of the covering claims: the claim and the block from which on the words were not looked at yet.
    looked: (usize, u64),
    since: Option<Instant>,
    cell: Option<Arc<Cell>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// Granted; listed for its covering claims.
    Held,
}

/// The requests of a table that wait or cover.
#[derive(Debug)]
pub(crate) struct Queue {
    requests: VecDeque<Request>,
    last_ticket: u64,
    stats: WaitStats,
}

/// What became of an arriving request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arrival {
    Granted(Ticket),
    Waits(Ticket),
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { requests: VecDeque::new(), last_ticket: 0, stats: WaitStats::default() }
    }

    pub(crate) fn stats(&self) -> WaitStats {
        self.stats
    }

    /// Requests that wait, and covering requests that are held.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let waiting = self.requests.iter().filter(|request| request.state == State::Waiting).count();
        (waiting, self.requests.len() - waiting)
    }

    /// Whether a held covering claim excludes the claim.
    pub(crate) fn covered_against(&self, claim: Claim) -> bool {
        let held = self.requests.iter().filter(|request| request.state == State::Held);
        held.flat_map(|request| request.claims.iter()).any(|held| held.covering() && held.conflicts(claim))
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.requests.binary_search_by_key(&ticket, |request| request.ticket).ok()
    }

    /// The queued bits that the waiting requests want set in word `number`.
    fn wanted(&self, number: u64) -> u64 {
        let base = number * BLOCKS_PER_WORD;
        let Some(word) = BlockRange::new(base, base + BLOCKS_PER_WORD - 1) else { return 0 };
        let waiting = self.requests.iter().filter(|request| request.state == State::Waiting);
        let ranges = waiting.flat_map(|request| request.claims.in_words()).filter_map(|c| c.range.intersection(word));
        ranges.fold(0, |bits, range| bits | word::mask(range.first() - base, range.last() - base)) & QUEUED
    }

    /// Locks the queue with room for one more request in its list.
    fn lock_with_room(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
        loop {
            let guard = queue.lock();
            let capacity = guard.requests.capacity();
            if guard.requests.len() < capacity {
                return guard;
            }
            drop(guard);
            let mut larger = VecDeque::with_capacity((capacity * 2).max(4));
            let mut guard = queue.lock();
            if guard.requests.capacity() < larger.capacity() {
                larger.append(&mut guard.requests);
                std::mem::swap(&mut guard.requests, &mut larger);
            }
            // `larger` is the old list or was not needed; it is freed after the guard.
            drop(guard);
        }
    }
}

impl ExtentTable {
    /// Puts a request at the end of the queue, and grants it if nothing stands in its way.
    pub(crate) fn enqueue(&self, claims: &Claims) -> Arrival {
        for claim in claims.in_words() {
            self.install(claim.range);
        }
        let mut queue = Queue::lock_with_room(self.queue_or_new());
        queue.last_ticket += 1;
        let ticket = Ticket(queue.last_ticket);
        queue.requests.push_back(Request {
            ticket,
            claims: claims.clone(),
            state: State::Waiting,
            crowded: false,
            looked: (0, 0),
            since: None,
            cell: None,
        });
        for claim in claims.in_words() {
            for (number, bytes) in Words::of(claim.range) {
                if let Some(word) = self.word(number).filter(|_| !mutant("enqueue_sets_no_bit")) {
                    word.fetch_or(QUEUED & bytes, SeqCst);
                }
            }
        }
        if claims.covering() {
            self.announce(&queue);
        }
        let at = queue.requests.len() - 1;
        if self.grantable(&mut queue, at) {
            let covering = claims.covering();
            self.grant(&mut queue, at);
            return Arrival::Granted(if covering { ticket } else { Ticket::NONE });
        }
        queue.requests[at].since = Some(Instant::now());
        Arrival::Waits(ticket)
    }

    /// Gives a waiting request its doorbell; `false` if it was granted meanwhile.
    pub(crate) fn attach(&self, ticket: Ticket, cell: &Arc<Cell>) -> bool {
        let mut queue = self.queue_or_new().lock();
        match queue.find(ticket) {
            Some(at) if queue.requests[at].state == State::Waiting => {
                queue.requests[at].cell = Some(Arc::clone(cell));
                true
            }
            _ => mutant("attach_overlooks_a_grant"),
        }
    }

    /// Takes a waiting request back; `false` if it was granted meanwhile, and the caller has the locks.
    pub(crate) fn withdraw(&self, ticket: Ticket) -> bool {
        let mut queue = self.queue_or_new().lock();
        let Some(at) = queue.find(ticket).filter(|&at| queue.requests[at].state == State::Waiting) else {
            return mutant("withdraw_overlooks_a_grant");
        };
        let Some(request) = queue.requests.remove(at) else { return false };
        queue.stats.withdrawn += 1;
        for claim in request.claims.in_words() {
            for (number, bytes) in Words::of(claim.range) {
                let unwanted = QUEUED & bytes & !queue.wanted(number);
                if let Some(word) = self.word(number) {
                    word.fetch_and(!unwanted, SeqCst);
                }
            }
        }
        if request.claims.covering() {
            self.announce(&queue);
        }
        if !mutant("withdraw_wakes_nobody") {
            self.settle(queue, request.claims.as_slice());
        }
        true
    }

    /// Goes through the queue for those who waited for `released`, which is no longer in the words.
    #[cold]
    pub(crate) fn released(&self, released: &[Claim]) {
        if let Some(queue) = self.queue.get() {
            self.settle(queue.lock(), released);
        }
    }

    /// Releases the covering claims of a granted request; those in words are released already.
    #[cold]
    pub(crate) fn release_covering(&self, ticket: Ticket, claims: &[Claim]) {
        let mut queue = self.queue_or_new().lock();
        if let Some(at) = queue.find(ticket) {
            queue.requests.remove(at);
        }
        self.announce(&queue);
        self.settle(queue, claims);
    }

    /// Makes the exclusive covering claims of a granted request shared.
    #[cold]
    pub(crate) fn downgrade_covering(&self, ticket: Ticket, claim: Claim) {
        let mut queue = self.queue_or_new().lock();
        if let Some(at) = queue.find(ticket) {
            queue.requests[at].claims = Claims::One(Claim { mode: Mode::Shared, ..claim });
        }
        self.settle(queue, &[claim]);
    }

    fn announce(&self, queue: &Queue) {
        let claims = queue.requests.iter().flat_map(|request| request.claims.iter());
        self.hull.announce(claims.filter(|claim| claim.covering()).map(|claim| claim.range));
    }
}
