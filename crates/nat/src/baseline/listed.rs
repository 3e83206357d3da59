//! Finding free NIDs as Linux does, and as CLUE does.
//!
//! A *build* refills the list of free NIDs. Its first stage goes through the bitmaps of the NAT blocks that were
//! scanned already, its second stage scans the next 8 NAT blocks. A build does nothing while the list holds 455 NIDs,
//! and its first stage ends when it holds 3640. A build is triggered by an allocation that finds the list empty; a
//! create or an unlink ([`balance`](Listed::balance)) once 100,000 entries are cached; with `lazy`, a checkpoint.
//!
//! | | kernel | optimistic | heuristic | lazy |
//! |---|---|---|---|---|
//! | locks | `build` over both stages | `bitmap`, `blocks`: a stage each | | |
//! | a bitmap scan that runs | is waited for | is passed by, unless an allocation has no other way | | |
//! | an allocation while a build runs | waits for it | takes what is listed | | |
//! | a bitmap scan begins | at block 0 | | where the last one ended | |
//! | NAT blocks are scanned | in every build that is still short | | | at a checkpoint, and for an allocation that has nothing |
//!
//! Both stages share the lock of the kernel's cache ([`NatCache`](super::nat_cache::NatCache)), which binding and
//! freeing a NID take exclusively. [`Policy`] lists the differences from Linux that remain.
//!
//! # Locking rules
//!
//! - `list` protects the list, the bits of free NIDs in the slots (no bit changes without it), `counts`, `scanned` and
//!   `unscanned`. So a NID whose bit is set is free, and one that is listed is not taken, also while a scan runs.
//! - Order: `build`, or `bitmap` and then, that given up, `blocks`; the lock of the kernel's cache; a slot's lock;
//!   `list`.
//! - "None is free" is said with `list` held, every block scanned, no NID listed and no bit set.

use f2fs_format::Nid;
use f2fs_sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use f2fs_sync::{Mutex, memory, protocol_value};

use crate::entry::NatEntry;
use crate::error::NatError;
use crate::policy::Policy;
use crate::size::{Bits, ENTRIES, FIRST_NID, locate, members, nid_at};
use crate::stats::ScanStats;
use crate::table::Table;

use super::ahead::Ahead;
use super::free_list::{FreeList, State};

/// NAT blocks that one build scans (`FREE_NID_PAGES`).
const SCAN_BLOCKS: u32 = if cfg!(loom) { 1 } else { 8 };
/// A build does nothing while the list holds so many NIDs.
const ENOUGH: usize = ENTRIES;
/// A bitmap scan ends when the list holds so many NIDs (`MAX_FREE_NIDS`).
const MOST: usize = ENTRIES * 8;

/// Why a build runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// A create or an unlink came by.
    Balance,
    /// A checkpoint ended.
    Checkpoint,
    /// An allocation found the list empty. `again`: and so did the build that it has run already.
    Allocation { again: bool },
}

/// The state under the lock `list`.
#[derive(Debug)]
struct Lists {
    free: FreeList,
    /// Bits set in the slots, all blocks together.
    bits: u64,
    /// Blocks that no scan has seen.
    unscanned: u32,
}

/// The policy's state.
#[derive(Debug)]
pub(crate) struct Listed {
    optimistic: bool,
    heuristic: bool,
    lazy: bool,
    balance_entries: usize,
    list: Mutex<Lists>,
    /// NIDs in the list, for those who need not know exactly.
    listed: AtomicUsize,
    build: Mutex<()>,
    /// A build runs that allocations wait for.
    building: AtomicBool,
    bitmap: Mutex<()>,
    blocks: Mutex<()>,
    /// Which blocks were scanned (`nat_block_bitmap`).
    scanned: Box<[AtomicBool]>,
    /// Bits set in each block (`free_nid_count`).
    counts: Box<[AtomicU16]>,
    /// Where the next bitmap scan begins.
    cursor: AtomicU32,
    /// Where the next scan of NAT blocks begins.
    next_scan: AtomicU32,
}

impl Listed {
    pub(crate) fn new(policy: Policy, blocks: u32, first: u32, balance_entries: usize) -> Listed {
        let (optimistic, heuristic, lazy) = match policy {
            Policy::Clue { optimistic, heuristic, lazy } => (optimistic, heuristic, lazy),
            Policy::KernelScan | Policy::Sharded => (false, false, false),
        };
        Listed {
            optimistic,
            heuristic,
            lazy,
            balance_entries,
            list: Mutex::new(Lists { free: FreeList::default(), bits: 0, unscanned: blocks }),
            listed: AtomicUsize::new(0),
            build: Mutex::new(()),
            building: AtomicBool::new(false),
            bitmap: Mutex::new(()),
            blocks: Mutex::new(()),
            scanned: (0..blocks).map(|_| AtomicBool::new(false)).collect(),
            counts: (0..blocks).map(|_| AtomicU16::new(0)).collect(),
            cursor: AtomicU32::new(0),
            next_scan: AtomicU32::new(first),
        }
    }

    /// A free NID (`f2fs_alloc_nid`).
    pub(crate) fn allocate(&self, table: &Table, stats: &ScanStats) -> Result<Option<Nid>, NatError> {
        // So many builds pass over the whole table, even if most of it cannot be read.
        let mut patience = table.blocks().div_ceil(SCAN_BLOCKS) + 1;
        let mut again = false;
        loop {
            {
                let mut lists = self.list.lock();
                if lists.free.len() > 0 && (self.optimistic || !self.building.load(Ordering::Relaxed)) {
                    return Ok(self.take(table, &mut lists));
                }
                if lists.free.len() == 0 && lists.bits == 0 && lists.unscanned == 0 {
                    return Ok(None);
                }
            }
            if let Err(error) = self.build(table, stats, Why::Allocation { again }) {
                patience -= 1;
                if patience == 0 {
                    return Err(error);
                }
            }
            again = true;
        }
    }

    fn take(&self, table: &Table, lists: &mut Lists) -> Option<Nid> {
        let nid = lists.free.take()?;
        self.listed.store(lists.free.len(), Ordering::Relaxed);
        self.clear(table, lists, nid);
        if let Some(cache) = &table.cache {
            // Its owner is about to bind it; one that never does stands for a file that fills the volume.
            cache.enter(nid);
        }
        Some(nid)
    }

    /// The NID is not free any more.
    fn clear(&self, table: &Table, lists: &mut Lists, nid: Nid) {
        let (block, index) = locate(nid);
        if table.slot(block).take(index) {
            lists.bits -= 1;
            self.counts[block as usize].fetch_sub(1, Ordering::Relaxed);
        } else {
            table.uncount_unknown(1);
        }
    }

    /// A NID of a scanned block is free.
    fn mark(&self, table: &Table, lists: &mut Lists, block: u32, index: usize) {
        table.slot(block).put(index);
        lists.bits += 1;
        self.counts[block as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn list(&self, lists: &mut Lists, nid: Nid) {
        lists.free.insert(nid);
        self.listed.store(lists.free.len(), Ordering::Relaxed);
    }

    fn is_scanned(&self, block: u32) -> bool {
        self.scanned[block as usize].load(Ordering::Acquire)
    }

    /// NIDs in the list.
    pub(crate) fn listed(&self) -> usize {
        self.listed.load(Ordering::Relaxed)
    }

    fn is_short(&self) -> bool {
        self.listed() < ENOUGH
    }

    /// Refills the list (`f2fs_build_free_nids`).
    fn build(&self, table: &Table, stats: &ScanStats, why: Why) -> Result<(), NatError> {
        if self.optimistic {
            return self.refill(table, stats, why);
        }
        let _build = stats.wait(&self.build);
        self.building.store(true, Ordering::Relaxed);
        let result = self.refill(table, stats, why);
        self.building.store(false, Ordering::Relaxed);
        result
    }

    /// Both stages of a build.
    fn refill(&self, table: &Table, stats: &ScanStats, why: Why) -> Result<(), NatError> {
        if !self.is_short() {
            return Ok(());
        }
        let waits = !self.optimistic || why == (Why::Allocation { again: true });
        if protocol_value!("nat_waits_for_bitmap_scan", waits, true) {
            let _scan = stats.scan();
            let _bitmap = self.bitmap.lock();
            self.scan_bitmaps(table);
        } else if let Some(_bitmap) = self.bitmap.try_lock() {
            let _scan = stats.scan();
            self.scan_bitmaps(table);
        }
        if !self.is_short() {
            return Ok(());
        }
        let listed = self.listed();
        if self.lazy && (why == Why::Balance || matches!(why, Why::Allocation { .. }) && listed > 0) {
            return Ok(());
        }
        let _time = stats.time();
        let _blocks = self.blocks.lock();
        if self.optimistic && !self.is_short() {
            return Ok(());
        }
        self.scan_blocks(table)
    }

    /// Lists what the bitmaps know (`scan_free_nid_bits`).
    fn scan_bitmaps(&self, table: &Table) {
        let _cache = table.share_cache();
        let first = if self.heuristic { self.cursor.load(Ordering::Relaxed) } else { 0 };
        let mut stopped = 0;
        'blocks: for block in first..table.blocks() {
            if !self.is_scanned(block) || self.counts[block as usize].load(Ordering::Relaxed) == 0 {
                continue;
            }
            for index in members(table.slot(block).free_bits()) {
                if self.list_known(block, index) >= MOST {
                    stopped = block;
                    break 'blocks;
                }
            }
        }
        self.cursor.store(stopped, Ordering::Relaxed);
        self.scan_journal(table);
    }

    /// Lists a NID whose bit is set, if it is not listed already. Returns the length of the list.
    fn list_known(&self, block: u32, index: usize) -> usize {
        let mut lists = self.list.lock();
        let nid = nid_at(block, index);
        // The bit was seen without the lock: the NID may have been taken since. It is not bound, because binding waits
        // for the lock of the kernel's cache, which this scan shares.
        if protocol_value!("nat_list_twice", lists.free.state(nid).is_none(), true) {
            self.list(&mut lists, nid);
        }
        lists.free.len()
    }

    /// Scans the next NAT blocks and the journal. A block that cannot be read is passed over.
    fn scan_blocks(&self, table: &Table) -> Result<(), NatError> {
        let count = SCAN_BLOCKS.min(table.blocks());
        let mut block = self.next_scan.load(Ordering::Relaxed);
        // As in Linux, before the lock of the kernel's cache is taken.
        let next = (0..count).map(|ahead| (block + ahead) % table.blocks());
        let mut ahead = table.read_ahead(next.filter(|block| !self.is_scanned(*block)));
        let _cache = table.share_cache();
        let mut failed = None;
        for _ in 0..count {
            if !self.is_scanned(block)
                && let Err(error) = self.scan_block(table, block, true, ahead.remove(&block).as_ref())
            {
                failed = failed.or(Some(error));
            }
            block = (block + 1) % table.blocks();
        }
        self.next_scan.store(block, Ordering::Relaxed);
        self.scan_journal(table);
        failed.map_or(Ok(()), Err)
    }

    /// Finds out which NIDs of a block are free, without listing them.
    pub(crate) fn know(&self, table: &Table, block: u32) -> Result<(), NatError> {
        self.scan_block(table, block, false, None)
    }

    /// Scans one NAT block (`scan_nat_page`).
    fn scan_block(&self, table: &Table, block: u32, list: bool, ahead: Option<&Ahead>) -> Result<(), NatError> {
        if self.is_scanned(block) {
            return Ok(());
        }
        let (locked, frame) = table.lock_with(block, ahead)?;
        if self.is_scanned(block) {
            return Ok(());
        }
        for index in members(Table::unbound(&locked, frame, block)) {
            let mut lists = self.list.lock();
            let nid = nid_at(block, index);
            let state = lists.free.state(nid);
            if protocol_value!("nat_scan_lists_taken", state == Some(State::Taken), false) {
                continue;
            }
            self.mark(table, &mut lists, block, index);
            table.uncount_unknown(1);
            if list && state.is_none() {
                self.list(&mut lists, nid);
            }
        }
        let mut lists = self.list.lock();
        lists.unscanned -= 1;
        self.scanned[block as usize].store(true, Ordering::Release);
        table.slot(block).set_known();
        Ok(())
    }

    /// Lists the NIDs that are free by the journal, of blocks that were not scanned (`scan_curseg_cache`). The entries
    /// of other blocks have been seen with their block.
    fn scan_journal(&self, table: &Table) {
        let ledger = table.ledger.read();
        let unseen: Vec<Nid> = ledger
            .journal
            .iter()
            .inspect(|(_, entry)| memory::read(*entry))
            .filter(|(nid, entry)| nid.0 >= FIRST_NID && !entry.is_bound() && !self.is_scanned(locate(**nid).0))
            .map(|(nid, _)| *nid)
            .collect();
        drop(ledger);
        for nid in unseen {
            let (block, index) = locate(nid);
            let locked = table.slot(block).lock(&table.pool);
            // A block that is not in memory is as the ledger says now; the look above may be of before a checkpoint.
            let in_use = match locked.frame() {
                Some(frame) => locked.entry(frame, index).is_bound() || locked.is_pending(index),
                None => table.ledger.read().journal.get(&nid).is_none_or(NatEntry::is_bound),
            };
            if in_use || self.is_scanned(block) {
                continue;
            }
            let mut lists = self.list.lock();
            if lists.free.state(nid).is_none() {
                self.list(&mut lists, nid);
            }
        }
    }

    /// The NID of a taken NID's node is being bound; its block's lock is held. Tells whether it was taken
    /// (`f2fs_alloc_nid_done`).
    pub(crate) fn done(&self, nid: Nid) -> bool {
        self.list.lock().free.done(nid)
    }

    /// A taken NID is not used after all; its block's lock is held (`f2fs_alloc_nid_failed`).
    pub(crate) fn put(&self, table: &Table, block: u32, index: usize) {
        let mut lists = self.list.lock();
        let nid = nid_at(block, index);
        if lists.free.done(nid) {
            self.add(table, &mut lists, block, index);
        }
    }

    /// A durable checkpoint has recorded these NIDs as free; their block's lock is held.
    pub(crate) fn put_all(&self, table: &Table, block: u32, bits: &Bits) {
        for index in members(*bits) {
            self.add(table, &mut self.list.lock(), block, index);
        }
    }

    fn add(&self, table: &Table, lists: &mut Lists, block: u32, index: usize) {
        if self.is_scanned(block) {
            self.mark(table, lists, block, index);
        } else {
            table.count_unknown(1);
        }
        self.list(lists, nid_at(block, index));
    }

    /// Takes this NID of a scanned block, if it is free.
    pub(crate) fn reserve(&self, table: &Table, block: u32, index: usize) -> bool {
        let mut lists = self.list.lock();
        if !table.slot(block).is_free(index) {
            return false;
        }
        lists.free.take_this(nid_at(block, index));
        self.listed.store(lists.free.len(), Ordering::Relaxed);
        self.clear(table, &mut lists, nid_at(block, index));
        true
    }

    /// A create or an unlink comes by (`f2fs_balance_fs_bg`). A scan that fails is tried again when it matters.
    pub(crate) fn balance(&self, table: &Table, stats: &ScanStats) {
        if table.cache.as_ref().is_some_and(|cache| cache.len() >= self.balance_entries) {
            let _ = self.build(table, stats, Why::Balance);
        }
    }

    /// A checkpoint has ended: what `lazy` put off is done now. Linux builds nothing here.
    pub(crate) fn checkpointed(&self, table: &Table, stats: &ScanStats) {
        if self.lazy {
            let _ = self.build(table, stats, Why::Checkpoint);
        }
    }

    /// Where the next search should begin (`next_free_nid`).
    pub(crate) fn next_nid(&self) -> Nid {
        let first = self.list.lock().free.first();
        first.unwrap_or_else(|| nid_at(self.next_scan.load(Ordering::Relaxed), 0))
    }

    /// Runs something while a bitmap scan seems to run.
    #[cfg(loom)]
    pub(crate) fn within_bitmap_scan(&self, run: impl FnOnce()) {
        let _bitmap = self.bitmap.lock();
        run();
    }
}
