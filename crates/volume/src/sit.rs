//! Reading the segment information table into a manager.

use std::collections::BTreeMap;

use f2fs_device::BlockDevice;
use f2fs_format::checkpoint::Checkpoint;
use f2fs_format::sit::{ENTRIES_PER_BLOCK, RawSitEntry, SitBlock};
use f2fs_format::{BlockAddr, Corruption, Geometry, LogType, SegmentNo, bits, summary};
use f2fs_segment::SegmentTable;
use f2fs_sync::share_out;

use crate::VolumeError;
use crate::blocks::read_each;
use crate::pack::Pack;

/// Blocks of the table that a thread reads at a time: 2 MiB, for 55 GiB of main area.
const PIECE: u32 = 512;

/// The entries in the journal of the cold-data log, which are newer than the table's.
pub(crate) fn journal(geometry: &Geometry, pack: &Pack) -> Result<Vec<(SegmentNo, RawSitEntry)>, VolumeError> {
    let raw = pack.journal(LogType::ColdData);
    let entries = raw.sit_entries().ok_or(Corruption::Range {
        what: "SIT journal entries",
        found: u64::from(raw.count.get()),
        min: 0,
        max: summary::SIT_JOURNAL_ENTRIES as u64,
    })?;
    let total = u64::from(geometry.main_segments);
    for (segment, _) in &entries {
        Corruption::check_range("segment in the SIT journal", segment.0.into(), 0, total - 1)?;
    }
    // Of two entries of a segment the later one counts.
    Ok(entries.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect())
}

/// Reads the table, journal applied, on so many threads at most. They end before this returns.
pub(crate) fn load(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    pack: &Pack,
    threads: usize,
) -> Result<SegmentTable, VolumeError> {
    let table = SegmentTable::new(geometry.main_segments, &journal(geometry, pack)?)?;
    let pieces = geometry.sit_blocks().div_ceil(PIECE);
    share_out(pieces, threads, |piece| load_piece(device, geometry, pack, &table, piece))?;
    check_totals(&pack.checkpoint, &table)?;
    Ok(table)
}

fn load_piece(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    pack: &Pack,
    table: &SegmentTable,
    piece: u32,
) -> Result<(), VolumeError> {
    let first = piece * PIECE;
    let addrs: Vec<BlockAddr> = (first..geometry.sit_blocks().min(first + PIECE))
        .map(|index| geometry.sit_block(index, bits::msb::test(&pack.bitmaps.sit, index as usize)))
        .collect();
    let total = geometry.main_segments as usize;
    read_each::<VolumeError>(device, &addrs, |index, block| {
        let segment = (first as usize + index) * ENTRIES_PER_BLOCK;
        let room = total.saturating_sub(segment).min(ENTRIES_PER_BLOCK);
        Ok(table.load(SegmentNo(segment as u32), &SitBlock::read(block).entries[..room])?)
    })
}

/// Checks the SIT's sums against the checkpoint. The kernel refuses a volume whose node count differs.
fn check_totals(checkpoint: &Checkpoint, table: &SegmentTable) -> Result<(), Corruption> {
    let sum = |node: bool| -> u64 {
        LogType::ALL.into_iter().filter(|log| log.is_node() == node).map(|log| table.valid_blocks(log)).sum()
    };
    let (data, node) = (sum(false), sum(true));
    if node != u64::from(checkpoint.valid_nodes) {
        return Err(Corruption::Mismatch {
            what: "node blocks in the SIT",
            expected: checkpoint.valid_nodes.into(),
            found: node,
        });
    }
    // Reservations (NEW_ADDR) are counted as valid blocks, but no segment holds them.
    Corruption::check_range("valid blocks in the SIT", data + node, 0, checkpoint.valid_blocks)
}
