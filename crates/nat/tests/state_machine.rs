//! Random histories against a naive model: allocation, binding, moving, freeing, checkpoints, reopening, and stops
//! without a checkpoint, for every policy.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Device, ENTRIES};
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, NatEntry, Policy};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    /// Allocates so many NIDs and binds them.
    Create(u16),
    /// Allocates until there is none, and keeps every n-th, the others being cancelled.
    Exhaust(u8),
    /// Allocates one and gives it back.
    Cancel,
    /// Moves the n-th bound node.
    Move(u16),
    /// Frees bound nodes from the n-th on.
    Free(u16, u16),
    /// Looks at any NID.
    Look(u16),
    /// Takes a certain NID, and gives it back or binds it.
    Reserve(u16, bool),
    /// A checkpoint with so much room in the journal.
    Checkpoint(usize),
    /// A checkpoint during which a node is freed and another moved.
    Busy(usize, u16),
    /// A checkpoint that begins, writes its blocks, and is given up.
    GiveUp(usize),
    /// A checkpoint, then closed and opened again.
    Reopen(usize),
    /// Stopped without a checkpoint.
    Crash,
    /// Stopped in a checkpoint, its blocks written or not.
    CrashWithin(usize, bool),
}

/// The naive model: entries of NIDs that were ever bound, and what is taken or freed on top.
#[derive(Debug, Default, Clone)]
struct Model {
    durable: BTreeMap<u32, NatEntry>,
    now: BTreeMap<u32, NatEntry>,
    taken: BTreeSet<u32>,
    freed: BTreeSet<u32>,
}

impl Model {
    fn entry(&self, nid: u32) -> NatEntry {
        self.now.get(&nid).copied().unwrap_or_default()
    }

    fn bound(&self) -> Vec<u32> {
        self.now.iter().filter(|(_, entry)| entry.is_bound()).map(|(nid, _)| *nid).collect()
    }

    fn is_free(&self, nid: u32) -> bool {
        nid >= 3 && !self.entry(nid).is_bound() && !self.taken.contains(&nid) && !self.freed.contains(&nid)
    }

    fn free_count(&self, max: u32) -> u64 {
        (0..max).filter(|nid| self.is_free(*nid)).count() as u64
    }

    fn set(&mut self, nid: u32, addr: BlockAddr) {
        let version = self.entry(nid).version;
        self.now.insert(nid, NatEntry { ino: Nid(nid), addr, version });
        self.taken.remove(&nid);
    }

    fn free(&mut self, nid: u32) {
        let old = self.entry(nid);
        let new = NatEntry { ino: old.ino, addr: BlockAddr::NULL, version: old.version.wrapping_add(1) };
        self.now.insert(nid, new);
        self.freed.insert(nid);
    }
}

struct World {
    device: Device,
    nat: Nat,
    model: Model,
    config: NatConfig,
    next_addr: u32,
    known_counts: bool,
}

impl World {
    fn addr(&mut self) -> BlockAddr {
        self.next_addr += 1;
        BlockAddr(self.next_addr)
    }

    fn open(&mut self) {
        let mut config = self.config.clone();
        if self.known_counts {
            config = config.valid_nodes(self.model.bound().len() as u64);
        }
        self.nat = self.device.open(config);
    }

    fn create(&mut self) -> bool {
        let Some(nid) = self.nat.allocate().unwrap() else {
            assert_eq!(self.model.free_count(self.nat.max_nid()), 0, "a NID is free but was not found");
            return false;
        };
        assert!(self.model.is_free(nid.0), "{nid} is not free");
        assert_eq!(self.nat.bind(nid, nid, BlockAddr::NEW).unwrap(), self.model.entry(nid.0));
        let addr = self.addr();
        self.nat.bind(nid, nid, addr).unwrap();
        self.model.set(nid.0, addr);
        true
    }

    fn durable(&mut self, freed: &BTreeSet<u32>, entries: BTreeMap<u32, NatEntry>) {
        self.model.durable = entries;
        for nid in freed {
            self.model.freed.remove(nid);
        }
    }

    fn checkpoint(&mut self, capacity: usize) {
        self.device.checkpoint(&self.nat, capacity);
        let freed = self.model.freed.clone();
        self.durable(&freed, self.model.now.clone());
        self.verify_device();
    }

    fn verify_device(&self) {
        for nid in 0..self.nat.max_nid() {
            let expected = self.model.durable.get(&nid).copied().unwrap_or_default();
            assert_eq!(NatEntry::from(self.device.durable(Nid(nid))), expected, "NID {nid} on the device");
        }
    }

    fn crash(&mut self) {
        self.model.now = self.model.durable.clone();
        self.model.taken.clear();
        self.model.freed.clear();
        self.open();
    }

    fn pick(&self, n: u16) -> Option<u32> {
        let bound = self.model.bound();
        (!bound.is_empty()).then(|| bound[usize::from(n) % bound.len()])
    }

    #[allow(clippy::needless_pass_by_value)]
    fn step(&mut self, step: Step) {
        let max = self.nat.max_nid();
        match step {
            Step::Create(count) => {
                for _ in 0..count {
                    if !self.create() {
                        break;
                    }
                }
            }
            Step::Exhaust(keep) => {
                let free = self.model.free_count(max);
                let mut got = Vec::new();
                while let Some(nid) = self.nat.allocate().unwrap() {
                    assert!(self.model.is_free(nid.0), "{nid} is not free");
                    self.model.taken.insert(nid.0);
                    got.push(nid);
                }
                assert_eq!(got.len() as u64, free, "every free NID is found, and then none");
                for (i, nid) in got.into_iter().enumerate() {
                    if i % (usize::from(keep) + 1) == 0 {
                        let addr = self.addr();
                        self.nat.bind(nid, nid, addr).unwrap();
                        self.model.set(nid.0, addr);
                    } else {
                        self.nat.cancel(nid);
                        self.model.taken.remove(&nid.0);
                    }
                }
            }
            Step::Cancel => {
                if let Some(nid) = self.nat.allocate().unwrap() {
                    assert!(self.model.is_free(nid.0));
                    self.nat.cancel(nid);
                }
            }
            Step::Move(n) => {
                if let Some(nid) = self.pick(n) {
                    let addr = self.addr();
                    assert_eq!(self.nat.bind(Nid(nid), Nid(nid), addr).unwrap(), self.model.entry(nid));
                    self.model.set(nid, addr);
                }
            }
            Step::Free(n, count) => {
                for i in 0..count {
                    if let Some(nid) = self.pick(n.wrapping_add(i)) {
                        assert_eq!(self.nat.free(Nid(nid)).unwrap(), self.model.entry(nid));
                        self.model.free(nid);
                    }
                }
            }
            Step::Look(n) => {
                let nid = u32::from(n) % max;
                assert_eq!(self.nat.get(Nid(nid)).unwrap(), self.model.entry(nid));
            }
            Step::Reserve(n, bind) => {
                let nid = 3 + u32::from(n) % (max - 3);
                let got = self.nat.reserve(Nid(nid)).unwrap();
                assert_eq!(got, self.model.is_free(nid));
                if got && bind {
                    let addr = self.addr();
                    self.nat.bind(Nid(nid), Nid(nid), addr).unwrap();
                    self.model.set(nid, addr);
                } else if got {
                    self.nat.cancel(Nid(nid));
                }
            }
            Step::Checkpoint(capacity) => self.checkpoint(capacity),
            Step::Busy(capacity, n) => {
                let flush = self.nat.begin_checkpoint(capacity).unwrap();
                let (entries, freed) = (self.model.now.clone(), self.model.freed.clone());
                self.step(Step::Free(n, 3));
                self.step(Step::Move(n));
                self.step(Step::Create(3));
                self.device.write_blocks(&flush);
                self.device.commit(&self.nat, flush);
                self.nat.end_checkpoint();
                self.durable(&freed, entries);
                self.verify_device();
            }
            Step::GiveUp(capacity) => {
                let flush = self.nat.begin_checkpoint(capacity).unwrap();
                self.device.write_blocks(&flush);
            }
            Step::Reopen(capacity) => {
                self.checkpoint(capacity);
                self.crash();
            }
            Step::Crash => self.crash(),
            Step::CrashWithin(capacity, written) => {
                let flush = self.nat.begin_checkpoint(capacity).unwrap();
                if written {
                    self.device.write_blocks(&flush);
                }
                self.crash();
            }
        }
        assert_eq!(self.nat.free_nids().unwrap(), self.model.free_count(max));
    }
}

fn capacity() -> impl Strategy<Value = usize> {
    prop_oneof![Just(38), Just(38), Just(0), 0..38_usize]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..60_u16).prop_map(Step::Create),
        1 => (400..900_u16).prop_map(Step::Create),
        1 => any::<u8>().prop_map(Step::Exhaust),
        1 => Just(Step::Cancel),
        3 => any::<u16>().prop_map(Step::Move),
        4 => (any::<u16>(), 1..80_u16).prop_map(|(n, count)| Step::Free(n, count)),
        2 => any::<u16>().prop_map(Step::Look),
        1 => (any::<u16>(), any::<bool>()).prop_map(|(n, bind)| Step::Reserve(n, bind)),
        3 => capacity().prop_map(Step::Checkpoint),
        2 => (capacity(), any::<u16>()).prop_map(|(capacity, n)| Step::Busy(capacity, n)),
        1 => capacity().prop_map(Step::GiveUp),
        1 => capacity().prop_map(Step::Reopen),
        1 => Just(Step::Crash),
        1 => (capacity(), any::<bool>()).prop_map(|(capacity, written)| Step::CrashWithin(capacity, written)),
    ]
}

fn history(policy: Policy, blocks: u32, cached: usize, lanes: usize, known_counts: bool, steps: Vec<Step>) {
    let config = NatConfig::new(blocks).policy(policy).cached_blocks(cached).lanes(lanes);
    let device = Device::new(blocks);
    let nat = device.open(config.clone());
    let mut world = World { device, nat, model: Model::default(), config, next_addr: 1000, known_counts };
    world.open();
    for step in steps {
        world.step(step);
    }
    for nid in 0..blocks * ENTRIES {
        assert_eq!(world.nat.get(Nid(nid)).unwrap(), world.model.entry(nid), "NID {nid} in memory");
    }
    world.step(Step::Exhaust(0));
    world.step(Step::Reopen(38));
}

fn policies() -> Vec<Policy> {
    let clue = |optimistic, heuristic, lazy| Policy::Clue { optimistic, heuristic, lazy };
    let techniques = [clue(true, false, false), clue(false, true, false), clue(false, false, true), Policy::CLUE];
    [Policy::KernelScan, Policy::Sharded].into_iter().chain(techniques).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn histories_agree_with_the_model(
        policy in proptest::sample::select(policies()),
        blocks in 1..5_u32,
        cached in 1..5_usize,
        lanes in 1..4_usize,
        known_counts in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        history(policy, blocks, cached, lanes, known_counts, steps);
    }
}
