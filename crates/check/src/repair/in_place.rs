//! The tables as the checkpoint in force has them, put right where they stand.
//!
//! A new checkpoint would be the end of what was synced after this one: the nodes of the chain carry its version and
//! its checksum, and begin where its warm-node log goes on. So the checkpoint stays as it is, to the bit, and with it
//! its counts, its logs, and its choice between the copies of each block of NAT and SIT. Only entries change that are
//! wrong: in the block that is in force, or in the journal, if that has them.

use std::collections::HashMap;

use f2fs_format::bits::msb;
use f2fs_format::checkpoint::LogPosition;
use f2fs_format::nat::{ENTRIES_PER_BLOCK, NatBlock, RawNatEntry};
use f2fs_format::sit::{self, RawSitEntry, SitBlock};
use f2fs_format::{LogType, Nid, SegmentNo};

use super::RepairError;
use super::journals::Journals;
use super::overlay::Overlay;
use super::rebuild::{is_wrong_below, nat_entries, sit_entries, used, write_summaries};
use super::state::State;
use super::tables::Tables;
use crate::sit::is_possible;

/// Writes what differs of NAT, SIT and summaries.
pub(super) fn write(overlay: &Overlay, tables: &mut Tables, state: &mut State) -> Result<(), RepairError> {
    let used = used(tables, state);
    let logs = standing(tables);
    let segments = sit_entries(tables, &used, &logs, state);
    let mut journals = Journals::read(overlay, &tables.pack)?;
    write_sit(overlay, tables, &segments, &mut journals)?;
    write_nat(overlay, tables, &mut journals, state)?;
    journals.write(overlay, &tables.pack)?;
    write_summaries(overlay, tables, &used, &logs, state)
}

/// Where the checkpoint says that the logs go on.
fn standing(tables: &Tables) -> [LogPosition; 6] {
    LogType::ALL.map(|log| {
        let (segment, offset) = tables.pack.log(log);
        let alloc_type = tables.pack.header().alloc_type[log.index()];
        LogPosition { segment, next_offset: offset as u16, alloc_type }
    })
}

fn write_sit(
    overlay: &Overlay,
    tables: &Tables,
    segments: &[RawSitEntry],
    journals: &mut Journals,
) -> Result<(), RepairError> {
    let entry_of = |segment: SegmentNo| segments.get(segment.index()).copied();
    journals.sit = once(&journals.sit, entry_of);
    let journaled: HashMap<SegmentNo, RawSitEntry> = journals.sit.iter().copied().collect();
    for (index, entries) in (0..).zip(segments.chunks(sit::ENTRIES_PER_BLOCK)) {
        let addr = tables.geometry.sit_block(index, msb::test(&tables.pack.bitmaps.sit, index as usize));
        let before = overlay.block(addr)?;
        let mut block = Box::new(*SitBlock::read(&before));
        let first = index * sit::ENTRIES_PER_BLOCK as u32;
        for (segment, (slot, entry)) in (first..).zip(block.entries.iter_mut().zip(entries)) {
            // Below the journal anything may stand that makes sense by itself.
            if !journaled.contains_key(&SegmentNo(segment)) || !is_possible(slot) {
                *slot = *entry;
            }
        }
        if *block.as_block() != *before {
            overlay.put(addr, block.as_block());
        }
    }
    Ok(())
}

fn write_nat(
    overlay: &Overlay,
    tables: &mut Tables,
    journals: &mut Journals,
    state: &mut State,
) -> Result<(), RepairError> {
    let mut changed = Vec::new();
    for index in 0..tables.geometry.nat_blocks() {
        let Some(entries) = nat_entries(tables, index, state) else { continue };
        changed.push((index, entries));
    }
    let nids = tables.nat.len();
    journals.nat = once(&journals.nat, |nid| (3..nids).contains(&nid.0).then(|| tables.nat.get(nid)));
    let journaled: HashMap<Nid, RawNatEntry> = journals.nat.iter().copied().collect();
    for (index, entries) in changed {
        let addr = tables.geometry.nat_block(index, msb::test(&tables.pack.bitmaps.nat, index as usize));
        let before = overlay.block(addr)?;
        let mut block = Box::new(*NatBlock::read(&before));
        let first = index * ENTRIES_PER_BLOCK as u32;
        for (nid, (slot, entry)) in (first..).zip(block.entries.iter_mut().zip(&entries)) {
            if !journaled.contains_key(&Nid(nid)) || is_wrong_below(slot) {
                *slot = *entry;
            }
        }
        if *block.as_block() != *before {
            overlay.put(addr, block.as_block());
        }
    }
    Ok(())
}

/// The entries of a journal as they are to be: each once, and none of what does not exist.
fn once<K: Copy + PartialEq, E: Copy>(journal: &[(K, E)], entry_of: impl Fn(K) -> Option<E>) -> Vec<(K, E)> {
    let mut all: Vec<(K, E)> = Vec::with_capacity(journal.len());
    for (key, _) in journal {
        if let Some(entry) = entry_of(*key).filter(|_| !all.iter().any(|(other, _)| other == key)) {
            all.push((*key, entry));
        }
    }
    all
}
