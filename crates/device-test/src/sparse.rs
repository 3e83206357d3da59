//! A device whose copies share all blocks that do not change.
//!
//! Locking rules: one lock over what was changed since the device was made. It is held while one block is copied.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, Block, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Operation, Request,
    Ticket,
};
use f2fs_sync::{Mutex, MutexGuard, PlainArc};

/// Block numbers are spread by one multiplication: the usual hash takes longer than copying the block.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

type Blocks<B> = HashMap<u64, B, BuildHasherDefault<Spread>>;
type Changed = Blocks<Option<Box<[u8; BLOCK_SIZE]>>>;

/// A device in memory of which many copies are made, or that is larger than memory. Blocks of zeros take no memory, a
/// copy of the device takes as much as was changed on it, and a write copies one block.
#[derive(Debug)]
pub struct SparseDevice {
    info: DeviceInfo,
    claims: Claims,
    /// The blocks that never change, without those of zeros.
    base: PlainArc<Blocks<Block>>,
    /// The blocks written since; `None` for a block that is zeros now. Not aligned: such memory takes the allocator
    /// several times longer.
    changed: Mutex<Changed>,
}

impl SparseDevice {
    /// A device of so many blocks of zeros.
    #[must_use]
    pub fn new(blocks: u64) -> SparseDevice {
        let mut info = DeviceInfo::new(blocks, format!("sparse memory, {blocks} blocks"));
        info.supports_discard = true;
        info.logical_sector = 512;
        SparseDevice { info, claims: Claims::new(), base: PlainArc::default(), changed: Mutex::default() }
    }

    /// A copy, which shares the blocks that never change. Nobody has it open.
    #[must_use]
    pub fn snapshot(&self) -> SparseDevice {
        SparseDevice {
            info: self.info.clone(),
            claims: Claims::new(),
            base: PlainArc::clone(&self.base),
            changed: Mutex::new(self.changed().clone()),
        }
    }

    /// A copy of which all that is there now never changes.
    #[must_use]
    pub fn frozen(&self) -> SparseDevice {
        let mut base = Blocks::clone(&self.base);
        for (at, block) in self.changed().iter() {
            match block {
                Some(bytes) if **bytes != Block::ZERO.0 => drop(base.insert(*at, Block(**bytes))),
                _ => drop(base.remove(at)),
            }
        }
        SparseDevice {
            info: self.info.clone(),
            claims: Claims::new(),
            base: PlainArc::new(base),
            changed: Mutex::default(),
        }
    }

    /// The same device, refusing writes.
    #[must_use]
    pub fn read_only(mut self) -> SparseDevice {
        self.info.read_only = true;
        self
    }

    /// The blocks that never change and are not zeros, in order.
    #[must_use]
    pub fn used(&self) -> Vec<u64> {
        let mut used: Vec<u64> = self.base.keys().copied().collect();
        used.sort_unstable();
        used
    }

    /// One block.
    #[must_use]
    pub fn block(&self, at: u64) -> [u8; 4096] {
        let mut block = Block::ZERO;
        self.load(at, &mut block);
        block.0
    }

    /// Writes one block.
    pub fn put(&self, at: u64, bytes: &[u8; 4096]) {
        self.store(at, &Block(*bytes));
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock()
    }

    fn load(&self, at: u64, to: &mut Block) {
        let changed = self.changed();
        let found = match changed.get(&at) {
            Some(written) => written.as_deref(),
            None => self.base.get(&at).map(|block| &block.0),
        };
        // Each in place: what is assigned is made on the stack first.
        match found {
            Some(bytes) => to.0.copy_from_slice(bytes),
            None => to.0.fill(0),
        }
    }

    fn store(&self, at: u64, block: &Block) {
        let mut changed = self.changed();
        if let Some(Some(to)) = changed.get_mut(&at) {
            to.copy_from_slice(&block.0);
        } else if block.0 != Block::ZERO.0 {
            changed.insert(at, Some(Box::new(block.0)));
        } else if self.base.contains_key(&at) {
            changed.insert(at, None);
        }
    }

    fn discard_range(&self, start: u64, blocks: u64) {
        let range = start..start + blocks;
        let mut changed = self.changed();
        changed.retain(|at, _| !range.contains(at));
        if blocks < self.base.len() as u64 {
            changed.extend(range.filter(|at| self.base.contains_key(at)).map(|at| (at, None)));
        } else {
            changed.extend(self.base.keys().filter(|at| range.contains(at)).map(|at| (*at, None)));
        }
    }

    fn run(&self, request: &mut Request) -> Result<(), DeviceError> {
        self.info.check(request)?;
        let mut at = request.start;
        for buf in &mut request.bufs {
            for block in buf.as_blocks_mut() {
                match request.op {
                    Op::Read => self.load(at, block),
                    Op::Write | Op::WriteFua => self.store(at, block),
                    Op::Discard { .. } => {}
                }
                at += 1;
            }
        }
        if let Op::Discard { blocks } = request.op {
            self.discard_range(request.start, blocks);
        }
        Ok(())
    }
}

impl BlockDevice for SparseDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn execute(&self, mut request: Request) -> Completion {
        let result = self.run(&mut request);
        Completion { request, result }
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        self.info.check_range(Operation::Read, start, buf.blocks() as u64)?;
        (start..).zip(buf.as_blocks_mut()).for_each(|(at, block)| self.load(at, block));
        Ok(())
    }
}
