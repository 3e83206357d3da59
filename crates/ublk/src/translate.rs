//! The requests in descriptors, and the error numbers for errors of the device. No I/O, no state.
//!
//! A descriptor comes from the kernel, which checks requests against the limits it was told. It is checked here all the
//! same: a number out of range is answered with an error and never becomes an address or a length.

use f2fs_device::{DeviceErrorKind, ZoneError};

use crate::{
    ZoneChange,
    abi::{Descriptor, SECTORS, errno, op},
    backend::Shape,
};

/// A request of the kernel, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Read { start: u64, blocks: u64 },
    Write { start: u64, blocks: u64, fua: bool },
    Flush,
    Discard { start: u64, blocks: u64 },
    Zeroes { start: u64, blocks: u64 },
    Change { zone: u32, change: ZoneChange },
    ResetAll,
    Append { zone: u32, blocks: u64 },
    Report { first: u32, zones: u32 },
}

/// The request in a descriptor, or the error number that answers it.
pub(crate) fn translate(descriptor: &Descriptor, shape: &Shape) -> Result<Work, i32> {
    let operation = descriptor.op_flags & 0xff;
    let whole = |sectors: u64| if sectors.is_multiple_of(SECTORS) { Ok(sectors / SECTORS) } else { Err(errno::EINVAL) };
    // The range of a transfer, no longer than `longest`.
    let range = |longest: u64| {
        let (start, blocks) = (whole(descriptor.start_sector)?, whole(descriptor.count.into())?);
        let inside = start.checked_add(blocks).is_some_and(|end| end <= shape.blocks);
        if inside && blocks > 0 && blocks <= longest { Ok((start, blocks)) } else { Err(errno::EINVAL) }
    };
    // The zone that begins at the descriptor's sector.
    let zone = || {
        let (zone_blocks, zones) = shape.zones.ok_or(errno::EOPNOTSUPP)?;
        let start = whole(descriptor.start_sector)?;
        let zone = u32::try_from(start / zone_blocks).ok().filter(|&zone| zone < zones);
        zone.filter(|_| start.is_multiple_of(zone_blocks)).map(|zone| (zone, zones)).ok_or(errno::EINVAL)
    };
    let change = |change| zone().map(|(zone, _)| Work::Change { zone, change });
    Ok(match operation {
        op::READ => range(shape.max_blocks).map(|(start, blocks)| Work::Read { start, blocks })?,
        op::WRITE => {
            let (start, blocks) = range(shape.max_blocks)?;
            Work::Write { start, blocks, fua: descriptor.op_flags & op::FUA != 0 }
        }
        op::FLUSH => Work::Flush,
        op::DISCARD => range(u64::MAX).map(|(start, blocks)| Work::Discard { start, blocks })?,
        op::WRITE_ZEROES => range(u64::MAX).map(|(start, blocks)| Work::Zeroes { start, blocks })?,
        op::ZONE_OPEN => change(ZoneChange::Open)?,
        op::ZONE_CLOSE => change(ZoneChange::Close)?,
        op::ZONE_FINISH => change(ZoneChange::Finish)?,
        op::ZONE_RESET => change(ZoneChange::Reset)?,
        op::ZONE_RESET_ALL => shape.zones.map(|_| Work::ResetAll).ok_or(errno::EOPNOTSUPP)?,
        op::ZONE_APPEND => {
            let (zone, _) = zone()?;
            let (_, blocks) = range(shape.max_blocks)?;
            Work::Append { zone, blocks }
        }
        op::REPORT_ZONES => {
            let (first, zones) = zone()?;
            let most = (shape.max_blocks * 64).min((zones - first).into()) as u32;
            Work::Report { first, zones: descriptor.count.min(most) }
        }
        _ => return Err(errno::EOPNOTSUPP),
    })
}

/// The error number for an error of the device. Limits of zones have their own, as the kernel's zoned drivers give
/// them.
pub(crate) fn error_number(kind: &DeviceErrorKind) -> i32 {
    match kind {
        DeviceErrorKind::Io { errno: Some(errno), .. } if *errno > 0 && *errno < 4096 => *errno,
        DeviceErrorKind::ReadOnly => errno::EROFS,
        DeviceErrorKind::Unsupported => errno::EOPNOTSUPP,
        DeviceErrorKind::Zone(error) => zone_error_number(error),
        _ => errno::EIO,
    }
}

pub(crate) fn zone_error_number(error: &ZoneError) -> i32 {
    match error {
        ZoneError::TooManyOpen { .. } => errno::ETOOMANYREFS,
        ZoneError::TooManyActive { .. } => errno::EOVERFLOW,
        _ => errno::EIO,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPE: Shape = Shape { blocks: 1024, max_blocks: 128, zones: Some((256, 4)) };
    const PLAIN: Shape = Shape { zones: None, ..SHAPE };

    fn ask(operation: u32, start_sector: u64, count: u32, shape: &Shape) -> Result<Work, i32> {
        translate(&Descriptor { op_flags: operation, count, start_sector, address: 0 }, shape)
    }

    #[test]
    fn requests_become_blocks() {
        assert_eq!(ask(op::READ, 80, 16, &PLAIN), Ok(Work::Read { start: 10, blocks: 2 }));
        assert_eq!(ask(op::WRITE, 0, 8, &PLAIN), Ok(Work::Write { start: 0, blocks: 1, fua: false }));
        assert_eq!(ask(op::WRITE | op::FUA, 0, 8, &PLAIN), Ok(Work::Write { start: 0, blocks: 1, fua: true }));
        assert_eq!(ask(op::FLUSH, 77, 3, &PLAIN), Ok(Work::Flush));
        assert_eq!(ask(op::DISCARD, 0, 8192, &PLAIN), Ok(Work::Discard { start: 0, blocks: 1024 }));
        assert_eq!(ask(op::WRITE_ZEROES, 8, 8, &PLAIN), Ok(Work::Zeroes { start: 1, blocks: 1 }));
        assert_eq!(ask(op::ZONE_RESET, 2048, 0, &SHAPE), Ok(Work::Change { zone: 1, change: ZoneChange::Reset }));
        assert_eq!(ask(op::ZONE_APPEND, 2048, 8, &SHAPE), Ok(Work::Append { zone: 1, blocks: 1 }));
        assert_eq!(ask(op::REPORT_ZONES, 2048, 100, &SHAPE), Ok(Work::Report { first: 1, zones: 3 }));
        assert_eq!(ask(op::ZONE_RESET_ALL, 0, 0, &SHAPE), Ok(Work::ResetAll));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (operation, start, count) in [
            (op::READ, 4, 8),
            (op::READ, 8, 4),
            (op::READ, 8192, 8),
            (op::READ, 8184, 16),
            (op::READ, u64::MAX - 7, 8),
            (op::READ, 0, 129 * 8),
            (op::WRITE, 0, 0),
            (op::ZONE_OPEN, 8, 0),
            (op::ZONE_OPEN, 8192, 0),
            (op::ZONE_APPEND, 8, 8),
        ] {
            assert_eq!(ask(operation, start, count, &SHAPE), Err(errno::EINVAL), "{operation} {start} {count}");
        }
        for operation in [4, 6, 16, 17, 19, 255] {
            assert_eq!(ask(operation, 0, 8, &SHAPE), Err(errno::EOPNOTSUPP));
        }
        for operation in [op::ZONE_OPEN, op::ZONE_RESET_ALL, op::REPORT_ZONES, op::ZONE_APPEND] {
            assert_eq!(ask(operation, 0, 8, &PLAIN), Err(errno::EOPNOTSUPP));
        }
    }

    #[test]
    fn errors_have_the_numbers_of_the_kernels_drivers() {
        let number = |error: ZoneError| error_number(&DeviceErrorKind::Zone(error));
        assert_eq!(number(ZoneError::TooManyOpen { limit: 1 }), errno::ETOOMANYREFS);
        assert_eq!(number(ZoneError::TooManyActive { limit: 1 }), errno::EOVERFLOW);
        assert_eq!(number(ZoneError::NoSuchZone { zone: 1, zones: 1 }), errno::EIO);
        assert_eq!(error_number(&DeviceErrorKind::from_errno(28)), 28);
        assert_eq!(error_number(&DeviceErrorKind::from_errno(-3)), errno::EIO);
        assert_eq!(error_number(&DeviceErrorKind::Lost), errno::EIO);
    }

    proptest! {
        /// No descriptor panics, and what is let through lies in the device.
        #[test]
        fn hostile_descriptors(op_flags: u32, operation in 0..20u32, count: u32, start: u64, near in 0..9000u64, zoned: bool) {
            let shape = if zoned { SHAPE } else { PLAIN };
            for start_sector in [start, near, near * 8] {
                for op_flags in [op_flags, operation, op_flags & !0xff | operation] {
                    for count in [count, count % 9000, count % 1000 * 8] {
                        let descriptor = Descriptor { op_flags, count, start_sector, address: start };
                        match translate(&descriptor, &shape) {
                            Ok(Work::Read { start, blocks } | Work::Write { start, blocks, .. }) => {
                                prop_assert!(start + blocks <= shape.blocks && (1..=shape.max_blocks).contains(&blocks));
                            }
                            Ok(Work::Discard { start, blocks } | Work::Zeroes { start, blocks }) => {
                                prop_assert!(start + blocks <= shape.blocks);
                            }
                            Ok(Work::Change { zone, .. }) => prop_assert!(zoned && zone < 4),
                            Ok(Work::Append { zone, blocks }) => {
                                prop_assert!(zoned && zone < 4 && blocks <= shape.max_blocks);
                            }
                            Ok(Work::Report { first, zones }) => prop_assert!(zoned && first + zones <= 4),
                            Ok(Work::Flush) => {}
                            Ok(Work::ResetAll) => prop_assert!(zoned),
                            Err(number) => prop_assert!(number > 0),
                        }
                    }
                }
            }
        }
    }
}
