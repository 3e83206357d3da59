//! The table: NAT blocks, loaded when they are needed, and what the device has of them.
//!
//! # Locking rules
//!
//! In this order: a slot's lock; the pool's lock or the ledger's; other slots' locks are only tried. The ledger says
//! what the device has: readers are the loaders, the writer is the end of a checkpoint, which holds no slot's lock
//! then. A block whose place in the ledger changes is in memory at that moment (it is flushing), so no thread is
//! loading it.

use std::collections::BTreeMap;

use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_format::{BlockAddr, Nid, bits};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{CachePadded, PlainArc, RwLock, protocol_step};

#[cfg(feature = "baselines")]
use crate::baseline::NatCache;
use crate::block_set::BlockSet;
use crate::entry::NatEntry;
use crate::error::NatError;
use crate::frame::{Frame, FramePool};
use crate::size::{Bits, ENTRIES, FIRST_NID, WORDS, bit, count, locate, nid_at};
use crate::slot::{Locked, Look, Slot};
use crate::source::NatSource;

/// The table on the device, as of the last durable checkpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// Which checkpoint of this table it is.
    #[cfg(feature = "baselines")]
    pub(crate) generation: u64,
    /// Which copy of each block is the current one (MSB first, set: the second).
    pub(crate) bitmap: Vec<u8>,
    /// Entries newer than the table's.
    pub(crate) journal: BTreeMap<Nid, NatEntry>,
}

/// The table.
pub(crate) struct Table {
    pub(crate) slots: Box<[Slot]>,
    pub(crate) pool: FramePool,
    pub(crate) source: PlainArc<dyn NatSource>,
    pub(crate) ledger: RwLock<Ledger>,
    /// Blocks with dirty entries. An entry here may be of a block that is clean again, never the other way round.
    pub(crate) dirty: BlockSet,
    /// How many checkpoints have frozen the table: slots freeze what they have when they learn of it.
    pub(crate) freezes: CachePadded<AtomicU64>,
    /// Free NIDs in blocks whose free NIDs are not known one by one. Changed by loaders only.
    pub(crate) unknown_free: AtomicU64,
    /// The cost of the kernel's cache of entries, for the policies with a list; the others have none.
    #[cfg(feature = "baselines")]
    pub(crate) cache: Option<Box<NatCache>>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("blocks", &self.slots.len())
            .field("cached", &self.pool.in_use())
            .finish_non_exhaustive()
    }
}

impl Table {
    pub(crate) fn new(
        nat_blocks: u32,
        cached_blocks: usize,
        valid_nodes: Option<u64>,
        source: PlainArc<dyn NatSource>,
        bitmap: Vec<u8>,
        journal: &[(Nid, RawNatEntry)],
    ) -> Result<Table, NatError> {
        let most = u32::MAX / ENTRIES as u32;
        if nat_blocks == 0 || nat_blocks > most {
            return Err(NatError::Size { nat_blocks, max: most });
        }
        let expected = (nat_blocks as usize).div_ceil(8);
        if bitmap.len() < expected {
            return Err(NatError::VersionBitmap { expected, found: bitmap.len() });
        }
        let max = nat_blocks * ENTRIES as u32;
        let mut newest = BTreeMap::new();
        for (nid, raw) in journal {
            if nid.0 >= max {
                return Err(NatError::Journal { nid: *nid, max });
            }
            // Of two entries for one NID the kernel takes the first.
            newest.entry(*nid).or_insert_with(|| NatEntry::from(*raw));
        }
        let free = valid_nodes.map_or(0, |valid| u64::from(max - FIRST_NID).saturating_sub(valid));
        Ok(Table {
            slots: (0..nat_blocks).map(|_| Slot::new()).collect(),
            pool: FramePool::new(nat_blocks, cached_blocks.min(nat_blocks as usize)),
            source,
            ledger: RwLock::new(Ledger {
                #[cfg(feature = "baselines")]
                generation: 0,
                bitmap,
                journal: newest,
            }),
            dirty: BlockSet::new(nat_blocks, false),
            freezes: CachePadded::new(AtomicU64::new(0)),
            unknown_free: AtomicU64::new(free),
            #[cfg(feature = "baselines")]
            cache: None,
        })
    }

    /// Blocks of the table.
    pub(crate) fn blocks(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The number of NIDs.
    pub(crate) fn max_nid(&self) -> u32 {
        self.blocks() * ENTRIES as u32
    }

    /// The block and place of a NID, if it lies in the table.
    #[inline]
    pub(crate) fn find(&self, nid: Nid) -> Result<(u32, usize), NatError> {
        let (block, index) = locate(nid);
        if block < self.blocks() { Ok((block, index)) } else { Err(NatError::OutOfRange { nid, max: self.max_nid() }) }
    }

    /// The same for a NID that a node may have.
    #[inline]
    pub(crate) fn find_ours(&self, nid: Nid) -> Result<(u32, usize), NatError> {
        if nid.0 < FIRST_NID { Err(NatError::Reserved { nid }) } else { self.find(nid) }
    }

    /// The slot of a block.
    #[inline]
    pub(crate) fn slot(&self, block: u32) -> &Slot {
        &self.slots[block as usize]
    }

    /// An entry. No lock and no write, unless the block has to be loaded or is being changed.
    #[inline]
    pub(crate) fn read(&self, nid: Nid) -> Result<NatEntry, NatError> {
        let (block, index) = self.find(nid)?;
        match self.slot(block).look(&self.pool, index) {
            Look::Entry(entry) => Ok(entry),
            Look::Absent | Look::Torn => self.read_locked(block, index),
        }
    }

    #[cold]
    fn read_locked(&self, block: u32, index: usize) -> Result<NatEntry, NatError> {
        let (locked, frame) = self.lock(block)?;
        Ok(locked.entry(frame, index))
    }

    /// Locks a block, loading it first if it is not in memory.
    #[inline]
    pub(crate) fn lock(&self, block: u32) -> Result<(Locked<'_>, &Frame), NatError> {
        let mut locked = self.slot(block).lock(&self.pool);
        if let Some(frame) = locked.frame() {
            return Ok((locked, frame));
        }
        let frame = self.load(block, &mut locked)?;
        Ok((locked, frame))
    }

    /// Reads a block into a frame.
    #[cold]
    fn load(&self, block: u32, locked: &mut Locked<'_>) -> Result<&Frame, NatError> {
        let entries = self.read_block(block)?;
        Ok(self.fill(block, &entries, locked))
    }

    /// Gives a block a frame with these entries.
    pub(crate) fn fill(&self, block: u32, entries: &[NatEntry; ENTRIES], locked: &mut Locked<'_>) -> &Frame {
        let (number, frame) = self.pool.lend(block, |holder, frame| {
            let gone = self.slot(holder).evict(frame);
            #[cfg(feature = "baselines")]
            if gone && let Some(cache) = &self.cache {
                cache.forget(holder);
            }
            gone
        });
        locked.fill(number, frame, entries);
        frame
    }

    /// The block as the device has it, journal included.
    pub(crate) fn read_block(&self, block: u32) -> Result<[NatEntry; ENTRIES], NatError> {
        let second = bits::msb::test(&self.ledger.read().bitmap, block as usize);
        let raw =
            self.source.read_nat_block(block, second).map_err(|source| NatError::Source { block, second, source })?;
        self.entries(block, &raw)
    }

    /// The entries of a block that was read, those of the journal among them.
    pub(crate) fn entries(&self, block: u32, raw: &NatBlock) -> Result<[NatEntry; ENTRIES], NatError> {
        let mut entries = std::array::from_fn(|index| NatEntry::from(raw.entries[index]));
        let range = nid_at(block, 0)..=nid_at(block, ENTRIES - 1);
        for (nid, entry) in self.ledger.read().journal.range(range) {
            entries[locate(*nid).1] = *entry;
        }
        for (index, entry) in entries.iter().enumerate() {
            if entry.addr == BlockAddr::NEW {
                return Err(NatError::Corrupt { block, nid: nid_at(block, index), addr: entry.addr });
            }
        }
        Ok(entries)
    }

    /// The NIDs of a block that are free by their entries: no node, and not freed since the last durable checkpoint.
    pub(crate) fn unbound(locked: &Locked<'_>, frame: &Frame, block: u32) -> Bits {
        let mut free = [0; WORDS];
        for index in 0..ENTRIES {
            if nid_at(block, index).0 >= FIRST_NID
                && !locked.entry(frame, index).is_bound()
                && !locked.is_pending(index)
            {
                let (word, mask) = bit(index);
                free[word] |= mask;
            }
        }
        free
    }

    /// Finds out which NIDs of a block are free, once; `found` is given them before the block counts as known.
    pub(crate) fn know(&self, block: u32, found: impl FnOnce(&Bits)) -> Result<(), NatError> {
        let slot = self.slot(block);
        if slot.is_known() {
            return Ok(());
        }
        let (locked, frame) = self.lock(block)?;
        if slot.is_known() {
            return Ok(());
        }
        let free = Table::unbound(&locked, frame, block);
        slot.put_all(&free);
        self.uncount_unknown(count(&free));
        slot.set_known();
        found(&free);
        Ok(())
    }

    /// NIDs of a block that is not known became free.
    pub(crate) fn count_unknown(&self, free: u32) {
        self.unknown_free.fetch_add(u64::from(free), Ordering::Relaxed);
    }

    /// So many free NIDs of a block that is not known became known, or were taken.
    pub(crate) fn uncount_unknown(&self, free: u32) {
        let less = |all: u64| Some(all.saturating_sub(u64::from(free)));
        let _ = self.unknown_free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Changes an entry with its block's lock held.
    #[inline]
    pub(crate) fn set(&self, locked: &mut Locked<'_>, frame: &Frame, block: u32, index: usize, entry: NatEntry) {
        // An owner that keeps changes out during a freeze has made its number visible to those that come after it.
        let freezes = self.freezes.load(Ordering::Acquire);
        protocol_step!("nat_change_ignores_freeze", locked.catch_up(freezes));
        if locked.set(frame, index, entry) {
            self.dirty.insert(block);
        }
        #[cfg(feature = "baselines")]
        if let Some(cache) = &self.cache {
            cache.enter(nid_at(block, index));
        }
    }
}
