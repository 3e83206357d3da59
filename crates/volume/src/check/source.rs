//! Reading blocks for the check: batches, with neighbours joined into one request.

use f2fs_device::{AlignedBuf, BlockDevice, Recycler, Request};
use f2fs_format::{BlockAddr, RawBlock};
use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::error::CheckError;

/// Blocks that one request reads at most.
const MAX_RUN: usize = 256;

/// A block of zeros, to compare with: the compiler makes one `memcmp` of that, and not of a loop.
pub(super) static ZEROS: RawBlock = [0; f2fs_format::BLOCK_SIZE];

/// The device, and how much was read from it.
#[derive(Debug)]
pub(super) struct Source<'a> {
    device: &'a dyn BlockDevice,
    recycler: Recycler,
    blocks_read: AtomicU64,
}

/// Blocks that were read together, in the order asked for.
#[derive(Debug)]
pub(super) struct Blocks {
    bufs: Vec<AlignedBuf>,
    /// Buffer and block in it.
    places: Vec<(u32, u32)>,
}

impl Blocks {
    /// The block that was asked for as number `index`.
    pub(super) fn get(&self, index: usize) -> &RawBlock {
        let (buf, block) = self.places[index];
        self.bufs[buf as usize].block(block as usize)
    }

    /// All blocks in the order asked for.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RawBlock> {
        (0..self.places.len()).map(|index| self.get(index))
    }
}

impl<'a> Source<'a> {
    pub(super) fn new(device: &'a dyn BlockDevice) -> Source<'a> {
        Source { device, recycler: Recycler::new(), blocks_read: AtomicU64::new(0) }
    }

    /// Blocks of the device.
    pub(super) fn device_blocks(&self) -> u64 {
        self.device.info().blocks
    }

    /// Blocks read so far.
    pub(super) fn blocks_read(&self) -> u64 {
        self.blocks_read.load(Relaxed)
    }

    /// One block.
    pub(super) fn block(&self, addr: BlockAddr) -> Result<AlignedBuf, CheckError> {
        self.run(addr, 1)
    }

    /// `count` blocks in a row.
    pub(super) fn run(&self, addr: BlockAddr, count: usize) -> Result<AlignedBuf, CheckError> {
        self.blocks_read.fetch_add(count as u64, Relaxed);
        Ok(self.device.read(addr.0.into(), count)?)
    }

    /// Many blocks, submitted together. Addresses that follow each other become one request.
    pub(super) fn blocks(&self, addrs: &[BlockAddr]) -> Result<Blocks, CheckError> {
        let mut runs: Vec<(BlockAddr, usize)> = Vec::new();
        let mut places = Vec::with_capacity(addrs.len());
        for &addr in addrs {
            match runs.last_mut() {
                Some((start, len)) if *len < MAX_RUN && u64::from(start.0) + *len as u64 == u64::from(addr.0) => {
                    *len += 1;
                }
                _ => runs.push((addr, 1)),
            }
            places.push((runs.len() as u32 - 1, runs[runs.len() - 1].1 as u32 - 1));
        }
        let mut requests = Vec::with_capacity(runs.len());
        for &(start, len) in &runs {
            self.device.info().check_range(f2fs_device::Operation::Read, start.0.into(), len as u64)?;
            requests.push(Request::read(start.0.into(), self.recycler.take_stale(len)));
        }
        self.blocks_read.fetch_add(addrs.len() as u64, Relaxed);
        let bufs = self.device.submit(requests).wait().into_iter().map(f2fs_device::Completion::into_buf);
        Ok(Blocks { bufs: bufs.collect::<Result<_, _>>()?, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs_device::MemoryDevice;

    #[test]
    fn blocks_come_in_the_order_asked_for() -> Result<(), CheckError> {
        let device = MemoryDevice::new(2000);
        for block in 0..2000u64 {
            device.write_slice(block, &block.to_le_bytes())?;
        }
        let source = Source::new(&device);
        let addrs: Vec<BlockAddr> = [7, 8, 9, 3, 4, 4, 5].into_iter().chain(100..900).map(BlockAddr).collect();
        let blocks = source.blocks(&addrs)?;
        for (addr, block) in addrs.iter().zip(blocks.iter()) {
            assert_eq!(block[..4], addr.0.to_le_bytes());
        }
        assert_eq!(source.blocks_read(), addrs.len() as u64);
        assert!(source.blocks(&[BlockAddr(2000)]).is_err() && source.run(BlockAddr(0), usize::MAX / 4096).is_err());
        Ok(())
    }
}
