//! Steps beside operations.

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_sync::PlainArc;

use super::*;
use crate::cleaner::step::Tried;
use crate::cleaner::{Emptied, WORTH};
use crate::format::FormatOptions;
use crate::samples::{address, assert_content, leave_free, made, plain, zoned};
use crate::{AgeThreshold, CleanReport, NewNode, VictimPolicy, VolumeError};

#[test]
fn a_step_moves_what_is_in_use_and_tells_what_it_moved() {
    let volume = plain(256);
    let nodes = filled(&volume, &[100]);
    let before = volume.stat();
    let from = segment_of(&volume, &nodes[0]);
    let moves = volume.moves(nodes[0].nid());
    let step = volume.cleaning().step(VictimPolicy::Greedy).unwrap().unwrap();
    assert_eq!((step.valid, step.data_blocks, step.node_blocks, step.segments), (100, 100, 0, 1));
    let stat = volume.stat().written.minus(&before.written);
    assert_eq!((stat.victims, stat.moved_data_blocks, stat.merged_data_blocks), (1, 100, 0));
    assert_eq!((stat.moved_node_blocks, stat.lost_moves), (0, 0));
    assert_content(&volume, &nodes[0], 0..100);
    assert_eq!(info(&volume, &nodes[0]).log, LogType::ColdData);
    assert_eq!(volume.moves(nodes[0].nid()), moves + 100, "addresses that are remembered are old");
    // The node that names other blocks now has its room kept free.
    assert_eq!(segments(&volume).dirty_sections(), 1);
    assert_eq!((volume.stat().prefree_segments, marked(&volume)), (1, vec![from.0]));
    settle(&volume);
    assert_eq!((volume.stat().free_segments, marked(&volume)), (before.free_segments + 1, vec![]));
    assert_content(&volume, &nodes[0], 0..100);
    assert_eq!(volume.cleaning().step(VictimPolicy::Greedy).unwrap(), None, "nothing is left to empty");
}

#[test]
fn nodes_are_moved_by_the_checkpoint() {
    let volume = plain(256);
    eighth_of_nodes(&volume);
    let before = volume.stat();
    let step = volume.cleaning().step(VictimPolicy::Greedy).unwrap().unwrap();
    assert_eq!((step.valid, step.data_blocks, step.node_blocks, step.segments), (64, 0, 64, 1));
    assert_eq!(volume.stat().dirty_nodes, 64);
    assert_eq!(volume.stat().written.minus(&before.written).moved_node_blocks, 64);
    settle(&volume);
    assert_eq!(volume.stat().free_segments, before.free_segments + 1);
    assert_eq!(volume.stat().valid_nodes, before.valid_nodes);
}

#[test]
fn a_section_that_is_nearly_full_is_not_worth_it() {
    let volume = plain(256);
    filled(&volume, &[504]);
    assert_eq!(volume.cleaning().step(VictimPolicy::Greedy).unwrap(), None);
    assert_eq!(marked(&volume), []);
    let volume = plain(256);
    let nodes = filled(&volume, &[503]);
    let step = volume.cleaning().step(VictimPolicy::Greedy).unwrap().unwrap();
    assert_eq!((step.valid, step.data_blocks, step.segments), (503, 503, 1));
    assert_content(&volume, &nodes[0], 0..503);
}

#[test]
fn old_blocks_go_among_others_of_their_age() {
    let volume = plain(256);
    let nodes = filled(&volume, &[100, 400]);
    let beside = segment_of(&volume, &nodes[1]);
    let step = volume.cleaning().step(VictimPolicy::AgeThreshold(AgeThreshold::default())).unwrap().unwrap();
    assert_eq!((step.valid, step.data_blocks, step.segments), (100, 100, 1));
    assert_eq!(volume.stat().written.merged_data_blocks, 100);
    assert_eq!(segment_of(&volume, &nodes[0]), beside);
    assert_content(&volume, &nodes[0], 0..100);
}

/// Sections that users must leave free, and two more, are none that a step may use.
#[test]
fn a_step_leaves_a_checkpoint_its_room() {
    for (volume, last) in [(plain(256), 8), (zoned(96, 1), 14)] {
        filled(&volume, &[100]);
        leave_free(&volume, last + 1);
        segments(&volume).set_pressure(1, 0);
        assert_eq!(volume.cleaning().step_floor(), last + 1);
        assert_eq!(volume.cleaning().step(VictimPolicy::Greedy).unwrap(), None);
        assert_eq!(marked(&volume), []);
        segments(&volume).set_pressure(0, 0);
        assert!(volume.cleaning().step(VictimPolicy::Greedy).unwrap().is_some());
    }
}

/// Beside another step there has to be room for both.
#[test]
fn steps_in_flight_count() {
    let volume = plain(256);
    filled(&volume, &[100, 100]);
    leave_free(&volume, 8 + 5);
    let other = volume.steps.begin();
    assert_eq!(volume.cleaning().step(VictimPolicy::Greedy).unwrap(), None);
    drop(other);
    assert!(volume.cleaning().step(VictimPolicy::Greedy).unwrap().is_some());
    segments(&volume).set_pressure(0, 0);
    assert!(volume.cleaning().step(VictimPolicy::Greedy).unwrap().is_some(), "the first one has ended");
}

/// A large section is emptied by segments, until enough was moved, and whoever comes next goes on.
#[test]
fn a_large_section_is_emptied_in_parts() {
    let volume = zoned(96, 4);
    let mut nodes = filled(&volume, &[300, 300, 200, 200]);
    let first = segment_of(&volume, &nodes[0]).0;
    assert_eq!(first % 4, 0);
    let part = |most| volume.cleaning().try_step(VictimPolicy::Greedy, WORTH, most).unwrap();
    assert!(matches!(part(300), Tried::Begun));
    assert!(volume.victims.has_begun());
    assert_eq!((nodes.len(), marked(&volume)), (4, (first..first + 4).collect()));
    assert_eq!(volume.stat().written.moved_data_blocks, 300, "as many as it was asked for");
    assert!(matches!(part(301), Tried::Begun));
    assert_eq!(volume.stat().written.moved_data_blocks, 800, "the second one alone was too few");
    let Tried::Emptied(step) = part(300) else { panic!("something is left") };
    assert_eq!((step.valid, step.data_blocks, step.segments), (1000, 200, 4));
    assert!(!volume.victims.has_begun());
    for (node, valid) in nodes.drain(..).zip([300, 300, 200, 200]) {
        assert_content(&volume, &node, 0..valid);
    }
    assert_eq!(volume.stat().prefree_segments, 4);
}

/// What a writer is not done with stays where it is.
#[test]
fn a_block_that_is_on_its_way_is_left() {
    let volume = plain(256);
    let (node, writer, flight) = with_a_write_on_its_way(&volume);
    write(&volume, &inode(&volume), 0..1, LogType::WarmData);
    let from = info(&volume, &node);
    assert_eq!(from.valid, 100);
    let step = volume.cleaning().step(VictimPolicy::Greedy).unwrap().unwrap();
    assert_eq!((step.valid, step.data_blocks, step.segments), (100, 99, 0));
    assert_content(&volume, &node, 0..99);
    assert_eq!((volume.segment(from.segment).unwrap().valid, marked(&volume)), (1, vec![]));
    assert_eq!(volume.stat().written.victims, 0);
    let op = volume.begin().unwrap();
    flight.land_slots(&op, |_, _| {}).unwrap();
    assert_eq!(segment_of(&volume, &writer), from.segment);
}

/// Sections that cannot be read are passed over, a few of them: the part of the reserve that may be missing.
#[test]
fn few_sections_that_cannot_be_read_are_set_aside() {
    let device = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(256 << 8))));
    let volume = made(device.clone(), &FormatOptions::default());
    assert_eq!(segments(&volume).reserved_sections(), 21);
    let nodes = filled(&volume, &[100, 100, 100, 100]);
    device.arm(FaultRule::on([Operation::Read]).for_good());
    for tried in 1..5 {
        let result = volume.cleaning().step(VictimPolicy::Greedy);
        assert!(matches!(result, Err(VolumeError::Device(_))), "{tried}: {result:?}");
        assert_eq!(marked(&volume).len(), tried.min(2));
    }
    device.disarm();
    // The others can be emptied, and these as well when a cleaning is alone.
    for _ in 0..2 {
        assert!(volume.cleaning().step(VictimPolicy::Greedy).unwrap().is_some());
    }
    assert_eq!(volume.cleaning().step(VictimPolicy::Greedy).unwrap(), None);
    let report = volume.cleaning().clean_until::<VolumeError>(u32::MAX, |_| Ok(())).unwrap();
    assert_eq!((report.victims, report.data_blocks, marked(&volume)), (2, 200, vec![]));
    nodes.iter().for_each(|node| assert_content(&volume, node, 0..100));
}

/// Of whatever a step has to read: if it cannot, it says so.
#[test]
fn no_error_of_reading_is_passed_over() {
    for after in 0.. {
        let device = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(64 << 8))));
        let volume = made(device.clone(), &FormatOptions::default());
        let file = inode(&volume);
        let new = NewNode { ino: Some(file.nid()), offset: 1, directory: false };
        let node = volume.nodes().create(&volume.begin().unwrap(), new).unwrap();
        let ino = file.nid();
        file.write(&volume.begin().unwrap()).inode_mut().i_ext.len = 7.into();
        write(&volume, &node, 0..512, LogType::WarmData);
        volume.slots().clear(&volume.begin().unwrap(), &node, 100..512, |_, _| {}).unwrap();
        write(&volume, &inode(&volume), 0..1, LogType::WarmData);
        settle(&volume);
        drop(file);
        (0..2).for_each(|_| volume.nodes().drop_unused());
        device.arm(FaultRule::on([Operation::Read]).after(after));
        let result = volume.cleaning().step(VictimPolicy::Greedy);
        device.disarm();
        assert_content(&volume, &node, 0..100);
        // An inode speaks of an extent as long as its blocks are where they were.
        let moved = volume.stat().written.moved_data_blocks;
        let extent = volume.nodes().get(ino).unwrap().read().inode().i_ext.len.get();
        assert!(moved == 0 || extent == 0, "{after}");
        if result.is_ok() {
            assert_eq!((device.faults(), moved, extent), (0, 100, 0), "{after}");
            assert!(after >= 2, "{after}");
            break;
        }
        assert_eq!((device.faults(), moved), (1, 0), "{after}");
    }
}

/// A node whose inode is gone, on its way to be freed, still names blocks.
#[test]
fn blocks_of_an_inode_that_is_gone_are_moved() {
    let volume = plain(256);
    let file = inode(&volume);
    let new = NewNode { ino: Some(file.nid()), offset: 1, directory: false };
    let node = volume.nodes().create(&volume.begin().unwrap(), new).unwrap();
    write(&volume, &node, 0..512, LogType::WarmData);
    volume.slots().clear(&volume.begin().unwrap(), &node, 100..512, |_, _| {}).unwrap();
    volume.nodes().remove(&volume.begin().unwrap(), &file).unwrap();
    drop(file);
    write(&volume, &inode(&volume), 0..1, LogType::WarmData);
    let step = volume.cleaning().step(VictimPolicy::Greedy).unwrap().unwrap();
    assert_eq!((step.data_blocks, step.segments), (100, 1));
    assert_content(&volume, &node, 0..100);
}

/// The largest extent that an inode remembers may speak of blocks that moved.
#[test]
fn an_extent_of_moved_blocks_is_forgotten() {
    let volume = plain(256);
    let nodes = filled(&volume, &[100, 200]);
    for node in &nodes {
        node.write(&volume.begin().unwrap()).inode_mut().i_ext.len = 100.into();
    }
    settle(&volume);
    volume.cleaning().step(VictimPolicy::Greedy).unwrap().unwrap();
    let extents: Vec<u32> = nodes.iter().map(|node| node.read().inode().i_ext.len.get()).collect();
    assert_eq!(extents, [0, 100]);
}

/// If the cold log finds no section for moved blocks, all of them stay, and the section is as it was.
#[test]
fn without_room_nothing_is_moved() {
    let volume = plain(256);
    write(&volume, &inode(&volume), 0..500, LogType::ColdData);
    let nodes = filled(&volume, &[100]);
    let op = volume.begin().unwrap();
    let (victim, mut report) =
        (segments(&volume).choose_victim(VictimPolicy::Greedy, 0).unwrap(), CleanReport::default());
    segments(&volume).set_pressure(512 * segments(&volume).free_sections(), 0);
    let begun = crate::victims::Begun::new(victim);
    let to = crate::flight::Destination::ColdLog;
    let emptied = volume.cleaning().empty(&op, &begun, u64::MAX, to, &mut report).unwrap();
    assert_eq!((emptied, report.data_blocks), (Emptied::NoRoom, 0));
    assert_content(&volume, &nodes[0], 0..100);
    assert_eq!((volume.stat().written.victims, address(&volume, &nodes[0], 99).is_real()), (0, true));
}
