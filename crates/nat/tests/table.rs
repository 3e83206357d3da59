//! The table: it returns the entries that were put in, through checkpoints, crashes and broken devices.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use common::{Device, ENTRIES};
use f2fs_format::nat::RawNatEntry;
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{EmptySource, Nat, NatConfig, NatEntry, NatError, Policy};

fn raw(ino: u32, addr: u32) -> RawNatEntry {
    RawNatEntry { version: 1, ino: ino.into(), block_addr: addr.into() }
}

fn make(nat: &Nat, addr: u32) -> Nid {
    let nid = nat.allocate().unwrap().unwrap();
    nat.bind(nid, nid, BlockAddr::NEW).unwrap();
    nat.bind(nid, nid, BlockAddr(addr)).unwrap();
    nid
}

#[test]
fn reserved_nids_are_never_handed_out_and_the_last_one_is() {
    let device = Device::new(2);
    let nat = device.open(NatConfig::new(2));
    let mut seen = HashSet::new();
    while let Some(nid) = nat.allocate().unwrap() {
        assert!((3..2 * ENTRIES).contains(&nid.0) && seen.insert(nid), "{nid}");
    }
    assert_eq!(seen.len() as u32, 2 * ENTRIES - 3);
    assert!(nat.allocate().unwrap().is_none());
    assert_eq!(nat.free_nids().unwrap(), 0);
    let one = Nid(2 * ENTRIES - 1);
    nat.cancel(one);
    assert_eq!(nat.free_nids().unwrap(), 1);
    assert_eq!(nat.allocate().unwrap(), Some(one));
    assert!(nat.allocate().unwrap().is_none());
}

#[test]
fn a_freed_nid_waits_for_the_checkpoint_that_records_it() {
    let mut device = Device::new(1);
    let nat = device.open(NatConfig::new(1));
    let nids: Vec<Nid> = (0..ENTRIES - 3).map(|i| make(&nat, 1000 + i)).collect();
    device.checkpoint(&nat, 38);
    let old = nat.free(nids[7]).unwrap();
    assert_eq!((old.addr, old.version), (BlockAddr(1007), 0));
    assert_eq!(nat.get(nids[7]).unwrap(), NatEntry { ino: nids[7], addr: BlockAddr::NULL, version: 1 });
    assert!(nat.allocate().unwrap().is_none());
    assert!(matches!(nat.free(nids[7]), Err(NatError::NotBound { .. })));
    assert!(matches!(nat.bind(nids[7], nids[7], BlockAddr(1)), Err(NatError::NotAllocated { .. })));

    let flush = nat.begin_checkpoint(38).unwrap();
    // Freed after the checkpoint began: not in it.
    nat.free(nids[9]).unwrap();
    assert!(nat.allocate().unwrap().is_none());
    device.write_blocks(&flush);
    device.commit(&nat, flush);
    nat.end_checkpoint();
    assert_eq!(nat.allocate().unwrap(), Some(nids[7]));
    assert!(nat.allocate().unwrap().is_none());
    device.checkpoint(&nat, 38);
    assert_eq!(nat.allocate().unwrap(), Some(nids[9]));
}

#[test]
fn a_node_that_was_never_written_leaves_no_version_behind() {
    let device = Device::new(1);
    let nat = device.open(NatConfig::new(1));
    let nid = nat.allocate().unwrap().unwrap();
    nat.bind(nid, nid, BlockAddr::NEW).unwrap();
    nat.free(nid).unwrap();
    assert_eq!(nat.get(nid).unwrap().version, 0);
    assert_ne!(nat.allocate().unwrap(), Some(nid));
}

#[test]
fn misuse_is_named() {
    let device = Device::new(1);
    let nat = device.open(NatConfig::new(1));
    let max = ENTRIES;
    assert!(matches!(nat.get(Nid(max)), Err(NatError::OutOfRange { max: m, .. }) if m == max));
    assert!(matches!(nat.free(Nid(2)), Err(NatError::Reserved { nid: Nid(2) })));
    assert!(matches!(nat.free(Nid(9)), Err(NatError::NotBound { nid: Nid(9) })));
    assert!(matches!(nat.bind(Nid(9), Nid(9), BlockAddr(7)), Err(NatError::NotAllocated { .. })));
    for addr in [BlockAddr::NULL, BlockAddr::COMPRESS] {
        assert!(matches!(nat.bind(Nid(9), Nid(9), addr), Err(NatError::InvalidAddress { .. })));
    }
    let nid = make(&nat, 500);
    assert!(matches!(nat.bind(nid, nid, BlockAddr::NEW), Err(NatError::AlreadyBound { addr: BlockAddr(500), .. })));
    // Cancelling what is not "allocated, not bound" does nothing.
    let free = nat.free_nids().unwrap();
    for nid in [nid, Nid(0), Nid(400), Nid(u32::MAX)] {
        nat.cancel(nid);
    }
    assert_eq!(nat.free_nids().unwrap(), free);

    let new = nat.allocate().unwrap().unwrap();
    nat.bind(new, nid, BlockAddr::NEW).unwrap();
    assert!(matches!(nat.begin_checkpoint(38), Err(NatError::Unwritten { nid: n, ino }) if n == new && ino == nid));
    nat.bind(new, nid, BlockAddr(501)).unwrap();
    assert_eq!(nat.begin_checkpoint(38).unwrap().journal.len(), 2);
}

/// Neither what the device has, nor what it is to learn the end of.
#[test]
fn what_is_bound_or_was_is_not_given_back() {
    let mut device = Device::new(1);
    let nat = device.open(NatConfig::new(1));
    let (bound, freed) = (make(&nat, 500), make(&nat, 501));
    device.checkpoint(&nat, 38);
    nat.free(freed).unwrap();
    let free = nat.free_nids().unwrap();
    [bound, freed].into_iter().for_each(|nid| nat.cancel(nid));
    assert_eq!(nat.free_nids().unwrap(), free);
    assert!(std::iter::from_fn(|| nat.allocate().unwrap()).all(|nid| nid != bound && nid != freed));
}

#[test]
fn impossible_tables_are_refused() {
    let open = |blocks, bytes, journal: &[_]| {
        Nat::new(NatConfig::new(blocks), std::sync::Arc::new(EmptySource), vec![0; bytes], journal).map(drop)
    };
    assert!(matches!(open(0, 8, &[]), Err(NatError::Size { nat_blocks: 0, .. })));
    assert!(matches!(open(u32::MAX, 8, &[]), Err(NatError::Size { .. })));
    assert!(matches!(open(9, 1, &[]), Err(NatError::VersionBitmap { expected: 2, found: 1 })));
    let beyond = [(Nid(9 * ENTRIES), raw(4, 4))];
    assert!(matches!(open(9, 2, &beyond), Err(NatError::Journal { max, .. }) if max == 9 * ENTRIES));
    assert!(open(9, 2, &[(Nid(9 * ENTRIES - 1), raw(4, 4))]).is_ok());
}

#[test]
fn the_journal_is_newer_than_the_table() {
    let mut device = Device::new(2);
    device.poke(Nid(10), raw(10, 100));
    device.poke(Nid(11), raw(11, 110));
    device.journal = vec![(Nid(10), raw(10, 200)), (Nid(11), raw(11, 0)), (Nid(600), raw(600, 300))];
    let nat = device.open(NatConfig::new(2));
    assert_eq!(nat.get(Nid(10)).unwrap().addr, BlockAddr(200));
    assert_eq!(nat.get(Nid(600)).unwrap().addr, BlockAddr(300));
    assert!(nat.reserve(Nid(11)).unwrap(), "free in the journal");
    assert!(!nat.reserve(Nid(11)).unwrap() && !nat.reserve(Nid(10)).unwrap());
    assert_eq!(nat.free_nids().unwrap(), u64::from(2 * ENTRIES - 3 - 2 - 1));
}

#[test]
fn the_journal_overflows_into_blocks_and_nothing_is_lost() {
    let mut device = Device::new(64);
    // Entries of blocks that nobody touches stand in the journal already.
    device.journal = (0..30).map(|i| (Nid(40 * ENTRIES + i * ENTRIES / 4), raw(7, 9000 + i))).collect();
    let before: Vec<_> = device.journal.clone();
    let nat = device.open(NatConfig::new(64).lanes(1));
    let few: Vec<Nid> = (0..5).map(|i| make(&nat, 100 + i)).collect();
    device.checkpoint(&nat, 38);
    assert_eq!(device.journal.len(), 35);

    // 100 entries of one block: that block is written, the rest stays in the journal as far as it fits.
    let many: Vec<Nid> = (0..100).map(|i| make(&nat, 200 + i)).collect();
    let flush = nat.begin_checkpoint(38).unwrap();
    assert_eq!(flush.blocks.iter().map(|write| write.index).collect::<Vec<_>>(), [0]);
    assert_eq!(flush.journal.len(), 30);
    device.write_blocks(&flush);
    device.commit(&nat, flush);
    nat.end_checkpoint();

    // No journal wanted: every block of which it had something is written.
    let flush = nat.begin_checkpoint(0).unwrap();
    let expected: HashSet<u32> = before.iter().map(|(nid, _)| nid.0 / ENTRIES).collect();
    assert!(flush.journal.is_empty());
    assert_eq!(flush.blocks.iter().map(|write| write.index).collect::<HashSet<_>>(), expected);
    device.write_blocks(&flush);
    device.commit(&nat, flush);
    nat.end_checkpoint();
    let flush = nat.begin_checkpoint(0).unwrap();
    assert!(flush.blocks.is_empty(), "nothing is left to write");

    let again = device.open(NatConfig::new(64));
    for (i, nid) in few.iter().enumerate() {
        assert_eq!(again.get(*nid).unwrap().addr, BlockAddr(100 + i as u32));
    }
    for (i, nid) in many.iter().enumerate() {
        assert_eq!(again.get(*nid).unwrap().addr, BlockAddr(200 + i as u32));
    }
    for (nid, entry) in before {
        assert_eq!(again.get(nid).unwrap(), entry.into());
    }
}

#[test]
fn clean_blocks_make_room_and_dirty_ones_stay() {
    let mut device = Device::new(64);
    for block in 0..64 {
        device.poke(Nid(block * ENTRIES + 5), raw(5, 1000 + block));
    }
    let nat = device.open(NatConfig::new(64).cached_blocks(4));
    for round in 0..3 {
        for block in 0..64 {
            let nid = Nid(block * ENTRIES + 5);
            assert_eq!(nat.get(nid).unwrap().addr, BlockAddr(1000 + block), "round {round}");
        }
        assert!(nat.stats().cached_blocks <= 4);
    }
    assert!(device.memory.reads.load(Ordering::Relaxed) > 150, "blocks were evicted");
    // Allocated, not bound, evicted: still allocated.
    let taken = nat.allocate().unwrap().unwrap();
    for block in 0..64 {
        nat.get(Nid(block * ENTRIES + 5)).unwrap();
    }
    assert!(!nat.reserve(taken).unwrap());
    nat.bind(taken, taken, BlockAddr(77)).unwrap();
    for block in 0..64 {
        let nid = Nid(block * ENTRIES + 5);
        nat.bind(nid, nid, BlockAddr(2000 + block)).unwrap();
    }
    assert_eq!(nat.stats().cached_blocks, 64, "what is dirty stays");
    device.checkpoint(&nat, 38);
    for block in 0..64 {
        assert_eq!(nat.get(Nid(block * ENTRIES + 5)).unwrap().addr, BlockAddr(2000 + block));
    }
    assert_eq!(nat.get(taken).unwrap().addr, BlockAddr(77));
}

#[test]
fn errors_of_the_device_come_through_and_go_away_with_it() {
    let mut device = Device::new(4);
    let nat = device.open(NatConfig::new(4));
    device.memory.broken.store(true, Ordering::Relaxed);
    assert!(matches!(nat.get(Nid(4)), Err(NatError::Source { block: 0, second: false, .. })));
    assert!(matches!(nat.allocate(), Err(NatError::Source { .. })));
    assert!(nat.free_nids().is_err());
    device.memory.broken.store(false, Ordering::Relaxed);
    let nid = make(&nat, 9);
    device.memory.broken.store(true, Ordering::Relaxed);
    // A NID that needs no read is given out though the device fails.
    assert!(nat.allocate().unwrap().is_some());
    assert_eq!(nat.get(nid).unwrap().addr, BlockAddr(9));
    device.memory.broken.store(false, Ordering::Relaxed);
    device.checkpoint(&nat, 38);

    device.poke(Nid(3 * ENTRIES + 1), raw(1, u32::MAX));
    let nat = device.open(NatConfig::new(4));
    let error = nat.get(Nid(3 * ENTRIES)).unwrap_err();
    assert!(matches!(error, NatError::Corrupt { block: 3, nid, .. } if nid.0 == 3 * ENTRIES + 1), "{error}");
}

#[test]
fn a_checkpoint_that_fails_is_taken_over_by_the_next() {
    let mut device = Device::new(2);
    let nat = device.open(NatConfig::new(2));
    let nids: Vec<Nid> = (0..60).map(|i| make(&nat, 100 + i)).collect();
    device.checkpoint(&nat, 38);
    nat.free(nids[0]).unwrap();
    let flush = nat.begin_checkpoint(0).unwrap();
    device.write_blocks(&flush); // and then the device fails: no end
    nat.free(nids[1]).unwrap();
    device.checkpoint(&nat, 38);
    assert_eq!(device.durable(nids[0]).block_addr.get(), 0);
    assert_eq!(device.durable(nids[1]).block_addr.get(), 0);
    let free: HashSet<Nid> = std::iter::from_fn(|| nat.allocate().unwrap()).collect();
    assert!(free.contains(&nids[0]) && free.contains(&nids[1]));
    assert_eq!(free.len() as u32, 2 * ENTRIES - 3 - 58);
}

#[test]
fn counting_needs_no_reading_when_the_checkpoint_knows() {
    let device = Device::new(8);
    for nid in 3..1000 {
        device.poke(Nid(nid), raw(nid, nid));
    }
    let nat = device.open(NatConfig::new(8).valid_nodes(997));
    let all = u64::from(8 * ENTRIES - 3 - 997);
    assert_eq!(nat.free_nids().unwrap(), all);
    assert_eq!(device.memory.reads.load(Ordering::Relaxed), 0);
    for taken in 1..600 {
        nat.allocate().unwrap().unwrap();
        assert_eq!(nat.free_nids().unwrap(), all - taken);
    }
}

#[test]
fn the_whole_table_is_loaded_in_parallel() {
    let device = Device::new(300);
    for block in 0..300 {
        device.poke(Nid(block * ENTRIES + 7), raw(7, 1000 + block));
    }
    for policy in [Policy::Sharded, Policy::KernelScan] {
        let nat = device.open(NatConfig::new(300).policy(policy));
        let last = std::sync::atomic::AtomicU32::new(0);
        nat.load_all(4, &|progress| {
            assert_eq!(progress.of, 300);
            last.fetch_max(progress.blocks, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(last.into_inner(), 300);
        device.memory.broken.store(true, Ordering::Relaxed);
        assert_eq!(nat.free_nids().unwrap(), u64::from(300 * ENTRIES - 3 - 300));
        assert_eq!(nat.get(Nid(299 * ENTRIES + 7)).unwrap().addr, BlockAddr(1299));
        assert!(nat.load_all(4, &|_| {}).is_ok(), "nothing is read twice");
        device.memory.broken.store(false, Ordering::Relaxed);
    }
    device.poke(Nid(200 * ENTRIES), raw(1, u32::MAX));
    let nat = device.open(NatConfig::new(300));
    assert!(matches!(nat.load_all(4, &|_| {}), Err(NatError::Corrupt { block: 200, .. })));
}

#[test]
fn large_checkpoints_freeze_in_parallel_and_all_or_nothing() {
    let mut device = Device::new(400);
    let nat = device.open(NatConfig::new(400));
    let nids: Vec<Nid> = (0..400).map(|block| Nid(block * ENTRIES + 9)).collect();
    for nid in &nids {
        assert!(nat.reserve(*nid).unwrap());
        nat.bind(*nid, *nid, BlockAddr(nid.0)).unwrap();
    }
    let new = Nid(333 * ENTRIES + 10);
    assert!(nat.reserve(new).unwrap());
    nat.bind(new, new, BlockAddr::NEW).unwrap();
    assert!(matches!(nat.begin_checkpoint(38), Err(NatError::Unwritten { nid, .. }) if nid == new));
    nat.bind(new, new, BlockAddr(4)).unwrap();
    let flush = nat.begin_checkpoint(38).unwrap();
    assert_eq!((flush.journal.len(), flush.blocks.len()), (38, 362));
    device.write_blocks(&flush);
    device.commit(&nat, flush);
    nat.end_checkpoint();
    assert!(nids.iter().all(|nid| device.durable(*nid).block_addr.get() == nid.0));
}

/// The list's thresholds and triggers, as in fs/f2fs/node.c.
#[test]
fn the_kernels_list_is_refilled_as_the_kernel_does_it() {
    let device = Device::new(40);
    let reads = || device.memory.reads.load(Ordering::Relaxed);
    // Linux counts the entries that were looked up or changed, not those beside them in their blocks.
    let handed_out = 8 * ENTRIES as usize - 3 - 454;
    let nat = device.open(NatConfig::new(40).policy(Policy::KernelScan).balance_entries(handed_out + 1));
    let first = nat.allocate().unwrap().unwrap();
    assert_eq!(reads(), 8, "one build scans 8 NAT blocks");
    for _ in 0..8 * ENTRIES - 3 - 455 {
        nat.allocate().unwrap().unwrap();
    }
    nat.get(first).unwrap();
    nat.balance();
    assert_eq!(nat.stats().cached_entries, handed_out);
    assert_eq!(reads(), 8, "too few entries in memory for balancing");
    nat.get(Nid(39 * ENTRIES)).unwrap();
    assert_eq!(nat.stats().cached_entries, handed_out + 1);
    nat.balance();
    assert_eq!(reads(), 17, "454 listed: balancing scans");
    nat.balance();
    assert_eq!(reads(), 17, "enough are listed");

    // CLUE leaves the NAT blocks alone until a checkpoint, or an allocation that would fail.
    let clue = device.open(NatConfig::new(40).policy(Policy::CLUE).balance_entries(0));
    let before = reads();
    clue.balance();
    assert_eq!(reads(), before);
    clue.end_checkpoint();
    assert_eq!(reads(), before + 8);
    for _ in 0..8 * ENTRIES - 3 {
        clue.allocate().unwrap().unwrap();
        clue.balance();
    }
    assert_eq!(reads(), before + 8);
    clue.allocate().unwrap().unwrap();
    assert_eq!(reads(), before + 16);
    assert!(clue.stats().scans > 2 && !clue.stats().scan_time.is_zero());
}

#[test]
fn the_nids_in_use_are_walked_in_order_and_blocks_are_not_kept() {
    let mut device = Device::new(40);
    let nat = device.open(NatConfig::new(40));
    let nids: Vec<Nid> = (0..40).map(|block| Nid(block * ENTRIES + 9)).collect();
    for nid in &nids {
        assert!(nat.reserve(*nid).unwrap());
        nat.bind(*nid, Nid(9), BlockAddr(nid.0 + 7)).unwrap();
    }
    let flush = nat.begin_checkpoint(38).unwrap();
    device.write_blocks(&flush);
    device.commit(&nat, flush);
    nat.end_checkpoint();

    let nat = device.open(NatConfig::new(40));
    // One is freed, and one has no block yet: memory counts, not the device.
    nat.free(nids[20]).unwrap();
    let fresh = Nid(30 * ENTRIES);
    assert!(nat.reserve(fresh).unwrap());
    nat.bind(fresh, fresh, BlockAddr::NEW).unwrap();
    let in_memory = nat.stats();
    let used: Vec<_> = nat.used().map(Result::unwrap).collect();
    assert_eq!(nat.stats().cached_blocks, in_memory.cached_blocks);
    let mut expected: Vec<_> =
        nids.iter().filter(|nid| **nid != nids[20]).map(|nid| (*nid, BlockAddr(nid.0 + 7))).collect();
    expected.push((fresh, BlockAddr::NEW));
    expected.sort_unstable();
    assert_eq!(used.iter().map(|(nid, entry)| (*nid, entry.addr)).collect::<Vec<_>>(), expected);

    // Blocks that cannot be read are errors in their places.
    device.memory.broken.store(true, Ordering::Relaxed);
    let (read, failed): (Vec<_>, Vec<_>) = nat.used().partition(Result::is_ok);
    // Two NIDs of the one block that is in memory, none of the other one.
    assert_eq!((read.len(), failed.len()), (2, 38));
}

/// Without a hint a NID is found too, by a look at every block: that is slow, and counted.
#[test]
fn hints_lead_one_thread_to_every_free_nid() {
    let mut device = Device::new(4);
    let nat = device.open(NatConfig::new(4).lanes(1));
    let all: Vec<Nid> = (3..4 * ENTRIES).map(|_| make(&nat, 5000)).collect();
    assert_eq!(nat.stats().missed_hints, 0, "each block that was read gave a hint");
    assert!(nat.allocate().unwrap().is_none());
    // One of each block, the last first: none is in the block that was handed out from before.
    let mut some: Vec<Nid> = all.into_iter().filter(|nid| nid.0 % ENTRIES == 7).collect();
    some.sort_unstable();
    for nid in &some {
        nat.free(*nid).unwrap();
    }
    device.checkpoint(&nat, 38);
    let taken = |nat: &Nat| {
        let mut taken: Vec<Nid> = some.iter().map(|_| nat.allocate().unwrap().unwrap()).collect();
        taken.sort_unstable();
        taken
    };
    assert_eq!(taken(&nat), some);
    assert_eq!(nat.stats().missed_hints, 0, "a checkpoint gave each block with freed NIDs a hint");
    some.iter().for_each(|nid| nat.cancel(*nid));
    assert_eq!(taken(&nat), some);
    assert_eq!(nat.stats().missed_hints, 0, "each NID that came back gave its block a hint");
    assert!(nat.stats().scans <= 4 * 5, "a search for each batch, and not for each NID");
}
