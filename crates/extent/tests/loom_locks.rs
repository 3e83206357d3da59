//! Models of the lock table: the production code, with the geometry of `geometry.rs` shrunk (2 words a line, 2 readers
//! a block, covering from 16 blocks on).
//!
//! ```text
//! mutant: release_publishes, killed by: a_holder_sees_what_the_one_before_did
//! mutant: release_of_words_publishes, killed by: writers_of_two_words_exclude
//! mutant: readers_never_share, killed by: readers_share
//! mutant: enqueue_sets_no_bit, killed by: a_release_wakes_who_queues
//! mutant: attach_overlooks_a_grant, killed by: a_release_wakes_who_queues
//! mutant: take_overtakes_the_queue, killed by: a_reader_stays_behind_a_queued_writer
//! mutant: grant_overtakes, killed by: a_reader_stays_behind_a_queued_writer
//! mutant: take_keeps_what_it_has, killed by: opposite_orders_in_one_file
//! mutant: many_sorted, killed by: opposite_orders_in_two_files
//! mutant: hull_look_fence, killed by: a_covering_writer_excludes_a_short_one
//! mutant: hull_announce_fence, killed by: a_covering_writer_excludes_a_short_one
//! mutant: release_of_words_publishes, killed by: a_guard_is_released_on_another_thread
//! mutant: install_keeps_a_line_of_its_own, killed by: two_threads_install_one_chunk
//! mutant: withdraw_overlooks_a_grant, killed by: a_cancellation_meets_a_grant
//! mutant: withdraw_wakes_next, killed by: a_withdrawal_lets_in_who_stood_behind
//! mutant: take_ignores_the_crowd, killed by: readers_beyond_the_counter_share
//! mutant: grant_ignores_the_crowd, killed by: readers_beyond_the_counter_share
//! mutant: overflow_keeps_no_bit, killed by: a_writer_waits_for_a_reader_in_the_list
//! mutant: overflow_release_wakes_nobody, killed by: a_writer_waits_for_a_reader_in_the_list
//! mutant: overflow_goes_with_its_first_holder, killed by: holders_of_one_entry_leave_one_by_one
//! mutant: overflow_tells_no_ticket, killed by: readers_that_waited_overflow
//! mutant: mark_not_set, killed by: a_covering_writer_finds_marked_lines
//! mutant: mark_look_unordered, killed by: a_covering_writer_finds_marked_lines
//! mutant: scan_order, killed by: a_covering_writer_finds_marked_lines
//! mutant: mark_cleared_of_busy_line, killed by: a_busy_line_stays_marked
//! mutant: downgrade_wakes_nobody, killed by: a_downgrade_lets_readers_in
//! mutant: grant_wakes_no_future, killed by: a_future_is_woken
//! mutant: cancel_flag_set_late, killed by: a_cancellation_finds_who_begins_to_wait
//! mutant: settle_stops_at_full_bells, killed by: a_release_rings_more_bells_than_it_has_room_for
//! ```
#![cfg(loom)]

mod loom_common;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use f2fs_extent::{CancelToken, ExtentTable, LockRequest, Mode, Wait, lock_many};
use f2fs_sync::model::{bounded, exhaustive};
use f2fs_sync::{Arc, Condvar, Mutex, thread};
use loom_common::{Guarded, poll_once, with};

#[test]
fn a_holder_sees_what_the_one_before_did() {
    exhaustive("a_holder_sees_what_the_one_before_did", || {
        let guarded = Guarded::new();
        let other = with(&guarded, |guarded| {
            let _alone = guarded.table.exclusive(3..=4);
            guarded.add_one();
        });
        {
            let _alone = guarded.table.exclusive(4..=5);
            guarded.add_one();
        }
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
    });
}

#[test]
fn writers_of_two_words_exclude() {
    exhaustive("writers_of_two_words_exclude", || {
        let guarded = Guarded::new();
        let other = with(&guarded, |guarded| {
            let _alone = guarded.table.exclusive(7..=8);
            guarded.add_one();
        });
        if let Some(_alone) = guarded.table.try_exclusive(8..=8) {
            guarded.add_one();
        } else {
            let _alone = guarded.table.exclusive(7..=7);
            guarded.add_one();
        }
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
        assert_eq!(guarded.table.locked(..), None);
    });
}

#[test]
fn readers_share() {
    exhaustive("readers_share", || {
        let guarded = Guarded::new();
        let other = with(&guarded, |guarded| drop(guarded.table.shared(3..=9)));
        let _reading = guarded.table.shared(9..=9);
        // Joined while the lock is held: if readers excluded each other, this would not end.
        other.join().unwrap();
    });
}

#[test]
fn a_release_wakes_who_queues() {
    exhaustive("a_release_wakes_who_queues", || {
        let guarded = Guarded::new();
        let held = guarded.table.exclusive(3..=3);
        let other = with(&guarded, |guarded| {
            let _alone = guarded.table.exclusive(2..=3);
            guarded.add_one();
        });
        guarded.add_one();
        drop(held);
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
        assert!(guarded.table.try_exclusive(0..=7).is_some(), "no queued bit is left");
    });
}

#[test]
fn a_reader_stays_behind_a_queued_writer() {
    exhaustive("a_reader_stays_behind_a_queued_writer", || {
        let guarded = Guarded::new();
        let reading = guarded.table.shared(3..=3);
        let mut writer = pin!(guarded.table.exclusive_async(3..=4));
        assert!(poll_once(writer.as_mut()).is_none());
        // From here on every reader of block 3 comes after the writer.
        let reader = with(&guarded, |guarded| {
            let _shared = guarded.table.shared(3..=3);
            guarded.add_one();
        });
        drop(reading);
        let writing = poll_once(writer).expect("the reader has gone and the writer is next");
        assert_eq!(guarded.value(), 0);
        drop(writing);
        reader.join().unwrap();
        assert_eq!(guarded.value(), 1);
    });
}

#[test]
fn opposite_orders_in_one_file() {
    exhaustive("opposite_orders_in_one_file", || {
        let guarded = Guarded::new();
        let other = with(&guarded, |guarded| {
            let both = [LockRequest::exclusive(&guarded.table, 9..=9), LockRequest::exclusive(&guarded.table, 0..=0)];
            let _both = lock_many(&both);
            guarded.add_one();
        });
        {
            let both = [LockRequest::exclusive(&guarded.table, 0..=0), LockRequest::exclusive(&guarded.table, 9..=9)];
            let _both = lock_many(&both);
            guarded.add_one();
        }
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
        assert_eq!(guarded.table.locked(..), None);
    });
}

#[test]
fn opposite_orders_in_two_files() {
    exhaustive("opposite_orders_in_two_files", || {
        let (a, b) = (Guarded::new(), Arc::new(ExtentTable::new()));
        let other = with(&a, {
            let b = Arc::clone(&b);
            move |a| {
                let _both = lock_many(&[LockRequest::exclusive(&b, 1..=1), LockRequest::exclusive(&a.table, 1..=1)]);
                a.add_one();
            }
        });
        {
            let _both = lock_many(&[LockRequest::exclusive(&a.table, 1..=1), LockRequest::exclusive(&b, 1..=1)]);
            a.add_one();
        }
        other.join().unwrap();
        assert_eq!(a.value(), 2);
    });
}

#[test]
fn a_covering_writer_excludes_a_short_one() {
    exhaustive("a_covering_writer_excludes_a_short_one", || {
        let guarded = Guarded::new();
        let other = with(&guarded, |guarded| {
            let _alone = guarded.table.exclusive(3..=3);
            guarded.add_one();
        });
        {
            let _alone = guarded.table.exclusive(2..);
            guarded.add_one();
        }
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
        assert!(guarded.table.try_exclusive(..).is_some());
    });
}

#[test]
fn a_guard_is_released_on_another_thread() {
    exhaustive("a_guard_is_released_on_another_thread", || {
        let guarded = Guarded::new();
        let held = guarded.table.lock_owned(3..=3, Mode::Exclusive, &Wait::FOREVER).unwrap();
        let other = with(&guarded, |guarded| {
            guarded.add_one();
            drop(held);
        });
        {
            let _alone = guarded.table.exclusive(3..=3);
            guarded.add_one();
        }
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
    });
}

#[test]
fn two_threads_install_one_chunk() {
    exhaustive("two_threads_install_one_chunk", || {
        let guarded = Guarded::new();
        // The directory is there, but no line of blocks 32 and up.
        drop(guarded.table.shared(20..=20));
        let table = Arc::clone(&guarded.table);
        let other = thread::spawn(move || table.lock_owned(40..=40, Mode::Exclusive, &Wait::FOREVER).unwrap());
        let mine = guarded.table.exclusive(41..=41);
        let others = other.join().unwrap();
        assert_eq!(guarded.table.locked(40..=40), Some(Mode::Exclusive));
        assert_eq!(guarded.table.locked(41..=41), Some(Mode::Exclusive));
        drop((mine, others));
        assert_eq!(guarded.table.locked(..), None);
    });
}

#[test]
fn a_cancellation_meets_a_grant() {
    exhaustive("a_cancellation_meets_a_grant", || {
        let guarded = Guarded::new();
        let token = CancelToken::new();
        let held = guarded.table.exclusive(3..=3);
        let other = with(&guarded, {
            let token = token.clone();
            move |guarded| {
                if let Ok(_alone) = guarded.table.exclusive_with(3..=3, &Wait::FOREVER.or_cancelled(&token)) {
                    guarded.add_one();
                }
            }
        });
        token.cancel();
        drop(held);
        other.join().unwrap();
        assert!(guarded.value() <= 1);
        assert!(guarded.table.try_exclusive(..).is_some(), "nothing is left behind");
    });
}

#[test]
fn a_withdrawal_lets_in_who_stood_behind() {
    exhaustive("a_withdrawal_lets_in_who_stood_behind", || {
        let guarded = Guarded::new();
        let _reading = guarded.table.shared(3..=3);
        let mut writer = Box::pin(guarded.table.exclusive_async(3..=9));
        assert!(poll_once(writer.as_mut()).is_none());
        let reader = with(&guarded, |guarded| drop(guarded.table.shared(3..=3)));
        drop(writer);
        // Joined while block 3 is still being read.
        reader.join().unwrap();
    });
}

#[test]
fn readers_beyond_the_counter_share() {
    exhaustive("readers_beyond_the_counter_share", || {
        let guarded = Guarded::new();
        // Two are all that a model's byte counts; one thread's third comes while the other's may come or go.
        let counted = guarded.table.shared(3..=3);
        let other = with(&guarded, |guarded| {
            let more = guarded.table.shared(3..=3);
            let _last = guarded.table.shared(2..=3);
            drop(more);
        });
        let mine = guarded.table.shared(3..=4);
        // Joined while the locks are held: if a reader waited for another, this would not end.
        other.join().unwrap();
        drop((counted, mine));
        assert!(guarded.table.try_exclusive(..).is_some(), "nothing is left behind");
    });
}

#[test]
fn a_writer_waits_for_a_reader_in_the_list() {
    exhaustive("a_writer_waits_for_a_reader_in_the_list", || {
        let guarded = Guarded::new();
        let counted = [guarded.table.shared(3..=3), guarded.table.shared(3..=3)];
        let listed = guarded.table.shared(3..=3);
        let other = with(&guarded, |guarded| {
            let _alone = guarded.table.exclusive(3..=3);
            guarded.add_one();
        });
        drop(counted);
        guarded.add_one();
        drop(listed);
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
        assert!(guarded.table.try_exclusive(..).is_some(), "no queued bit is left");
    });
}

#[test]
fn holders_of_one_entry_leave_one_by_one() {
    exhaustive("holders_of_one_entry_leave_one_by_one", || {
        let guarded = Guarded::new();
        let counted = [guarded.table.shared(3..=3), guarded.table.shared(3..=3)];
        let listed = guarded.table.shared(3..=3);
        let joined = guarded.table.lock_owned(3..=3, Mode::Shared, &Wait::FOREVER).unwrap();
        drop(counted);
        let other = with(&guarded, |_| drop(joined));
        if let Some(_alone) = guarded.table.try_exclusive(3..=3) {
            panic!("one of the two is still there");
        }
        drop(listed);
        {
            let _alone = guarded.table.exclusive(3..=3);
        }
        other.join().unwrap();
        assert!(guarded.table.try_exclusive(..).is_some(), "no queued bit is left");
    });
}

#[test]
fn readers_that_waited_overflow() {
    exhaustive("readers_that_waited_overflow", || {
        let guarded = Guarded::new();
        let held = guarded.table.lock_owned(3..=3, Mode::Exclusive, &Wait::FOREVER).unwrap();
        let mut readers: [_; 2] = std::array::from_fn(|_| Box::pin(guarded.table.shared_async(3..=3)));
        assert!(readers.iter_mut().all(|reader| poll_once(reader.as_mut()).is_none()));
        let other = with(&guarded, |guarded| {
            guarded.add_one();
            drop(held);
        });
        {
            // The third: counted by none, unless one of the others has gone before it came.
            let _reading = guarded.table.shared(3..=3);
            assert_eq!(guarded.value(), 1);
            let [first, mut second] = readers;
            // Dropped with a grant that was not seen, and released after one that was, if its bell has rung.
            drop(first);
            drop(poll_once(second.as_mut()));
        }
        other.join().unwrap();
        assert!(guarded.table.try_exclusive(..).is_some(), "nothing is left behind");
    });
}

#[test]
fn a_covering_writer_finds_marked_lines() {
    bounded("a_covering_writer_finds_marked_lines", 5, || {
        let guarded = Guarded::new();
        // The line of block 20 is there, marked and idle, and so is the queue.
        drop(guarded.table.exclusive(0..));
        drop(guarded.table.shared(20..=20));
        let other = with(&guarded, |guarded| {
            if let Some(_alone) = guarded.table.try_exclusive(20..=20) {
                guarded.add_one();
                guarded.add_one();
            }
        });
        // The first clears the mark, the second relies on it.
        drop(guarded.table.try_exclusive(16..));
        if let Some(_alone) = guarded.table.try_exclusive(16..) {
            assert_eq!(guarded.value() % 2, 0, "the other thread is in the middle of it");
            guarded.add_one();
            guarded.add_one();
        }
        other.join().unwrap();
        assert_eq!(guarded.table.locked(..), None);
    });
}

#[test]
fn a_busy_line_stays_marked() {
    exhaustive("a_busy_line_stays_marked", || {
        let guarded = Guarded::new();
        let held = guarded.table.exclusive(20..=20);
        // Not in the way of this one, but in its line.
        drop(guarded.table.exclusive(21..));
        let other = with(&guarded, |guarded| {
            let _alone = guarded.table.exclusive(16..);
            guarded.add_one();
        });
        guarded.add_one();
        drop(held);
        other.join().unwrap();
        assert_eq!(guarded.value(), 2);
    });
}

#[test]
fn a_downgrade_lets_readers_in() {
    exhaustive("a_downgrade_lets_readers_in", || {
        let guarded = Guarded::new();
        let writing = guarded.table.exclusive(3..=9);
        let reader = with(&guarded, |guarded| {
            let _shared = guarded.table.shared(9..=9);
            assert_eq!(guarded.value(), 1);
        });
        guarded.add_one();
        let _reading = writing.downgrade();
        reader.join().unwrap();
    });
}

/// A sleeping thread as a waker.
#[derive(Default)]
struct Sleeper {
    woken: Mutex<bool>,
    bell: Condvar,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *self.woken.lock() = true;
        self.bell.notify_one();
    }
}

#[test]
fn a_future_is_woken() {
    exhaustive("a_future_is_woken", || {
        let guarded = Guarded::new();
        let held = guarded.table.lock_owned(3..=3, Mode::Exclusive, &Wait::FOREVER).unwrap();
        let other = with(&guarded, |guarded| {
            guarded.add_one();
            drop(held);
        });
        let sleeper = Arc::new(Sleeper::default());
        let waker = Waker::from(Arc::clone(&sleeper));
        let mut future = pin!(guarded.table.exclusive_async(3..=3));
        let alone = loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(alone) => break alone,
                Poll::Pending => {
                    let mut woken = sleeper.woken.lock();
                    while !std::mem::take(&mut *woken) {
                        sleeper.bell.wait(&mut woken);
                    }
                }
            }
        };
        assert_eq!(guarded.value(), 1);
        drop(alone);
        other.join().unwrap();
    });
}

#[test]
fn a_cancellation_finds_who_begins_to_wait() {
    exhaustive("a_cancellation_finds_who_begins_to_wait", || {
        let guarded = Guarded::new();
        let token = CancelToken::new();
        let held = guarded.table.exclusive(3..=3);
        let other = with(&guarded, {
            let token = token.clone();
            move |guarded| {
                let ended = guarded.table.exclusive_with(3..=3, &Wait::FOREVER.or_cancelled(&token));
                assert!(ended.is_err(), "block 3 is held all the while");
            }
        });
        token.cancel();
        // Joined while block 3 is held: only the token can end the wait.
        other.join().unwrap();
        drop(held);
        assert!(guarded.table.try_exclusive(..).is_some(), "nothing is left behind");
    });
}

#[test]
fn a_release_rings_more_bells_than_it_has_room_for() {
    exhaustive("a_release_rings_more_bells_than_it_has_room_for", || {
        let guarded = Guarded::new();
        let held = guarded.table.lock_owned(3..=6, Mode::Exclusive, &Wait::FOREVER).unwrap();
        // A model's release has room for two bells, and four wait, each of whom has to be told; one gives up meanwhile.
        let mut waiting: Vec<_> = (3..=6).map(|block| Box::pin(guarded.table.exclusive_async(block..=block))).collect();
        assert!(waiting.iter_mut().all(|one| poll_once(one.as_mut()).is_none()));
        let other = with(&guarded, |_| drop(held));
        drop(waiting.remove(0));
        other.join().unwrap();
        let granted: Vec<_> = waiting.iter_mut().map(|one| poll_once(one.as_mut())).collect();
        assert!(granted.iter().all(Option::is_some), "nobody else holds a block");
    });
}
