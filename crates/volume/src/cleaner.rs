//! The cleaner: makes free segments out of segments with few valid blocks.
//!
//! | Way | when | runs |
//! |---|---|---|
//! | [`step`](Cleaning::step) | in the background, and first when segments run short | against operations, on any number of threads |
//! | [`step_ahead`](Cleaning::step_ahead) | before segments run short, by operations that take them | the same |
//! | [`clean_until`](Cleaning::clean_until) | when that is not enough | alone, with the gate closed |
//! | [`preclean`](Cleaning::preclean) | before long writes into holes | against operations |
//!
//! Each cleaner has victims of its own: choosing one marks it. The effects of a step on blocks that others use are in
//! `relocate.rs`. A step never takes what a checkpoint needs: it does nothing once free sections are near the floor,
//! and leaves the rest to the way that works alone, where nothing becomes dirty meanwhile.
//!
//! ```text
//! gate closed -> above -> { victim: nodes become dirty, data blocks are read and written to the cold log } ... -> checkpoint
//!      ^                                                                                                            |
//!      +----------- again, while the goal is not reached, and one of four times brings more free segments ---------+
//! ```
//!
//! A victim is free only after the checkpoint that no longer refers to its blocks is durable; until then both copies of
//! a moved block exist. So no crash loses one.

mod preclean;
mod relocate;
mod step;

use f2fs_format::Nid;
use f2fs_segment::VictimPolicy;

use crate::flight::Destination;
use crate::victims::{Begun, SET_ASIDE};
use crate::write_stat::Count;
use crate::{Op, Reason, Volume, VolumeError};

pub use self::step::CleanStep;

/// The counts of a cleaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanReport {
    /// Sections emptied.
    pub victims: u64,
    /// Data blocks moved.
    pub data_blocks: u64,
    /// Node blocks moved.
    pub node_blocks: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Free segments at the end.
    pub free_segments: u32,
}

/// Sixty-fourths of a section that may be valid in a victim: one that is nearly full costs as much as it gives.
const WORTH: u64 = 63;
/// Rounds that bring no more free segments, after which a cleaning gives up. What a round moves dirties nodes, whose old
/// places are holes only the next round can use.
const IN_VAIN: u32 = 4;

/// What became of a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emptied {
    /// Nothing valid is left in it.
    Whole,
    /// Nothing valid is left in its first segments, so many.
    Begun(u32),
    /// There was no room for its blocks.
    NoRoom,
    /// Some of it is left: its tables contradict each other, a node cannot be read, or a writer is not done with a block.
    InPart,
}

/// The cleaner of a volume: [`Volume::cleaning`].
#[derive(Clone, Copy, Debug)]
pub struct Cleaning<'a>(pub(crate) &'a Volume);

impl Cleaning<'_> {
    /// Cleans until `goal` segments are free, or cleaning gains nothing more. `above` is as in
    /// [`write_with`](crate::Checkpoints::write_with); at least one checkpoint is written.
    ///
    /// # Errors
    /// As [`write_with`](crate::Checkpoints::write_with). Sections that cannot be read are left; where they are many, the
    /// error of the last one is told, which does not stop the volume.
    pub fn clean_until<E: From<VolumeError>>(
        self,
        goal: u32,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<CleanReport, E> {
        let mut report = CleanReport::default();
        self.0.written.add(Count::CleaningsAlone, 1);
        self.0.checkpoints().with_gate_closed(above, |op, turn| {
            while let Some(begun) = self.0.victims.take_begun() {
                self.0.victims.end(begun);
                self.0.segments.manager()?.release_victim(&begun.victim)?;
            }
            // Perhaps they can be read now.
            self.release_aside()?;
            let (mut most, mut in_vain) = (self.0.segments.manager()?.free_segments(), 0);
            // Without zones logs use the holes.
            let patience = if self.0.zoning.is_zoned() { IN_VAIN } else { 1 };
            loop {
                let victims = self.round(op, goal, &mut report);
                // Whether they can be emptied or not, logs write into their holes.
                self.release_aside()?;
                let victims = victims?;
                self.0.checkpoints().write_behind_gate(Reason::Sync, turn, 0)?;
                report.checkpoints += 1;
                let after = self.0.segments.manager()?.free_segments();
                in_vain = if after > most { 0 } else { in_vain + 1 };
                if after >= goal || victims == 0 || in_vain == patience {
                    break;
                }
                most = most.max(after);
            }
            report.free_segments = self.0.segments.manager()?.free_segments();
            if report.free_segments < goal {
                self.0.pressure.cleaning_fell_short(
                    self.0.written.read().user_blocks,
                    &self.0.space,
                    self.0.segments.manager()?,
                );
            }
            Ok(())
        })?;
        Ok(report)
    }

    /// Victims that were set aside are none any more.
    fn release_aside(self) -> Result<(), VolumeError> {
        let segments = self.0.segments.manager()?;
        self.0.victims.take_aside().iter().try_for_each(|victim| segments.release_victim(victim))?;
        Ok(())
    }

    /// Empties victims as far as there is room to move their blocks to; returns how many.
    fn round(self, op: &Op<'_>, goal: u32, report: &mut CleanReport) -> Result<u64, VolumeError> {
        let section = self.0.segments.manager()?.section_blocks();
        let mut victims = 0;
        let mut moved: u64 = 0;
        let mut gained: u64 = 0;
        loop {
            let segments = self.0.segments.manager()?;
            let free = segments.blocks_in(segments.free_segments());
            // Dirty blocks must fit as well, and each log leaves a segment unfinished.
            let room = free.saturating_sub(self.0.store.dirty() + 3 * u64::from(section));
            let wanted = segments.blocks_in(goal);
            if free + gained >= wanted {
                return Ok(victims);
            }
            let Some(victim) = self.0.segments.manager()?.choose_victim(VictimPolicy::Greedy, self.0.clock.now())
            else {
                return Ok(victims);
            };
            // A section that is nearly full costs as much as it gives.
            let worth = u64::from(victim.valid) * 64 < u64::from(section) * WORTH;
            if !worth || u64::from(victim.valid) > room {
                self.0.segments.manager()?.release_victim(&victim)?;
                return Ok(victims);
            }
            // Blocks that were moved until an error came are whole: each one is written before its slot changes.
            let emptied = self.empty(op, &Begun::new(victim), u64::MAX, Destination::ColdLog, report);
            if matches!(emptied, Ok(Emptied::Whole)) {
                victims += 1;
                report.victims += 1;
                moved += u64::from(victim.valid);
                gained += u64::from(section - victim.valid.min(section));
            } else {
                // Nobody writes to it, so what is left of it would be left again.
                let is_bad = matches!(emptied, Ok(Emptied::InPart) | Err(VolumeError::Device(_)));
                if !(is_bad && self.0.victims.set_aside(victim, SET_ASIDE)) {
                    self.0.segments.manager()?.release_victim(&victim)?;
                    return emptied.map(|_| victims);
                }
            }
            if moved >= room {
                return Ok(victims);
            }
        }
    }

    /// Moves what is valid in a victim, segment by segment until so many blocks were moved. What is left is as it was.
    fn empty(
        self,
        op: &Op<'_>,
        begun: &Begun,
        most: u64,
        destination: Destination,
        report: &mut CleanReport,
    ) -> Result<Emptied, VolumeError> {
        let mut moved = 0;
        for (number, segment) in (0..).zip(begun.victim.segments()).skip(begun.emptied as usize) {
            if moved >= most {
                return Ok(Emptied::Begun(number));
            }
            let info = self.0.segments.info(segment)?;
            if info.valid == 0 {
                continue;
            }
            let summary = self.summary_of(segment)?;
            let offsets: Vec<u32> = info.valid_map.runs(true).flat_map(|(start, len)| start..start + len).collect();
            let owners: Vec<Nid> = offsets.iter().map(|at| summary.entries[*at as usize].nid.into()).collect();
            self.0.nodes().prefetch(&owners);
            let done = if info.log.is_node() {
                let done = self.move_nodes(op, segment, &offsets, &summary);
                report.node_blocks += done.moved;
                done
            } else {
                let done = match self.move_data(op, segment, &offsets, &summary, Count::MovedData, destination) {
                    Err(error) if error.is_no_space() => return Ok(Emptied::NoRoom),
                    done => done?,
                };
                report.data_blocks += done.moved;
                done
            };
            if !done.is_whole() {
                return Ok(Emptied::InPart);
            }
            moved += done.moved;
        }
        self.0.written.add(Count::Victims, 1);
        Ok(Emptied::Whole)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
