//! Moved blocks go among others of their age.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Disk, geometry};
use f2fs_format::summary::Summary;
use f2fs_format::{LogType, Nid, SegmentNo};
use f2fs_segment::{AgeThreshold, Phase, Run, SegmentError, SegmentManager, VictimPolicy};

fn summary(n: u32) -> Summary {
    Summary::new(Nid(n), 1, (n % 900) as u16)
}

/// Takes blocks of a log, each with a summary of its own.
fn write(manager: &SegmentManager, log: LogType, count: u32, now: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    let summaries: Vec<Summary> = (0..count).map(summary).collect();
    manager.allocate(log, &summaries, now, &mut runs).unwrap();
    runs
}

/// Four segments of each data log, of ages 100, 200, 300 and 400, with some blocks freed, and no log in them.
fn aged(disk: &mut Disk) -> SegmentManager {
    let manager = disk.open(|config| config.user_floor(1));
    for log in [LogType::WarmData, LogType::HotData] {
        for (age, freed) in [(100, 300), (200, 100), (300, 10), (400, 200)] {
            for run in write(&manager, log, 512, age) {
                let (segment, at) = manager.geometry().locate(run.addr).unwrap();
                assert!(at == 0 && run.len == 512, "{segment}: a log at the start of a segment");
                // Every other one, so that holes have single blocks. Freed at the age of the rest.
                (0..freed).for_each(|hole| manager.invalidate(run.addr.offset(2 * hole % 511), age).unwrap());
            }
        }
    }
    disk.checkpoint(&manager);
    manager
}

fn segment_of(manager: &SegmentManager, log: LogType, age: u64) -> SegmentNo {
    (0..manager.geometry().main_segments)
        .map(SegmentNo)
        .find(|segment| {
            let info = manager.segment(*segment).unwrap();
            info.log == log && info.phase != Phase::Free && info.mtime == age
        })
        .unwrap()
}

fn numbers(manager: &SegmentManager, runs: &[Run]) -> Vec<SegmentNo> {
    let mut all: Vec<_> = runs.iter().map(|run| manager.geometry().locate(run.addr).unwrap().0).collect();
    all.dedup();
    all
}

#[test]
fn the_fullest_of_the_same_log_is_filled_first_and_ages_stay() {
    let mut disk = Disk::new(geometry(40, 1));
    let manager = aged(&mut disk);
    let [at_100, at_200, at_300] = [100, 200, 300].map(|age| segment_of(&manager, LogType::WarmData, age));
    let policy = VictimPolicy::AgeThreshold(AgeThreshold::default().threshold(1));
    let victim = manager.choose_victim(policy, 500).unwrap();
    let from = victim.first;
    let others: Vec<SegmentNo> = [at_300, at_200].into_iter().filter(|segment| *segment != from).collect();
    let log = manager.segment(from).unwrap().log;
    assert_eq!(manager.segment(from).unwrap().mtime, 100, "the oldest is cleaned");
    let (first, second) = match log {
        LogType::WarmData => (at_300, at_200),
        _ => [300, 200].map(|age| segment_of(&manager, LogType::HotData, age)).into(),
    };
    let free = manager.free_segments();
    let mut runs = Vec::new();
    let moved: Vec<Summary> = (1000..1060).map(summary).collect();
    manager.allocate_aged(from, &moved, 500, &mut runs).unwrap();
    assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), 60);
    assert_eq!(numbers(&manager, &runs), [first, second], "ten holes, then those of the next one; {at_100} {others:?}");
    assert_eq!(manager.free_segments(), free, "no segment was begun");
    // Blocks of 100 s among those of 300 s make the segment older, not younger.
    assert!((100..300).contains(&manager.segment(first).unwrap().mtime));
    assert_eq!(manager.segment(first).unwrap().log, log);
    assert_eq!((manager.segment(first).unwrap().valid, manager.segment(first).unwrap().phase), (512, Phase::Full));
    assert_eq!(manager.segment(second).unwrap().phase, Phase::Current);

    // A checkpoint writes the present state: maps, and the owner of each block.
    disk.checkpoint(&manager);
    let again = disk.open(|config| config);
    let mut addrs = runs.iter().flat_map(|run| (0..run.len).map(|at| run.addr.offset(at)));
    for entry in &moved {
        let addr = addrs.next().unwrap();
        let (segment, at) = again.geometry().locate(addr).unwrap();
        assert!(again.is_valid(addr));
        assert_eq!(disk.ssa.get(segment).entries[at as usize], *entry);
    }
    assert_eq!(again.valid_blocks(), manager.valid_blocks());
    assert_eq!(again.segment(second).unwrap().phase, Phase::Dirty);
    assert_eq!(again.segment(second).unwrap().log, log);
}

#[test]
fn without_company_the_cold_log_serves() {
    let mut disk = Disk::new(geometry(24, 1));
    let manager = disk.open(|config| config.user_floor(1));
    let runs = write(&manager, LogType::WarmData, 512, 100);
    (0..100).for_each(|at| manager.invalidate(runs[0].addr.offset(at), 100).unwrap());
    disk.checkpoint(&manager);
    let victim = manager.choose_victim(VictimPolicy::Greedy, 200).unwrap();
    let mut runs = Vec::new();
    manager.allocate_aged(victim.first, &[summary(1), summary(2)], 200, &mut runs).unwrap();
    assert_eq!(numbers(&manager, &runs), [manager.log(LogType::ColdData).segment]);
    let node = manager.log(LogType::HotNode).segment;
    assert!(matches!(
        manager.allocate_aged(node, &[summary(1)], 200, &mut runs),
        Err(SegmentError::WrongLog { log: LogType::HotNode, .. })
    ));
    assert!(matches!(
        manager.allocate_aged(SegmentNo(24), &[summary(1)], 200, &mut runs),
        Err(SegmentError::OutsideTable { .. })
    ));
}

#[test]
fn what_does_not_fit_is_given_back() {
    let mut disk = Disk::new(geometry(16, 1));
    let manager = aged_small(&mut disk);
    let victim = manager.choose_victim(VictimPolicy::Greedy, 200).unwrap();
    let valid = manager.valid_blocks();
    let many: Vec<Summary> = (0..16 * 512).map(summary).collect();
    let mut runs = vec![Run { addr: manager.geometry().block_at(SegmentNo(0), 0), len: 1 }];
    let error = manager.allocate_aged(victim.first, &many, 200, &mut runs).unwrap_err();
    assert!(matches!(error, SegmentError::NoSpace { .. }), "{error}");
    assert_eq!((manager.valid_blocks(), runs.len()), (valid, 1));
    disk.checkpoint(&manager);
    // A lane that was left is a dirty segment like others.
    manager.allocate_aged(victim.first, &many[..40], 200, &mut runs).unwrap();
    assert_eq!(manager.valid_blocks(), valid + 40);
}

fn aged_small(disk: &mut Disk) -> SegmentManager {
    let manager = disk.open(|config| config.user_floor(1));
    for age in [100, 110] {
        for run in write(&manager, LogType::WarmData, 512, age) {
            (0..50).for_each(|hole| manager.invalidate(run.addr.offset(2 * hole), age).unwrap());
        }
    }
    disk.checkpoint(&manager);
    manager
}
