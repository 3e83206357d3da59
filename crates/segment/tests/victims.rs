//! Marks of victims.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{Disk, geometry};
use f2fs_format::summary::Summary;
use f2fs_format::{LogType, Nid, SegmentNo};
use f2fs_segment::{Phase, Run, SegmentManager, VictimPolicy};

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
