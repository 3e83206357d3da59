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
