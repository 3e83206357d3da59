#![allow(clippy::unwrap_used)] // a test fails by panicking

mod ahead;
mod alone;
mod moving;
mod steps;

use f2fs_format::{LogType, SegmentNo};

use crate::samples::{inode, segment, segments, write};
use crate::{Node, Reason, Volume};

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

/// The segments that are marked as victims.
fn marked(volume: &Volume) -> Vec<u32> {
    let all = 0..volume.geometry.main_segments;
    all.filter(|segment| volume.segment(SegmentNo(*segment)).unwrap().victim).collect()
}
