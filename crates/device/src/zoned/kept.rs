//! Zones that outlive the process: their states and write pointers stand at the end of the device that has their
//! blocks.
//!
//! ```text
//!   zones ................................. | table: 8 bytes a zone | header: 1 block
//! ```
//!
//! The table says no more than is durable. A flush makes the data durable first, and then the table; a reset and a
//! finish are in the table before they return. So a power cut leaves a prefix of the writes to each zone, at least as
//! long as at the last flush, and never a block from before a reset.
//!
//! | state | in the table |
//! |---|---|
//! | empty, open, closed | the write pointer: an open zone is closed when the device is opened again |
//! | full, read-only, offline | the state and the write pointer |
//!
//! Locking rules: `order` is held shared while a write is with the device below, and exclusively while a flush or a
//! command looks at the pointers: so a pointer in the table never lies behind a block that is on its way. `stored` is
//! taken within it. Both are held during I/O: these devices are made to be exact, not to scale.

use f2fs_sync::{Mutex, RwLock};

use super::{Zone, ZoneChange, ZoneError, ZoneLayout, ZoneState, ZonedDevice};
use crate::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, FlushGate, Op,
    Operation, Request, Ticket,
};

/// The first bytes of the header.
const MAGIC: [u8; 8] = *b"f2fsZONE";
/// Entries in a block of the table.
const ENTRIES: u64 = BLOCK_SIZE as u64 / 8;
/// Bits of an entry that are the write pointer; the state is above.
const POINTER: u32 = 56;

/// Why zones that are kept were not made, or not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// The layout makes no sense for the device.
    #[error(transparent)]
    Layout(#[from] ZoneError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No zones are kept at the end of the device.
    #[error("no zones are kept on this device")]
    NotThere,
    /// The kept states contradict each other.
    #[error(
        "the zones that are kept on this device are damaged: {what} is {found}, and at most {expected} is possible"
    )]
    Damaged {
        /// The field that is wrong.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The most that is possible.
        expected: u64,
    },
}

/// A device with zones that are the same when it is opened again: a [`ZonedDevice`] for users with a file and no zoned
/// disk.
///
/// Writes are done when they are submitted, one system call each.
///
/// ```
/// use f2fs_device::{BlockDevice, KeptZones, MemoryDevice, ZoneLayout};
/// use f2fs_sync::PlainArc;
///
/// let disk = PlainArc::new(MemoryDevice::new(1 << 12));
/// let device = KeptZones::create(disk.clone(), ZoneLayout::new(1 << 10))?;
/// assert_eq!(device.info().blocks, 3 << 10, "the rest keeps the zones");
/// device.write_slice(1 << 10, b"in the second zone")?;
/// device.flush()?;
/// drop(device);
///
/// let device = KeptZones::open(disk)?;
/// assert_eq!(device.zone(1)?.write_pointer(), Some((1 << 10) + 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KeptZones<D> {
    zoned: ZonedDevice<D>,
    order: RwLock<()>,
    /// The table as it stands on the device.
    stored: Mutex<Vec<u64>>,
    gate: FlushGate,
}

/// The table's place.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Zones, all of them whole.
    zones: u64,
    /// The first block of the table, which is the end of the zones.
    table: u64,
}

impl Place {
    /// As many whole zones as there is room for, with their table and the header.
    fn new(blocks: u64, layout: &ZoneLayout) -> Result<Place, ZoneError> {
        // In 128 bits, where nothing of a hostile header overflows. A table that were not rounded to blocks would leave
        // room for so many zones, and rounding takes one at most.
        let (zone_blocks, entries) = (u128::from(layout.zone_blocks.max(1)), u128::from(ENTRIES));
        let mut zones = u128::from(blocks.saturating_sub(1)) * entries / (zone_blocks * entries + 1);
        if zones * zone_blocks + zones.div_ceil(entries) + 1 > blocks.into() {
            zones = zones.saturating_sub(1);
        }
        let zones = u64::try_from(zones).unwrap_or(u64::MAX);
        if zones == 0 {
            return Err(ZoneError::Layout { what: "zones", value: 0, min: 1, max: ZoneLayout::MAX_ZONES });
        }
        Ok(Place { zones, table: blocks - 1 - zones.div_ceil(ENTRIES) })
    }
}

/// A zone as an entry of the table.
fn entry(state: ZoneState, written: u64) -> u64 {
    let code: u64 = match state {
        ZoneState::Conventional => return 0,
        ZoneState::Full => 1,
        ZoneState::ReadOnly => 2,
        ZoneState::Offline => 3,
        ZoneState::Empty | ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed => 0,
    };
    code << POINTER | written
}

impl<D: BlockDevice> KeptZones<D> {
    /// The blocks of a device that is to have so many zones; `None` if they cannot be counted.
    #[must_use]
    pub fn blocks_needed(layout: &ZoneLayout, zones: u64) -> Option<u64> {
        zones.checked_mul(layout.zone_blocks)?.checked_add(zones.div_ceil(ENTRIES) + 1)
    }

    /// Makes zones of a device, all of them empty; what it held is lost. Its blocks become whole zones, and a few that
    /// keep them.
    ///
    /// # Errors
    /// [`KeptError`].
    pub fn create(inner: D, layout: ZoneLayout) -> Result<Self, KeptError> {
        let blocks = inner.info().blocks;
        let place = Place::new(blocks, &layout)?;
        // The layout is checked before anything is written.
        let zoned = ZonedDevice::in_front(inner, layout, place.zones * layout.zone_blocks)?;
        let table = vec![0u64; place.zones as usize];
        let inner = zoned.inner();
        // An old header goes first: a table without a header is no table.
        inner.write(blocks - 1, AlignedBuf::new(1))?;
        inner.flush()?;
        for block in 0..place.zones.div_ceil(ENTRIES) {
            inner.write(place.table + block, AlignedBuf::new(1))?;
        }
        inner.flush()?;
        let mut header = MAGIC.to_vec();
        let limits = [layout.conventional, layout.max_open, layout.max_active].map(u64::from);
        for number in [blocks, layout.zone_blocks, layout.capacity].into_iter().chain(limits) {
            header.extend_from_slice(&number.to_le_bytes());
        }
        inner.write_slice(blocks - 1, &header)?;
        inner.flush()?;
        Ok(Self { zoned, order: RwLock::new(()), stored: Mutex::new(table), gate: FlushGate::new() })
    }

    /// Whether a device keeps zones.
    ///
    /// # Errors
    /// Those of the device.
    pub fn are_on(inner: &D) -> Result<bool, DeviceError> {
        let Some(last) = inner.info().blocks.checked_sub(1) else { return Ok(false) };
        Ok(inner.read(last, 1)?.as_bytes().starts_with(&MAGIC))
    }

    /// Finds the zones that were [made](Self::create) of a device. Those that were open are closed.
    ///
    /// # Errors
    /// [`KeptError`].
    pub fn open(inner: D) -> Result<Self, KeptError> {
        let blocks = inner.info().blocks;
        if !Self::are_on(&inner)? {
            return Err(KeptError::NotThere);
        }
        let header = inner.read(blocks - 1, 1)?;
        let mut numbers = header.as_bytes()[MAGIC.len()..].chunks_exact(8).map(number);
        let mut next = |what, expected| {
            let found = numbers.next().unwrap_or(u64::MAX);
            if found <= expected { Ok(found) } else { Err(KeptError::Damaged { what, found, expected }) }
        };
        let size = next("blocks of the device", blocks)?;
        if size != blocks {
            return Err(KeptError::Damaged { what: "blocks of the device", found: size, expected: blocks });
        }
        let zone_blocks = next("blocks in a zone", blocks)?;
        let capacity = next("capacity of a zone", zone_blocks)?;
        let most = u64::from(u32::MAX);
        let conventional = next("conventional zones", most)? as u32;
        let (open, active) = (next("zones open at a time", most)? as u32, next("zones active at a time", most)? as u32);
        let layout = ZoneLayout::new(zone_blocks)
            .with_capacity(capacity)
            .with_conventional(conventional)
            .with_limits(open, active);
        let place = Place::new(blocks, &layout)?;
        let zoned = ZonedDevice::in_front(inner, layout, place.zones * zone_blocks)?;
        let table = zoned.inner().read(place.table, place.zones.div_ceil(ENTRIES) as usize)?;
        let stored: Vec<u64> = table.as_bytes().chunks_exact(8).map(number).take(place.zones as usize).collect();
        for (zone, entry) in (0..).zip(&stored).skip(conventional as usize) {
            let written = entry & ((1 << POINTER) - 1);
            if written > capacity {
                return Err(KeptError::Damaged {
                    what: "written blocks of a zone",
                    found: written,
                    expected: capacity,
                });
            }
            let state = match entry >> POINTER {
                0 if written == 0 => continue,
                0 if written == capacity => ZoneState::Full,
                0 => ZoneState::Closed,
                // It was finished; what lies behind the pointer reads as zeros.
                1 => ZoneState::Full,
                2 => ZoneState::ReadOnly,
                3 => ZoneState::Offline,
                found => return Err(KeptError::Damaged { what: "state of a zone", found, expected: 3 }),
            };
            zoned.zones.restore(zone, state, written)?;
        }
        Ok(Self { zoned, order: RwLock::new(()), stored: Mutex::new(stored), gate: FlushGate::new() })
    }

    /// Sizes and limits.
    #[must_use]
    pub fn layout(&self) -> &ZoneLayout {
        self.zoned.layout()
    }

    /// One zone as it is now.
    ///
    /// # Errors
    /// [`ZoneError::NoSuchZone`].
    pub fn zone(&self, zone: u32) -> Result<Zone, ZoneError> {
        self.zoned.zone(zone)
    }

    /// The zone is worn out, for good: from now on it can only be read.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a conventional or offline zone; those of a flush.
    pub fn wear_out(&self, zone: u32) -> Result<(), KeptError> {
        self.zoned.wear_out(zone)?;
        Ok(self.flush()?)
    }

    /// The zone dies, for good.
    ///
    /// # Errors
    /// [`ZoneError::State`] of a conventional zone; those of a flush.
    pub fn take_offline(&self, zone: u32) -> Result<(), KeptError> {
        self.zoned.take_offline(zone)?;
        Ok(self.flush()?)
    }

    /// The device below.
    #[must_use]
    pub fn inner(&self) -> &D {
        self.zoned.inner()
    }

    /// Brings the table on the device in line for these zones. The caller holds `order` exclusively; the data is
    /// durable.
    fn store(&self, zones: impl Iterator<Item = u32>) -> Result<(), DeviceErrorKind> {
        let kind = |error: DeviceError| error.kind;
        let mut stored = self.stored.lock();
        let mut changed: Vec<u64> = Vec::new();
        for number in zones {
            let (state, written) = self.zoned.zones.state(number)?;
            let entry = entry(state, written);
            if stored[number as usize] != entry {
                stored[number as usize] = entry;
                changed.push(u64::from(number) / ENTRIES);
            }
        }
        changed.dedup();
        let table = self.inner().info().blocks - 1 - (stored.len() as u64).div_ceil(ENTRIES);
        for block in &changed {
            let from = (block * ENTRIES) as usize;
            let to = stored.len().min(from + ENTRIES as usize);
            let bytes: Vec<u8> = stored[from..to].iter().flat_map(|entry| entry.to_le_bytes()).collect();
            self.inner().write_slice(table + block, &bytes).map_err(kind)?;
        }
        if changed.is_empty() { Ok(()) } else { self.inner().flush().map_err(kind) }
    }

    /// A write, which is with the device below until this returns.
    fn write_now(&self, request: Request) -> Completion {
        let _order = self.order.read();
        self.zoned.execute(request)
    }

    fn run(&self, mut request: Request) -> Completion {
        if request.op == Op::Read {
            return self.zoned.execute(request);
        }
        if let Err(kind) = self.gate.check() {
            let result = Err(request.error(kind));
            return Completion { request, result };
        }
        let durable = request.op == Op::WriteFua;
        if durable {
            request.op = Op::Write;
        }
        let mut completion = self.write_now(request);
        if durable {
            completion.request.op = Op::WriteFua;
            let error = |kind| completion.request.error(kind);
            let flushed = match completion.result {
                Ok(()) => self.flush().map_err(|failed| error(failed.kind)),
                Err(failed) => {
                    self.gate.poison(&failed.kind);
                    Err(error(failed.kind))
                }
            };
            completion.result = flushed;
        }
        completion
    }
}

/// A number in a header or a table.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl<D: BlockDevice> BlockDevice for KeptZones<D> {
    fn info(&self) -> &DeviceInfo {
        self.zoned.info()
    }

    fn claims(&self) -> &Claims {
        self.zoned.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.run(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        if self.info().read_only {
            return Ok(());
        }
        self.gate.flush(|| {
            let _order = self.order.write();
            self.inner().flush().map_err(|error| error.kind)?;
            self.store(0..self.zoned.zones())
        })
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.zoned.report_zones(start, count)
    }

    /// A reset or a finish is durable when this returns, and with it all earlier writes to the zone.
    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        let error = |kind| DeviceError::new(Operation::ChangeZone, start, 0, kind);
        self.gate.check().map_err(error)?;
        let _order = self.order.write();
        if change == ZoneChange::Finish {
            // The zone's data, before the table says that it is there.
            self.inner().flush().inspect_err(|failed| self.gate.poison(&failed.kind))?;
        }
        self.zoned.change_zone(start, change)?;
        if matches!(change, ZoneChange::Reset | ZoneChange::Finish) {
            let zone = self.zoned.zone_of(start);
            self.store(zone..zone + 1).inspect_err(|kind| self.gate.poison(kind)).map_err(error)?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn as_many_zones_as_there_is_room_for() {
        for zone_blocks in [1, 2, 3, 511, 512, 513, 700] {
            let layout = ZoneLayout::new(zone_blocks);
            for blocks in 0..3000 {
                let fit = |zones: &u64| zones * zone_blocks + zones.div_ceil(ENTRIES) < blocks;
                let most = (1..=blocks).take_while(fit).last();
                let found = Place::new(blocks, &layout).ok().map(|place| place.zones);
                assert_eq!(found, most, "{blocks} blocks, zones of {zone_blocks}");
            }
        }
    }

    #[test]
    fn a_hostile_header_takes_no_time() {
        for (blocks, zone_blocks) in [(u64::MAX, 1), (u64::MAX, 0), (u64::MAX, u64::MAX), (0, 0), (1, u64::MAX)] {
            if let Ok(place) = Place::new(blocks, &ZoneLayout::new(zone_blocks)) {
                assert!(place.zones <= blocks && place.table < blocks);
            }
        }
    }
}
