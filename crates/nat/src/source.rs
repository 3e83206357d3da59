//! Where the table is read from.

use f2fs_format::nat::NatBlock;

use crate::error::SourceError;

/// The table's blocks, as they stand on the device. The table's owner implements it.
pub trait NatSource: Send + Sync {
    /// Reads one copy of a block. `index`: which block of the table (entries of NIDs `455 index ..`); `second`: which
    /// of its two copies. Called with that block's lock held, possibly from several threads for several blocks; it must
    /// not call the table.
    ///
    /// # Errors
    /// The error of the read. The operation that needed the block fails with it.
    fn read_nat_block(&self, index: u32, second: bool) -> Result<Box<NatBlock>, SourceError>;

    /// Reads blocks ahead of their use, each as [`read_nat_block`](Self::read_nat_block) takes it, in their order. A
    /// source that can have them all on their way at once does. Called without their locks.
    ///
    /// # Errors
    /// The error of one of the reads. The blocks are then read one by one.
    #[cfg(feature = "baselines")]
    fn read_nat_blocks(&self, blocks: &[(u32, bool)]) -> Result<Vec<Box<NatBlock>>, SourceError> {
        blocks.iter().map(|(index, second)| self.read_nat_block(*index, *second)).collect()
    }
}

/// A source for a table that was never written: all entries free.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptySource;

impl NatSource for EmptySource {
    fn read_nat_block(&self, _index: u32, _second: bool) -> Result<Box<NatBlock>, SourceError> {
        Ok(Box::new(NatBlock::ZERO))
    }
}
