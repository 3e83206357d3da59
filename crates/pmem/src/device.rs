//! A block device on persistent memory: transfers are copies, and no call enters the kernel.
//!
//! Locking rules: none of its own. Where durability takes a system call, [`FlushGate`] lets one flush run at a time;
//! nothing else is locked then. Transfers that overlap in time and place may interleave, as on other devices.
//!
//! The steps of a write, and why:
//!
//! ```text
//!  for each block: bytes 0..4032 past the cache     ── in any order, in words
//!  fence                                            ── they are on the media
//!  for each block: bytes 4032..4096 in ascending order, through the cache, and written back
//!  fence                                            ── so are they: the write completes
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

/// How many last lines are on their way from memory into the cache while one is stored. Without that each store waits
/// for its own.
const AHEAD: usize = 16;

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
        for (at, block) in blocks(first, bufs) {
            region.store_nontemporal(at, &block[..LAST_LINE])?;
        }
        let mut ahead = blocks(first, bufs).map(|(at, _)| at + LAST_LINE);
        ahead.by_ref().take(AHEAD).for_each(|line| region.expect_store(line));
        protocol_step!("pmem_write_without_order", region.fence());
        for (at, block) in blocks(first, bufs) {
            if let Some(line) = ahead.next() {
                region.expect_store(line);
            }
            region.store(at + LAST_LINE, &block[LAST_LINE..])?;
            protocol_step!("pmem_last_line_not_written_back", region.write_back(at + LAST_LINE, LINE)?);
        }
        protocol_step!("pmem_write_without_fence", region.fence());
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

/// The blocks of buffers, each with its place in the region.
fn blocks(first: usize, bufs: &[AlignedBuf]) -> impl Iterator<Item = (usize, &[u8; BLOCK_SIZE])> {
    let blocks = bufs.iter().flat_map(|buf| buf.as_blocks().iter().map(|block| &block.0));
    (first..).step_by(BLOCK_SIZE).zip(blocks)
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

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let (operation, blocks) = (f2fs_device::Operation::Read, buf.blocks() as u64);
        self.info.check_range(operation, start, blocks)?;
        self.load(start, buf).map_err(|error| DeviceError::new(operation, start, blocks, self.kind_of(error)))
    }
}
