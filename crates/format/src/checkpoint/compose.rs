//! Composing the next checkpoint pack.
//!
//! ```text
//! | checkpoint | payload ... | orphans ... | data summaries (1..3) | node summaries (0 or 3) | checkpoint again |
//! ```

use alloc::vec;
use alloc::vec::Vec;

use super::{Checkpoint, CheckpointBlock, VersionBitmaps, flags};
use crate::orphan::{self, OrphanBlock};
use crate::summary::{SummaryBlock, compact};
use crate::{BLOCK_SIZE, Corruption, Geometry, Nid, RawBlock};

/// The contents of the next pack.
#[derive(Debug)]
pub struct NextPack<'a> {
    /// Areas of the volume.
    pub geometry: &'a Geometry,
    /// All but the pack's own layout is filled in: version, counts, logs, flags.
    pub checkpoint: Checkpoint,
    /// Which copy of each NAT and SIT block is valid.
    pub bitmaps: VersionBitmaps,
    /// Inodes without a name that were open.
    pub orphans: &'a [Nid],
    /// Summaries of all six logs, journals included.
    pub summaries: [&'a SummaryBlock; 6],
    /// Whether node summaries go along: on unmount.
    pub node_summaries: bool,
}

/// A pack ready to be written.
#[derive(Debug)]
pub struct ComposedPack {
    /// With the pack's layout filled in.
    pub checkpoint: Checkpoint,
    /// The first block, which is also the last one.
    pub block: CheckpointBlock,
    /// All blocks in front of the last one.
    pub front: Vec<RawBlock>,
}

impl NextPack<'_> {
    /// Lays the pack out, and checks that it can be read again.
    ///
    /// # Errors
    ///
    /// [`Corruption`] if the pack does not fit its place, or the checkpoint contradicts the geometry.
    pub fn compose(self) -> Result<ComposedPack, Corruption> {
        let mut checkpoint = self.checkpoint;
        let orphans = orphan_blocks(self.orphans);
        let data_logs = [self.summaries[0], self.summaries[1], self.summaries[2]];
        let compact = compact::build(data_logs, checkpoint.compact_counts());
        checkpoint.flags &= !(flags::COMPACT_SUM | flags::ORPHAN_PRESENT);
        if compact.is_some() {
            checkpoint.flags |= flags::COMPACT_SUM;
        }
        if !orphans.is_empty() {
            checkpoint.flags |= flags::ORPHAN_PRESENT;
        }
        let mut rest = orphans;
        checkpoint.start_sum = 1 + self.geometry.cp_payload + rest.len() as u32;
        rest.extend(compact.unwrap_or_else(|| data_logs.iter().map(|log| *log.as_block()).collect()));
        if self.node_summaries {
            rest.extend(self.summaries[3..].iter().map(|log| *log.as_block()));
        }
        checkpoint.pack_blocks = 1 + self.geometry.cp_payload + rest.len() as u32 + 1;
        checkpoint.check(self.geometry)?;

        let mut block = CheckpointBlock::ZERO;
        block.header = checkpoint.to_header(self.geometry);
        let mut payload = vec![[0; BLOCK_SIZE]; self.geometry.cp_payload as usize];
        self.bitmaps.write(&mut block, &mut payload, self.geometry)?;
        block.seal();
        let mut front = vec![*block.as_block()];
        front.append(&mut payload);
        front.append(&mut rest);
        Ok(ComposedPack { checkpoint, block, front })
    }
}

fn orphan_blocks(orphans: &[Nid]) -> Vec<RawBlock> {
    let count = orphan::blocks_for(orphans.len()) as u16;
    let fill = |(index, chunk): (usize, &[Nid])| {
        let mut block = OrphanBlock::ZERO;
        for (slot, ino) in block.ino.iter_mut().zip(chunk) {
            *slot = (*ino).into();
        }
        block.blk_addr = (index as u16 + 1).into();
        block.blk_count = count.into();
        block.entry_count = (chunk.len() as u32).into();
        *block.as_block()
    };
    orphans.chunks(orphan::PER_BLOCK).enumerate().map(fill).collect()
}
