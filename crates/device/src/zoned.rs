//! A zoned device over any other one: zones that are written from their start to their end, as host-managed disks (ZBC,
//! ZAC) and NVMe zoned namespaces demand.
//!
//! | Item | What it is |
//! |---|---|
//! | [`ZonedDevice`] | passes on what the zones allow, refuses the rest, and takes the commands of zones |
//! | [`ZoneLayout`], [`ZoneLimits`] | sizes and limits |
//! | [`Zone`], [`ZoneState`] | a zone in a report |
//! | [`ZoneChange`] | a command to a zone |
//! | [`KeptZones`] | zones that are the same when the device is opened again |
//! | [`OrderedZones`] | holds writes back until those in front of them are there |
//! | [`ZoneError`] | why something was refused, with its numbers |
//!
//! The rules are those of the standards; where they leave a choice, this device does as Linux's `null_blk`
//! (`drivers/block/null_blk/zoned.c`). The guest tests compare the two command by command: a zone that is closed with
//! nothing written is empty; opening, closing, finishing and resetting what is so already succeeds; at the limit of
//! open zones one that a write opened is closed for the new one. Other than there, the one is the zone opened first,
//! and a closed zone opens at the limit of active zones, too, since it is active already.
//!
//! - A write moves the write pointer when it is accepted. One that fails in the device below afterwards leaves the
//!   pointer behind blocks of undefined content; whoever goes on asks for the pointer ([`zone`](ZonedDevice::zone)).
//! - What lies behind the write pointer reads as zeros.
//! - Conventional zones are written anywhere. A write may not leave its zone, but for the next conventional one; a read
//!   may.
//! - A discard is [`Unsupported`](DeviceErrorKind::Unsupported): a sequential zone is given back by
//!   [`reset`](ZonedDevice::reset).
//!
//! Locking: see `zones.rs`. A write into an open zone locks that zone, for its bookkeeping only.

mod kept;
mod layout;
mod ordered;
mod zone;
mod zones;

use std::collections::VecDeque;

pub use kept::{KeptError, KeptZones};
pub use layout::{ZoneLayout, ZoneLimits};
pub use ordered::OrderedZones;
pub use zone::{Zone, ZoneChange, ZoneError, ZoneState};

use self::zones::Zones;
use crate::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, Operation,
    Pending, Request, Ticket,
};

/// A device with zones. All of them are empty at first, whatever the device below has.
///
/// ```
/// use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, ZoneLayout, ZoneState, ZonedDevice};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layout = ZoneLayout::new(256).with_limits(4, 8); // zones of 1 MiB
/// let device = ZonedDevice::new(MemoryDevice::new(16 * 256), layout)?;
/// device.write_slice(256, b"zone 1")?;
/// let error = device.write_slice(300, b"not at the write pointer").unwrap_err();
/// assert_eq!(error.to_string(), "write of 1 blocks at block 300: zone 1 can only be written at its write pointer, block 257");
/// assert_eq!(device.append(1, AlignedBuf::from_bytes(b"wherever it stands"))?, 257);
/// device.finish(1)?;
/// assert_eq!(device.zone(1)?.state, ZoneState::Full);
/// device.reset(1)?;
/// assert_eq!(device.zone(1)?.write_pointer(), Some(256));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZonedDevice<D> {
    inner: D,
    zones: Zones,
    info: DeviceInfo,
}

impl<D: BlockDevice> ZonedDevice<D> {
    /// Cuts `inner` into zones.
    ///
    /// # Errors
    /// [`ZoneError::Layout`] with the number in `layout` that makes no sense for the device.
    pub fn new(inner: D, layout: ZoneLayout) -> Result<Self, ZoneError> {
        let blocks = inner.info().blocks;
        Self::in_front(inner, layout, blocks)
    }

    /// Cuts the first so many blocks of `inner` into zones.
    fn in_front(inner: D, layout: ZoneLayout, blocks: u64) -> Result<Self, ZoneError> {
        let zones = Zones::new(layout, blocks)?;
        let description = format!("{}, in {} zones", inner.info().description, zones.count());
        let limits =
            ZoneLimits { zone_blocks: layout.zone_blocks, max_open: layout.max_open, max_active: layout.max_active };
        let zoned = Some(limits);
        let info = DeviceInfo { blocks, supports_discard: false, zones: zoned, description, ..inner.info().clone() };
        Ok(Self { inner, zones, info })
    }

    /// The device below.
    #[must_use]
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Sizes and limits.
    #[must_use]
    pub fn layout(&self) -> &ZoneLayout {
        self.zones.layout()
    }

    /// How many zones there are.
    #[must_use]
    pub fn zones(&self) -> u32 {
        self.zones.count()
    }

    /// The number of the zone that a block lies in; blocks behind the device lie in zones that do not exist.
    #[must_use]
    pub fn zone_of(&self, block: u64) -> u32 {
        self.zones.of(block)
    }

    /// One zone as it is now.
    ///
    /// # Errors
    /// [`ZoneError::NoSuchZone`].
    pub fn zone(&self, zone: u32) -> Result<Zone, ZoneError> {
        self.zones.zone(zone)
    }

    /// All zones, each as it is when the iterator comes to it.
    pub fn report(&self) -> impl Iterator<Item = Zone> + '_ {
        (0..self.zones()).flat_map(|zone| self.zones.zone(zone))
    }

    /// Opens a zone explicitly: it stays open until it is full, or closed, finished or reset.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a conventional, full, read-only or offline zone, or a limit.
    pub fn open(&self, zone: u32) -> Result<(), ZoneError> {
        self.zones.open(zone)
    }

    /// Closes an open zone; its place among the open ones is free then. It is empty if nothing was written.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a zone that is neither open nor closed.
    pub fn close(&self, zone: u32) -> Result<(), ZoneError> {
        self.zones.close(zone)
    }

    /// Makes a zone full: no more is written until it is reset.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a conventional, read-only or offline zone; a limit for one that is not open.
    pub fn finish(&self, zone: u32) -> Result<(), ZoneError> {
        self.zones.finish(zone)
    }

    /// Makes a zone empty; what was in it is gone.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a conventional, read-only or offline zone.
    pub fn reset(&self, zone: u32) -> Result<(), ZoneError> {
        self.zones.reset(zone)
    }

    /// Changes the state of a zone.
    ///
    /// # Errors
    /// Those of the command.
    pub fn change(&self, zone: u32, change: ZoneChange) -> Result<(), ZoneError> {
        match change {
            ZoneChange::Open => self.open(zone),
            ZoneChange::Close => self.close(zone),
            ZoneChange::Finish => self.finish(zone),
            ZoneChange::Reset => self.reset(zone),
        }
    }

    /// Makes all zones empty that can be.
    pub fn reset_all(&self) {
        for zone in 0..self.zones() {
            // Zones that cannot be reset are left alone.
            let _ = self.zones.reset(zone);
        }
    }

    /// The zone is worn out: from now on it can only be read.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a conventional or offline zone.
    pub fn wear_out(&self, zone: u32) -> Result<(), ZoneError> {
        self.zones.retire(zone, ZoneState::ReadOnly)
    }

    /// The zone dies.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a conventional zone.
    pub fn take_offline(&self, zone: u32) -> Result<(), ZoneError> {
        self.zones.retire(zone, ZoneState::Offline)
    }

    /// Writes `buf` at the write pointer of a zone, wherever that is, and returns the first block it went to. Threads
    /// that append to one zone need no lock of their own.
    ///
    /// # Errors
    /// Refusals of the zone ([`DeviceErrorKind::Zone`]; the block is the start of the zone), and those of a write.
    pub fn append(&self, zone: u32, buf: AlignedBuf) -> Result<u64, DeviceError> {
        let start = u64::from(zone).saturating_mul(self.layout().zone_blocks);
        let mut request = Request::write(start, buf);
        let blocks = request.blocks();
        if self.info.read_only {
            return Err(request.error(DeviceErrorKind::ReadOnly));
        }
        request.start = self.zones.write(zone, None, blocks).map_err(|error| request.error(error.into()))?;
        let at = request.start;
        self.inner.execute(request).result.map(|()| at)
    }

    /// Whether the zones allow a request. For a read: its blocks, counted from its first one, that hold nothing.
    fn admit(&self, request: &Request) -> Result<Unwritten, DeviceError> {
        self.info.check(request)?;
        self.admit_blocks(request.op.operation(), request.start, request.blocks())
    }

    /// The same for what a request does, where its size and the like are right.
    fn admit_blocks(&self, operation: Operation, start: u64, blocks: u64) -> Result<Unwritten, DeviceError> {
        let mut unwritten = Vec::new();
        let refused = |error: ZoneError| DeviceError::new(operation, start, blocks, error.into());
        match operation {
            _ if blocks == 0 => {}
            Operation::Read => {
                let end = start + blocks;
                for zone in self.zone_of(start)..=self.zone_of(end - 1) {
                    let first_of_zone = u64::from(zone) * self.layout().zone_blocks;
                    let first = (first_of_zone + self.zones.readable(zone).map_err(refused)?).max(start);
                    let behind = first_of_zone.saturating_add(self.layout().zone_blocks).min(end);
                    if first < behind {
                        unwritten.push(first - start..behind - start);
                    }
                }
            }
            Operation::Write | Operation::WriteFua => {
                self.zones.write(self.zone_of(start), Some(start), blocks).map_err(refused)?;
            }
            _ => {}
        }
        Ok(unwritten)
    }
}

/// Blocks of a read that hold nothing.
type Unwritten = Vec<std::ops::Range<u64>>;

impl<D: BlockDevice> BlockDevice for ZonedDevice<D> {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let total = requests.len();
        let (mut passed, mut places, mut over) = (Vec::with_capacity(total), Vec::with_capacity(total), Vec::new());
        for (index, request) in requests.into_iter().enumerate() {
            match self.admit(&request) {
                Ok(unwritten) => {
                    passed.push(request);
                    places.push((index, unwritten));
                }
                Err(error) => over.push((index, Completion { request, result: Err(error) })),
            }
        }
        let ticket = self.inner.submit(passed);
        Ticket::pending(total, over, Box::new(Admitted { ticket, places }))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn is_immediate(&self) -> bool {
        self.inner.is_immediate()
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let blocks = buf.blocks() as u64;
        self.info.check_operation(Operation::Read, start, blocks)?;
        let unwritten = self.admit_blocks(Operation::Read, start, blocks)?;
        self.inner.read_into(start, buf)?;
        for range in unwritten {
            zero(std::slice::from_mut(buf), range);
        }
        Ok(())
    }

    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let blocks = buf.blocks() as u64;
        self.info.check_operation(Operation::Write, start, blocks)?;
        self.admit_blocks(Operation::Write, start, blocks)?;
        self.inner.write_from(start, buf)
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        let first = self.zone_of(start).min(self.zones());
        Ok((first..self.zones()).take(count).flat_map(|zone| self.zones.zone(zone)).collect())
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.info.check_operation(Operation::ChangeZone, start, 0)?;
        let refused = |error: ZoneError| DeviceError::new(Operation::ChangeZone, start, 0, error.into());
        let zone = self.zone_of(start);
        if !start.is_multiple_of(self.layout().zone_blocks) {
            return Err(refused(ZoneError::NotAStart { zone, start: u64::from(zone) * self.layout().zone_blocks }));
        }
        self.change(zone, change).map_err(refused)
    }
}

/// The requests that the device below has.
#[derive(Debug)]
struct Admitted {
    ticket: Ticket,
    /// The place of each in the batch, and its blocks that hold nothing.
    places: Vec<(usize, Unwritten)>,
}

impl Pending for Admitted {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let mut next = if block { self.ticket.wait_any() } else { self.ticket.try_any() };
        while let Some((at, mut completion)) = next {
            // A device that answers what nobody asked is not listened to.
            if let Some((index, unwritten)) = self.places.get(at) {
                for range in unwritten {
                    zero(&mut completion.request.bufs, range.clone());
                }
                out.push_back((*index, completion));
            }
            next = self.ticket.try_any();
        }
    }
}

/// Fills a range of blocks, counted over all buffers, with zeros.
fn zero(bufs: &mut [AlignedBuf], range: std::ops::Range<u64>) {
    let mut first = 0;
    for buf in bufs {
        let end = first + buf.blocks() as u64;
        let (from, to) = (range.start.clamp(first, end) - first, range.end.clamp(first, end) - first);
        buf.as_bytes_mut()[from as usize * BLOCK_SIZE..to as usize * BLOCK_SIZE].fill(0);
        first = end;
    }
}
