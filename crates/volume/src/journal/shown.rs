//! A device with the data of a journal laid over it, for an opening for reading.

use std::collections::BTreeMap;

use f2fs_device::{
    BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, Op, Request, Ticket, Zone,
};
use f2fs_format::{BlockAddr, RawBlock};
use f2fs_sync::PlainArc;

/// A device with other content in some of its blocks. It refuses writes.
#[derive(Debug)]
pub(crate) struct ShownDevice {
    below: PlainArc<dyn BlockDevice>,
    blocks: BTreeMap<BlockAddr, Box<RawBlock>>,
}

impl ShownDevice {
    pub(crate) fn new(below: PlainArc<dyn BlockDevice>, blocks: BTreeMap<BlockAddr, Box<RawBlock>>) -> ShownDevice {
        ShownDevice { below, blocks }
    }

    fn show(&self, mut completion: Completion) -> Completion {
        let request = &mut completion.request;
        let mut at = BlockAddr(u32::try_from(request.start).unwrap_or(u32::MAX));
        for block in request.bufs.iter_mut().flat_map(f2fs_device::AlignedBuf::as_blocks_mut) {
            if let Some(bytes) = self.blocks.get(&at) {
                block.0 = **bytes;
            }
            at = BlockAddr(at.0.saturating_add(1));
        }
        completion
    }
}

impl BlockDevice for ShownDevice {
    fn info(&self) -> &DeviceInfo {
        self.below.info()
    }

    fn claims(&self) -> &Claims {
        self.below.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        if requests.iter().all(|request| request.op == Op::Read) {
            let read = self.below.submit(requests).wait();
            return Ticket::ready(read.into_iter().map(|completion| self.show(completion)).collect());
        }
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.below.report_zones(start, count)
    }

    fn execute(&self, request: Request) -> Completion {
        if request.op == Op::Read {
            return self.show(self.below.execute(request));
        }
        let result = Err(request.error(DeviceErrorKind::ReadOnly));
        Completion { request, result }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_device::{AlignedBuf, MemoryDevice, ZoneLayout, ZonedDevice};

    use super::*;

    #[test]
    fn reads_see_the_data_and_nothing_is_written() {
        let below = PlainArc::new(MemoryDevice::new(100));
        below.write(8, AlignedBuf::from_bytes(&[1; 8 * 4096])).unwrap();
        let data = [(9, 9), (11, 11), (15, 15)].map(|(addr, fill)| (BlockAddr(addr), Box::new([fill; 4096])));
        let shown = ShownDevice::new(below.clone(), data.into_iter().collect());
        let fills = |completion: Completion| {
            completion.result.unwrap();
            let bufs = completion.request.bufs;
            bufs.iter().flat_map(|buf| (0..buf.blocks()).map(|at| buf.block(at)[4095])).collect::<Vec<_>>()
        };
        let read = || Request::vectored(Op::Read, 8, vec![AlignedBuf::new(3), AlignedBuf::new(5)]);
        let seen = [1, 9, 1, 11, 1, 1, 1, 15];
        assert_eq!(fills(shown.execute(read())), seen);
        let many = shown.submit(vec![read(), Request::read(15, AlignedBuf::new(2))]).wait();
        assert_eq!(many.into_iter().map(fills).collect::<Vec<_>>(), [seen.to_vec(), vec![15, 0]]);

        let write = || Request::write(8, AlignedBuf::new(1));
        let refused = |completion: &Completion| matches!(&completion.result, Err(error) if matches!(error.kind, DeviceErrorKind::ReadOnly));
        assert!(refused(&shown.execute(write())));
        let mixed = shown.submit(vec![write(), read()]).wait();
        assert!(refused(&mixed[0]) && mixed[1].result.is_ok());
        shown.flush().unwrap();
        let zones = ZonedDevice::new(MemoryDevice::new(64), ZoneLayout::new(16)).unwrap();
        let shown = ShownDevice::new(PlainArc::new(zones), BTreeMap::new());
        assert_eq!(shown.report_zones(0, 9).unwrap().len(), 4);
        assert_eq!(below.read(8, 1).unwrap().as_bytes()[0], 1);
    }
}
