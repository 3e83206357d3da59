//! Sections that cleaners empty beside operations: as many at a time as there is room for.
//!
//! A step takes places for what it moves, and dirties the nodes that named it; the pressure on the volume's space
//! ([`crate::pressure`]) is told of these when the step ends. So each step in flight is given its room beforehand.
//!
//! # Locking
//!
//! None: a step counts itself, and then asks how much room there is.

use f2fs_sync::atomic::{AtomicU32, Ordering};

/// Sections that a step needs at most: one for data, and two for nodes.
const ROOM: u32 = 3;

/// The steps in flight.
#[derive(Debug)]
pub(crate) struct Steps(AtomicU32);

impl Steps {
    pub(crate) fn new() -> Steps {
        Steps(AtomicU32::new(0))
    }

    /// Counts a step. How much room there is, is asked afterwards.
    pub(crate) fn begin(&self) -> Step<'_> {
        Step { steps: &self.0, count: self.0.fetch_add(1, Ordering::Acquire) + 1 }
    }
}

/// A step in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    steps: &'a AtomicU32,
    /// How many were in flight when it began, with this one.
    count: u32,
}

impl Step<'_> {
    /// Whether all of them fit into so many sections. One alone does if there is one.
    pub(crate) fn fits(&self, spare_sections: u32) -> bool {
        spare_sections > 0 && (self.count == 1 || self.count.saturating_mul(ROOM) <= spare_sections)
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        // What the step took and dirtied is seen by whoever counts one less.
        self.steps.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Steps;

    /// One step may use the last section; several leave three each.
    #[test]
    fn steps_fit_into_what_is_spare() {
        let steps = Steps::new();
        let first = steps.begin();
        assert!(!first.fits(0) && first.fits(1));
        let second = steps.begin();
        assert!(!second.fits(5) && second.fits(6));
        let third = steps.begin();
        assert!(!third.fits(8) && third.fits(9));
        drop(second);
        drop(third);
        assert!(steps.begin().fits(6));
        drop(first);
        assert!(steps.begin().fits(1));
    }
}
