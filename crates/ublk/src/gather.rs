//! How many requests a worker waits for, so that one entry into the kernel serves many.
//!
//! A worker that is as fast as the requests come finds one or two in each entry. It would rather sleep until half of
//! those that its users keep under way have come: the users go on with the other half meanwhile. How many that are it
//! learns by asking for more now and then.
//!
//! ```text
//!                 as many came           ask for twice the known ones, at most so many as there are tags
//!   known: 1 ----------------------> 2 ----------------------> 4 ...      fewer came in the time: these are all
//!      ^                                                                        |
//!      +------------- fewer came than half of the known: so many are known -----+
//! ```
//!
//! A question in vain costs the requests that are there the [`TIME`], so each one makes the next come later: a user
//! with one request at a time waits for it in one of thousands.
//!
//! No locks: it belongs to a worker.

/// How long requests that are there wait for others, in microseconds. A system call, the switch to another thread and
/// its return take some five.
pub(crate) const TIME: u32 = 100;
/// Entries between two questions: at first, and at most.
const SOON: u32 = 16;
const LATE: u32 = 4096;

/// The rule of one queue.
#[derive(Debug)]
pub(crate) struct Gather {
    /// Requests that its users keep under way, as far as it is known.
    known: usize,
    /// The tags of the queue.
    depth: usize,
    /// Entries until it asks for more.
    pause: u32,
    /// How long it pauses after the next question in vain.
    next_pause: u32,
}

impl Gather {
    pub(crate) fn new(depth: u16) -> Self {
        Self { known: 1, depth: depth.into(), pause: SOON, next_pause: SOON }
    }

    /// How many requests the next entry waits for, at least one.
    pub(crate) fn wish(&self) -> usize {
        if self.pause == 0 && self.known < self.depth {
            (self.known * 2).min(self.depth)
        } else {
            (self.known / 2).max(1)
        }
    }

    /// So many came, of so many that were waited for.
    pub(crate) fn came(&mut self, wished: usize, came: usize) {
        let asked = wished > self.known;
        if came > self.known {
            // There may be still more.
            (self.known, self.pause) = (came.min(self.depth), if asked { 0 } else { self.pause });
        } else if asked {
            self.pause = self.next_pause;
            self.next_pause = (self.next_pause * 2).min(LATE);
        } else if came < wished {
            (self.known, self.pause) = (came.max(1), SOON);
        }
        self.pause = self.pause.saturating_sub(u32::from(!asked));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Users with so many requests under way, of which the worker finds at most `each` if it waits for one: how many
    /// entries so many requests take, and in how many of these it waited in vain.
    fn entries(gather: &mut Gather, under_way: usize, each: usize, requests: usize) -> (usize, usize) {
        let (mut done, mut entries, mut vain) = (0, 0, 0);
        while done < requests {
            let wished = gather.wish();
            let came = wished.max(each).min(under_way);
            vain += usize::from(came < wished);
            gather.came(wished, came);
            (done, entries) = (done + came, entries + 1);
        }
        (entries, vain)
    }

    #[test]
    fn half_of_what_is_under_way_comes_at_once() {
        let mut gather = Gather::new(128);
        let (all, vain) = entries(&mut gather, 32, 2, 100_000);
        assert!(all < 100_000 / 15, "{all} entries");
        assert!(vain < 20, "{vain} in vain");
        assert_eq!(gather.wish(), 16, "half of it");
    }

    #[test]
    fn one_request_at_a_time_waits_seldom() {
        let mut gather = Gather::new(128);
        let (_, vain) = entries(&mut gather, 1, 1, 100_000);
        assert!((8..40).contains(&vain), "{vain} in vain");
    }

    #[test]
    fn users_that_leave_are_waited_for_once() {
        let mut gather = Gather::new(128);
        entries(&mut gather, 64, 1, 10_000);
        let (_, vain) = entries(&mut gather, 1, 1, 1000);
        assert!(vain <= 8, "{vain} in vain");
    }

    #[test]
    fn a_queue_of_one_asks_for_one() {
        let mut gather = Gather::new(1);
        assert_eq!(entries(&mut gather, 1, 1, 1000), (1000, 0));
    }

    #[test]
    fn a_full_queue_is_no_more_than_its_tags() {
        let mut gather = Gather::new(8);
        entries(&mut gather, 8, 1, 1000);
        assert_eq!(gather.wish(), 4);
    }
}
