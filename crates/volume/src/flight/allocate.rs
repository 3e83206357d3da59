//! New addresses for a flight.

use f2fs_format::summary::Summary;
use f2fs_format::{LogType, SegmentNo};
use f2fs_segment::{Class, Run};
use f2fs_sync::protocol_value;

use super::{Destination, Flight};
use crate::write_stat::Count;
use crate::{Op, Volume, VolumeError};

impl Flight {
    /// Takes blocks of a log, one for each summary and in their order, and room for those that the file has more. Gives
    /// the runs between them that should be rewritten in the same requests ([`requests_for`](super::requests::requests_for)); leaving that out
    /// costs requests, nothing else. Nothing is taken on an error.
    pub(super) fn take(&mut self, op: &Op<'_>, log: LogType, summaries: &[Summary]) -> Result<Vec<Run>, VolumeError> {
        let volume = op.volume;
        volume.space.take_blocks(self.new_blocks)?;
        let class = if op.is_checkpoint { Class::Checkpoint } else { Class::User };
        let rewrites = allocate_data(volume, class, log, summaries, &mut self.runs).inspect_err(|_| {
            volume.space.give_blocks(self.new_blocks);
        })?;
        self.is_open = true;
        Ok(rewrites)
    }

    /// Takes blocks for what is moved out of a segment: of the cold log, in its holes where free segments are few; or,
    /// with [`Destination::SameAge`], in holes of segments of similar age.
    pub(super) fn take_for_move(
        &mut self,
        volume: &Volume,
        from: SegmentNo,
        destination: Destination,
        summaries: &[Summary],
    ) -> Result<(), VolumeError> {
        let now = volume.clock.now();
        let segments = volume.segments.manager()?;
        match destination {
            Destination::ColdLog => {
                segments.allocate_as(Class::Cleaner, LogType::ColdData, summaries, now, &mut self.runs)?;
            }
            Destination::SameAge => {
                let merged = segments.allocate_aged(from, summaries, now, &mut self.runs)?;
                volume.written.add(Count::MergedData, merged as u64);
            }
        }
        volume.blocks_written.add(summaries.len() as u64);
        self.is_open = true;
        Ok(())
    }
}

fn allocate_data(
    volume: &Volume,
    class: Class,
    log: LogType,
    summaries: &[Summary],
    runs: &mut Vec<Run>,
) -> Result<Vec<Run>, VolumeError> {
    let mut rewrites = Vec::new();
    let (segments, now) = (volume.segments.manager()?, volume.clock.now());
    match volume.precleaner.planner() {
        // Only where logs write into holes is there anything to choose.
        Some(planner) if !log.is_node() && summaries.len() > 1 && volume.writes_into_holes() => {
            segments.allocate_selective(class, log, summaries, now, planner, runs, &mut rewrites)?;
        }
        _ => {
            let lane = protocol_value!("segment_one_head", volume.lanes.slot_index(), 0);
            segments.allocate_on(lane, class, log, summaries, now, runs)?;
        }
    }
    let blocks = summaries.len() as u64;
    volume.blocks_written.add(blocks);
    volume.written.add(Count::UserBlocks, blocks);
    if class == Class::User {
        volume.precleaner.note_request(blocks, || volume.writes_into_holes());
    }
    Ok(rewrites)
}
