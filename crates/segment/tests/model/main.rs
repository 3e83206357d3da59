//! The manager against a naive model: sets of blocks, and a disk that is reopened after checkpoints and crashes.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod op;

use std::collections::{BTreeMap, BTreeSet};

use common::{Disk, geometry};
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::cost::{Card, CostModel, Interior};
use f2fs_segment::plan::{self, Planner};
use f2fs_segment::{
    AgeThreshold, Class, NodeLog, Phase, Run, SegmentConfig, SegmentError, SegmentInfo, SegmentManager, VictimPolicy,
};
use op::{Op, op};
use proptest::prelude::*;

type Blocks = BTreeMap<BlockAddr, (LogType, Summary)>;

struct World {
    disk: Disk,
    manager: SegmentManager,
    config: fn(SegmentConfig) -> SegmentConfig,
    lanes: u32,
    valid: Blocks,
    /// Valid in the last durable checkpoint, or taken since it began.
    taken: BTreeSet<BlockAddr>,
    durable: Blocks,
    counter: u32,
    now: u64,
}

impl World {
    fn new(segments: u32, segs_per_sec: u32, config: fn(SegmentConfig) -> SegmentConfig) -> World {
        let disk = Disk::new(geometry(segments, segs_per_sec));
        let manager = disk.open(config);
        let lanes = config(SegmentConfig::new(disk.geometry.clone(), 0, 0)).lanes as u32;
        World {
            lanes,
            disk,
            manager,
            config,
            valid: Blocks::new(),
            taken: BTreeSet::new(),
            durable: Blocks::new(),
            counter: 0,
            now: 1,
        }
    }

    fn summaries(&mut self, count: usize) -> Vec<Summary> {
        let first = self.counter;
        self.counter += count as u32;
        (first..self.counter).map(|id| Summary::new(Nid(id), id as u8, (id % 900) as u16)).collect()
    }

    /// Blocks that a log could get: its own rest, free segments, and the holes of dirty segments of its kind. A segment
    /// of another lane whose blocks were all freed becomes free when it is closed: with them, if `closed`.
    fn obtainable(&self, log: LogType, closed: bool) -> u64 {
        let head = self.manager.log(log);
        let mut blocks = 0;
        let mut sections: BTreeMap<u32, u32> = BTreeMap::new();
        let per_section = self.disk.geometry.segs_per_sec;
        let usable = |info: &SegmentInfo| log != LogType::WarmNode && info.log.is_node() == log.is_node();
        for number in 0..self.disk.geometry.main_segments {
            let info = self.manager.segment(SegmentNo(number)).unwrap();
            let holes = u64::from(512 - info.taken);
            match info.phase {
                Phase::Current if info.segment == head.segment => {
                    blocks +=
                        (u32::from(head.next_offset)..512).filter(|&at| !info.taken_map.contains(at)).count() as u64;
                }
                // Of another lane, which is closed when space is short.
                Phase::Current if info.valid != 0 && usable(&info) && !self.is_head(info.segment) => blocks += holes,
                Phase::Dirty if !info.victim && usable(&info) => {
                    blocks += holes;
                }
                Phase::Current if closed && info.taken == 0 && !self.is_head(info.segment) => {
                    *sections.entry(number / per_section).or_default() += 1;
                }
                Phase::Free => *sections.entry(number / per_section).or_default() += 1,
                _ => {}
            }
        }
        let whole = sections.values().filter(|&&count| count == per_section).count() as u64;
        blocks + whole * u64::from(per_section) * 512
    }

    /// Whether a checkpoint would record a log there.
    fn is_head(&self, segment: SegmentNo) -> bool {
        LogType::ALL.into_iter().any(|log| self.manager.log(log).segment == segment)
    }

    fn allocate(&mut self, log: LogType, count: usize) -> Result<(), TestCaseError> {
        self.allocate_on(0, log, count)
    }

    fn allocate_on(&mut self, lane: usize, log: LogType, count: usize) -> Result<(), TestCaseError> {
        let summaries = self.summaries(count);
        let (before, most) = (self.obtainable(log, false), self.obtainable(log, true));
        let (mut runs, mut rewrites) = (vec![Run { addr: BlockAddr(1), len: 1 }], Vec::new());
        let class = if log.is_node() { Class::Checkpoint } else { Class::User };
        let result = if lane != 0 {
            self.manager.allocate_on(lane, class, log, &summaries, self.now, &mut runs)
        } else if count.is_multiple_of(2) {
            self.manager.allocate(log, &summaries, self.now, &mut runs)
        } else {
            let model = CostModel::card(Card::A, Interior::Affine);
            let planner = Planner::new(model, [plan::Strategy::Optimal, plan::Strategy::Greedy][count / 2 % 2], 3.0);
            self.manager.allocate_selective(class, log, &summaries, self.now, &planner, &mut runs, &mut rewrites)
        };
        match result {
            Ok(()) => {
                // Only what the last durable checkpoint holds is rewritten, and only between two new runs.
                for run in &rewrites {
                    prop_assert!((0..run.len).all(|at| self.durable.contains_key(&run.addr.offset(at))));
                    prop_assert!((0..run.len).all(|at| self.valid.contains_key(&run.addr.offset(at))));
                    prop_assert!(runs[1..].iter().any(|new| new.addr.offset(new.len) == run.addr));
                    prop_assert!(runs[1..].iter().any(|new| run.addr.offset(run.len) == new.addr));
                }
                let blocks: Vec<_> =
                    runs[1..].iter().flat_map(|run| (0..run.len).map(|at| run.addr.offset(at))).collect();
                prop_assert_eq!(blocks.len(), count);
                for (addr, summary) in blocks.into_iter().zip(summaries) {
                    prop_assert!(!self.valid.contains_key(&addr), "{} is valid", addr);
                    prop_assert!(self.taken.insert(addr), "{} is taken", addr);
                    self.valid.insert(addr, (log, summary));
                }
                let apart = runs[1..].windows(2).all(|pair| pair[0].addr.offset(pair[0].len) != pair[1].addr);
                prop_assert!(apart, "runs are not merged: {:?}", runs);
            }
            Err(SegmentError::NoSpace { free, prefree, .. }) => {
                prop_assert_eq!((runs.len(), rewrites.len()), (1, 0));
                prop_assert_eq!((free, prefree), (self.manager.free_segments(), self.manager.prefree_segments()));
                // Everything was tried, where the floor does not forbid it; a log may be inside a section.
                if self.disk.geometry.segs_per_sec == 1 && self.manager.floor(Class::User) == 0 {
                    prop_assert!(before <= count as u64, "{before} blocks were there for {count}");
                }
                let after = self.obtainable(log, false);
                prop_assert!((before..=most).contains(&after), "{before} to {most} blocks were there, {after} are");
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
        Ok(())
    }

    fn node(&mut self, log: LogType, lane: usize) -> Result<(), TestCaseError> {
        let summary = self.summaries(1)[0];
        let expected = self.manager.next_block(log);
        let node_log = NodeLog::of(log).unwrap();
        if let Ok((addr, next)) = self.manager.allocate_node_on(lane, node_log, summary, self.now) {
            if lane == 0 || log == LogType::WarmNode {
                prop_assert_eq!(addr, expected);
                prop_assert_eq!(next, self.manager.next_block(log));
            }
            prop_assert!(!self.taken.contains(&next) && next != addr);
            prop_assert!(self.taken.insert(addr));
            self.valid.insert(addr, (log, summary));
        }
        Ok(())
    }

    /// Sections that can be cleaned, with their valid blocks.
    fn cleanable(&self) -> Vec<(u32, u32)> {
        let per_section = self.disk.geometry.segs_per_sec;
        (0..self.disk.geometry.sections)
            .filter_map(|section| {
                let infos: Vec<_> = (section * per_section..(section + 1) * per_section)
                    .map(|number| self.manager.segment(SegmentNo(number)).unwrap())
                    .collect();
                let valid: u32 = infos.iter().map(|info| info.valid).sum();
                let held = infos.iter().any(|info| info.phase == Phase::Current || info.victim);
                (!held && valid != 0 && valid < per_section * 512).then_some((section, valid))
            })
            .collect()
    }

    fn clean(&mut self, policy: usize, log: LogType, count: usize) -> Result<(), TestCaseError> {
        let rule = AgeThreshold::default().threshold(3).min_candidates(2);
        let policy = [VictimPolicy::Greedy, VictimPolicy::CostBenefit, VictimPolicy::AgeThreshold(rule)][policy];
        let cleanable = self.cleanable();
        let Some(victim) = self.manager.choose_victim(policy, self.now) else {
            prop_assert!(cleanable.is_empty(), "{:?} finds none of {:?}", policy, cleanable);
            return Ok(());
        };
        prop_assert!(cleanable.contains(&(victim.section, victim.valid)));
        if policy == VictimPolicy::Greedy {
            prop_assert_eq!(Some(victim.valid), cleanable.iter().map(|(_, valid)| *valid).min());
        }
        // Another cleaner gets another one.
        if let Some(other) = self.manager.choose_victim(policy, self.now) {
            prop_assert_ne!(other.section, victim.section);
            self.manager.release_victim(&other).unwrap();
        }
        if count != 0 {
            // Nobody writes into a marked section.
            let before = self.valid.clone();
            self.allocate(log, count)?;
            for addr in self.valid.keys().filter(|addr| !before.contains_key(addr)) {
                let (segment, _) = self.disk.geometry.locate(*addr).unwrap();
                prop_assert!(!victim.segments().any(|marked| marked == segment));
            }
        }
        let blocks: Vec<_> = self
            .valid
            .iter()
            .filter(|(addr, _)| {
                victim.segments().any(|segment| self.disk.geometry.locate(**addr).unwrap().0 == segment)
            })
            .map(|(addr, (log, summary))| (*addr, *log, *summary))
            .collect();
        for (addr, log, summary) in blocks {
            let cold = if log.is_node() { LogType::ColdNode } else { LogType::ColdData };
            let mut runs = Vec::new();
            if self.manager.allocate_as(Class::Cleaner, cold, &[summary], self.now, &mut runs).is_err() {
                break;
            }
            prop_assert!(self.taken.insert(runs[0].addr));
            self.valid.insert(runs[0].addr, (cold, summary));
            self.manager.invalidate(addr, self.now).unwrap();
            self.valid.remove(&addr);
        }
        if policy != VictimPolicy::CostBenefit {
            self.manager.release_victim(&victim).unwrap();
        }
        Ok(())
    }

    fn free(&mut self, chosen: impl Fn(BlockAddr) -> bool) {
        let addrs: Vec<_> = self.valid.keys().copied().filter(|&addr| chosen(addr)).collect();
        // In runs where they are consecutive, on every other step.
        let mut runs: Vec<Run> = Vec::new();
        for &addr in &addrs {
            match runs.last_mut() {
                Some(last) if self.now.is_multiple_of(2) && last.addr.offset(last.len) == addr => last.len += 1,
                _ => runs.push(Run { addr, len: 1 }),
            }
        }
        for run in runs {
            self.manager.invalidate_run(run, self.now).unwrap();
        }
        for addr in addrs {
            self.valid.remove(&addr);
            let again = self.manager.invalidate(addr, self.now).unwrap_err();
            assert!(matches!(again, SegmentError::NotValid { .. }), "{again}");
        }
    }

    fn free_share(&mut self, share: u8, salt: u64) {
        self.free(|addr| (u64::from(addr.0) ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56 < u64::from(share));
    }

    fn checkpoint(
        &mut self,
        capacity: usize,
        between: impl FnOnce(&mut World) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let flush = self.manager.begin_checkpoint(capacity).unwrap();
        prop_assert!(flush.sit_journal.len() <= capacity);
        prop_assert_eq!(flush.valid_blocks, self.valid.len() as u64);
        let (durable, taken_before) = (self.valid.clone(), self.taken.clone());
        between(self)?;
        self.disk.write_areas(&flush);
        self.disk.commit(flush);
        let prefree: BTreeSet<_> = (0..self.disk.geometry.main_segments)
            .map(|number| self.manager.segment(SegmentNo(number)).unwrap())
            .filter(|info| info.phase == Phase::Prefree)
            .map(|info| info.segment)
            .collect();
        let discard = self.manager.end_checkpoint();
        // A discarded segment was prefree, and is valid neither now nor in the checkpoint.
        for run in discard {
            for addr in (0..run.len).map(|at| run.addr.offset(at)) {
                prop_assert!(!durable.contains_key(&addr) && !self.valid.contains_key(&addr));
                prop_assert!(prefree.contains(&self.disk.geometry.locate(addr).unwrap().0));
            }
        }
        self.taken = self.taken.difference(&taken_before).copied().chain(durable.keys().copied()).collect();
        self.durable = durable;
        self.check_disk()
    }

    fn check_disk(&self) -> Result<(), TestCaseError> {
        let entries = self.disk.entries();
        let mut on_disk = BTreeSet::new();
        let mut free = 0;
        for (number, entry) in (0..).map(SegmentNo).zip(&entries) {
            let map = f2fs_segment::BlockMap::from_bytes(&entry.valid_map);
            prop_assert_eq!(map.count(), entry.valid_blocks());
            on_disk.extend((0..512).filter(|&at| map.contains(at)).map(|at| self.disk.geometry.block_at(number, at)));
            // As fsck.f2fs counts (build_sit_area_bitmap).
            free += u32::from(entry.valid_blocks() == 0 && self.disk.logs.iter().all(|log| log.segment != number));
        }
        prop_assert!(on_disk.iter().eq(self.durable.keys()));
        if let Some(stated) = self.disk.free_segments {
            prop_assert_eq!(stated, free);
        }
        for (addr, (log, summary)) in &self.durable {
            let (segment, offset) = self.disk.geometry.locate(*addr).unwrap();
            let head = self.disk.logs.iter().find(|head| head.segment == segment);
            let block = head.map_or_else(|| self.disk.ssa.get(segment), |head| head.summary.clone());
            prop_assert_eq!(block.entries[offset as usize], *summary);
            prop_assert_eq!(block.entry_type == 1, log.is_node());
            prop_assert_eq!(entries[segment.index()].log_type().unwrap().is_node(), log.is_node());
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.manager.valid_blocks(), self.valid.len() as u64);
        let mut phases: BTreeMap<&str, u32> = BTreeMap::new();
        for number in (0..self.disk.geometry.main_segments).map(SegmentNo) {
            let info = self.manager.segment(number).unwrap();
            *phases.entry(info.phase.name()).or_default() += 1;
            let range = self.disk.geometry.block_at(number, 0)..self.disk.geometry.block_at(number, 512);
            let valid = self.valid.range(range.clone()).map(|(addr, _)| addr.0 - range.start.0);
            prop_assert!(info.valid_map.runs(true).flat_map(|(start, len)| start..start + len).eq(valid));
            let taken: BTreeSet<_> = self.taken.range(range.clone()).map(|addr| addr.0 - range.start.0).collect();
            prop_assert!(info.taken_map.runs(true).flat_map(|(start, len)| start..start + len).eq(taken), "{:?}", info);
            prop_assert_eq!((info.valid, info.taken), (info.valid_map.count(), info.taken_map.count()));
            let summary = self.manager.summary(number).unwrap_or_else(|| self.disk.ssa.get(number));
            for (addr, (_, expected)) in self.valid.range(range.clone()) {
                prop_assert_eq!(summary.entries[(addr.0 - range.start.0) as usize], *expected);
            }
        }
        prop_assert_eq!(phases.get("free").copied().unwrap_or(0), self.manager.free_segments());
        prop_assert_eq!(phases.get("prefree").copied().unwrap_or(0), self.manager.prefree_segments());
        // Five logs may have lanes.
        let most = 6 + 5 * (self.lanes - 1);
        prop_assert!((6..=most).contains(&phases.get("current").copied().unwrap_or(0)));
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), TestCaseError> {
        self.check_disk()?;
        self.manager = self.disk.open(self.config);
        self.valid = self.durable.clone();
        self.taken = self.valid.keys().copied().collect();
        Ok(())
    }

    fn apply(&mut self, op: Op) -> Result<(), TestCaseError> {
        self.now += 1;
        match op {
            Op::Allocate { log, count } => self.allocate(LogType::ALL[log], count)?,
            Op::Node { log, lane } => self.node(LogType::ALL[log], lane)?,
            Op::OnLane { lane, log, count } => self.allocate_on(lane, LogType::ALL[log], count)?,
            Op::Free { share, salt } => self.free_share(share, salt),
            Op::FreeSegment { index } => {
                let segment = SegmentNo(index as u32 % self.disk.geometry.main_segments);
                let start = self.disk.geometry.block_at(segment, 0);
                self.free(|addr| (start..start.offset(512)).contains(&addr));
            }
            Op::Checkpoint { capacity } => self.checkpoint(capacity, |_| Ok(()))?,
            Op::Prepare => self.manager.prepare_checkpoint(),
            Op::Aborted { capacity } => {
                let flush = self.manager.begin_checkpoint(capacity).unwrap();
                self.disk.write_areas(&flush);
            }
            Op::Split { capacity, log, count, share } => self.checkpoint(capacity, |world| {
                world.free_share(share, u64::from(share));
                world.allocate(LogType::ALL[log], count)?;
                world.free_share(share / 4, 99);
                Ok(())
            })?,
            Op::Crash { in_checkpoint } => {
                if in_checkpoint {
                    let flush = self.manager.begin_checkpoint(6).unwrap();
                    self.disk.write_areas(&flush);
                }
                self.reopen()?;
            }
            Op::Reopen { capacity } => {
                self.checkpoint(capacity, |_| Ok(()))?;
                self.reopen()?;
            }
            Op::Clean { policy, log, count } => self.clean(policy, LogType::ALL[log], count)?,
            Op::Pressure { nodes, dents } => self.manager.set_pressure(nodes, dents),
        }
        self.check_memory()
    }
}

fn run(mut world: World, ops: Vec<Op>) -> Result<(), TestCaseError> {
    for op in ops {
        world.apply(op)?;
    }
    Ok(())
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48);
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn small_and_full(ops in prop::collection::vec(op(), 1..60)) {
        run(World::new(14, 1, |config| config.user_floor(0)), ops)?;
    }

    #[test]
    fn lanes(ops in prop::collection::vec(op(), 1..60)) {
        run(World::new(24, 1, |config| config.user_floor(0).lanes(3)), ops)?;
    }

    #[test]
    fn several_sit_blocks(ops in prop::collection::vec(op(), 1..40)) {
        let config = |config: SegmentConfig| { let mut config = config.user_floor(2).lanes(2); config.reserved_segments = 40; config };
        run(World::new(180, 1, config), ops)?;
    }

    #[test]
    fn large_sections(ops in prop::collection::vec(op(), 1..50)) {
        run(World::new(48, 4, |config| config.user_floor(0).lanes(2)), ops)?;
    }

    #[test]
    fn without_holes(ops in prop::collection::vec(op(), 1..50)) {
        run(World::new(16, 1, |config| config.user_floor(1).ssr(false)), ops)?;
    }
}
