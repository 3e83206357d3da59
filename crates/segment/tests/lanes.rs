//! Lanes: which segments they take, when they are closed and what becomes of their segments, and when they open again.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Disk, empty, geometry};
use f2fs_format::feature::Features;
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::{Class, NodeLog, Phase, Run, SegmentConfig, SegmentError, SegmentManager};

fn summaries(count: u32) -> Vec<Summary> {
    (0..count).map(|at| Summary::new(Nid(100 + at), 0, 1)).collect()
}

/// Takes blocks for warm data from a lane.
fn on(manager: &SegmentManager, lane: usize, count: u32) -> Vec<Run> {
    let mut runs = Vec::new();
    manager.allocate_on(lane, Class::User, LogType::WarmData, &summaries(count), 1, &mut runs).unwrap();
    assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), count);
    runs
}

fn segment(manager: &SegmentManager, addr: BlockAddr) -> SegmentNo {
    manager.geometry().locate(addr).unwrap().0
}

fn lane_segment(manager: &SegmentManager, lane: usize) -> SegmentNo {
    segment(manager, on(manager, lane, 5)[0].addr)
}

#[test]
fn each_lane_has_a_segment_of_its_own() {
    let manager = empty(&geometry(30, 1), |config| config.lanes(3));
    let [zero, one, two] = [0, 1, 2].map(|lane| lane_segment(&manager, lane));
    assert_eq!(zero, manager.log(LogType::WarmData).segment);
    assert!(zero != one && one != two && two != zero, "{zero} {one} {two}");
    // Numbers go round.
    assert_eq!([3, 4, 5, 3 << 40].map(|lane| lane_segment(&manager, lane)), [zero, one, two, zero]);
    for lane in [one, two] {
        let info = manager.segment(lane).unwrap();
        assert_eq!((info.phase, info.log, info.valid), (Phase::Current, LogType::WarmData, 10));
    }
    // Each log has its own.
    let mut runs = Vec::new();
    manager.allocate_on(1, Class::User, LogType::HotData, &summaries(3), 1, &mut runs).unwrap();
    assert!(![zero, one, two].contains(&segment(&manager, runs[0].addr)));
    // One lane is the log itself.
    let manager = empty(&geometry(30, 1), |config| config.lanes(1));
    assert_eq!(lane_segment(&manager, 7), manager.log(LogType::WarmData).segment);
}

#[test]
fn nodes_on_lanes_are_told_the_next_block_of_their_lane() {
    let manager = empty(&geometry(30, 1), |config| config.lanes(2));
    let node = |log| manager.allocate_node_on(1, log, Summary::new(Nid(9), 0, 0), 1).unwrap();
    let log = manager.log(LogType::HotNode).segment;
    let (first, next) = node(NodeLog::Hot);
    assert_ne!(segment(&manager, first), log);
    assert_eq!(next, first.offset(1));
    assert_eq!(node(NodeLog::Hot).0, next);
    // Roll-forward follows the warm-node log: it has no other lanes.
    let expected = manager.next_block(LogType::WarmNode);
    assert_eq!(node(NodeLog::Warm), (expected, expected.offset(1)));
}

#[test]
fn summaries_of_lanes_are_found_and_go_to_the_checkpoint() {
    let mut disk = Disk::new(geometry(30, 1));
    let manager = disk.open(|config| config.lanes(2));
    let lane = lane_segment(&manager, 1);
    assert_eq!(manager.summary(lane).unwrap().entries[..5], summaries(5)[..]);
    assert!(manager.summary(SegmentNo(29)).is_none());
    disk.checkpoint(&manager);
    assert_eq!(disk.ssa.get(lane).entries[..5], summaries(5)[..]);
    let info = disk.open(|config| config).segment(lane).unwrap();
    assert_eq!((info.phase, info.log, info.valid), (Phase::Dirty, LogType::WarmData, 5));
}

/// To the format a segment is free when nothing is valid in it, whoever writes there next.
#[test]
fn a_lane_without_valid_blocks_counts_as_free_in_the_checkpoint() {
    let manager = empty(&geometry(30, 1), |config| config.lanes(3));
    let runs = on(&manager, 1, 5);
    on(&manager, 2, 5);
    assert_eq!(manager.free_segments(), 30 - 6 - 2);
    assert_eq!(manager.begin_checkpoint(6).unwrap().free_segments, 30 - 6 - 2);
    manager.invalidate_run(runs[0], 2).unwrap();
    assert_eq!(manager.begin_checkpoint(6).unwrap().free_segments, 30 - 6 - 1);
    assert_eq!(manager.free_segments(), 30 - 6 - 2);
}

/// A request that opens a lane and then finds too little for it gets the lane's segment by way of the log.
#[test]
fn a_lane_that_was_not_used_is_as_free_as_before() {
    // Two segments are free.
    let manager = empty(&geometry(8, 1), |config| config.lanes(2).user_floor(0));
    let runs = on(&manager, 1, 1100);
    assert_eq!(segment(&manager, runs[0].addr), SegmentNo(1), "the log's own comes first: {runs:?}");
    assert_eq!((manager.free_segments(), manager.prefree_segments()), (0, 0));
    // What nothing is enough for leaves nothing behind.
    let manager = empty(&geometry(8, 1), |config| config.lanes(2).user_floor(0));
    let error =
        manager.allocate_on(1, Class::User, LogType::WarmData, &summaries(1600), 1, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, SegmentError::NoSpace { free: 2, prefree: 0, floor: 0, .. }), "{error}");
    assert_eq!((manager.free_segments(), manager.prefree_segments()), (2, 0));
    assert!([6, 7].iter().all(|number| manager.segment(SegmentNo(*number)).unwrap().phase == Phase::Free));
}

#[test]
fn when_space_is_short_the_room_of_lanes_is_had_as_holes() {
    let disk = Disk::new(geometry(8, 1));
    let manager = disk.open(|config| config.lanes(2).user_floor(0));
    let lane = lane_segment(&manager, 1);
    // 512 in the log's segment, 512 in the free one, and the rest in the lane's.
    let mut runs = Vec::new();
    manager.allocate(LogType::WarmData, &summaries(1100), 2, &mut runs).unwrap();
    assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), 1100);
    let in_lane: Vec<&Run> = runs.iter().filter(|run| segment(&manager, run.addr) == lane).collect();
    assert!(!in_lane.is_empty(), "{runs:?}");
    assert!(in_lane.iter().all(|run| manager.geometry().locate(run.addr).unwrap().1 >= 5));
    assert_eq!(manager.summary(lane).unwrap().entries[..5], summaries(5)[..], "whose blocks they are is known");

    // The same for a node.
    let manager = disk.open(|config| config.lanes(2).user_floor(0));
    let node = |lane| manager.allocate_node_on(lane, NodeLog::Hot, Summary::new(Nid(9), 0, 0), 1);
    let lane = segment(&manager, node(1).unwrap().0);
    manager.allocate_as(Class::Checkpoint, LogType::HotData, &summaries(600), 1, &mut Vec::new()).unwrap();
    assert_eq!(manager.free_segments(), 0);
    let taken: Vec<SegmentNo> = (0..700).map(|_| segment(&manager, node(0).unwrap().0)).collect();
    assert_eq!(taken.iter().filter(|segment| **segment == lane).count(), 700 - 512);
}

#[test]
fn without_lanes_that_could_be_closed_there_is_no_space() {
    let manager = empty(&geometry(8, 1), |config| config.lanes(2).user_floor(0));
    let lane = lane_segment(&manager, 1);
    let too_many = |manager: &SegmentManager| manager.allocate(LogType::WarmData, &summaries(1100), 2, &mut Vec::new());
    assert!(matches!(too_many(&manager), Err(SegmentError::NoSpace { .. })), "no holes without summaries");
    let info = manager.segment(lane).unwrap();
    assert_eq!((info.phase, info.valid), (Phase::Dirty, 5));
    assert!(matches!(too_many(&manager), Err(SegmentError::NoSpace { .. })));
    assert_eq!(manager.free_segments(), 1);
}

fn zones(sections: u32, lanes: usize) -> SegmentManager {
    let mut config = SegmentConfig::embedded(sections * 2, 2).unwrap();
    config.geometry.features = Features::BLKZONED;
    SegmentManager::empty(config.lanes(lanes).user_floor(0)).unwrap()
}

fn leave(manager: &SegmentManager, segment_of_lane: SegmentNo) {
    let moved = manager.leave_zones(|addr| segment(manager, addr) == segment_of_lane).unwrap();
    assert_eq!(moved, 1);
}

fn checkpoint(manager: &SegmentManager) {
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
}

/// The device counts the zone of a closed lane as active until a checkpoint finishes it.
#[test]
fn a_lane_that_left_a_zone_opens_after_the_next_checkpoint() {
    let manager = zones(20, 2);
    let log = manager.log(LogType::WarmData).segment;
    let lane = lane_segment(&manager, 1);
    assert_ne!(lane, log);
    leave(&manager, lane);
    assert_eq!(manager.segment(lane).unwrap().phase, Phase::Dirty);
    assert_eq!(lane_segment(&manager, 1), log);
    checkpoint(&manager);
    let lane = lane_segment(&manager, 1);
    assert_ne!(lane, log);

    // A checkpoint that had begun by then does not know of it.
    manager.begin_checkpoint(6).unwrap();
    leave(&manager, lane);
    manager.end_checkpoint();
    assert_eq!(lane_segment(&manager, 1), log);
    // Nor does one that fails.
    manager.begin_checkpoint(6).unwrap();
    assert_eq!(lane_segment(&manager, 1), log);
    checkpoint(&manager);
    assert_ne!(lane_segment(&manager, 1), log);
}

#[test]
fn without_zones_a_lane_opens_again_at_once() {
    let manager = empty(&geometry(30, 1), |config| config.lanes(2));
    let lane = lane_segment(&manager, 1);
    leave(&manager, lane);
    let again = lane_segment(&manager, 1);
    assert!(again != lane && again != manager.log(LogType::WarmData).segment);
}

/// As the one before: when space is short, lanes leave zones that were begun.
#[test]
fn lanes_that_are_closed_for_space_leave_their_zones() {
    for written in [5, 512] {
        // Four sections are free.
        let manager = zones(10, 2);
        let log = manager.log(LogType::WarmData).segment;
        let run = on(&manager, 1, written)[0];
        let lane = segment(&manager, run.addr);
        let cold = |count| {
            let mut runs = Vec::new();
            manager.allocate_as(Class::Checkpoint, LogType::ColdData, &summaries(count), 1, &mut runs).map(|()| runs)
        };
        let taken = cold(3 * 1024).unwrap();
        // No run goes from one zone into the next, which is written by another request.
        assert_eq!(taken.iter().map(|run| run.len).collect::<Vec<u32>>(), [1024; 3]);
        for run in taken {
            manager.invalidate_run(run, 1).unwrap();
        }
        manager.begin_checkpoint(6).unwrap();
        assert!(matches!(cold(1024), Err(SegmentError::NoSpace { .. })));
        let next = SegmentNo(lane.0 + written / 512);
        assert_ne!(manager.segment(next).unwrap().phase, Phase::Current, "the lane is closed");
        manager.end_checkpoint();
        assert!(manager.free_sections() > 0);
        assert_eq!(lane_segment(&manager, 1), log, "{written} blocks: no zone is begun until the next checkpoint");
        checkpoint(&manager);
        assert_ne!(lane_segment(&manager, 1), log);
    }
}

/// A zone in which nothing was written is not active.
#[test]
fn a_lane_that_was_not_used_leaves_no_zone() {
    let manager = zones(8, 2);
    let log = manager.log(LogType::WarmData).segment;
    let too_many = manager.allocate_on(1, Class::User, LogType::WarmData, &summaries(3100), 1, &mut Vec::new());
    assert!(matches!(too_many, Err(SegmentError::NoSpace { .. })));
    assert_eq!((manager.free_sections(), manager.prefree_segments()), (2, 0));
    assert_ne!(lane_segment(&manager, 1), log);
}

#[test]
fn nodes_aside_stand_in_segments_of_their_own() {
    let manager = empty(&geometry(30, 1), |config| config);
    let mut runs = Vec::new();
    let mut own = Vec::new();
    for log in NodeLog::ALL {
        let next = manager.next_block(log.log());
        let before = runs.len();
        assert!(manager.allocate_aside(log, &summaries(3), 1, &mut runs).unwrap());
        assert!(manager.allocate_aside(log, &summaries(3), 1, &mut runs).unwrap());
        assert_eq!(runs[before..].iter().map(|run| run.len).sum::<u32>(), 6);
        assert_eq!(manager.next_block(log.log()), next, "the log itself stays where it is");
        let info = manager.segment(segment(&manager, runs[before].addr)).unwrap();
        assert_eq!((info.phase, info.log, info.valid), (Phase::Current, log.log(), 6));
        own.push(info.segment);
    }
    assert!(own[0] != own[1] && own[1] != own[2] && own[2] != own[0], "{own:?}");
}

#[test]
fn nodes_aside_are_left_to_the_checkpoint_when_room_is_short() {
    let mut runs = Vec::new();
    let forbidden = empty(&geometry(30, 1), |config| config.aside(false));
    assert!(!forbidden.allocate_aside(NodeLog::Warm, &summaries(3), 1, &mut runs).unwrap());

    let manager = empty(&geometry(12, 1), |config| config.user_floor(2));
    // More than there is above what users leave free.
    assert!(!manager.allocate_aside(NodeLog::Warm, &summaries(4 * 512), 1, &mut runs).unwrap());
    assert!(runs.is_empty() && manager.valid_blocks() == 0);
    assert!(manager.allocate_aside(NodeLog::Warm, &summaries(3), 1, &mut runs).unwrap());
    // The lane has room, but logs write into holes by now.
    manager.set_pressure(6 * 512, 0);
    assert!(manager.need_ssr());
    assert!(!manager.allocate_aside(NodeLog::Warm, &summaries(3), 1, &mut runs).unwrap());
    assert_eq!((runs.len(), manager.valid_blocks()), (1, 3));
    manager.set_pressure(0, 0);
    assert!(manager.allocate_aside(NodeLog::Warm, &summaries(3), 1, &mut runs).unwrap());
    // Users would find no space.
    let floor = empty(&geometry(12, 1), |config| config.user_floor(6));
    assert!(!floor.allocate_aside(NodeLog::Warm, &summaries(3), 1, &mut runs).unwrap());
}
