//! Data among nodes: no log writes both to a segment, so one of them was not there.
//!
//! Where a segment's entry in the SIT was lost, and its summary as well, nothing speaks against a damaged address that
//! names a free block there before the nodes beside it are reached.

use std::collections::BTreeMap;

use f2fs_format::{BlockAddr, SegmentNo};

use super::state::{State, Trust};
use super::tables::Tables;

/// How many claims of one kind a segment has: those that the other side agrees with, and all.
type Weight = (u32, u32);

/// Finds the segments of nodes that data are claimed in, when all is reached. In the next pass none are.
pub(super) fn settle(tables: &Tables, state: &mut State) {
    let mut segments: BTreeMap<SegmentNo, [Weight; 2]> = BTreeMap::new();
    for (addr, claim) in &state.blocks {
        let addr = BlockAddr(*addr);
        let Some((segment, _)) = tables.geometry.locate(addr) else { continue };
        // What the SIT knows of data, it has told.
        if tables.is_forgotten(addr) || tables.in_node_segment(addr) == Some(true) {
            let (sound, all) = &mut segments.entry(segment).or_default()[usize::from(claim.is_node)];
            *sound += u32::from(claim.trust == Trust::Sound);
            *all += 1;
        }
    }
    for (segment, [data, nodes]) in segments {
        if data != (0, 0) && nodes != (0, 0) && nodes >= data {
            state.hold_nodes(segment);
        }
    }
}
