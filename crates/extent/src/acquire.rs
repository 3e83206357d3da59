//! Every path to a lock and back: the fast one, the queue, and the wait for a grant.

use f2fs_sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use f2fs_sync::{Arc, protocol_step};

use crate::claim::{Claim, Claims};
use crate::guard::{ExclusiveGuard, SharedGuard};
use crate::queue::{Arrival, Ticket};
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::{Cell, LockError, Ring, Wait};
use crate::word::{self, Mode, QUEUED};
use crate::words::Words;

impl ExtentTable {
    /// Takes the claims, waiting as `wait` says.
    pub(crate) fn acquire(&self, claims: &Claims, wait: &Wait<'_>) -> Result<Ticket, LockError> {
        if self.take_claims(claims) {
            return Ok(Ticket::NONE);
        }
        let Some(first) = claims.iter().next().map(|claim| claim.range) else { return Ok(Ticket::NONE) };
        if wait.is_not() && claims.in_words().any(|claim| self.excluded(claim)) {
            return Err(LockError::Busy { range: first });
        }
        let ticket = match self.enqueue(claims) {
            Arrival::Granted(ticket) => return Ok(ticket),
            Arrival::Waits(ticket) => ticket,
        };
        if wait.is_not() {
            return self.withdraw(ticket).ok_or(LockError::Busy { range: first });
        }
        let start = std::time::Instant::now();
        let cell = Arc::new(Cell::default());
        if let Some(granted) = self.attach(ticket, &cell) {
            return Ok(granted);
        }
        let cancelled = match wait.wait(&cell) {
            Ring::Granted(ticket) => return Ok(ticket),
            Ring::Cancelled => true,
            Ring::TimedOut => false,
        };
        if let Some(granted) = self.withdraw(ticket) {
            return Ok(granted);
        }
        let waited = start.elapsed();
        Err(match cancelled {
            true => LockError::Cancelled { range: first, waited },
            false => LockError::TimedOut { range: first, waited },
        })
    }

    /// Whether a holder in the words excludes the claim, for now.
    fn excluded(&self, claim: Claim) -> bool {
        let mut words = Words::of(claim.range).filter_map(|(number, bytes)| Some((self.word(number)?, bytes)));
        words.any(|(word, bytes)| word::excludes(word.load(Relaxed), bytes, claim.mode))
    }

    /// Takes the claims on the fast path, if it applies and succeeds.
    pub(crate) fn take_claims(&self, claims: &Claims) -> bool {
        !claims.covering() && self.take(claims.as_slice())
    }

    /// Releases the claims of a granted request.
    pub(crate) fn release(&self, claims: &Claims, ticket: Ticket) {
        match ticket {
            Ticket::NONE => self.release_words(claims.as_slice()),
            listed => self.release_listed(listed, claims),
        }
    }

    /// Releases a range that is locked in a mode.
    #[inline(never)]
    pub(crate) fn release_range(&self, range: BlockRange, mode: Mode, ticket: Ticket) {
        self.release(&Claims::One(Claim { range, mode }), ticket);
    }

    /// Makes an exclusive range shared, without letting it go in between.
    pub(crate) fn downgrade(&self, range: BlockRange, ticket: Ticket) {
        let claim = Claim { range, mode: Mode::Exclusive };
        if !ticket.is_none() {
            self.downgrade_covering(ticket, claim);
            return;
        }
        let mut noticed = false;
        for (number, bytes) in Words::of(range) {
            if let Some(word) = self.word(number) {
                let down = Mode::Exclusive.weight(bytes) - Mode::Shared.weight(bytes);
                noticed |= word.fetch_sub(down, SeqCst) & bytes & QUEUED != 0;
            }
        }
        if noticed || !self.hull.misses(range) {
            protocol_step!("downgrade_wakes_nobody", self.released(&[claim]));
        }
    }

    pub(crate) fn acquire_optional(
        &self,
        range: Option<BlockRange>,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<Ticket, LockError> {
        match range {
            Some(range) => self.acquire(&Claims::One(Claim { range, mode }), wait),
            None => Ok(Ticket::NONE),
        }
    }

    #[inline(never)]
    pub(crate) fn acquire_range(&self, range: Option<BlockRange>, mode: Mode) -> Ticket {
        // A wait without limit and without token ends only with the grant.
        self.acquire_optional(range, mode, &Wait::FOREVER).unwrap_or(Ticket::NONE)
    }

    #[inline(never)]
    pub(crate) fn shared_range(
        &self,
        range: Option<BlockRange>,
        wait: &Wait<'_>,
    ) -> Result<SharedGuard<'_>, LockError> {
        let ticket = self.acquire_optional(range, Mode::Shared, wait)?;
        Ok(SharedGuard::new(self, range, ticket))
    }

    #[inline(never)]
    pub(crate) fn exclusive_range(
        &self,
        range: Option<BlockRange>,
        wait: &Wait<'_>,
    ) -> Result<ExclusiveGuard<'_>, LockError> {
        let ticket = self.acquire_optional(range, Mode::Exclusive, wait)?;
        Ok(ExclusiveGuard::new(self, range, ticket))
    }
}
