//! Blocks of the table that nobody has looked at: what is in them is counted, found and left alone.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use common::{Device, ENTRIES};
use f2fs_format::nat::RawNatEntry;
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, NatEntry};

fn raw(ino: u32, addr: u32) -> RawNatEntry {
    RawNatEntry { version: 1, ino: ino.into(), block_addr: addr.into() }
}

/// All that can be allocated, each once.
fn drain(nat: &Nat) -> HashSet<Nid> {
    let mut all = HashSet::new();
    while let Some(nid) = nat.allocate().unwrap() {
        assert!(all.insert(nid), "{nid} twice");
    }
    all
}

#[test]
fn what_is_freed_there_is_counted_and_found() {
    let mut device = Device::new(3);
    let nids: Vec<Nid> = (0..3).flat_map(|block| [9, 70].map(|index| Nid(block * ENTRIES + index))).collect();
    nids.iter().for_each(|nid| device.poke(*nid, raw(nid.0, 5000 + nid.0)));
    let nat = device.open(NatConfig::new(3).valid_nodes(nids.len() as u64));
    let free = u64::from(3 * ENTRIES - 3) - nids.len() as u64;
    assert_eq!(nat.free_nids().unwrap(), free);
    for (count, nid) in (1..).zip(&nids) {
        nat.free(*nid).unwrap();
        assert_eq!(nat.free_nids().unwrap(), free + count - 1, "not before the checkpoint");
        device.checkpoint(&nat, 38);
        assert_eq!(nat.free_nids().unwrap(), free + count);
    }
    // Never taken, so nothing is given back.
    for nid in [Nid(20), nids[0], Nid(2 * ENTRIES + 20)] {
        nat.cancel(nid);
    }
    assert_eq!(nat.free_nids().unwrap(), u64::from(3 * ENTRIES - 3));
    let all = drain(&nat);
    assert_eq!(all.len() as u32, 3 * ENTRIES - 3);
    assert_eq!((nat.free_nids().unwrap(), nat.stats().missed_hints), (0, 0));
}

#[test]
fn a_block_that_was_looked_at_is_not_read_again() {
    let device = Device::new(4);
    let nat = device.open(NatConfig::new(4).cached_blocks(1));
    let reads = || device.memory.reads.load(Ordering::Relaxed);
    let free = nat.free_nids().unwrap();
    assert_eq!((reads(), nat.stats().cached_blocks), (4, 1));
    assert_eq!(nat.free_nids().unwrap(), free);
    nat.load_all(1, &|_| {}).unwrap();
    for block in 0..4 {
        assert!(nat.reserve(Nid(block * ENTRIES + 9)).unwrap());
    }
    assert_eq!((nat.free_nids().unwrap(), reads()), (free - 4, 4));
    assert_eq!(nat.stats().cached_entries, ENTRIES as usize);
}

#[test]
fn a_journal_says_something_of_its_own_blocks_only() {
    let mut device = Device::new(3);
    // At the end of one block and at the beginning of another. Of two for a NID the first counts.
    let (end, begin) = (Nid(ENTRIES - 1), Nid(2 * ENTRIES));
    device.journal = vec![(end, raw(1, 100)), (begin, raw(2, 200)), (begin, raw(3, 300))];
    let nat = device.open(NatConfig::new(3));
    for nid in 0..3 * ENTRIES {
        let addr = [(end, 100), (begin, 200)].into_iter().find(|(at, _)| at.0 == nid).map_or(0, |(_, addr)| addr);
        assert_eq!(nat.get(Nid(nid)).unwrap().addr, BlockAddr(addr), "{nid}");
    }
}

#[test]
fn a_search_that_should_begin_beyond_the_end_begins_at_the_start() {
    for (next, first) in
        [(0, 3), (3, 3), (ENTRIES, ENTRIES), (2 * ENTRIES - 1, ENTRIES), (2 * ENTRIES, 3), (u32::MAX, 3)]
    {
        let mut device = Device::new(2);
        device.next_free_nid = Nid(next);
        let nat = device.open(NatConfig::new(2).lanes(1));
        assert_eq!(nat.next_free_nid(), Nid(first), "{next}");
        assert_eq!(nat.allocate().unwrap(), Some(Nid(first)), "{next}");
        assert_eq!(nat.next_free_nid(), Nid(first), "{next}");
    }
}

/// The kernel has entries for its own inodes 1 and 2.
#[test]
fn the_first_nid_of_a_node_is_in_use_and_the_reserved_ones_are_not() {
    let device = Device::new(1);
    (0..4).for_each(|nid| device.poke(Nid(nid), raw(nid, 1)));
    for cached in [false, true] {
        let nat = device.open(NatConfig::new(1));
        if cached {
            nat.get(Nid(0)).unwrap();
        }
        let used: Vec<_> = nat.used().map(Result::unwrap).collect();
        assert_eq!(used, [(Nid(3), NatEntry { ino: Nid(3), addr: BlockAddr(1), version: 1 })]);
    }
}

#[test]
fn searches_are_counted_and_take_time() {
    let device = Device::new(2);
    let config = NatConfig::new(2).lanes(3).cached_blocks(7).valid_nodes(0).next_free_nid(Nid(9));
    assert_eq!((config.lanes, config.cached_blocks, config.valid_nodes), (3, 7, Some(0)));
    assert_eq!(config.next_free_nid, Nid(9));
    let nat = device.open(config);
    assert_eq!((nat.stats().scans, nat.stats().scan_time.is_zero()), (0, true));
    nat.allocate().unwrap().unwrap();
    assert_eq!((nat.stats().scans, nat.stats().scan_time.is_zero()), (1, false));
    assert_eq!(nat.stats().cached_entries, nat.stats().cached_blocks * ENTRIES as usize);
}
