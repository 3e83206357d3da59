//! The table as its users see it.

use f2fs_format::nat::RawNatEntry;
use f2fs_format::{BlockAddr, Nid};
use f2fs_sync::PlainArc;
use f2fs_sync::atomic::Ordering;

#[cfg(feature = "baselines")]
use crate::baseline::Allocator;
use crate::checkpoint::{Checkpoints, NatFlush};
use crate::config::NatConfig;
use crate::entry::NatEntry;
use crate::error::NatError;
#[cfg(not(feature = "baselines"))]
use crate::sharded::Sharded as Allocator;
use crate::size::{ENTRIES, FIRST_NID, count, locate};
use crate::source::NatSource;
use crate::stats::{NatStats, ScanStats};
use crate::table::Table;

/// The node address table of one volume, and the allocator of its NIDs.
///
/// All methods may be called from any number of threads at once. A NID goes round like this:
///
/// ```text
///            allocate            bind                    bind (moved)
///   free ------------> taken ------------> bound (NEW) --------------> bound
///    ^ ^                 |                   |                          |
///    | |     cancel      |                   |           free           |
///    | +-----------------+                   +-------------+------------+
///    |                                                     v
///    +--------------------------------------------- freed, not durable
///         end_checkpoint of a checkpoint that began after the free
/// ```
///
/// There is no edge from freed to free but a durable checkpoint, and none from free to bound: what a mount finds in the
/// log beyond the checkpoint is [reserved](Nat::reserve) first.
#[derive(Debug)]
pub struct Nat {
    pub(crate) table: Table,
    pub(crate) allocator: Allocator,
    checkpoints: Checkpoints,
    stats: ScanStats,
    counts_known: bool,
}

impl Nat {
    /// Opens a table. `version_bitmap`: which copy of each block is current, as in the checkpoint (MSB first; set: the
    /// second). `journal`: entries newer than the table's. Nothing is read yet.
    ///
    /// # Errors
    /// [`NatError::Size`], [`NatError::VersionBitmap`] if the bitmap is too short, [`NatError::Journal`] if the journal
    /// names a NID that does not exist.
    #[allow(clippy::needless_pass_by_value)]
    pub fn new(
        config: NatConfig,
        source: PlainArc<dyn NatSource>,
        version_bitmap: Vec<u8>,
        journal: &[(Nid, RawNatEntry)],
    ) -> Result<Nat, NatError> {
        let table =
            Table::new(config.nat_blocks, config.cached_blocks, config.valid_nodes, source, version_bitmap, journal)?;
        #[cfg(feature = "baselines")]
        let table = table.with_cache_of(config.policy);
        let first = locate(config.next_free_nid).0;
        let first = if first < table.blocks() { first } else { 0 };
        Ok(Nat {
            allocator: Allocator::new(&config, &table, first),
            table,
            checkpoints: Checkpoints::default(),
            stats: ScanStats::new(),
            counts_known: config.valid_nodes.is_some(),
        })
    }

    /// The number of NIDs: every NID lies below it.
    #[must_use]
    pub fn max_nid(&self) -> u32 {
        self.table.max_nid()
    }

    /// The entry of a NID; one that is not bound has a NULL address. Takes no lock and writes to nothing that is
    /// shared, unless the block has to be read or is being changed at this moment.
    ///
    /// # Errors
    /// [`NatError::OutOfRange`]; [`NatError::Source`] and [`NatError::Corrupt`] if the block has to be read and cannot
    /// be.
    #[inline]
    pub fn get(&self, nid: Nid) -> Result<NatEntry, NatError> {
        #[cfg(feature = "baselines")]
        if let Some(cache) = &self.table.cache {
            return self.table.read_through(cache, nid);
        }
        self.table.read(nid)
    }

    /// Takes a free NID. `None` is exact: at some moment during the call no NID was free.
    ///
    /// # Errors
    /// [`NatError::Source`] and [`NatError::Corrupt`] if no NID is free in the blocks that can be read, and there are
    /// others.
    #[inline]
    pub fn allocate(&self) -> Result<Option<Nid>, NatError> {
        self.allocator.allocate(&self.table, &self.stats)
    }

    /// Gives back a NID that was allocated and never bound: it is free again at once. A NID that is not in that state
    /// is left as it is; so is one whose block cannot be read again, which is free after the next open.
    pub fn cancel(&self, nid: Nid) {
        let Ok((block, index)) = self.table.find_ours(nid) else { return };
        let Ok((locked, frame)) = self.table.lock(block) else { return };
        if !locked.entry(frame, index).is_bound() && !locked.is_pending(index) {
            self.allocator.put(&self.table, block, index);
        }
    }

    /// Takes this NID if it is free, as roll-forward recovery does with the nodes that it finds; tells whether it was.
    ///
    /// # Errors
    /// [`NatError::OutOfRange`], [`NatError::Reserved`]; [`NatError::Source`] and [`NatError::Corrupt`] if the block
    /// has to be read and cannot be.
    pub fn reserve(&self, nid: Nid) -> Result<bool, NatError> {
        let (block, index) = self.table.find_ours(nid)?;
        self.allocator.know(&self.table, block)?;
        Ok(self.allocator.reserve(&self.table, block, index))
    }

    /// Says where the node of an allocated NID is: [`BlockAddr::NEW`] for a new one that has no block yet, or the block
    /// that it was written to. Returns what was there before.
    ///
    /// # Errors
    /// [`NatError::NotAllocated`] if the NID is free, or freed and not durably so; [`NatError::AlreadyBound`] if a
    /// bound one is bound to `NEW`; [`NatError::InvalidAddress`]; [`NatError::OutOfRange`], [`NatError::Reserved`];
    /// [`NatError::Source`] and [`NatError::Corrupt`] if the block has to be read and cannot be.
    pub fn bind(&self, nid: Nid, ino: Nid, addr: BlockAddr) -> Result<NatEntry, NatError> {
        if !addr.is_real() && addr != BlockAddr::NEW {
            return Err(NatError::InvalidAddress { nid, addr });
        }
        let (block, index) = self.table.find_ours(nid)?;
        #[cfg(feature = "baselines")]
        let _cache = self.table.change_cache();
        let (mut locked, frame) = self.table.lock(block)?;
        let old = locked.entry(frame, index);
        if old.is_bound() {
            if addr == BlockAddr::NEW {
                return Err(NatError::AlreadyBound { nid, addr: old.addr });
            }
        } else if locked.is_pending(index) || !self.allocator.done(&self.table, block, index) {
            return Err(NatError::NotAllocated { nid });
        }
        self.table.set(&mut locked, frame, block, index, NatEntry { ino, addr, version: old.version });
        Ok(old)
    }

    /// Frees the NID of a node: its address becomes NULL, and its version rises unless the node was never written. It
    /// may be handed out again after [`end_checkpoint`](Nat::end_checkpoint) of a checkpoint that begins after this.
    /// Returns what was there before.
    ///
    /// # Errors
    /// [`NatError::NotBound`]; [`NatError::OutOfRange`], [`NatError::Reserved`]; [`NatError::Source`] and
    /// [`NatError::Corrupt`] if the block has to be read and cannot be.
    pub fn free(&self, nid: Nid) -> Result<NatEntry, NatError> {
        let (block, index) = self.table.find_ours(nid)?;
        #[cfg(feature = "baselines")]
        let _cache = self.table.change_cache();
        let (mut locked, frame) = self.table.lock(block)?;
        let old = locked.entry(frame, index);
        if !old.is_bound() {
            return Err(NatError::NotBound { nid });
        }
        // As `set_node_addr` in fs/f2fs/node.c: a node that never had a block leaves no stale one behind.
        let version = if old.addr == BlockAddr::NEW { old.version } else { old.version.wrapping_add(1) };
        let new = NatEntry { ino: old.ino, addr: BlockAddr::NULL, version };
        self.table.set(&mut locked, frame, block, index, new);
        Ok(old)
    }

    /// Reads a block, if that was not done yet, and finds out which of its NIDs are free.
    pub(crate) fn know(&self, block: u32) -> Result<(), NatError> {
        self.allocator.know(&self.table, block)
    }

    /// How many NIDs can be allocated now. Exact while nobody allocates or frees. Reads the whole table the first time,
    /// unless the configuration said how many nodes are valid.
    ///
    /// # Errors
    /// [`NatError::Source`] and [`NatError::Corrupt`] if a block has to be read and cannot be.
    pub fn free_nids(&self) -> Result<u64, NatError> {
        if !self.counts_known {
            for block in 0..self.table.blocks() {
                self.know(block)?;
            }
        }
        let known: u64 = self.table.slots.iter().map(|slot| u64::from(count(&slot.free_bits()))).sum();
        Ok(known + self.table.unknown_free.load(Ordering::Relaxed))
    }

    /// Takes all changes so far into a checkpoint, and returns the entries and blocks that it has to write:
    /// [`freeze`](Self::freeze) and [`flush`](Self::flush) in one.
    ///
    /// # Errors
    /// Those of `flush`.
    pub fn begin_checkpoint(&self, journal_capacity: usize) -> Result<NatFlush, NatError> {
        self.freeze();
        self.flush(journal_capacity)
    }

    /// Takes all changes so far into a checkpoint. Changes made after this belong to the next one. It notes which blocks of
    /// the table changed, takes no lock for them, and copies nothing: an owner that keeps its operations out meanwhile
    /// keeps them out for a short time.
    ///
    /// A checkpoint that began and does not end is given up by the next call, which takes its changes over.
    pub fn freeze(&self) {
        #[cfg(feature = "baselines")]
        let _cache = self.table.change_cache();
        self.checkpoints.freeze(&self.table);
    }

    /// The entries and blocks that the checkpoint of the last [`freeze`](Self::freeze) has to write. Others may go on
    /// changing the table. `journal_capacity`: how many entries the journal may hold; 0 empties it.
    ///
    /// # Errors
    /// [`NatError::Unwritten`] if an entry was bound to [`BlockAddr::NEW`]; [`NatError::Source`] and
    /// [`NatError::Corrupt`] if a block of which only the journal has something has to be read and cannot be. The
    /// checkpoint is given up then: its changes go to the next one.
    pub fn flush(&self, journal_capacity: usize) -> Result<NatFlush, NatError> {
        #[cfg(feature = "baselines")]
        let _cache = self.table.change_cache();
        self.checkpoints.flush(&self.table, journal_capacity)
    }

    /// The checkpoint that began is durable: the NIDs freed before it began become free. Without one, nothing happens.
    pub fn end_checkpoint(&self) {
        #[cfg(feature = "baselines")]
        let cache = self.table.change_cache();
        self.checkpoints.end(&self.table, |block, bits| self.allocator.put_all(&self.table, block, bits));
        #[cfg(feature = "baselines")]
        {
            drop(cache);
            self.allocator.checkpointed(&self.table, &self.stats);
        }
    }

    /// Where the next search for free NIDs should begin (`next_free_nid` of the checkpoint). Always below the number of
    /// NIDs.
    #[must_use]
    pub fn next_free_nid(&self) -> Nid {
        // It is the first of a block, or one of a list, and the first block has more than the reserved ones.
        self.allocator.next_nid().max(Nid(FIRST_NID))
    }

    /// Every create and unlink calls it (the kernel's `f2fs_balance_fs_bg`), with the directory's lock held if it is to
    /// compare with Linux: the policies that keep a list refill it here once [`NatConfig::balance_entries`] entries are
    /// in memory; [`Policy::Sharded`](crate::Policy::Sharded) does nothing.
    #[cfg(feature = "baselines")]
    #[inline]
    pub fn balance(&self) {
        self.allocator.balance(&self.table, &self.stats);
    }

    /// Counts of the table's work so far.
    #[must_use]
    pub fn stats(&self) -> NatStats {
        let cached_blocks = self.table.pool.in_use();
        #[cfg(feature = "baselines")]
        if let Some(cache) = &self.table.cache {
            return self.stats.read(cached_blocks, cache.len(), self.allocator.listed());
        }
        self.stats.read(cached_blocks, cached_blocks * ENTRIES, 0)
    }

    /// Entries in one block of the table.
    pub const ENTRIES_PER_BLOCK: usize = ENTRIES;
}

const _: fn() = || {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Nat>();
};
