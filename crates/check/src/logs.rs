//! The part of the pack behind the checkpoint block: orphans, the logs' summaries with both journals, NAT bits.

use f2fs_format::checkpoint::flags;
use f2fs_format::nat::{ENTRIES_PER_BLOCK, RawNatEntry};
use f2fs_format::nat_bits::{self, NatBits};
use f2fs_format::orphan::{OrphanBlock, PER_BLOCK};
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{SummaryBlock, compact};
use f2fs_format::{BLOCKS_PER_SEGMENT, Geometry, LogType, Nid, RawBlock, SegmentNo};
use f2fs_sync::Arc;

use super::error::CheckError;
use super::finding::{FindingKind, Place, Problem};
use super::nat::NatTable;
use super::pack::Pack;
use super::report::Collector;
use super::source::Source;

/// The content of the pack besides the checkpoint block.
#[derive(Debug)]
pub(super) struct Logs {
    /// Segment and summary of each log; no summary for node logs after an unclean stop.
    pub(super) summaries: [(SegmentNo, Option<Arc<SummaryBlock>>); 6],
    pub(super) nat_journal: Vec<(Nid, RawNatEntry)>,
    pub(super) sit_journal: Vec<(SegmentNo, RawSitEntry)>,
}

/// Reads the summaries and takes the journals out of them.
pub(super) fn load(source: &Source<'_>, pack: &Pack, findings: &Collector) -> Result<Logs, CheckError> {
    let read = |block: u32, count: u32| -> Result<Vec<RawBlock>, CheckError> {
        let run = source.run(pack.start.offset(block), count as usize)?;
        Ok((0..run.blocks()).map(|index| *run.block(index)).collect())
    };
    let mut summaries = LogType::ALL.map(|log| (pack.log(log).0, None));
    let data = read(pack.start_sum(), pack.data_summary_blocks())?;
    if pack.has(flags::COMPACT_SUM) {
        match compact::parse(&data, pack.data_entries()) {
            Ok(parsed) => {
                for (slot, summary) in summaries.iter_mut().zip(parsed) {
                    slot.1 = Some(Arc::from(summary));
                }
            }
            Err(bad) => findings.add(FindingKind::Summary, Place::Pack(pack.index), Problem::Corrupt(bad)),
        }
    } else {
        for (slot, block) in summaries.iter_mut().zip(&data) {
            slot.1 = Some(Arc::new(*SummaryBlock::read(block)));
        }
    }
    if pack.has_node_summaries() {
        let node = read(pack.total() - 4, 3)?;
        for (slot, block) in summaries[LogType::HotNode.index()..].iter_mut().zip(&node) {
            slot.1 = Some(Arc::new(*SummaryBlock::read(block)));
        }
    }
    let count = |log: LogType| summaries[log.index()].1.as_ref().map_or(0, |summary| summary.journal.count.get());
    let nat = summaries[LogType::HotData.index()].1.as_ref().map(|summary| summary.journal.nat_entries());
    let sit = summaries[LogType::ColdData.index()].1.as_ref().map(|summary| summary.journal.sit_entries());
    let whole = |kind, log, whole: bool| {
        let (what, found) = ("entries, more than fit", count(log).into());
        findings.require(whole, kind, &Place::Log(log), what, found);
    };
    whole(FindingKind::NatJournal, LogType::HotData, !matches!(nat, Some(None)));
    whole(FindingKind::SitJournal, LogType::ColdData, !matches!(sit, Some(None)));
    let (nat_journal, sit_journal) = (nat.flatten().unwrap_or_default(), sit.flatten().unwrap_or_default());
    Ok(Logs { summaries, nat_journal, sit_journal })
}

/// Reads the orphans: each entry, whatever it is.
pub(super) fn orphans(
    source: &Source<'_>,
    pack: &Pack,
    geometry: &Geometry,
    findings: &Collector,
) -> Result<Vec<Nid>, CheckError> {
    let (first, kind) = (1 + geometry.cp_payload, FindingKind::Orphan);
    if !pack.has(flags::ORPHAN_PRESENT) {
        return Ok(Vec::new());
    }
    let blocks = pack.start_sum() - first;
    let place = Place::Pack(pack.index);
    findings.require(blocks > 0, kind, &place, "the flag for orphans is set, but their blocks are", 0);
    let mut all = Vec::new();
    let read = source.run(pack.start.offset(first), blocks as usize)?;
    for index in 0..blocks {
        let block = OrphanBlock::read(read.block(index as usize));
        let place = Place::Block(pack.start.offset(first + index));
        findings.expect(kind, &place, "index of the orphan block", u64::from(index) + 1, block.blk_addr.get().into());
        findings.expect(kind, &place, "number of orphan blocks", blocks.into(), block.blk_count.get().into());
        let count = block.entry_count.get() as usize;
        if !(1..=PER_BLOCK).contains(&count) {
            let (found, max) = (count as u64, PER_BLOCK as u64);
            findings.add(kind, place, Problem::Range { what: "entry_count", found, min: 1, max });
        }
        all.extend(block.ino.iter().take(count).map(|ino| Nid::from(*ino)));
    }
    Ok(all)
}

/// Checks the NAT bits, if the pack says that it has them. `nat` without the journal.
pub(super) fn check_nat_bits(
    source: &Source<'_>,
    pack: &Pack,
    geometry: &Geometry,
    tables: (&NatTable, &[(Nid, RawNatEntry)]),
    findings: &Collector,
) -> Result<(), CheckError> {
    let (nat, journal) = tables;
    if !pack.has(flags::NAT_BITS) {
        return Ok(());
    }
    let (kind, place) = (FindingKind::NatBits, Place::Pack(pack.index));
    let Some(first) = nat_bits::first_block(geometry, pack.total()) else {
        let needed = nat_bits::block_count(geometry) + pack.total();
        let problem = Problem::Range {
            what: "blocks of the pack with its nat bits",
            found: needed.into(),
            min: 0,
            max: BLOCKS_PER_SEGMENT.into(),
        };
        findings.add(kind, place, problem);
        return Ok(());
    };
    let read = source.run(pack.start.offset(first), nat_bits::block_count(geometry) as usize)?;
    let blocks: Vec<RawBlock> = (0..read.blocks()).map(|index| *read.block(index)).collect();
    let Some(bits) = NatBits::read(&blocks, geometry) else { return Ok(()) };
    if Ok(bits.signature) != nat_bits::signature(&pack.block) {
        // The kernel keeps the flag over checkpoints between mount and unmount, and then ignores the bits, which belong
        // to an older pack. Only a clean stop writes them.
        let expected = nat_bits::signature(&pack.block).unwrap_or_default();
        if pack.has(flags::UMOUNT) {
            findings.add(kind, place, Problem::Bits { what: "signature", expected, found: bits.signature });
        }
        return Ok(());
    }
    let journalled: Vec<usize> = journal.iter().map(|(nid, _)| nid.index() / ENTRIES_PER_BLOCK).collect();
    nat.check_bits(&bits.full, &bits.empty, &journalled, findings);
    Ok(())
}
