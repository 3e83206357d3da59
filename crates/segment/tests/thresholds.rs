//! How many sections must be free for what: to the block.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{empty, geometry};
use f2fs_format::summary::Summary;
use f2fs_format::{LogType, Nid};
use f2fs_segment::{Class, SegmentConfig, SegmentManager};

fn manager(segments: u32, per_section: u32, reserved: u32) -> SegmentManager {
    empty(&geometry(segments, per_section), |mut config: SegmentConfig| {
        config.reserved_segments = reserved;
        config.user_floor(2)
    })
}

/// Takes blocks of a log with the last segment's right.
fn take(manager: &SegmentManager, log: LogType, count: usize) {
    let summaries = vec![Summary::new(Nid(9), 0, 0); count];
    manager.allocate_as(Class::Checkpoint, log, &summaries, 1, &mut Vec::new()).unwrap();
}

#[test]
fn it_is_roomy_up_to_the_last_section_that_users_leave() {
    let manager = manager(20, 1, 0);
    assert_eq!((manager.free_sections(), manager.floor(Class::User)), (14, 2));
    assert!(manager.is_roomy(0) && manager.is_roomy(12) && !manager.is_roomy(13));
    manager.set_pressure(513, 1);
    // 514 blocks take two sections, and the dentry's node may take another one.
    assert_eq!([Class::User, Class::Cleaner, Class::Checkpoint].map(|class| manager.floor(class)), [5, 3, 0]);
    assert!(manager.is_roomy(9) && !manager.is_roomy(10));
}

#[test]
fn reserves_are_whole_sections() {
    assert_eq!(manager(40, 2, 7).reserved_sections(), 3);
    assert_eq!(manager(20, 1, 7).reserved_sections(), 7);
    assert_eq!(manager(40, 2, 0).reserved_sections(), 0);
}

/// Directory blocks count twice, as does the reserve.
#[test]
fn holes_are_filled_from_the_last_section_on() {
    for (nodes, dents, reserved, needed) in
        [(0, 0, 7, true), (0, 0, 6, false), (1, 1025, 3, false), (513, 1025, 3, true), (1024, 1536, 3, true)]
    {
        // 14 sections are free.
        let manager = manager(20, 1, reserved);
        manager.set_pressure(nodes, dents);
        assert_eq!(manager.need_ssr(), needed, "{nodes} nodes, {dents} dentries, {reserved} reserved");
    }
    // Without a reserve: the last section.
    let manager = manager(7, 1, 0);
    assert!(!manager.need_ssr());
    take(&manager, LogType::ColdData, 512);
    assert!(manager.need_ssr());
}

#[test]
fn room_is_enough_with_a_section_beyond_what_is_needed() {
    // 14 sections are free, 3 of them reserved.
    let manager = manager(20, 1, 3);
    assert!(manager.enough_free_sections(0, 10) && !manager.enough_free_sections(0, 11));
    assert!(manager.enough_free_sections(2, 12) && !manager.enough_free_sections(2, 13));
    // Whole sections: 4 for nodes and dentries together, and 2 for dentries.
    manager.set_pressure(1024, 1024);
    assert!(manager.enough_free_sections(0, 4) && !manager.enough_free_sections(0, 5));
    // A block more of each: they fit where the logs stand, once for a node and twice for a dentry.
    manager.set_pressure(1024, 1025);
    assert!(manager.enough_free_sections(0, 4) && !manager.enough_free_sections(0, 5));
    // Two sections more than enough, and then where logs stand does not matter.
    take(&manager, LogType::HotNode, 511);
    manager.set_pressure(1024, 1026);
    assert!(manager.enough_free_sections(0, 2));
    assert!(!manager.enough_free_sections(0, 4) && !manager.enough_free_sections(0, 3), "a block is left for two");
}

/// What is odd of nodes has to fit into the section of each node log, what is odd of dentries into that of hot data:
/// all of a section counts, also its segments that were written before.
#[test]
fn odd_blocks_fit_into_the_sections_of_their_logs() {
    let section = 2 * 512;
    for (log, nodes, dents) in [
        (LogType::HotNode, 100, 0),
        (LogType::WarmNode, 100, 0),
        (LogType::ColdNode, 100, 0),
        (LogType::HotData, 0, 100),
        (LogType::WarmData, 100, 0),
    ] {
        let manager = manager(40, 2, 0);
        manager.set_pressure(nodes, dents);
        // 14 sections are free: with 13 of them needed, it is the odd blocks that decide.
        assert!(manager.enough_free_sections(0, 13) && !manager.enough_free_sections(0, 14));
        take(&manager, log, section - 100 - 1);
        assert!(manager.enough_free_sections(0, 13), "{} has room for 101", log.name());
        take(&manager, log, 1);
        assert!(manager.enough_free_sections(0, 13), "{} has room for 100", log.name());
        take(&manager, log, 1);
        assert_eq!(manager.enough_free_sections(0, 13), log == LogType::WarmData, "{} has room for 99", log.name());
    }
}

#[test]
fn what_is_dirty_may_become_less() {
    let manager = manager(20, 1, 0);
    manager.set_pressure(600, 600);
    assert_eq!(manager.dirty_sections(), 5);
    manager.set_pressure(600, 0);
    assert_eq!(manager.dirty_sections(), 2);
    manager.set_pressure(0, 0);
    assert_eq!(manager.dirty_sections(), 0);
}
