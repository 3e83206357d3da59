//! A device with changes in front of it, in memory.
//!
//! Locking rules: one reader-writer lock around the changes, held to copy blocks, never while the device below works.

use std::collections::BTreeMap;

use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Request, Ticket, Zone};
use f2fs_format::{BlockAddr, RawBlock};
use f2fs_sync::{PlainArc, RwLock};

/// The device and the changes.
#[derive(Debug)]
pub(super) struct Overlay {
    below: PlainArc<dyn BlockDevice>,
    /// Its own: the repair has claimed the device below.
    claims: Claims,
    changed: RwLock<BTreeMap<u64, Box<RawBlock>>>,
    /// The zones as they are to be, if they change.
    zones: RwLock<Option<Vec<Zone>>>,
}

impl Overlay {
    pub(super) fn new(below: PlainArc<dyn BlockDevice>) -> Overlay {
        Overlay { below, claims: Claims::new(), changed: RwLock::new(BTreeMap::new()), zones: RwLock::new(None) }
    }

    /// One block, changes included.
    pub(super) fn block(&self, addr: BlockAddr) -> Result<Box<RawBlock>, DeviceError> {
        if let Some(block) = self.changed.read().get(&u64::from(addr.0)) {
            return Ok(block.clone());
        }
        Ok(Box::new(*self.below.read(addr.0.into(), 1)?.block(0)))
    }

    /// Changes a block.
    pub(super) fn put(&self, addr: BlockAddr, block: &RawBlock) {
        self.changed.write().insert(addr.0.into(), Box::new(*block));
    }

    /// Leaves a block as it is on the device.
    pub(super) fn forget(&self, addr: BlockAddr) {
        self.changed.write().remove(&addr.0.into());
    }

    /// Shows these zones instead of the device's.
    pub(super) fn show_zones(&self, zones: Vec<Zone>) {
        *self.zones.write() = Some(zones);
    }

    /// The blocks that differ from those on the device.
    pub(super) fn changes(&self) -> Result<Vec<(u64, Box<RawBlock>)>, DeviceError> {
        let mut all = Vec::new();
        for (block, bytes) in &*self.changed.read() {
            if self.below.read(*block, 1)?.block(0) != &**bytes {
                all.push((*block, bytes.clone()));
            }
        }
        Ok(all)
    }

    /// A copy with the changes so far, to try something on.
    pub(super) fn new_on(other: &Overlay) -> Overlay {
        Overlay {
            below: other.below.clone(),
            claims: Claims::new(),
            changed: RwLock::new(other.changed.read().clone()),
            zones: RwLock::new(other.zones.read().clone()),
        }
    }

    /// Takes the changes over to another one, of the blocks that `wanted` says.
    pub(super) fn copy_to(&self, other: &Overlay, wanted: impl Fn(u64) -> bool) {
        let changed = self.changed.read();
        other
            .changed
            .write()
            .extend(changed.iter().filter(|(at, _)| wanted(**at)).map(|(at, block)| (*at, block.clone())));
    }

    fn lay_over(&self, request: &mut Request) {
        let changed = self.changed.read();
        let mut at = request.start;
        for buf in &mut request.bufs {
            for block in buf.as_blocks_mut() {
                if let Some(bytes) = changed.get(&at) {
                    block.0 = **bytes;
                }
                at += 1;
            }
        }
    }
}

impl BlockDevice for Overlay {
    fn info(&self) -> &DeviceInfo {
        self.below.info()
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        // Nothing that reads a volume writes it.
        if requests.iter().any(|request| request.op != Op::Read) {
            return Ticket::ready(requests.into_iter().map(refused).collect());
        }
        let mut completions = self.below.submit(requests).wait();
        let read = completions.iter_mut().filter(|completion| completion.result.is_ok());
        read.for_each(|completion| self.lay_over(&mut completion.request));
        Ticket::ready(completions)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        match &*self.zones.read() {
            Some(zones) => {
                Ok(zones.iter().filter(|zone| zone.start + zone.blocks > start).take(count).copied().collect())
            }
            None => self.below.report_zones(start, count),
        }
    }

    fn execute(&self, request: Request) -> Completion {
        if request.op == Op::Read {
            let mut completion = self.below.execute(request);
            if completion.result.is_ok() {
                self.lay_over(&mut completion.request);
            }
            return completion;
        }
        refused(request)
    }
}

fn refused(request: Request) -> Completion {
    let result = Err(request.error(f2fs_device::DeviceErrorKind::ReadOnly));
    Completion { request, result }
}
