//! Group commit: many threads want the same slow thing (a log write and a flush), and one of them does it for all.
//!
//! # Locking
//!
//! `state` guards the queue and whether somebody leads; a seat's lock guards the news for one thread that waits.
//! Neither is held while the work runs, and no two at a time.
//!
//! ```text
//!             join, as many as are expected                      work done, queue empty
//!  (nobody) -----------------------------------> leading: takes -------------------------> (nobody)
//!     |  ^                                       the whole queue,
//!     |  | join, and there are as many as        works
//!     |  | expected, or the time is over: leads    |         ^
//!     |  +-----------------------------------+     |         | work done, queue not empty, nobody else expected:
//!     | join, more are expected              |     |         | its first waiter leads
//!     +-----------------------------> (gathering)<-+---------+
//!                                       the first in the queue watches the time
//!
//!  a thread that joins meanwhile: waits in the queue -> its group's answer, or the lead, or the watch
//! ```
//!
//! One group is worked on at a time, so the work of groups is done in the order in which they were formed; and the work
//! on a request begins after the request was made. There is no edge from a running group back to its queue: who comes
//! late is in the next group.
//!
//! # Who is expected
//!
//! The leader expects the threads of the last group, and the threads that came while it was worked on. Without that, a
//! few threads that sync over and over would take turns in groups of one. The leader waits for as long as the last
//! group took (as ext4's journal does, `jbd2_journal_stop`), 1 ms at most. If nobody came, the next groups form at
//! once; each vain wait makes more of them do so. No group of more than 16 threads waits: the missing threads keep
//! the device busy meanwhile, and the queue fills while a group is worked on.

mod gathering;

use core::time::Duration;

use crate::{Arc, Condvar, Mutex, protocol_never, protocol_step, protocol_value};

pub use gathering::{Gathering, Gathers};

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
    queue: Vec<(T, Arc<Seat<R>>)>,
    /// Whether somebody leads, and when the next group begins.
    gathering: Gathering,
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
    Watch(Duration),
    Answer(Option<R>),
}

impl<R> From<Gathers> for News<R> {
    fn from(gathers: Gathers) -> News<R> {
        match gathers {
            Gathers::Leads => News::Lead,
            Gathers::Watches(patience) => News::Watch(patience),
            Gathers::Waits => News::None,
        }
    }
}

impl<R> Seat<R> {
    fn tell(&self, news: News<R>) {
        {
            let mut told = self.news.lock();
            // The watch may come after somebody else led the group: an answer stays.
            if protocol_value!("group_commit_answer_overwritten", matches!(*told, News::Answer(_)), false) {
                return;
            }
            *told = news;
        }
        protocol_step!("group_commit_wakes_waiter", self.told.notify_one());
    }

    fn wait(&self) -> News<R> {
        let mut news = self.news.lock();
        while matches!(*news, News::None) {
            self.told.wait(&mut news);
        }
        core::mem::replace(&mut *news, News::None)
    }

    /// The news, if they come in time.
    fn wait_for(&self, patience: Duration) -> News<R> {
        let mut news = self.news.lock();
        if matches!(*news, News::None) {
            let _ = self.told.wait_for(&mut news, patience);
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
        GroupCommit { state: Mutex::new(State { queue: Vec::new(), gathering: Gathering::new() }) }
    }

    /// Hands in a request and returns its answer. `work` is called by one of the threads of each group with all
    /// requests of the group, in the order in which they came, and gives one answer for each; another thread's `work`
    /// may serve this request.
    ///
    /// `None`: the work panicked, or gave fewer answers than there were requests.
    pub fn join(&self, request: T, work: impl FnOnce(Vec<T>) -> Vec<R>) -> Option<R> {
        let seat = Arc::new(Seat { news: Mutex::new(News::None), told: Condvar::new() });
        let mut news = {
            let mut state = self.state.lock();
            state.queue.push((request, seat.clone()));
            let waiting = state.queue.len();
            state.gathering.came(waiting).into()
        };
        loop {
            news = match news {
                News::Answer(answer) => return answer,
                News::None => seat.wait(),
                News::Watch(patience) => match seat.wait_for(patience) {
                    News::None if self.takes_lead(&seat) => News::Lead,
                    news => news,
                },
                News::Lead => break,
            };
        }
        let (requests, seats) = core::mem::take(&mut self.state.lock().queue).into_iter().unzip();
        let mut group = Group { commit: self, seats, answers: Vec::new(), took: Duration::ZERO };
        protocol_never!("group_commit_early_handover", self.hand_over(&group));
        (group.answers, group.took) = timed(|| work(requests));
        drop(group);
        match seat.wait() {
            News::Answer(answer) => answer,
            News::None | News::Lead | News::Watch(_) => None,
        }
    }

    /// The time is over: the first of the queue leads, unless somebody else does by now.
    fn takes_lead(&self, seat: &Arc<Seat<R>>) -> bool {
        let mut state = self.state.lock();
        let is_first = state.queue.first().is_some_and(|(_, first)| Arc::ptr_eq(first, seat));
        state.gathering.is_over(is_first)
    }

    /// A group is done: lets the first waiter lead, or watch the time until the others are there, if there is one.
    fn hand_over(&self, group: &Group<'_, T, R>) {
        let next = {
            let mut state = self.state.lock();
            let waiting = state.queue.len();
            let news = state.gathering.is_done(group.seats.len(), waiting, group.took).into();
            let next = state.queue.first().map(|(_, seat)| seat.clone());
            protocol_value!("group_commit_no_handover", next, None).map(|seat| (seat, news))
        };
        if let Some((seat, news)) = next {
            seat.tell(news);
        }
    }
}

/// The result of the work, and how long it took. Time does not pass in a model.
fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    #[cfg(not(any(loom, shuttle)))]
    let begun = std::time::Instant::now();
    let answers = work();
    #[cfg(not(any(loom, shuttle)))]
    let took = begun.elapsed();
    #[cfg(any(loom, shuttle))]
    let took = Duration::ZERO;
    (answers, took)
}

/// A group that is worked on. However that ends, the next group can begin and everybody is told.
struct Group<'a, T, R> {
    commit: &'a GroupCommit<T, R>,
    seats: Vec<Arc<Seat<R>>>,
    answers: Vec<R>,
    took: Duration,
}

impl<T, R> Drop for Group<'_, T, R> {
    fn drop(&mut self) {
        // First, so that the next group's work begins while this group's threads wake up.
        self.commit.hand_over(self);
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
    use crate::atomic::{AtomicBool, AtomicU64, Ordering};

    #[test]
    fn each_gets_its_own_answer_and_groups_form() {
        const THREADS: u64 = 8;
        const ROUNDS: u64 = 200;
        let (commit, groups, busy) = (GroupCommit::new(), AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (commit, groups, busy) = (&commit, &groups, &busy);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let request = thread * ROUNDS + round;
                        let answer = commit.join(request, |group: Vec<u64>| {
                            assert!(!group.is_empty() && !busy.swap(true, Ordering::Relaxed), "one group at a time");
                            groups.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_micros(50));
                            busy.store(false, Ordering::Relaxed);
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

    fn seat() -> Arc<Seat<u32>> {
        Arc::new(Seat { news: Mutex::new(News::None), told: Condvar::new() })
    }

    #[test]
    fn an_answer_stays() {
        let seat = seat();
        seat.tell(News::Answer(Some(5)));
        // Of a leader that found it first in the queue before another one took the queue.
        seat.tell(News::Watch(Duration::ZERO));
        assert!(matches!(seat.wait(), News::Answer(Some(5))));
    }

    #[test]
    fn news_that_are_there_are_not_waited_for() {
        let seat = seat();
        seat.tell(News::Lead);
        assert!(matches!(seat.wait_for(Duration::from_secs(3600)), News::Lead));
        assert!(matches!(seat.wait_for(Duration::ZERO), News::None));
    }

    #[test]
    fn when_the_time_is_over_the_first_of_the_queue_leads() {
        let (commit, first, second) = (GroupCommit::new(), seat(), seat());
        assert!(!commit.takes_lead(&first), "another one has taken the queue, and it with it");
        commit.state.lock().queue.extend([((), first.clone()), ((), second.clone())]);
        assert!(!commit.takes_lead(&second));
        assert!(commit.takes_lead(&first));
        assert!(!commit.takes_lead(&first), "it leads already");
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
