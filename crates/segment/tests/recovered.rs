//! Blocks that a recovery holds and adopts, and the logs that it moves out of their way.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use std::error::Error;
use std::sync::Arc;

use common::{open, used};
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{Summary, SummaryBlock, TYPE_DATA, TYPE_NODE};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::cost::CostModel;
use f2fs_segment::plan::{Planner, Strategy};
use f2fs_segment::{Class, Phase, SegmentConfig, SegmentError, SegmentManager, SummarySource, VictimPolicy};

/// Summaries that are of another type than they should be.
struct Ssa;

impl SummarySource for Ssa {
    fn read_summary(&self, _: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        let mut block = SummaryBlock::new_box();
        block.entry_type = TYPE_NODE;
        Ok(block)
    }
}

fn with_summaries(config: SegmentConfig) -> SegmentConfig {
    config.user_floor(0).summaries(Arc::new(Ssa))
}

fn at(manager: &SegmentManager, segment: u32, offset: u32) -> BlockAddr {
    manager.geometry().block_at(SegmentNo(segment), offset)
}

fn phase(manager: &SegmentManager, segment: u32) -> Phase {
    manager.segment(SegmentNo(segment)).unwrap().phase
}

fn counts(manager: &SegmentManager) -> (u32, u32, u64) {
    (manager.free_segments(), manager.prefree_segments(), manager.valid_blocks())
}

fn checkpoint(manager: &SegmentManager) {
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
}

fn summary() -> Summary {
    Summary::new(Nid(9), 0, 3)
}

#[test]
fn what_is_held_is_free_again_with_the_next_checkpoint() {
    let manager = open(12, 1, &[(6, used(LogType::WarmData, 0..10))], |config| config);
    for _ in 0..2 {
        manager.hold(at(&manager, 6, 20)).unwrap();
        manager.hold(at(&manager, 6, 3)).unwrap();
        manager.hold(at(&manager, 9, 5)).unwrap();
        manager.hold(at(&manager, 9, 6)).unwrap();
    }
    let [dirty, free] = [6, 9].map(|segment| manager.segment(SegmentNo(segment)).unwrap());
    assert_eq!((dirty.phase, dirty.valid, dirty.taken, dirty.taken_map.contains(20)), (Phase::Dirty, 10, 11, true));
    assert_eq!((free.phase, free.valid, free.taken, free.taken_map.contains(5)), (Phase::Prefree, 0, 2, true));
    assert_eq!(counts(&manager), (4, 1, 10));
    checkpoint(&manager);
    let [dirty, free] = [6, 9].map(|segment| manager.segment(SegmentNo(segment)).unwrap());
    assert_eq!((dirty.taken_map, dirty.taken), (dirty.valid_map, 10));
    assert_eq!((free.phase, free.taken), (Phase::Free, 0));
    assert_eq!(counts(&manager), (5, 0, 10));
}

/// Also one that nodes were in once: it is empty, and gets data now.
#[test]
fn a_block_is_adopted_in_a_segment_that_was_free() {
    let mut idle = RawSitEntry::ZERO;
    idle.set_blocks(LogType::ColdNode, 0);
    let manager = open(12, 1, &[(9, idle)], |config| config);
    let addr = at(&manager, 9, 7);
    manager.hold(addr).unwrap();
    assert_eq!(manager.choose_victim(VictimPolicy::Greedy, 5), None);
    manager.adopt(addr, summary(), 77).unwrap();
    let info = manager.segment(SegmentNo(9)).unwrap();
    assert_eq!((info.phase, info.log, info.valid, info.taken, info.mtime), (Phase::Dirty, LogType::WarmData, 1, 1, 77));
    assert!(manager.is_valid(addr));
    assert_eq!(counts(&manager), (5, 0, 1));
    let flush = manager.begin_checkpoint(0).unwrap();
    let [(segment, block)] = &flush.summaries[..] else { panic!("{:?}", flush.summaries.len()) };
    assert_eq!((segment.0, block.entry_type, block.entries[7]), (9, TYPE_DATA, summary()));
    assert_eq!((flush.sit_blocks[0].block.entries[9].valid_blocks(), flush.valid_blocks), (1, 1));
    // A cleaner finds it.
    assert_eq!(manager.choose_victim(VictimPolicy::Greedy, 80).unwrap().first, SegmentNo(9));
}

#[test]
fn a_block_is_adopted_among_data() {
    let manager = open(12, 1, &[(6, used(LogType::HotData, 0..511))], with_summaries);
    manager.adopt(at(&manager, 6, 511), summary(), 5).unwrap();
    let info = manager.segment(SegmentNo(6)).unwrap();
    assert_eq!((info.phase, info.log, info.valid, info.taken), (Phase::Full, LogType::HotData, 512, 512));
    assert_eq!(counts(&manager), (5, 0, 512));
    let block = manager.summary(SegmentNo(6)).unwrap();
    assert_eq!((block.entry_type, block.entries[511]), (TYPE_DATA, summary()));
    assert!(matches!(manager.adopt(at(&manager, 6, 511), summary(), 5), Err(SegmentError::InUse { offset: 511, .. })));
    assert_eq!(counts(&manager), (5, 0, 512));
}

#[test]
fn no_data_is_adopted_among_nodes() {
    let in_use = [(6, used(LogType::ColdNode, [1])), (7, used(LogType::WarmNode, [1]))];
    let manager = open(12, 1, &in_use, with_summaries);
    let refused = |segment, offset| {
        let error = manager.adopt(at(&manager, segment, offset), summary(), 5).unwrap_err();
        assert!(matches!(error, SegmentError::LogType { log: LogType::WarmData, .. }), "{error}");
    };
    refused(6, 2);
    assert_eq!((phase(&manager, 6), manager.valid_blocks()), (Phase::Dirty, 2));
    // To the checkpoint that was opened its node is still valid.
    manager.invalidate(at(&manager, 7, 1), 5).unwrap();
    refused(7, 2);
    assert_eq!((phase(&manager, 7), counts(&manager)), (Phase::Prefree, (4, 1, 1)));
}

#[test]
fn without_summaries_only_free_segments_can_be_adopted_from() {
    let manager = open(12, 1, &[(6, used(LogType::WarmData, [1]))], |config| config);
    let error = manager.adopt(at(&manager, 6, 2), summary(), 5).unwrap_err();
    assert!(matches!(error, SegmentError::Config { .. }), "{error}");
    assert_eq!(manager.valid_blocks(), 1);
}

#[test]
fn logs_leave_what_is_held_for_segments_where_nothing_is() {
    let in_use = [(6, used(LogType::WarmData, 0..100)), (7, used(LogType::WarmData, 0..200))];
    let manager = open(8, 1, &in_use, with_summaries);
    manager.hold(at(&manager, 1, 3)).unwrap();
    // The one that has the most room, and is no better.
    manager.hold(at(&manager, 6, 300)).unwrap();
    let others = |manager: &SegmentManager| {
        LogType::ALL.into_iter().filter(|log| *log != LogType::WarmData).map(|log| manager.next_block(log)).collect()
    };
    let before: Vec<BlockAddr> = others(&manager);
    manager.leave_held().unwrap();
    assert_eq!(manager.next_block(LogType::WarmData), at(&manager, 7, 200));
    let after: Vec<BlockAddr> = others(&manager);
    assert_eq!(after, before, "nothing is held where they stand");
    assert_eq!([1, 6, 7].map(|segment| phase(&manager, segment)), [Phase::Prefree, Phase::Dirty, Phase::Current]);
    assert_eq!(counts(&manager), (0, 1, 300));
    // Nobody stands in the segment that was passed over.
    assert_eq!(manager.choose_victim(VictimPolicy::Greedy, 5).unwrap().first, SegmentNo(6));
    checkpoint(&manager);
    assert_eq!(counts(&manager), (1, 0, 300));
    assert_eq!(manager.segment(SegmentNo(6)).unwrap().taken, 100);
}

#[test]
fn a_log_that_finds_nothing_better_says_so_and_keeps_nothing() {
    let manager = open(7, 1, &[(6, used(LogType::WarmData, 0..100))], with_summaries);
    manager.hold(at(&manager, 1, 3)).unwrap();
    manager.hold(at(&manager, 6, 300)).unwrap();
    let error = manager.leave_held().unwrap_err();
    assert!(matches!(error, SegmentError::NoSpace { log: LogType::WarmData, .. }), "{error}");
    assert_eq!([1, 6].map(|segment| phase(&manager, segment)), [Phase::Current, Phase::Dirty]);
    // Without anything held, it stays.
    let manager = open(7, 1, &[(6, used(LogType::WarmData, 0..100))], with_summaries);
    manager.hold(at(&manager, 6, 300)).unwrap();
    manager.leave_held().unwrap();
    assert_eq!(manager.next_block(LogType::WarmData), at(&manager, 1, 0));
}

/// The block was written after the checkpoint that was opened: nothing in its segment is rewritten in its place.
#[test]
fn a_segment_with_an_adopted_block_counts_as_written_to() {
    for adopts in [false, true] {
        let runs_of_two = (0..512).filter(|at| at % 6 < 2);
        let manager = open(7, 1, &[(6, used(LogType::WarmData, runs_of_two))], with_summaries);
        if adopts {
            manager.adopt(at(&manager, 6, 500), summary(), 5).unwrap();
        }
        let planner = Planner::new(CostModel::nvme(), Strategy::PartialAlways, 1.0);
        let (mut runs, mut rewrites) = (Vec::new(), Vec::new());
        for count in [511, 40] {
            let summaries = vec![summary(); count];
            let (class, log) = (Class::User, LogType::WarmData);
            manager.allocate_selective(class, log, &summaries, 6, &planner, &mut runs, &mut rewrites).unwrap();
        }
        assert_eq!(manager.log(LogType::WarmData).segment, SegmentNo(6));
        assert_eq!(rewrites.is_empty(), adopts, "{rewrites:?}");
    }
}

/// A log that was not moved would write over what is held: it does not, and nothing is lost of what it claimed.
#[test]
fn a_log_does_not_write_over_what_is_held() {
    let manager = open(12, 1, &[], |config| config.user_floor(0));
    manager.hold(at(&manager, 1, 10)).unwrap();
    for count in [5, 600] {
        let mut runs = Vec::new();
        let error = manager.allocate(LogType::WarmData, &vec![summary(); count], 1, &mut runs).unwrap_err();
        assert!(matches!(error, SegmentError::InUse { segment: SegmentNo(1), offset: 10, .. }), "{error}");
        assert_eq!((runs.len(), counts(&manager)), (0, (6, 0, 0)));
    }
    manager.leave_held().unwrap();
    manager.allocate(LogType::WarmData, &[summary(); 5], 1, &mut Vec::new()).unwrap();
}
