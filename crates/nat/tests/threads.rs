//! Many threads at once: no NID is handed out twice, none is lost, and the device agrees in the end.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, RwLock};

use common::{Device, ENTRIES};
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, Policy};

const THREADS: usize = 8;

fn policies() -> Vec<Policy> {
    let clue = |optimistic, heuristic, lazy| Policy::Clue { optimistic, heuristic, lazy };
    let techniques = [clue(true, false, false), clue(false, true, false), clue(false, false, true), Policy::CLUE];
    [Policy::KernelScan, Policy::Sharded].into_iter().chain(techniques).collect()
}

#[test]
fn all_nids_are_shared_out_and_each_once() {
    for policy in policies() {
        let device = Device::new(6);
        let nat = device.open(NatConfig::new(6).policy(policy));
        let all = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let mine: Vec<Nid> = std::iter::from_fn(|| nat.allocate().unwrap()).collect();
                    all.lock().unwrap().extend(mine);
                });
            }
        });
        let all = all.into_inner().unwrap();
        assert_eq!(all.len() as u32, 6 * ENTRIES - 3, "{policy}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{policy}");
    }
}

#[test]
fn the_last_nid_goes_to_one_of_the_racing_threads_every_time() {
    for policy in policies() {
        let device = Device::new(1);
        let nat = device.open(NatConfig::new(1).policy(policy));
        let all: Vec<Nid> = std::iter::from_fn(|| nat.allocate().unwrap()).collect();
        for round in 0..200 {
            nat.cancel(all[round % all.len()]);
            let wins = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| wins.fetch_add(u32::from(nat.allocate().unwrap().is_some()), Ordering::Relaxed));
                }
            });
            assert_eq!(wins.into_inner(), 1, "{policy}");
        }
    }
}

/// Threads create, move, free and cancel while checkpoints run; an evicting cache and a full table make every path
/// likely.
#[test]
fn creates_and_frees_run_beside_checkpoints() {
    for policy in policies() {
        let blocks = 8;
        let mut device = Device::new(blocks);
        let nat = device.open(NatConfig::new(blocks).policy(policy).cached_blocks(3).lanes(4));
        let owners: Vec<AtomicU32> = (0..blocks * ENTRIES).map(|_| AtomicU32::new(0)).collect();
        let gate = RwLock::new(());
        let stop = AtomicBool::new(false);
        let live = Mutex::new(HashSet::new());
        std::thread::scope(|scope| {
            for thread in 1..=THREADS as u32 {
                let (nat, owners, gate, stop, live) = (&nat, &owners, &gate, &stop, &live);
                scope.spawn(move || {
                    let mut mine: Vec<Nid> = Vec::new();
                    let mut random = fastrand::Rng::with_seed(thread.into());
                    while !stop.load(Ordering::Relaxed) {
                        let _open = gate.read().unwrap();
                        match random.u8(..16) {
                            0..8 => {
                                let Some(nid) = nat.allocate().unwrap() else { continue };
                                let owner = owners[nid.index()].swap(thread, Ordering::Relaxed);
                                assert_eq!(owner, 0, "NID {nid} belongs to {owner}, {policy}");
                                if random.u8(..16) == 0 {
                                    owners[nid.index()].store(0, Ordering::Relaxed);
                                    nat.cancel(nid);
                                } else {
                                    nat.bind(nid, nid, BlockAddr::NEW).unwrap();
                                    nat.bind(nid, nid, BlockAddr(thread * 1000)).unwrap();
                                    mine.push(nid);
                                }
                            }
                            8..14 => {
                                if let Some(nid) = mine.pop() {
                                    owners[nid.index()].store(0, Ordering::Relaxed);
                                    let old = nat.free(nid).unwrap();
                                    assert!(old.addr.0 / 1000 == thread && old.ino == nid);
                                }
                            }
                            _ => {
                                if let Some(nid) = mine.last() {
                                    assert_eq!(nat.get(*nid).unwrap().addr.0 / 1000, thread);
                                    nat.bind(*nid, *nid, BlockAddr(thread * 1000 + 1)).unwrap();
                                }
                            }
                        }
                    }
                    live.lock().unwrap().extend(mine);
                });
            }
            for round in 0..24 {
                std::thread::sleep(std::time::Duration::from_millis(3));
                let closed = gate.write().unwrap();
                let flush = nat.begin_checkpoint(if round % 5 == 0 { 0 } else { 38 }).unwrap();
                if round % 7 == 0 {
                    continue; // the device failed; the next one takes over
                }
                device.write_blocks(&flush);
                device.commit(&nat, flush);
                nat.end_checkpoint();
                drop(closed);
            }
            stop.store(true, Ordering::Relaxed);
        });
        device.checkpoint(&nat, 38);
        let live = live.into_inner().unwrap();
        let free = u64::from(blocks * ENTRIES - 3) - live.len() as u64;
        assert_eq!(nat.free_nids().unwrap(), free, "{policy}");
        check_device(&device, &live);
        let got = std::iter::from_fn(|| nat.allocate().unwrap()).count();
        assert_eq!(got as u64, free, "every free NID is found, {policy}");
        let again = device.open(NatConfig::new(blocks).policy(policy));
        assert_eq!(again.free_nids().unwrap(), free, "{policy}");
    }
}

fn check_device(device: &Device, live: &HashSet<Nid>) {
    for nid in (3..8 * ENTRIES).map(Nid) {
        assert_eq!(device.durable(nid).block_addr.get() != 0, live.contains(&nid), "NID {nid}");
    }
}

/// Readers of one entry see pairs that were written together, while its block is also evicted and loaded again.
#[test]
fn readers_never_see_half_an_entry() {
    let device = Device::new(8);
    let nat = device.open(NatConfig::new(8).cached_blocks(1));
    let nid = nat.allocate().unwrap().unwrap();
    nat.bind(nid, Nid(1), BlockAddr(1)).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| read_pairs(&nat, nid, &stop));
        }
        for i in 2..40_000 {
            nat.bind(nid, Nid(i), BlockAddr(i)).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

fn read_pairs(nat: &Nat, nid: Nid, stop: &AtomicBool) {
    let mut last = 0;
    while !stop.load(Ordering::Relaxed) {
        let entry = nat.get(nid).unwrap();
        assert_eq!(entry.ino.0, entry.addr.0);
        assert!(entry.addr.0 >= last, "time runs forward");
        last = entry.addr.0;
        nat.get(Nid(last % 7 * ENTRIES + ENTRIES)).unwrap();
    }
}
