//! Models of the lock table with three threads: as `loom_locks.rs`, with three preemptions.
//!
//! ```text
//! mutant: enqueue_sets_no_bit, killed by: three_writers_exclude
//! mutant: release_of_words_publishes, killed by: three_writers_exclude
//! mutant: release_wakes_one_only, killed by: a_release_wakes_two_readers
//! mutant: grant_overtakes, killed by: a_release_elsewhere_keeps_the_order
//! mutant: many_sorted, killed by: three_files_in_a_circle
//! mutant: hull_announce_fence, killed by: a_covering_writer_and_two_short_ones
//! mutant: withdraw_overlooks_a_grant, killed by: a_cancellation_and_a_grant_on_three_threads
//! ```
#![cfg(loom)]

mod loom_common;

use f2fs_extent::{CancelToken, ExtentTable, LockRequest, Mode, Wait, lock_many};
use f2fs_sync::model::bounded;
use f2fs_sync::{Arc, Condvar, Mutex, thread};
use loom_common::{Guarded, poll_once, with};

/// Joins them all.
fn join<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    for one in threads {
        one.join().unwrap();
    }
}

#[test]
fn three_writers_exclude() {
    bounded("three_writers_exclude", 3, || {
        let guarded = Guarded::new();
        let write = |first, last| {
            move |guarded: &Guarded| {
                let _alone = guarded.table.exclusive(first..=last);
                guarded.add_one();
            }
        };
        let others = [with(&guarded, write(3, 4)), with(&guarded, write(4, 8))];
        write(4, 5)(&guarded);
        join(others);
        assert_eq!(guarded.value(), 3);
        assert!(guarded.table.try_exclusive(0..=15).is_some(), "no queued bit is left");
    });
}

#[test]
fn a_release_wakes_two_readers() {
    bounded("a_release_wakes_two_readers", 3, || {
        let guarded = Guarded::new();
        let held = guarded.table.exclusive(3..=3);
        // Each stays until both are in: one alone does not end.
        let inside = Arc::new((Mutex::new(0), Condvar::new()));
        let readers = [0, 1].map(|_| {
            let inside = Arc::clone(&inside);
            with(&guarded, move |guarded| {
                let _shared = guarded.table.shared(2..=3);
                assert_eq!(guarded.value(), 1);
                let (count, both) = &*inside;
                let mut count = count.lock();
                *count += 1;
                both.notify_one();
                while *count < 2 {
                    both.wait(&mut count);
                }
            })
        });
        guarded.add_one();
        drop(held);
        join(readers);
        assert_eq!(guarded.table.locked(..), None);
    });
}

#[test]
fn a_release_elsewhere_keeps_the_order() {
    bounded("a_release_elsewhere_keeps_the_order", 3, || {
        let guarded = Guarded::new();
        let reading = guarded.table.lock_owned(3..=3, Mode::Shared, &Wait::FOREVER).unwrap();
        let mut writer = Box::pin(guarded.table.exclusive_async(3..=4));
        assert!(poll_once(writer.as_mut()).is_none());
        let releaser = thread::spawn(move || drop(reading));
        let reader = with(&guarded, |guarded| {
            let _shared = guarded.table.shared(3..=3);
            guarded.add_one();
        });
        releaser.join().unwrap();
        let writing = poll_once(writer.as_mut()).expect("the reader has gone and the writer is next");
        assert_eq!(guarded.value(), 0);
        drop(writing);
        reader.join().unwrap();
        assert_eq!(guarded.value(), 1);
    });
}

#[test]
fn three_files_in_a_circle() {
    bounded("three_files_in_a_circle", 3, || {
        // In one array, so that the order of their addresses is the same in every schedule.
        let files: Arc<[ExtentTable; 3]> = Arc::new(std::array::from_fn(|_| ExtentTable::new()));
        let both = |files: &[ExtentTable; 3], from: usize| {
            let (x, y) = (&files[from], &files[(from + 1) % 3]);
            drop(lock_many(&[LockRequest::exclusive(x, 1..=1), LockRequest::exclusive(y, 1..=1)]));
        };
        let others = [1, 2].map(|from| {
            let files = Arc::clone(&files);
            thread::spawn(move || both(&files, from))
        });
        both(&files, 0);
        join(others);
        assert!(files.iter().all(|file| file.locked(..).is_none()));
    });
}

#[test]
fn a_covering_writer_and_two_short_ones() {
    bounded("a_covering_writer_and_two_short_ones", 3, || {
        let guarded = Guarded::new();
        let others = [3, 12].map(|block| {
            with(&guarded, move |guarded| {
                let shared = guarded.table.shared(block..=block);
                let before = guarded.value();
                assert_eq!(guarded.value(), before, "the covering writer is in the middle of it");
                drop(shared);
            })
        });
        {
            let _alone = guarded.table.exclusive(2..);
            guarded.add_one();
        }
        join(others);
        assert!(guarded.table.try_exclusive(..).is_some());
    });
}

#[test]
fn a_cancellation_and_a_grant_on_three_threads() {
    bounded("a_cancellation_and_a_grant_on_three_threads", 3, || {
        let guarded = Guarded::new();
        let token = CancelToken::new();
        let held = guarded.table.exclusive(3..=3);
        let waiter = with(&guarded, {
            let token = token.clone();
            move |guarded| {
                if let Ok(_alone) = guarded.table.exclusive_with(3..=3, &Wait::FOREVER.or_cancelled(&token)) {
                    guarded.add_one();
                }
            }
        });
        let canceller = thread::spawn(move || token.cancel());
        drop(held);
        join([waiter, canceller]);
        assert!(guarded.value() <= 1);
        assert!(guarded.table.try_exclusive(..).is_some(), "nothing is left behind");
    });
}
