//! Group commit: many threads want the same slow thing (a log write and a flush), and one of them does it for all.
//!
//! # Locking
//!
//! `state` guards the queue and whether somebody leads; a seat's lock guards the news for one thread that waits. Neither is
//! held while the work runs, and no two at a time.
//!
//! ```text
//!            join, nobody leads                          work done, queue empty
//!  (nobody) --------------------> leading: takes the ---------------------------> (nobody)
//!                                 whole queue, works
//!                                   |          ^
//!                                   +----------+  work done, queue not empty: its first waiter leads
//!
//!  a thread that joins while somebody leads: waits in the queue -> its group's answer, or the lead
//! ```
//!
//! One group is worked on at a time, so what the groups do happens in the order in which they were formed; and the work on a
//! request begins after the request was made. There is no edge from a running group back to its queue: who comes late is in
//! the next group.

use crate::{Arc, Condvar, Mutex, mutant};

/// Forms groups of requests and lets one requester work on each group.
///
/// ```
/// use f2fs_sync::GroupCommit;
///
/// let log = GroupCommit::new();
/// let length = log.join("a record", |group| group.iter().map(|record| record.len()).collect());
/// assert_eq!(length, Some(8));
/// ```
#[derive(Debug)]
pub struct GroupCommit<T, R> {
    state: Mutex<State<T, R>>,
}

#[derive(Debug)]
struct State<T, R> {
    led: bool,
    queue: Vec<(T, Arc<Seat<R>>)>,
}

#[derive(Debug)]
struct Seat<R> {
    news: Mutex<News<R>>,
    told: Condvar,
}

#[derive(Debug)]
enum News<R> {
    None,
    Lead,
    Answer(Option<R>),
}

impl<R> Seat<R> {
    fn tell(&self, news: News<R>) {
        *self.news.lock() = news;
        if !mutant("group_commit_no_wake") {
            self.told.notify_one();
        }
    }

    fn wait(&self) -> News<R> {
        let mut news = self.news.lock();
        while matches!(*news, News::None) {
            self.told.wait(&mut news);
        }
        core::mem::replace(&mut *news, News::None)
    }
}

impl<T, R> Default for GroupCommit<T, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, R> GroupCommit<T, R> {
    /// Nobody waits yet.
    #[must_use]
    pub fn new() -> Self {
        GroupCommit { state: Mutex::new(State { led: false, queue: Vec::new() }) }
    }

    /// Hands in a request and returns its answer. `work` is called by one of the threads of each group with all requests of
    /// the group, in the order in which they came, and gives one answer for each; another thread's `work` may serve this
    /// request.
    ///
    /// `None`: the work panicked, or gave fewer answers than there were requests.
    pub fn join(&self, request: T, work: impl FnOnce(Vec<T>) -> Vec<R>) -> Option<R> {
        let seat = Arc::new(Seat { news: Mutex::new(News::None), told: Condvar::new() });
        let leads = {
            let mut state = self.state.lock();
            state.queue.push((request, seat.clone()));
            !core::mem::replace(&mut state.led, true)
        };
        if !leads && let News::Answer(answer) = seat.wait() {
            return answer;
        }
        let (requests, seats) = core::mem::take(&mut self.state.lock().queue).into_iter().unzip();
        if mutant("group_commit_early_handover") {
            self.hand_over();
        }
        let mut group = Group { commit: self, seats, answers: Vec::new() };
        group.answers = work(requests);
        drop(group);
        match seat.wait() {
            News::Answer(answer) => answer,
            News::None | News::Lead => None,
        }
    }

    /// Lets the first waiter lead, if there is one.
    fn hand_over(&self) {
        let next = {
            let mut state = self.state.lock();
            let next = state.queue.first().map(|(_, seat)| seat.clone());
            state.led = next.is_some() && !mutant("group_commit_no_handover");
            next.filter(|_| state.led)
        };
        if let Some(seat) = next {
            seat.tell(News::Lead);
        }
    }
}

/// A group that is worked on. However that ends, the next group can begin and everybody is told.
struct Group<'a, T, R> {
    commit: &'a GroupCommit<T, R>,
    seats: Vec<Arc<Seat<R>>>,
    answers: Vec<R>,
}

impl<T, R> Drop for Group<'_, T, R> {
    fn drop(&mut self) {
        // First, so that the next group's work begins while this group's threads wake up.
        self.commit.hand_over();
        let mut answers = core::mem::take(&mut self.answers).into_iter();
        for seat in &self.seats {
            seat.tell(News::Answer(answers.next()));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::thread;

    use super::*;
    use crate::atomic::{AtomicU64, Ordering};

    #[test]
    fn each_gets_its_own_answer_and_groups_form() {
        const THREADS: u64 = 8;
        const ROUNDS: u64 = 200;
        let (commit, groups) = (GroupCommit::new(), AtomicU64::new(0));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (commit, groups) = (&commit, &groups);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let request = thread * ROUNDS + round;
                        let answer = commit.join(request, |group: Vec<u64>| {
                            groups.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(std::time::Duration::from_micros(50));
                            group.iter().map(|request| request * 3).collect()
                        });
                        assert_eq!(answer, Some(request * 3));
                    }
                });
            }
        });
        let groups = groups.into_inner();
        assert!(groups < THREADS * ROUNDS, "{groups} groups of one");
    }

    #[test]
    fn a_panic_reaches_nobody_else_and_the_next_group_works() {
        let commit: GroupCommit<(), ()> = GroupCommit::new();
        let panicked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commit.join((), |_| panic!("in the work"))));
        assert!(panicked.is_err());
        assert_eq!(commit.join((), |_| vec![()]), Some(()));
        assert_eq!(commit.join((), |_| vec![]), None);
    }
}
