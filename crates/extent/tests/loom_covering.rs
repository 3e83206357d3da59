//! Models of covering locks: their chunks, downgrade, withdrawal and cancellation.
//!
//! ```text
//! mutant: present_set_before_chunk, killed by: a_covering_writer_finds_a_chunk_that_is_being_installed
//! mutant: downgrade_covering_wakes_next, killed by: a_covering_downgrade_lets_readers_in
//! mutant: withdraw_wakes_next, killed by: a_withdrawn_covering_request_lets_in_who_stood_behind
//! mutant: withdraw_announces_nothing, killed by: a_withdrawn_covering_request_is_announced_no_more
//! mutant: withdraw_overlooks_a_grant, killed by: a_cancellation_meets_a_covering_grant
//! ```
#![cfg(loom)]

mod loom_common;

use std::ops::RangeBounds;

use f2fs_extent::{BlockRange, CancelToken, ExtentTable, Wait};
use f2fs_sync::atomic::Ordering::Relaxed;
use f2fs_sync::model::exhaustive;
use loom_common::{Guarded, poll_once, with};

fn announced(table: &ExtentTable, range: impl RangeBounds<u64>) -> bool {
    table.announced(BlockRange::of(range).expect("a range of blocks"))
}

#[test]
fn a_covering_writer_finds_a_chunk_that_is_being_installed() {
    exhaustive("a_covering_writer_finds_a_chunk_that_is_being_installed", || {
        let guarded = Guarded::new();
        // The directory is there, but no line of blocks 16 to 31.
        drop(guarded.table.shared(40..=40));
        let other = with(&guarded, |guarded| {
            guarded.value.store(1, Relaxed);
            guarded.table.make_words(BlockRange::one(20));
        });
        // The value orders nothing. loom reverses only the last of the accesses to one variable, and the other thread
        // looks for the chunk itself before it makes one: without a variable of its own, it would always be late.
        if guarded.value() == 1
            && guarded.table.has_word(20)
            && let Some(_held) = guarded.table.try_exclusive(20..=20)
        {
            // As soon as the chunk can be found, what is held in it must be too.
            assert!(guarded.table.try_exclusive(16..).is_none(), "block 20 is held");
        }
        other.join().unwrap();
        assert_eq!(guarded.table.locked(..), None);
    });
}

#[test]
fn a_covering_downgrade_lets_readers_in() {
    exhaustive("a_covering_downgrade_lets_readers_in", || {
        let guarded = Guarded::new();
        let writing = guarded.table.exclusive(2..);
        let reader = with(&guarded, |guarded| {
            let _shared = guarded.table.shared(3..=3);
            assert_eq!(guarded.value(), 1);
        });
        guarded.add_one();
        let reading = writing.downgrade();
        // Joined while the blocks are being read.
        reader.join().unwrap();
        assert!(guarded.table.try_exclusive(9..=9).is_none(), "the covering reader is there");
        drop(reading);
        assert!(guarded.table.try_exclusive(..).is_some(), "nothing is left behind");
    });
}

#[test]
fn a_covering_downgrade_lets_a_covering_reader_in_and_no_writer() {
    exhaustive("a_covering_downgrade_lets_a_covering_reader_in_and_no_writer", || {
        let guarded = Guarded::new();
        let writing = guarded.table.exclusive(2..);
        let reader = with(&guarded, |guarded| {
            let _shared = guarded.table.shared(..);
            assert_eq!(guarded.value(), 1);
            assert!(guarded.table.try_exclusive(40..=40).is_none(), "it is being read");
        });
        guarded.add_one();
        let reading = writing.downgrade();
        reader.join().unwrap();
        drop(reading);
        assert!(!announced(&guarded.table, 9..=9));
    });
}

#[test]
fn a_withdrawn_covering_request_lets_in_who_stood_behind() {
    exhaustive("a_withdrawn_covering_request_lets_in_who_stood_behind", || {
        let guarded = Guarded::new();
        let _reading = guarded.table.shared(3..=3);
        let mut writer = Box::pin(guarded.table.exclusive_async(2..));
        assert!(poll_once(writer.as_mut()).is_none());
        let reader = with(&guarded, |guarded| drop(guarded.table.shared(9..=9)));
        drop(writer);
        // Joined while block 3 is still being read.
        reader.join().unwrap();
    });
}

#[test]
fn a_withdrawn_covering_request_is_announced_no_more() {
    exhaustive("a_withdrawn_covering_request_is_announced_no_more", || {
        let guarded = Guarded::new();
        let _reading = guarded.table.shared(3..=3);
        let mut writer = Box::pin(guarded.table.exclusive_async(2..));
        assert!(poll_once(writer.as_mut()).is_none());
        assert!(announced(&guarded.table, 9..=9));
        // Nobody would be locked out for good, but every lock of these blocks would go through the queue.
        let other = with(&guarded, |guarded| drop(guarded.table.try_shared(9..=9)));
        drop(writer);
        other.join().unwrap();
        assert!(!announced(&guarded.table, 9..=9), "no covering claim is left");
    });
}

#[test]
fn a_cancellation_meets_a_covering_grant() {
    exhaustive("a_cancellation_meets_a_covering_grant", || {
        let guarded = Guarded::new();
        let token = CancelToken::new();
        let held = guarded.table.exclusive(3..=3);
        let other = with(&guarded, {
            let token = token.clone();
            move |guarded| {
                if let Ok(_alone) = guarded.table.exclusive_with(2.., &Wait::FOREVER.or_cancelled(&token)) {
                    guarded.add_one();
                }
            }
        });
        token.cancel();
        drop(held);
        other.join().unwrap();
        assert!(guarded.value() <= 1);
        assert!(!announced(&guarded.table, 9..=9), "no covering claim is left");
        assert!(guarded.table.try_exclusive(..).is_some(), "nothing is left behind");
    });
}
