//! The queue of a table: requests that wait, and claims that are held without being counted in words.
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
//!                          │                             │ in the list: covering claims, and readers beyond the counter
//!                          └── withdraw ──► gone         └ in the words: all others, which leave the list
//!   edges that do not exist: granted ──► waiting; waiting ──► gone without clearing its queued bits
//! ```
//!
//! *Order.* The list is in order of arrival. A request is granted when it conflicts with no older waiting request, with
//! no claim that is held in the list and with no holder in the words: all its claims at once, so it never holds one
//! while it waits for another. Hence no overtaking among requests that conflict, no starvation, and no deadlock among
//! single requests.
//!
//! *Who wakes whom.* A waiting request has set the `queued` bit of each of its blocks, or widened the hull, before it
//! looked at the words for the last time. A thread that releases a block changes the word first. Then it looks at the
//! bit (in the value that this change returned) and at the hull. If either is set for its block, it comes here, and
//! goes through the list for the requests that touch the released blocks. So either the request saw the release, or the
//! releaser sees the request.
//!
//! *While a request's bits are set*, newcomers to its blocks come here too; the states of its blocks can only fall,
//! except by grants under this lock. That is why a grant may look first and add afterwards.
//!
//! *Readers beyond the counter.* The byte of a block counts [`MAX_READERS`](crate::geometry::MAX_READERS) readers. A
//! request that finds one of its blocks full is granted all the same, and held in the list: none of its claims is
//! counted in words, and the `queued` bits of its blocks stay set until it is released. So a thread that comes to these
//! blocks comes here, where a reader is granted and a writer waits behind it. Arrivals with the same claims share one
//! entry, which counts them.
//!
//! *A covering request* looks at the words of its range in ascending order and, when it finds a holder, remembers
//! where. It starts when no older request conflicts; from then on a thread that takes a block in its range sees the
//! hull and backs out. So free blocks stay free, and the words are gone through once, however many releases there are.
//!
//! Nothing is allocated with the lock held (room for a request is made before), and nobody is woken with it held.

mod grant;

use std::collections::VecDeque;
use std::time::Instant;

use f2fs_sync::atomic::Ordering::SeqCst;
use f2fs_sync::{Arc, Mutex, MutexGuard, protocol_never, protocol_step, protocol_value};

use crate::claim::{Claim, Claims};
use crate::geometry::BLOCKS_PER_WORD;
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::{Cell, WaitStats};
use crate::word::{self, Mode, QUEUED};
use crate::words::Words;
use grant::Place;

/// The name of a request in its table's queue; of a granted one, [`Ticket::NONE`] if its locks are in words only.
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
    /// Of the covering claims: the claim and the block from which on the words were not looked at yet.
    looked: (usize, u64),
    since: Option<Instant>,
    cell: Option<Arc<Cell>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// Granted; listed for its covering claims, the others are in the words.
    Covering,
    /// Granted to so many holders beside a full set of readers; none of its claims is in the words.
    Overflow {
        holders: usize,
    },
}

impl Request {
    /// The claims whose blocks have the `queued` bit for this request.
    fn queued(&self) -> impl Iterator<Item = Claim> + '_ {
        let queued = match self.state {
            State::Waiting => true,
            State::Covering => false,
            State::Overflow { .. } => protocol_value!("overflow_keeps_no_bit", true, false),
        };
        self.claims.in_words().filter(move |_| queued)
    }

    /// The claims that are held and not counted in words.
    fn held(&self) -> impl Iterator<Item = Claim> + '_ {
        let state = self.state;
        self.claims.iter().copied().filter(move |claim| match state {
            State::Waiting => false,
            State::Covering => claim.covering(),
            State::Overflow { .. } => true,
        })
    }
}

/// The requests of a table that wait, cover or overflow.
#[derive(Debug)]
pub(crate) struct Queue {
    requests: VecDeque<Request>,
    last_ticket: u64,
    stats: WaitStats,
}

/// The fate of an arriving request.
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

    /// Requests that wait, and entries for claims that are held.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let waiting = self.requests.iter().filter(|request| request.state == State::Waiting).count();
        (waiting, self.requests.len() - waiting)
    }

    /// Whether a claim that is held in the list excludes the claim.
    pub(crate) fn holds_against(&self, claim: Claim) -> bool {
        self.requests.iter().flat_map(Request::held).any(|held| held.conflicts(claim))
    }

    /// Lets the newest request share the entry of an older one with the same claims that overflows too: its ticket.
    fn join_overflow(&mut self, newest: usize) -> Option<Ticket> {
        let claims = &self.requests[newest].claims;
        let same = |request: &Request| matches!(request.state, State::Overflow { .. }) && request.claims == *claims;
        let at = self.requests.iter().position(same)?;
        let State::Overflow { holders } = &mut self.requests[at].state else { return None };
        *holders += 1;
        self.requests.remove(newest);
        Some(self.requests[at].ticket)
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.requests.binary_search_by_key(&ticket, |request| request.ticket).ok()
    }

    /// Those of `bits`, which are queued bits of word `number`, that the requests want set. Looks at no more requests
    /// than it takes to find all of them.
    fn wanted(&self, number: u64, bits: u64) -> u64 {
        let base = number * BLOCKS_PER_WORD;
        let Some(word) = BlockRange::new(base, base + BLOCKS_PER_WORD - 1) else { return 0 };
        let mut wanted = 0;
        let mut requests = self.requests.iter();
        // From both ends in turn: of ranges that overlap, those that came just before and just after one have most of
        // its blocks, and one that leaves the list is often the oldest or the newest.
        while let Some(request) = requests.next() {
            for request in [Some(request), requests.next_back()].into_iter().flatten() {
                // Loops, since a chain of iterators is some three times slower for a long queue.
                for range in request.queued().filter_map(|claim| claim.range.intersection(word)) {
                    wanted |= word::mask(range.first() - base, range.last() - base) & bits;
                }
            }
            if wanted == bits {
                break;
            }
        }
        wanted
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
            looked: (0, 0),
            since: None,
            cell: None,
        });
        for claim in claims.in_words() {
            for (number, bytes) in Words::of(claim.range) {
                if let Some(word) = self.word(number) {
                    protocol_step!("enqueue_sets_no_bit", word.fetch_or(QUEUED & bytes, SeqCst));
                }
            }
        }
        if claims.covering() {
            self.announce(&queue);
        }
        let at = queue.requests.len() - 1;
        if let Some(place) = self.grantable(&mut queue, at) {
            if place == Place::List
                && let Some(ticket) = queue.join_overflow(at)
            {
                return Arrival::Granted(ticket);
            }
            let (ticket, _) = self.grant(&mut queue, at, place);
            return Arrival::Granted(ticket);
        }
        queue.requests[at].since = Some(Instant::now());
        Arrival::Waits(ticket)
    }

    /// Gives a waiting request its doorbell. If it was granted meanwhile, the caller has the locks under the ticket
    /// returned.
    pub(crate) fn attach(&self, ticket: Ticket, cell: &Arc<Cell>) -> Option<Ticket> {
        let mut queue = self.queue_or_new().lock();
        match queue.find(ticket) {
            Some(at) if queue.requests[at].state == State::Waiting => {
                queue.requests[at].cell = Some(Arc::clone(cell));
                None
            }
            listed => protocol_value!("attach_overlooks_a_grant", Some(listed.map_or(Ticket::NONE, |_| ticket)), None),
        }
    }

    /// Takes a waiting request back. If it was granted meanwhile, the caller has the locks under the ticket returned.
    pub(crate) fn withdraw(&self, ticket: Ticket) -> Option<Ticket> {
        let mut queue = self.queue_or_new().lock();
        let at = match queue.find(ticket) {
            Some(at) if queue.requests[at].state == State::Waiting => at,
            listed => {
                return protocol_value!(
                    "withdraw_overlooks_a_grant",
                    Some(listed.map_or(Ticket::NONE, |_| ticket)),
                    None
                );
            }
        };
        let request = queue.requests.remove(at)?;
        queue.stats.withdrawn += 1;
        self.clear_queued(&queue, &request.claims);
        if request.claims.covering() {
            protocol_step!("withdraw_announces_nothing", self.announce(&queue));
        }
        protocol_step!("withdraw_wakes_next", self.settle(queue, request.claims.as_slice()));
        None
    }

    /// Clears the queued bits of the claims of a request that has left the list, where no other wants them.
    fn clear_queued(&self, queue: &Queue, claims: &Claims) {
        for claim in claims.in_words() {
            for (number, bytes) in Words::of(claim.range) {
                let bits = QUEUED & bytes;
                let unwanted = bits & !queue.wanted(number, bits);
                if let Some(word) = self.word(number) {
                    word.fetch_and(!unwanted, SeqCst);
                }
            }
        }
    }

    /// Goes through the queue for those who waited for `released`, which is no longer in the words.
    #[cold]
    pub(crate) fn released(&self, released: &[Claim]) {
        if let Some(queue) = self.queue.get() {
            self.settle(queue.lock(), released);
        }
    }

    /// Releases the claims of a granted request that is in the list: the claims that the list holds, and the claims in
    /// words.
    #[cold]
    pub(crate) fn release_listed(&self, ticket: Ticket, claims: &Claims) {
        let mut queue = self.queue_or_new().lock();
        let Some(at) = queue.find(ticket) else { return };
        match &mut queue.requests[at].state {
            State::Overflow { holders }
                if protocol_value!("overflow_goes_with_its_first_holder", *holders > 1, false) =>
            {
                *holders -= 1;
                return;
            }
            State::Overflow { .. } => {
                queue.requests.remove(at);
                self.clear_queued(&queue, claims);
                protocol_never!("overflow_release_wakes_nobody", return);
            }
            State::Covering | State::Waiting => {
                queue.requests.remove(at);
                for claim in claims.in_words() {
                    for (number, bytes) in Words::of(claim.range) {
                        if let Some(word) = self.word(number) {
                            word.fetch_sub(claim.mode.weight(bytes), SeqCst);
                        }
                    }
                }
            }
        }
        if claims.covering() {
            self.announce(&queue);
        }
        self.settle(queue, claims.as_slice());
    }

    /// Makes the exclusive covering claims of a granted request shared.
    #[cold]
    pub(crate) fn downgrade_covering(&self, ticket: Ticket, claim: Claim) {
        let mut queue = self.queue_or_new().lock();
        if let Some(at) = queue.find(ticket) {
            queue.requests[at].claims = Claims::One(Claim { mode: Mode::Shared, ..claim });
        }
        protocol_step!("downgrade_covering_wakes_next", self.settle(queue, &[claim]));
    }

    fn announce(&self, queue: &Queue) {
        let claims = queue.requests.iter().flat_map(|request| request.claims.iter());
        self.hull.announce(claims.filter(|claim| claim.covering()).map(|claim| claim.range));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
