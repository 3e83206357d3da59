//! Blocks of tables, read from the device when the NAT or the segment manager asks for them.

use f2fs_device::BlockDevice;
use f2fs_format::nat::NatBlock;
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{Geometry, SegmentNo};
use f2fs_nat::NatSource;
use f2fs_segment::SummarySource;
use f2fs_sync::PlainArc;

use crate::blocks::read_block;
#[cfg(feature = "baselines")]
use crate::blocks::read_each;

type SourceError = Box<dyn core::error::Error + Send + Sync>;

/// Reads table blocks for the NAT and the segment manager.
pub(crate) struct TableSource {
    pub(crate) device: PlainArc<dyn BlockDevice>,
    pub(crate) geometry: Geometry,
}

impl core::fmt::Debug for TableSource {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TableSource").finish_non_exhaustive()
    }
}

impl NatSource for TableSource {
    fn read_nat_block(&self, index: u32, second: bool) -> Result<Box<NatBlock>, SourceError> {
        let buf = read_block(&*self.device, self.geometry.nat_block(index, second))?;
        Ok(Box::new(*NatBlock::read(buf.block(0))))
    }

    #[cfg(feature = "baselines")]
    fn read_nat_blocks(&self, blocks: &[(u32, bool)]) -> Result<Vec<Box<NatBlock>>, SourceError> {
        let addrs: Vec<_> = blocks.iter().map(|(index, second)| self.geometry.nat_block(*index, *second)).collect();
        let mut read = Vec::with_capacity(blocks.len());
        read_each(&*self.device, &addrs, |_, block| {
            read.push(Box::new(*NatBlock::read(block)));
            Ok::<(), f2fs_device::DeviceError>(())
        })?;
        Ok(read)
    }
}

impl SummarySource for TableSource {
    fn read_summary(&self, segment: SegmentNo) -> Result<Box<SummaryBlock>, SourceError> {
        let buf = read_block(&*self.device, self.geometry.summary_block(segment))?;
        Ok(Box::new(*SummaryBlock::read(buf.block(0))))
    }
}
