//! Victims that stay marked: sections that operations empty a part at a time, and those that could not be emptied.
//!
//! The latter are not chosen again until a cleaning with the gate closed, nor do logs write into their holes. So they
//! are few: that room is missing from what is kept free.
//!
//! # Locking
//!
//! Two mutexes on lists of sections, leaves. Who takes one out is the only one to work on it.

use f2fs_format::SegmentNo;
use f2fs_segment::Victim;
use f2fs_sync::atomic::{AtomicU32, Ordering};
use f2fs_sync::{Mutex, protocol_value};

/// Sections that are set aside at most.
pub(crate) const SET_ASIDE: u32 = 64;

/// A section that is being emptied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) victim: Victim,
    /// Its first segments, so many, are empty; 0: it was chosen just now.
    pub(crate) emptied: u32,
}

impl Begun {
    pub(crate) fn new(victim: Victim) -> Begun {
        Begun { victim, emptied: 0 }
    }
}

/// The marked victims.
#[derive(Debug, Default)]
pub(crate) struct Victims {
    /// Those that were begun and nobody works on.
    begun: Mutex<Vec<Begun>>,
    /// All that were begun.
    count: AtomicU32,
    /// Those that could not be emptied.
    aside: Mutex<Vec<Victim>>,
}

impl Victims {
    /// Whether there is a section that was begun, also one that somebody works on.
    pub(crate) fn has_begun(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// A section that was begun, to go on with it.
    pub(crate) fn take_begun(&self) -> Option<Begun> {
        let begun = || if self.has_begun() { self.begun.lock().pop() } else { None };
        protocol_value!("victims_begun_are_left", begun(), None)
    }

    /// Leaves a section, of which so many segments are empty now, to whoever goes on.
    pub(crate) fn leave(&self, begun: Begun, emptied: u32) {
        if begun.emptied == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        self.begun.lock().push(Begun { emptied, ..begun });
    }

    /// Ends those sections that a checkpoint freed: logs may take them again.
    pub(crate) fn end_freed(&self, is_marked: impl Fn(SegmentNo) -> bool) {
        self.aside.lock().retain(|victim| victim.segments().any(&is_marked));
        if self.has_begun() {
            self.begun.lock().retain(|begun| {
                let stays = begun.victim.segments().skip(begun.emptied as usize).any(&is_marked);
                if !stays {
                    self.end(*begun);
                }
                stays
            });
        }
    }

    /// Nobody goes on with a section.
    pub(crate) fn end(&self, begun: Begun) {
        if begun.emptied != 0 {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Leaves a victim that could not be emptied marked, so that the next one chosen is another. False: `most` are.
    pub(crate) fn set_aside(&self, victim: Victim, most: u32) -> bool {
        let mut aside = self.aside.lock();
        let may = aside.len() < most as usize;
        if may {
            aside.push(victim);
        }
        may
    }

    /// Those that were set aside. Whoever takes them unmarks them.
    pub(crate) fn take_aside(&self) -> Vec<Victim> {
        core::mem::take(&mut self.aside.lock())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn section(number: u32) -> Begun {
        Begun::new(Victim { section: number, first: SegmentNo(number * 4), segments: 4, valid: 9, mtime: 0 })
    }

    /// The one that a checkpoint freed is given to nobody any more; of the other, segments that are empty do not count.
    #[test]
    fn freed_sections_are_ended() {
        let victims = Victims::default();
        assert!(!victims.has_begun() && victims.take_begun().is_none());
        victims.leave(section(1), 2);
        victims.leave(section(2), 1);
        // Segment 4 was emptied before.
        victims.end_freed(|segment| [4, 11].contains(&segment.0));
        let left = victims.take_begun().map(|begun| (begun.victim.section, begun.emptied));
        assert_eq!((left, victims.take_begun().is_none()), (Some((2, 1)), true));
        assert!(victims.has_begun(), "somebody works on it");
        victims.end(Begun { emptied: 1, ..section(2) });
        assert!(!victims.has_begun());
    }

    #[test]
    fn few_are_set_aside_and_those_that_were_freed_are_not_any_more() {
        let victims = Victims::default();
        let set_aside = |number| victims.set_aside(section(number).victim, 2);
        assert!(set_aside(1) && set_aside(2) && !set_aside(3));
        victims.end_freed(|segment| segment.0 == 5);
        assert!(set_aside(3) && !set_aside(4));
        let left: Vec<u32> = victims.take_aside().iter().map(|victim| victim.section).collect();
        assert_eq!(left, [1, 3]);
        assert!(victims.take_aside().is_empty());
    }

    #[test]
    fn a_section_that_is_left_again_counts_once() {
        let victims = Victims::default();
        victims.end(section(1));
        victims.leave(section(1), 1);
        let again = victims.take_begun().unwrap_or_else(|| section(9));
        victims.leave(again, 3);
        assert_eq!(victims.take_begun().map(|begun| begun.emptied), Some(3));
        victims.end(again);
        assert!(!victims.has_begun());
    }
}
