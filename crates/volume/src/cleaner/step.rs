//! Sections that are emptied one at a time, while operations run.
//!
//! # Locking
//!
//! A step holds an [`Op`](crate::Op) from its first question to its end, so that no checkpoint comes in between; the steps
//! in flight are counted ([`crate::steps`]). An operation that gives way to them holds nothing.

use core::time::Duration;

use f2fs_format::BLOCKS_PER_SEGMENT;
use f2fs_segment::{Class, SegmentManager, Victim, VictimPolicy};
use f2fs_sync::thread;

use super::{CleanReport, Cleaning, Emptied, WORTH};
use crate::VolumeError;
use crate::flight::Destination;
use crate::kept_sections::MARGIN;
use crate::victims::{Begun, SET_ASIDE};

/// The counts of one step of a cleaner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanStep {
    /// Valid blocks that the section had.
    pub valid: u32,
    /// Data blocks moved.
    pub data_blocks: u64,
    /// Nodes that move with the next checkpoint.
    pub node_blocks: u64,
    /// Segments that the next checkpoint frees, if nothing was left in them.
    pub segments: u32,
}

/// Sixty-fourths of a section that may be valid in one that operations empty while there is room: what is left to become
/// emptier meanwhile costs less later.
const AHEAD_WORTH: u64 = 48;

/// Blocks that an operation moves at a time, about: of a large section it empties a part, and leaves the rest to the next.
const PART: u64 = BLOCKS_PER_SEGMENT as u64;

/// How long an operation gives way to those that empty sections, at most.
const LONGEST_WAY: Duration = Duration::from_millis(4);

/// What came of a step.
#[derive(Debug)]
pub(super) enum Tried {
    /// Free sections are few, for one step or for as many as there are.
    NoRoom,
    /// No section is worth it.
    NothingWorth,
    Emptied(CleanStep),
    /// A part of a section was emptied.
    Begun,
}

impl Cleaning<'_> {
    /// Sections that must be free for a step to begin: those of users' floor, so that a step takes nothing from
    /// checkpoints.
    pub(crate) fn step_floor(self) -> u32 {
        self.0.segments.manager().map_or(0, |segments| segments.floor(Class::User)) + MARGIN
    }

    /// Empties one section, or a part of a large one, for an operation, before all operations have to wait for room. An
    /// error does not concern the operation: if it stays, one that finds no room will report it.
    pub fn step_ahead(self) -> Option<CleanStep> {
        let free = self.0.segments.manager().map_or(0, SegmentManager::free_sections);
        let epoch = self.0.epoch();
        let is_short = self.spare(free) <= self.0.balance().ahead() / 2;
        match self.try_step(VictimPolicy::Greedy, if is_short { WORTH } else { AHEAD_WORTH }, PART) {
            Ok(Tried::Emptied(step)) if step.segments > 0 => {
                if step.node_blocks > 0 {
                    self.0.pressure.emptied_one_of_nodes(epoch);
                }
                return Some(step);
            }
            Ok(Tried::NoRoom) if is_short => self.give_way(free),
            Ok(Tried::NoRoom | Tried::Begun) => {}
            _ => self.0.pressure.step_gained_nothing(free),
        }
        None
    }

    /// Sleeps for a moment while others are emptying as many sections as there is room for: the less of it is left, the
    /// longer. Else many threads would use it up before those are done.
    fn give_way(self, free_sections: u32) {
        thread::sleep(LONGEST_WAY / 2u32.saturating_pow(self.spare(free_sections).saturating_sub(1)));
    }

    /// Of so many free sections, those that a step may use.
    fn spare(self, free_sections: u32) -> u32 {
        free_sections.saturating_sub(self.step_floor())
    }

    /// Empties one section while operations run: to the cold log, or, with [`VictimPolicy::AgeThreshold`], among blocks
    /// of about the same age. As many threads may do so at a time as there is room for. The moved blocks are durable, and the
    /// section free, after the next checkpoint.
    ///
    /// `None`: there is nothing worth it, or free sections are so few that [`clean_until`](Self::clean_until) must do it,
    /// or too few for the steps of several threads.
    ///
    /// # Errors
    /// [`VolumeError::ReadOnly`], [`VolumeError::Stopped`], and errors of reading and writing blocks, which leave
    /// everything whole: a block that was not moved is where it was. The next step has another victim then.
    pub fn step(self, policy: VictimPolicy) -> Result<Option<CleanStep>, VolumeError> {
        self.try_step(policy, WORTH, u64::MAX).map(|tried| match tried {
            Tried::Emptied(step) => Some(step),
            Tried::NoRoom | Tried::NothingWorth | Tried::Begun => None,
        })
    }

    /// Goes on with a section that was begun, or begins one of which fewer 64ths than `worth` are valid, until about
    /// `most` blocks are moved.
    pub(super) fn try_step(self, policy: VictimPolicy, worth: u64, most: u64) -> Result<Tried, VolumeError> {
        let op = self.0.begin()?;
        let in_flight = self.0.steps.begin();
        let spare = self.spare(self.0.segments.manager()?.free_sections());
        let begun = match self.0.victims.take_begun() {
            // It was given its room when it was begun.
            Some(begun) => begun,
            None if !in_flight.fits(spare) => return Ok(Tried::NoRoom),
            // It has fewer blocks than a section, for which there is room.
            None => match self.choose(policy, worth)? {
                Some(victim) => Begun::new(victim),
                None => return Ok(Tried::NothingWorth),
            },
        };
        let victim = begun.victim;
        let mut report = CleanReport::default();
        let destination =
            if matches!(policy, VictimPolicy::AgeThreshold(_)) { Destination::SameAge } else { Destination::ColdLog };
        let emptied = self.empty(&op, &begun, most, destination, &mut report);
        match emptied {
            Ok(Emptied::Begun(emptied)) => self.0.victims.leave(begun, emptied),
            _ => self.0.victims.end(begun),
        }
        match emptied {
            Ok(Emptied::Whole | Emptied::Begun(_)) => {}
            Err(VolumeError::Device(_)) if self.0.victims.set_aside(victim, self.most_aside()?) => {}
            _ => self.0.segments.manager()?.release_victim(&victim)?,
        }
        self.0.pressure.tell(&self.0.store, &self.0.segments);
        drop(in_flight);
        let segments = match emptied? {
            Emptied::Begun(_) => return Ok(Tried::Begun),
            Emptied::Whole => victim.segments,
            Emptied::NoRoom | Emptied::InPart => 0,
        };
        Ok(Tried::Emptied(CleanStep {
            valid: victim.valid,
            data_blocks: report.data_blocks,
            node_blocks: report.node_blocks,
            segments,
        }))
    }

    /// Sections that steps set aside at most: a small part of what is kept free for cleaning.
    fn most_aside(self) -> Result<u32, VolumeError> {
        Ok(SET_ASIDE.min(self.0.segments.manager()?.reserved_sections() / 8))
    }

    /// A victim that is worth it.
    fn choose(self, policy: VictimPolicy, worth: u64) -> Result<Option<Victim>, VolumeError> {
        let segments = self.0.segments.manager()?;
        let Some(victim) = segments.choose_victim(policy, self.0.clock.now()) else { return Ok(None) };
        if u64::from(victim.valid) * 64 < u64::from(segments.section_blocks()) * worth {
            return Ok(Some(victim));
        }
        segments.release_victim(&victim)?;
        Ok(None)
    }
}
