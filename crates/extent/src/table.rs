//! The lock table of one file.
//!
//! # Rules
//!
//! *The words* (`fast.rs`) hold the readers and writers of ranges below
//! [`COVERING_BLOCKS`](crate::geometry::COVERING_BLOCKS) blocks. The fast path changes them without a lock: a range
//! inside one word by one compare-and-swap; a longer one word by word in ascending order. If one word cannot be taken,
//! the ones before it are put back before anything else happens. Nobody waits while holding words that are not yet
//! granted, so no order among ranges is needed.
//!
//! *The hull* is looked at after the words were taken (and after they were released); see [`hull`](crate::hull).
//!
//! *The queue* has everyone who waits, and covering claims; see [`queue`](crate::queue).
//!
//! ```text
//!   lock a range ──► words taken, hull misses ──────────────► granted
//!        │                    │ hull hits: put them back
//!        │ word in the way    ▼
//!        ├──► put back ──► enqueue ──► granted at once, or wait for the bell
//!        └ covering ──────────▲
//! ```

use std::fmt;
use std::ops::RangeBounds;

use f2fs_sync::atomic::Ordering::SeqCst;
use f2fs_sync::{Mutex, OnceLock, PlainArc, protocol_value};

use crate::claim::Claim;
use crate::directory::{Directory, Line};
use crate::fast::{EXCLUSIVE, SHARED};
use crate::geometry::BLOCKS_PER_WORD;
use crate::guard::{ExclusiveGuard, OwnedGuard, SharedGuard};
use crate::hull::Hull;
use crate::queue::Queue;
use crate::range::BlockRange;
use crate::wait::{LockError, Wait, WaitStats};
use crate::word::{self, Mode};

/// The lock table of one file: shared and exclusive locks on ranges of blocks.
///
/// An empty table is two cache lines with no heap behind them, and stays so while the file has at most 64 blocks and
/// nobody has to wait.
///
/// Ranges are given as Rust ranges of block numbers: `7..=7`, `0..256`, `100..` (to the end of the file, however far it
/// reaches), `..` (the whole file). An empty range locks nothing. A thread that asks for a range of which it holds a
/// part in a conflicting mode waits for itself, as with any lock.
///
/// ```
/// use f2fs_extent::ExtentTable;
///
/// let table = ExtentTable::new();
/// let reader = table.shared(0..=7);
/// let another = table.shared(4..=9);
/// assert!(table.try_exclusive(9..=9).is_none(), "block 9 is being read");
/// drop(another);
/// let writer = table.try_exclusive(9..=9).expect("nobody reads block 9 any more");
/// let truncate = table.try_exclusive(1000..).expect("nobody is out there");
/// drop((reader, writer, truncate));
/// ```
pub struct ExtentTable {
    pub(crate) hull: Hull,
    pub(crate) directory: OnceLock<Box<Directory>>,
    pub(crate) queue: OnceLock<Box<Mutex<Queue>>>,
    pub(crate) first: Line,
}

impl ExtentTable {
    /// A table in which nothing is locked. Does not allocate.
    #[must_use]
    pub fn new() -> ExtentTable {
        ExtentTable { hull: Hull::new(), directory: OnceLock::new(), queue: OnceLock::new(), first: Line::new() }
    }

    /// Waits until the blocks may be shared with other readers.
    ///
    /// Any number of holders may share a block, and none of them waits for another. 126 of them are counted in the
    /// block's byte. While a block has more, locks of it go through the table's queue: each lock and unlock takes the
    /// queue's lock and looks at all entries of the queue. All further holders of one range are one entry, unless they
    /// waited for it. An exclusive request waits for earlier requests, and later readers wait behind it, as always.
    #[inline(always)]
    pub fn shared(&self, range: impl RangeBounds<u64>) -> SharedGuard<'_> {
        let range = BlockRange::of(range);
        match range.and_then(|range| self.take_one::<SHARED>(range)) {
            Some(word) => SharedGuard::in_word(self, range, word),
            None => SharedGuard::new(self, range, self.acquire_range(range, Mode::Shared)),
        }
    }

    /// Waits until the blocks are the caller's alone.
    #[inline(always)]
    pub fn exclusive(&self, range: impl RangeBounds<u64>) -> ExclusiveGuard<'_> {
        let range = BlockRange::of(range);
        match range.and_then(|range| self.take_one::<EXCLUSIVE>(range)) {
            Some(word) => ExclusiveGuard::in_word(self, range, word),
            None => ExclusiveGuard::new(self, range, self.acquire_range(range, Mode::Exclusive)),
        }
    }

    /// Waits until all blocks from `first` on are the caller's alone, for changes of the file's size.
    pub fn exclusive_from(&self, first: u64) -> ExclusiveGuard<'_> {
        self.exclusive(first..)
    }

    /// Waits until the whole file may be shared with other readers.
    pub fn shared_all(&self) -> SharedGuard<'_> {
        self.shared(..)
    }

    /// Waits until the whole file is the caller's alone.
    pub fn exclusive_all(&self) -> ExclusiveGuard<'_> {
        self.exclusive(..)
    }

    /// Shares the blocks if that needs no waiting: nobody has them exclusively, or waits for them. May fail without
    /// cause while another request is just being turned down.
    #[inline(always)]
    pub fn try_shared(&self, range: impl RangeBounds<u64>) -> Option<SharedGuard<'_>> {
        let range = BlockRange::of(range);
        match range.and_then(|range| self.take_one::<SHARED>(range)) {
            Some(word) => Some(SharedGuard::in_word(self, range, word)),
            None => self.shared_range(range, &Wait::NOT).ok(),
        }
    }

    /// Takes the blocks if that needs no waiting: nobody has them, or waits for them. May fail without cause while
    /// another request is just being turned down.
    #[inline(always)]
    pub fn try_exclusive(&self, range: impl RangeBounds<u64>) -> Option<ExclusiveGuard<'_>> {
        let range = BlockRange::of(range);
        match range.and_then(|range| self.take_one::<EXCLUSIVE>(range)) {
            Some(word) => Some(ExclusiveGuard::in_word(self, range, word)),
            None => self.exclusive_range(range, &Wait::NOT).ok(),
        }
    }

    /// Shares the blocks, waiting as `wait` says.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the wait ended first; nothing is locked then.
    pub fn shared_with(&self, range: impl RangeBounds<u64>, wait: &Wait<'_>) -> Result<SharedGuard<'_>, LockError> {
        self.shared_range(BlockRange::of(range), wait)
    }

    /// Takes the blocks, waiting as `wait` says.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the wait ended first; nothing is locked then.
    pub fn exclusive_with(
        &self,
        range: impl RangeBounds<u64>,
        wait: &Wait<'_>,
    ) -> Result<ExclusiveGuard<'_>, LockError> {
        self.exclusive_range(BlockRange::of(range), wait)
    }

    /// Locks the blocks with a guard that keeps the table alive, waiting as `wait` says.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the wait ended first; nothing is locked then.
    pub fn lock_owned(
        self: &PlainArc<Self>,
        range: impl RangeBounds<u64>,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<OwnedGuard, LockError> {
        let range = BlockRange::of(range);
        let ticket = self.acquire_optional(range, mode, wait)?;
        Ok(OwnedGuard::new(PlainArc::clone(self), range, mode, ticket))
    }

    /// How the blocks are locked now, by whomever: the strongest mode that is held on any of them, `None` if they are
    /// free. A hint, unless the caller knows that nobody comes or goes.
    #[must_use]
    pub fn locked(&self, range: impl RangeBounds<u64>) -> Option<Mode> {
        let range = BlockRange::of(range)?;
        let listed = |mode| self.queue.get().is_some_and(|queue| queue.lock().holds_against(Claim { range, mode }));
        // Writers exclude readers; every holder excludes a writer.
        if self.first_holder(range, Mode::Shared, false).is_some() || listed(Mode::Shared) {
            Some(Mode::Exclusive)
        } else if self.first_holder(range, Mode::Exclusive, false).is_some() || listed(Mode::Exclusive) {
            Some(Mode::Shared)
        } else {
            None
        }
    }

    /// Whether somebody may have this block exclusively. Asking writes no cache line, and never waits.
    ///
    /// After a `false` the caller sees all that was done under those exclusive locks of the block which began before
    /// something that the caller had already seen: they have ended.
    #[inline]
    #[must_use]
    pub fn may_be_written(&self, block: u64) -> bool {
        let Some(range) = BlockRange::of(block..=block) else { return true };
        let word = self.word(block / BLOCKS_PER_WORD).map_or(0, |word| word.load(SeqCst));
        let at = block % BLOCKS_PER_WORD;
        word::excludes(word, word::mask(at, at), Mode::Shared)
            || protocol_value!("covering_writer_not_looked_for", !self.hull.misses(range), false)
    }

    /// How much waiting there has been.
    #[must_use]
    pub fn wait_stats(&self) -> WaitStats {
        self.queue.get().map(|queue| queue.lock().stats()).unwrap_or_default()
    }

    /// Bytes that the table occupies, its heap included, the queue's list and waiters not.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let queue = if self.queue.get().is_some() { size_of::<Mutex<Queue>>() } else { 0 };
        size_of::<ExtentTable>() + queue + self.directory.get().map_or(0, |directory| directory.bytes())
    }

    /// Frees the words of all locks that ever were. Exclusive access proves that nothing is locked.
    pub fn shrink(&mut self) {
        *self = ExtentTable::new();
    }

    pub(crate) fn queue_or_new(&self) -> &Mutex<Queue> {
        match self.queue.get() {
            Some(queue) => queue,
            None => {
                let new = Box::new(Mutex::new(Queue::new()));
                self.queue.get_or_init(|| new)
            }
        }
    }
}

impl Default for ExtentTable {
    fn default() -> ExtentTable {
        ExtentTable::new()
    }
}

impl fmt::Debug for ExtentTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, listed) = self.queue.get().map_or((0, 0), |queue| queue.lock().counts());
        f.debug_struct("ExtentTable")
            .field("locked", &self.locked(..))
            .field("waiting", &waiting)
            .field("listed", &listed)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
