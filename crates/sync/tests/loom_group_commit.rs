//! Models of group commit.
#![cfg(loom)]

// mutant: group_commit_wakes_waiter, killed by: everybody_is_answered
// mutant: group_commit_no_handover, killed by: everybody_is_answered
// mutant: group_commit_early_handover, killed by: one_group_is_worked_on_at_a_time
// mutant: group_commit_two_leads, killed by: who_was_waited_for_may_come_late
// mutant: group_commit_leads_nobody, killed by: who_was_waited_for_may_come_late
// mutant: group_commit_answer_overwritten, killed by: one_group_is_worked_on_at_a_time

use f2fs_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use f2fs_sync::{Arc, GroupCommit, Mutex, model, thread};

#[derive(Default)]
struct Log {
    /// Requests in the order in which they were worked on. Not ordered by anything but the groups.
    written: Mutex<Vec<usize>>,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Log {
    fn work(&self, group: Vec<usize>) -> Vec<usize> {
        let begun = self.begun.fetch_add(1, Relaxed) + 1;
        assert_eq!(self.ended.load(Relaxed) + 1, begun, "two groups at once");
        assert!(!group.is_empty(), "a group of nobody");
        self.written.lock().extend(&group);
        self.ended.fetch_add(1, Relaxed);
        group.iter().map(|request| request + 10).collect()
    }

    fn join(&self, commit: &GroupCommit<usize, usize>, request: usize) {
        assert_eq!(commit.join(request, |group| self.work(group)), Some(request + 10));
        assert!(self.written.lock().contains(&request));
    }
}

fn together(threads: usize) {
    let shared = Arc::new((GroupCommit::new(), Log::default()));
    let others: Vec<_> = (1..threads)
        .map(|request| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.1.join(&shared.0, request))
        })
        .collect();
    shared.1.join(&shared.0, 0);
    for other in others {
        other.join().expect("no thread panics");
    }
    let mut written = shared.1.written.lock().clone();
    written.sort_unstable();
    assert_eq!(written, (0..threads).collect::<Vec<_>>());
}

/// Each thread syncs twice: the second time it is expected, and waited for.
#[test]
fn who_was_waited_for_may_come_late() {
    model::bounded("who_was_waited_for_may_come_late", 6, || {
        let shared = Arc::new((GroupCommit::new(), Log::default()));
        let twice = |shared: &(GroupCommit<usize, usize>, Log), first: usize| {
            shared.1.join(&shared.0, first);
            shared.1.join(&shared.0, first + 1);
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || twice(&shared, 2))
        };
        twice(&shared, 0);
        other.join().expect("no thread panics");
        let mut written = shared.1.written.lock().clone();
        written.sort_unstable();
        assert_eq!(written, [0, 1, 2, 3]);
    });
}

#[test]
fn everybody_is_answered() {
    model::exhaustive("everybody_is_answered", || together(2));
}

#[test]
fn one_group_is_worked_on_at_a_time() {
    model::bounded("one_group_is_worked_on_at_a_time", 5, || together(3));
}
