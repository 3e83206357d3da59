//! Models of the table: reads by version, eviction, freed NIDs, checkpoints against changes.
#![cfg(loom)]

// mutant: nat_look_once, killed by: a_reader_sees_an_entry_whole
// mutant: nat_evict_keeps_version, killed by: a_reader_does_not_see_another_blocks_entry
// mutant: nat_pending_forgotten, killed by: a_nid_freed_in_a_block_that_is_being_looked_at_stays_away
// mutant: nat_thaw_of_changed, killed by: a_freed_nid_comes_back_with_its_checkpoint_only
// mutant: nat_frozen_before_set_is_taken, killed by: a_change_is_in_this_checkpoint_or_in_the_next
// mutant: nat_change_ignores_freeze, killed by: what_changes_behind_the_freeze_is_in_the_next_checkpoint
// mutant: nat_ledger_before_thaw, killed by: an_evicted_block_comes_back_as_its_checkpoint_left_it
// mutant: nat_change_leaves_no_image, killed by: what_changes_behind_the_freeze_is_in_the_next_checkpoint
// mutant: nat_block_of_journal_owes_nothing, killed by: a_block_of_the_journal_is_written_as_it_was_frozen
// mutant: nat_block_pinned, killed by: a_block_of_the_journal_stays_while_it_is_written

mod loom_common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatBlockWrite, NatConfig, NatEntry, NatFlush, NatSource, Policy, SourceError};
use f2fs_sync::{Arc, model, thread};
use loom_common::{Filled, allocate, bind, drain, open, open_known};

#[test]
fn a_reader_sees_an_entry_whole() {
    model::exhaustive("a_reader_sees_an_entry_whole", || {
        let nat = Arc::new(open(Policy::Sharded, 2, 8, 1));
        let before = nat.get(Nid(5)).expect("the block can be read");
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || other.free(Nid(5)).expect("the node is there"));
        let seen = nat.get(Nid(5)).expect("the block can be read");
        let after = NatEntry { ino: Nid(5), addr: BlockAddr::NULL, version: 1 };
        assert!(seen == before || seen == after, "{seen:?}");
        assert_eq!(thread.join().expect("the thread does not panic"), before);
        assert_eq!(nat.get(Nid(5)).expect("the block can be read"), after);
    });
}

#[test]
fn a_reader_does_not_see_another_blocks_entry() {
    model::bounded("a_reader_does_not_see_another_blocks_entry", 3, || {
        // Memory for one block: reading the other takes it away.
        let config = NatConfig::new(2).cached_blocks(1).valid_nodes(0);
        let nat = Nat::new(config, Arc::new(Filled { bound: 8 }), vec![0], &[]).expect("the size is right");
        let nat = Arc::new(nat);
        let addr = |nat: &Nat, nid| nat.get(Nid(nid)).expect("the block can be read").addr;
        addr(&nat, 3);
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || assert_eq!(addr(&other, 7), BlockAddr(107)));
        assert_eq!(addr(&nat, 3), BlockAddr(103));
        thread.join().expect("the thread does not panic");
        assert_eq!(addr(&nat, 3), BlockAddr(103));
    });
}

#[test]
fn a_nid_freed_in_a_block_that_is_being_looked_at_stays_away() {
    model::exhaustive("a_nid_freed_in_a_block_that_is_being_looked_at_stays_away", || {
        let nat = Arc::new(open(Policy::Sharded, 2, 7, 1));
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || other.free(Nid(5)).map(drop).expect("the node is there"));
        let mine = allocate(&nat);
        thread.join().expect("the thread does not panic");
        assert_eq!(mine, Some(Nid(7)));
        assert!(drain(&nat).is_empty());
    });
}

fn records_as_free(flush: &NatFlush, nid: Nid) -> bool {
    flush.journal.iter().any(|(at, entry)| *at == nid && entry.block_addr.get() == 0)
}

#[test]
fn a_freed_nid_comes_back_with_its_checkpoint_only() {
    for policy in [Policy::Sharded, Policy::KernelScan] {
        model::bounded("a_freed_nid_comes_back_with_its_checkpoint_only", 3, move || {
            let nat = Arc::new(open_known(policy, 1, 3, 1));
            let nid = allocate(&nat).expect("NID 3 is free");
            bind(&nat, nid, 500);
            // Tells what no thread may wait for, so it is no object of the model.
            let recorded = Arc::new(AtomicBool::new(false));
            let (other, durable) = (Arc::clone(&nat), Arc::clone(&recorded));
            let thread = thread::spawn(move || {
                other.free(nid).expect("the node is there");
                let again = allocate(&other);
                assert!(again.is_none() || durable.load(Relaxed), "{again:?} before its checkpoint");
                again
            });
            let flush = nat.begin_checkpoint(38).expect("nothing is unwritten");
            recorded.store(records_as_free(&flush, nid), Relaxed);
            nat.end_checkpoint();
            let again = thread.join().expect("the thread does not panic");
            if !recorded.load(Relaxed) {
                assert!(allocate(&nat).is_none());
                nat.begin_checkpoint(38).expect("nothing is unwritten");
                nat.end_checkpoint();
            }
            assert_eq!(again.or_else(|| allocate(&nat)), Some(nid), "it is not lost");
        });
    }
}

#[test]
fn three_threads_a_free_an_allocation_and_a_checkpoint() {
    model::bounded("three_threads_a_free_an_allocation_and_a_checkpoint", 3, || {
        // NID 3 is bound and dirty; it is the only one.
        let nat = Arc::new(open_known(Policy::Sharded, 1, 3, 1));
        let nid = allocate(&nat).expect("NID 3 is free");
        bind(&nat, nid, 500);
        let recorded = Arc::new(AtomicBool::new(false));
        let (freeing, allocating, durable) = (Arc::clone(&nat), Arc::clone(&nat), Arc::clone(&recorded));
        let free = thread::spawn(move || freeing.free(nid).map(drop).expect("the node is there"));
        let allocation = thread::spawn(move || {
            let got = allocate(&allocating);
            assert!(got.is_none() || durable.load(Relaxed), "{got:?} before its checkpoint");
            got
        });
        let flush = nat.begin_checkpoint(38).expect("nothing is unwritten");
        recorded.store(records_as_free(&flush, nid), Relaxed);
        nat.end_checkpoint();
        free.join().expect("the thread does not panic");
        let got = allocation.join().expect("the thread does not panic");
        assert_eq!(got.or_else(|| allocate(&nat)).is_some(), recorded.load(Relaxed));
    });
}

#[test]
fn a_change_is_in_this_checkpoint_or_in_the_next() {
    // With the journal, and with a block that is written.
    for capacity in [38, 0] {
        model::exhaustive("a_change_is_in_this_checkpoint_or_in_the_next", move || {
            let nat = Arc::new(open(Policy::Sharded, 2, 8, 1));
            bind(&nat, Nid(5), 500);
            let other = Arc::clone(&nat);
            let thread = thread::spawn(move || bind(&other, Nid(5), 600));
            let first = checkpoint(&nat, capacity);
            thread.join().expect("the thread does not panic");
            let second = checkpoint(&nat, capacity);
            // The journal is written anew each time, a block when it has changed.
            let third = checkpoint(&nat, capacity);
            if capacity > 0 {
                assert!(
                    (first == [500] || first == [600]) && second == [600] && third == [600],
                    "{first:?} {second:?}"
                );
            } else {
                let now: &[u32] = if first == [500] { &[600] } else { &[] };
                assert!(
                    (first == [500] || first == [600]) && second == now && third.is_empty(),
                    "{first:?} {second:?}"
                );
            }
        });
    }
}

/// Where a checkpoint has node 5: in the journal, or in the block that it writes.
fn checkpoint(nat: &Nat, capacity: usize) -> Vec<u32> {
    nat.freeze();
    written(nat, capacity)
}

fn written(nat: &Nat, capacity: usize) -> Vec<u32> {
    let flush = nat.flush(capacity).expect("nothing is unwritten");
    nat.end_checkpoint();
    let blocks = flush.blocks.iter().map(|write| write.block.entries[5 % Nat::ENTRIES_PER_BLOCK].block_addr.get());
    flush.journal.iter().map(|(_, entry)| entry.block_addr.get()).chain(blocks).collect()
}

#[test]
fn what_changes_behind_the_freeze_is_in_the_next_checkpoint() {
    // With the journal, and with a block that is written.
    for capacity in [38, 0] {
        model::bounded("what_changes_behind_the_freeze_is_in_the_next_checkpoint", 3, move || {
            let nat = Arc::new(open(Policy::Sharded, 2, 8, 1));
            bind(&nat, Nid(5), 500);
            nat.freeze();
            let other = Arc::clone(&nat);
            let thread = thread::spawn(move || bind(&other, Nid(5), 600));
            assert_eq!(written(&nat, capacity), [500]);
            thread.join().expect("the thread does not panic");
            assert_eq!(checkpoint(&nat, capacity), [600]);
        });
    }
}

#[test]
fn a_block_of_the_journal_is_written_as_it_was_frozen() {
    model::bounded("a_block_of_the_journal_is_written_as_it_was_frozen", 3, || {
        // Only the journal knows where node 5 is, and the checkpoint empties it into the block.
        let journal = [(Nid(5), RawNatEntry { version: 1, ino: 5.into(), block_addr: 500.into() })];
        let config = NatConfig::new(2).valid_nodes(0);
        let nat =
            Arc::new(Nat::new(config, Arc::new(Filled { bound: 8 }), vec![0], &journal).expect("the size is right"));
        let before = nat.get(Nid(6)).expect("the block can be read").addr;
        nat.freeze();
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || bind(&other, Nid(6), 600));
        let flush = nat.flush(0).expect("nothing is unwritten");
        let written = |nid: usize| flush.blocks[0].block.entries[nid % Nat::ENTRIES_PER_BLOCK].block_addr.get();
        assert_eq!((written(5), written(6)), (500, before.0));
        nat.end_checkpoint();
        thread.join().expect("the thread does not panic");
        let flush = nat.begin_checkpoint(38).expect("nothing is unwritten");
        assert_eq!(flush.journal.iter().map(|(nid, _)| *nid).collect::<Vec<_>>(), [Nid(6)]);
    });
}

/// The contents of a device: the two copies of each block of a table of two, as a checkpoint wrote them.
struct Copies(std::sync::Mutex<Vec<NatBlockWrite>>);

impl NatSource for Copies {
    fn read_nat_block(&self, index: u32, second: bool) -> Result<Box<NatBlock>, SourceError> {
        let written = self.0.lock().expect("no model panics in here");
        let here = written.iter().find(|write| (write.index, write.second) == (index, second));
        here.map_or_else(|| Filled { bound: 8 }.read_nat_block(index, second), |write| Ok(write.block.clone()))
    }
}

/// Reads a node of block 0, for which block 1 has to leave memory as soon as it may, and then one of block 1.
fn evict_and_read(nat: &Nat) -> BlockAddr {
    nat.get(Nid(3)).expect("the block can be read");
    nat.get(Nid(5)).expect("the block can be read").addr
}

#[test]
fn an_evicted_block_comes_back_as_its_checkpoint_left_it() {
    // With the journal, and with a block that is written.
    for capacity in [38, 0] {
        model::bounded("an_evicted_block_comes_back_as_its_checkpoint_left_it", 3, move || {
            // Memory for one block.
            let config = NatConfig::new(2).cached_blocks(1).valid_nodes(0);
            let device = Arc::new(Copies(std::sync::Mutex::new(Vec::new())));
            let nat = Nat::new(config, Arc::clone(&device) as _, vec![0], &[]).expect("the size is right");
            let nat = Arc::new(nat);
            bind(&nat, Nid(5), 500);
            let flush = nat.begin_checkpoint(capacity).expect("nothing is unwritten");
            *device.0.lock().expect("no model panics in here") = flush.blocks;
            let other = Arc::clone(&nat);
            let thread = thread::spawn(move || assert_eq!(evict_and_read(&other), BlockAddr(500)));
            nat.end_checkpoint();
            thread.join().expect("the thread does not panic");
            assert_eq!(evict_and_read(&nat), BlockAddr(500));
        });
    }
}

#[test]
fn a_block_of_the_journal_stays_while_it_is_written() {
    model::bounded("a_block_of_the_journal_stays_while_it_is_written", 3, || {
        // Memory for one block. Only the journal knows where node 5 is, and the checkpoint empties it into block 1.
        let config = NatConfig::new(2).cached_blocks(1).valid_nodes(0);
        let device = Arc::new(Copies(std::sync::Mutex::new(Vec::new())));
        let journal = [(Nid(5), RawNatEntry { version: 1, ino: 5.into(), block_addr: 500.into() })];
        let nat = Nat::new(config, Arc::clone(&device) as _, vec![0], &journal).expect("the size is right");
        let nat = Arc::new(nat);
        let flush = nat.begin_checkpoint(0).expect("nothing is unwritten");
        assert_eq!(flush.blocks.len(), 1);
        *device.0.lock().expect("no model panics in here") = flush.blocks;
        let other = Arc::clone(&nat);
        let thread = thread::spawn(move || assert_eq!(evict_and_read(&other), BlockAddr(500)));
        nat.end_checkpoint();
        thread.join().expect("the thread does not panic");
        assert_eq!(evict_and_read(&nat), BlockAddr(500));
    });
}
