#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_device_test::RecordingDevice;

use super::*;
use crate::format::FormatOptions;
use crate::{Volume, VolumeOptions};

#[test]
fn loops_are_found_and_straight_walks_are_none() {
    for (tail, ring) in [(0u32, 1u32), (0, 2), (1, 1), (5, 3), (100, 1), (3, 100)] {
        let next = |at: u32| if at + 1 == tail + ring { tail } else { at + 1 };
        let mut loops = LoopDetector::new(BlockAddr(0));
        let mut at = 0;
        let found = (0..4 * (tail + ring) + 4).any(|_| {
            at = next(at);
            loops.step(BlockAddr(at))
        });
        assert!(found, "tail {tail}, ring {ring}");
    }
    let mut loops = LoopDetector::new(BlockAddr(0));
    assert!((1..10_000).all(|at| !loops.step(BlockAddr(at))));
}

/// A volume, and where its chain begins.
fn volume() -> (Arc<RecordingDevice>, Volume, u32) {
    let device = MemoryDevice::new((64 << 20) >> 12);
    Volume::format(&device, &FormatOptions::default()).unwrap();
    let device = Arc::new(RecordingDevice::new(device));
    let volume = Volume::open(device.clone(), &VolumeOptions::new()).unwrap();
    let first = volume.segments.next_block(LogType::WarmNode).0;
    (device, volume, first)
}

/// Writes a node that leads to another place; `marks` are those of a sync.
fn write(volume: &Volume, at: u32, version: u64, next: u32, marks: u32) {
    let mut node = NodeBlock::new_box();
    (node.footer.nid, node.footer.ino) = (at.into(), if marks == 0 { 7.into() } else { at.into() });
    node.footer.set_node_offset(3);
    [mark::FSYNC, mark::DENTRY].into_iter().for_each(|each| node.footer.set_mark(each, marks & each != 0));
    (node.footer.cp_ver, node.footer.next_blkaddr) = (version.into(), next.into());
    volume.device.write_slice(at.into(), node.as_block()).unwrap();
}

/// Nodes without marks in these places, of which the last leads to none.
fn write_all(volume: &Volume, places: &[u32]) {
    let next = places.iter().skip(1).copied().chain([0]);
    places.iter().zip(next).for_each(|(at, next)| write(volume, *at, volume.footer_version(), next, mark::FSYNC));
}

/// The places of the chain's nodes, and how many reads of how many blocks it took to find them.
fn found(device: &RecordingDevice, volume: &Volume) -> (Vec<u32>, u64, u64) {
    let before = device.counts();
    let nodes = volume.recovery().synced_nodes().unwrap();
    let after = device.counts();
    let places = nodes.iter().map(|node| node.addr.0).collect();
    (places, after.reads - before.reads, after.blocks_read - before.blocks_read)
}

#[test]
fn the_chain_ends_with_the_last_sync() {
    let (_, volume, first) = volume();
    let version = volume.footer_version();
    let node = |at, fsync, dentry| {
        let (ino, offset) = if fsync { (Nid(first + at), 0) } else { (Nid(7), 3) };
        ChainNode { addr: BlockAddr(first + at), ino, offset, fsync, dentry }
    };
    let mut expected = Vec::new();
    for (at, marks) in [0, mark::FSYNC, 0, mark::FSYNC | mark::DENTRY, 0].into_iter().enumerate() {
        let at = at as u32;
        write(&volume, first + at, version, first + at + 1, marks);
        expected.push(node(at, marks & mark::FSYNC != 0, marks & mark::DENTRY != 0));
    }
    // It was written after another checkpoint of the same number.
    write(&volume, first + 5, version ^ 1 << 40, first + 6, mark::FSYNC);
    write(&volume, first + 6, version, first + 7, mark::FSYNC);
    expected.pop();
    assert_eq!(volume.recovery().synced_nodes().unwrap(), expected);
    assert_eq!(volume.recovery().synced_node(BlockAddr(first + 1)).unwrap().nid(), Nid(first + 1));
    // Some systems write no checksum into their nodes.
    let mut durable = volume.last_checkpoint.get();
    durable.checkpoint.flags |= flags::NOCRC_RECOVERY;
    volume.last_checkpoint.replace(durable, version);
    assert_eq!(volume.recovery().synced_nodes().unwrap().len(), 7);
    write(&volume, first + 5, version + 1, first + 6, mark::FSYNC);
    assert_eq!(volume.recovery().synced_nodes().unwrap(), expected);
}

#[test]
fn a_chain_costs_few_reads_and_none_beyond_its_segment() {
    let (device, volume, first) = volume();
    assert_eq!(found(&device, &volume), (vec![], 1, 1), "no chain, one block");
    let straight: Vec<u32> = (first..first + 200).collect();
    write_all(&volume, &straight);
    let (places, reads, _) = found(&device, &volume);
    assert!(places == straight && reads <= 9, "{reads} reads");
    // One that jumps all the time, backwards as well.
    let jumps: Vec<u32> = (0..50).map(|at| first + at * 37 % 50 * 2).collect();
    write_all(&volume, &jumps);
    assert_eq!(found(&device, &volume), (jumps, 50, 50));
    // The last segment of the device: there is nothing behind it.
    let end = volume.geometry.main_end().0;
    assert_eq!(u64::from(end), device.info().blocks);
    let to_the_end: Vec<u32> = [first].into_iter().chain(end - 100..end).collect();
    write_all(&volume, &to_the_end);
    assert_eq!(found(&device, &volume).0, to_the_end);
}

#[test]
fn a_chain_that_comes_back_to_itself_is_told() {
    let (_, volume, first) = volume();
    for at in 0..2 {
        write(&volume, first + at, volume.footer_version(), first + at + 1, mark::FSYNC);
    }
    write(&volume, first + 2, volume.footer_version(), first + 1, 0);
    let looped = volume.recovery().synced_nodes().unwrap_err();
    let VolumeError::LoopedChain { addr, nodes: 3 } = looped else { panic!("{looped}") };
    assert_eq!(addr.0, first + 1);
}
