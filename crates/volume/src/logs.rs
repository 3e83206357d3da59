//! Opening only: where the six logs stand when a volume is opened, with their summaries. They are filled in
//! `f2fs-segment` (`allocate.rs`, `fill`).

use f2fs_device::BlockDevice;
use f2fs_format::node::NodeBlock;
use f2fs_format::summary::{self, Summary, SummaryBlock};
use f2fs_format::{BlockAddr, Geometry, LogType, SegmentNo};
use f2fs_segment::{LogState, SegmentTable};

use crate::VolumeError;
use crate::blocks::read_each;
use crate::pack::Pack;

/// The six logs. Without node summaries in the pack they are read off the node blocks themselves
/// (`f2fs_restore_node_summary`), as far as these are valid: nobody asks for the owner of another block.
pub(crate) fn load(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    pack: &Pack,
    table: &SegmentTable,
) -> Result<[LogState; 6], VolumeError> {
    let mut logs = Vec::with_capacity(6);
    for log in LogType::ALL {
        let position = pack.checkpoint.log(log);
        if !geometry.has_log(log) {
            // Its summary may hold a journal nevertheless.
            let summary = if log.is_node() { SummaryBlock::new_box() } else { pack.data[log.index()].clone() };
            logs.push(LogState { segment: SegmentNo::NULL, next_offset: 0, alloc_type: 0, summary });
            continue;
        }
        let summary = match (&pack.node, log.is_node()) {
            (_, false) => pack.data[log.index()].clone(),
            (Some(node), true) => node[log.index() - 3].clone(),
            (None, true) => {
                let map = table.valid_map(position.segment)?;
                let valid: Vec<u32> = map.runs(true).flat_map(|(start, len)| start..start + len).collect();
                let addrs: Vec<BlockAddr> =
                    valid.iter().map(|offset| geometry.block_at(position.segment, *offset)).collect();
                let mut summary = SummaryBlock::new_box();
                read_each::<VolumeError>(device, &addrs, |index, block| {
                    let node = NodeBlock::read(block);
                    if node.nid().0 < geometry.max_nid() {
                        summary.entries[valid[index] as usize] = Summary::new(node.nid(), 0, 0);
                    }
                    Ok(())
                })?;
                summary
            }
        };
        let mut summary = summary;
        summary.entry_type = if log.is_node() { summary::TYPE_NODE } else { summary::TYPE_DATA };
        logs.push(LogState {
            segment: position.segment,
            next_offset: position.next_offset,
            alloc_type: position.alloc_type,
            summary,
        });
    }
    let Ok(logs) = <[LogState; 6]>::try_from(logs) else { unreachable!("one state a log") };
    Ok(logs)
}
