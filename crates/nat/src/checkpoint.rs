//! The blocks and journal entries that a checkpoint has to write of the table.
//!
//! The choice is the kernel's (`f2fs_flush_nat_entries`): if all changed entries, with those that stand in the journal
//! already, fit into the journal, they go there and no block is written. Else the journal is emptied into the blocks'
//! sets; the sets go to the journal, smallest first, while they fit, and the blocks of the others are written, each to
//! the copy that is not current. No entry that stood in the journal is lost: it is in the new journal, or in a block
//! that is written.
//!
//! # Locking rules
//!
//! `Checkpoints::begun` is held over the whole of `begin` and of `end`; inside it, one slot's lock at a time, and the
//! ledger's lock alone. A change that runs beside is either in this checkpoint (made before its slot was frozen) or in
//! the next.

use std::collections::BTreeMap;

use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_format::{BlockAddr, Nid, bits};
use f2fs_sync::{Mutex, protocol_never, protocol_step};

use crate::entry::NatEntry;
use crate::error::NatError;
use crate::frame::Frame;
use crate::size::{Bits, ENTRIES, bit, count, locate, members, nid_at};
use crate::slot::Locked;
use crate::table::{Ledger, Table};

/// A block of the table that has to be written.
#[derive(Clone, Debug)]
pub struct NatBlockWrite {
    /// Which block of the table.
    pub index: u32,
    /// Which copy to write: the one that is not current.
    pub second: bool,
    /// Its new contents.
    pub block: Box<NatBlock>,
}

/// The part of the table that a checkpoint has to record.
#[derive(Clone, Debug)]
pub struct NatFlush {
    /// The new journal, whole, ascending by NID.
    pub journal: Vec<(Nid, RawNatEntry)>,
    /// The blocks to write, ascending. They have to be durable before the checkpoint is.
    pub blocks: Vec<NatBlockWrite>,
    /// The version bitmap for the checkpoint, in which these blocks are flipped.
    pub version_bitmap: Vec<u8>,
}

/// A checkpoint on its way.
#[derive(Debug)]
struct Begun {
    /// The blocks that it froze.
    frozen: Vec<u32>,
    /// The table as the device will have it.
    ledger: Ledger,
}

/// Which checkpoint is on its way.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    begun: Mutex<Option<Begun>>,
}

/// The entries of one block that the device lacks.
struct Set {
    block: u32,
    entries: Bits,
    image: Option<Box<NatBlock>>,
}

impl Checkpoints {
    /// Takes all changes so far into a checkpoint.
    pub(crate) fn begin(&self, table: &Table, capacity: usize) -> Result<NatFlush, NatError> {
        let mut begun = self.begun.lock();
        if let Some(abandoned) = begun.take() {
            give_up(table, &abandoned.frozen);
        }
        let mut ledger = table.ledger.read().clone();
        #[cfg(feature = "baselines")]
        {
            ledger.generation += 1;
        }
        let mut frozen = Vec::new();
        match freeze(table, &mut ledger, capacity, &mut frozen) {
            Ok((journal, blocks)) => {
                let flush = NatFlush {
                    journal: journal.iter().map(|(nid, entry)| (*nid, (*entry).into())).collect(),
                    blocks,
                    version_bitmap: ledger.bitmap.clone(),
                };
                ledger.journal = journal;
                *begun = Some(Begun { frozen, ledger });
                Ok(flush)
            }
            Err(error) => {
                give_up(table, &frozen);
                Err(error)
            }
        }
    }

    /// The checkpoint is durable; `freed` gets the NIDs that may be handed out again, block by block, with the block's
    /// lock held.
    pub(crate) fn end(&self, table: &Table, freed: impl Fn(u32, &Bits)) {
        let mut begun = self.begun.lock();
        let Some(Begun { frozen, ledger }) = begun.take() else { return };
        // Before the blocks thaw: from then on they may be taken out of memory, and are read again as the ledger says.
        let mut ledger = Some(ledger);
        let mut publish = || {
            if let Some(ledger) = ledger.take() {
                *table.ledger.write() = ledger;
            }
        };
        protocol_step!("nat_ledger_before_thaw", publish());
        for block in frozen {
            let mut locked = table.slot(block).lock(&table.pool);
            let bits = locked.thaw();
            if count(&bits) != 0 {
                freed(block, &bits);
            }
        }
        publish();
    }
}

fn give_up(table: &Table, frozen: &[u32]) {
    for block in frozen {
        if table.slot(*block).lock(&table.pool).unfreeze() {
            table.dirty.insert(*block);
        }
    }
}

/// Freezes the blocks, and chooses between the journal and the table for each entry. `ledger` becomes the new version
/// bitmap; the new journal is returned.
#[allow(clippy::type_complexity)]
fn freeze(
    table: &Table,
    ledger: &mut Ledger,
    capacity: usize,
    frozen: &mut Vec<u32>,
) -> Result<(BTreeMap<Nid, NatEntry>, Vec<NatBlockWrite>), NatError> {
    let mut sets = freeze_dirty(table, frozen)?;
    let total: u32 = sets.iter().map(|set| count(&set.entries)).sum();

    // The entries of the journal that did not change since.
    let mut kept: BTreeMap<u32, Bits> = BTreeMap::new();
    for nid in ledger.journal.keys() {
        let (block, index) = locate(*nid);
        let (word, mask) = bit(index);
        let superseded =
            sets.binary_search_by_key(&block, |set| set.block).is_ok_and(|at| sets[at].entries[word] & mask != 0);
        if !superseded {
            kept.entry(block).or_default()[word] |= mask;
        }
    }
    let kept_count: u32 = kept.values().map(count).sum();
    let all_fit = (total + kept_count) as usize <= capacity;

    let mut journal = BTreeMap::new();
    if all_fit {
        for (nid, entry) in &ledger.journal {
            journal.insert(*nid, *entry);
        }
    } else {
        for (block, bits) in kept {
            match sets.binary_search_by_key(&block, |set| set.block) {
                Ok(at) => {
                    for (word, more) in sets[at].entries.iter_mut().zip(bits) {
                        *word |= more;
                    }
                }
                Err(at) => sets.insert(at, Set { block, entries: bits, image: None }),
            }
        }
    }

    // Smallest first; ties go by block, so that the same state always gives the same checkpoint.
    sets.sort_by_key(|set| (count(&set.entries), set.block));
    let mut writes = Vec::new();
    for set in sets {
        let size = count(&set.entries) as usize;
        if journal_has_room(all_fit, &journal, size, capacity) {
            for index in members(set.entries) {
                let nid = nid_at(set.block, index);
                let entry = match &set.image {
                    Some(image) => NatEntry::from(image.entries[index]),
                    None => ledger.journal.get(&nid).copied().unwrap_or_default(),
                };
                journal.insert(nid, entry);
            }
            continue;
        }
        let block = match set.image {
            Some(image) => image,
            None => {
                // Only the journal has something of this block: it has to be read to be written.
                let (mut locked, frame) = table.lock(set.block)?;
                frozen.push(set.block);
                protocol_step!("nat_block_pinned", locked.pin());
                image(&locked, frame)
            }
        };
        let second = bits::msb::flip(&mut ledger.bitmap, set.block as usize);
        writes.push(NatBlockWrite { index: set.block, second, block });
    }
    writes.sort_by_key(|write| write.index);
    Ok((journal, writes))
}

fn journal_has_room(all_fit: bool, journal: &BTreeMap<Nid, NatEntry>, size: usize, capacity: usize) -> bool {
    all_fit || journal.len() + size <= capacity
}

/// Freezes all dirty blocks. `frozen` gets those that were, also if it fails.
fn freeze_dirty(table: &Table, frozen: &mut Vec<u32>) -> Result<Vec<Set>, NatError> {
    let dirty: Vec<u32> = table.dirty.iter().collect();
    let mut sets = Vec::with_capacity(dirty.len());
    let mut failed = None;
    for block in dirty {
        match freeze_block(table, block) {
            Ok(None) => {}
            Ok(Some(set)) => {
                protocol_never!("nat_dirty_removed_before_freeze", table.dirty.remove(set.block));
                frozen.push(set.block);
                sets.push(set);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(sets), Err)
}

/// Freezes a block; `None`: it has nothing dirty.
fn freeze_block(table: &Table, block: u32) -> Result<Option<Set>, NatError> {
    let (mut locked, frame) = table.lock(block)?;
    let entries = locked.dirty();
    for index in members(entries) {
        let entry = locked.entry(frame, index);
        if entry.addr == BlockAddr::NEW {
            return Err(NatError::Unwritten { nid: nid_at(block, index), ino: entry.ino });
        }
    }
    // With the lock held: a change that comes after this one enters the block again.
    protocol_step!("nat_dirty_removed_before_freeze", table.dirty.remove(block));
    locked.freeze();
    Ok((count(&entries) != 0).then(|| Set { block, entries, image: Some(image(&locked, frame)) }))
}

/// The block as it is to stand on the device.
fn image(locked: &Locked<'_>, frame: &Frame) -> Box<NatBlock> {
    let mut image = Box::new(NatBlock::ZERO);
    for (index, entry) in image.entries.iter_mut().enumerate().take(ENTRIES) {
        *entry = locked.entry(frame, index).into();
    }
    image
}
