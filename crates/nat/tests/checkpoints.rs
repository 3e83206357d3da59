//! What a checkpoint has of changes that were made beside it, and what is left when it fails.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::sync::atomic::Ordering;

use common::{Device, ENTRIES};
use f2fs_format::nat::RawNatEntry;
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, NatError, NatFlush};

fn raw(ino: u32, addr: u32) -> RawNatEntry {
    RawNatEntry { version: 1, ino: ino.into(), block_addr: addr.into() }
}

/// Takes this NID and binds it.
fn make(nat: &Nat, nid: u32, addr: u32) -> Nid {
    let nid = Nid(nid);
    assert!(nat.reserve(nid).unwrap());
    nat.bind(nid, nid, BlockAddr(addr)).unwrap();
    nid
}

/// Where a checkpoint has a node: in its journal, or in a block that it writes.
fn written(flush: &NatFlush, nid: Nid) -> Option<u32> {
    let in_journal = flush.journal.iter().find(|(at, _)| *at == nid).map(|(_, entry)| entry.block_addr.get());
    let block = flush.blocks.iter().find(|write| write.index == nid.0 / ENTRIES);
    in_journal.or_else(|| block.map(|write| write.block.entries[(nid.0 % ENTRIES) as usize].block_addr.get()))
}

fn finish(device: &mut Device, nat: &Nat, flush: NatFlush) {
    device.write_blocks(&flush);
    device.commit(nat, flush);
    nat.end_checkpoint();
}

#[test]
fn changes_behind_the_freeze_are_in_the_next_one() {
    for capacity in [38, 0] {
        let mut device = Device::new(3);
        // Of the last block only the journal has something.
        device.journal = vec![(Nid(2 * ENTRIES + 1), raw(7, 90))];
        let nat = device.open(NatConfig::new(3));
        let (moved, other) = (make(&nat, 5, 100), make(&nat, ENTRIES + 5, 200));
        let listed = Nid(2 * ENTRIES + 1);
        assert_eq!(nat.get(listed).unwrap().addr, BlockAddr(90));
        nat.freeze();
        for addr in [101, 102] {
            nat.bind(moved, moved, BlockAddr(addr)).unwrap();
            nat.bind(listed, Nid(7), BlockAddr(addr)).unwrap();
        }
        let late = make(&nat, 6, 103);
        let flush = nat.flush(capacity).unwrap();
        assert_eq!([moved, other, listed].map(|nid| written(&flush, nid)), [Some(100), Some(200), Some(90)]);
        assert!(written(&flush, late).is_none_or(|addr| addr == 0));
        assert!(flush.blocks.is_sorted_by_key(|write| write.index));
        finish(&mut device, &nat, flush);
        let flush = nat.begin_checkpoint(capacity).unwrap();
        assert_eq!([moved, late, listed].map(|nid| written(&flush, nid)), [Some(102), Some(103), Some(102)]);
        finish(&mut device, &nat, flush);
        // A journal is written anew each time, a block when it has changed.
        let flush = nat.begin_checkpoint(capacity).unwrap();
        assert_eq!((flush.blocks.len(), flush.journal.len()), (0, if capacity == 0 { 0 } else { 4 }));
    }
}

/// Its node was bound in this checkpoint, and freed behind it.
#[test]
fn a_nid_that_is_freed_while_it_is_recorded_as_bound_stays_away() {
    let mut device = Device::new(1);
    let nat = device.open(NatConfig::new(1));
    let nid = make(&nat, 5, 100);
    let flush = nat.begin_checkpoint(38).unwrap();
    nat.free(nid).unwrap();
    finish(&mut device, &nat, flush);
    assert!(!nat.reserve(nid).unwrap(), "the device says that it is bound");
    assert!(matches!(nat.bind(nid, nid, BlockAddr(7)), Err(NatError::NotAllocated { .. })));
    device.checkpoint(&nat, 38);
    assert!(nat.reserve(nid).unwrap());
}

#[test]
fn a_checkpoint_that_fails_leaves_its_changes_to_the_next() {
    let mut device = Device::new(4);
    device.journal = vec![(Nid(3 * ENTRIES), raw(7, 90))];
    let nat = device.open(NatConfig::new(4));
    let nids = [make(&nat, 5, 100), make(&nat, ENTRIES + 5, 200)];
    let new = make(&nat, 2 * ENTRIES + 5, BlockAddr::NEW.0);
    assert!(matches!(nat.begin_checkpoint(38), Err(NatError::Unwritten { nid, .. }) if nid == new));
    nat.bind(new, new, BlockAddr(300)).unwrap();
    // The block of which only the journal has something has to be read to be written.
    device.memory.broken.store(true, Ordering::Relaxed);
    assert!(matches!(nat.begin_checkpoint(0), Err(NatError::Source { block: 3, .. })));
    device.memory.broken.store(false, Ordering::Relaxed);
    // No checkpoint has begun that could end.
    nat.end_checkpoint();
    assert!(matches!(nat.bind(Nid(6), Nid(6), BlockAddr(7)), Err(NatError::NotAllocated { .. })));
    let flush = nat.begin_checkpoint(0).unwrap();
    assert_eq!(flush.blocks.iter().map(|write| write.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    finish(&mut device, &nat, flush);
    for (nid, addr) in nids.into_iter().zip([100, 200]).chain([(new, 300), (Nid(3 * ENTRIES), 90)]) {
        assert_eq!(device.durable(nid).block_addr.get(), addr, "{nid}");
    }
}

/// The journal takes small sets first, whatever their blocks; blocks are written in their order.
#[test]
fn the_smallest_sets_go_to_the_journal() {
    let mut device = Device::new(5);
    let nat = device.open(NatConfig::new(5));
    for (block, entries) in [(0, 9), (1, 2), (2, 7), (3, 3), (4, 8)] {
        for index in 0..entries {
            make(&nat, block * ENTRIES + 10 + index, 100 + index);
        }
    }
    for (capacity, blocks, entries) in [
        (29, &[][..], 29),
        (28, &[0], 20),
        (20, &[0], 20),
        (19, &[0, 4], 12),
        (5, &[0, 2, 4], 5),
        (4, &[0, 2, 3, 4], 2),
    ] {
        // Each takes over what the one before had, which does not end.
        let flush = nat.begin_checkpoint(capacity).unwrap();
        assert_eq!(flush.blocks.iter().map(|write| write.index).collect::<Vec<_>>(), blocks, "room for {capacity}");
        assert_eq!(flush.journal.len(), entries, "room for {capacity}");
        assert!(flush.journal.is_sorted_by_key(|(nid, _)| *nid));
    }
    device.checkpoint(&nat, 38);
}
