//! Models of the segment manager.
#![cfg(loom)]
#![allow(clippy::unwrap_used)]

// mutant: segment_invalidate_split, killed by: two_writers_and_one_who_frees
// mutant: segment_free_take_split, killed by: two_logs_change_at_once
// mutant: segment_leave_summary_late, killed by: a_log_that_takes_a_left_segment_finds_its_summary
// mutant: segment_victim_ignores_logs, killed by: no_log_stands_in_a_victim
// mutant: segment_thaw_frees_later_ones, killed by: what_is_freed_in_a_checkpoint_waits_for_the_next
// mutant: segment_thaw_releases_later_ones, killed by: what_is_freed_in_a_checkpoint_waits_for_the_next
// mutant: segment_prepared_is_believed, killed by: what_changes_beside_a_preparation_is_in_the_checkpoint
// mutant: segment_floor_unlocked, killed by: users_stop_at_the_floor
// mutant: segment_lanes_closed_under_a_head, killed by: lanes_are_closed_while_others_open_them
// mutant: segment_move_ignores_overwrite, killed by: a_block_moves_while_it_is_overwritten
// mutant: segment_overwrite_reads_early, killed by: a_block_moves_while_it_is_overwritten
// mutant: segment_aged_claims_unseen, killed by: moved_blocks_join_a_segment_that_loses_its_last
// mutant: segment_state_numbered_twice, killed by: two_logs_change_at_once
// mutant: segment_state_named_early, killed by: a_segment_is_first_used_while_others_look
// mutant: account_pays_in_two_steps, killed by: two_writers_share_an_account
// mutant: segment_victim_keeps_marks, killed by: no_log_stands_in_a_victim
// mutant: segment_prefree_marked, killed by: an_emptied_lane_is_left_beside_a_checkpoint

mod common;

use std::error::Error;
use std::ops::{Deref, DerefMut};

use common::geometry;
use f2fs_format::bits::msb;
use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::cost::CostModel;
use f2fs_segment::plan::{Gap, Layout, Planner, Strategy};
use f2fs_segment::{
    Change, Class, Displaced, LogState, Phase, Run, SegmentConfig, SegmentError, SegmentManager, SummarySource,
    VictimPolicy, switch_slots,
};
use f2fs_sync::{Arc, RwLock, model, thread};

/// A manager with the first `valid` blocks of some segments valid and their logs behind them.
fn manager(segments: u32, segs_per_sec: u32, floor: u32, used: &[(LogType, SegmentNo, u16)]) -> Arc<SegmentManager> {
    let geometry = geometry(segments, segs_per_sec);
    let mut logs = LogState::at_the_start(&geometry);
    let mut entries = vec![RawSitEntry::ZERO; segments as usize];
    for &(log, segment, valid) in used {
        let entry = &mut entries[segment.index()];
        entry.set_blocks(log, valid.into());
        for at in 0..usize::from(valid) {
            msb::set(&mut entry.valid_map, at);
        }
        (logs[log.index()].segment, logs[log.index()].next_offset) = (segment, valid);
    }
    let config = SegmentConfig::new(geometry, 0, 0).user_floor(floor);
    Arc::new(SegmentManager::new(config, entries, vec![0; 64], logs).unwrap())
}

fn take(manager: &SegmentManager, class: Class, log: LogType) -> Option<BlockAddr> {
    let mut runs: Vec<Run> = Vec::new();
    manager.allocate_as(class, log, &[Summary::new(Nid(9), 0, 3)], 5, &mut runs).ok()?;
    Some(runs[0].addr)
}

fn spawn<T: Send + 'static>(
    manager: &Arc<SegmentManager>,
    work: impl FnOnce(&SegmentManager) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let manager = Arc::clone(manager);
    thread::spawn(move || work(&manager))
}

#[test]
fn two_writers_and_one_who_frees() {
    model::bounded("two_writers_and_one_who_frees", 3, || {
        let manager = manager(7, 1, 0, &[(LogType::WarmData, SegmentNo(1), 2)]);
        let writer = |manager: &SegmentManager| take(manager, Class::Checkpoint, LogType::WarmData).unwrap();
        let first = spawn(&manager, writer);
        let second = spawn(&manager, writer);
        let old = manager.geometry().block_at(SegmentNo(1), 0);
        manager.invalidate(old, 5).unwrap();
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert_ne!(first, second);
        let info = manager.segment(SegmentNo(1)).unwrap();
        assert_eq!((info.valid, info.taken, info.valid_map.count()), (3, 4, 3));
        assert!(!manager.is_valid(old) && manager.is_valid(first) && manager.is_valid(second));
        assert_eq!(manager.valid_blocks(), 3);
    });
}

#[test]
fn two_logs_change_at_once() {
    model::exhaustive("two_logs_change_at_once", || {
        let (warm, cold) = (LogType::WarmData, LogType::ColdData);
        let manager = manager(8, 1, 0, &[(warm, SegmentNo(1), 511), (cold, SegmentNo(2), 511)]);
        let other = spawn(&manager, move |manager| take(manager, Class::Checkpoint, cold));
        let mine = take(&manager, Class::Checkpoint, warm);
        let other = other.join().unwrap();
        // Two segments were free, and each log needed one.
        assert!(mine.is_some() && other.is_some());
        assert_ne!(manager.log(warm).segment, manager.log(cold).segment);
        assert_eq!((manager.free_segments(), manager.valid_blocks()), (0, 1024));
    });
}

#[test]
fn a_segment_is_first_used_while_others_look() {
    model::exhaustive("a_segment_is_first_used_while_others_look", || {
        let warm = LogType::WarmData;
        let geometry = geometry(7, 1);
        let mut logs = LogState::at_the_start(&geometry);
        (logs[warm.index()].segment, logs[warm.index()].next_offset) = (SegmentNo(1), 511);
        let mut entries = vec![RawSitEntry::ZERO; 7];
        entries[1].set_blocks(warm, 511);
        for at in 0..511 {
            msb::set(&mut entries[1].valid_map, at);
        }
        // The only free segment was another log's, some time ago: a word says so, and a state once it is used.
        entries[6].set_blocks(LogType::ColdNode, 0);
        entries[6].mtime.set(40);
        let config = SegmentConfig::new(geometry, 0, 0).user_floor(0);
        let manager = Arc::new(SegmentManager::new(config, entries, vec![0; 64], logs).unwrap());
        let reader = spawn(&manager, |manager| {
            let info = manager.segment(SegmentNo(6)).unwrap();
            (info.phase, info.log, info.valid, info.mtime)
        });
        let _last = take(&manager, Class::Checkpoint, warm).unwrap();
        let addr = take(&manager, Class::Checkpoint, warm).unwrap();
        let seen = reader.join().unwrap();
        let possible = [
            (Phase::Free, LogType::ColdNode, 0, 40),
            (Phase::Current, LogType::ColdNode, 0, 40),
            (Phase::Current, warm, 0, 40),
            (Phase::Current, warm, 1, 5),
        ];
        assert!(possible.contains(&seen), "{seen:?}");
        assert!(manager.is_valid(addr));
        assert_eq!(manager.segment(SegmentNo(6)).unwrap().valid, 1);
        assert_eq!(manager.valid_blocks(), 513);
    });
}

/// An SSA that must not be asked.
struct Stale;

impl SummarySource for Stale {
    fn read_summary(&self, segment: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Err(format!("the summary of segment {segment} is not in the SSA yet").into())
    }
}

#[test]
fn a_log_that_takes_a_left_segment_finds_its_summary() {
    model::exhaustive("a_log_that_takes_a_left_segment_finds_its_summary", || {
        let (warm, cold) = (LogType::WarmData, LogType::ColdData);
        // The warm log's segment has a hole at its start, so that the cold log may take it when it is left.
        let geometry = geometry(7, 1);
        let mut logs = LogState::at_the_start(&geometry);
        let mut entries = vec![RawSitEntry::ZERO; 7];
        for (log, first) in [(warm, 1), (cold, 0)] {
            let entry = &mut entries[log.index()];
            entry.set_blocks(log, 511 - first);
            for at in first..511 {
                msb::set(&mut entry.valid_map, at as usize);
            }
            logs[log.index()].next_offset = 511;
        }
        let config = SegmentConfig::new(geometry, 0, 0).user_floor(0).summaries(Arc::new(Stale));
        let manager = Arc::new(SegmentManager::new(config, entries, vec![0; 64], logs).unwrap());
        let block =
            |manager: &SegmentManager, log| manager.allocate(log, &[Summary::new(Nid(9), 0, 3)], 5, &mut Vec::new());
        let other = spawn(&manager, move |manager| block(manager, cold));
        let mine = block(&manager, warm);
        let results = [mine, other.join().unwrap()];
        for result in &results {
            assert!(matches!(result, Ok(()) | Err(SegmentError::NoSpace { .. })), "{results:?}");
        }
        assert!(results.iter().any(Result::is_ok), "a segment is free");
    });
}

#[test]
fn no_log_stands_in_a_victim() {
    model::exhaustive("no_log_stands_in_a_victim", || {
        // The log goes on within its section of three segments, to one that the index looks at before the one that it
        // leaves.
        let manager = manager(18, 3, 0, &[(LogType::WarmData, SegmentNo(3), 511)]);
        let writer = spawn(&manager, |manager| take(manager, Class::Checkpoint, LogType::WarmData).unwrap());
        let victim = manager.choose_victim(VictimPolicy::Greedy, 5);
        assert_eq!(victim, None, "the log is in the only section with valid blocks");
        writer.join().unwrap();
        assert_eq!(manager.log(LogType::WarmData).segment, SegmentNo(4));
        let marked = (3..6).filter(|segment| manager.segment(SegmentNo(*segment)).unwrap().victim).count();
        assert_eq!(marked, 0, "nobody cleans the section, and nobody would take the marks off");
        assert_eq!(manager.choose_victim(VictimPolicy::Greedy, 5), None);
    });
}

#[test]
fn what_is_freed_in_a_checkpoint_waits_for_the_next() {
    model::exhaustive("what_is_freed_in_a_checkpoint_waits_for_the_next", || {
        let manager = manager(7, 1, 0, &[(LogType::WarmData, SegmentNo(1), 3), (LogType::WarmData, SegmentNo(6), 1)]);
        let addr = |at| manager.geometry().block_at(SegmentNo(1), at);
        let (early, late, last) = (addr(0), addr(1), addr(2));
        manager.invalidate(early, 5).unwrap();
        manager.begin_checkpoint(6).unwrap();
        let freeing = spawn(&manager, move |manager| {
            manager.invalidate(late, 5).unwrap();
            manager.invalidate(last, 5).unwrap();
        });
        manager.end_checkpoint();
        freeing.join().unwrap();
        let info = manager.segment(SegmentNo(1)).unwrap();
        assert_eq!((info.phase, info.valid), (Phase::Prefree, 0));
        assert!(!info.taken_map.contains(0), "it was free in the checkpoint");
        assert!(info.taken_map.contains(1) && info.taken_map.contains(2), "the checkpoint points to them");
        assert_eq!((manager.free_segments(), manager.prefree_segments()), (0, 1));
        manager.begin_checkpoint(6).unwrap();
        manager.end_checkpoint();
        assert_eq!((manager.free_segments(), manager.prefree_segments()), (1, 0));
    });
}

#[test]
fn what_changes_beside_a_preparation_is_in_the_checkpoint() {
    // In the journal, and in a block of the table.
    for capacity in [6, 0] {
        model::exhaustive("what_changes_beside_a_preparation_is_in_the_checkpoint", move || {
            let manager = manager(7, 1, 0, &[(LogType::WarmData, SegmentNo(1), 3)]);
            let addr = |at| manager.geometry().block_at(SegmentNo(1), at);
            let (early, late) = (addr(0), addr(1));
            manager.invalidate(early, 5).unwrap();
            let freeing = spawn(&manager, move |manager| manager.invalidate(late, 6).unwrap());
            manager.prepare_checkpoint();
            freeing.join().unwrap();
            let flush = manager.begin_checkpoint(capacity).unwrap();
            let of_block = flush.sit_blocks.iter().map(|write| write.block.entries[1]);
            let entry = flush.sit_journal.iter().map(|(_, entry)| *entry).chain(of_block).next().unwrap();
            assert_eq!((entry.valid_blocks(), entry.valid_map[0]), (1, 0b0010_0000));
            manager.end_checkpoint();
            let taken = manager.segment(SegmentNo(1)).unwrap().taken_map;
            assert!(!taken.contains(0) && !taken.contains(1) && taken.contains(2), "what it freed may be written");
        });
    }
}

#[test]
fn users_stop_at_the_floor() {
    model::exhaustive("users_stop_at_the_floor", || {
        let (warm, cold) = (LogType::WarmData, LogType::ColdData);
        let manager = manager(9, 1, 2, &[(warm, SegmentNo(1), 511), (cold, SegmentNo(2), 511)]);
        let other = spawn(&manager, move |manager| take(manager, Class::User, cold));
        let mine = take(&manager, Class::User, warm);
        let other = other.join().unwrap();
        // Three sections are free and two must stay: one of both gets one.
        assert_ne!(mine.is_some(), other.is_some());
        assert_eq!((manager.free_sections(), manager.valid_blocks()), (2, 1023));
    });
}

/// A log at the end of its segment and a lane of it, each wanting a block. Gives who got one.
fn log_and_lane(floor: u32) -> [bool; 2] {
    let warm = LogType::WarmData;
    let geometry = geometry(7, 1);
    let mut logs = LogState::at_the_start(&geometry);
    let mut entries = vec![RawSitEntry::ZERO; 7];
    entries[1].set_blocks(warm, 511);
    for at in 0..511 {
        msb::set(&mut entries[1].valid_map, at);
    }
    logs[1].next_offset = 511;
    let config = SegmentConfig::new(geometry, 0, 0).user_floor(floor).lanes(2);
    let manager = Arc::new(SegmentManager::new(config, entries, vec![0; 64], logs).unwrap());
    let block = [Summary::new(Nid(9), 0, 3)];
    let other = spawn(&manager, move |manager| manager.allocate_on(1, Class::User, warm, &block, 5, &mut Vec::new()));
    let mine = manager.allocate(warm, &block, 5, &mut Vec::new());
    let results = [mine, other.join().unwrap()];
    for result in &results {
        assert!(matches!(result, Ok(()) | Err(SegmentError::NoSpace { .. })), "{results:?}");
    }
    let taken = results.iter().filter(|result| result.is_ok()).count() as u64;
    assert_eq!(manager.valid_blocks(), 511 + taken);
    results.map(|result| result.is_ok())
}

#[test]
fn a_log_and_its_lane_share_the_last_segment() {
    model::exhaustive("a_log_and_its_lane_share_the_last_segment", || {
        // The log needs the free segment, and the lane does with either.
        assert_ne!(log_and_lane(0), [false, false]);
    });
}

#[test]
fn lanes_are_closed_while_others_open_them() {
    model::exhaustive("lanes_are_closed_while_others_open_them", || {
        // The free segment is out of reach: both look for it, and close the lanes.
        assert_eq!(log_and_lane(1), [false, false]);
    });
}

/// A node's page with its block behind a lock, as the volume has it.
struct Page(RwLock<Box<NodeBlock>>);

struct Locked<'a>(f2fs_sync::RwLockWriteGuard<'a, Box<NodeBlock>>);

impl Deref for Locked<'_> {
    type Target = NodeBlock;
    fn deref(&self) -> &NodeBlock {
        &self.0
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut NodeBlock {
        &mut self.0
    }
}

/// Slot 3 is changed as the volume changes it: new address in, old block freed.
fn change(manager: &SegmentManager, page: &Page, to: Change) {
    let mut displaced = Displaced::default();
    switch_slots(|| Locked(page.0.write()), 3..4, Features(0), |_, _| to, &mut displaced, |_, _| {});
    displaced.take().for_each(|run| manager.invalidate_run(run, 6).unwrap());
}

#[test]
fn a_block_moves_while_it_is_overwritten() {
    model::bounded("a_block_moves_while_it_is_overwritten", 3, || {
        let manager = manager(8, 1, 0, &[(LogType::WarmData, SegmentNo(1), 1)]);
        let from = manager.geometry().block_at(SegmentNo(1), 0);
        let mut node = NodeBlock::new_box();
        // A direct node: one with an offset in the tree of another inode.
        (node.footer.nid, node.footer.ino) = (Nid(9).into(), Nid(8).into());
        node.set_address(3, from, Features(0));
        let page = Arc::new(Page(RwLock::new(node)));
        let features = Features(0);
        let writer = {
            let page = Arc::clone(&page);
            spawn(&manager, move |manager| {
                let fresh = take(manager, Class::Checkpoint, LogType::WarmData).unwrap();
                change(manager, &page, Change::To(fresh));
                fresh
            })
        };
        let to = take(&manager, Class::Cleaner, LogType::ColdData).unwrap();
        change(&manager, &page, Change::Move { from, to });
        let fresh = writer.join().unwrap();
        assert_eq!(page.0.read().address(3, features), Some(fresh), "the new content stays");
        assert!(manager.is_valid(fresh) && !manager.is_valid(from) && !manager.is_valid(to));
        assert_eq!(manager.valid_blocks(), 1);
    });
}

/// An SSA without entries.
struct Empty;

impl SummarySource for Empty {
    fn read_summary(&self, _segment: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Ok(SummaryBlock::new_box())
    }
}

#[test]
fn moved_blocks_join_a_segment_that_loses_its_last() {
    model::exhaustive("moved_blocks_join_a_segment_that_loses_its_last", || {
        let warm = LogType::WarmData;
        let geometry = geometry(9, 1);
        let logs = LogState::at_the_start(&geometry);
        let mut entries = vec![RawSitEntry::ZERO; 9];
        for segment in [6, 7] {
            entries[segment].set_blocks(warm, 1);
            msb::set(&mut entries[segment].valid_map, 0);
        }
        let config = SegmentConfig::new(geometry, 0, 0).user_floor(0).summaries(Arc::new(Empty));
        let manager = Arc::new(SegmentManager::new(config, entries, vec![0; 64], logs).unwrap());
        let [from, last] = [6, 7].map(|segment| manager.geometry().block_at(SegmentNo(segment), 0));
        // The only other segment with holes becomes prefree, or is where the block goes.
        let freeing = spawn(&manager, move |manager| manager.invalidate(last, 5).unwrap());
        let mut runs = Vec::new();
        assert_eq!(manager.choose_victim(VictimPolicy::Greedy, 5).map(|victim| victim.first), Some(SegmentNo(6)));
        manager.allocate_aged(SegmentNo(6), &[Summary::new(Nid(9), 0, 3)], 5, &mut runs).unwrap();
        freeing.join().unwrap();
        manager.invalidate(from, 5).unwrap();
        let info = manager.segment(SegmentNo(7)).unwrap();
        let joined = manager.geometry().locate(runs[0].addr).unwrap().0 == SegmentNo(7);
        assert_eq!((info.phase, info.valid), if joined { (Phase::Current, 1) } else { (Phase::Prefree, 0) });
        assert_eq!(manager.prefree_segments(), if joined { 1 } else { 2 });
        assert_eq!(manager.valid_blocks(), 1);
    });
}

/// A manager with a lane of the warm log in a segment of its own, and the one block that was taken from it.
fn with_a_lane() -> (Arc<SegmentManager>, SegmentNo, BlockAddr) {
    let config = SegmentConfig::new(geometry(8, 1), 0, 0).user_floor(0).lanes(2);
    let logs = LogState::at_the_start(&geometry(8, 1));
    let manager = SegmentManager::new(config, vec![RawSitEntry::ZERO; 8], vec![0; 64], logs).unwrap();
    let mut runs = Vec::new();
    let block = [Summary::new(Nid(9), 0, 3)];
    manager.allocate_on(1, Class::User, LogType::WarmData, &block, 5, &mut runs).unwrap();
    let lane = manager.geometry().locate(runs[0].addr).unwrap().0;
    (Arc::new(manager), lane, runs[0].addr)
}

/// Asks for more than there is, so that the lanes are closed.
fn close_lanes(manager: &SegmentManager) {
    let much = vec![Summary::new(Nid(9), 0, 3); 4 * 512];
    assert!(manager.allocate(LogType::ColdData, &much, 5, &mut Vec::new()).is_err());
}

/// The lane's segment was left without a valid block: the next checkpoint makes it free.
fn assert_it_becomes_free(manager: &SegmentManager, lane: SegmentNo) {
    let info = manager.segment(lane).unwrap();
    assert_eq!((info.phase, info.valid, manager.prefree_segments()), (Phase::Prefree, 0, 1));
    let free = manager.free_segments();
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
    assert_eq!(manager.segment(lane).unwrap().phase, Phase::Free);
    assert_eq!((manager.free_segments(), manager.prefree_segments()), (free + 1, 0));
}

#[test]
fn an_emptied_lane_is_left_beside_a_checkpoint() {
    model::bounded("an_emptied_lane_is_left_beside_a_checkpoint", 3, || {
        let (manager, lane, addr) = with_a_lane();
        manager.invalidate(addr, 5).unwrap();
        // This checkpoint finds a log in the segment, and looks at what changed for the last time.
        manager.begin_checkpoint(6).unwrap();
        let closing = spawn(&manager, close_lanes);
        manager.end_checkpoint();
        closing.join().unwrap();
        assert_it_becomes_free(&manager, lane);
    });
}

#[test]
fn a_lane_is_left_while_its_last_block_is_freed() {
    model::bounded("a_lane_is_left_while_its_last_block_is_freed", 3, || {
        let (manager, lane, addr) = with_a_lane();
        let closing = spawn(&manager, close_lanes);
        manager.invalidate(addr, 5).unwrap();
        closing.join().unwrap();
        assert_it_becomes_free(&manager, lane);
    });
}

#[test]
fn two_writers_share_an_account() {
    model::bounded("two_writers_share_an_account", 3, || {
        // Each request pays in one block, and would rewrite two.
        let planner = Planner::new(CostModel::nvme(), Strategy::PartialAlways, 5.0).in_place().at_most(0.5);
        let write = |planner: &Planner| {
            let mut layout = Layout::new();
            layout.push(Gap::Break, 1);
            layout.push(Gap::Valid(2), 1);
            planner.outcome(&layout, 2, &planner.plan_paid(&layout, 2)).rewritten
        };
        let other = thread::spawn({
            let planner = planner.clone();
            move || write(&planner)
        });
        let mine = write(&planner);
        assert!(mine + other.join().unwrap() <= 2, "more was rewritten than was paid in");
    });
}
