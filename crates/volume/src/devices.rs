//! Volumes on several devices: the devices that the superblock names, and whether the given ones are the same.
//!
//! The superblock, on the first device, has a path and a size for each. A path is a hint, since devices get other
//! names; nothing on the other devices says whose they are. So sizes are compared, and nodes that lie on a device are
//! looked at: a block of a node has its number. One mistake stays unseen: devices of one size that hold nothing but
//! data of files, in each other's place. The format has no mark on them.
//!
//! No locks: nothing here is shared.

use f2fs_device::{BlockDevice, DeviceInfo, SpanError, SpannedDevice};
use f2fs_format::node::NodeBlock;
use f2fs_format::superblock::{SuperBlock, VolumeDevice};
use f2fs_format::{BLOCKS_PER_SEGMENT, Corruption, Nid};
use f2fs_nat::{Nat, NatEntry};
use f2fs_sync::PlainArc;

use crate::VolumeError;
use crate::blocks::read_block;
use crate::superblock::LoadedSuperblock;

/// Nodes of a device that are looked at.
const NODES: usize = 4;
/// Node identifiers that are looked through for them: 64 blocks of the NAT.
const NIDS: usize = 64 * 455;

/// Why the devices of a volume were not put together. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError<E> {
    /// The first device does not belong to a volume.
    #[error(transparent)]
    Volume(Box<VolumeError>),
    /// A device could not be opened.
    #[error(
        "device {device} of {devices}, recorded as {}, cannot be opened: {source}",
        String::from_utf8_lossy(recorded).escape_debug()
    )]
    Open {
        /// Which one, counted from 0.
        device: usize,
        /// How many there are.
        devices: usize,
        /// The path in the superblock.
        recorded: Vec<u8>,
        /// The error of the opener.
        source: E,
    },
    /// Another number of devices was given.
    #[error("{}", describe_count(*.given, recorded))]
    Count {
        /// How many were given besides the first.
        given: usize,
        /// The paths in the superblock of those besides the first.
        recorded: Vec<Vec<u8>>,
    },
    /// A device is too short, is given twice, or somebody has it open.
    #[error(transparent)]
    Span(#[from] SpanError),
}

fn describe_count(given: usize, recorded: &[Vec<u8>]) -> String {
    let names: Vec<_> = recorded.iter().map(|path| String::from_utf8_lossy(path).escape_debug().to_string()).collect();
    match recorded.len() {
        0 => format!("the volume lies on one device, and {given} more were given"),
        others => format!(
            "the volume lies on {} devices, and {given} of the {others} others were given; when it was made they were {}",
            others + 1,
            names.join(", ")
        ),
    }
}

/// Reads both superblocks and takes the first good one, of a volume that lies on this device as a whole.
pub(crate) fn load_superblock(device: &dyn BlockDevice) -> Result<LoadedSuperblock, VolumeError> {
    let loaded = LoadedSuperblock::copies(device)?;
    check_parts(&loaded.raw, device.info())?;
    let blocks = device.info().blocks;
    let main_end = u64::from(loaded.geometry.main_end().0);
    // On several devices the volume's count of blocks has those behind the last segment of each, which are not used.
    let several = !device.info().parts.is_empty();
    let end = if several { main_end } else { loaded.geometry.block_count.max(main_end) };
    if end > blocks {
        return Err(VolumeError::Truncated { volume: end, device: blocks });
    }
    Ok(loaded)
}

/// Puts the devices of a volume together: the first, and so many others. `open` is called for each of these, with its
/// number and its record in the superblock. A volume on one device is that device.
///
/// The superblock's paths are not opened by themselves: they stand in an image that anyone may have made, and would let
/// it name any file of this machine.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice};
/// use f2fs_sync::PlainArc;
/// use f2fs_volume::{VolumeOptions, Volume, devices, format};
///
/// let disks: [PlainArc<dyn BlockDevice>; 2] = [1 << 14, 1 << 15].map(|blocks| PlainArc::new(MemoryDevice::new(blocks)) as _);
/// let options = format::FormatOptions::default().with_device_paths(["/dev/a", "/dev/b"]);
/// format::format(&devices::whole(disks.to_vec())?, &options)?;
///
/// let volume = devices::assemble(disks[0].clone(), 1, |index, device| {
///     assert_eq!(device.path, b"/dev/b");
///     Ok::<_, std::io::Error>(disks[index].clone())
/// })?;
/// Volume::open(volume, &VolumeOptions::new())?;
/// assert!(Volume::open(disks[0].clone(), &VolumeOptions::new()).is_err(), "one of two");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`DevicesError`].
pub fn assemble<E>(
    first: PlainArc<dyn BlockDevice>,
    others: usize,
    mut open: impl FnMut(usize, &VolumeDevice) -> Result<PlainArc<dyn BlockDevice>, E>,
) -> Result<PlainArc<dyn BlockDevice>, DevicesError<E>> {
    let recorded = LoadedSuperblock::copies(&*first)
        .and_then(|loaded| Ok(loaded.raw.devices()?))
        .map_err(|error| DevicesError::Volume(Box::new(error)))?;
    if recorded.len().max(1) - 1 != others {
        let recorded = recorded.into_iter().skip(1).map(|device| device.path).collect();
        return Err(DevicesError::Count { given: others, recorded });
    }
    if others == 0 {
        return Ok(first);
    }
    let mut devices = vec![(first, recorded[0].blocks)];
    for (index, device) in recorded.iter().enumerate().skip(1) {
        let opened = open(index, device).map_err(|source| DevicesError::Open {
            device: index,
            devices: recorded.len(),
            recorded: device.path.clone(),
            source,
        })?;
        devices.push((opened, device.blocks));
    }
    Ok(PlainArc::new(SpannedDevice::new(devices)?))
}

/// Devices for a new volume, each as far as it has whole segments (2 MiB; in front of a device with zones the first one
/// as a whole), as [`format`](crate::format::format()) takes them.
///
/// # Errors
/// [`SpanError`].
pub fn whole(devices: Vec<PlainArc<dyn BlockDevice>>) -> Result<SpannedDevice, SpanError> {
    let segment = u64::from(BLOCKS_PER_SEGMENT);
    // A volume on zones begins so far behind the start of the first device that its segments end where that ends.
    let zoned = devices.len() > 1 && devices.iter().any(|device| device.info().zones.is_some());
    let part = |(index, device): (usize, PlainArc<dyn BlockDevice>)| {
        let blocks = device.info().blocks;
        let rest = if index == 0 && zoned { 0 } else { blocks % segment };
        (device, blocks - rest)
    };
    SpannedDevice::new(devices.into_iter().enumerate().map(part).collect())
}

/// Whether a device has the parts that a superblock names.
pub(crate) fn check_parts(superblock: &SuperBlock, info: &DeviceInfo) -> Result<(), VolumeError> {
    let expected: Vec<u64> = superblock.devices()?.iter().map(|device| device.blocks).collect();
    let found: Vec<u64> = info.parts.iter().map(|(used, _)| *used).collect();
    if expected.len().max(found.len()) > 1 && expected != found {
        return Err(VolumeError::Devices { expected, found });
    }
    Ok(())
}

/// Whether nodes that lie on each device but the first are there. On a device that holds no node, or none of the first
/// NIDs, nothing can be looked at.
pub(crate) fn check_nodes(nat: &Nat, device: &dyn BlockDevice) -> Result<(), VolumeError> {
    let parts = &device.info().parts;
    let Some(((first, _), others)) = parts.split_first() else { return Ok(()) };
    let mut found: Vec<Vec<(Nid, NatEntry)>> = vec![Vec::new(); others.len()];
    let borders: Vec<u64> = others
        .iter()
        .scan(*first, |end, (blocks, _)| {
            *end += blocks;
            Some(*end)
        })
        .collect();
    for used in nat.used().take(NIDS) {
        let (nid, entry) = used?;
        let addr = u64::from(entry.addr.0);
        let place = borders.partition_point(|end| *end <= addr);
        if let Some(nodes) = found.get_mut(place).filter(|nodes| addr >= *first && nodes.len() < NODES) {
            nodes.push((nid, entry));
        }
        if found.iter().all(|nodes| nodes.len() == NODES) {
            break;
        }
    }
    for (index, nodes) in found.iter().enumerate() {
        for (nid, entry) in nodes {
            let block = read_block(device, entry.addr)?;
            let footer = &NodeBlock::read(block.block(0)).footer;
            if (footer.nid.get(), footer.ino.get()) != (nid.0, entry.ino.0) {
                return Err(VolumeError::ForeignDevice {
                    device: index + 1,
                    source: Corruption::Node {
                        nid: *nid,
                        addr: entry.addr,
                        what: "node of the footer",
                        expected: nid.0.into(),
                        found: footer.nid.get().into(),
                    },
                });
            }
        }
    }
    Ok(())
}

/// The bytes of each device of a new volume, and the block at which each begins in the whole.
pub(crate) fn sizes(info: &DeviceInfo) -> Vec<(u64, u64)> {
    if info.parts.is_empty() {
        return vec![(info.bytes(), 0)];
    }
    let mut start = 0;
    let size = |(used, has): &(u64, u64)| {
        let at = start;
        start += used;
        (has.saturating_mul(f2fs_format::BLOCK_SIZE as u64), at)
    };
    info.parts.iter().map(size).collect()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
