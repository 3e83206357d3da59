//! What a checkpoint writes, counts and frees, step by step.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Disk, empty, geometry};
use f2fs_format::summary::Summary;
use f2fs_format::{LogType, Nid, SegmentNo};
use f2fs_segment::{Phase, Run, SegmentManager};

fn take(manager: &SegmentManager, count: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    manager.allocate(LogType::WarmData, &vec![Summary::new(Nid(9), 0, 0); count], 1, &mut runs).unwrap();
    runs
}

fn whole(manager: &SegmentManager, segment: u32) -> Run {
    Run { addr: manager.geometry().block_at(SegmentNo(segment), 0), len: 512 }
}

/// A summary that has reached the SSA is not written by the checkpoint after.
#[test]
fn summaries_of_left_segments_are_written_once() {
    let manager = empty(&geometry(30, 1), |config| config);
    let numbers = |manager: &SegmentManager| {
        let flush = manager.begin_checkpoint(6).unwrap();
        flush.summaries.iter().map(|(segment, _)| segment.0).collect::<Vec<u32>>()
    };
    take(&manager, 512);
    assert!(manager.summary(SegmentNo(1)).is_some());
    assert_eq!(numbers(&manager), [1]);
    // A checkpoint that fails has written none.
    assert_eq!(numbers(&manager), [1]);
    // One that is put aside meanwhile is for the next.
    take(&manager, 512);
    manager.end_checkpoint();
    assert!(manager.summary(SegmentNo(1)).is_none(), "the SSA has it");
    assert!(manager.summary(SegmentNo(6)).is_some());
    assert_eq!(numbers(&manager), [6]);
    manager.end_checkpoint();
    assert!(numbers(&manager).is_empty());
}

#[test]
fn segments_that_become_free_are_counted_and_told() {
    let manager = empty(&geometry(30, 1), |config| config);
    let runs = take(&manager, 5 * 512);
    let used: Vec<u32> = runs
        .iter()
        .flat_map(|run| (0..run.len / 512).map(|at| manager.geometry().locate(run.addr.offset(at * 512)).unwrap().0.0))
        .collect();
    let [_, second, third, fourth, fifth] = used[..] else { panic!("{used:?}") };
    let free = manager.free_segments();
    assert_eq!(manager.freed_by_checkpoint(), []);
    for segment in [second, third, fifth] {
        manager.invalidate_run(whole(&manager, segment), 2).unwrap();
    }
    assert_eq!((manager.free_segments(), manager.prefree_segments()), (free, 3));
    let flush = manager.begin_checkpoint(6).unwrap();
    // To the format they are free already.
    assert_eq!(flush.free_segments, free + 3);
    // The last is not for this checkpoint, as it is emptied after its state was taken.
    manager.invalidate_run(whole(&manager, fourth), 2).unwrap();
    let pair = Run { len: 1024, ..whole(&manager, second) };
    assert_eq!(third, second + 1);
    assert_eq!(manager.freed_by_checkpoint(), [pair, whole(&manager, fifth)]);
    assert_eq!(manager.end_checkpoint(), [pair, whole(&manager, fifth)]);
    assert_eq!((manager.free_segments(), manager.prefree_segments()), (free + 3, 1));
    assert_eq!(manager.end_checkpoint(), [], "nothing was begun");
    assert_eq!(manager.begin_checkpoint(6).unwrap().free_segments, free + 4);
    assert_eq!(manager.end_checkpoint(), [whole(&manager, fourth)]);
    assert_eq!((manager.free_segments(), manager.prefree_segments()), (free + 4, 0));
    assert!([second, fourth].iter().all(|number| manager.segment(SegmentNo(*number)).unwrap().phase == Phase::Free));
}

#[test]
fn changed_entries_are_those_that_no_preparation_has_seen() {
    let mut disk = Disk::new(geometry(180, 1));
    let manager = disk.open(|config| config);
    assert_eq!(manager.changed_entries(), 0);
    take(&manager, 1200);
    assert_eq!(manager.changed_entries(), 3);
    manager.prepare_checkpoint();
    assert_eq!(manager.changed_entries(), 0);
    take(&manager, 1);
    assert_eq!(manager.changed_entries(), 1);
    // The checkpoint writes both.
    let flush = manager.begin_checkpoint(0).unwrap();
    let valid: u32 = flush
        .sit_blocks
        .iter()
        .flat_map(|write| &write.block.entries)
        .map(f2fs_format::sit::RawSitEntry::valid_blocks)
        .sum();
    assert_eq!((manager.changed_entries(), valid), (0, 1201));
    disk.write_areas(&flush);
    disk.commit(flush);
    manager.end_checkpoint();
    assert_eq!(disk.open(|config| config).valid_blocks(), 1201);
}

/// The journal is written whole each time, and a block of the table to the copy that is not in use.
#[test]
fn entries_stay_in_the_journal_until_their_block_is_written() {
    let manager = empty(&geometry(180, 1), |config| config);
    let flush = |capacity| {
        let flush = manager.begin_checkpoint(capacity).unwrap();
        let journal: Vec<u32> = flush.sit_journal.iter().map(|(segment, _)| segment.0).collect();
        let blocks: Vec<(u32, bool)> = flush.sit_blocks.iter().map(|write| (write.index, write.second)).collect();
        (journal, blocks, flush.sit_bitmap[0])
    };
    take(&manager, 1);
    assert_eq!(flush(6), (vec![1], vec![], 0));
    manager.end_checkpoint();
    // Nothing has changed.
    assert_eq!(flush(6), (vec![1], vec![], 0));
    manager.end_checkpoint();
    // It has no room in the journal any more. A checkpoint that fails changes nothing.
    for _ in 0..2 {
        assert_eq!(flush(0), (vec![], vec![(0, true)], 0x80));
    }
    manager.end_checkpoint();
    assert_eq!(flush(6), (vec![], vec![], 0x80));
    manager.end_checkpoint();
    take(&manager, 1);
    assert_eq!(flush(0), (vec![], vec![(0, false)], 0));
    manager.end_checkpoint();
}

/// A log rests on a block that can be written: a request that fills its segment to the end claims the next one.
#[test]
fn a_log_moves_on_with_the_last_block_of_its_segment() {
    let manager = empty(&geometry(30, 1), |config| config);
    take(&manager, 511);
    let log = manager.log(LogType::WarmData);
    assert_eq!((log.segment, log.next_offset), (SegmentNo(1), 511));
    take(&manager, 1);
    let log = manager.log(LogType::WarmData);
    assert_eq!((log.segment, log.next_offset), (SegmentNo(6), 0));
    let left = manager.segment(SegmentNo(1)).unwrap();
    assert_eq!((left.phase, left.valid, left.log), (Phase::Full, 512, LogType::WarmData));
}
