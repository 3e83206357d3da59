#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{AlignedBuf, MemoryDevice, ZoneLayout, ZonedDevice};
use f2fs_format::LogType;

use super::*;
use crate::format::{FormatOptions, FormatVolumeError, format};
use crate::samples::{inode, segments};
use crate::{Node, Volume, VolumeOptions};

type Disk = PlainArc<dyn BlockDevice>;

/// Devices of so many blocks.
fn disks(blocks: &[u64]) -> Vec<Disk> {
    blocks.iter().map(|blocks| PlainArc::new(MemoryDevice::new(*blocks)) as Disk).collect()
}

/// All of them together.
fn all(disks: &[Disk]) -> Disk {
    PlainArc::new(whole(disks.to_vec()).unwrap())
}

/// Devices of so many blocks with a new volume on them.
fn formatted(blocks: &[u64]) -> Vec<Disk> {
    let disks = disks(blocks);
    let paths: Vec<String> = (0..blocks.len()).map(|index| format!("/dev/{index}")).collect();
    let options = FormatOptions::default();
    let options = if blocks.len() > 1 { options.with_device_paths(paths) } else { options };
    format(&*all(&disks), &options).unwrap();
    disks
}

fn assembled(disks: &[Disk], others: usize) -> Result<Disk, DevicesError<&'static str>> {
    assemble(disks[0].clone(), others, |index, _| disks.get(index).cloned().ok_or("it is not there"))
}

fn open(device: Disk) -> Result<Volume, VolumeError> {
    Volume::open(device, &VolumeOptions::new().lanes(1))
}

const MIB: u64 = 256;

#[test]
fn as_many_devices_as_the_superblock_names_are_put_together() {
    let three = formatted(&[64 * MIB + 100, 32 * MIB + 77, 32 * MIB]);
    let volume = assembled(&three, 2).unwrap();
    assert_eq!(volume.info().parts, [(64 * MIB, 64 * MIB + 100), (32 * MIB, 32 * MIB + 77), (32 * MIB, 32 * MIB)]);
    drop(open(volume).unwrap());
    for given in [0, 1, 3] {
        let error = assembled(&three, given).unwrap_err().to_string();
        let said = format!(
            "the volume lies on 3 devices, and {given} of the 2 others were given; when it was made they were /dev/1, /dev/2"
        );
        assert_eq!(error, said);
    }
    let error = assembled(&three[..2], 2).unwrap_err().to_string();
    assert_eq!(error, "device 2 of 3, recorded as /dev/2, cannot be opened: it is not there");

    let one = formatted(&[64 * MIB]);
    let device = assembled(&one, 0).unwrap();
    assert!(device.info().parts.is_empty());
    drop(open(device).unwrap());
    drop(open(all(&one)).unwrap());
    let error = assembled(&one, 1).unwrap_err().to_string();
    assert_eq!(error, "the volume lies on one device, and 1 more were given");
    assert!(matches!(assembled(&disks(&[MIB]), 0), Err(DevicesError::Volume(_))));
}

#[test]
fn a_volume_is_opened_on_the_devices_that_it_names() {
    let two = formatted(&[64 * MIB, 32 * MIB]);
    let wrong = |device: Disk| match open(device).unwrap_err() {
        VolumeError::Devices { expected, found } => (expected, found),
        error => panic!("{error}"),
    };
    let expected = vec![64 * MIB, 32 * MIB];
    assert_eq!(wrong(two[0].clone()), (expected.clone(), vec![]));
    assert_eq!(wrong(all(&two[..1])), (expected.clone(), vec![64 * MIB]));
    let other = [two[0].clone(), disks(&[16 * MIB]).remove(0)];
    assert_eq!(wrong(all(&other)), (expected.clone(), vec![64 * MIB, 16 * MIB]));
    let more = [two[0].clone(), two[1].clone(), disks(&[MIB * 2]).remove(0)];
    assert_eq!(wrong(all(&more)), (expected, vec![64 * MIB, 32 * MIB, 2 * MIB]));
    let one = [formatted(&[64 * MIB]).remove(0), two[1].clone()];
    assert_eq!(wrong(all(&one)), (vec![], vec![64 * MIB, 32 * MIB]));
    drop(open(all(&two)).unwrap());
}

/// The first so many blocks of a device.
fn cut(device: &Disk, blocks: u64) -> Disk {
    let copy = MemoryDevice::new(blocks);
    let front = device.read(0, blocks.min(20 * MIB) as usize).unwrap();
    copy.write_slice(0, front.as_bytes()).unwrap();
    PlainArc::new(copy)
}

#[test]
fn a_volume_that_is_cut_off_is_refused() {
    // The superblock counts what is left behind the last segment.
    let disk = formatted(&[64 * MIB + 300]).remove(0);
    let geometry = load_superblock(&*disk).unwrap().geometry;
    assert!(geometry.block_count > geometry.main_end().0.into());
    assert!(load_superblock(&*cut(&disk, geometry.block_count)).is_ok());
    for blocks in [geometry.block_count - 1, geometry.main_end().0.into()] {
        let Err(VolumeError::Truncated { volume, device }) = load_superblock(&*cut(&disk, blocks)) else {
            panic!("{blocks}")
        };
        assert_eq!((volume, device), (geometry.block_count, blocks));
    }
    assert!(matches!(load_superblock(&*cut(&disk, 1)), Err(VolumeError::Truncated { volume: 2, device: 1 })));
}

#[test]
fn devices_end_with_whole_segments() {
    let zoned =
        |blocks| PlainArc::new(ZonedDevice::new(MemoryDevice::new(blocks), ZoneLayout::new(1024)).unwrap()) as Disk;
    let plain = |blocks: u64| disks(&[blocks]).remove(0);
    let used =
        |devices: Vec<Disk>| whole(devices).unwrap().info().parts.iter().map(|(used, _)| *used).collect::<Vec<_>>();
    assert_eq!(used(vec![plain(2148), plain(1125)]), [2048, 1024]);
    // In front of zones the first one is used as a whole.
    assert_eq!(used(vec![plain(2148), zoned(4096)]), [2148, 4096]);
    assert_eq!(used(vec![plain(2148), plain(1125), zoned(4096)]), [2148, 1024, 4096]);
    assert_eq!(whole(vec![zoned(4096 + 100)]).unwrap().info().blocks, 4096);
}

#[test]
fn what_is_on_any_device_is_found_by_a_format() {
    let three = disks(&[64 * MIB, 32 * MIB, 32 * MIB]);
    assert_eq!(sizes(all(&three).info()), [(64 << 20, 0), (32 << 20, 64 * MIB), (32 << 20, 96 * MIB)]);
    assert_eq!(sizes(three[0].info()), [(64 << 20, 0)]);
    three[2].write_slice(0, b"XFSB").unwrap();
    let options = FormatOptions::default().with_device_paths(["/dev/0", "/dev/1", "/dev/2"]);
    let error = format(&*all(&three), &options).unwrap_err();
    assert!(matches!(error, FormatVolumeError::Exists { device: 2, .. }), "{error}");
}

/// A volume on three devices with six nodes on one of them, in the order of their numbers, and their addresses.
fn with_nodes_on(device: usize) -> (Vec<Disk>, Vec<(Nid, u64)>) {
    let three = formatted(&[64 * MIB, 32 * MIB, 32 * MIB]);
    let volume = open(all(&three)).unwrap();
    let ends = [64 * MIB, 96 * MIB, 128 * MIB];
    let manager = segments(&volume);
    for section in 0..volume.geometry.sections {
        let first = u64::from(volume.geometry.block_at(f2fs_format::SegmentNo(section), 0).0);
        if ends.partition_point(|end| *end <= first) != device {
            manager.retire_section(section);
        }
    }
    // The log of nodes goes on there.
    let next = manager.next_block(LogType::WarmNode);
    assert_eq!(manager.leave_zones(|addr| addr == next).unwrap(), 1);
    let nodes: Vec<Node> = (0..6).map(|_| inode(&volume)).collect();
    volume.checkpoints().write(crate::Reason::Sync).unwrap();
    let mut found: Vec<(Nid, u64)> =
        nodes.iter().map(|node| (node.nid(), volume.nat.get(node.nid()).unwrap().addr.0.into())).collect();
    found.sort();
    drop(nodes);
    volume.close().unwrap();
    (three, found)
}

/// Devices of one size in each other's place: nodes that should be there are not.
#[test]
fn a_device_without_its_nodes_is_refused() {
    for device in [1, 2] {
        let (disks, nodes) = with_nodes_on(device);
        let start = [0, 64 * MIB, 96 * MIB][device];
        assert!(nodes.iter().any(|(_, addr)| *addr == start), "one stands at the border: {nodes:?}");
        drop(open(all(&disks)).unwrap());
        for (at, (nid, addr)) in nodes.iter().enumerate() {
            let block = disks[device].read(addr - start, 1).unwrap();
            disks[device].write(addr - start, AlignedBuf::new(1)).unwrap();
            match open(all(&disks)) {
                // Four of them are looked at.
                Ok(_) => assert!(at >= 4, "{at}"),
                Err(VolumeError::ForeignDevice { device: said, source: Corruption::Node { nid: found, .. } }) => {
                    assert_eq!((said, found, at < 4), (device, *nid, true));
                }
                Err(error) => panic!("{error}"),
            }
            disks[device].write(addr - start, block).unwrap();
        }
        // The inode that a number is of has to be right as well.
        let (_, addr) = nodes[0];
        let mut block = disks[device].read(addr - start, 1).unwrap();
        let mut node = Box::new(*NodeBlock::read(block.block(0)));
        node.footer.ino = 77.into();
        *block.block_mut(0) = *node.as_block();
        disks[device].write(addr - start, block).unwrap();
        assert!(matches!(open(all(&disks)), Err(VolumeError::ForeignDevice { .. })));
    }
}

/// On the first device, which has the superblock, a node that is damaged is that node's trouble.
#[test]
fn nodes_of_the_first_device_are_not_looked_at() {
    let (disks, nodes) = with_nodes_on(0);
    for (_, addr) in &nodes {
        disks[0].write(*addr, AlignedBuf::new(1)).unwrap();
    }
    drop(open(all(&disks)).unwrap());
}
