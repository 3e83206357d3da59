//! The journals of the NAT and of the SIT in the pack in force.

use f2fs_format::checkpoint::flags;
use f2fs_format::nat::RawNatEntry;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{ENTRIES, JOURNAL_SIZE, Journal, Summary};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use zerocopy::{FromBytes, IntoBytes};

use super::RepairError;
use super::overlay::Overlay;
use crate::pack::Pack;

/// The entries in force of both.
pub(super) struct Journals {
    pub(super) nat: Vec<(Nid, RawNatEntry)>,
    pub(super) sit: Vec<(SegmentNo, RawSitEntry)>,
}

/// Where the journal of a log stands: the block, and the byte in it.
fn place(pack: &Pack, log: LogType) -> (BlockAddr, usize) {
    let first = pack.start.offset(pack.start_sum());
    match (pack.has(flags::COMPACT_SUM), log) {
        (true, LogType::HotData) => (first, 0),
        (true, _) => (first, JOURNAL_SIZE),
        (false, _) => (first.offset(u32::from(log.number())), ENTRIES * size_of::<Summary>()),
    }
}

fn read(overlay: &Overlay, pack: &Pack, log: LogType) -> Result<Journal, RepairError> {
    let (addr, at) = place(pack, log);
    let block = overlay.block(addr)?;
    Ok(Journal::read_from_prefix(&block[at..]).map_or(Journal::ZERO, |(journal, _)| journal))
}

fn write(overlay: &Overlay, pack: &Pack, log: LogType, journal: &Journal) -> Result<(), RepairError> {
    let (addr, at) = place(pack, log);
    let mut block = overlay.block(addr)?;
    block[at..at + JOURNAL_SIZE].copy_from_slice(journal.as_bytes());
    overlay.put(addr, &block);
    Ok(())
}

impl Journals {
    /// Reads both; of one that has more entries than fit, none.
    pub(super) fn read(overlay: &Overlay, pack: &Pack) -> Result<Journals, RepairError> {
        let nat = read(overlay, pack, LogType::HotData)?.nat_entries().unwrap_or_default();
        let sit = read(overlay, pack, LogType::ColdData)?.sit_entries().unwrap_or_default();
        Ok(Journals { nat, sit })
    }

    /// Writes those that are not so already, in place.
    pub(super) fn write(&self, overlay: &Overlay, pack: &Pack) -> Result<(), RepairError> {
        if read(overlay, pack, LogType::HotData)?.nat_entries().as_ref() != Some(&self.nat)
            && let Some(journal) = Journal::from_nat(&self.nat)
        {
            write(overlay, pack, LogType::HotData, &journal)?;
        }
        if read(overlay, pack, LogType::ColdData)?.sit_entries().as_ref() != Some(&self.sit)
            && let Some(journal) = Journal::from_sit(&self.sit)
        {
            write(overlay, pack, LogType::ColdData, &journal)?;
        }
        Ok(())
    }
}
