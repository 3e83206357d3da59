//! Sections that are emptied, in each of the ways that lead there.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod ahead;
mod alone;
mod moving;
mod steps;

use f2fs_device::AlignedBuf;
use f2fs_format::{LogType, SegmentNo};

use crate::samples::{inode, segment, segments, write};
use crate::tree::Slot;
use crate::{Flight, Node, Reason, Volume};

/// Segments of which so many blocks each are in use, and that no log stands in, as of a checkpoint; the nodes that name
/// the blocks.
fn filled(volume: &Volume, valid: &[usize]) -> Vec<Node> {
    let nodes: Vec<Node> = valid.iter().map(|valid| segment(volume, *valid)).collect();
    // The log goes on to the next one.
    write(volume, &inode(volume), 0..1, LogType::WarmData);
    settle(volume);
    for (node, valid) in nodes.iter().zip(valid) {
        assert_eq!(info(volume, node).valid as usize, *valid);
    }
    nodes
}

/// The segment of the first block that a node names.
fn info(volume: &Volume, node: &Node) -> f2fs_segment::SegmentInfo {
    volume.segment(segment_of(volume, node)).unwrap()
}

fn segment_of(volume: &Volume, node: &Node) -> SegmentNo {
    volume.geometry.locate(crate::samples::address(volume, node, 0)).unwrap().0
}

/// A checkpoint, after which nothing is dirty, and nobody is told that something was.
fn settle(volume: &Volume) {
    volume.checkpoints().write(Reason::Sync).unwrap();
    segments(volume).set_pressure(0, 0);
}

/// A segment of nodes of which one in eight is left, as of a checkpoint.
fn eighth_of_nodes(volume: &Volume) {
    let mut nodes: Vec<Node> = (0..256).map(|_| inode(volume)).collect();
    settle(volume);
    // The first segment is full with these.
    nodes.extend((0..260).map(|_| inode(volume)));
    settle(volume);
    let op = volume.begin().unwrap();
    (0..512).filter(|at| at % 8 != 0).for_each(|at| volume.nodes().remove(&op, &nodes[at]).unwrap());
    drop(op);
    settle(volume);
}

/// A node whose first 99 blocks are the only ones in use of their segment, and another node, of which a write is on its
/// way there, in a block that no slot names yet: of that nobody is asked.
fn with_a_write_on_its_way(volume: &Volume) -> (Node, Node, Flight) {
    let (writer, node) = (inode(volume), inode(volume));
    write(volume, &node, 0..511, LogType::WarmData);
    volume.slots().clear(&volume.begin().unwrap(), &node, 99..511, |_, _| {}).unwrap();
    settle(volume);
    let op = volume.begin().unwrap();
    let slot = Slot { node: writer.clone(), index: 0 };
    volume.data().reserve(&op, 1).unwrap();
    let flight = Flight::begin_blocks(&op, LogType::WarmData, [slot].into_iter(), AlignedBuf::new(1), 0).unwrap();
    drop(op);
    (node, writer, flight)
}

/// The segments that are marked as victims.
fn marked(volume: &Volume) -> Vec<u32> {
    let all = 0..volume.geometry.main_segments;
    all.filter(|segment| volume.segment(SegmentNo(*segment)).unwrap().victim).collect()
}
