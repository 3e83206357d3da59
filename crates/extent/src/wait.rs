//! How a request waits, and how a wait ends early.
//!
//! **Rules.** A [`Cell`] is one waiting request's doorbell: a flag and a waker under a lock of its own. Whether a
//! request is granted is decided in the table's queue, under the queue's lock; the cell only tells. Locks are taken one
//! at a time: nobody holds the queue's lock, a cell's or a token's together with another of them. So a ring may come
//! late (the request was withdrawn meanwhile: nobody looks) but not too early.

use std::fmt;
use std::task::Waker;
use std::time::{Duration, Instant};

use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_sync::{Arc, Condvar, Mutex, protocol_never, protocol_step};

use crate::queue::Ticket;
use crate::range::BlockRange;

/// A waiting request's doorbell.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    signal: Mutex<Signal>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct Signal {
    granted: Option<Ticket>,
    cancelled: bool,
    waker: Option<Waker>,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ring {
    Granted(Ticket),
    TimedOut,
    Cancelled,
}

impl Cell {
    /// Tells the waiter that it has its locks, and with which ticket they are released.
    pub(crate) fn grant(&self, ticket: Ticket) {
        let waker = {
            let mut signal = self.signal.lock();
            signal.granted = Some(ticket);
            self.rung.notify_one();
            signal.waker.take()
        };
        if let Some(waker) = waker {
            protocol_step!("grant_wakes_no_future", waker.wake());
        }
    }

    /// Tells the waiter to give up.
    fn cancel(&self) {
        let mut signal = self.signal.lock();
        signal.cancelled = true;
        self.rung.notify_one();
    }

    /// Blocks until the bell rings or the deadline passes.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Ring {
        let mut signal = self.signal.lock();
        loop {
            if let Some(ticket) = signal.granted {
                return Ring::Granted(ticket);
            }
            if signal.cancelled {
                return Ring::Cancelled;
            }
            match deadline {
                None => self.rung.wait(&mut signal),
                Some(deadline) => {
                    if self.rung.wait_until(&mut signal, deadline).timed_out() && signal.granted.is_none() {
                        return Ring::TimedOut;
                    }
                }
            }
        }
    }

    /// The bell's ticket if it rang; if it has not, it will wake `waker`.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Ticket> {
        let mut signal = self.signal.lock();
        if signal.granted.is_none() && !signal.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            signal.waker = Some(waker.clone());
        }
        signal.granted
    }
}

/// How long a request may wait, and who may end the wait.
///
/// ```
/// use std::time::Duration;
/// use f2fs_extent::{ExtentTable, Wait};
///
/// let table = ExtentTable::new();
/// let reading = table.shared(0..10);
/// let wait = Wait::up_to(Duration::from_millis(1));
/// assert!(table.shared_with(5..15, &wait).is_ok());
/// assert!(table.exclusive_with(5..15, &wait).is_err(), "blocks 5 to 9 are being read");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Wait<'a> {
    limit: Limit,
    cancel: Option<&'a CancelToken>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Limit {
    #[default]
    None,
    Now,
    Until(Instant),
}

impl<'a> Wait<'a> {
    /// As long as it takes.
    pub const FOREVER: Wait<'static> = Wait { limit: Limit::None, cancel: None };
    /// Not at all.
    pub const NOT: Wait<'static> = Wait { limit: Limit::Now, cancel: None };

    /// Until this much time has passed from now.
    #[must_use]
    pub fn up_to(time: Duration) -> Wait<'static> {
        // A time too far off to be written down is as good as forever.
        let limit = Instant::now().checked_add(time).map_or(Limit::None, Limit::Until);
        Wait { limit, cancel: None }
    }

    /// Until this instant.
    #[must_use]
    pub const fn until(deadline: Instant) -> Wait<'static> {
        Wait { limit: Limit::Until(deadline), cancel: None }
    }

    /// The same, or until the token is cancelled.
    #[must_use]
    pub const fn or_cancelled(self, token: &'a CancelToken) -> Wait<'a> {
        Wait { limit: self.limit, cancel: Some(token) }
    }

    /// Whether a request that would have to wait fails instead.
    pub(crate) fn is_not(&self) -> bool {
        matches!(self.limit, Limit::Now)
    }

    /// Waits for the cell.
    pub(crate) fn wait(&self, cell: &Arc<Cell>) -> Ring {
        let deadline = match self.limit {
            Limit::None => None,
            Limit::Now => return Ring::TimedOut,
            Limit::Until(deadline) => Some(deadline),
        };
        let Some(token) = self.cancel else { return cell.wait(deadline) };
        token.register(cell);
        let ring = cell.wait(deadline);
        token.forget(cell);
        ring
    }
}

/// Ends the waits that were told of it; clones are one token.
///
/// A cancelled token stays cancelled: later waits with it end at once. It never takes a granted lock away.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    state: Arc<CancelState>,
}

#[derive(Debug, Default)]
struct CancelState {
    cancelled: AtomicBool,
    waiting: Mutex<Vec<Arc<Cell>>>,
}

impl CancelToken {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Ends every wait with this token, now and in future.
    pub fn cancel(&self) {
        protocol_step!("cancel_flag_set_late", self.state.cancelled.store(true, Ordering::Release));
        // Registration looks at the flag with the lock held, so each cell is either in the list or sees the flag.
        let waiting = std::mem::take(&mut *self.state.waiting.lock());
        protocol_never!("cancel_flag_set_late", self.state.cancelled.store(true, Ordering::Release));
        for cell in waiting {
            cell.cancel();
        }
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.cancelled.load(Ordering::Acquire)
    }

    fn register(&self, cell: &Arc<Cell>) {
        let cancelled = {
            let mut waiting = self.state.waiting.lock();
            let cancelled = self.state.cancelled.load(Ordering::Acquire);
            if !cancelled {
                waiting.push(Arc::clone(cell));
            }
            cancelled
        };
        if cancelled {
            cell.cancel();
        }
    }

    fn forget(&self, cell: &Arc<Cell>) {
        let mut waiting = self.state.waiting.lock();
        if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, cell)) {
            waiting.swap_remove(at);
        }
    }
}

/// Why a lock was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Others hold it or wait for it, and the request was not to wait.
    #[error("blocks {range} are locked or waited for by others")]
    Busy {
        /// The range that was asked for; of several ranges, the first.
        range: BlockRange,
    },
    /// The time ran out.
    #[error("blocks {range} were not free in time: waited {waited:?}")]
    TimedOut {
        /// The range that was asked for; of several ranges, the first.
        range: BlockRange,
        /// How long the request waited.
        waited: Duration,
    },
    /// The token was cancelled.
    #[error("the wait for blocks {range} was cancelled after {waited:?}")]
    Cancelled {
        /// The range that was asked for; of several ranges, the first.
        range: BlockRange,
        /// How long the request waited.
        waited: Duration,
    },
}

/// How much waiting a table has seen. Requests that got their locks at once are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WaitStats {
    /// Requests that had to wait, and have got their locks.
    pub waits: u64,
    /// Requests that gave up: out of time, cancelled, or dropped.
    pub withdrawn: u64,
    /// The time that the first kind spent waiting, added up.
    pub waited: Duration,
    /// The longest single wait.
    pub longest: Duration,
}

impl fmt::Display for BlockRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.first(), self.last())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::ExtentTable;

    #[test]
    fn a_token_forgets_who_waits_no_longer() {
        let (table, token) = (ExtentTable::new(), CancelToken::new());
        assert!(!token.is_cancelled());
        let _held = table.exclusive(3..=3);
        for _ in 0..3 {
            let wait = Wait::up_to(Duration::ZERO).or_cancelled(&token);
            assert!(matches!(table.shared_with(3..=3, &wait), Err(LockError::TimedOut { .. })));
        }
        assert!(token.state.waiting.lock().is_empty());
    }

    #[test]
    fn a_bell_tells_what_came_first() {
        let now = Instant::now();
        let cell = Cell::default();
        assert_eq!(cell.wait(Some(now)), Ring::TimedOut);
        cell.cancel();
        assert_eq!((cell.wait(Some(now)), cell.wait(None)), (Ring::Cancelled, Ring::Cancelled));
        cell.grant(Ticket::NONE);
        assert_eq!((cell.wait(Some(now)), cell.wait(None)), (Ring::Granted(Ticket::NONE), Ring::Granted(Ticket::NONE)));
    }

    /// No time runs out when somebody else ends the wait.
    #[test]
    fn a_wait_with_a_limit_ends_with_the_news() {
        let far = Instant::now() + Duration::from_secs(3600);
        for round in 0..40 {
            let cancelled = round % 2 == 0;
            let cell = Arc::new(Cell::default());
            let waiter = std::thread::spawn({
                let cell = Arc::clone(&cell);
                move || cell.wait(Some(far))
            });
            // Sooner or later it waits before the news come.
            (0..round * 4).for_each(|_| std::thread::yield_now());
            if cancelled {
                cell.cancel();
            } else {
                cell.grant(Ticket::NONE);
            }
            let wanted = if cancelled { Ring::Cancelled } else { Ring::Granted(Ticket::NONE) };
            assert_eq!(waiter.join().expect("no panic"), wanted);
        }
    }
}
