//! Checkpoint packs: choosing the current one, and reading it. `f2fs_format::checkpoint` composes the next.

use f2fs_device::BlockDevice;
use f2fs_format::checkpoint::{Checkpoint, CheckpointBlock, VersionBitmaps, flags};
use f2fs_format::orphan::{self, OrphanBlock};
use f2fs_format::summary::{Journal, SummaryBlock, compact};
use f2fs_format::{BLOCKS_PER_SEGMENT, Corruption, Geometry, LogType, Nid, RawBlock};

use crate::VolumeError;

/// A pack as it was read.
pub(crate) struct Pack {
    /// 0 or 1: where it stands.
    pub(crate) index: u32,
    pub(crate) block: CheckpointBlock,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) bitmaps: VersionBitmaps,
    pub(crate) orphans: Vec<Nid>,
    /// Summaries of the three data logs.
    pub(crate) data: [Box<SummaryBlock>; 3],
    /// Summaries of the three node logs, when the pack carries them.
    pub(crate) node: Option<[Box<SummaryBlock>; 3]>,
    /// The fault of the other pack, if it was damaged.
    pub(crate) other: Option<Corruption>,
    /// The version of the checkpoint that the other pack holds, if that is newer, and lost its first block.
    pub(crate) newer: Option<u64>,
}

/// A checkpoint block that is valid together with its copy at the end of the pack; what is wrong otherwise.
type Candidate = Result<CheckpointBlock, Corruption>;

/// Checks one pack: both copies of the checkpoint block, and that they are of one version.
fn validate(device: &dyn BlockDevice, geometry: &Geometry, index: u32) -> Result<Candidate, VolumeError> {
    let start = geometry.checkpoint_pack(index);
    let first = CheckpointBlock::read(device.read(u64::from(start.0), 1)?.block(0));
    let total = first.header.cp_pack_total_block_count.get();
    let least = u64::from(geometry.cp_payload) + 3;
    let checked = first.verify().and_then(|()| {
        Corruption::check_range("checkpoint cp_pack_total_block_count", total.into(), least, BLOCKS_PER_SEGMENT.into())
    });
    if let Err(error) = checked {
        return Ok(Err(error));
    }
    let last = CheckpointBlock::read(device.read(u64::from(start.0 + total - 1), 1)?.block(0));
    let (one, two) = (first.header.checkpoint_ver.get(), last.header.checkpoint_ver.get());
    if let Err(error) = last.verify() {
        return Ok(Err(error));
    }
    if one != two {
        let what = "checkpoint version at the end of the pack";
        return Ok(Err(Corruption::Mismatch { what, expected: one, found: two }));
    }
    Ok(Ok(first))
}

/// The version of the checkpoint right after this one whose last block stands in a pack that is bad.
fn newer_in(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    index: u32,
    this: &CheckpointBlock,
) -> Result<Option<u64>, VolumeError> {
    let blocks = device.read(u64::from(geometry.checkpoint_pack(index).0), BLOCKS_PER_SEGMENT as usize)?;
    let mut ends = (1..BLOCKS_PER_SEGMENT).map(|offset| (offset, CheckpointBlock::read(blocks.block(offset as usize))));
    let newer = ends.find(|(offset, end)| end.follows(this) && end.is_end_at(*offset));
    Ok(newer.map(|(_, end)| end.header.checkpoint_ver.get()))
}

impl Pack {
    /// Reads the current pack: of the valid ones, the one with the higher version (`f2fs_get_valid_checkpoint`).
    pub(crate) fn load(device: &dyn BlockDevice, geometry: &Geometry) -> Result<Pack, VolumeError> {
        let (index, block, other) = match (validate(device, geometry, 0)?, validate(device, geometry, 1)?) {
            (Ok(first), Ok(second)) => {
                // Versions may wrap around, so the distance decides.
                let ahead = second.header.checkpoint_ver.get().wrapping_sub(first.header.checkpoint_ver.get());
                if ahead != 0 && ahead < u64::MAX / 2 { (1, second, None) } else { (0, first, None) }
            }
            (Ok(first), Err(error)) => (0, first, Some(error)),
            (Err(error), Ok(second)) => (1, second, Some(error)),
            (Err(first), Err(second)) => return Err(VolumeError::NoCheckpoint { first, second }),
        };
        let newer = if other.is_some() { newer_in(device, geometry, 1 - index, &block)? } else { None };
        let checkpoint = Checkpoint::from_header(&block.header, geometry)?;
        let buf = device.read(u64::from(geometry.checkpoint_pack(index).0), checkpoint.pack_blocks as usize)?;
        let blocks: Vec<RawBlock> = buf.as_blocks().iter().map(|block| block.0).collect();
        let (payload_end, start_sum) = (1 + geometry.cp_payload as usize, checkpoint.start_sum as usize);
        let bitmaps = VersionBitmaps::read(&block, &blocks[1..payload_end], geometry)?;
        let orphans = if checkpoint.has(flags::ORPHAN_PRESENT) {
            read_orphans(&blocks[payload_end..start_sum])?
        } else {
            Vec::new()
        };
        let node_start = blocks.len() - 1 - if checkpoint.has_node_summaries() { 3 } else { 0 };
        let data = if checkpoint.has(flags::COMPACT_SUM) {
            compact::parse(&blocks[start_sum..node_start], checkpoint.compact_counts())?
        } else {
            summaries(&blocks[start_sum..])
        };
        let node = checkpoint.has_node_summaries().then(|| summaries(&blocks[node_start..]));
        Ok(Pack { index, block, checkpoint, bitmaps, orphans, data, node, other, newer })
    }

    /// The journal that rides in a log's summary.
    pub(crate) fn journal(&self, log: LogType) -> &Journal {
        &self.data[log.index()].journal
    }
}

fn summaries(blocks: &[RawBlock]) -> [Box<SummaryBlock>; 3] {
    [0, 1, 2].map(|index| Box::new(*SummaryBlock::read(&blocks[index])))
}

fn read_orphans(blocks: &[RawBlock]) -> Result<Vec<Nid>, Corruption> {
    let mut all = Vec::new();
    for block in blocks {
        let block = OrphanBlock::read(block);
        let count = block.entry_count.get();
        Corruption::check_range("orphan block entry_count", count.into(), 0, orphan::PER_BLOCK as u64)?;
        all.extend(block.ino[..count as usize].iter().map(|ino| Nid::from(*ino)));
    }
    Ok(all)
}
