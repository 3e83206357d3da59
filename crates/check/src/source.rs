//! Reading blocks for the check: batches, with neighbours joined into one request.

use f2fs_device::{AlignedBuf, BlockDevice, DeviceError, DeviceErrorKind, Op, Operation, Recycler, Request};
use f2fs_format::{BlockAddr, RawBlock};
use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::ahead::{self, Ahead, Coming, NOTHING, Spot};
use super::error::CheckError;

/// A block of zeros, to compare with: the compiler makes one `memcmp` of that, and not of a loop.
pub(super) static ZEROS: RawBlock = [0; f2fs_format::BLOCK_SIZE];

/// The device, and how much was read from it.
#[derive(Debug)]
pub(super) struct Source<'a> {
    device: &'a dyn BlockDevice,
    recycler: Recycler,
    blocks_read: AtomicU64,
}

/// Blocks in the order asked for: read ahead, or read now.
#[derive(Debug)]
pub(super) struct Blocks<'w> {
    ahead: &'w Ahead,
    now: Ahead,
    /// Whether it was read ahead, and where it is.
    places: Vec<(bool, Spot)>,
}

impl Blocks<'_> {
    /// The block that was asked for as number `index`.
    pub(super) fn get(&self, index: usize) -> &RawBlock {
        let (ahead, spot) = self.places[index];
        if ahead { self.ahead.at(spot) } else { self.now.at(spot) }
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

    /// For each device of a volume on several: the blocks that the volume uses of it, and those that it has.
    pub(super) fn device_parts(&self) -> &[(u64, u64)] {
        &self.device.info().parts
    }

    /// The zones of the device.
    pub(super) fn zones(&self) -> Result<Vec<f2fs_device::Zone>, CheckError> {
        Ok(self.device.report_zones(0, usize::MAX)?)
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

    /// Many blocks, read together.
    pub(super) fn blocks(&self, addrs: &[BlockAddr]) -> Result<Blocks<'static>, CheckError> {
        self.blocks_behind(addrs, &NOTHING)
    }

    /// Many blocks: those that were not read ahead are read together.
    pub(super) fn blocks_behind<'w>(&self, addrs: &[BlockAddr], ahead: &'w Ahead) -> Result<Blocks<'w>, CheckError> {
        let mut spots: Vec<Option<Spot>> = addrs.iter().map(|addr| ahead.find(*addr)).collect();
        let missing = addrs.iter().zip(&spots).filter(|(_, spot)| spot.is_none());
        let mut missing: Vec<BlockAddr> = missing.map(|(addr, _)| *addr).collect();
        for addr in &missing {
            self.device.info().check_range(Operation::Read, addr.0.into(), 1)?;
        }
        let mut now = Ahead::default();
        if !missing.is_empty() {
            self.begin(&mut missing, |len| vec![self.recycler.take_stale(len)]).arrive(&mut now);
        }
        // A block that failed is read again by itself: the error may have been one of its neighbours, which nobody
        // asked for.
        missing.retain(|addr| now.find(*addr).is_none());
        missing.dedup();
        let alone = missing.iter().map(|addr| Ok((*addr, self.block(*addr)?)));
        now.add(alone.collect::<Result<Vec<_>, CheckError>>()?.into_iter());
        let mut places = Vec::with_capacity(addrs.len());
        for (addr, spot) in addrs.iter().zip(&mut spots) {
            let lost = || DeviceError::new(Operation::Read, addr.0.into(), 1, DeviceErrorKind::Lost);
            places.push((spot.is_some(), spot.or_else(|| now.find(*addr)).ok_or_else(lost)?));
        }
        Ok(Blocks { ahead, now, places })
    }

    /// Begins to read blocks, and a few that lie between them, into buffers that have as many together as asked for.
    /// Sorts the addresses.
    pub(super) fn begin(&self, addrs: &mut [BlockAddr], mut take: impl FnMut(usize) -> Vec<AlignedBuf>) -> Coming {
        let runs = ahead::runs(addrs);
        self.blocks_read.fetch_add(runs.iter().map(|(_, len)| u64::from(*len)).sum(), Relaxed);
        let runs = runs.into_iter();
        let requests = runs.map(|(start, len)| Request::vectored(Op::Read, start.0.into(), take(len as usize)));
        Coming(self.device.submit(requests.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;
    use f2fs_device::{Completion, DeviceInfo, MemoryDevice, Ticket};

    fn numbered() -> MemoryDevice {
        let device = MemoryDevice::new(2000);
        for block in 0..2000u64 {
            device.write_slice(block, &block.to_le_bytes()).unwrap();
        }
        device
    }

    #[test]
    fn blocks_come_in_the_order_asked_for() -> Result<(), CheckError> {
        let device = numbered();
        let source = Source::new(&device);
        let addrs: Vec<BlockAddr> = [7, 8, 9, 3, 4, 4, 5, 1999, 0].into_iter().chain(100..900).map(BlockAddr).collect();
        let (mut ahead, mut buffers) = (Ahead::default(), Buffers::default());
        for wanted in [vec![], vec![BlockAddr(4), BlockAddr(1999)], addrs.clone()] {
            source.begin(&mut wanted.clone(), |len| buffers.take(len)).arrive(&mut ahead);
            let before = source.blocks_read();
            let blocks = source.blocks_behind(&addrs, &ahead)?;
            for (addr, block) in addrs.iter().zip(blocks.iter()) {
                assert_eq!(block[..4], addr.0.to_le_bytes());
            }
            assert_eq!(source.blocks_read() == before, wanted.len() == addrs.len(), "read ahead, and not again");
        }
        assert!(source.blocks(&[BlockAddr(2000)]).is_err() && source.run(BlockAddr(0), usize::MAX / 4096).is_err());
        Ok(())
    }

    #[test]
    fn runs_in_several_buffers_are_whole() {
        let device = numbered();
        let source = Source::new(&device);
        let (mut ahead, mut buffers) = (Ahead::default(), Buffers::default());
        // Runs of 1 to 33 blocks, with gaps that are not bridged.
        let mut wanted: Vec<BlockAddr> = (1..=33).flat_map(|len| 36 * len..37 * len).map(BlockAddr).collect();
        source.begin(&mut wanted, |len| buffers.take(len)).arrive(&mut ahead);
        for addr in (0..2000).map(BlockAddr) {
            let found = ahead.get(addr).map(|block| block[..4].to_vec());
            let expected = wanted.contains(&addr).then(|| addr.0.to_le_bytes().to_vec());
            assert_eq!(found, expected, "{addr}");
        }
    }

    /// A device of which one block cannot be read.
    #[derive(Debug)]
    struct Scratched(MemoryDevice, u64);

    impl BlockDevice for Scratched {
        fn info(&self) -> &DeviceInfo {
            self.0.info()
        }

        fn claims(&self) -> &f2fs_device::Claims {
            self.0.claims()
        }

        fn submit(&self, requests: Vec<Request>) -> Ticket {
            let run = |request: Request| match (request.start..request.start + request.blocks()).contains(&self.1) {
                true => Completion { result: Err(request.error(DeviceErrorKind::from_errno(5))), request },
                false => self.0.execute(request),
            };
            Ticket::ready(requests.into_iter().map(run).collect())
        }

        fn flush(&self) -> Result<(), DeviceError> {
            self.0.flush()
        }
    }

    #[test]
    fn a_bad_block_that_nobody_asked_for_is_passed_over() -> Result<(), CheckError> {
        let device = Scratched(numbered(), 52);
        let source = Source::new(&device);
        let addrs = [50, 51, 54, 53, 60].map(BlockAddr);
        for (addr, block) in addrs.iter().zip(source.blocks(&addrs)?.iter()) {
            assert_eq!(block[..4], addr.0.to_le_bytes());
        }
        let mut ahead = Ahead::default();
        source.begin(&mut [50, 52, 60].map(BlockAddr), |len| vec![AlignedBuf::new(len)]).arrive(&mut ahead);
        assert!(ahead.get(BlockAddr(60)).is_some() && ahead.get(BlockAddr(50)).is_none());
        let failed = source.blocks_behind(&[50, 60, 52].map(BlockAddr), &ahead).unwrap_err();
        assert!(failed.to_string().contains("at block 52"), "{failed}");
        Ok(())
    }
}
