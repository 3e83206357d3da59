//! Walking the NIDs that are in use.

use f2fs_format::Nid;

use crate::entry::NatEntry;
use crate::error::NatError;
use crate::nat::Nat;
use crate::size::{ENTRIES, FIRST_NID, nid_at};
use crate::table::Table;

/// The NIDs in use with their entries, in ascending order: what [`Nat::used`] gives.
#[derive(Debug)]
pub struct UsedNids<'a> {
    nat: &'a Nat,
    /// The next block.
    block: u32,
    /// The rest of the entries of the block before.
    entries: std::vec::IntoIter<(Nid, NatEntry)>,
}

impl Iterator for UsedNids<'_> {
    type Item = Result<(Nid, NatEntry), NatError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(Ok(entry));
            }
            if self.block == self.nat.table.blocks() {
                return None;
            }
            let block = self.block;
            self.block += 1;
            match self.nat.table.bound(block) {
                Ok(entries) => self.entries = entries.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl std::iter::FusedIterator for UsedNids<'_> {}

impl Nat {
    /// All NIDs that are bound to a node, in ascending order, with their entries; those whose node has no block yet
    /// ([`BlockAddr::NEW`](f2fs_format::BlockAddr::NEW)) are among them. The reserved NIDs 0, 1 and 2 are not.
    ///
    /// Blocks of the table that are not in memory are read, one at a time, and not kept. A block that cannot be read is
    /// an error in its place; the walk goes on behind it.
    ///
    /// # What is consistent
    ///
    /// The entries of one block (455 NIDs) are those of one moment. Across blocks the walk is exact if nobody calls
    /// [`bind`](Nat::bind) or [`free`](Nat::free) meanwhile: between opening a table and the first operation, or where
    /// an owner keeps operations out, as for a checkpoint. Otherwise a NID that is bound or freed during the walk may
    /// be seen either way; one that is bound all the time is seen once, with one of the addresses that it had.
    pub fn used(&self) -> UsedNids<'_> {
        UsedNids { nat: self, block: 0, entries: Vec::new().into_iter() }
    }
}

impl Table {
    /// The bound NIDs of a block and their entries; the block is not kept in memory for this.
    fn bound(&self, block: u32) -> Result<Vec<(Nid, NatEntry)>, NatError> {
        let locked = self.slot(block).lock(&self.pool);
        let bound = |entry: &(Nid, NatEntry)| entry.0.0 >= FIRST_NID && entry.1.is_bound();
        Ok(match locked.frame() {
            Some(frame) => {
                (0..ENTRIES).map(|index| (nid_at(block, index), locked.entry(frame, index))).filter(bound).collect()
            }
            None => {
                let entries = self.read_block(block)?;
                (0..ENTRIES).map(|index| (nid_at(block, index), entries[index])).filter(bound).collect()
            }
        })
    }
}
