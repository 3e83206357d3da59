//! Cleaning with the gate closed.

use super::*;
use crate::cleaner::WORTH;
use crate::samples::{assert_content, leave_free, plain, zoned};
use crate::{CleanReport, VictimPolicy, VolumeError};

fn clean(volume: &Volume, goal: u32) -> CleanReport {
    volume.cleaning().clean_until::<VolumeError>(goal, |_| Ok(())).unwrap()
}

/// Victims of one round.
fn round(volume: &Volume, goal: u32) -> u64 {
    let mut report = CleanReport::default();
    let cleaning = volume.cleaning();
    let closed = volume.checkpoints();
    let victims: Result<u64, VolumeError> =
        closed.with_gate_closed(|_| Ok(()), |op, _| cleaning.round(op, goal, &mut report));
    let victims = victims.unwrap();
    assert_eq!(victims, report.victims);
    victims
}

#[test]
fn a_cleaning_makes_as_much_room_as_it_was_asked_for() {
    let volume = plain(256);
    let nodes = filled(&volume, &[100; 5]);
    let before = volume.stat();
    let report = clean(&volume, before.free_segments + 2);
    assert_eq!((report.victims, report.data_blocks, report.node_blocks, report.checkpoints), (3, 300, 0, 1));
    assert_eq!(report.free_segments, before.free_segments + 3);
    assert_eq!(report.free_segments, volume.stat().free_segments);
    let stat = volume.stat().written.minus(&before.written);
    assert_eq!((stat.victims, stat.moved_data_blocks, stat.cleanings_alone, stat.checkpoints), (3, 300, 1, 1));
    assert_eq!(marked(&volume), []);
    assert!(volume.pressure.cleaning_may_help(1, &volume.space, segments(&volume)), "it did not fall short");
    // Nothing has to be done for what is free already, but a checkpoint.
    let report = clean(&volume, report.free_segments);
    assert_eq!((report.victims, report.checkpoints), (0, 1));
    assert!(volume.pressure.cleaning_may_help(1, &volume.space, segments(&volume)));
    // More than there is.
    let report = clean(&volume, u32::MAX);
    assert_eq!((report.victims, report.data_blocks), (2, 200));
    assert!(!volume.pressure.cleaning_may_help(1, &volume.space, segments(&volume)), "it fell short");
    assert!(!volume.pressure.holes_may_be_new(volume.stat().written.user_blocks));
    nodes.iter().for_each(|node| assert_content(&volume, node, 0..100));
}

#[test]
fn a_round_ends_when_enough_is_gained() {
    let volume = plain(256);
    filled(&volume, &[128; 6]);
    assert_eq!(round(&volume, volume.stat().free_segments + 2), 3);
}

#[test]
fn nearly_full_sections_are_no_victims() {
    let volume = plain(256);
    filled(&volume, &[504]);
    assert_eq!((round(&volume, u32::MAX), marked(&volume)), (0, vec![]));
    let volume = plain(256);
    filled(&volume, &[503]);
    assert_eq!(round(&volume, u32::MAX), 1);
}

/// What is moved, what is dirty, and what the logs leave unfinished has to fit into what is free.
#[test]
fn a_round_takes_no_more_than_there_is_room_for() {
    let volume = zoned(96, 1);
    filled(&volume, &[300; 6]);
    leave_free(&volume, 6);
    assert_eq!(round(&volume, u32::MAX), 4);
    assert_eq!(marked(&volume).len(), 4, "they wait for the checkpoint");

    let volume = zoned(96, 1);
    filled(&volume, &[300]);
    leave_free(&volume, 3);
    assert_eq!((round(&volume, u32::MAX), marked(&volume)), (0, vec![]));

    // To the block: four sections without three, and 36 dirty nodes.
    for (valid, victims) in [(476, 1), (477, 0)] {
        let volume = zoned(96, 1);
        filled(&volume, &[valid]);
        (0..36).for_each(|_| drop(inode(&volume)));
        leave_free(&volume, 4);
        assert_eq!((volume.stat().dirty_nodes, round(&volume, u32::MAX)), (36, victims), "{valid}");
    }
}

/// A cleaning whose first round takes as much as it gives: two sections are emptied, and as many hold the nodes that were
/// dirty before.
fn in_vain(volume: &Volume) -> CleanReport {
    filled(volume, &[100; 4]);
    (0..1023).for_each(|_| drop(inode(volume)));
    clean(volume, volume.stat().free_segments + 1)
}

/// Logs that write into holes use those that the first round left. On zones only the next round does.
#[test]
fn a_round_that_gains_nothing_is_the_last_one_but_on_zones() {
    let report = in_vain(&plain(256));
    assert_eq!((report.checkpoints, report.victims), (1, 2), "{report:?}");
    let report = in_vain(&zoned(96, 1));
    assert_eq!((report.checkpoints, report.victims), (2, 4), "{report:?}");
}

#[test]
fn where_nothing_is_to_be_gained_one_checkpoint_is_enough() {
    for volume in [plain(64), zoned(96, 1)] {
        let report = clean(&volume, u32::MAX);
        assert_eq!((report.checkpoints, report.victims), (1, 0), "{report:?}");
    }
}

/// Sections that operations began to empty are nobody's any more: the cleaning chooses as it likes.
#[test]
fn sections_that_were_begun_are_given_back() {
    let volume = zoned(96, 4);
    filled(&volume, &[300, 300, 200, 200]);
    assert!(volume.cleaning().try_step(VictimPolicy::Greedy, WORTH, 1).is_ok() && volume.victims.has_begun());
    assert_eq!(marked(&volume).len(), 4);
    let report = clean(&volume, 0);
    assert_eq!((report.victims, volume.victims.has_begun(), marked(&volume)), (0, false, vec![]));
}

/// What a writer is not done with is left, other sections are emptied, and the section is as it was.
#[test]
fn a_section_that_cannot_be_emptied_is_passed_over() {
    let volume = plain(256);
    let (node, _, flight) = with_a_write_on_its_way(&volume);
    let from = segment_of(&volume, &node);
    let others = filled(&volume, &[200, 300]);
    let report = clean(&volume, u32::MAX);
    assert_eq!((report.victims, report.data_blocks, marked(&volume)), (2, 599, vec![]));
    assert_eq!(volume.segment(from).unwrap().valid, 1);
    assert_content(&volume, &node, 0..99);
    assert_content(&volume, &others[1], 0..300);
    flight.land_slots(&volume.begin().unwrap(), |_, _| {}).unwrap();
}

/// If the logs find no room after all, the round ends, and the section is as it was.
#[test]
fn a_round_ends_where_there_is_no_room_after_all() {
    let volume = plain(256);
    write(&volume, &inode(&volume), 0..500, LogType::ColdData);
    let nodes = filled(&volume, &[100]);
    // More than is dirty in truth.
    segments(&volume).set_pressure(512 * segments(&volume).free_sections(), 0);
    assert_eq!((round(&volume, u32::MAX), marked(&volume)), (0, vec![]));
    assert_content(&volume, &nodes[0], 0..100);
}
