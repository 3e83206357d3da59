//! Selective partial cleaning on a manager: the runs that are rewritten, those that are moved, and the state that a
//! crash would find.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{Disk, geometry};
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::cost::{Card, CostModel, Interior};
use f2fs_segment::plan::{Gap, Layout, Planner, Strategy};
use f2fs_segment::{Class, Phase, Run, SegmentManager};

fn blocks(runs: &[Run]) -> Vec<BlockAddr> {
    runs.iter().flat_map(|run| (0..run.len).map(|at| run.addr.offset(at))).collect()
}

fn take(manager: &SegmentManager, log: LogType, count: usize) -> Vec<BlockAddr> {
    let mut runs = Vec::new();
    manager.allocate(log, &vec![Summary::new(Nid(7), 0, 1); count], 1, &mut runs).unwrap();
    blocks(&runs)
}

/// A volume without free segments for users, whose warm data has a hole of four blocks in every six.
fn aged() -> (Disk, SegmentManager) {
    let mut disk = Disk::new(geometry(16, 1));
    let manager = disk.open(|config| config.user_floor(2));
    let warm = take(&manager, LogType::WarmData, 512 * 8 + 100);
    for (index, addr) in warm.iter().enumerate() {
        if index % 6 < 4 {
            manager.invalidate(*addr, 2).unwrap();
        }
    }
    disk.checkpoint(&manager);
    (disk, manager)
}

fn planner(strategy: Strategy) -> Planner {
    Planner::new(CostModel::card(Card::A, Interior::Affine), strategy, 5.0)
}

fn selective(manager: &SegmentManager, strategy: Strategy, count: usize) -> (Vec<Run>, Vec<Run>) {
    let (mut runs, mut rewrites) = (Vec::new(), Vec::new());
    let summaries = vec![Summary::new(Nid(9), 0, 1); count];
    manager
        .allocate_selective(Class::User, LogType::WarmData, &summaries, 3, &planner(strategy), &mut runs, &mut rewrites)
        .unwrap();
    (runs, rewrites)
}

#[test]
fn runs_between_new_blocks_are_rewritten() {
    for strategy in [Strategy::Greedy, Strategy::Marginal, Strategy::Optimal, Strategy::PartialAlways] {
        let (_, manager) = aged();
        // The rest of the log's segment and the last free segment that users may have come first.
        while manager.log(LogType::WarmData).alloc_type == 0 {
            take(&manager, LogType::WarmData, 1);
        }
        let before: BTreeSet<BlockAddr> = all_valid(&manager);
        let (runs, rewrites) = selective(&manager, strategy, 40);
        assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), 40);
        assert_eq!(runs.len(), 10, "{runs:?}");
        assert_eq!(rewrites.len(), 9, "{} rewrites {rewrites:?}", strategy.name());
        assert!(blocks(&rewrites).iter().all(|addr| before.contains(addr)), "what is rewritten is not new");
        assert!(blocks(&runs).iter().all(|addr| !before.contains(addr)));
        // New and old together are one piece.
        let mut all = [blocks(&runs), blocks(&rewrites)].concat();
        all.sort();
        assert!(all.windows(2).all(|pair| pair[0].offset(1) == pair[1]));
    }
    let (_, manager) = aged();
    while manager.log(LogType::WarmData).alloc_type == 0 {
        take(&manager, LogType::WarmData, 1);
    }
    assert_eq!(selective(&manager, Strategy::SsrOnly, 40).1, []);
}

fn all_valid(manager: &SegmentManager) -> BTreeSet<BlockAddr> {
    let geometry = manager.geometry();
    (0..geometry.main_blocks())
        .map(|at| geometry.main_blkaddr.offset(at))
        .filter(|addr| manager.is_valid(*addr))
        .collect()
}

/// A checkpoint that is being written has its state from before the operation that rewrites, and frees the places of that
/// state when it ends.
#[test]
fn what_is_free_already_is_not_rewritten() {
    let (_disk, manager) = aged();
    while manager.log(LogType::WarmData).alloc_type == 0 {
        take(&manager, LogType::WarmData, 1);
    }
    // A block of each second run between the holes that come next.
    let (segment, from) = manager.geometry().locate(manager.next_block(LogType::WarmData)).unwrap();
    let ahead = (from..512).map(|offset| manager.geometry().block_at(segment, offset));
    let valid: Vec<BlockAddr> = ahead.filter(|addr| manager.is_valid(*addr)).collect();
    let runs_of_two: Vec<&[BlockAddr]> = valid.chunks(2).collect();
    runs_of_two.iter().step_by(2).for_each(|run| manager.invalidate(run[1], 3).unwrap());
    let _flush = manager.begin_checkpoint(0).unwrap();
    let (runs, rewrites) = selective(&manager, Strategy::PartialAlways, 40);
    assert_eq!((runs.len(), rewrites.len()), (10, 4), "the runs that are rewritten: {rewrites:?}");
    assert!(blocks(&rewrites).iter().all(|addr| manager.is_valid(*addr)));
    manager.end_checkpoint();
    // Nobody gets a place that a rewrite is on its way to.
    let written = blocks(&rewrites);
    assert!(take(&manager, LogType::WarmData, 400).iter().all(|addr| !written.contains(addr)));
}

#[test]
fn what_no_checkpoint_has_seen_is_not_rewritten() {
    let disk = Disk::new(geometry(10, 1));
    let manager = disk.open(|config| config.user_floor(3));
    // Holes come by a checkpoint only, so let one see them; but then blocks are added that it has not seen.
    let first = take(&manager, LogType::WarmData, 600);
    first.iter().step_by(2).for_each(|addr| manager.invalidate(*addr, 1).unwrap());
    let mut disk = disk;
    disk.checkpoint(&manager);
    while manager.log(LogType::WarmData).alloc_type == 0 {
        take(&manager, LogType::WarmData, 1);
    }
    let (settled, _) = manager.geometry().locate(manager.next_block(LogType::WarmData)).unwrap();
    assert_eq!(settled.0, manager.geometry().locate(first[0]).unwrap().0.0);
    let (_, rewrites) = selective(&manager, Strategy::PartialAlways, 20);
    assert_eq!(rewrites.len(), 19);
    // The other segment had holes at the checkpoint too, but was written to since: those writes may still be on their
    // way.
    while manager.log(LogType::WarmData).segment == settled {
        take(&manager, LogType::WarmData, 1);
    }
    let log = manager.log(LogType::WarmData);
    assert_eq!(
        (log.alloc_type, Some(log.segment)),
        (1, manager.geometry().locate(first[520]).map(|(segment, _)| segment))
    );
    let (runs, rewrites) = selective(&manager, Strategy::PartialAlways, 20);
    assert_eq!((runs.len(), rewrites.len()), (20, 0));
}

#[test]
fn moved_runs_become_holes_with_the_checkpoint_and_not_before() {
    let (mut disk, manager) = aged();
    let cold = Planner::new(CostModel::card(Card::A, Interior::LogLog), Strategy::Greedy, 512.0);
    let (segment, moves) = manager.preclean(LogType::WarmData, &cold, 1000).unwrap();
    assert!(moves.iter().all(|run| run.len == 2), "{moves:?}");
    let info = manager.segment(segment).unwrap();
    assert!(info.victim && info.phase == Phase::Dirty);
    // Marked once.
    assert_ne!(manager.preclean(LogType::WarmData, &cold, 1000).map(|(other, _)| other), Some(segment));
    for run in &moves {
        let mut runs = Vec::new();
        let summaries = vec![Summary::new(Nid(7), 0, 1); run.len as usize];
        manager.allocate_as(Class::Cleaner, LogType::ColdData, &summaries, 4, &mut runs).unwrap();
        manager.invalidate_run(*run, 4).unwrap();
    }
    // A crash now finds the old places as the checkpoint describes them: they are still taken.
    let after = manager.segment(segment).unwrap();
    assert_eq!(after.taken_map, info.taken_map);
    assert!(after.valid < info.valid);
    disk.checkpoint(&manager);
    manager.release_segment(segment).unwrap();
    let info = manager.segment(segment).unwrap();
    assert_eq!(info.taken_map, info.valid_map);
    let longest = info.taken_map.runs(false).map(|(_, len)| len).max().unwrap();
    assert!(longest >= 100, "{longest}");
    assert!(manager.mean_hole(LogType::WarmData) > 0.0);
}

/// The mean of the holes in a segment at or behind a block.
fn mean_from(manager: &SegmentManager, segment: SegmentNo, from: u32) -> f64 {
    let taken = manager.segment(segment).unwrap().taken_map;
    let free: Vec<u32> = (from..512).filter(|at| !taken.contains(*at)).collect();
    let holes = free.iter().filter(|at| **at == from || taken.contains(**at - 1)).count();
    free.len() as f64 / holes as f64
}

#[test]
fn the_mean_hole_is_that_of_what_comes_next() {
    let (_disk, manager) = aged();
    let mean = || manager.mean_hole(LogType::WarmData);
    // In order, and there is no need for holes: the rest of the segment, of which 100 blocks are written.
    assert_eq!((manager.log(LogType::WarmData).alloc_type, manager.need_ssr(), mean()), (0, false, 412.0));
    // Holes come next, those of the segment with the most room.
    manager.set_pressure(3 * 512, 0);
    assert!(manager.need_ssr());
    let dirty = || {
        let all = (0..16).map(|number| manager.segment(SegmentNo(number)).unwrap());
        all.filter(|info| info.phase == Phase::Dirty && info.log == LogType::WarmData)
    };
    let least = dirty().map(|info| info.taken).min().unwrap();
    let means: Vec<f64> =
        dirty().filter(|info| info.taken == least).map(|info| mean_from(&manager, info.segment, 0)).collect();
    assert!(means.contains(&mean()) && (3.0..=4.0).contains(&mean()), "{} of {means:?}", mean());
    // Within a segment with holes: what is left of it, which ends in the middle of one here.
    while manager.log(LogType::WarmData).alloc_type == 0 {
        take(&manager, LogType::WarmData, 1);
    }
    take(&manager, LogType::WarmData, 1);
    let log = manager.log(LogType::WarmData);
    assert_eq!(mean(), mean_from(&manager, log.segment, log.next_offset.into()));

    // A log that may not fill holes goes on in order, however little is free.
    let manager = common::empty(&geometry(16, 1), |config| config);
    take(&manager, LogType::WarmData, 100);
    manager.set_pressure(10 * 512, 0);
    assert!(manager.need_ssr());
    assert_eq!(manager.mean_hole(LogType::WarmData), 412.0);
    // And one that finds none.
    let manager = Disk::new(geometry(16, 1)).open(|config| config);
    manager.set_pressure(10 * 512, 0);
    assert_eq!(manager.mean_hole(LogType::WarmData), 512.0);
}

/// The runs between the holes that a request would take, and no others.
#[test]
fn those_runs_are_moved_that_lie_in_the_way() {
    let moving = planner(Strategy::PartialAlways);
    // Holes of four and runs of two: a request of eleven takes 4 + 2 + 4, and the first block of the next run.
    for (request, runs) in [(5, 1), (10, 1), (11, 2), (16, 2), (17, 3)] {
        let (_disk, manager) = aged();
        let (segment, moves) = manager.preclean(LogType::WarmData, &moving, request).unwrap();
        let info = manager.segment(segment).unwrap();
        let first = info.taken_map.next(0, false).unwrap();
        let in_the_way = info.taken_map.runs(true).filter(|(start, _)| *start > first);
        let expected: Vec<Run> = in_the_way
            .take(runs)
            .map(|(start, len)| Run { addr: manager.geometry().block_at(segment, start), len })
            .collect();
        assert_eq!(moves, expected, "{request}");
    }
    // A block of a run that is free already needs no moving.
    let (_disk, manager) = aged();
    let (segment, moves) = manager.preclean(LogType::WarmData, &moving, 11).unwrap();
    manager.release_segment(segment).unwrap();
    assert!(!manager.segment(segment).unwrap().victim);
    manager.invalidate(moves[0].addr, 3).unwrap();
    let later: Vec<BlockAddr> = moves[1..].iter().flat_map(|run| blocks(&[*run])).collect();
    // Marked ones are not asked again, so in the end it is this one's turn.
    let again =
        (0..16).find_map(|_| manager.preclean(LogType::WarmData, &moving, 11).filter(|(other, _)| *other == segment));
    let (_, again) = again.unwrap();
    assert_eq!(again[0], Run { addr: moves[0].addr.offset(1), len: 1 });
    assert_eq!(blocks(&again[1..]), later);
}

#[test]
fn what_is_not_worth_it_or_cannot_be_paid_is_not_marked() {
    let (_disk, manager) = aged();
    let marked = || (0..16).any(|number| manager.segment(SegmentNo(number)).unwrap().victim);
    assert_eq!(manager.preclean(LogType::WarmData, &planner(Strategy::SsrOnly), 100), None);
    assert_eq!(manager.preclean(LogType::WarmData, &planner(Strategy::PartialAlways).at_most(0.0), 100), None);
    assert_eq!(manager.preclean(LogType::HotData, &planner(Strategy::PartialAlways), 100), None, "it has no holes");
    assert!(!marked());
    // Four blocks are paid for: two runs.
    let bound = planner(Strategy::PartialAlways).at_most(1.0);
    let mut whole = Layout::new();
    whole.push(Gap::Break, 512);
    assert!(bound.plan_paid(&whole, 4).is_empty());
    let (segment, moves) = manager.preclean(LogType::WarmData, &bound, 100).unwrap();
    assert_eq!(moves.iter().map(|run| run.len).collect::<Vec<u32>>(), [2, 2]);
    assert!(manager.segment(segment).unwrap().victim);
    assert_eq!(manager.preclean(LogType::WarmData, &bound, 100), None, "nothing is left in the account");
}

/// A segment that is released is there for the next one who looks, also when somebody has looked meanwhile.
#[test]
fn a_released_segment_can_be_marked_again() {
    let (_disk, manager) = aged();
    let moving = planner(Strategy::PartialAlways);
    let mut marked = BTreeSet::new();
    while let Some((segment, _)) = manager.preclean(LogType::WarmData, &moving, 100) {
        assert!(marked.insert(segment));
    }
    assert!(marked.len() > 4, "{marked:?}");
    for segment in marked {
        manager.release_segment(segment).unwrap();
        assert_eq!(manager.preclean(LogType::WarmData, &moving, 100).map(|(again, _)| again), Some(segment));
    }
}

/// `cargo test -p f2fs-segment --features mutants --test selective` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let test = "what_is_free_already_is_not_rewritten";
    f2fs_sync::assert_found(test, &["segment_freed_run_rewritten"], "the runs that are rewritten");
}
