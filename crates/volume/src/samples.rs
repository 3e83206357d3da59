//! Volumes in memory for the tests of this crate, with segments of which a test knows what is in use.
#![allow(clippy::unwrap_used)] // what fails here is a failed test

use core::ops::Range;

use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, ZoneLayout, ZonedDevice};
use f2fs_format::feature::Features;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType};
use f2fs_segment::SegmentManager;
use f2fs_sync::PlainArc;

use crate::format::{FormatOptions, format};
use crate::tree::Slot;
use crate::{Flight, NewNode, Node, Volume, VolumeOptions};

/// A new inode, of no kind.
pub(crate) const INODE: NewNode = NewNode { ino: None, offset: 0, directory: false };

/// A new volume on a device, with one lane.
pub(crate) fn made(device: PlainArc<dyn BlockDevice>, options: &FormatOptions) -> Volume {
    format(&*device, options).unwrap();
    Volume::open(device, &VolumeOptions::new().lanes(1)).unwrap()
}

/// A new volume of so many MiB.
pub(crate) fn plain(mib: u64) -> Volume {
    made(PlainArc::new(MemoryDevice::new(mib << 8)), &FormatOptions::default())
}

/// A device with so many zones of so many segments, of which the first few are conventional.
pub(crate) fn zones(count: u64, segments: u64) -> PlainArc<ZonedDevice<MemoryDevice>> {
    let blocks = segments * u64::from(BLOCKS_PER_SEGMENT);
    let layout = ZoneLayout::new(blocks).with_conventional(if segments == 1 { 8 } else { 6 });
    PlainArc::new(ZonedDevice::new(MemoryDevice::new(count * blocks), layout).unwrap())
}

/// A new volume on so many zones of so many segments.
pub(crate) fn zoned(count: u64, segments: u64) -> Volume {
    made(zones(count, segments), &FormatOptions::default().with_features(Features::BLKZONED))
}

/// The segments of a volume that is open for writing.
pub(crate) fn segments(volume: &Volume) -> &SegmentManager {
    volume.segments.manager().unwrap()
}

/// Takes free sections away, until so many are left.
pub(crate) fn leave_free(volume: &Volume, sections: u32) {
    let all = segments(volume);
    for section in 0..volume.geometry.sections {
        if all.free_sections() > sections && all.is_section_free(section) {
            all.retire_section(section);
        }
    }
    assert_eq!(all.free_sections(), sections);
}

/// A new inode.
pub(crate) fn inode(volume: &Volume) -> Node {
    volume.nodes().create(&volume.begin().unwrap(), INODE).unwrap()
}

/// The content that [`write`] gives a slot of a node.
pub(crate) fn content(node: &Node, slot: usize) -> [u8; 8] {
    (u64::from(node.nid().0) << 32 | slot as u64).to_le_bytes()
}

/// Writes the blocks that some slots of a node name.
pub(crate) fn write(volume: &Volume, node: &Node, slots: Range<usize>, log: LogType) {
    let op = volume.begin().unwrap();
    let mut data = AlignedBuf::new(slots.len());
    for (at, slot) in slots.clone().enumerate() {
        data.block_mut(at)[..8].copy_from_slice(&content(node, slot));
    }
    let holes = slots.clone().filter(|slot| address(volume, node, *slot).is_null()).count() as u64;
    volume.data().reserve(&op, holes).unwrap();
    let places = slots.map(|index| Slot { node: node.clone(), index });
    Flight::begin_blocks(&op, log, places, data, 0).unwrap().land_slots(&op, |_, _| {}).unwrap();
}

/// The block that a slot names.
pub(crate) fn address(volume: &Volume, node: &Node, slot: usize) -> BlockAddr {
    node.read().address(slot, volume.features()).unwrap()
}

/// Whether slots of a node name what was written there.
pub(crate) fn assert_content(volume: &Volume, node: &Node, slots: Range<usize>) {
    for slot in slots {
        let mut buf = AlignedBuf::new(1);
        volume.data().read(node.nid(), address(volume, node, slot), &mut buf).unwrap();
        assert_eq!(buf.as_bytes()[..8], content(node, slot), "{slot}");
    }
}

/// A segment of the warm log of which so many blocks are in use: those that the first slots of a new inode name.
pub(crate) fn segment(volume: &Volume, valid: usize) -> Node {
    let node = inode(volume);
    let all = BLOCKS_PER_SEGMENT as usize;
    write(volume, &node, 0..all, LogType::WarmData);
    volume.slots().clear(&volume.begin().unwrap(), &node, valid..all, |_, _| {}).unwrap();
    node
}
