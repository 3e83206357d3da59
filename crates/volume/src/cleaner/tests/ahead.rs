//! Steps of operations, on zones.

use f2fs_device::AlignedBuf;

use super::*;
use crate::Flight;
use crate::samples::{leave_free, zoned};
use crate::tree::Slot;

/// While there is room, a section is left to become emptier.
#[test]
fn fuller_sections_are_emptied_when_room_is_short() {
    let volume = zoned(96, 1);
    filled(&volume, &[384]);
    // 14 are none that a step may use, and of 16 others half are left.
    leave_free(&volume, 14 + 9);
    assert_eq!(volume.cleaning().step_ahead(), None);
    assert!(!volume.pressure.step_may_help(14 + 9), "none is looked for as long as as many are free");
    leave_free(&volume, 14 + 8);
    let step = volume.cleaning().step_ahead().unwrap();
    assert_eq!((step.valid, step.data_blocks, step.segments), (384, 384, 1));
    assert!(volume.pressure.step_may_help(14 + 8));

    let volume = zoned(96, 1);
    filled(&volume, &[383]);
    leave_free(&volume, 14 + 9);
    assert_eq!(volume.cleaning().step_ahead().map(|step| step.data_blocks), Some(383));
    assert_eq!(volume.pressure.emptied_of_nodes(volume.epoch()), 0);
}

/// Sections of nodes become free by the checkpoint that writes the nodes elsewhere: that they were emptied is counted.
#[test]
fn sections_of_nodes_are_counted() {
    let volume = zoned(96, 1);
    eighth_of_nodes(&volume);
    let step = volume.cleaning().step_ahead().unwrap();
    assert_eq!((step.node_blocks, step.segments), (64, 1));
    assert_eq!(volume.pressure.emptied_of_nodes(volume.epoch()), 1);
}

#[test]
fn a_section_of_which_something_is_left_is_no_gain() {
    let volume = zoned(96, 1);
    let (writer, node) = (inode(&volume), inode(&volume));
    write(&volume, &node, 0..511, LogType::WarmData);
    volume.slots().clear(&volume.begin().unwrap(), &node, 99..511, |_, _| {}).unwrap();
    settle(&volume);
    let op = volume.begin().unwrap();
    volume.data().reserve(&op, 1).unwrap();
    let slot = Slot { node: writer, index: 0 };
    let flight = Flight::begin_blocks(&op, LogType::WarmData, [slot].into_iter(), AlignedBuf::new(1), 0).unwrap();
    drop(op);
    write(&volume, &inode(&volume), 0..1, LogType::WarmData);
    let free = segments(&volume).free_sections();
    assert_eq!(volume.cleaning().step_ahead(), None);
    assert!(!volume.pressure.step_may_help(free));
    flight.land_slots(&volume.begin().unwrap(), |_, _| {}).unwrap();
}

/// Where there is no room for a step none is tried, and when there is, one is looked for again.
#[test]
fn a_step_without_room_has_not_failed() {
    let volume = zoned(96, 1);
    filled(&volume, &[100]);
    leave_free(&volume, 14);
    assert_eq!(volume.cleaning().step_ahead(), None);
    assert!(volume.pressure.step_may_help(14));
}
