//! The node address table in force: both block copies by the version bitmap, with the journal on top.

use f2fs_format::bits::{lsb, msb};
use f2fs_format::nat::{ENTRIES_PER_BLOCK, NatBlock, RawNatEntry};
use f2fs_format::{BlockAddr, Geometry, Nid};
use rayon::prelude::*;

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::report::Collector;
use super::source::{Source, ZEROS};
use super::sparse::SparseBits;

/// NAT blocks that one task reads together: 256 KiB, which stay in the processor's cache until they were looked at.
const BATCH: usize = 64;

/// The table. Blocks without an entry take no memory.
#[derive(Debug)]
pub(super) struct NatTable {
    blocks: Vec<Option<Box<NatBlock>>>,
}

impl NatTable {
    /// Reads the table.
    pub(super) fn load(source: &Source<'_>, geometry: &Geometry, bitmap: &[u8]) -> Result<NatTable, CheckError> {
        let indices: Vec<u32> = (0..geometry.nat_blocks()).collect();
        let parts: Vec<Vec<Option<Box<NatBlock>>>> = indices
            .par_chunks(BATCH)
            .map(|part| {
                let addr = |index: &u32| geometry.nat_block(*index, msb::test(bitmap, *index as usize));
                let addrs: Vec<BlockAddr> = part.iter().map(addr).collect();
                let read = source.blocks(&addrs)?;
                let keep = |block: &f2fs_format::RawBlock| (*block != ZEROS).then(|| Box::new(*NatBlock::read(block)));
                Ok(read.iter().map(keep).collect())
            })
            .collect::<Result<_, CheckError>>()?;
        Ok(NatTable { blocks: parts.into_iter().flatten().collect() })
    }

    /// The NIDs that exist: all below this.
    pub(super) fn len(&self) -> u32 {
        (self.blocks.len() * ENTRIES_PER_BLOCK) as u32
    }

    /// The entry of a NID; a free one beyond the end.
    pub(super) fn get(&self, nid: Nid) -> RawNatEntry {
        let block = self.blocks.get(nid.index() / ENTRIES_PER_BLOCK).and_then(Option::as_ref);
        block.map_or_else(RawNatEntry::default, |block| block.entries[nid.index() % ENTRIES_PER_BLOCK])
    }

    /// The block `index`, unless there are only zeros in it.
    pub(super) fn block(&self, index: u32) -> Option<&NatBlock> {
        self.blocks.get(index as usize)?.as_deref()
    }

    /// Changes an entry; nothing beyond the end.
    pub(super) fn set(&mut self, nid: Nid, entry: RawNatEntry) {
        let Some(block) = self.blocks.get_mut(nid.index() / ENTRIES_PER_BLOCK) else { return };
        let block = block.get_or_insert_with(|| Box::new(NatBlock::ZERO));
        block.entries[nid.index() % ENTRIES_PER_BLOCK] = entry;
    }

    /// The NIDs in use, reserved ones left out.
    pub(super) fn in_use(&self) -> impl Iterator<Item = Nid> + '_ {
        let blocks = self.blocks.iter().enumerate().filter_map(|(index, block)| Some((index, block.as_deref()?)));
        let used = blocks.flat_map(|(index, block)| {
            let entries = block.entries.iter().enumerate().filter(|(_, entry)| entry.block_addr.get() != 0);
            entries.map(move |(slot, _)| Nid((index * ENTRIES_PER_BLOCK + slot) as u32))
        });
        used.filter(|nid| nid.0 > 2)
    }

    /// Entries of block `index` that are in use. NID 0 counts as in use.
    fn used_in(&self, index: usize) -> usize {
        let used = |block: &NatBlock| block.entries.iter().filter(|entry| entry.block_addr.get() != 0).count();
        let zero = usize::from(index == 0 && self.get(Nid(0)).block_addr.get() == 0);
        self.blocks[index].as_deref().map_or(0, used) + zero
    }

    /// Lays the journal over the table and checks its entries. Entries that are out of range are left out.
    pub(super) fn apply_journal(&mut self, journal: &[(Nid, RawNatEntry)], geometry: &Geometry, findings: &Collector) {
        let kind = FindingKind::NatJournal;
        for (index, (nid, entry)) in journal.iter().enumerate() {
            let place = Place::Nid(*nid);
            let (found, min, max) = (u64::from(nid.0), 3, u64::from(self.len()) - 1);
            if !(min..=max).contains(&found) {
                findings.add(kind, place, Problem::Range { what: "nid of the entry", found, min, max });
                continue;
            }
            let twice = journal[..index].iter().any(|(other, _)| other == nid);
            findings.require(!twice, kind, &place, "a second entry for the nid", index as u64);
            let addr = BlockAddr::from(entry.block_addr);
            let fits = addr.is_null() || geometry.in_main(addr);
            findings.require(fits, kind, &place, "address outside the main area", addr.0.into());
            // fsck.f2fs judges the table by itself, too.
            let below = self.get(*nid);
            let (has_inode, addr) = (below.ino.get() != 0, below.block_addr.get());
            let what = "below the entry of the journal one without an inode, at block";
            findings.require(twice || addr == 0 || has_inode, FindingKind::NatEntry, &place, what, addr.into());
            self.set(*nid, *entry);
        }
    }

    /// Checks the entries by themselves: NID 0 is free, 1 and 2 are reserved, the others lie in the main area and
    /// belong to an inode that is in use. Counts the nodes and the inodes.
    pub(super) fn check(&self, geometry: &Geometry, findings: &Collector) -> (u64, u64) {
        let count = |index: usize| {
            let mut counts = (0, 0);
            let Some(block) = self.blocks[index].as_deref() else { return counts };
            for (slot, entry) in block.entries.iter().enumerate() {
                let nid = Nid((index * ENTRIES_PER_BLOCK + slot) as u32);
                if nid.0 > 2 && entry.block_addr.get() != 0 {
                    counts.0 += 1;
                    counts.1 += u64::from(entry.ino.get() == nid.0);
                    self.check_entry(nid, entry, geometry, findings);
                }
            }
            counts
        };
        let null = self.get(Nid::NULL).block_addr.get();
        let place = Place::Nid(Nid::NULL);
        findings.expect(FindingKind::NatEntry, &place, "address of a nid that is not one", 0, null.into());
        for nid in [Nid::NODE, Nid::META] {
            let found = u64::from(self.get(nid).block_addr.get());
            findings.expect(FindingKind::NatEntry, &Place::Nid(nid), "address of a reserved nid", 1, found);
        }
        (0..self.blocks.len()).into_par_iter().map(count).reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    fn check_entry(&self, nid: Nid, entry: &RawNatEntry, geometry: &Geometry, findings: &Collector) {
        let (kind, place) = (FindingKind::NatEntry, Place::Nid(nid));
        let addr = BlockAddr::from(entry.block_addr);
        findings.require(geometry.in_main(addr), kind, &place, "address outside the main area", addr.0.into());
        let ino = Nid::from(entry.ino);
        let owner = ino.0 > 2 && self.get(ino).block_addr.get() != 0;
        findings.require(owner, kind, &place, "belongs to an inode that is free", ino.0.into());
    }

    /// Reports every NID that is in use, but was not reached.
    pub(super) fn check_reached(&self, reached: &SparseBits, findings: &Collector) {
        (0..self.blocks.len()).into_par_iter().for_each(|index| {
            let Some(block) = self.blocks[index].as_deref() else { return };
            for (slot, entry) in block.entries.iter().enumerate() {
                let nid = (index * ENTRIES_PER_BLOCK + slot) as u32;
                if nid > 2 && entry.block_addr.get() != 0 && !reached.get(nid) {
                    let place = Place::Node { nid: Nid(nid), addr: entry.block_addr.into() };
                    let (what, found) = ("nothing refers to this node, which belongs to inode", entry.ino.get().into());
                    findings.add(FindingKind::UnreachableNid, place, Problem::Fault { what, found });
                }
            }
        });
    }

    /// Checks the NAT bits of a pack: the full NAT blocks, and the empty ones. `full` and `empty` count from the lowest
    /// bit of each byte. Blocks that the journal changes are left out: mkfs.f2fs leaves the bits as they were.
    pub(super) fn check_bits(&self, full: &[u8], empty: &[u8], journalled: &[usize], findings: &Collector) {
        for index in (0..self.blocks.len()).filter(|index| !journalled.contains(index)) {
            let used = self.used_in(index);
            for (what, map, expected) in
                [("full bit", full, used == ENTRIES_PER_BLOCK), ("empty bit", empty, used == 0)]
            {
                let found = lsb::test(map, index);
                let place = Place::NatBlock(index as u32);
                findings.expect(FindingKind::NatBits, &place, what, expected.into(), found.into());
            }
        }
    }
}
