//! A block device on persistent memory: transfers are copies, and no call enters the kernel.
//!
//! Locking rules: none of its own. Where durability takes a system call, [`FlushGate`] lets one flush run at a time;
//! nothing else is locked then. Transfers that overlap in time and place may interleave, as on other devices.
//!
//! The steps of a write, and why:
//!
//! ```text
//!  64 blocks after the other:
//!      for each block: bytes 0..4032 past the cache     ── in any order, in words
//!      fence                                            ── they are on the media
//!      for each block: bytes 4032..4096 in ascending order, through the cache, and written back
//!  fence                                                ── so are the last ones: the write completes
//! ```
//! A fence counts for its own thread only, so a flush could not cover the writes of others: each write fences itself,
//! and a completed write is durable. The first fence gives blocks an order that a disk's sectors have by themselves:
//! **the last word of a block reaches the media after all others of it.** A reader that finds the end of a block new
//! finds all of it new. The node blocks that a sync leaves for recovery carry their mark there, in the footer, and no
//! checksum over the rest (`docs/PMEM.md`).

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, FlushGate, Op,
    Request, Ticket,
};
use f2fs_sync::protocol_step;

use crate::{Durability, LINE, PersistentRegion, RegionError};

/// Where the last line of a block begins.
const LAST_LINE: usize = BLOCK_SIZE - LINE;

/// Blocks between two fences. Their last lines are kept aside meanwhile: the buffer of a large write has left the cache
/// by then, and a line of it would come from memory a second time. Fewer blocks cost more fences, and more blocks a
/// larger stack.
const ROUND: usize = 64;

/// A block device on a region. A tail shorter than a block is left out.
///
/// ```
/// use f2fs_device::BlockDevice;
/// use f2fs_pmem::{MemoryRegion, PmemDevice};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = PmemDevice::new(MemoryRegion::new(1 << 20)?);
/// device.write_slice(7, b"seven")?;
/// device.flush()?;
/// assert_eq!(&device.read(7, 1)?.as_bytes()[..5], b"seven");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PmemDevice<R: PersistentRegion> {
    region: R,
    info: DeviceInfo,
    durability: Durability,
    gate: FlushGate,
    claims: Claims,
}

impl<R: PersistentRegion> PmemDevice<R> {
    /// A device on a region, which nobody else may write from now on.
    #[must_use]
    pub fn new(region: R) -> Self {
        let description = format!("persistent memory, {}", region.durability());
        Self::described(region, description)
    }

    pub(crate) fn described(region: R, description: String) -> Self {
        let mut info = DeviceInfo::new((region.len() / BLOCK_SIZE) as u64, description);
        info.read_only = region.read_only();
        info.logical_sector = 512;
        info.dma_alignment = 1;
        let durability = region.durability();
        Self { region, info, durability, gate: FlushGate::new(), claims: Claims::new() }
    }

    /// The region below.
    #[must_use]
    pub fn region(&self) -> &R {
        &self.region
    }

    fn load(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), RegionError> {
        self.region.load(start as usize * BLOCK_SIZE, buf.as_bytes_mut())
    }

    /// Stores `bufs` from block `start` on; they are on the media at the end, or in the page cache.
    fn store(&self, start: u64, bufs: &[AlignedBuf]) -> Result<(), RegionError> {
        let region = &self.region;
        let first = start as usize * BLOCK_SIZE;
        if self.durability == Durability::Sync {
            // The kernel writes whole pages, in any order, whatever is stored last.
            let mut at = first;
            for buf in bufs {
                region.store_nontemporal(at, buf.as_bytes())?;
                at += buf.len();
            }
            region.fence();
            return Ok(());
        }
        // Most writes are of one block, and need no more room than that.
        if bufs.iter().map(AlignedBuf::blocks).sum::<usize>() == 1 {
            self.store_in_rounds::<1>(first, bufs)?;
        } else {
            self.store_in_rounds::<ROUND>(first, bufs)?;
        }
        protocol_step!("pmem_write_without_fence", region.fence());
        Ok(())
    }

    /// Stores `bufs` from byte `first` on, `N` blocks between two fences. A fence is still missing behind the last
    /// lines.
    fn store_in_rounds<const N: usize>(&self, first: usize, bufs: &[AlignedBuf]) -> Result<(), RegionError> {
        let region = &self.region;
        let mut blocks = bufs.iter().flat_map(AlignedBuf::as_blocks).peekable();
        let mut begin = first;
        while blocks.peek().is_some() {
            let mut last_lines = [[0; LINE]; N];
            let mut end = begin;
            for (last_line, block) in last_lines.iter_mut().zip(blocks.by_ref()) {
                // It comes from memory while the others are stored, and is there when its turn comes.
                region.expect_store(end + LAST_LINE);
                region.store_nontemporal(end, &block.0[..LAST_LINE])?;
                last_line.copy_from_slice(&block.0[LAST_LINE..]);
                end += BLOCK_SIZE;
            }
            protocol_step!("pmem_write_without_order", region.fence());
            for (at, last_line) in (begin..end).step_by(BLOCK_SIZE).zip(&last_lines) {
                region.store(at + LAST_LINE, last_line)?;
                protocol_step!("pmem_last_line_not_written_back", region.write_back(at + LAST_LINE, LINE)?);
            }
            begin = end;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.gate.flush(|| self.region.sync().map_err(|error| DeviceErrorKind::from(&error)))
    }

    fn run(&self, request: &mut Request) -> Result<(), DeviceError> {
        self.info.check(request)?;
        let mut done = Ok(());
        match request.op {
            Op::Read => {
                let mut at = request.start;
                for buf in &mut request.bufs {
                    done = done.and_then(|()| self.load(at, buf));
                    at += buf.blocks() as u64;
                }
            }
            Op::Write | Op::WriteFua => {
                self.gate.check().map_err(|kind| request.error(kind))?;
                done = self.store(request.start, &request.bufs);
            }
            // Not supported, so that the check above has refused it.
            Op::Discard { .. } => {}
        }
        done.map_err(|error| request.error(self.kind_of(error)))?;
        if request.op == Op::WriteFua && self.durability == Durability::Sync {
            self.sync().map_err(|error| request.error(error.kind))?;
        }
        Ok(())
    }

    /// The device's error for a region's refusal. None comes, since ranges are checked before.
    fn kind_of(&self, error: RegionError) -> DeviceErrorKind {
        match error {
            RegionError::OutOfRange { .. } => DeviceErrorKind::OutOfRange { device_blocks: self.info.blocks },
            RegionError::ReadOnly => DeviceErrorKind::ReadOnly,
        }
    }
}

impl<R: PersistentRegion> BlockDevice for PmemDevice<R> {
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
        self.region.fence();
        if self.durability == Durability::Sync {
            return self.sync();
        }
        self.gate.check().map_err(DeviceError::flush)
    }

    fn execute(&self, mut request: Request) -> Completion {
        let result = self.run(&mut request);
        Completion { request, result }
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn flushes_at_once(&self) -> bool {
        self.durability != Durability::Sync
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let (operation, blocks) = (f2fs_device::Operation::Read, buf.blocks() as u64);
        self.info.check_range(operation, start, blocks)?;
        self.load(start, buf).map_err(|error| DeviceError::new(operation, start, blocks, self.kind_of(error)))
    }

    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let (operation, blocks) = (f2fs_device::Operation::Write, buf.blocks() as u64);
        let error = |kind| DeviceError::new(operation, start, blocks, kind);
        self.info.check_operation(operation, start, blocks)?;
        self.gate.check().map_err(error)?;
        self.store(start, std::slice::from_ref(buf)).map_err(|refused| error(self.kind_of(refused)))
    }
}
