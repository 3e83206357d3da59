//! Models of the sharded policy: NIDs as bits in their NAT block, batches, stealing, the set of blocks.
#![cfg(loom)]

// mutant: nat_take_without_rmw, killed by: no_nid_is_handed_out_twice
// mutant: nat_take_without_rmw, killed by: the_last_nid_goes_to_one_of_two
// mutant: nat_put_clears_exhausted, killed by: a_cancelled_nid_is_found_by_a_search_that_ends_later
// mutant: nat_batch_dropped, killed by: two_refills_of_one_lane_lose_no_block
// mutant: nat_set_no_second_look, killed by: a_member_is_not_lost_from_sight
// mutant: nat_put_hints_early, killed by: a_cancelled_nid_keeps_its_hint
// mutant: nat_put_all_hint, killed by: a_freed_nid_has_a_hint_beside_a_search
// mutant: nat_know_keeps_no_hint, killed by: what_two_lanes_read_has_hints

mod loom_common;

use f2fs_format::Nid;
use f2fs_nat::Policy::Sharded;
use f2fs_nat::models::Blocks;
use f2fs_sync::{Arc, model, thread};
use loom_common::{allocate, bind, drain, nids, open, open_known};

#[test]
fn no_nid_is_handed_out_twice() {
    model::exhaustive("no_nid_is_handed_out_twice", || {
        // NIDs 4..8 are free, in one block, which is the batch of the one lane.
        let nat = Arc::new(open_known(Sharded, 2, 4, 1));
        let first = allocate(&nat);
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        let mine = allocate(&nat);
        let theirs = thread.join().expect("the thread does not panic");
        let mut all = drain(&nat);
        all.extend([first, mine, theirs].into_iter().flatten());
        all.sort_unstable();
        assert_eq!(all, nids(4, 8));
    });
}

#[test]
fn a_block_is_looked_at_by_two_and_its_nids_are_found_once() {
    model::bounded("a_block_is_looked_at_by_two_and_its_nids_are_found_once", 2, || {
        let nat = Arc::new(open(Sharded, 2, 5, 2));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        let mine = allocate(&nat);
        let theirs = thread.join().expect("the thread does not panic");
        let mut all = drain(&nat);
        all.extend([mine, theirs].into_iter().flatten());
        all.sort_unstable();
        assert_eq!(all, nids(5, 8));
    });
}

#[test]
fn three_threads_share_a_batch() {
    model::bounded("three_threads_share_a_batch", 3, || {
        let nat = Arc::new(open_known(Sharded, 2, 4, 1));
        let first = allocate(&nat);
        let threads = [0, 1].map(|_| {
            let nat = Arc::clone(&nat);
            thread::spawn(move || allocate(&nat))
        });
        let mine = allocate(&nat);
        let theirs = threads.map(|thread| thread.join().expect("the thread does not panic"));
        let mut all: Vec<Nid> = theirs.into_iter().chain([first, mine]).flatten().collect();
        all.sort_unstable();
        assert_eq!(all, nids(4, 8));
    });
}

#[test]
fn the_last_nid_goes_to_one_of_two() {
    model::exhaustive("the_last_nid_goes_to_one_of_two", || {
        let nat = Arc::new(open_known(Sharded, 1, 3, 2));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        let mine = allocate(&nat);
        let theirs = thread.join().expect("the thread does not panic");
        assert_eq!(mine.xor(theirs), Some(Nid(3)), "{mine:?}, {theirs:?}");
    });
}

#[test]
fn a_cancelled_nid_is_found_by_a_search_that_ends_later() {
    model::exhaustive("a_cancelled_nid_is_found_by_a_search_that_ends_later", || {
        // All NIDs are taken; block 1 is the batch of the one lane.
        let nat = Arc::new(open_known(Sharded, 2, 3, 1));
        for nid in 3..8 {
            assert_eq!(allocate(&nat), Some(Nid(nid)));
        }
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        nat.cancel(Nid(3));
        let theirs = thread.join().expect("the thread does not panic");
        // Whoever asks after both has it, unless the other thread has.
        assert_eq!(allocate(&nat).xor(theirs), Some(Nid(3)));
        assert!(allocate(&nat).is_none());
    });
}

#[test]
fn two_refills_of_one_lane_lose_no_block() {
    model::exhaustive("two_refills_of_one_lane_lose_no_block", || {
        // Blocks 1 and 2 have free NIDs; both threads are of the one lane, which has no batch.
        let nat = Arc::new(open_known(Sharded, 3, 6, 1));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other).is_some());
        assert!(allocate(&nat).is_some());
        assert!(thread.join().expect("the thread does not panic"));
        assert!(nat.hints_are_complete());
        assert_eq!(drain(&nat).len(), 4);
    });
}

#[test]
fn a_refill_against_a_thief() {
    model::exhaustive("a_refill_against_a_thief", || {
        // One block with two free NIDs: one lane has it as its batch, the other steals.
        let nat = Arc::new(open_known(Sharded, 2, 6, 2));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || [allocate(&other), allocate(&other)]);
        let mine = allocate(&nat);
        let theirs = thread.join().expect("the thread does not panic");
        let mut all: Vec<Nid> = theirs.into_iter().chain([mine]).flatten().collect();
        all.sort_unstable();
        assert_eq!(all, nids(6, 8));
    });
}

#[test]
fn a_member_is_not_lost_from_sight() {
    model::exhaustive("a_member_is_not_lost_from_sight", || {
        // Two numbers a word: three levels.
        let blocks = Arc::new(Blocks::new(8));
        blocks.insert(6);
        let other = Arc::clone(&blocks);
        let thread = thread::spawn(move || other.insert(7));
        assert!(blocks.remove(6));
        thread.join().expect("the thread does not panic");
        assert_eq!(blocks.next(0), Some(7));
        assert!(blocks.remove(7));
        assert_eq!(blocks.next(0), None);
    });
}

#[test]
fn of_two_removers_one_has_the_block() {
    model::exhaustive("of_two_removers_one_has_the_block", || {
        let blocks = Arc::new(Blocks::new(4));
        blocks.insert(3);
        let other = Arc::clone(&blocks);
        let thread = thread::spawn(move || other.remove(3));
        let mine = blocks.remove(3);
        assert!(mine ^ thread.join().expect("the thread does not panic"));
        blocks.insert(2);
        assert_eq!(blocks.next(0), Some(2));
    });
}

#[test]
fn a_cancelled_nid_keeps_its_hint() {
    model::exhaustive("a_cancelled_nid_keeps_its_hint", || {
        // All NIDs are taken but one of block 1, to which a hint leads; block 2 is the batch of the one lane.
        let nat = Arc::new(open_known(Sharded, 3, 3, 1));
        for nid in 3..12 {
            assert_eq!(allocate(&nat), Some(Nid(nid)));
        }
        nat.cancel(Nid(4));
        // Who follows a hint to block 0 too early would take it away, and go on to block 1.
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        nat.cancel(Nid(3));
        let theirs = thread.join().expect("the thread does not panic").expect("one was free all the while");
        assert!(nat.hints_are_complete(), "theirs: {theirs}");
        let mut both = vec![theirs, allocate(&nat).expect("another is free")];
        both.sort_unstable();
        assert_eq!(both, nids(3, 5));
        assert_eq!(nat.stats().missed_hints, 0);
    });
}

#[test]
fn a_freed_nid_has_a_hint_beside_a_search() {
    model::bounded("a_freed_nid_has_a_hint_beside_a_search", 3, || {
        // NID 3 is the only one of its block that may be handed out, and is bound; block 1 is full.
        let nat = Arc::new(open_known(Sharded, 2, 3, 1));
        for nid in 3..8 {
            assert_eq!(allocate(&nat), Some(Nid(nid)));
        }
        bind(&nat, Nid(3), 500);
        nat.free(Nid(3)).expect("the node is there");
        nat.begin_checkpoint(38).expect("nothing is unwritten");
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        nat.end_checkpoint();
        let theirs = thread.join().expect("the thread does not panic");
        assert!(nat.hints_are_complete(), "NID 3 is free, or theirs: {theirs:?}");
        assert_eq!(allocate(&nat).xor(theirs), Some(Nid(3)));
    });
}

#[test]
fn what_two_lanes_read_has_hints() {
    model::bounded("what_two_lanes_read_has_hints", 2, || {
        let nat = Arc::new(open(Sharded, 3, 5, 2));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other).is_some());
        assert!(allocate(&nat).is_some());
        assert!(thread.join().expect("the thread does not panic"));
        assert!(nat.hints_are_complete());
        assert_eq!(drain(&nat).len(), 5);
    });
}
