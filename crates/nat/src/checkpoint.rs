//! The blocks and journal entries that a checkpoint has to write of the table.
//!
//! The choice is the kernel's (`f2fs_flush_nat_entries`): the changed entries and those that stand in the journal already
//! are sorted into sets, one for each block. The sets go to the journal, smallest first, while they fit (if there is room
//! for all, all do), and the blocks of the others are written, each to the copy that is not current. No entry that stood
//! in the journal is lost: it is in the new journal, or in a block that is written.
//!
//! ```text
//!   freeze   changed blocks are noted; these, and those of which the journal has something, owe an image of what they
//!            are now
//!   flush    the images are taken, and stand in the journal or in blocks to be written
//!   end      the checkpoint is durable
//! ```
//!
//! # Locking rules
//!
//! `Checkpoints::begun` is held over the whole of each step; inside it, one slot's lock at a time, and the ledger's lock
//! alone. A change that runs beside is either in this checkpoint (made before its slot was frozen) or in the next: a
//! thread that changes a block which owes an image leaves that behind (`slot.rs`). The freeze itself looks at no slot of
//! a changed block: it takes the set of them, and counts up. A change that comes after that enters its block into the
//! set again, because it freezes the slot first.

use std::collections::{BTreeMap, BTreeSet};

use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_format::{BlockAddr, Nid, bits};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Mutex, protocol_never, protocol_step};

use crate::entry::NatEntry;
use crate::error::NatError;
use crate::size::{Bits, WORDS, bit, count, locate, members, nid_at};
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
    /// The blocks that it froze, ascending; changed ones, or those of the journal.
    frozen: Vec<u32>,
    /// The table as the device will have it, once that is known.
    ledger: Option<Ledger>,
}

/// Which checkpoint is on its way.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    begun: Mutex<Option<Begun>>,
}

/// The entries of one block that the new journal or the block has to hold.
struct Set {
    block: u32,
    entries: Bits,
    image: Option<Box<NatBlock>>,
}

impl Checkpoints {
    /// Takes all changes so far into a checkpoint.
    pub(crate) fn freeze(&self, table: &Table) {
        let mut begun = self.begun.lock();
        if let Some(abandoned) = begun.take() {
            give_up(table, &abandoned.frozen);
        }
        *begun = Some(Begun { frozen: freeze(table), ledger: None });
    }

    /// The journal and the blocks of the checkpoint that [`freeze`](Self::freeze) began. After an error none has begun.
    pub(crate) fn flush(&self, table: &Table, capacity: usize) -> Result<NatFlush, NatError> {
        let mut begun = self.begun.lock();
        let mut ledger = table.ledger.read().clone();
        #[cfg(feature = "baselines")]
        {
            ledger.generation += 1;
        }
        let mut frozen = begun.take().map_or_else(Vec::new, |begun| begun.frozen);
        match flush(table, &mut ledger, capacity, &frozen) {
            Ok((journal, blocks)) => {
                let flush = NatFlush {
                    journal: journal.iter().map(|(nid, entry)| (*nid, (*entry).into())).collect(),
                    blocks,
                    version_bitmap: ledger.bitmap.clone(),
                };
                ledger.journal = journal;
                *begun = Some(Begun { frozen: core::mem::take(&mut frozen), ledger: Some(ledger) });
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
        let Some(Begun { frozen, mut ledger }) = begun.take_if(|begun| begun.ledger.is_some()) else { return };
        // Before the blocks thaw: from then on they may be taken out of memory, and are read again as the ledger says.
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

/// Freezes the changed blocks, and those of which only the journal has something: the checkpoint may have to write
/// them.
fn freeze(table: &Table) -> Vec<u32> {
    let count_up = || table.freezes.fetch_add(1, Ordering::AcqRel);
    // In this order: a change that knows the number is of the next checkpoint, and its block stays in the set.
    protocol_never!("nat_frozen_before_set_is_taken", count_up());
    let mut frozen: BTreeSet<u32> = table.dirty.iter().filter(|block| table.dirty.remove(*block)).collect();
    protocol_step!("nat_frozen_before_set_is_taken", count_up());
    let of_journal: Vec<u32> = table.ledger.read().journal.keys().map(|nid| locate(*nid).0).collect();
    for block in of_journal {
        if frozen.insert(block) {
            protocol_step!("nat_block_of_journal_owes_nothing", table.slot(block).lock(&table.pool).owe());
        }
    }
    frozen.into_iter().collect()
}

/// Takes the images of the frozen blocks, and chooses between the journal and the table for each entry. `ledger`
/// becomes the new version bitmap; the new journal is returned.
#[allow(clippy::type_complexity)]
fn flush(
    table: &Table,
    ledger: &mut Ledger,
    capacity: usize,
    frozen: &[u32],
) -> Result<(BTreeMap<Nid, NatEntry>, Vec<NatBlockWrite>), NatError> {
    let mut sets = Vec::with_capacity(frozen.len());
    // The journal keeps all that it has of these, unless it is emptied.
    let mut unchanged = Vec::new();
    for block in frozen {
        match written_image(table, *block)? {
            Some((entries, image)) => sets.push(Set { block: *block, entries, image: Some(image) }),
            None => unchanged.push(*block),
        }
    }
    // The entries that stand in the journal, changed since or not.
    for nid in ledger.journal.keys() {
        let (block, index) = locate(*nid);
        let (word, mask) = bit(index);
        let at = sets.binary_search_by_key(&block, |set| set.block).unwrap_or_else(|at| {
            sets.insert(at, Set { block, entries: [0; WORDS], image: None });
            at
        });
        sets[at].entries[word] |= mask;
    }

    // Smallest first; ties go by block, so that the same state always gives the same checkpoint.
    sets.sort_by_key(|set| (count(&set.entries), set.block));
    let mut journal = BTreeMap::new();
    let mut writes = Vec::new();
    for set in sets {
        let size = count(&set.entries) as usize;
        if journal.len() + size <= capacity {
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
                protocol_step!("nat_block_pinned", locked.pin());
                locked.take_owed(frame)
            }
        };
        let second = bits::msb::flip(&mut ledger.bitmap, set.block as usize);
        writes.push(NatBlockWrite { index: set.block, second, block });
    }
    writes.sort_by_key(|write| write.index);
    for block in unchanged {
        table.slot(block).lock(&table.pool).forgive();
    }
    Ok((journal, writes))
}

/// The entries of a frozen block that have to be written, and its image; nothing if the device has all of them.
fn written_image(table: &Table, block: u32) -> Result<Option<(Bits, Box<NatBlock>)>, NatError> {
    let (entries, image) = {
        let mut locked = table.slot(block).lock(&table.pool);
        locked.catch_up(table.freezes.load(Ordering::Acquire));
        let entries = locked.flushing();
        // What is not on the device is in memory.
        debug_assert!(count(&entries) == 0 || locked.frame().is_some(), "block {block} is not in memory");
        let Some(frame) = locked.frame().filter(|_| count(&entries) != 0) else { return Ok(None) };
        (entries, locked.take_owed(frame))
    };
    for index in members(entries) {
        let entry = NatEntry::from(image.entries[index]);
        if entry.addr == BlockAddr::NEW {
            return Err(NatError::Unwritten { nid: nid_at(block, index), ino: entry.ino });
        }
    }
    Ok(Some((entries, image)))
}
