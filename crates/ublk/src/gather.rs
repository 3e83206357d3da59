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
//! A question in vain costs the requests that are there the time that it waits, so each one makes the next come later: a
//! user with one request at a time waits for it in one of thousands.
//!
//! Users may need longer than [`SHORT`] to send half of what they keep under way. So where several came and not enough, the
//! next entry waits twice as long, up to [`LONG`]; if fewer come in that time, too, so many are known, and the time is short
//! again. Where many and few come in turn, that would be often in vain: each wait in vain makes the longest one shorter by an
//! eighth, and each that was not adds a little to it.
//!
//! No locks: it belongs to a worker.

/// How long requests that are there wait for others at first, in microseconds. A system call, the switch to another thread
/// and its return take some five.
const SHORT: u32 = 100;
/// The longest that they ever wait.
const LONG: u32 = 1600;
/// What a wait that was not in vain adds to the longest.
const STEP: u32 = LONG / 128;
/// Entries between two questions: at first, and at most.
const SOON: u32 = 16;
const LATE: u32 = 4096;

/// An entry waits for so many eighths of what is under way,
const HALF: usize = 4;
/// and for so many where each request is told of twice: when it comes, and when its data have been moved.
const MOVES: usize = 6;

/// What an entry into the kernel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// It ends with so many requests; 0: at once.
    pub(crate) requests: usize,
    /// After so many microseconds one request is enough.
    pub(crate) micros: u32,
}

impl Wish {
    /// It does not wait.
    pub(crate) const NOTHING: Wish = Wish { requests: 0, micros: 0 };
}

/// The rule of one queue.
#[derive(Debug)]
pub(crate) struct Gather {
    /// Requests that its users keep under way, as far as it is known.
    known: usize,
    /// The tags of the queue.
    depth: usize,
    /// How long an entry waits, in microseconds.
    micros: u32,
    /// How long one may wait, in microseconds.
    longest: u32,
    /// How many eighths of the known ones an entry waits for.
    eighths: usize,
    /// Entries until it asks for more.
    pause: u32,
    /// How long it pauses after the next question in vain.
    next_pause: u32,
}

impl Gather {
    /// Of a queue with so many tags, whose data are moved by entries of their own or are not.
    pub(crate) fn new(depth: u16, moves: bool) -> Self {
        let eighths = if moves { MOVES } else { HALF };
        Self { known: 1, depth: depth.into(), micros: SHORT, longest: LONG, eighths, pause: SOON, next_pause: SOON }
    }

    /// What the next entry waits for: one request at least.
    pub(crate) fn wish(&self) -> Wish {
        let asks = self.pause == 0 && self.known < self.depth;
        let requests = if asks { (self.known * 2).min(self.depth) } else { (self.known * self.eighths / 8).max(1) };
        Wish { requests, micros: self.micros }
    }

    /// So many came, of so many that were waited for.
    pub(crate) fn came(&mut self, wished: usize, came: usize) {
        let asked = wished > self.known;
        if came >= wished {
            self.longest = (self.longest + if wished > 1 { STEP } else { 0 }).min(LONG);
        } else {
            if !asked {
                self.longest = (self.longest - self.longest / 8).max(SHORT);
            }
            if came <= 1 {
                self.micros = SHORT;
            } else if self.micros < self.longest {
                // They may be still coming.
                self.micros = (self.micros * 2).min(self.longest);
                if !asked {
                    return;
                }
            } else if !asked {
                self.micros = SHORT;
            }
        }
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

    /// Users with so many requests under way.
    struct Users {
        under_way: usize,
        /// How many of them the worker finds at most if it waits for one.
        at_once: usize,
        /// Microseconds between two requests.
        apart: u32,
    }

    /// What a number of requests took.
    struct Took {
        entries: usize,
        /// Those that waited in vain.
        vain: usize,
        /// Microseconds that they waited in vain, in sum.
        micros: u64,
    }

    fn took(gather: &mut Gather, users: &Users, requests: usize) -> Took {
        let (mut done, mut took) = (0, Took { entries: 0, vain: 0, micros: 0 });
        while done < requests {
            let wish = gather.wish();
            let in_time = (wish.micros / users.apart) as usize + 1;
            let came = wish.requests.min(in_time).max(users.at_once).min(users.under_way);
            if came < wish.requests {
                took.vain += 1;
                took.micros += u64::from(wish.micros);
            }
            gather.came(wish.requests, came);
            done += came;
            took.entries += 1;
        }
        took
    }

    #[test]
    fn half_of_what_is_under_way_comes_at_once() {
        let mut gather = Gather::new(128, false);
        let all = took(&mut gather, &Users { under_way: 32, at_once: 2, apart: 1 }, 100_000);
        assert!(all.entries < 100_000 / 15, "{} entries", all.entries);
        assert!(all.vain < 20, "{} in vain", all.vain);
        assert_eq!(gather.wish().requests, 16, "half of it");
    }

    #[test]
    fn three_quarters_come_at_once_where_each_is_told_of_twice() {
        let mut gather = Gather::new(128, true);
        took(&mut gather, &Users { under_way: 32, at_once: 2, apart: 1 }, 100_000);
        assert_eq!(gather.wish().requests, 24);
    }

    #[test]
    fn one_request_at_a_time_waits_seldom_and_shortly() {
        let mut gather = Gather::new(128, false);
        let all = took(&mut gather, &Users { under_way: 1, at_once: 1, apart: 1 }, 100_000);
        assert!((8..40).contains(&all.vain), "{} in vain", all.vain);
        assert_eq!(all.micros, all.vain as u64 * u64::from(SHORT));
    }

    #[test]
    fn three_at_a_time_wait_seldom() {
        let mut gather = Gather::new(128, false);
        let all = took(&mut gather, &Users { under_way: 3, at_once: 1, apart: 5 }, 100_000);
        assert!(all.micros < 100_000, "{} us for 100,000 requests", all.micros);
    }

    #[test]
    fn users_that_leave_are_waited_for_once() {
        let mut gather = Gather::new(128, false);
        took(&mut gather, &Users { under_way: 64, at_once: 1, apart: 1 }, 10_000);
        let left = took(&mut gather, &Users { under_way: 1, at_once: 1, apart: 1 }, 1000);
        assert!(left.vain <= 8, "{} in vain", left.vain);
        took(&mut gather, &Users { under_way: 64, at_once: 1, apart: 1 }, 10_000);
        let few = took(&mut gather, &Users { under_way: 3, at_once: 3, apart: 1 }, 1000);
        assert!(few.micros < 10_000, "{} us", few.micros);
    }

    /// As in emulation: a processor needs as long for a request as another one for ten.
    #[test]
    fn slow_users_are_waited_for_longer() {
        let mut gather = Gather::new(128, false);
        let slow = Users { under_way: 32, at_once: 1, apart: 60 };
        took(&mut gather, &slow, 10_000);
        let all = took(&mut gather, &slow, 100_000);
        assert!(all.entries < 100_000 / 12, "{} entries", all.entries);
        assert!(all.vain < 100, "{} in vain", all.vain);
    }

    /// Many and few come in turn, and nobody is on the way while few are there.
    #[test]
    fn bursts_are_not_waited_for_long() {
        for (few, many) in [(2, 32), (3, 64), (1, 64)] {
            let mut gather = Gather::new(128, false);
            let mut micros = 0;
            for entry in 0..10_000 {
                let wish = gather.wish();
                let came = if entry % 2 == 0 { few } else { many };
                if came < wish.requests {
                    micros += u64::from(wish.micros);
                }
                gather.came(wish.requests, came);
            }
            assert!(micros < 10_000 * u64::from(SHORT), "{few} and {many}: {micros} us");
        }
    }

    #[test]
    fn a_queue_of_one_asks_for_one() {
        let mut gather = Gather::new(1, false);
        let all = took(&mut gather, &Users { under_way: 1, at_once: 1, apart: 1 }, 1000);
        assert_eq!((all.entries, all.vain), (1000, 0));
    }

    #[test]
    fn a_full_queue_is_no_more_than_its_tags() {
        let mut gather = Gather::new(8, false);
        took(&mut gather, &Users { under_way: 8, at_once: 1, apart: 1 }, 1000);
        assert_eq!(gather.wish().requests, 4);
    }
}
