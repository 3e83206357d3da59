//! An image as it will be with another size, so that a volume can be planned before the file is changed. It is only read.

use std::sync::Arc;

use f2fs::device::{Block, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Request, Ticket};

/// A device that ends elsewhere than the one below.
#[derive(Debug)]
pub(super) struct Planned {
    below: Arc<dyn BlockDevice>,
    info: DeviceInfo,
}

impl Planned {
    pub(super) fn new(below: Arc<dyn BlockDevice>, blocks: u64) -> Planned {
        let mut info = below.info().clone();
        info.blocks = blocks;
        info.read_only = true;
        Planned { below, info }
    }

    /// Reads what is below, and zeros behind its end.
    fn read(&self, request: &mut Request) -> Result<(), DeviceError> {
        self.info.check(request)?;
        let mut at = request.start;
        for buf in &mut request.bufs {
            for block in buf.as_blocks_mut() {
                *block = Block::ZERO;
                if at < self.below.info().blocks {
                    block.0 = *self.below.read(at, 1)?.block(0);
                }
                at += 1;
            }
        }
        Ok(())
    }
}

impl BlockDevice for Planned {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        self.below.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let done = requests.into_iter().map(|mut request| {
            let result = if request.op == Op::Read { self.read(&mut request) } else { self.info.check(&request) };
            Completion { request, result }
        });
        Ticket::ready(done.collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
