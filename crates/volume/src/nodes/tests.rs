#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_format::feature::Features;
use f2fs_format::node::XATTR_NODE_OFFSET;

use super::*;
use crate::format::FormatOptions;
use crate::{Reason, VolumeOptions};

const INODE: NewNode = NewNode { ino: None, offset: 0, directory: false };

fn open(options: &FormatOptions) -> (Arc<FaultDevice>, Volume) {
    let device = MemoryDevice::new((64 << 20) >> 12);
    Volume::format(&device, options).unwrap();
    let device = Arc::new(FaultDevice::new(Arc::new(device)));
    let volume = Volume::open(device.clone(), &VolumeOptions::new()).unwrap();
    (device, volume)
}

fn fresh() -> (Arc<FaultDevice>, Volume) {
    open(&FormatOptions::default())
}

fn create(volume: &Volume, new: NewNode) -> Nid {
    volume.nodes().create(&volume.begin().unwrap(), new).unwrap().nid()
}

/// An inode and a node of it, of which nothing is in memory.
fn written() -> (Arc<FaultDevice>, Volume, Nid, Nid) {
    let (device, volume) = fresh();
    let ino = create(&volume, INODE);
    let nid = create(&volume, NewNode { ino: Some(ino), offset: XATTR_NODE_OFFSET, directory: false });
    volume.checkpoints().write(Reason::Sync).unwrap();
    forget(&volume);
    (device, volume, ino, nid)
}

fn forget(volume: &Volume) {
    (0..2).for_each(|_| volume.nodes().drop_unused());
    assert_eq!(volume.store.len(), 0);
}

#[test]
fn nodes_are_found_where_they_were_written() {
    let (device, volume, ino, nid) = written();
    for prefetched in [false, true] {
        if prefetched {
            volume.nodes().prefetch(&[ino, Nid(0), Nid(u32::MAX), nid, ino]);
            device.arm(FaultRule::on([Operation::Read]).for_good());
        }
        let found = [ino, nid].map(|nid| volume.nodes().get(nid).unwrap());
        assert_eq!(
            found.map(|node| (node.nid(), node.ino(), node.read().footer.node_offset())),
            [(ino, ino, 0), (nid, ino, XATTR_NODE_OFFSET)]
        );
        forget(&volume);
    }
    // What could not be read ahead is read later.
    volume.nodes().prefetch(&[ino]);
    assert!(volume.nodes().get(ino).is_err());
    device.disarm();
    volume.nodes().get(ino).unwrap();
}

#[test]
fn a_block_that_is_not_the_node_is_refused() {
    let changes: [fn(&mut NodeBlock); 3] = [
        |block| block.footer.nid = (block.footer.nid.get() + 1).into(),
        |block| block.footer.ino = (block.footer.ino.get() + 1).into(),
        |block| block.footer.set_node_offset(1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (device, volume, ino, _) = written();
        let addr = u64::from(volume.nat.get(ino).unwrap().addr.0);
        let whole = device.read(addr, 1).unwrap();
        let mut block = Box::new(*NodeBlock::read(whole.block(0)));
        change(&mut block);
        device.write_slice(addr, block.as_block()).unwrap();
        for _ in 0..2 {
            let refused = volume.nodes().get(ino).unwrap_err();
            assert!(matches!(refused, VolumeError::Corrupt(Corruption::Node { nid, .. }) if nid == ino), "{number}");
            // Nor is it kept for those who look in memory.
            volume.nodes().prefetch(&[ino]);
            assert_eq!(volume.store.len(), 0);
        }
        device.write(addr, whole).unwrap();
        volume.nodes().get(ino).unwrap();
    }
    let (_, volume, ..) = written();
    for nid in [Nid(0), Nid(1000), Nid(volume.geometry.max_nid())] {
        assert!(volume.nodes().get(nid).is_err(), "{nid}");
    }
}

#[test]
fn inodes_are_checked_by_their_checksums() {
    let options = FormatOptions::default().with_features(Features(Features::EXTRA_ATTR.0 | Features::INODE_CHECKSUM.0));
    let (device, volume) = open(&options);
    let root = volume.geometry.root_ino;
    let new = NewNode { ino: Some(root), offset: XATTR_NODE_OFFSET, directory: true };
    let xattr = create(&volume, new);
    {
        let op = volume.begin().unwrap();
        // Bytes that would say in an inode that it has a checksum.
        volume.nodes().get(xattr).unwrap().write(&op).body.fill(0xff);
        volume.nodes().get(root).unwrap().write(&op).inode_mut().i_uid = 5.into();
    }
    volume.checkpoints().write(Reason::Sync).unwrap();
    forget(&volume);
    assert_eq!(volume.nodes().get(root).unwrap().read().inode().i_uid.get(), 5);
    volume.nodes().get(xattr).unwrap();
    forget(&volume);
    let addr = u64::from(volume.nat.get(root).unwrap().addr.0);
    let mut block = Box::new(*NodeBlock::read(device.read(addr, 1).unwrap().block(0)));
    block.inode_mut().i_uid = 6.into();
    device.write_slice(addr, block.as_block()).unwrap();
    let refused = volume.nodes().get(root).unwrap_err();
    assert!(matches!(refused, VolumeError::Corrupt(Corruption::Node { what: "inode checksum", .. })), "{refused}");
}

#[test]
fn numbers_of_inodes_are_told_from_others() {
    let (_, volume, ino, nid) = written();
    let new = create(&volume, INODE);
    let root = volume.geometry.root_ino;
    let is_inode = |nid| volume.nodes().is_inode(nid).unwrap();
    let none = [Nid(0), Nid(root.0 - 1), nid, Nid(1000), Nid(volume.geometry.max_nid()), Nid(u32::MAX)];
    for _ in 0..2 {
        assert!([root, ino, new].into_iter().all(is_inode));
        assert!(!none.into_iter().any(is_inode));
        // The same from memory.
        [root, ino, nid].iter().for_each(|nid| drop(volume.nodes().get(*nid).unwrap()));
    }
    let node = volume.nodes().get(ino).unwrap();
    let before = volume.nodes().version(ino).unwrap();
    volume.nodes().remove(&volume.begin().unwrap(), &node).unwrap();
    assert!(!is_inode(ino) && volume.nodes().get(ino).is_err() && node.is_removed());
    assert_eq!(volume.nodes().version(ino).unwrap(), before + 1, "summaries that name it are stale");
}

#[test]
fn new_nodes_are_told_from_those_of_the_last_checkpoint() {
    let (_, volume, ino, _) = written();
    let new = create(&volume, INODE);
    let nodes = volume.nodes();
    assert_eq!((nodes.is_on_device(ino), nodes.is_new(ino)), (true, false), "not in memory");
    drop(nodes.get(ino).unwrap());
    assert_eq!((nodes.is_on_device(ino), nodes.is_new(ino)), (true, false));
    assert_eq!((nodes.is_on_device(new), nodes.is_new(new)), (false, true));
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!((nodes.is_on_device(new), nodes.is_new(new)), (true, false));
    assert!(nodes.is_on_device(Nid(u32::MAX)), "nobody can tell");
}

#[test]
fn nodes_count_and_carry_what_they_are() {
    let (_, volume) = fresh();
    let state = || {
        let stat = volume.stat();
        (stat.valid_nodes, stat.valid_inodes, stat.valid_blocks)
    };
    let before = state();
    let op = volume.begin().unwrap();
    let file = volume.nodes().create(&op, INODE).unwrap();
    let new = NewNode { ino: Some(file.nid()), offset: 7, directory: true };
    let node = volume.nodes().create(&op, new).unwrap();
    let footer = |node: &Node| {
        let block = node.read();
        (block.nid(), block.ino(), block.footer.node_offset(), block.footer.has_mark(f2fs_format::node::mark::COLD))
    };
    assert_eq!(footer(&file), (file.nid(), file.nid(), 0, true));
    assert_eq!(footer(&node), (node.nid(), file.nid(), 7, false));
    assert_eq!(state(), (before.0 + 2, before.1 + 1, before.2 + 2));
    assert_eq!(volume.stat().dirty_nodes, 2);
    volume.nodes().remove(&op, &node).unwrap();
    assert!(volume.nodes().remove(&op, &node).is_err(), "it is free");
    assert_eq!(state(), (before.0 + 1, before.1 + 1, before.2 + 1));
    volume.nodes().remove(&op, &file).unwrap();
    assert_eq!(state(), before);
}

#[test]
fn a_node_that_cannot_be_made_takes_nothing() {
    let (device, volume) = fresh();
    let before = volume.stat();
    device.arm(FaultRule::on([Operation::Read]).for_good());
    assert!(volume.nodes().create(&volume.begin().unwrap(), INODE).is_err());
    device.disarm();
    let stat = volume.stat();
    assert_eq!((stat.valid_nodes, stat.valid_blocks), (before.valid_nodes, before.valid_blocks));
    // Nor if all blocks are taken.
    let room = stat.user_blocks - stat.valid_blocks;
    volume.data().reserve(&volume.begin().unwrap(), room).unwrap();
    let refused = volume.nodes().create(&volume.begin().unwrap(), INODE).unwrap_err();
    assert!(matches!(refused, VolumeError::NoSpace { .. }), "{refused}");
    volume.data().unreserve(&volume.begin().unwrap(), room);
    let stat = volume.stat();
    assert_eq!((stat.valid_nodes, stat.valid_blocks), (before.valid_nodes, before.valid_blocks));
}

/// Operations keep the checkpoints of their own volume away, and no other's.
#[test]
#[cfg(debug_assertions)]
fn an_operation_on_another_volume_is_told_everywhere() {
    let ((_, one), (_, other)) = (fresh(), fresh());
    let node = other.nodes().get(other.geometry.root_ino).unwrap();
    let calls: [&dyn Fn(&Op<'_>); 9] = [
        &|op| drop(other.nodes().create(op, INODE)),
        &|op| drop(other.nodes().remove(op, &node)),
        &|op| drop(other.syncs().file(op, &node)),
        &|op| other.syncs().set_renamed(op, &node),
        &|op| other.syncs().set_left_inline(op, &node),
        &|op| other.syncs().note_name(op, node.nid(), b"name"),
        &|op| other.syncs().note_foreign_name(op),
        &|op| other.journal().retire(op),
        &|op| drop(other.recovery().adopt_block(op, other.geometry.main_blkaddr, summary())),
    ];
    let op = one.begin().unwrap();
    for (number, call) in calls.iter().enumerate() {
        let told = catch_unwind(AssertUnwindSafe(|| call(&op))).unwrap_err();
        let told =
            told.downcast_ref::<String>().map_or_else(|| told.downcast_ref::<&str>().copied(), |told| Some(told));
        assert_eq!(told, Some("an operation on another volume"), "{number}");
    }
}

#[cfg(debug_assertions)]
fn summary() -> f2fs_format::summary::Summary {
    f2fs_format::summary::Summary::new(Nid(9), 0, 0)
}
