//! Models of the policies that keep a list: the kernel's scan and CLUE.
#![cfg(loom)]

// mutant: nat_waits_for_bitmap_scan, killed by: an_optimistic_scanner_does_not_wait_for_a_bitmap_scan
// mutant: nat_list_twice, killed by: two_scanners_list_a_nid_once
// mutant: nat_scan_beside_changes, killed by: a_scan_does_not_list_what_was_bound_meanwhile
// mutant: nat_scan_lists_taken, killed by: a_block_scan_does_not_list_what_is_taken

mod loom_common;

use f2fs_format::Nid;
use f2fs_format::nat::RawNatEntry;
use f2fs_nat::{Nat, NatConfig, Policy};
use f2fs_sync::{Arc, model, thread};
use loom_common::{Filled, allocate, bind, drain, nids, open, open_known};

const OPTIMISTIC: Policy = Policy::Clue { optimistic: true, heuristic: true, lazy: false };

/// A table of which block 1 has NIDs 4..8 free, and the journal says that 6 is so.
fn open_with_journal(policy: Policy) -> Nat {
    let config = NatConfig::new(2).policy(policy).balance_entries(0).valid_nodes(0);
    let journal = [(Nid(6), RawNatEntry { version: 1, ino: 6.into(), block_addr: 0.into() })];
    Nat::new(config, Arc::new(Filled { bound: 4 }), vec![0], &journal).expect("the size is right")
}

fn no_nid_is_handed_out_twice(name: &str, policy: Policy) {
    model::bounded(name, 3, move || {
        let nat = Arc::new(open(policy, 2, 6, 1));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        let mine = allocate(&nat);
        let theirs = thread.join().expect("the thread does not panic");
        let mut all: Vec<Nid> = [mine, theirs].into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, nids(6, 8), "both are found");
        assert!(allocate(&nat).is_none());
    });
}

#[test]
fn the_kernels_list_hands_out_each_nid_once() {
    no_nid_is_handed_out_twice("the_kernels_list_hands_out_each_nid_once", Policy::KernelScan);
}

#[test]
fn clues_list_hands_out_each_nid_once() {
    no_nid_is_handed_out_twice("clues_list_hands_out_each_nid_once", Policy::CLUE);
}

fn the_last_nid_goes_to_one_of_two(name: &str, policy: Policy) {
    model::bounded(name, 3, move || {
        let nat = Arc::new(open(policy, 1, 3, 1));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        let mine = allocate(&nat);
        let theirs = thread.join().expect("the thread does not panic");
        assert_eq!(mine.xor(theirs), Some(Nid(3)), "{mine:?}, {theirs:?}");
    });
}

#[test]
fn the_last_nid_of_the_kernels_list_goes_to_one_of_two() {
    the_last_nid_goes_to_one_of_two("the_last_nid_of_the_kernels_list_goes_to_one_of_two", Policy::KernelScan);
}

#[test]
fn the_last_nid_of_clues_list_goes_to_one_of_two() {
    the_last_nid_goes_to_one_of_two("the_last_nid_of_clues_list_goes_to_one_of_two", Policy::CLUE);
}

#[test]
fn an_optimistic_scanner_does_not_wait_for_a_bitmap_scan() {
    model::exhaustive("an_optimistic_scanner_does_not_wait_for_a_bitmap_scan", || {
        let nat = Arc::new(open_known(OPTIMISTIC, 2, 6, 1));
        let other = Arc::clone(&nat);
        // The scan that runs ends after the other thread's build: if that waited, neither would end.
        nat.within_bitmap_scan(|| {
            thread::spawn(move || other.balance()).join().expect("the thread does not panic");
        });
        assert_eq!(drain(&nat), nids(6, 8));
    });
}

#[test]
fn two_scanners_list_a_nid_once() {
    model::bounded("two_scanners_list_a_nid_once", 3, || {
        // NIDs 4, 6 and 7 are free: fewer than would be enough, so whoever comes scans the bitmap again.
        let nat = Arc::new(open_with_journal(OPTIMISTIC));
        assert!(nat.reserve(Nid(5)).expect("the block can be read"));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || other.balance());
        nat.balance();
        thread.join().expect("the thread does not panic");
        assert_eq!(nat.stats().listed, 3);
        assert_eq!(drain(&nat), [Nid(4), Nid(6), Nid(7)]);
    });
}

#[test]
fn a_scanner_of_the_journal_and_one_of_the_block_list_a_nid_once() {
    model::bounded("a_scanner_of_the_journal_and_one_of_the_block_list_a_nid_once", 3, || {
        let nat = Arc::new(open_with_journal(OPTIMISTIC));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || other.balance());
        nat.balance();
        thread.join().expect("the thread does not panic");
        nat.balance();
        assert_eq!(nat.stats().listed, 4);
        assert_eq!(drain(&nat), nids(4, 8));
    });
}

#[test]
fn a_scan_does_not_list_what_was_bound_meanwhile() {
    model::exhaustive("a_scan_does_not_list_what_was_bound_meanwhile", || {
        let nat = Arc::new(open_known(OPTIMISTIC, 2, 7, 1));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || other.balance());
        assert!(nat.reserve(Nid(7)).expect("the block can be read"));
        bind(&nat, Nid(7), 5000);
        thread.join().expect("the thread does not panic");
        assert!(drain(&nat).is_empty());
    });
}

#[test]
fn a_block_scan_does_not_list_what_is_taken() {
    model::bounded("a_block_scan_does_not_list_what_is_taken", 3, || {
        let nat = Arc::new(open_with_journal(OPTIMISTIC));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || allocate(&other));
        nat.balance();
        let theirs = thread.join().expect("the thread does not panic");
        let mut all = drain(&nat);
        all.extend(theirs);
        all.sort_unstable();
        assert_eq!(all, nids(4, 8));
    });
}

#[test]
fn what_is_cancelled_beside_a_scan_is_listed_once() {
    model::bounded("what_is_cancelled_beside_a_scan_is_listed_once", 3, || {
        let nat = Arc::new(open_known(Policy::CLUE, 2, 6, 1));
        let nid = allocate(&nat).expect("two are free");
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || other.balance());
        nat.cancel(nid);
        thread.join().expect("the thread does not panic");
        assert_eq!(drain(&nat), nids(6, 8));
    });
}
