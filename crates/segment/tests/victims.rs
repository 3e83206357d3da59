//! Marks of victims.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Disk, geometry, open, used};
use f2fs_format::summary::Summary;
use f2fs_format::{LogType, Nid, SegmentNo};
use f2fs_segment::{AgeThreshold, Phase, Run, SegmentManager, VictimPolicy};

fn write(manager: &SegmentManager, count: u32) -> Vec<Run> {
    let mut runs = Vec::new();
    let summaries: Vec<Summary> = (0..count).map(|n| Summary::new(Nid(n), 1, (n % 900) as u16)).collect();
    manager.allocate(LogType::WarmData, &summaries, 5, &mut runs).unwrap();
    runs
}

/// A section is chosen when one of its segments is free. Later it is used again, and is a victim like others.
#[test]
fn a_segment_that_was_free_when_its_section_was_chosen_loses_its_mark() {
    let mut disk = Disk::new(geometry(60, 2));
    let manager = disk.open(|config| config.user_floor(1));
    write(&manager, 4 * 512);
    let segments = || (0..60).map(SegmentNo);
    let info = |segment| manager.segment(segment).unwrap();
    let first = segments()
        .find(|first| first.0 % 2 == 0 && (0..2).all(|at| info(SegmentNo(first.0 + at)).valid == 512))
        .unwrap();
    let free = |segment, offsets: std::ops::Range<u32>| {
        offsets.for_each(|at| manager.invalidate(manager.geometry().block_at(segment, at), 6).unwrap());
    };
    let second = SegmentNo(first.0 + 1);
    free(second, 0..512);
    free(first, 0..500);
    disk.checkpoint(&manager);
    assert_eq!((info(first).phase, info(second).phase), (Phase::Dirty, Phase::Free));
    let victim = manager.choose_victim(VictimPolicy::Greedy, 7).unwrap();
    assert_eq!(victim.first, first);
    free(first, 500..512);
    disk.checkpoint(&manager);
    assert_eq!((info(first).phase, info(second).phase), (Phase::Free, Phase::Free));
    // Until it is in use again.
    for _ in 0..200 {
        let runs = write(&manager, 512);
        if info(second).phase != Phase::Free {
            break;
        }
        runs.into_iter().for_each(|run| manager.invalidate_run(run, 8).unwrap());
        disk.checkpoint(&manager);
    }
    assert_ne!(info(second).phase, Phase::Free);
    assert!(!info(second).victim, "its mark is left");
}

#[test]
fn a_victim_is_found_among_many_segments() {
    let in_use = [
        (7, used(LogType::WarmData, 0..300)),
        (300, used(LogType::ColdData, 0..512)),
        (599, used(LogType::HotData, 0..200)),
    ];
    let manager = open(600, 1, &in_use, |config| config);
    let victim = manager.choose_victim(VictimPolicy::Greedy, 5).unwrap();
    assert_eq!((victim.section, victim.first, victim.segments, victim.valid), (599, SegmentNo(599), 1, 200));
    // As blocks are freed, others become the best.
    manager.release_victim(&victim).unwrap();
    manager.invalidate_run(Run { addr: manager.geometry().block_at(SegmentNo(300), 0), len: 400 }, 6).unwrap();
    let order: Vec<u32> =
        std::iter::from_fn(|| manager.choose_victim(VictimPolicy::Greedy, 5)).map(|victim| victim.section).collect();
    assert_eq!(order, [300, 599, 7]);
    assert!([7, 300, 599].iter().all(|number| manager.segment(SegmentNo(*number)).unwrap().victim));
}

/// All segments of a section are marked, and released again.
#[test]
fn a_victim_is_a_whole_section() {
    let in_use = [
        (12, used(LogType::WarmData, 0..300)),
        (14, used(LogType::WarmData, 0..512)),
        (15, used(LogType::WarmData, 0..1)),
    ];
    let manager = open(20, 2, &in_use, |config| config);
    let victim = manager.choose_victim(VictimPolicy::Greedy, 5).unwrap();
    assert_eq!((victim.section, victim.first, victim.segments, victim.valid), (6, SegmentNo(12), 2, 300));
    assert_eq!(victim.segments().collect::<Vec<_>>(), [SegmentNo(12), SegmentNo(13)]);
    let marked = || (0..20).filter(|number| manager.segment(SegmentNo(*number)).unwrap().victim).collect::<Vec<u32>>();
    assert_eq!(marked(), [12, 13]);
    let second = manager.choose_victim(VictimPolicy::Greedy, 5).unwrap();
    assert_eq!((second.section, second.valid, marked()), (7, 513, vec![12, 13, 14, 15]));
    assert_eq!(manager.choose_victim(VictimPolicy::Greedy, 5), None);
    manager.release_victim(&victim).unwrap();
    assert_eq!(marked(), [14, 15]);
    assert_eq!(manager.choose_victim(VictimPolicy::CostBenefit, 5).unwrap().section, 6);
}

/// The age of a section is the mean of its blocks, not of its segments.
#[test]
fn ages_count_by_blocks() {
    let aged = |valid: u32, mtime: u64| {
        let mut entry = used(LogType::WarmData, 0..valid);
        entry.mtime.set(mtime);
        entry
    };
    // As full as each other. In the first, few blocks are very old.
    let in_use = [(12, aged(20, 10)), (13, aged(480, 9000)), (14, aged(250, 5000)), (15, aged(250, 5000))];
    let manager = open(20, 2, &in_use, |config| config);
    let victim = manager.choose_victim(VictimPolicy::CostBenefit, 10_000).unwrap();
    assert_eq!((victim.section, victim.mtime), (7, 5000));
    let victim = manager.choose_victim(VictimPolicy::CostBenefit, 10_000).unwrap();
    assert_eq!((victim.section, victim.mtime), (6, (20 * 10 + 480 * 9000) / 500));
}

/// Of two sections, one nearly empty and new, one nearly full and old, the weight of age decides.
#[test]
fn the_weight_of_age_decides_between_the_old_and_the_empty() {
    for (weight, oldest) in [(0, false), (100, true)] {
        let mut disk = Disk::new(geometry(60, 1));
        let manager = disk.open(|config| config.user_floor(1));
        let write_at = |now: u64| {
            let mut runs = Vec::new();
            let summaries: Vec<Summary> = (0..512).map(|n| Summary::new(Nid(9), 1, n)).collect();
            manager.allocate(LogType::WarmData, &summaries, now, &mut runs).unwrap();
            let [run] = runs[..] else { panic!("{runs:?}") };
            manager.geometry().locate(run.addr).unwrap().0
        };
        let (old, new) = (write_at(1000), write_at(100_000));
        write_at(100_000);
        for (segment, valid, now) in [(old, 450, 1000), (new, 30, 100_000)] {
            (valid..512).for_each(|at| manager.invalidate(manager.geometry().block_at(segment, at), now).unwrap());
        }
        disk.checkpoint(&manager);
        let rule = AgeThreshold::default().threshold(0).ratio(100).age_weight(weight);
        let victim = manager.choose_victim(VictimPolicy::AgeThreshold(rule), 200_000).unwrap();
        assert_eq!(victim.first, if oldest { old } else { new }, "{weight}");
    }
}
