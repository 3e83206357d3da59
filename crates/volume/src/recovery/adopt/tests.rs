#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_format::BLOCKS_PER_SEGMENT;
use f2fs_format::inode::mode;
use f2fs_sync::PlainArc;

use super::*;
use crate::format::FormatOptions;
use crate::tree::Slot;
use crate::{Flight, NewNode, Reason, Volume, VolumeOptions};

fn volume() -> Volume {
    let device = PlainArc::new(MemoryDevice::new((64 << 20) >> 12));
    Volume::format(&*device, &FormatOptions::default()).unwrap();
    Volume::open(device, &VolumeOptions::new().lanes(1)).unwrap()
}

fn counts(volume: &Volume) -> (u64, u64, u64) {
    let stat = volume.stat();
    (stat.valid_nodes, stat.valid_inodes, stat.valid_blocks)
}

/// An inode as the chain has it.
fn synced(kind: u16) -> Box<NodeBlock> {
    let mut block = NodeBlock::new_box();
    block.inode_mut().i_mode = (kind | 0o600).into();
    block.inode_mut().i_uid = 5.into();
    // Of another number, with the marks and the version of its sync.
    (block.footer.nid, block.footer.ino, block.footer.cp_ver) = (77.into(), 78.into(), 9.into());
    block.footer.set_node_offset(3);
    block.footer.set_mark(mark::FSYNC, true);
    block
}

#[test]
fn an_inode_of_the_chain_becomes_one_of_the_volume() {
    let volume = volume();
    let before = counts(&volume);
    volume.recovery().begin().unwrap();
    for (number, kind, is_cold) in [(40, mode::REGULAR, true), (41, mode::DIRECTORY, false), (42, mode::SYMLINK, true)]
    {
        let ino = Nid(number);
        let op = volume.begin().unwrap();
        assert!(!volume.recovery().has_node(ino).unwrap());
        let node = volume.recovery().adopt_inode(&op, ino, synced(kind)).unwrap();
        assert!(volume.recovery().has_node(ino).unwrap() && volume.nodes().is_inode(ino).unwrap());
        let block = node.read();
        assert_eq!((block.nid(), block.ino(), block.footer.node_offset()), (ino, ino, 0));
        assert_eq!((block.footer.cp_ver.get(), block.inode().i_uid.get()), (0, 5));
        assert_eq!((block.footer.has_mark(mark::FSYNC), block.footer.has_mark(mark::COLD)), (false, is_cold));
        drop(block);
        let taken = volume.recovery().adopt_inode(&op, ino, synced(kind)).unwrap_err();
        assert!(matches!(taken, VolumeError::Corrupt(Corruption::Mismatch { expected: 0, found: 1, .. })), "{taken}");
    }
    assert_eq!(counts(&volume), (before.0 + 3, before.1 + 3, before.2 + 3));
    volume.recovery().end();
    assert_eq!(volume.checkpoints().write(Reason::Sync).unwrap().nodes, 3);
    volume.nodes().drop_unused();
    volume.nodes().drop_unused();
    assert_eq!(volume.nodes().get(Nid(41)).unwrap().read().inode().i_uid.get(), 5);
}

#[test]
fn an_inode_that_finds_no_room_leaves_its_number() {
    let volume = volume();
    let (before, op) = (counts(&volume), volume.begin().unwrap());
    let room = volume.stat().user_blocks - before.2;
    volume.data().reserve(&op, room).unwrap();
    let refused = volume.recovery().adopt_inode(&op, Nid(40), synced(mode::REGULAR)).unwrap_err();
    assert!(matches!(refused, VolumeError::NoSpace { .. }), "{refused}");
    volume.data().unreserve(&op, room);
    assert_eq!(counts(&volume), before);
    volume.recovery().adopt_inode(&op, Nid(40), synced(mode::REGULAR)).unwrap();
}

/// A new inode with so many blocks.
fn with_blocks(volume: &Volume, blocks: usize) -> Node {
    let op = volume.begin().unwrap();
    let node = volume.nodes().create(&op, NewNode { ino: None, offset: 0, directory: false }).unwrap();
    let slots = (0..blocks).map(|index| Slot { node: node.clone(), index });
    let flight = Flight::begin_blocks(&op, LogType::WarmData, slots, AlignedBuf::new(blocks), blocks as u64).unwrap();
    flight.land_slots(&op, |_, _| {}).unwrap();
    node
}

#[test]
fn a_block_has_an_owner_if_it_is_data_and_in_use() {
    let volume = volume();
    let all = BLOCKS_PER_SEGMENT as usize;
    let node = with_blocks(&volume, all + 1);
    volume.checkpoints().write(Reason::Sync).unwrap();
    let recovery = volume.recovery();
    let slot = |index| Slot { node: node.clone(), index }.get(&volume);
    // One of a segment that the log has left, and one of where it stands.
    for index in [0, all - 1, all] {
        let owner = recovery.owner_of(slot(index)).unwrap().unwrap();
        assert_eq!((owner.nid.get(), usize::from(owner.ofs_in_node.get())), (node.nid().0, index));
        assert!(recovery.is_in_use(slot(index)).unwrap());
    }
    let behind = slot(all).offset(1);
    assert!(!recovery.is_in_use(behind).unwrap());
    let of_node = volume.nat.get(node.nid()).unwrap().addr;
    for addr in [behind, of_node, BlockAddr(1), volume.geometry.main_end(), BlockAddr::NEW] {
        assert_eq!(recovery.owner_of(addr).unwrap(), None, "{addr}");
    }
}

#[test]
fn a_synced_block_is_taken_into_use_once() {
    let volume = volume();
    let node = with_blocks(&volume, 1);
    let used = Slot { node: node.clone(), index: 0 }.get(&volume);
    // Of a segment that nobody has, and of those behind the volume.
    let free = BlockAddr(volume.geometry.main_end().0 - 5);
    let version = volume.nodes().version(node.nid()).unwrap();
    let adopt = |addr| {
        let op = volume.begin().unwrap();
        volume.recovery().adopt_block(&op, addr, Summary::new(node.nid(), version, 9))
    };
    let outside = [volume.geometry.main_end(), BlockAddr(1)];
    volume.recovery().hold(&[free, outside[0], outside[1]]).unwrap();
    volume.recovery().begin().unwrap();
    adopt(free).unwrap();
    assert!(volume.recovery().is_in_use(free).unwrap());
    let owner = volume.recovery().owner_of(free).unwrap().unwrap();
    assert_eq!((owner.nid.get(), owner.ofs_in_node.get()), (node.nid().0, 9));
    for addr in [free, used] {
        let refused = adopt(addr).unwrap_err();
        assert!(matches!(refused, VolumeError::Corrupt(Corruption::Block { addr: at, .. }) if at == addr), "{refused}");
    }
    volume.recovery().end();
}

/// Until a checkpoint is durable it may be needed once more.
#[test]
fn a_block_of_the_chain_is_not_written() {
    let volume = volume();
    let next = volume.segments.next_block(LogType::WarmData);
    volume.recovery().hold(&[next.offset(3)]).unwrap();
    volume.recovery().begin().unwrap();
    let node = with_blocks(&volume, 40);
    let (segment, _) = volume.geometry.locate(next).unwrap();
    for index in 0..40 {
        let addr = Slot { node: node.clone(), index }.get(&volume);
        assert_ne!(volume.geometry.locate(addr).unwrap().0, segment);
    }
    volume.recovery().end();
}
