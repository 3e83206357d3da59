//! Precleaning: valid runs of dirty segments are moved out of the way of later writes.
//!
//! # Locking
//!
//! A step is one operation; its blocks are moved as the cleaner moves them (`relocate.rs`).

use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, Nid};

use super::Cleaning;
use crate::VolumeError;
use crate::flight::Destination;
use crate::write_stat::Count;

/// Segments cleared for later writes in one step.
const STEP: usize = 16;

impl Cleaning<'_> {
    /// Moves valid runs of dirty segments out of the way of later writes, where the volume's
    /// [`Allocation`](crate::Allocation) finds that worth it, with operations running. The places can be used after the
    /// next checkpoint; write one soon, since the segments are nobody's until then. Returns how many blocks were moved.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn preclean(self) -> Result<u64, VolumeError> {
        let Some(planner) = self.0.precleaner.planner() else { return Ok(0) };
        let op = self.0.begin()?;
        // Written by then, this step is due again: also if it finds nothing now.
        let mut prepared = i64::from(BLOCKS_PER_SEGMENT) * STEP as i64;
        let mut moved = 0;
        let planner = planner.clone().with_cold_hole(self.0.segments.manager()?.mean_hole(LogType::ColdData));
        let request = self.0.precleaner.mean_request();
        let mut cleared = Vec::new();
        while cleared.len() < STEP && self.0.segments.manager()?.free_sections() > self.step_floor() {
            let Some((segment, runs)) = self.0.segments.manager()?.preclean(LogType::WarmData, &planner, request)
            else {
                break;
            };
            cleared.push(segment);
            let offsets: Vec<u32> = runs
                .iter()
                .filter_map(|run| self.0.geometry.locate(run.addr).map(|(_, at)| at..at + run.len))
                .flatten()
                .collect();
            let result = self.summary_of(segment).and_then(|summary| {
                let owners: Vec<Nid> = offsets.iter().map(|at| summary.entries[*at as usize].nid.into()).collect();
                self.0.nodes().prefetch(&owners);
                self.move_data(&op, segment, &offsets, &summary, Count::Precleaned, Destination::ColdLog)
            });
            match result {
                Ok(done) => moved += done.moved,
                Err(error) if error.is_no_space() => break,
                Err(error) => {
                    self.0.precleaner.clear_until_checkpoint(&mut cleared);
                    return Err(error);
                }
            }
        }
        if !cleared.is_empty() {
            let room = |segment: &_| {
                self.0.segments.info(*segment).map_or(0, |info| i64::from(BLOCKS_PER_SEGMENT - info.valid))
            };
            prepared = cleared.iter().map(room).sum();
        }
        self.0.written.add(Count::PrecleanedSegments, cleared.len() as u64);
        self.0.precleaner.clear_until_checkpoint(&mut cleared);
        self.0.precleaner.set_prepared(prepared);
        self.0.pressure.tell(&self.0.store, &self.0.segments);
        Ok(moved)
    }
}
