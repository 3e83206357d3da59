//! Where the blocks of a file lie on the device, found without a lock: the read extent cache.
//!
//! The kernel keeps a tree of extents for each inode under a reader-writer lock (`fs/f2fs/extent_cache.c`): each reader
//! of a file writes that lock's cache line. Here each block has a cell of its own with its address, and a run is found
//! by looking along the cells. A look-up loads, and stores nothing. A file that was overwritten at random costs no more
//! than one in order.
//!
//! ```text
//! cache ── first cells (blocks 0 ..= 63)
//!      └── classes ── class k ── slot ── chunk of cells      lines of 64 blocks 2^k ..= 2^(k+1)-1, k = 0 ..= 23
//! ```
//!
//! A class below 64 lines has one chunk of just its size, a larger one has one for every 64 lines (4096 blocks, 16 KiB
//! of cells). Chunks are made when a look-up had to go to the nodes, as long as the [budget](CacheBudget) allows it;
//! then they stay until the cache goes.
//!
//! # Rules
//!
//! A cell is *unknown*, or says what the slot of its block in the file's nodes says. Three kinds of threads touch it:
//!
//! ```text
//!   reads a block                 changes a block                   moves a block (the cleaner)
//!   holds its range shared        holds its range exclusively       holds no range
//!   ──────────────────────        ───────────────────────────       ───────────────────────────
//!   A1 refresh                    B1 lock the node's page           C1 lock the node's page
//!   A2 look up: known             B2 change the slot                C2 change the slot
//!   A3 else lock the page,        B3 store the cell                 C3 unlock
//!      read the slot, fill,       B4 unlock                         C4 count the move: a new version
//!      unlock
//! ```
//!
//! - *Cells are stored with the page locked that has the slot* (shared to fill, exclusively to change). So of two
//!   stores the later one has the later slot, and a fill cannot undo a change. A chunk that a fill installs before B1
//!   is seen by B3; one that it installs after B4 is filled with the addresses that B2 left.
//! - *A changed block* is seen by its next reader, because the range lock hands B3 on to A2. That a fill or a clearing
//!   of neighbours runs meanwhile does not matter: they store what the slot says, or *unknown*.
//! - *A reader without its range* looks at the cell, then whether somebody may be writing the block
//!   ([`may_be_written`](crate::ExtentTable::may_be_written)), then at the cell again, and goes on if nobody may and
//!   both say the same: so B3 of each writer that it can have seen anything of is behind it.
//! - *A moved block* leaves a stale cell behind. It is right until its old place is written again, and that is not
//!   before a checkpoint, which waits for every operation that has begun (the volume's gate). C4 comes before that
//!   checkpoint, and A1 compares the version: every operation that begins after it drops all cells first. A fill may
//!   run while another thread drops them. It stores the address that the slot had before C1 or after it. Before C1 is
//!   before C4, and so before the drop.
//! - *A reader that finds an address finds the block written there.* The cell may have been filled by another reader,
//!   with which it has no lock in common. The address was stored with release and is loaded with acquire, so it sees
//!   all that the other one saw.
//! - *A freed place* (overwritten, truncated) is treated in the same way: B2 takes its block out of use, and it is not
//!   handed out before the checkpoint that waits for all who may have looked it up.

use std::fmt;

use f2fs_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use f2fs_sync::{Arc, Budget, OnceLock, PerCore, protocol_never, protocol_value};

/// Blocks in a line, the unit of the directory.
#[cfg(not(loom))]
const LINE: u64 = 64;
#[cfg(loom)]
const LINE: u64 = 2;

/// Lines in a full chunk.
#[cfg(not(loom))]
const LINES_PER_CHUNK: u64 = 64;
#[cfg(loom)]
const LINES_PER_CHUNK: u64 = 2;

/// Classes: 2^30 blocks, more than an F2FS file can have. Blocks beyond are always unknown.
#[cfg(not(loom))]
const CLASSES: usize = 24;
#[cfg(loom)]
const CLASSES: usize = 2;

/// A cell that says nothing. Others hold the address and 1.
const UNKNOWN: u32 = 0;

type Cells = Box<[AtomicU32]>;
type Class = OnceLock<Box<[OnceLock<Cells>]>>;

/// Bytes that a processor takes from the budget at once, at most: for 64 small files.
const MOST_KEPT: u64 = 16 << 10;

/// How many bytes all caches together may still take.
#[derive(Debug)]
pub struct CacheBudget {
    left: Arc<Budget>,
}

impl CacheBudget {
    /// So many bytes for all caches that share it; 4 bytes map a block.
    #[must_use]
    pub fn new(bytes: u64) -> CacheBudget {
        // Few enough that the processors keep a small part of it to themselves.
        let batch = (bytes / (64 * PerCore::new(|_| ()).slots() as u64)).min(MOST_KEPT);
        CacheBudget { left: Arc::new(Budget::with_batch(bytes, if cfg!(loom) { 0 } else { batch })) }
    }

    /// The same bytes, behind another handle. Each cache counts as a user of its handle: with one for each processor,
    /// caches that are made on different ones write no common line.
    #[must_use]
    pub fn another(&self) -> CacheBudget {
        CacheBudget { left: Arc::clone(&self.left) }
    }

    /// Bytes that are not in use. Stops the counts of all processors for a moment.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.available_exact()
    }

    fn take(&self, bytes: u64) -> bool {
        self.left.try_take(bytes)
    }

    fn give(&self, bytes: u64) {
        if bytes != 0 {
            self.left.give(bytes);
        }
    }
}

/// Blocks of a file that follow each other on the device, or are all holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedRun {
    /// The address of the first block; 0 says that they are holes.
    pub addr: u32,
    /// How many blocks.
    pub len: u64,
}

/// The addresses of a file's blocks, as far as they were looked up. The module documentation has the rules.
///
/// ```
/// use f2fs_extent::{AddressCache, CacheBudget, CachedRun};
///
/// let cache = AddressCache::new(CacheBudget::new(1 << 20).into());
/// assert_eq!(cache.run(10, 19), None);
/// cache.fill(8, [500, 501, 502, 503, 0, 0].into_iter());
/// assert_eq!(cache.run(10, 19), Some(CachedRun { addr: 502, len: 2 }));
/// assert_eq!(cache.run(12, 19), Some(CachedRun { addr: 0, len: 2 }));
/// cache.store(11, 900);
/// assert_eq!(cache.run(10, 19), Some(CachedRun { addr: 502, len: 1 }));
/// ```
pub struct AddressCache {
    /// Moves that the cells take account of.
    version: AtomicU64,
    first: OnceLock<Cells>,
    classes: OnceLock<Box<[Class; CLASSES]>>,
    budget: Arc<CacheBudget>,
}

impl AddressCache {
    /// A cache that knows nothing, and takes memory from `budget` when it learns something.
    #[must_use]
    pub fn new(budget: Arc<CacheBudget>) -> AddressCache {
        AddressCache { version: AtomicU64::new(0), first: OnceLock::new(), classes: OnceLock::new(), budget }
    }

    /// Drops everything if blocks were moved since the version of the cells. Every operation on the file begins with
    /// this, after it has entered the gate. Versions only grow.
    #[inline]
    pub fn refresh(&self, version: u64) {
        let acquire = protocol_value!("cache_version_seen_relaxed", Ordering::Acquire, Ordering::Relaxed);
        if self.version.load(acquire) < version {
            self.renew(version);
        }
    }

    #[cold]
    fn renew(&self, version: u64) {
        protocol_never!("cache_renewed_before_it_is_empty", self.version.fetch_max(version, Ordering::Release));
        self.forget(0);
        // Several may do this at once, also for different versions: none goes on before everything was dropped by
        // somebody who knew of its version.
        let release = protocol_value!("cache_version_told_relaxed", Ordering::Release, Ordering::Relaxed);
        self.version.fetch_max(version, release);
    }

    /// The longest run that begins with block `first` and ends with block `last` at most, as far as it is known.
    /// `None`: the address of `first` is unknown. A run may end early; the next call goes on. It has at least one
    /// block, also where `last` comes before.
    #[inline]
    #[must_use]
    pub fn run(&self, first: u64, last: u64) -> Option<CachedRun> {
        let mut cells = self.cells(first)?.iter();
        let acquire = protocol_value!("cache_found_relaxed", Ordering::Acquire, Ordering::Relaxed);
        let addr = cells.next()?.load(acquire).checked_sub(1)?;
        let step = u32::from(addr != 0);
        let (mut len, mut next) = (1, addr.wrapping_add(step).wrapping_add(1));
        let most = last.saturating_sub(first).saturating_add(1);
        let acquire = protocol_value!("cache_neighbour_relaxed", Ordering::Acquire, Ordering::Relaxed);
        while len < most && next != UNKNOWN && cells.next().is_some_and(|cell| cell.load(acquire) == next) {
            next = next.wrapping_add(step);
            len += 1;
        }
        Some(CachedRun { addr, len })
    }

    /// Learns the addresses of the blocks from `first` on, 0 for a hole. The caller has the page locked that says so.
    /// An address of `u32::MAX` is not kept, and nothing is when the budget is used up.
    pub fn fill(&self, first: u64, addrs: impl Iterator<Item = u32>) {
        let mut cells: &[AtomicU32] = &[];
        for (index, addr) in addrs.enumerate() {
            if cells.is_empty() {
                let block = first.saturating_add(index as u64);
                let Some(found) = self.cells(block).or_else(|| self.install(block)) else { return };
                cells = found;
            }
            if let Some((cell, rest)) = cells.split_first() {
                let release = protocol_value!("cache_filled_relaxed", Ordering::Release, Ordering::Relaxed);
                cell.store(addr.wrapping_add(1), release);
                cells = rest;
            }
        }
    }

    /// The block has this address now, 0 for a hole. The caller has the page locked exclusively that says so.
    #[inline]
    pub fn store(&self, block: u64, addr: u32) {
        protocol_never!("cache_change_not_stored", return);
        if let Some(cell) = self.cells(block).and_then(<[_]>::first) {
            let release = protocol_value!("cache_changed_relaxed", Ordering::Release, Ordering::Relaxed);
            cell.store(addr.wrapping_add(1), release);
        }
    }

    /// Forgets the blocks from `from` on.
    pub fn forget(&self, from: u64) {
        if let Some(cells) = self.first.get() {
            clear(cells, 0, from);
        }
        let Some(classes) = self.classes.get() else { return };
        for (class, slots) in classes.iter().enumerate() {
            let Some(slots) = slots.get() else { continue };
            for (slot, cells) in slots.iter().enumerate() {
                if let Some(cells) = cells.get() {
                    let start = ((1 << class) + slot as u64 * LINES_PER_CHUNK) * LINE;
                    clear(cells, start, from);
                }
            }
        }
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let first = self.first.get().map_or(0, |cells| size_of_val(&**cells));
        let classes = self.classes.get().map_or(0, |classes| {
            let each = classes.iter().filter_map(OnceLock::get).map(|slots| {
                let chunks = slots.iter().filter_map(OnceLock::get).map(|cells| size_of_val(&**cells));
                size_of_val(&**slots) + chunks.sum::<usize>()
            });
            size_of_val(&**classes) + each.sum::<usize>()
        });
        (first + classes) as u64
    }

    /// The cells from a block to the end of its chunk.
    #[inline]
    fn cells(&self, block: u64) -> Option<&[AtomicU32]> {
        let line = block / LINE;
        if line == 0 {
            return self.first.get()?.get(block as usize..);
        }
        let (class, slot, at) = place(block);
        self.classes.get()?.get(class)?.get()?.get(slot)?.get()?.get(at..)
    }

    /// Makes the chunk of a block, if the budget allows it.
    #[cold]
    fn install(&self, block: u64) -> Option<&[AtomicU32]> {
        if block / LINE == 0 {
            return self.get_or_make(&self.first, LINE as usize)?.get(block as usize..);
        }
        let (class, slot, at) = place(block);
        let lines = 1_u64.checked_shl(class as u32)?;
        let classes = match self.classes.get() {
            Some(classes) => classes,
            None => {
                self.pay(size_of::<[Class; CLASSES]>())?;
                self.put(&self.classes, Box::new(std::array::from_fn(|_| OnceLock::new())), |new| size_of_val(&**new))
            }
        };
        let slots = match classes.get(class)?.get() {
            Some(slots) => slots,
            None => {
                let count = lines.div_ceil(LINES_PER_CHUNK) as usize;
                self.pay(count * size_of::<OnceLock<Cells>>())?;
                let new: Box<[OnceLock<Cells>]> = (0..count).map(|_| OnceLock::new()).collect();
                self.put(classes.get(class)?, new, |new| size_of_val(&**new))
            }
        };
        let cells = (lines.min(LINES_PER_CHUNK) * LINE) as usize;
        self.get_or_make(slots.get(slot)?, cells)?.get(at..)
    }

    fn get_or_make<'a>(&self, place: &'a OnceLock<Cells>, cells: usize) -> Option<&'a Cells> {
        self.pay(cells * size_of::<AtomicU32>())?;
        let new: Cells = (0..cells).map(|_| AtomicU32::new(UNKNOWN)).collect();
        if place.get().is_some() {
            protocol_never!("cache_fills_a_chunk_of_its_own", return Some(Box::leak(Box::new(new))));
        }
        Some(self.put(place, new, |new| size_of_val(&**new)))
    }

    fn pay(&self, bytes: usize) -> Option<()> {
        self.budget.take(bytes as u64).then_some(())
    }

    /// Puts what was paid for in its place; if another thread was first, that one's stays.
    fn put<'a, T>(&self, place: &'a OnceLock<T>, new: T, bytes: impl Fn(&T) -> usize) -> &'a T {
        let mut mine = Some(new);
        let there = place.get_or_init(|| mine.take().expect("the closure runs once"));
        if let Some(unused) = mine {
            self.budget.give(bytes(&unused) as u64);
        }
        there
    }
}

/// Clears the cells of blocks from `from` on, in a chunk that begins with block `start`.
fn clear(cells: &[AtomicU32], start: u64, from: u64) {
    for cell in cells.iter().skip(from.saturating_sub(start).min(cells.len() as u64) as usize) {
        cell.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// The class of a block behind the first line, its slot there, and its place in the chunk.
#[inline]
fn place(block: u64) -> (usize, usize, usize) {
    let line = block / LINE;
    let class = line.ilog2();
    let offset = line - (1 << class);
    (class as usize, (offset / LINES_PER_CHUNK) as usize, (offset % LINES_PER_CHUNK * LINE + block % LINE) as usize)
}

impl Drop for AddressCache {
    fn drop(&mut self) {
        self.budget.give(self.bytes());
    }
}

impl fmt::Debug for AddressCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressCache").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn cache(bytes: u64) -> (AddressCache, Arc<CacheBudget>) {
        let budget = Arc::new(CacheBudget::new(bytes));
        (AddressCache::new(budget.clone()), budget)
    }

    #[test]
    fn every_block_has_a_cell_of_its_own() {
        let (cache, _) = cache(u64::MAX);
        let blocks: Vec<u64> = (0..10_000).chain([1 << 20, (1 << 29) - 1, (1 << 30) - 1]).collect();
        for &block in &blocks {
            cache.fill(block, [block as u32 * 2 + 7].into_iter());
        }
        for &block in &blocks {
            assert_eq!(cache.run(block, block), Some(CachedRun { addr: block as u32 * 2 + 7, len: 1 }), "{block}");
        }
        assert_eq!(cache.run(1 << 30, u64::MAX), None);
        cache.fill(1 << 30, [1].into_iter());
        cache.fill(u64::MAX, [1].into_iter());
        assert_eq!(cache.run(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn runs_end_where_addresses_jump_holes_begin_or_nothing_is_known() {
        let (cache, _) = cache(u64::MAX);
        cache.fill(60, [10, 11, 12, 13, 14, 15, 0, 0, 17, u32::MAX - 1].into_iter());
        let found: Vec<_> = (60..71).map(|block| cache.run(block, 100).map(|run| (run.addr, run.len))).collect();
        // A run ends with its chunk as well: block 64 is the first of the next one.
        let wanted = [(10, 4), (11, 3), (12, 2), (13, 1), (14, 2), (15, 1), (0, 2), (0, 1), (17, 1), (u32::MAX - 1, 1)];
        assert_eq!(found, wanted.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
        assert_eq!(cache.run(60, 61), Some(CachedRun { addr: 10, len: 2 }));
        cache.fill(60, [u32::MAX].into_iter());
        assert_eq!(cache.run(60, 61), None);
    }

    #[test]
    fn what_is_forgotten_is_unknown_and_the_rest_is_not() {
        let (cache, _) = cache(u64::MAX);
        cache.fill(0, (0..9000).map(|n| n + 100));
        cache.forget(4500);
        assert_eq!(cache.run(4499, 4600), Some(CachedRun { addr: 4599, len: 1 }));
        assert!(cache.run(4500, 4500).is_none() && cache.run(8999, 8999).is_none());
        cache.store(4500, 3);
        assert_eq!(cache.run(4500, 9000), Some(CachedRun { addr: 3, len: 1 }));
        cache.refresh(0);
        assert!(cache.run(0, 0).is_some());
        cache.refresh(1);
        assert!(cache.run(0, 0).is_none());
        cache.fill(0, [5].into_iter());
        cache.refresh(1);
        assert!(cache.run(0, 0).is_some());
    }

    /// In each chunk of a class, and up to its end.
    #[test]
    fn a_part_of_any_chunk_is_forgotten() {
        for from in [0, 63, 64, 100, 8192, 12_287, 12_288, 12_300, 16_383, 19_999] {
            let (cache, _) = cache(u64::MAX);
            cache.fill(0, (0..20_000).map(|n| n + 100));
            cache.forget(from);
            let known: Vec<bool> = (0..20_000).map(|block| cache.run(block, block).is_some()).collect();
            assert_eq!(known.iter().position(|known| !known), Some(from as usize));
            assert!(!known[from as usize..].contains(&true), "{from}");
        }
    }

    #[test]
    fn who_comes_second_gives_its_memory_back() {
        let (cache, budget) = cache(1000);
        let place = OnceLock::new();
        for _ in 0..2 {
            cache.pay(8).expect("there is as much");
            assert_eq!(*cache.put(&place, 10, |_| 8), 10);
        }
        assert_eq!(budget.left(), 1000 - 8);
    }

    #[test]
    fn memory_is_bounded_and_comes_back() {
        let (cache, budget) = cache(100_000);
        assert_eq!((cache.bytes(), size_of::<AddressCache>()), (0, 56));
        cache.fill(0, [1].into_iter());
        assert_eq!((cache.bytes(), budget.left()), (256, 100_000 - 256));
        cache.store(1 << 20, 1);
        assert_eq!(cache.bytes(), 256, "a change makes no memory");
        for block in (0..1 << 22).step_by(1000) {
            cache.fill(block, [1].into_iter());
        }
        assert!(cache.bytes() > 50_000 && cache.bytes() + budget.left() == 100_000);
        assert!(cache.run(0, 0).is_some());
        drop(cache);
        assert_eq!(budget.left(), 100_000);
    }
}
