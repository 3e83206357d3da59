//! Several ranges, of one file or of several, in one call that cannot deadlock with other such calls.
//!
//! The ranges of one table are one request: granted together, never held in part. Tables are locked in the order of
//! their addresses, which do not change while they are borrowed.

use std::ops::RangeBounds;

use f2fs_sync::protocol_step;

use crate::claim::{Claim, Claims};
use crate::queue::Ticket;
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::wait::{LockError, Wait};
use crate::word::Mode;

/// One range of one file, for [`lock_many`].
#[derive(Debug, Clone, Copy)]
pub struct LockRequest<'a> {
    table: &'a ExtentTable,
    range: Option<BlockRange>,
    mode: Mode,
}

impl<'a> LockRequest<'a> {
    /// A range to share with other readers.
    pub fn shared(table: &'a ExtentTable, range: impl RangeBounds<u64>) -> LockRequest<'a> {
        LockRequest { table, range: BlockRange::of(range), mode: Mode::Shared }
    }

    /// A range to have alone.
    pub fn exclusive(table: &'a ExtentTable, range: impl RangeBounds<u64>) -> LockRequest<'a> {
        LockRequest { table, range: BlockRange::of(range), mode: Mode::Exclusive }
    }
}

/// The ranges that [`lock_many`] locked, until the guard is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard unlocks at once"]
pub struct ManyGuard<'a> {
    held: Vec<(&'a ExtentTable, Claims, Ticket)>,
}

impl ManyGuard<'_> {
    /// The ranges that are locked, table by table, disjoint within each: the requested ones, joined where they overlap
    /// or touch.
    pub fn ranges(&self) -> impl Iterator<Item = (&ExtentTable, BlockRange, Mode)> {
        self.held.iter().flat_map(|(table, claims, _)| claims.iter().map(|claim| (*table, claim.range, claim.mode)))
    }
}

impl Drop for ManyGuard<'_> {
    fn drop(&mut self) {
        for (table, claims, ticket) in self.held.drain(..).rev() {
            table.release(&claims, ticket);
        }
    }
}

/// Waits until all the ranges are locked. Ranges of one file may overlap: the stronger mode counts where they do.
///
/// Any number of threads may do this with any ranges in any order: they do not deadlock, unless a thread holds another
/// lock of these tables while it calls.
///
/// ```
/// use f2fs_extent::{ExtentTable, LockRequest, lock_many};
///
/// // Move blocks 0..8 of one file to 16..24 of another.
/// let (from, to) = (ExtentTable::new(), ExtentTable::new());
/// let both = lock_many(&[LockRequest::shared(&from, 0..8), LockRequest::exclusive(&to, 16..24)]);
/// assert!(from.try_shared(0..8).is_some());
/// assert!(to.try_shared(20..21).is_none());
/// drop(both);
/// assert!(to.try_shared(20..21).is_some());
/// ```
pub fn lock_many<'a>(requests: &[LockRequest<'a>]) -> ManyGuard<'a> {
    // A wait without limit and without token ends only with the grant.
    lock_many_with(requests, &Wait::FOREVER).unwrap_or_else(|_| ManyGuard { held: Vec::new() })
}

/// Locks all the ranges, waiting as `wait` says for each of the files.
///
/// # Errors
///
/// [`LockError`] if the wait ended first; nothing is locked then.
pub fn lock_many_with<'a>(requests: &[LockRequest<'a>], wait: &Wait<'_>) -> Result<ManyGuard<'a>, LockError> {
    let mut requests: Vec<&LockRequest<'a>> = requests.iter().filter(|request| request.range.is_some()).collect();
    protocol_step!("many_sorted", requests.sort_by_key(|request| std::ptr::from_ref(request.table).addr()));
    let mut guard = ManyGuard { held: Vec::with_capacity(requests.len()) };
    for of_table in requests.chunk_by(|a, b| std::ptr::eq(a.table, b.table)) {
        let table = of_table[0].table;
        let claims = of_table.iter().filter_map(|request| Some(Claim { range: request.range?, mode: request.mode }));
        let claims = Claims::normalized(&claims.collect::<Vec<_>>());
        let ticket = table.acquire(&claims, wait)?;
        guard.held.push((table, claims, ticket));
    }
    Ok(guard)
}
