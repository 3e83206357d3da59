//! When a log takes a segment with holes, which one, and what it keeps.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::error::Error;
use std::sync::Arc;

use common::used;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{Summary, SummaryBlock, TYPE_DATA, TYPE_NODE};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::{
    AllocType, Class, NodeLog, Phase, Run, SegmentConfig, SegmentError, SegmentManager, SummarySource, VictimPolicy,
};

/// Summaries that say of no block that it is a node.
struct Blank;

impl SummarySource for Blank {
    fn read_summary(&self, _: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Ok(SummaryBlock::new_box())
    }
}

/// A manager whose users may have all, and whose logs may fill holes.
fn open(
    segments: u32,
    per_section: u32,
    in_use: &[(u32, RawSitEntry)],
    config: impl FnOnce(SegmentConfig) -> SegmentConfig,
) -> SegmentManager {
    common::open(segments, per_section, in_use, |with| config(with.user_floor(0).summaries(Arc::new(Blank))))
}

fn take(manager: &SegmentManager, log: LogType, count: usize) -> Result<Vec<Run>, SegmentError> {
    let mut runs = Vec::new();
    let summaries = vec![Summary::new(Nid(9), 0, 0); count];
    manager.allocate_as(Class::Checkpoint, log, &summaries, 1, &mut runs).map(|()| runs)
}

/// The segments that runs lie in, one after the other.
fn segments(manager: &SegmentManager, runs: &[Run]) -> Vec<u32> {
    let segment = |addr| manager.geometry().locate(addr).unwrap().0.0;
    let all = runs.iter().flat_map(|run| segment(run.addr)..=segment(run.addr.offset(run.len - 1)));
    let mut all: Vec<u32> = all.collect();
    all.dedup();
    all
}

/// While free sections are few, they are for those who need them.
#[test]
fn holes_come_before_the_last_free_sections() {
    let config = |mut config: SegmentConfig| {
        config.reserved_segments = 2;
        config
    };
    let dirty = [(6, used(LogType::WarmData, 0..500)), (7, used(LogType::WarmData, 0..100))];
    // Four sections are free: no more than the reserve twice.
    let few = open(12, 1, &dirty, config);
    assert!(few.need_ssr());
    let runs = take(&few, LogType::WarmData, 600).unwrap();
    assert_eq!(segments(&few, &runs), [1, 7], "the one with the most room");
    assert_eq!((few.free_segments(), few.log(LogType::WarmData).alloc_type), (4, AllocType::Ssr.number()));
    // When that is full, the next one.
    let runs = take(&few, LogType::WarmData, 330).unwrap();
    assert_eq!(segments(&few, &runs), [7, 6]);
    // With one more there is no need.
    let many = open(13, 1, &dirty, config);
    assert!(!many.need_ssr());
    assert_eq!(segments(&many, &take(&many, LogType::WarmData, 600).unwrap()), [1, 8]);
    // Nor may a log that must not.
    let none = open(12, 1, &dirty, |with| config(with).ssr(false));
    assert_eq!(segments(&none, &take(&none, LogType::WarmData, 600).unwrap()), [1, 8]);
    let runs = take(&few, LogType::WarmNode, 600).unwrap();
    assert_eq!(segments(&few, &runs), [4, 8]);
}

/// What is free in a log's section is of use to that log alone.
#[test]
fn a_log_goes_on_in_its_section_though_free_sections_are_few() {
    let config = |mut config: SegmentConfig| {
        config.reserved_segments = 8;
        config
    };
    let dirty = [(12, used(LogType::WarmData, 0..100)), (14, used(LogType::WarmData, 0..200))];
    let manager = open(20, 2, &dirty, config);
    assert!(manager.need_ssr());
    assert_eq!(segments(&manager, &take(&manager, LogType::WarmData, 600).unwrap()), [2, 3]);
    // Its section is full, and then come the holes.
    assert_eq!(segments(&manager, &take(&manager, LogType::WarmData, 600).unwrap()), [3, 12]);
    // It writes into holes: that the segment behind is free is nothing to it.
    let free = manager.free_segments();
    assert_eq!(segments(&manager, &take(&manager, LogType::WarmData, 300).unwrap()), [12, 14]);
    assert_eq!(manager.free_segments(), free);
}

#[test]
fn holes_are_better_than_nothing() {
    let dirty = [(6, used(LogType::ColdData, (0..512).step_by(2)))];
    let manager = open(7, 1, &dirty, |config| config);
    let runs = take(&manager, LogType::WarmData, 600).unwrap();
    assert_eq!(segments(&manager, &runs), [1, 6], "of another log, too");
    assert_eq!(manager.segment(SegmentNo(6)).unwrap().log, LogType::WarmData);
    // What is left is 168 holes, though there are more blocks up to the end of the segment.
    let valid = manager.valid_blocks();
    assert!(matches!(take(&manager, LogType::WarmData, 200), Err(SegmentError::NoSpace { .. })));
    assert_eq!(manager.valid_blocks(), valid);
    // So it is for a user who may not have the last free section.
    let manager = open(8, 1, &dirty, |config| config.user_floor(1));
    let mut runs = Vec::new();
    assert!(!manager.need_ssr());
    manager.allocate(LogType::WarmData, &[Summary::new(Nid(9), 0, 0); 600], 1, &mut runs).unwrap();
    assert_eq!((segments(&manager, &runs), manager.free_segments()), (vec![1, 6], 1));
    // Data and nodes stay apart.
    let manager = open(7, 1, &dirty, |config| config);
    assert!(matches!(take(&manager, LogType::HotNode, 600), Err(SegmentError::NoSpace { .. })));
}

#[test]
fn a_summary_has_the_type_of_the_log_that_goes_on_with_it() {
    let dirty = [(6, used(LogType::ColdNode, 0..9)), (7, used(LogType::ColdData, 0..9))];
    let manager = open(8, 1, &dirty, |config| config);
    take(&manager, LogType::HotNode, 600).unwrap();
    take(&manager, LogType::HotData, 600).unwrap();
    assert_eq!(
        (manager.log(LogType::HotNode).segment, manager.log(LogType::HotData).segment),
        (SegmentNo(6), SegmentNo(7))
    );
    assert_eq!(manager.log(LogType::HotNode).summary.entry_type, TYPE_NODE);
    assert_eq!(manager.log(LogType::HotData).summary.entry_type, TYPE_DATA);
}

/// A request that finds too little gives all back that it claimed, free segments as free ones and dirty ones as dirty.
#[test]
fn what_was_claimed_for_too_large_a_request_is_given_back() {
    let dirty = [(6, used(LogType::WarmData, 0..500)), (7, used(LogType::WarmData, 0..100))];
    let manager = open(10, 1, &dirty, |config| config);
    let before = (manager.free_segments(), manager.prefree_segments(), manager.valid_blocks());
    assert!(matches!(take(&manager, LogType::WarmData, 2000), Err(SegmentError::NoSpace { free: 2, prefree: 0, .. })));
    assert_eq!((manager.free_segments(), manager.prefree_segments(), manager.valid_blocks()), before);
    let phases = [6, 7, 8, 9].map(|number| manager.segment(SegmentNo(number)).unwrap().phase);
    assert_eq!(phases, [Phase::Dirty, Phase::Dirty, Phase::Free, Phase::Free]);
    // All of it is there for others, and a cleaner.
    let victim = manager.choose_victim(VictimPolicy::Greedy, 5).unwrap();
    assert_eq!((victim.first, victim.valid), (SegmentNo(7), 100));
    manager.release_victim(&victim).unwrap();
    assert_eq!(segments(&manager, &take(&manager, LogType::WarmData, 1900).unwrap()), [1, 8, 9, 7]);
    assert_eq!(manager.free_segments(), 0);
}

/// A lane's request claims the segment behind the lane's own, and is too large: the section can be cleaned then.
#[test]
fn a_segment_that_was_claimed_and_given_back_does_not_hold_its_section() {
    let manager = open(14, 2, &[], |config| config.lanes(2));
    let on_lane = |count| {
        let summaries = vec![Summary::new(Nid(9), 0, 0); count];
        manager.allocate_on(1, Class::User, LogType::WarmData, &summaries, 1, &mut Vec::new())
    };
    on_lane(5).unwrap();
    assert_eq!(manager.segment(SegmentNo(12)).unwrap().valid, 5);
    assert!(matches!(on_lane(3000), Err(SegmentError::NoSpace { .. })));
    let phases = [12, 13].map(|number| manager.segment(SegmentNo(number)).unwrap().phase);
    assert_eq!(phases, [Phase::Dirty, Phase::Free]);
    let victim = manager.choose_victim(VictimPolicy::Greedy, 5).unwrap();
    assert_eq!((victim.first, victim.valid), (SegmentNo(12), 5));
}

/// What was taken out of a segment and is not durable yet is no room.
#[test]
fn the_most_room_is_counted_by_what_may_be_written() {
    let dirty = [(6, used(LogType::WarmData, 0..300)), (7, used(LogType::WarmData, 0..200))];
    let manager = open(8, 1, &dirty, |config| config);
    let addr = |segment, at| manager.geometry().block_at(SegmentNo(segment), at);
    manager.invalidate_run(Run { addr: addr(6, 0), len: 299 }, 1).unwrap();
    assert_eq!(segments(&manager, &take(&manager, LogType::WarmData, 600).unwrap()), [1, 7]);
    // With the checkpoint it is, also if somebody has looked for holes before.
    let manager = open(8, 1, &dirty, |config| config);
    manager.invalidate_run(Run { addr: addr(6, 0), len: 299 }, 1).unwrap();
    assert!(manager.need_ssr() && manager.mean_hole(LogType::WarmData) > 0.0);
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
    assert_eq!(segments(&manager, &take(&manager, LogType::WarmData, 600).unwrap()), [1, 6]);
    assert_eq!(manager.log(LogType::WarmData).next_offset, 600 - 512);
}

/// A node's footer names the block that its log hands out next: also across the end of a segment.
#[test]
fn the_next_block_is_told_across_segments() {
    for (segments, in_use) in [(9, vec![]), (7, vec![(6, used(LogType::ColdNode, [0, 1, 5]))])] {
        let manager = open(segments, 1, &in_use, |config| config);
        let mut next: Option<BlockAddr> = None;
        for _ in 0..520 {
            let (addr, then) = manager.allocate_node(NodeLog::Hot, Summary::new(Nid(9), 0, 0), 1).unwrap();
            assert!(next.is_none_or(|next| next == addr));
            assert_eq!(then, manager.next_block(LogType::HotNode));
            next = Some(then);
        }
        // The end of the first one is reached with a block left behind it.
        assert_ne!(manager.log(LogType::HotNode).segment, SegmentNo(3));
    }
}
