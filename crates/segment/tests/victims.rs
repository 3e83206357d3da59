//! Marks of victims.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Disk, geometry};
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
