//! When a group begins: the rule of [`GroupCommit`](super::GroupCommit), without its threads. A model in virtual time
//! follows the same.

use core::time::Duration;

use crate::protocol_value;

/// Threads that wait for each other at most.
const FEW: usize = 16;
/// How long the first request of a group waits for others at most.
const PATIENCE: Duration = Duration::from_millis(1);
/// Groups that form at once after waiting was in vain so many times in a row (a power of two, this one at most).
const MOST_MISSES: u32 = 6;

/// What a request does that came, or that waits when a group is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gathers {
    /// It leads: the work on all that wait begins.
    Leads,
    /// It is the first, and leads when this time is over, unless another one does by then.
    Watches(Duration),
    /// It waits for another one.
    Waits,
}

/// When the next group begins.
#[derive(Clone, Debug)]
pub struct Gathering {
    led: bool,
    /// Requests with which a group begins at once.
    expected: usize,
    /// How long it waits for them.
    patience: Duration,
    /// How often in a row that was in vain.
    misses: u32,
    /// Groups to come that do not wait.
    hasty: u32,
}

impl Default for Gathering {
    fn default() -> Self {
        Self::new()
    }
}

impl Gathering {
    /// Nobody waits yet.
    #[must_use]
    pub fn new() -> Gathering {
        Gathering { led: false, expected: 1, patience: Duration::ZERO, misses: 0, hasty: 0 }
    }

    /// A request came; so many wait by now, it among them.
    pub fn came(&mut self, waiting: usize) -> Gathers {
        if self.led {
            return Gathers::Waits;
        }
        if waiting >= self.expected {
            self.led = true;
            if self.expected > 1 {
                self.misses = 0;
            }
            return Gathers::Leads;
        }
        if waiting == 1 { Gathers::Watches(self.patience) } else { Gathers::Waits }
    }

    /// The time is over for the one that watched, which is the first of those that wait if `is_first`: whether it leads.
    pub fn is_over(&mut self, is_first: bool) -> bool {
        let led = protocol_value!("group_commit_two_leads", self.led, false);
        let is_first = protocol_value!("group_commit_leads_nobody", is_first, true);
        if led || !is_first {
            return false;
        }
        self.led = true;
        self.misses = (self.misses + 1).min(MOST_MISSES);
        self.hasty = 1 << self.misses;
        true
    }

    /// A group of so many requests is done, which took so long, and so many others came meanwhile. What the first of
    /// these does, if there is one.
    pub fn is_done(&mut self, served: usize, waiting: usize, took: Duration) -> Gathers {
        let all = served + waiting;
        self.expected = if self.hasty == 0 && all <= FEW { all } else { 1 };
        self.hasty = self.hasty.saturating_sub(1);
        self.patience = took.min(PATIENCE);
        self.led = protocol_value!("group_commit_no_handover", waiting >= self.expected, false);
        if self.led { Gathers::Leads } else { Gathers::Watches(self.patience) }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const TOOK: Duration = Duration::from_micros(300);

    #[test]
    fn the_threads_of_the_last_group_are_expected() {
        let mut gathering = Gathering::new();
        assert_eq!(gathering.came(1), Gathers::Leads);
        assert_eq!((gathering.came(1), gathering.came(2)), (Gathers::Waits, Gathers::Waits));
        // Three in all, of which two wait.
        assert_eq!(gathering.is_done(1, 2, TOOK), Gathers::Watches(TOOK));
        assert_eq!(gathering.came(3), Gathers::Leads);
        assert_eq!(gathering.is_done(3, 0, 10 * TOOK), Gathers::Watches(PATIENCE));
        assert_eq!(gathering.came(1), Gathers::Watches(PATIENCE));
        assert!(!gathering.is_over(false), "somebody else is the first by now");
        assert!(gathering.is_over(true));
        assert!(!gathering.is_over(true), "it leads already");
        // That was in vain: the next two groups do not wait.
        for _ in 0..2 {
            gathering.is_done(1, 0, TOOK);
            assert_eq!(gathering.came(1), Gathers::Leads);
        }
    }

    /// Each wait that was in vain spares the next groups one, twice as many as the one before.
    #[test]
    fn waiting_in_vain_is_tried_less_often() {
        let mut gathering = Gathering::new();
        assert_eq!(gathering.came(1), Gathers::Leads);
        for groups in [2, 4, 8] {
            gathering.is_done(3, 0, TOOK);
            assert_eq!(gathering.came(1), Gathers::Watches(TOOK), "before {groups}");
            assert!(gathering.is_over(true));
            for group in 0..groups {
                gathering.is_done(3, 0, TOOK);
                assert_eq!(gathering.came(1), Gathers::Leads, "{group} of {groups}");
            }
        }
    }

    /// The next wait in vain after that counts as the first one.
    #[test]
    fn who_came_in_time_makes_up_for_those_who_did_not() {
        let mut gathering = Gathering::new();
        assert_eq!(gathering.came(1), Gathers::Leads);
        for (groups, worth_it) in [(2, false), (4, true), (2, false), (4, false)] {
            gathering.is_done(2, 0, TOOK);
            assert_eq!(gathering.came(1), Gathers::Watches(TOOK), "before {groups}");
            assert!(gathering.is_over(true));
            for _ in 0..groups {
                gathering.is_done(2, 0, TOOK);
                assert_eq!(gathering.came(1), Gathers::Leads, "one of {groups}");
            }
            if worth_it {
                gathering.is_done(2, 0, TOOK);
                assert_eq!((gathering.came(1), gathering.came(2)), (Gathers::Watches(TOOK), Gathers::Leads));
            }
        }
    }

    #[test]
    fn many_wait_for_nobody() {
        let mut gathering = Gathering::new();
        gathering.came(1);
        assert_eq!(gathering.is_done(1, FEW - 1, TOOK), Gathers::Watches(TOOK));
        assert_eq!(gathering.came(FEW), Gathers::Leads);
        assert_eq!(gathering.is_done(1, FEW, TOOK), Gathers::Leads);
    }
}
