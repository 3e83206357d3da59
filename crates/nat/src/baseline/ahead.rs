//! Blocks of the table that a scan reads before it locks them, as Linux reads NAT blocks ahead of a build.

use f2fs_format::bits;
use f2fs_format::nat::NatBlock;
use rustc_hash::FxHashMap;

use crate::error::NatError;
use crate::frame::Frame;
use crate::slot::Locked;
use crate::table::Table;

/// A block that was read before its lock was taken.
pub(crate) struct Ahead {
    /// The ledger's when the read began: with the same one, the device has the same block.
    generation: u64,
    raw: Box<NatBlock>,
}

impl Table {
    /// Locks a block as [`lock`](Table::lock) does, with its content that was read ahead.
    #[inline]
    pub(crate) fn lock_with(&self, block: u32, ahead: Option<&Ahead>) -> Result<(Locked<'_>, &Frame), NatError> {
        let mut locked = self.slot(block).lock(&self.pool);
        if let Some(frame) = locked.frame() {
            return Ok((locked, frame));
        }
        // A checkpoint that became durable in between may have made the other copy the current one.
        let ahead = ahead.filter(|ahead| ahead.generation == self.ledger.read().generation);
        let entries = match ahead {
            Some(ahead) => self.entries(block, &ahead.raw)?,
            None => self.read_block(block)?,
        };
        let frame = self.fill(block, &entries, &mut locked);
        Ok((locked, frame))
    }

    /// Reads those of the blocks ahead that are not in memory, at once; none of them if one cannot be read.
    pub(crate) fn read_ahead(&self, blocks: impl Iterator<Item = u32>) -> FxHashMap<u32, Ahead> {
        let absent: Vec<u32> = blocks.filter(|block| self.slot(*block).lock(&self.pool).frame().is_none()).collect();
        if absent.is_empty() {
            return FxHashMap::default();
        }
        let (generation, wanted): (u64, Vec<(u32, bool)>) = {
            let ledger = self.ledger.read();
            let second = |block: &u32| (*block, bits::msb::test(&ledger.bitmap, *block as usize));
            (ledger.generation, absent.iter().map(second).collect())
        };
        let read = self.source.read_nat_blocks(&wanted).unwrap_or_default();
        absent.into_iter().zip(read).map(|(block, raw)| (block, Ahead { generation, raw })).collect()
    }
}
