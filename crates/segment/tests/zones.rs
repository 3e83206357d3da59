//! Sections that are zones, against a model of them: each is written from its start to its capacity, and begun again
//! when it was reset.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::error::Error;
use std::sync::Arc;

use f2fs_format::feature::Features;
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::{Class, NodeLog, Run, SegmentConfig, SegmentError, SegmentManager, SummarySource};

const SEGMENTS: u32 = 4;
const SECTIONS: u32 = 24;
/// Sections in front of the zones.
const FIRST: u32 = 2;
const CAPACITY: u32 = 1100;

/// The write pointer of each zone.
struct Zones {
    main: u32,
    written: Vec<u32>,
}

impl Zones {
    fn write(&mut self, run: Run) {
        let at = run.addr.0 - self.main;
        let (section, offset) = (at / (SEGMENTS * 512), at % (SEGMENTS * 512));
        if section < FIRST {
            // Linux takes no more of it than of a zone.
            assert!(offset + run.len <= CAPACITY, "{run:?} of section {section}");
            return;
        }
        let written = &mut self.written[section as usize];
        assert_eq!(offset, *written, "{run:?} of section {section}");
        *written += run.len;
        assert!(*written <= CAPACITY, "{run:?} of section {section}");
    }
}

fn manager(lanes: usize) -> SegmentManager {
    let mut config = SegmentConfig::embedded(SECTIONS * SEGMENTS, SEGMENTS).unwrap();
    config.geometry.features = Features::BLKZONED;
    SegmentManager::empty(config.lanes(lanes).section_capacity(CAPACITY)).unwrap()
}

/// Blocks that a cleaner moves go to the end of a log: no hole of a zone can be filled, however old its neighbours are.
#[test]
fn moved_blocks_fill_no_holes_of_zones() {
    let manager = manager(1);
    let mut runs = Vec::new();
    let summaries: Vec<Summary> = (0..900).map(|slot| Summary::new(Nid(5), 0, slot)).collect();
    for now in 0..6 {
        manager.allocate(LogType::WarmData, &summaries, now, &mut runs).unwrap();
    }
    let flush = manager.begin_checkpoint(6).unwrap();
    for run in &runs {
        (0..run.len).step_by(2).for_each(|at| manager.invalidate(run.addr.offset(at), 6).unwrap());
    }
    drop(flush);
    manager.end_checkpoint();
    let from = manager.geometry().locate(runs[0].addr).unwrap().0;
    let mut moved = Vec::new();
    assert_eq!(manager.allocate_aged(from, &summaries[..40], 7, &mut moved).unwrap(), 0);
    let cold = manager.log(LogType::ColdData).segment;
    assert!(moved.iter().all(|run| manager.geometry().locate(run.addr).unwrap().0 == cold), "{moved:?}");
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let lanes = random.usize(1..4);
    let manager = manager(lanes);
    let mut zones = Zones { main: manager.geometry().main_blkaddr.0, written: vec![0; SECTIONS as usize] };
    let mut live: Vec<Run> = Vec::new();
    let (mut full, mut resets, mut moved) = (0, 0, 0);
    for step in 0..1500 {
        match random.u32(0..20) {
            0..=9 => {
                let log = [LogType::HotData, LogType::WarmData, LogType::ColdData][random.usize(0..3)];
                let count = random.u16(1..=900);
                let summaries: Vec<Summary> = (0..count).map(|slot| Summary::new(Nid(5), 0, slot)).collect();
                let mut runs = Vec::new();
                match manager.allocate_on(random.usize(0..lanes), Class::User, log, &summaries, step, &mut runs) {
                    Ok(()) => {
                        assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), u32::from(count));
                        runs.iter().for_each(|run| zones.write(*run));
                        live.append(&mut runs);
                    }
                    Err(SegmentError::NoSpace { .. }) => {
                        assert!(runs.is_empty());
                        full += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            10..=12 => {
                let log = NodeLog::ALL[random.usize(0..3)];
                for _ in 0..random.u32(1..100) {
                    let Ok((addr, next)) = manager.allocate_node(log, Summary::new(Nid(9), 0, 0), step) else { break };
                    zones.write(Run { addr, len: 1 });
                    assert_eq!(next, manager.next_block(log.log()));
                    live.push(Run { addr, len: 1 });
                }
            }
            13..=17 => {
                for _ in 0..random.usize(0..40).min(live.len()) {
                    let run = live.swap_remove(random.usize(0..live.len()));
                    manager.invalidate_run(run, step).unwrap();
                }
            }
            18 => {
                let unlucky = random.u32(0..6);
                let pointed = |addr: BlockAddr| (addr.0 / 512) % 6 == unlucky;
                match manager.leave_zones(pointed) {
                    Ok(count) => moved += count,
                    Err(SegmentError::NoSpace { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {
                manager.begin_checkpoint(6).unwrap();
                // The checkpoint is durable.
                for section in manager.sections_freed_by_checkpoint() {
                    zones.written[section as usize] = 0;
                    resets += 1;
                }
                manager.end_checkpoint();
                let standing = manager.sections_of_logs();
                let free = (0..SECTIONS).filter(|section| manager.is_section_free(*section));
                for section in free {
                    assert!(!standing.contains(&section));
                    assert_eq!(zones.written[section as usize], 0, "section {section} is free and was written");
                }
                assert_eq!(manager.valid_blocks(), live.iter().map(|run| u64::from(run.len)).sum::<u64>());
            }
        }
    }
    assert!(full > 0 && resets > 3 && moved > 0, "seed {seed}: {full} times full, {resets} resets, {moved} logs moved");
}

#[test]
fn zones_are_written_from_their_start_to_their_capacity() {
    (0..12).for_each(run);
}

#[test]
fn a_section_that_is_given_up_is_given_to_nobody() {
    let manager = manager(1);
    let before = (manager.free_sections(), manager.free_segments());
    manager.retire_section(20);
    manager.retire_section(20);
    assert_eq!((manager.free_sections(), manager.free_segments()), (before.0 - 1, before.1 - 3));
    // To the format it is free.
    let flush = manager.begin_checkpoint(6).unwrap();
    assert_eq!(flush.free_segments, SECTIONS * 3 - 6);
    manager.end_checkpoint();
    let summaries = vec![Summary::new(Nid(5), 0, 0); 100];
    let mut runs = Vec::new();
    while manager.allocate_as(Class::Checkpoint, LogType::WarmData, &summaries, 1, &mut runs).is_ok() {}
    let start = manager.geometry().main_blkaddr.0 + 20 * SEGMENTS * 512;
    assert!(runs.iter().all(|run| !(start..start + SEGMENTS * 512).contains(&run.addr.0)));
    assert_eq!(manager.free_sections(), 0);
}

#[test]
fn sizes_are_those_of_what_can_be_written() {
    let zoned = manager(1);
    assert_eq!((zoned.section_blocks(), zoned.section_segments()), (CAPACITY, 3));
    assert_eq!((zoned.free_sections(), zoned.free_segments()), (SECTIONS - 6, 3 * (SECTIONS - 6)));
    // Whole sections only.
    assert_eq!([2, 3, 6, 8].map(|segments| zoned.blocks_in(segments)), [0, 1100, 2200, 2200]);
    // A log's section is in use as a whole, though some of its segments are free.
    let summaries = vec![Summary::new(Nid(5), 0, 0); 100];
    zoned.allocate(LogType::WarmData, &summaries, 1, &mut Vec::new()).unwrap();
    assert_eq!(zoned.free_segments(), 3 * (SECTIONS - 6));

    let config = SegmentConfig::embedded(SECTIONS * SEGMENTS, SEGMENTS).unwrap();
    let whole = SegmentManager::empty(config).unwrap();
    assert_eq!((whole.section_blocks(), whole.section_segments()), (2048, 4));
    assert_eq!(whole.free_segments(), SECTIONS * SEGMENTS - 6);
    assert_eq!(whole.blocks_in(3), 1536);
}

/// Zones are begun anew when they are reset, which is as a whole: the owner is told of those alone.
#[test]
fn a_section_is_freed_when_the_last_of_its_segments_is() {
    let manager = manager(1);
    let section = |segment: u32| segment / SEGMENTS;
    let mut runs = Vec::new();
    let summaries = vec![Summary::new(Nid(5), 0, 0); 2 * CAPACITY as usize];
    manager.allocate(LogType::WarmData, &summaries, 1, &mut runs).unwrap();
    let first: Vec<Run> = runs.iter().copied().filter(|run| run.addr.0 < runs[0].addr.0 + CAPACITY).collect();
    assert_eq!(first.iter().map(|run| run.len).sum::<u32>(), CAPACITY);
    let start = manager.geometry().locate(first[0].addr).unwrap().0.0;
    let free = |from: u32, len: u32| {
        manager.invalidate_run(Run { addr: first[0].addr.offset(from), len }, 2).unwrap();
    };
    free(0, 512);
    free(1024, CAPACITY - 1024);
    manager.begin_checkpoint(6).unwrap();
    assert!(manager.sections_freed_by_checkpoint().is_empty(), "the segment in the middle is in use");
    manager.end_checkpoint();
    assert!(!manager.is_section_free(section(start)));
    free(512, 512);
    assert!(manager.sections_freed_by_checkpoint().is_empty(), "no checkpoint was begun");
    manager.begin_checkpoint(6).unwrap();
    assert_eq!(manager.sections_freed_by_checkpoint(), [section(start)]);
    manager.end_checkpoint();
    assert!(manager.is_section_free(section(start)));
    assert!(manager.sections_of_logs().iter().all(|standing| *standing != section(start)));
}

#[test]
fn a_section_that_the_volume_does_not_have_is_given_up_without_harm() {
    let manager = manager(1);
    let before = (manager.free_sections(), manager.free_segments());
    manager.retire_section(SECTIONS);
    manager.retire_section(u32::MAX);
    assert_eq!((manager.free_sections(), manager.free_segments()), before);
    assert_eq!(manager.begin_checkpoint(6).unwrap().free_segments, SECTIONS * 3 - 6);
}

/// A log that has to leave its zone for another one finds none: it is told, and what moved so far has moved.
#[test]
fn logs_leave_zones_while_there_are_free_ones() {
    let manager = manager(1);
    let at = |log: LogType| manager.log(log).segment;
    let before = LogType::ALL.map(at);
    assert_eq!(manager.leave_zones(|_| false).unwrap(), 0);
    assert_eq!(LogType::ALL.map(at), before);
    let warm = manager.next_block(LogType::WarmData);
    assert_eq!(manager.leave_zones(|addr| addr == warm).unwrap(), 1);
    assert!(
        LogType::ALL.into_iter().zip(before).all(|(log, segment)| (at(log) == segment) != (log == LogType::WarmData))
    );
    // Three times six logs, with seventeen sections that are free.
    assert_eq!(manager.leave_zones(|_| true).unwrap(), 6);
    assert_eq!(manager.leave_zones(|_| true).unwrap(), 6);
    let error = manager.leave_zones(|_| true).unwrap_err();
    assert!(matches!(error, SegmentError::NoSpace { log: LogType::ColdNode, free: 0, .. }), "{error}");
    // All that they left is free with the next checkpoint.
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
    assert_eq!(manager.free_sections(), SECTIONS - 6);
}

struct Blank;

impl SummarySource for Blank {
    fn read_summary(&self, _: SegmentNo) -> Result<Box<SummaryBlock>, Box<dyn Error + Send + Sync>> {
        Ok(SummaryBlock::new_box())
    }
}

/// Also where old summaries could be read: a zone is written from its start to its end.
#[test]
fn holes_of_zones_are_not_filled() {
    let mut config = SegmentConfig::embedded(7 * SEGMENTS, SEGMENTS).unwrap();
    config.geometry.features = Features::BLKZONED;
    let manager = SegmentManager::empty(config.user_floor(0).summaries(Arc::new(Blank))).unwrap();
    let take = |count| {
        let mut runs = Vec::new();
        let summaries = vec![Summary::new(Nid(5), 0, 0); count];
        manager.allocate(LogType::WarmData, &summaries, 1, &mut runs).map(|()| runs)
    };
    // The log's section, and into the only one that is free.
    let runs = take(3000).unwrap();
    (0..1024).for_each(|at| manager.invalidate(runs[0].addr.offset(2 * at), 1).unwrap());
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
    assert!(matches!(take(1200), Err(SegmentError::NoSpace { free: 0, .. })));
    assert_eq!(manager.mean_hole(LogType::WarmData), 512.0 - f64::from((3000u32 - 2048) % 512));
}
