//! Locks for asynchronous code: futures that queue a waker in the place of a sleeping thread.
//!
//! A future asks for its range when it is first polled, keeps its place in the queue between polls, and gives it up
//! when it is dropped. No executor is assumed.

use std::future::Future;
use std::ops::RangeBounds;
use std::pin::Pin;
use std::task::{Context, Poll};

use f2fs_sync::Arc;

use crate::claim::{Claim, Claims};
use crate::guard::{ExclusiveGuard, SharedGuard};
use crate::queue::{Arrival, Ticket};
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::Cell;
use crate::word::Mode;

/// A request and where it is.
///
/// ```text
///   new ──poll──► done (granted at once)
///   new ──poll──► waiting ──poll, the bell has rung──► done
///   waiting ──drop──► withdrawn, or released if it was granted unseen
/// ```
#[derive(Debug)]
struct Pending<'a> {
    table: &'a ExtentTable,
    range: Option<BlockRange>,
    mode: Mode,
    /// The request in the queue and its bell, while it waits.
    waiting: Option<(Ticket, Arc<Cell>)>,
}

impl Pending<'_> {
    fn claims(&self, range: BlockRange) -> Claims {
        Claims::One(Claim { range, mode: self.mode })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ticket> {
        let Some(range) = self.range else { return Poll::Ready(Ticket::NONE) };
        let claims = self.claims(range);
        if let Some((_, cell)) = &self.waiting {
            let Some(ticket) = cell.poll(context.waker()) else { return Poll::Pending };
            self.waiting = None;
            return Poll::Ready(ticket);
        }
        if self.table.take_claims(&claims) {
            return Poll::Ready(Ticket::NONE);
        }
        let ticket = match self.table.enqueue(&claims) {
            Arrival::Granted(ticket) => return Poll::Ready(ticket),
            Arrival::Waits(ticket) => ticket,
        };
        let cell = Arc::new(Cell::default());
        cell.poll(context.waker());
        if let Some(granted) = self.table.attach(ticket, &cell) {
            return Poll::Ready(granted);
        }
        self.waiting = Some((ticket, cell));
        Poll::Pending
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let (Some(range), Some((ticket, _))) = (self.range, &self.waiting)
            && let Some(ticket) = self.table.withdraw(*ticket)
        {
            self.table.release(&self.claims(range), ticket);
        }
    }
}

/// Shares a range of blocks; see [`ExtentTable::shared_async`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is polled"]
pub struct SharedFuture<'a>(Pending<'a>);

/// Takes a range of blocks alone; see [`ExtentTable::exclusive_async`].
#[derive(Debug)]
#[must_use = "a future does nothing until it is polled"]
pub struct ExclusiveFuture<'a>(Pending<'a>);

impl<'a> Future for SharedFuture<'a> {
    type Output = SharedGuard<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<SharedGuard<'a>> {
        let pending = &mut self.0;
        pending.poll(context).map(|ticket| SharedGuard::new(pending.table, pending.range, ticket))
    }
}

impl<'a> Future for ExclusiveFuture<'a> {
    type Output = ExclusiveGuard<'a>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExclusiveGuard<'a>> {
        let pending = &mut self.0;
        pending.poll(context).map(|ticket| ExclusiveGuard::new(pending.table, pending.range, ticket))
    }
}

impl ExtentTable {
    /// A future that shares the blocks, in its turn among waiting threads and futures. Do not poll it again after it
    /// was ready.
    pub fn shared_async(&self, range: impl RangeBounds<u64>) -> SharedFuture<'_> {
        let range = BlockRange::of(range);
        SharedFuture(Pending { table: self, range, mode: Mode::Shared, waiting: None })
    }

    /// A future that takes the blocks alone, in its turn among waiting threads and futures. Do not poll it again after
    /// it was ready.
    pub fn exclusive_async(&self, range: impl RangeBounds<u64>) -> ExclusiveFuture<'_> {
        let range = BlockRange::of(range);
        ExclusiveFuture(Pending { table: self, range, mode: Mode::Exclusive, waiting: None })
    }
}
