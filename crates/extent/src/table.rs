//! The lock table of one file.
//!
//! # Rules
//!
//! *The words* hold the readers and writers of ranges below [`COVERING_BLOCKS`](crate::geometry::COVERING_BLOCKS) blocks. The
//! fast path changes them without a lock: a range inside one word by one compare-and-swap; a longer one word by word in
//! ascending order, and what was taken is put back before anything else happens if one word cannot be had. Nobody waits
//! while holding words that are not yet granted, so no order among ranges is needed.
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

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use f2fs_sync::{Arc, Mutex, OnceLock, mutant};

use crate::bits::ExtentBits;
use crate::claim::{Claim, Claims};
use crate::directory::{Directory, Line, Mark, Words, line_of};
use crate::geometry::{BLOCKS_PER_WORD, WORDS_PER_LINE};
use crate::guard::{ExclusiveGuard, OwnedGuard, SharedGuard};
use crate::hull::Hull;
use crate::order::first_guess;
use crate::queue::{Arrival, Queue, Ticket};
use crate::range::BlockRange;
use crate::wait::{Cell, LockError, Ring, Wait, WaitStats};
use crate::word::{self, Mode, QUEUED};

/// The modes, for [`ExtentTable::take_one`].
const SHARED: bool = false;
const EXCLUSIVE: bool = true;

/// The lock table of one file: shared and exclusive locks on ranges of blocks.
///
/// An empty table is two cache lines with no heap behind them, and stays so while the file has at most 64 blocks and nobody
/// has to wait.
///
/// Ranges are given as Rust ranges of block numbers: `7..=7`, `0..256`, `100..` (to the end of the file, however far it
/// reaches), `..` (the whole file). An empty range locks nothing. A thread that asks for a range of which it holds a part in
/// a conflicting mode waits for itself, as with any lock.
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
    bits: OnceLock<Box<ExtentBits>>,
    pub(crate) first: Line,
}

impl ExtentTable {
    /// A table in which nothing is locked. Does not allocate.
    #[must_use]
    pub fn new() -> ExtentTable {
        ExtentTable {
            hull: Hull::new(),
            directory: OnceLock::new(),
            queue: OnceLock::new(),
            bits: OnceLock::new(),
            first: Line::new(),
        }
    }

    /// Waits until the blocks may be shared with other readers.
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

    /// Shares the blocks if that needs no waiting: nobody has them exclusively, or waits for them. May fail without cause
    /// while another request is just being turned down.
    #[inline(always)]
    pub fn try_shared(&self, range: impl RangeBounds<u64>) -> Option<SharedGuard<'_>> {
        let range = BlockRange::of(range);
        match range.and_then(|range| self.take_one::<SHARED>(range)) {
            Some(word) => Some(SharedGuard::in_word(self, range, word)),
            None => self.shared_range(range, &Wait::NOT).ok(),
        }
    }

    /// Takes the blocks if that needs no waiting: nobody has them, or waits for them. May fail without cause while another
    /// request is just being turned down.
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
        self: &Arc<Self>,
        range: impl RangeBounds<u64>,
        mode: Mode,
        wait: &Wait<'_>,
    ) -> Result<OwnedGuard, LockError> {
        let range = BlockRange::of(range);
        let ticket = self.acquire_optional(range, mode, wait)?;
        Ok(OwnedGuard::new(Arc::clone(self), range, mode, ticket))
    }

    /// How the blocks are locked now, by whomever: the strongest mode that is held on any of them, `None` if they are free.
    /// A hint, unless the caller knows that nobody comes or goes.
    #[must_use]
    pub fn locked(&self, range: impl RangeBounds<u64>) -> Option<Mode> {
        let range = BlockRange::of(range)?;
        let cover = |mode| {
            let Some(queue) = self.queue.get() else { return false };
            !self.hull.misses(range) && queue.lock().covered_against(Claim { range, mode })
        };
        // What excludes a reader is a writer; what excludes a writer is anybody.
        if self.first_holder(range, Mode::Shared, false).is_some() || cover(Mode::Shared) {
            Some(Mode::Exclusive)
        } else if self.first_holder(range, Mode::Exclusive, false).is_some() || cover(Mode::Exclusive) {
            Some(Mode::Shared)
        } else {
            None
        }
    }

    /// The state bits of the file's blocks. Made when first asked for.
    pub fn bits(&self) -> &ExtentBits {
        match self.bits.get() {
            Some(bits) => bits,
            None => {
                let new = Box::new(ExtentBits::new());
                self.bits.get_or_init(|| new)
            }
        }
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
        let bits = self.bits.get().map_or(0, |bits| bits.bytes());
        size_of::<ExtentTable>() + queue + bits + self.directory.get().map_or(0, |directory| directory.bytes())
    }

    /// Frees the words of all locks that ever were. Exclusive access proves that nothing is locked. State bits stay.
    pub fn shrink(&mut self) {
        *self = ExtentTable { bits: std::mem::take(&mut self.bits), ..ExtentTable::new() };
    }

    // ---- words ----

    /// The word, if its line is there.
    #[inline]
    pub(crate) fn word(&self, number: u64) -> Option<&AtomicU64> {
        self.spot(number).map(|(word, _)| word)
    }

    /// The word, if its line is there, and the mark of its line; the first line has none.
    #[inline]
    pub(crate) fn spot(&self, number: u64) -> Option<(&AtomicU64, Option<Mark<'_>>)> {
        let line = number / WORDS_PER_LINE as u64;
        let at = (number % WORDS_PER_LINE as u64) as usize;
        if line == 0 {
            return Some((&self.first.0[at], None));
        }
        let (line, mark) = self.directory.get()?.line(line)?;
        Some((&line.0[at], Some(mark)))
    }

    /// Makes the words of a range of mapped blocks.
    pub(crate) fn install(&self, range: BlockRange) {
        for line in line_of(range.first()).max(1)..=line_of(range.last()) {
            let directory = match self.directory.get() {
                Some(directory) => directory,
                None => {
                    let new = Box::new(Directory::new());
                    self.directory.get_or_init(|| new)
                }
            };
            if directory.line(line).is_none() {
                directory.install(line);
            }
        }
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

    // ---- the fast path ----

    /// Takes a range inside one word, if its line is there and nobody is in the way. One for each mode, so that the common case
    /// is a straight line.
    #[inline(never)]
    fn take_one<const EXCLUSIVE: bool>(&self, range: BlockRange) -> Option<InWord<'_>> {
        let mode = if EXCLUSIVE { Mode::Exclusive } else { Mode::Shared };
        let number = range.first() / BLOCKS_PER_WORD;
        if number != range.last() / BLOCKS_PER_WORD {
            return None;
        }
        let (word, mark) = self.spot(number)?;
        let bytes = word::mask(range.first() % BLOCKS_PER_WORD, range.last() % BLOCKS_PER_WORD);
        if !take_word(word, bytes, mode) {
            return None;
        }
        if let Some(mark) = mark {
            mark.set();
        }
        if self.hull.misses(range) {
            return Some(InWord { word, bytes });
        }
        self.back_out(range, mode);
        None
    }

    /// Puts back what was taken beside a covering request.
    #[cold]
    #[inline(never)]
    fn back_out(&self, range: BlockRange, mode: Mode) {
        self.release_words(&[Claim { range, mode }]);
    }

    /// Releases a range inside one word.
    #[inline(always)]
    pub(crate) fn release_one(&self, InWord { word, bytes }: InWord<'_>, range: BlockRange, mode: Mode) {
        let order = if mutant("release_publishes_nothing") { Relaxed } else { SeqCst };
        let before = word.fetch_sub(mode.weight(bytes), order);
        if before & bytes & QUEUED != 0 || !self.hull.misses(range) {
            self.released_one(range, mode);
        }
    }

    #[cold]
    #[inline(never)]
    fn released_one(&self, range: BlockRange, mode: Mode) {
        self.released(&[Claim { range, mode }]);
    }

    /// Takes the words of all the claims (none of them covering), or none.
    fn take(&self, claims: &[Claim]) -> bool {
        for (index, claim) in claims.iter().enumerate() {
            for (number, bytes) in Words::of(claim.range) {
                let spot = self.spot(number).or_else(|| {
                    if mutant("install_keeps_a_line_of_its_own") {
                        return Some((&Box::leak(Box::new(Line::new())).0[0], None));
                    }
                    self.install(claim.range);
                    self.spot(number)
                });
                if let Some((word, mark)) = spot
                    && take_word(word, bytes, claim.mode)
                {
                    mark.inspect(|mark| mark.set());
                    continue;
                }
                if mutant("take_keeps_what_it_has") {
                    return false;
                }
                // The words of this claim before `number`, and the claims before it, go back.
                let taken = (number * BLOCKS_PER_WORD).checked_sub(1);
                if let Some(part) = taken.and_then(|last| BlockRange::new(claim.range.first(), last)) {
                    self.release_words(&[Claim { range: part, ..*claim }]);
                }
                self.release_words(&claims[..index]);
                return false;
            }
        }
        if claims.iter().all(|claim| self.hull.misses(claim.range)) {
            return true;
        }
        self.release_words(claims);
        false
    }

    /// Releases claims that are in words, and looks after those who wait for them.
    pub(crate) fn release_words(&self, claims: &[Claim]) {
        let mut noticed = false;
        for claim in claims {
            for (number, bytes) in Words::of(claim.range) {
                if let Some(word) = self.word(number) {
                    let order = if mutant("release_of_words_publishes_nothing") { Relaxed } else { SeqCst };
                    let before = word.fetch_sub(claim.mode.weight(bytes), order);
                    noticed |= before & bytes & QUEUED != 0;
                }
            }
            noticed |= !self.hull.misses(claim.range);
        }
        if noticed {
            self.released(claims);
        }
    }

    // ---- every path ----

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

    fn acquire_optional(&self, range: Option<BlockRange>, mode: Mode, wait: &Wait<'_>) -> Result<Ticket, LockError> {
        match range {
            Some(range) => self.acquire(&Claims::One(Claim { range, mode }), wait),
            None => Ok(Ticket::NONE),
        }
    }

    #[inline(never)]
    fn acquire_range(&self, range: Option<BlockRange>, mode: Mode) -> Ticket {
        // A wait without limit and without token ends only with the grant.
        self.acquire_optional(range, mode, &Wait::FOREVER).unwrap_or(Ticket::NONE)
    }

    #[inline(never)]
    fn shared_range(&self, range: Option<BlockRange>, wait: &Wait<'_>) -> Result<SharedGuard<'_>, LockError> {
        let ticket = self.acquire_optional(range, Mode::Shared, wait)?;
        Ok(SharedGuard::new(self, range, ticket))
    }

    #[inline(never)]
    fn exclusive_range(&self, range: Option<BlockRange>, wait: &Wait<'_>) -> Result<ExclusiveGuard<'_>, LockError> {
        let ticket = self.acquire_optional(range, Mode::Exclusive, wait)?;
        Ok(ExclusiveGuard::new(self, range, ticket))
    }
}

/// Where a range inside one word is: the word, and the bytes of the range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InWord<'a> {
    word: &'a AtomicU64,
    bytes: u64,
}

/// Takes blocks of one word in one compare-and-swap (again if other blocks of the word change meanwhile).
#[inline]
fn take_word(word: &AtomicU64, bytes: u64, mode: Mode) -> bool {
    let mut seen = first_guess(word);
    loop {
        let Some(taken) = mode.take(seen, bytes) else { return false };
        match word.compare_exchange_weak(seen, taken, SeqCst, Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
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
        let (waiting, covering) = self.queue.get().map_or((0, 0), |queue| queue.lock().counts());
        f.debug_struct("ExtentTable")
            .field("locked", &self.locked(..))
            .field("waiting", &waiting)
            .field("covering", &covering)
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
