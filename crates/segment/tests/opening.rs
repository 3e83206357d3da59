//! Volumes that a manager refuses to open, by name and number; and the small behaviours that a random test does not
//! name.
#![allow(clippy::unwrap_used)]

mod common;

use std::error::Error;
use std::sync::Arc;

use common::{empty, geometry};
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{Journal, Summary, SummaryBlock};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::{
    Class, LogState, NodeLog, Phase, Run, SegmentConfig, SegmentError, SegmentManager, SegmentTable, SummarySource,
};

fn entry(log: LogType, valid: &[u32]) -> RawSitEntry {
    let mut entry = RawSitEntry::ZERO;
    entry.set_blocks(log, valid.len() as u32);
    for &at in valid {
        f2fs_format::bits::msb::set(&mut entry.valid_map, at as usize);
    }
    entry
}

fn open(change: impl FnOnce(&mut Vec<RawSitEntry>, &mut [LogState; 6])) -> Result<SegmentManager, SegmentError> {
    let geometry = geometry(20, 1);
    let mut logs = LogState::at_the_start(&geometry);
    let mut entries = vec![RawSitEntry::ZERO; 20];
    change(&mut entries, &mut logs);
    SegmentManager::new(SegmentConfig::new(geometry, 0, 0), entries, vec![0; 64], logs)
}

#[test]
fn contradictions_are_refused_with_their_numbers() {
    open(|_, _| {}).unwrap();
    let error = open(|entries, _| entries.truncate(19)).unwrap_err();
    assert!(matches!(error, SegmentError::Config { expected: 20, found: 19, .. }), "{error}");
    let error = open(|entries, _| entries[9].vblocks.set(7 << 10)).unwrap_err();
    assert!(matches!(error, SegmentError::BadType { segment: SegmentNo(9), found: 7 }), "{error}");
    let error = open(|entries, _| entries[9].vblocks.set(3)).unwrap_err();
    assert!(matches!(error, SegmentError::BadCount { segment: SegmentNo(9), count: 3, mapped: 0 }), "{error}");
    let error = open(|_, logs| logs[2].segment = SegmentNo(20)).unwrap_err();
    assert!(matches!(error, SegmentError::LogOutside { segment: SegmentNo(20), segments: 20, .. }), "{error}");
    let error = open(|_, logs| logs[4].segment = logs[1].segment).unwrap_err();
    let (first, second) = (LogType::WarmData, LogType::WarmNode);
    assert!(
        matches!(error, SegmentError::SharedSegment { first: a, second: b, .. } if (a, b) == (first, second)),
        "{error}"
    );
    let error = open(|entries, _| entries[1] = entry(LogType::HotNode, &[0])).unwrap_err();
    assert!(matches!(error, SegmentError::LogType { found: LogType::HotNode, .. }), "{error}");
    let error = open(|entries, _| entries[1] = entry(LogType::WarmData, &[0])).unwrap_err();
    assert!(matches!(error, SegmentError::LogOffset { offset: 0, .. }), "{error}");
    let error = open(|_, logs| logs[0].next_offset = 512).unwrap_err();
    assert!(matches!(error, SegmentError::LogOffset { offset: 512, .. }), "{error}");
    let error = open(|entries, _| entries[1] = entry(LogType::WarmData, &[77])).unwrap_err();
    assert!(matches!(error, SegmentError::LogAhead { offset: 0, found: 77, .. }), "{error}");
    let error = open(|_, logs| logs[3].alloc_type = 2).unwrap_err();
    assert!(matches!(error, SegmentError::AllocType { log: LogType::HotNode, found: 2 }), "{error}");
    let config = SegmentConfig::new(geometry(20, 1), 0, 0).journaled([SegmentNo(20)]);
    let logs = LogState::at_the_start(&geometry(20, 1));
    let error = SegmentManager::new(config, vec![RawSitEntry::ZERO; 20], vec![0; 64], logs).unwrap_err();
    assert!(matches!(error, SegmentError::OutsideTable { segment: SegmentNo(20), segments: 20 }), "{error}");
}

#[test]
fn sizes_that_contradict_each_other_are_refused() {
    let open = |table: u32, bitmap: usize, sections: u32| {
        let mut geometry = geometry(20, 2);
        geometry.sections = sections;
        let logs = LogState::at_the_start(&geometry);
        SegmentManager::open(SegmentConfig::new(geometry, 0, 0), SegmentTable::new(table, &[])?, vec![0; bitmap], logs)
    };
    // The table has one block, and the bitmap a bit for it.
    open(20, 1, 10).unwrap();
    let error = open(21, 1, 10).unwrap_err();
    assert!(matches!(error, SegmentError::Config { expected: 20, found: 21, .. }), "{error}");
    let error = open(20, 1, 9).unwrap_err();
    assert!(matches!(error, SegmentError::Config { expected: 18, found: 20, .. }), "{error}");
    let error = open(20, 0, 10).unwrap_err();
    assert!(matches!(error, SegmentError::Config { expected: 1, found: 0, .. }), "{error}");
    // Also where the table is read by that bitmap: no bit is set, so the first copies are in use.
    let load = |bitmap: Vec<u8>| {
        let config = SegmentConfig::embedded(20, 2).unwrap();
        let (geometry, logs) = (config.geometry.clone(), LogState::at_the_start(&config.geometry));
        SegmentManager::load(config, bitmap, logs, |addr| {
            assert_eq!(addr, geometry.sit_block(0, false));
            Ok::<_, SegmentError>(Box::new(f2fs_format::sit::SitBlock::ZERO))
        })
    };
    load(vec![0]).unwrap();
    let error = load(Vec::new()).unwrap_err();
    assert!(matches!(error, SegmentError::Config { expected: 1, found: 0, .. }), "{error}");
}

/// A log that has written nothing yet may stand in a segment that another one wrote once.
#[test]
fn a_log_gives_its_segment_its_type() {
    let manager = open(|entries, logs| {
        entries[9] = entry(LogType::ColdNode, &[]);
        logs[1].segment = SegmentNo(9);
        logs[1].summary.entry_type = 1;
        logs[2].summary.journal = Journal::from_sit(&[(SegmentNo(15), RawSitEntry::ZERO)]).unwrap();
    })
    .unwrap();
    let info = manager.segment(SegmentNo(9)).unwrap();
    assert_eq!((info.phase, info.log), (Phase::Current, LogType::WarmData));
    assert_eq!(manager.log(LogType::WarmData).summary.entry_type, 0);
    // The journal is the owner's, who is told what belongs in it.
    let journal = manager.log(LogType::ColdData).summary.journal;
    assert!(journal.sit_entries().unwrap_or_default().is_empty());
    assert_eq!((manager.free_segments(), manager.free_sections()), (14, 14));
    // No other log gets it, nor a cleaner.
    let mut runs = Vec::new();
    manager.allocate_as(Class::Checkpoint, LogType::HotData, &[Summary::default(); 13 * 512], 1, &mut runs).unwrap();
    let start = manager.geometry().block_at(SegmentNo(9), 0);
    assert!(runs.iter().all(|run| start.0 + 512 <= run.addr.0 || run.addr.0 + run.len <= start.0), "{runs:?}");
}

/// A read-only volume has two logs. The others stand nowhere, wherever their numbers point.
#[test]
fn a_read_only_volume_has_two_logs() {
    let mut geometry = geometry(20, 1);
    geometry.features = f2fs_format::feature::Features::READONLY;
    let mut logs = LogState::at_the_start(&geometry);
    for log in [1, 2, 4, 5] {
        logs[log].segment = logs[0].segment;
    }
    let config = SegmentConfig::new(geometry.clone(), 0, 0);
    let manager = SegmentManager::new(config, vec![RawSitEntry::ZERO; 20], vec![0; 64], logs).unwrap();
    assert_eq!(manager.free_segments(), 18);
    assert_eq!(manager.next_block(LogType::HotNode), geometry.block_at(SegmentNo(3), 0));
    for log in [LogType::WarmData, LogType::ColdData, LogType::WarmNode, LogType::ColdNode] {
        assert_eq!(manager.next_block(log), BlockAddr::NULL);
    }
    assert_eq!(manager.sections_of_logs(), [0, 3]);
}

/// Where a log stands when a volume is opened, there is its zone: others begin behind it.
#[test]
fn logs_keep_to_zones_of_their_own() {
    let mut geometry = geometry(24, 1);
    geometry.secs_per_zone = 4;
    let manager = SegmentManager::empty(SegmentConfig::new(geometry, 0, 0)).unwrap();
    // Logs stand in both of the first two zones, and segments 6 and 7 are free.
    manager.allocate(LogType::HotNode, &[Summary::default(); 512], 1, &mut Vec::new()).unwrap();
    assert_eq!(manager.log(LogType::HotNode).segment, SegmentNo(8));
    // In its own zone it goes on.
    manager.allocate(LogType::WarmNode, &[Summary::default(); 512], 1, &mut Vec::new()).unwrap();
    assert_eq!(manager.log(LogType::WarmNode).segment, SegmentNo(6));
}

#[test]
fn a_table_of_segments_that_are_all_in_use_is_opened() {
    let used = [entry(LogType::WarmData, &[3]); 20];
    let table = SegmentTable::new(20, &[(SegmentNo(7), used[0])]).unwrap();
    table.load(SegmentNo(0), &used).unwrap();
    assert_eq!((table.segments(), table.valid_blocks(LogType::WarmData)), (20, 20));
    assert!([0, 7, 19].iter().all(|number| table.valid_map(SegmentNo(*number)).unwrap().contains(3)));
    assert!(matches!(
        table.valid_map(SegmentNo(20)),
        Err(SegmentError::OutsideTable { segment: SegmentNo(20), segments: 20 })
    ));
    for again in [used[0], RawSitEntry::ZERO] {
        assert!(matches!(table.load(SegmentNo(3), &[again]), Err(SegmentError::LoadedTwice { segment: SegmentNo(3) })));
    }
    assert_eq!(SegmentTable::new(20, &[]).unwrap().valid_map(SegmentNo(4)).unwrap().count(), 0);
}

#[test]
fn an_entry_that_leaves_the_journal_reaches_its_block() {
    // The journal is known from the cold-data log's summary alone.
    let journaled = entry(LogType::WarmData, &[4, 5]);
    let manager = open(|entries, logs| {
        entries[15] = journaled;
        logs[2].summary.journal = Journal::from_sit(&[(SegmentNo(15), journaled)]).unwrap();
    })
    .unwrap();
    let flush = manager.begin_checkpoint(6).unwrap();
    assert_eq!((flush.sit_journal.len(), flush.sit_blocks.len()), (1, 0));
    let flush = manager.begin_checkpoint(0).unwrap();
    assert_eq!(flush.sit_journal.len(), 0);
    assert_eq!(flush.sit_blocks[0].block.entries[15], journaled);
    assert!(flush.sit_blocks[0].second && flush.sit_bitmap[0] == 0x80);
}

#[test]
fn blocks_outside_the_main_area_are_named() {
    let manager = empty(&geometry(20, 1), |config| config);
    let (start, end) = (manager.geometry().main_blkaddr, manager.geometry().main_end());
    for addr in [BlockAddr(0), BlockAddr(start.0 - 1), end, BlockAddr::NEW] {
        let error = manager.invalidate(addr, 1).unwrap_err();
        assert!(matches!(error, SegmentError::OutsideMain { .. }), "{error}");
        assert!(!manager.is_valid(addr));
    }
    let error = manager.segment(SegmentNo(20)).unwrap_err();
    assert!(matches!(error, SegmentError::OutsideTable { .. }), "{error}");
    for log in NodeLog::ALL {
        let expected = manager.next_block(log.into());
        assert_eq!(manager.allocate_node(log, Summary::default(), 1).unwrap().0, expected);
        assert_eq!(NodeLog::of(log.log()), Some(log));
    }
    assert_eq!(NodeLog::of(LogType::ColdData), None);
}

#[test]
fn runs_are_freed_across_segments() {
    let manager = empty(&geometry(20, 1), |config| config);
    let mut runs = Vec::new();
    manager.allocate(LogType::WarmData, &[Summary::default(); 1300], 1, &mut runs).unwrap();
    let last = runs.last().copied().unwrap();
    assert_eq!(last.len, 788, "{runs:?}");
    manager.invalidate_run(Run { addr: last.addr.offset(500), len: 200 }, 2).unwrap();
    assert_eq!(manager.valid_blocks(), 1100);
    let error = manager.invalidate_run(Run { addr: last.addr, len: 788 }, 2).unwrap_err();
    assert!(matches!(error, SegmentError::NotValid { offset: 500, .. }), "{error}");
    assert_eq!(manager.valid_blocks(), 1100, "nothing of that segment was freed");
    let error = manager.invalidate_run(Run { addr: BlockAddr(3), len: 2 }, 2).unwrap_err();
    assert!(matches!(error, SegmentError::OutsideMain { .. }), "{error}");
}

#[test]
fn users_leave_room_for_a_checkpoint() {
    let manager = empty(&geometry(20, 1), |config| config.user_floor(2));
    manager.set_pressure(1000, 100); // 1100 blocks are 3 sections, 100 are one
    assert_eq!(manager.floor(Class::User), 6);
    let block = [Summary::new(Nid(9), 0, 0)];
    let mut runs = Vec::new();
    let error = loop {
        if let Err(error) = manager.allocate(LogType::WarmData, &block, 1, &mut runs) {
            break error;
        }
    };
    assert!(
        matches!(error, SegmentError::NoSpace { log: LogType::WarmData, free: 6, prefree: 0, floor: 6 }),
        "{error}"
    );
    for class in [Class::Cleaner, Class::Checkpoint] {
        while manager.allocate_as(class, LogType::ColdData, &block, 1, &mut runs).is_ok() {}
        assert_eq!(manager.free_segments(), manager.floor(class));
    }
}

#[test]
fn what_is_kept_back_is_told() {
    let config = SegmentConfig::new(geometry(20, 1), 5, 7);
    let entries = vec![RawSitEntry::ZERO; 20];
    let manager = SegmentManager::new(config, entries, vec![0; 64], LogState::at_the_start(&geometry(20, 1))).unwrap();
    assert_eq!((manager.reserved_segments(), manager.overprovision_segments()), (5, 7));
}

#[test]
fn there_is_enough_while_what_is_dirty_fits() {
    // 20 sections, 6 of them with logs: 14 are free, 5 of them reserved.
    let geometry = geometry(20, 1);
    let mut config = SegmentConfig::new(geometry.clone(), 0, 0).user_floor(0);
    config.reserved_segments = 5;
    let entries = vec![RawSitEntry::ZERO; 20];
    let manager = SegmentManager::new(config, entries, vec![0; 64], LogState::at_the_start(&geometry)).unwrap();
    assert!(!manager.need_ssr() && manager.enough_free_sections(0, 8));
    assert!(!manager.enough_free_sections(0, 9) && manager.enough_free_sections(1, 9));
    // 4 sections of nodes and 100 blocks more, and no room for another section but where the logs stand.
    manager.set_pressure(4 * 512 + 100, 0);
    assert!(manager.enough_free_sections(0, 4));
    let node = [Summary::new(Nid(9), 0, 0); 450];
    manager.allocate(LogType::ColdNode, &node, 1, &mut Vec::new()).unwrap();
    assert!(!manager.enough_free_sections(0, 4), "62 blocks are left in the cold-node log's section");
    assert!(manager.enough_free_sections(0, 3));
    // Each directory block counts twice.
    manager.set_pressure(0, 512);
    assert!(manager.enough_free_sections(0, 6) && !manager.enough_free_sections(0, 7));
    manager.set_pressure(512, 512);
    assert!(!manager.need_ssr(), "1 + 2 + 2 * 5 sections are less than 14");
    manager.set_pressure(513, 512);
    assert!(manager.need_ssr());
}

struct Broken;

impl SummarySource for Broken {
    fn read_summary(&self, _: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Err("the disk is gone".into())
    }
}

#[test]
fn a_summary_that_cannot_be_read_takes_nothing() {
    let geometry = geometry(7, 1);
    let mut entries = vec![RawSitEntry::ZERO; 7];
    entries[6] = entry(LogType::WarmData, &[0, 1, 2]);
    let config = SegmentConfig::new(geometry.clone(), 0, 0).user_floor(0).summaries(Arc::new(Broken));
    let manager = SegmentManager::new(config, entries, vec![0; 64], LogState::at_the_start(&geometry)).unwrap();
    let summaries = [Summary::default(); 600];
    let mut runs = Vec::new();
    let error = manager.allocate(LogType::WarmData, &summaries, 1, &mut runs).unwrap_err();
    assert!(matches!(error, SegmentError::Source { segment: SegmentNo(6), .. }), "{error}");
    assert_eq!((runs.len(), manager.valid_blocks()), (0, 3));
    assert_eq!(manager.segment(SegmentNo(6)).unwrap().phase, Phase::Dirty);
    // The warm-node log does not even ask.
    let error = manager.allocate(LogType::WarmNode, &summaries, 1, &mut runs).unwrap_err();
    assert!(matches!(error, SegmentError::NoSpace { .. }), "{error}");
}

#[test]
fn a_full_store_has_room_to_delete() {
    let (sections, per_section) = (24u64, 2);
    let manager = SegmentManager::empty(SegmentConfig::embedded(48, per_section).unwrap()).unwrap();
    let section = u64::from(per_section) * 512;
    let (mut runs, mut data) = (Vec::new(), 0);
    while manager.allocate(LogType::WarmData, &[Summary::default()], 1, &mut runs).is_ok() {
        data += 1;
    }
    assert_eq!(data, (sections - 5 - 6) * section - 1, "as the documentation says");
    let new = |class| manager.allocate_node_as(class, NodeLog::Warm, Summary::default(), 1);
    while new(Class::User).is_ok() {}
    // Nobody gets more data or new nodes; what deleting writes still has the sections that are kept back.
    assert!(matches!(
        manager.allocate(LogType::HotData, &[Summary::default(); 1024], 1, &mut runs),
        Err(SegmentError::NoSpace { .. })
    ));
    for _ in 0..6 * section {
        new(Class::Checkpoint).unwrap();
    }
    assert_eq!(manager.free_sections(), 0);
    for run in runs {
        manager.invalidate_run(run, 2).unwrap();
    }
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
    assert!(u64::from(manager.free_sections()) >= sections - 5 - 6 - 1);
    manager.allocate(LogType::WarmData, &[Summary::default()], 3, &mut Vec::new()).unwrap();
}

#[test]
fn a_table_is_loaded_in_any_order_and_once() {
    let used = entry(LogType::WarmData, &[3, 4]);
    let mut idle = RawSitEntry::ZERO;
    idle.set_blocks(LogType::ColdNode, 0);
    idle.mtime.set(99);
    let mut entries = vec![RawSitEntry::ZERO; 20];
    (entries[15], entries[9]) = (used, idle);
    // The journal's entry counts, not the block's.
    let journal = [(SegmentNo(15), entry(LogType::ColdData, &[7]))];
    let table = SegmentTable::new(20, &journal).unwrap();
    table.load(SegmentNo(12), &entries[12..]).unwrap();
    table.load(SegmentNo(0), &entries[..12]).unwrap();
    assert_eq!((table.valid_blocks(LogType::ColdData), table.valid_blocks(LogType::WarmData)), (1, 0));
    assert!(table.valid_map(SegmentNo(15)).unwrap().contains(7));
    assert!(matches!(table.load(SegmentNo(9), &[used]), Err(SegmentError::LoadedTwice { segment: SegmentNo(9) })));
    assert!(matches!(
        table.load(SegmentNo(19), &[used; 2]),
        Err(SegmentError::OutsideTable { segment: SegmentNo(20), .. })
    ));
    assert!(matches!(SegmentTable::new(20, &[(SegmentNo(20), used)]), Err(SegmentError::OutsideTable { .. })));

    let table = SegmentTable::new(20, &journal).unwrap();
    table.load(SegmentNo(0), &entries).unwrap();
    let config = SegmentConfig::new(geometry(20, 1), 0, 0);
    let logs = LogState::at_the_start(&geometry(20, 1));
    let manager = SegmentManager::open(config, table, vec![0; 64], logs).unwrap();
    assert_eq!((manager.free_segments(), manager.valid_blocks()), (13, 1));
    let info = manager.segment(SegmentNo(9)).unwrap();
    assert_eq!((info.phase, info.log, info.mtime), (Phase::Free, LogType::ColdNode, 99));
    // Of a segment that was not used, a checkpoint writes the same as was read.
    let flush = manager.begin_checkpoint(0).unwrap();
    assert_eq!(flush.sit_blocks.len(), 1);
    assert_eq!(flush.sit_blocks[0].block.entries[9], idle);
    assert_eq!(flush.sit_blocks[0].block.entries[15], journal[0].1);
    // Nothing was ever taken there, and asking does not change that.
    let addr = manager.geometry().block_at(SegmentNo(10), 5);
    assert!(matches!(manager.invalidate(addr, 1), Err(SegmentError::NotValid { .. })));
    assert!(!manager.is_valid(addr));
    manager.release_segment(SegmentNo(10)).unwrap();
    assert_eq!(manager.segment(SegmentNo(10)).unwrap().phase, Phase::Free);
}

#[test]
fn an_adopted_block_takes_its_segment_back() {
    let manager = empty(&geometry(20, 1), |config| config);
    let free = manager.free_segments();
    let addr = manager.geometry().block_at(SegmentNo(15), 7);
    manager.hold(addr).unwrap();
    // Held, the segment is nobody's, until a checkpoint is durable.
    assert_eq!((manager.free_segments(), manager.prefree_segments()), (free - 1, 1));
    manager.adopt(addr, Summary::new(Nid(9), 0, 3), 1).unwrap();
    assert_eq!((manager.free_segments(), manager.prefree_segments(), manager.valid_blocks()), (free - 1, 0, 1));
    let info = manager.segment(SegmentNo(15)).unwrap();
    assert_eq!((info.phase, info.log, info.valid), (Phase::Dirty, LogType::WarmData, 1));
    let error = manager.adopt(addr, Summary::default(), 1).unwrap_err();
    assert!(matches!(error, SegmentError::InUse { offset: 7, .. }), "{error}");
    // Where a log stands it would write to the block, too.
    let ahead = manager.next_block(LogType::WarmData).offset(9);
    let error = manager.adopt(ahead, Summary::default(), 1).unwrap_err();
    assert!(matches!(error, SegmentError::Phase { expected: "left by its log", .. }), "{error}");
    assert_eq!(manager.valid_blocks(), 1);
}

/// An SSA whose summaries say that block 3 of each segment is node 9's.
#[derive(Debug)]
struct Ssa;

impl SummarySource for Ssa {
    fn read_summary(&self, _: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        let mut block = SummaryBlock::new_box();
        block.entries[3] = Summary::new(Nid(9), 0, 1);
        Ok(block)
    }
}

/// The checkpoint that was opened stays the valid one while the next is written: after a crash then it needs the
/// summaries of all its blocks, those among them that the recovery before gave up.
#[test]
fn an_adopted_block_keeps_the_summaries_of_the_checkpoint() {
    let geometry = geometry(20, 1);
    let segment = SegmentNo(15);
    let mut entries = vec![RawSitEntry::ZERO; 20];
    entries[15] = entry(LogType::WarmData, &[3]);
    let config = SegmentConfig::new(geometry.clone(), 0, 0).summaries(Arc::new(Ssa));
    let manager = SegmentManager::new(config, entries, vec![0; 64], LogState::at_the_start(&geometry)).unwrap();
    let (old, new) = (geometry.block_at(segment, 3), geometry.block_at(segment, 4));
    manager.hold(new).unwrap();
    manager.invalidate(old, 1).unwrap();
    manager.adopt(new, Summary::new(Nid(9), 0, 2), 1).unwrap();
    let flush = manager.begin_checkpoint(0).unwrap();
    let (_, summary) = flush.summaries.iter().find(|(which, _)| *which == segment).unwrap();
    assert_eq!(summary.entries[3..5], [Summary::new(Nid(9), 0, 1), Summary::new(Nid(9), 0, 2)]);
}

/// `cargo test -p f2fs-segment --features mutants --test opening` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let test = "an_adopted_block_keeps_the_summaries_of_the_checkpoint";
    f2fs_sync::assert_found(test, &["segment_adopts_with_an_empty_summary"], "left == right");
}

#[test]
fn free_segments_come_in_pieces_and_each_once() {
    // Logs stand in the first six.
    let manager = open(|entries, _| {
        for used in [9, 10, 14] {
            entries[used] = entry(LogType::WarmData, &[3]);
        }
    })
    .unwrap();
    let geometry = geometry(20, 1);
    let run = |first: u32, segments: u32| Run { addr: geometry.block_at(SegmentNo(first), 0), len: segments * 512 };
    assert_eq!(manager.free_runs(SegmentNo(0), 100), (vec![run(6, 3), run(11, 3), run(15, 5)], None));
    let (runs, next) = manager.free_runs(SegmentNo(0), 4);
    assert_eq!((runs, next), (vec![run(6, 3), run(11, 1)], Some(SegmentNo(12))));
    let (runs, next) = manager.free_runs(SegmentNo(12), 2);
    assert_eq!((runs, next), (vec![run(12, 2)], Some(SegmentNo(14))));
    assert_eq!(manager.free_runs(SegmentNo(19), 1), (vec![run(19, 1)], Some(SegmentNo(20))));
    assert_eq!(manager.free_runs(SegmentNo(20), 1), (Vec::new(), None));
}
