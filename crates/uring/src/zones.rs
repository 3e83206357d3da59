//! Zones of a host-managed block device, as the kernel knows them.
//!
//! A host-aware device takes writes anywhere, and is treated as one without zones.
//!
//! No locks: the kernel has the state.

use std::os::fd::BorrowedFd;

use f2fs_device::{BLOCK_SIZE, DeviceErrorKind, Zone, ZoneChange, ZoneError, ZoneLimits, ZoneState};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, opcode};

use crate::sysfs;

/// Sectors of 512 bytes in a block: the unit in which the kernel counts zones.
const SECTORS: u64 = BLOCK_SIZE as u64 / 512;
/// Zones in one answer of the kernel.
const BATCH: usize = 64;

/// `struct blk_zone` of `<linux/blkzoned.h>`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    start: u64,
    length: u64,
    write_pointer: u64,
    kind: u8,
    condition: u8,
    _flags: [u8; 6],
    capacity: u64,
    _reserved: [u64; 3],
}

/// The head of `struct blk_zone_report`, whose size the number of the ioctl has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Head {
    sector: u64,
    count: u32,
    flags: u32,
}

/// The head with room for an answer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Report {
    head: Head,
    zones: [Record; BATCH],
}

/// Of the head's flags: records have a capacity.
const HAS_CAPACITY: u32 = 1;
/// The kinds of zones.
const CONVENTIONAL: u8 = 1;
const SEQUENTIAL_REQUIRED: u8 = 2;
const SEQUENTIAL_PREFERRED: u8 = 3;

const BLKREPORTZONE: Opcode = opcode::read_write::<Head>(0x12, 130);
const BLKRESETZONE: Opcode = opcode::write::<[u64; 2]>(0x12, 131);
const BLKOPENZONE: Opcode = opcode::write::<[u64; 2]>(0x12, 134);
const BLKCLOSEZONE: Opcode = opcode::write::<[u64; 2]>(0x12, 135);
const BLKFINISHZONE: Opcode = opcode::write::<[u64; 2]>(0x12, 136);

/// The limits of all zones of a device; `None` if writes may go anywhere.
///
/// # Errors
/// A size of zones that is not a number of whole blocks.
pub(crate) fn limits(rdev: u64) -> Result<Option<ZoneLimits>, ZoneError> {
    if sysfs::queue_text(rdev, "zoned").as_deref() != Some("host-managed") {
        return Ok(None);
    }
    let sectors = sysfs::queue_limit(rdev, "chunk_sectors").unwrap_or(0);
    if sectors == 0 || !sectors.is_multiple_of(SECTORS) {
        return Err(ZoneError::Layout { what: "sectors in a zone", value: sectors, min: SECTORS, max: u64::MAX });
    }
    let limit = |name| sysfs::queue_limit(rdev, name).and_then(|limit| u32::try_from(limit).ok()).unwrap_or(0);
    let (max_open, max_active) = (limit("max_open_zones"), limit("max_active_zones"));
    Ok(Some(ZoneLimits::new(sectors / SECTORS).with_limits(max_open, max_active)))
}

/// The zones from the one on that has block `start`, `count` at most.
pub(crate) fn report(
    fd: BorrowedFd<'_>,
    limits: ZoneLimits,
    blocks: u64,
    start: u64,
    count: usize,
) -> Result<Vec<Zone>, DeviceErrorKind> {
    let (mut zones, mut next) = (Vec::new(), start);
    while zones.len() < count && next < blocks {
        let wanted = (count - zones.len()).min(BATCH);
        let answer = ask(fd, next * SECTORS, wanted as u32)?;
        let has_capacity = answer.head.flags & HAS_CAPACITY != 0;
        let found = answer.zones.iter().take(wanted.min(answer.head.count as usize));
        let before = zones.len();
        for record in found {
            let zone = zone(record, has_capacity, limits, blocks)?;
            next = zone.start + zone.blocks;
            zones.push(zone);
        }
        if zones.len() == before {
            break;
        }
    }
    Ok(zones)
}

/// A zone of a device of `blocks` blocks, of which the last one may be shorter than the others.
fn zone(record: &Record, has_capacity: bool, limits: ZoneLimits, blocks: u64) -> Result<Zone, DeviceErrorKind> {
    let number = u32::try_from(record.start / SECTORS / limits.zone_blocks).unwrap_or(u32::MAX);
    let whole = |what, sectors: u64| {
        if sectors.is_multiple_of(SECTORS) {
            return Ok(sectors / SECTORS);
        }
        Err(ZoneError::Layout { what, value: sectors, min: SECTORS, max: u64::MAX })
    };
    let within = |what, value: u64, min: u64, max: u64| {
        if (min..=max).contains(&value) { Ok(()) } else { Err(ZoneError::Layout { what, value, min, max }) }
    };
    let (start, length) = (whole("first sector of a zone", record.start)?, whole("sectors in a zone", record.length)?);
    let least = limits.zone_blocks.min(blocks.saturating_sub(start)).max(1);
    within("sectors in a zone", record.length, least * SECTORS, limits.zone_blocks * SECTORS)?;
    within(
        "sectors from the start of a zone to where one may be",
        record.start % (limits.zone_blocks * SECTORS),
        0,
        0,
    )?;
    let sequential = match record.kind {
        CONVENTIONAL | SEQUENTIAL_PREFERRED => false,
        SEQUENTIAL_REQUIRED => true,
        kind => {
            let (what, value) = ("kind of a zone", u64::from(kind));
            return Err(ZoneError::Layout { what, value, min: 1, max: SEQUENTIAL_PREFERRED.into() }.into());
        }
    };
    let state = match record.condition {
        0xf => ZoneState::Offline,
        0xd => ZoneState::ReadOnly,
        _ if !sequential => ZoneState::Conventional,
        0x1 => ZoneState::Empty,
        0x2 => ZoneState::ImplicitlyOpen,
        0x3 => ZoneState::ExplicitlyOpen,
        0x4 => ZoneState::Closed,
        0xe => ZoneState::Full,
        // A state that no standard has counts as one that cannot be written.
        _ => ZoneState::Offline,
    };
    if has_capacity && sequential {
        within("sectors of a zone that can be written", record.capacity, 0, record.length)?;
    }
    // A capacity that is not a number of blocks: the rest is never written.
    let capacity = if has_capacity && sequential { record.capacity / SECTORS } else { length };
    // The pointer of a worn-out zone means nothing to the kernel: all of the zone can be read.
    let pointer =
        matches!(state, ZoneState::Empty | ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen | ZoneState::Closed);
    let written = pointer.then(|| (record.write_pointer.saturating_sub(record.start) / SECTORS).min(length));
    Ok(Zone::new(number, start, length, capacity, state, written))
}

fn ask(fd: BorrowedFd<'_>, sector: u64, count: u32) -> Result<Box<Report>, DeviceErrorKind> {
    let head = Head { sector, count, flags: 0 };
    let mut report = Box::new(Report { head, zones: [Record::default(); BATCH] });
    again(|| {
        // SAFETY: the opcode is BLKREPORTZONE. It reads the head, and writes the head and as many records as the head
        // says at most, which is at most `BATCH`: `Report` has room for them. All bit patterns are values of these
        // integers.
        let updater = unsafe { Updater::<BLKREPORTZONE, Report>::new(&mut report) };
        // SAFETY: see above; the memory is borrowed for the call. The descriptor is a block device.
        unsafe { rustix::ioctl::ioctl(fd, updater) }
    })?;
    Ok(report)
}

/// Changes the zone that begins at block `start`.
pub(crate) fn change(fd: BorrowedFd<'_>, start: u64, blocks: u64, change: ZoneChange) -> Result<(), DeviceErrorKind> {
    let range = [start * SECTORS, blocks * SECTORS];
    again(|| match change {
        ZoneChange::Open => command::<BLKOPENZONE>(fd, range),
        ZoneChange::Close => command::<BLKCLOSEZONE>(fd, range),
        ZoneChange::Finish => command::<BLKFINISHZONE>(fd, range),
        ZoneChange::Reset => command::<BLKRESETZONE>(fd, range),
    })
}

fn command<const OPCODE: Opcode>(fd: BorrowedFd<'_>, range: [u64; 2]) -> rustix::io::Result<()> {
    // SAFETY: all callers name an opcode of a command to zones, which reads two u64 through the pointer that `Setter`
    // passes.
    let setter = unsafe { Setter::<OPCODE, [u64; 2]>::new(range) };
    // SAFETY: the ioctl reads `range` only during the call and touches no other memory of this process; the descriptor
    // is a block device.
    unsafe { rustix::ioctl::ioctl(fd, setter) }
}

fn again(mut call: impl FnMut() -> rustix::io::Result<()>) -> Result<(), DeviceErrorKind> {
    loop {
        match call() {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOTTY) => return Err(DeviceErrorKind::Unsupported),
            Err(errno) => return Err(DeviceErrorKind::from_errno(errno.raw_os_error())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of the device: four zones, and half of one.
    const BLOCKS: u64 = 4 * 256 + 128;

    fn limits() -> ZoneLimits {
        ZoneLimits::new(256)
    }

    fn record(kind: u8, condition: u8) -> Record {
        Record { start: 4096, length: 2048, write_pointer: 4104, kind, condition, capacity: 1024, ..Record::default() }
    }

    #[test]
    fn records_are_as_long_as_the_kernels() {
        assert_eq!((size_of::<Record>(), size_of::<Head>()), (64, 16));
        // As linux/blkzoned.h has them on x86-64 and aarch64.
        assert_eq!((BLKREPORTZONE, BLKRESETZONE, BLKFINISHZONE), (0xc010_1282, 0x4010_1283, 0x4010_1288));
    }

    #[test]
    fn zones_are_counted_in_blocks() {
        let found = zone(&record(SEQUENTIAL_REQUIRED, 2), true, limits(), BLOCKS).unwrap();
        assert_eq!(found, Zone::new(2, 512, 256, 128, ZoneState::ImplicitlyOpen, Some(1)));
        assert_eq!(zone(&record(SEQUENTIAL_REQUIRED, 2), false, limits(), BLOCKS).unwrap().capacity, 256);
        let anywhere = Zone::new(2, 512, 256, 256, ZoneState::Conventional, None);
        assert_eq!(zone(&record(CONVENTIONAL, 0), true, limits(), BLOCKS), Ok(anywhere));
        assert_eq!(zone(&record(SEQUENTIAL_PREFERRED, 2), true, limits(), BLOCKS), Ok(anywhere));
        for (condition, state) in [(0xd, ZoneState::ReadOnly), (0xe, ZoneState::Full), (0xf, ZoneState::Offline)] {
            let found = zone(&record(SEQUENTIAL_REQUIRED, condition), true, limits(), BLOCKS).unwrap();
            assert_eq!((found.state, found.written), (state, None));
        }
    }

    #[test]
    fn records_that_make_no_sense_are_errors() {
        let record = record(SEQUENTIAL_REQUIRED, 1);
        let refused = |change: &dyn Fn(&mut Record)| {
            let mut changed = record;
            change(&mut changed);
            match zone(&changed, true, limits(), BLOCKS) {
                Err(DeviceErrorKind::Zone(error)) => error.to_string(),
                other => panic!("{other:?}"),
            }
        };
        for (change, words) in [
            (&(|record: &mut Record| record.length = 2047) as &dyn Fn(&mut Record), "sectors in a zone: 2047 is not"),
            (&|record| record.length = 0, "sectors in a zone: 0 is not in the range 2048 to 2048"),
            (&|record| record.length = 1024, "sectors in a zone: 1024 is not in the range 2048 to 2048"),
            (&|record| record.length = 4096, "sectors in a zone: 4096 is not in the range 2048 to 2048"),
            (&|record| record.start = 4104, "sectors from the start of a zone to where one may be: 8 is not"),
            (
                &|record| record.capacity = 2056,
                "sectors of a zone that can be written: 2056 is not in the range 0 to 2048",
            ),
            (&|record| record.kind = 0, "kind of a zone: 0 is not in the range 1 to 3"),
            (&|record| record.kind = 9, "kind of a zone: 9 is not in the range 1 to 3"),
        ] {
            let error = refused(&change);
            assert!(error.contains(words), "{words}: {error}");
        }
        // The last zone is shorter.
        let last = Record { start: 4 * 2048, length: 1024, write_pointer: 4 * 2048, ..record };
        assert_eq!(zone(&last, true, limits(), BLOCKS).unwrap().blocks, 128);
    }
}
