//! Every path to a lock and back: the fast one, the queue, and the wait for a grant.

use f2fs_sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use f2fs_sync::{Arc, mutant};

use crate::claim::{Claim, Claims};
use crate::guard::{ExclusiveGuard, SharedGuard};
use crate::queue::{Arrival, Ticket};
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::{Cell, LockError, Ring, Wait};
use crate::word::{Mode, QUEUED};
use crate::words::Words;

impl ExtentTable {
    /// Takes the claims, waiting as `wait` says.
    pub(crate) fn acquire(&self, claims: &Claims, wait: &Wait<'_>) -> Result<Ticket, LockError> {
        if self.take_claims(claims) {
            return Ok(Ticket::NONE);
        }
        let Some(first) = claims.iter().next().map(|claim| claim.range) else { return Ok(Ticket::NONE) };
        if wait.is_not() && claims.in_words().any(|claim| !self.fits(claim)) {
            return Err(LockError::Busy { range: first });
        }
        let ticket = match self.enqueue(claims) {
            Arrival::Granted(ticket) => return Ok(ticket),
            Arrival::Waits(ticket) => ticket,
        };
        let granted = if claims.covering() { ticket } else { Ticket::NONE };
        if wait.is_not() {
            return if self.withdraw(ticket) { Err(LockError::Busy { range: first }) } else { Ok(granted) };
        }
        let start = std::time::Instant::now();
        let cell = Arc::new(Cell::default());
        if !self.attach(ticket, &cell) {
            return Ok(granted);
        }
        let ring = wait.wait(&cell);
        if ring == Ring::Granted || !self.withdraw(ticket) {
            return Ok(granted);
        }
        let waited = start.elapsed();
        Err(match ring {
            Ring::Cancelled => LockError::Cancelled { range: first, waited },
            _ => LockError::TimedOut { range: first, waited },
        })
    }

    /// Whether the holders in the words leave room for the claim, for now.
    fn fits(&self, claim: Claim) -> bool {
        Words::of(claim.range)
            .all(|(number, bytes)| self.word(number).is_none_or(|word| claim.mode.fits(word.load(Relaxed), bytes)))
    }

    /// Takes the claims on the fast path, if it applies and succeeds.
    pub(crate) fn take_claims(&self, claims: &Claims) -> bool {
        !claims.covering() && self.take(claims.as_slice())
    }

    /// Releases the claims of a granted request.
    pub(crate) fn release(&self, claims: &Claims, ticket: Ticket) {
        match claims {
            _ if ticket.is_none() => self.release_words(claims.as_slice()),
            Claims::One(claim) => self.release_covering(ticket, &[*claim]),
            Claims::Many(claims) => {
                claims.iter().filter(|claim| !claim.covering()).for_each(|&claim| self.release_words(&[claim]));
                self.release_covering(ticket, claims);
            }
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
        if (noticed || !self.hull.misses(range)) && !mutant("downgrade_wakes_nobody") {
            self.released(&[claim]);
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
