//! The facts of a namespace and its controller: what `identify` says.

use std::os::fd::BorrowedFd;

use f2fs_device::{AlignedBuf, BLOCK_SIZE, DeviceErrorKind};

use super::command::identify;

/// The structure that is asked for (CNS).
const NAMESPACE: u8 = 0;
const CONTROLLER: u8 = 1;
const DESCRIPTORS: u8 = 3;
const CONTROLLER_OF_SET: u8 = 6;

/// The NVM command set, which reads and writes anywhere.
const NVM: u8 = 0;
/// The zoned one.
const ZONED: u8 = 2;

/// The smallest page of a controller's memory, in which it counts the size of transfers (bytes).
const PAGE: u64 = 4096;
/// Sectors that a command names at most.
const MOST_SECTORS: u64 = 1 << 16;

/// The facts of a namespace that a volume can lie on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// In sectors.
    pub(super) size: u64,
    /// Bytes of a sector: 512 to 4096.
    pub(super) sector: u32,
    /// Nobody may write.
    pub(super) write_protected: bool,
    /// Writes may lie in a volatile cache until a flush.
    pub(super) volatile_cache: bool,
    /// Bytes of the largest transfer of a command, a multiple of 4096.
    pub(super) transfer: u64,
    /// The command that deallocates is there; sectors of its largest range.
    pub(super) deallocates: Option<u64>,
    /// The command that writes zeros is there; sectors of its largest range.
    pub(super) zeroes: Option<u64>,
    /// The controller's model.
    pub(super) model: String,
}

/// Why a namespace cannot carry a volume.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// An answer could not be had.
    Failed(DeviceErrorKind),
    /// It says something that does not fit.
    Reason(String),
}

impl From<DeviceErrorKind> for Unfit {
    fn from(kind: DeviceErrorKind) -> Self {
        Self::Failed(kind)
    }
}

/// Asks the device.
pub(super) fn facts(fd: BorrowedFd<'_>, namespace: u32) -> Result<Facts, Unfit> {
    // Controllers before NVMe 1.3 have no descriptors, and one command set.
    let set = identify(fd, namespace, DESCRIPTORS, 0).map_or(NVM, |buf| command_set(buf.as_bytes()));
    if set == ZONED {
        return Err(Unfit::Reason(
            "is a zoned namespace; open its block device, on which the kernel keeps the zones".into(),
        ));
    }
    if set != NVM {
        return Err(Unfit::Reason(format!("has the command set {set}, which does not read and write sectors")));
    }
    let controller = identify(fd, 0, CONTROLLER, 0)?;
    let of_set = identify(fd, 0, CONTROLLER_OF_SET, NVM).ok();
    let namespace = identify(fd, namespace, NAMESPACE, 0)?;
    parse(namespace.as_bytes(), controller.as_bytes(), of_set.as_ref().map(AlignedBuf::as_bytes))
}

/// The command set among the descriptors of a namespace.
fn command_set(descriptors: &[u8]) -> u8 {
    const SET: u8 = 4;
    let mut rest = descriptors;
    while let [kind, length, _, _, values @ ..] = rest {
        let length = usize::from(*length);
        if *kind == 0 || values.len() < length {
            break;
        }
        if *kind == SET && length > 0 {
            return values[0];
        }
        rest = &values[length..];
    }
    NVM
}

/// The number in `bytes` bytes at `at`.
fn number(data: &[u8], at: usize, bytes: usize) -> u64 {
    data[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn parse(namespace: &[u8], controller: &[u8], of_set: Option<&[u8]>) -> Result<Facts, Unfit> {
    let refuse = |reason: String| Err(Unfit::Reason(reason));
    let format = number(namespace, 26, 1);
    let index = (format & 0xf | format >> 1 & 0x30) as usize;
    if index as u64 > number(namespace, 25, 1) {
        return refuse(format!("has the sector format {index} and no such format"));
    }
    let (metadata, exponent) = (number(namespace, 128 + index * 4, 2), number(namespace, 130 + index * 4, 1));
    if !(9..=12).contains(&exponent) {
        return refuse(format!("has sectors of 2^{exponent} bytes; a volume needs 512 to 4096 bytes"));
    }
    if metadata > 0 {
        return refuse(format!("has {metadata} bytes of metadata with each sector, which are not written here"));
    }
    let sector = 1_u32 << exponent;
    let size = number(namespace, 0, 8);
    if size.checked_mul(u64::from(sector)).is_none() {
        return refuse(format!("has {size} sectors, which is more than can be"));
    }
    let commands = number(controller, 520, 2);
    let limit = |exponent: u64| match exponent {
        0 => u64::MAX,
        exponent => PAGE.checked_shl(exponent as u32).filter(|bytes| *bytes > 0).unwrap_or(u64::MAX),
    };
    let largest = MOST_SECTORS * u64::from(sector);
    let transfer = limit(number(controller, 77, 1)).min(largest) / BLOCK_SIZE as u64 * BLOCK_SIZE as u64;
    let zeroes = of_set.map_or(0, |data| number(data, 1, 1));
    let range = of_set.map_or(0, |data| number(data, 4, 4));
    let text = |at: usize, length: usize| String::from_utf8_lossy(&controller[at..at + length]).trim().to_owned();
    Ok(Facts {
        size,
        sector,
        write_protected: number(namespace, 99, 1) & 1 != 0,
        volatile_cache: number(controller, 525, 1) & 1 != 0,
        transfer,
        deallocates: (commands & 1 << 2 != 0).then_some(if range == 0 { u64::from(u32::MAX) } else { range }),
        zeroes: (commands & 1 << 3 != 0).then_some(limit(zeroes).min(largest) / u64::from(sector)),
        model: text(24, 40),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A namespace of 1000 sectors in format 1 of two: 4096 bytes.
    fn namespace() -> Vec<u8> {
        let mut data = vec![0; 4096];
        data[..8].copy_from_slice(&1000_u64.to_le_bytes());
        (data[25], data[26], data[130], data[134]) = (1, 1, 9, 12);
        data
    }

    /// A controller with a cache, transfers of 128 KiB, and both optional commands.
    fn controller() -> Vec<u8> {
        let mut data = vec![0; 4096];
        data[24..64].fill(b' ');
        data[24..29].copy_from_slice(b"Model");
        (data[77], data[520], data[525]) = (5, 0b1100, 1);
        data
    }

    #[test]
    fn facts_come_from_their_fields() {
        let facts = parse(&namespace(), &controller(), None).unwrap();
        let expected = Facts {
            size: 1000,
            sector: 4096,
            write_protected: false,
            volatile_cache: true,
            transfer: 128 << 10,
            deallocates: Some(u64::from(u32::MAX)),
            zeroes: Some(65536),
            model: "Model".into(),
        };
        assert_eq!(facts, expected);
        let mut of_set = vec![0; 4096];
        (of_set[1], of_set[5]) = (4, 1);
        let facts = parse(&namespace(), &controller(), Some(&of_set)).unwrap();
        assert_eq!((facts.zeroes, facts.deallocates), (Some(16), Some(256)));
        let mut plain = controller();
        (plain[77], plain[520], plain[525]) = (0, 0, 0);
        let mut small = namespace();
        (small[26], small[99]) = (0, 1);
        let facts = parse(&small, &plain, None).unwrap();
        assert_eq!((facts.sector, facts.transfer, facts.volatile_cache), (512, 32 << 20, false));
        assert!(facts.write_protected && facts.deallocates.is_none() && facts.zeroes.is_none());
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_numbers() {
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut data = namespace();
            change(&mut data);
            match parse(&data, &controller(), None) {
                Err(Unfit::Reason(reason)) => reason,
                other => panic!("{other:?}"),
            }
        };
        assert!(refused(|data| data[134] = 16).contains("2^16 bytes"));
        assert!(refused(|data| data[134] = 0).contains("2^0 bytes"));
        assert!(refused(|data| data[132] = 8).contains("8 bytes of metadata"));
        assert!(refused(|data| data[26] = 7).contains("format 7"));
        assert!(refused(|data| data[..8].fill(0xff)).contains("more than can be"));
        // A transfer that no shift can say.
        let mut wild = controller();
        wild[77] = 255;
        assert_eq!(parse(&namespace(), &wild, None).unwrap().transfer, 65536 * 4096);
    }

    #[test]
    fn the_command_set_is_one_of_the_descriptors() {
        let mut data = vec![0; 4096];
        assert_eq!(command_set(&data), NVM);
        (data[0], data[1]) = (3, 16);
        (data[20], data[21], data[24]) = (4, 1, ZONED);
        assert_eq!(command_set(&data), ZONED);
        data[1] = 255;
        data[259] = 1;
        assert_eq!(command_set(&data), NVM);
        assert_eq!(command_set(&[4, 9, 0, 0, 2]), NVM);
    }
}
