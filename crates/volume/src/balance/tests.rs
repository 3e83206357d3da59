#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_format::SegmentNo;
use f2fs_segment::Victim;
use f2fs_sync::PlainArc;

use super::*;
use crate::format::FormatOptions;
use crate::samples::{inode, leave_free, made, plain, segment, segments, zoned};
use crate::victims::Begun;
use crate::{Allocation, CostModel, Reason, VolumeOptions};

/// Free sections with which operations have to wait, where nothing is dirty.
const LAST: u32 = 8;
/// The same on zones.
const LAST_ZONED: u32 = 14;

fn needs(volume: &Volume) -> Need {
    volume.balance().needs_in_turn()
}

/// So many free segments become ones that wait for a checkpoint.
fn make_prefree(volume: &Volume, count: u32) {
    let all = segments(volume);
    let before = all.prefree_segments();
    for section in (0..volume.geometry.sections).rev().filter(|section| all.is_section_free(*section)) {
        if all.prefree_segments() == before + count {
            break;
        }
        all.hold(volume.geometry.block_at(SegmentNo(section * volume.geometry.segs_per_sec), 0)).unwrap();
    }
    assert_eq!(all.prefree_segments(), before + count);
}

fn begin_section(volume: &Volume) {
    let victim = Victim { section: 0, first: SegmentNo(0), segments: 1, valid: 9, mtime: 0 };
    volume.victims.leave(Begun::new(victim), 1);
}

fn fall_short(volume: &Volume) {
    let written = volume.stat().written.user_blocks;
    volume.pressure.cleaning_fell_short(written, &volume.space, segments(volume));
}

/// A volume of 128 MiB whose sections have so many segments.
fn sections_of(count: u32) -> Volume {
    made(PlainArc::new(MemoryDevice::new(128 << 8)), &FormatOptions::default().with_sections(count, 1))
}

#[test]
fn without_room_a_volume_needs_what_makes_some() {
    for (volume, last) in [(plain(128), LAST), (zoned(96, 1), LAST_ZONED)] {
        assert_eq!(needs(&volume), Need::Nothing);
        leave_free(&volume, last);
        assert_eq!(needs(&volume), Need::Cleaning);
        // What is written does not matter where logs write into no holes.
        volume.blocks_written.add(2 * 512);
        assert_eq!(needs(&volume), Need::Cleaning);
        volume.blocks_written.add(1);
        let into_holes = volume.writes_into_holes();
        assert_eq!(needs(&volume), if into_holes { Need::Checkpoint } else { Need::Cleaning });
        assert_eq!(into_holes, last == LAST);
        volume.blocks_written.restart();
        begin_section(&volume);
        assert_eq!(needs(&volume), Need::CleaningStep, "it has its room already");
    }
}

#[test]
fn without_room_a_checkpoint_comes_first_if_it_makes_some() {
    for (volume, last) in [(plain(128), LAST), (zoned(96, 1), LAST_ZONED)] {
        // Dirty blocks of two sections are what there is a margin for.
        segments(&volume).set_pressure(2 * 512, 0);
        leave_free(&volume, last + 2);
        assert_eq!(needs(&volume), Need::Cleaning);
        segments(&volume).set_pressure(2 * 512 + 1, 0);
        assert_eq!(needs(&volume), Need::Checkpoint);
        segments(&volume).set_pressure(0, 0);
        make_prefree(&volume, 1);
        leave_free(&volume, last);
        assert_eq!(needs(&volume), Need::Checkpoint);
    }
}

#[test]
fn a_cleaning_that_fell_short_is_tried_again_when_a_section_could_be_gained() {
    let volume = plain(128);
    let node = segment(&volume, 512);
    leave_free(&volume, LAST);
    volume.blocks_written.restart();
    assert_eq!(needs(&volume), Need::Cleaning);
    fall_short(&volume);
    assert_eq!(needs(&volume), Need::Nothing);
    volume.slots().clear(&volume.begin().unwrap(), &node, 1..512, |_, _| {}).unwrap();
    assert_eq!(needs(&volume), Need::Nothing, "a block less than a section");
    volume.space.give_blocks(1);
    assert_eq!(needs(&volume), Need::Cleaning);
}

/// Where logs write into holes a checkpoint is due when as much was written as is free beyond the last sections.
#[test]
fn a_checkpoint_makes_holes_in_time() {
    let volume = plain(128);
    volume.blocks_written.add(18 * 512 + 1);
    // Beyond the last ones as many as are reserved.
    leave_free(&volume, LAST + 19);
    assert!(volume.writes_into_holes());
    assert_eq!(needs(&volume), Need::Nothing);
    leave_free(&volume, LAST + 18);
    assert_eq!(needs(&volume), Need::Checkpoint);
    volume.blocks_written.take_back(1);
    assert_eq!(needs(&volume), Need::Nothing);
    leave_free(&volume, LAST + 3);
    volume.blocks_written.restart();
    volume.blocks_written.add(3 * 512);
    assert_eq!(needs(&volume), Need::Nothing);
    volume.blocks_written.add(1);
    assert_eq!(needs(&volume), Need::Checkpoint);
    // Two segments at least.
    leave_free(&volume, LAST + 1);
    volume.blocks_written.restart();
    volume.blocks_written.add(2 * 512);
    assert_eq!(needs(&volume), Need::Nothing);
    volume.blocks_written.add(1);
    assert_eq!(needs(&volume), Need::Checkpoint);

    // Larger sections have more.
    let volume = sections_of(2);
    leave_free(&volume, LAST + 2);
    volume.blocks_written.add(4 * 512);
    assert_eq!(needs(&volume), Need::Nothing);
    volume.blocks_written.add(1);
    assert_eq!(needs(&volume), Need::Checkpoint);
}

/// On zones sections are emptied while there is room, as many as are taken, and a checkpoint frees them in time.
#[test]
fn sections_are_emptied_ahead_on_zones() {
    let volume = zoned(96, 1);
    volume.blocks_written.add(40 * 512);
    leave_free(&volume, LAST_ZONED + 17);
    assert_eq!(needs(&volume), Need::Nothing);
    leave_free(&volume, LAST_ZONED + 16);
    assert_eq!(needs(&volume), Need::CleaningStep);
    volume.pressure.step_gained_nothing(LAST_ZONED + 16);
    assert_eq!(needs(&volume), Need::Nothing, "none is worth it as long as so many are free");
    begin_section(&volume);
    assert_eq!(needs(&volume), Need::CleaningStep, "one that was begun");
    leave_free(&volume, LAST_ZONED + 1);
    assert_eq!(needs(&volume), Need::CleaningStep);
}

#[test]
fn sections_that_were_emptied_count_as_free_ones() {
    // One of nodes that a step emptied.
    let volume = zoned(96, 1);
    leave_free(&volume, LAST_ZONED + 16);
    volume.pressure.emptied_one_of_nodes(volume.epoch());
    assert_eq!(needs(&volume), Need::Nothing);

    // Those that are free with the next checkpoint. It is written when a quarter is left.
    let volume = zoned(96, 1);
    make_prefree(&volume, 12);
    leave_free(&volume, LAST_ZONED + 5);
    assert_eq!(needs(&volume), Need::Nothing);
    make_prefree(&volume, 1);
    leave_free(&volume, LAST_ZONED + 4);
    assert_eq!(needs(&volume), Need::Checkpoint);
    assert_eq!(volume.balance().need(), Need::Checkpoint);
}

/// Of sections of several segments half the segments are no section.
#[test]
fn prefree_segments_count_by_sections() {
    let volume = zoned(96, 2);
    assert_eq!(volume.balance().ahead(), 8);
    make_prefree(&volume, 3);
    leave_free(&volume, LAST_ZONED + 7);
    assert_eq!(needs(&volume), Need::CleaningStep, "one section and a half");
    let volume = zoned(96, 2);
    make_prefree(&volume, 4);
    leave_free(&volume, LAST_ZONED + 7);
    assert_eq!(needs(&volume), Need::Nothing, "two sections");
}

#[test]
fn only_zones_are_emptied_ahead() {
    assert_eq!(zoned(96, 1).balance().ahead(), 16);
    assert_eq!(zoned(64, 1).balance().ahead(), 0, "so few zones are kept from users");
    let mut options = FormatOptions::default();
    options.overprovision = Some(80.0);
    let volume = made(PlainArc::new(MemoryDevice::new(256 << 8)), &options);
    assert!(segments(&volume).overprovision_segments() > 60);
    assert_eq!(volume.balance().ahead(), 0);
}

#[test]
fn a_cleaning_aims_at_what_is_reserved_and_at_more_than_is_dirty() {
    assert_eq!(plain(64).balance().cleaning_goal(), 13);
    assert_eq!(zoned(64, 1).balance().cleaning_goal(), 29);
    assert_eq!(zoned(96, 1).balance().cleaning_goal(), 30, "and less where sections are emptied ahead");
    let volume = plain(64);
    segments(&volume).set_pressure(6 * 512, 0);
    assert_eq!(volume.balance().cleaning_goal(), 16);
    let volume = sections_of(2);
    let reserved = segments(&volume).reserved_sections();
    assert!(reserved > 10, "{reserved}");
    assert_eq!(volume.balance().cleaning_goal(), 2 * reserved);
    let device = PlainArc::new(MemoryDevice::new(64 << 8));
    crate::format::format(&*device, &FormatOptions::default()).unwrap();
    let volume = Volume::open(device, &VolumeOptions::new().read_only(true)).unwrap();
    assert_eq!(volume.balance().cleaning_goal(), 0);
}

#[test]
fn who_finds_no_room_tries_again_if_some_can_be_made() {
    let volume = plain(64);
    let may_help = || volume.balance().reclaim_may_help();
    assert!(may_help(), "no cleaning fell short");
    fall_short(&volume);
    assert!(!may_help());
    volume.written.add(crate::write_stat::Count::UserBlocks, 127);
    assert!(!may_help());
    volume.written.add(crate::write_stat::Count::UserBlocks, 1);
    assert!(may_help(), "what was written may have left holes");
    fall_short(&volume);
    assert!(!may_help());

    // A block that is freed is one that a cleaning can gain.
    volume.space.take_blocks(1).unwrap();
    fall_short(&volume);
    volume.space.give_blocks(1);
    assert!(may_help());
    volume.roll_forward.set_recovering(true);
    assert!(!may_help() && needs(&volume) == Need::Nothing, "nothing is reclaimed while files are brought back");
    volume.roll_forward.set_recovering(false);
    fall_short(&volume);
    assert!(!may_help());

    // Dirty nodes, whose old places the checkpoint frees.
    drop(inode(&volume));
    fall_short(&volume);
    assert!(may_help());
    volume.checkpoints().write(Reason::Sync).unwrap();
    fall_short(&volume);
    assert!(!may_help());
    make_prefree(&volume, 1);
    fall_short(&volume);
    assert!(may_help());
}

/// Operations wait while a checkpoint cannot follow them, and not longer.
#[test]
fn operations_keep_pace_with_a_checkpoint() {
    let volume = plain(64);
    volume.brake.adjust(1, 0, 1);
    let begun = std::time::Instant::now();
    volume.balance().keep_pace();
    assert!(begun.elapsed() >= core::time::Duration::from_micros(50));
}

#[test]
fn nids_that_were_freed_wait_for_a_checkpoint() {
    let volume = plain(64);
    let node = inode(&volume);
    assert!(!volume.balance().checkpoint_frees_nids());
    volume.nodes().remove(&volume.begin().unwrap(), &node).unwrap();
    assert!(volume.balance().checkpoint_frees_nids());
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert!(!volume.balance().checkpoint_frees_nids());
}

/// A volume on which a checkpoint is due with more than ten dirty nodes, and so many of them.
fn with_dirty_nodes(count: u32) -> Volume {
    let device = PlainArc::new(MemoryDevice::new(64 << 8));
    crate::format::format(&*device, &FormatOptions::default()).unwrap();
    let volume = Volume::open(device, &VolumeOptions::new().dirty_nodes(10).lanes(1)).unwrap();
    (0..count).for_each(|_| drop(inode(&volume)));
    segments(&volume).set_pressure(0, 0);
    volume
}

#[test]
fn many_dirty_nodes_need_a_checkpoint() {
    for (count, need) in [(10, Need::Nothing), (11, Need::Checkpoint)] {
        let volume = with_dirty_nodes(count);
        assert_eq!(needs(&volume), need, "{count}");
        volume.roll_forward.set_recovering(true);
        assert_eq!(needs(&volume), Need::Nothing, "no checkpoint while files are brought back");
        volume.roll_forward.set_recovering(false);
        let written = volume.checkpoints().write_if_needed::<crate::VolumeError>(|| Ok(()), |_| Ok(())).unwrap();
        assert_eq!(written.is_some(), need == Need::Checkpoint, "{count}");
        assert_eq!(needs(&volume), Need::Nothing, "{count}");
    }
}

/// While one writes a checkpoint, or is there to do so, others go on, as long as there is room and memory.
#[test]
fn a_checkpoint_is_left_to_who_writes_it() {
    // Enough for any number of processors that count by themselves.
    let volume = with_dirty_nodes(20);
    let need = || volume.balance().need_if(true);
    assert_eq!(need(), Need::Checkpoint, "nobody does");
    let turn = volume.epochs.turn();
    assert_eq!(need(), Need::Nothing);
    drop(turn);
    volume.balance().attend(true);
    assert_eq!(need(), Need::Attendance);
    assert!(volume.balance().call() && !volume.balance().call(), "once");
    assert_eq!(volume.balance().needs_beside(), Need::Checkpoint);
    assert!(volume.balance().call(), "again after the answer");
    // No room any more.
    leave_free(&volume, LAST + 1);
    assert_eq!(need(), Need::Attendance);
    leave_free(&volume, LAST);
    assert_eq!(need(), Need::Checkpoint);
    let turn = volume.epochs.turn();
    assert_eq!(need(), Need::Checkpoint);
    drop(turn);
    volume.balance().attend(false);

    // No memory any more: more than twice the limit.
    let volume = with_dirty_nodes(21);
    volume.balance().attend(true);
    assert_eq!(volume.balance().need_if(true), Need::Checkpoint);
    let _turn = volume.epochs.turn();
    assert_eq!(volume.balance().need_if(true), Need::Checkpoint);
}

#[test]
fn runs_are_moved_out_of_the_way_while_logs_write_into_holes() {
    let device = PlainArc::new(MemoryDevice::new(128 << 8));
    crate::format::format(&*device, &FormatOptions::default()).unwrap();
    let options = VolumeOptions::new().allocation(Allocation::partial(CostModel::nvme())).lanes(1);
    let volume = Volume::open(device, &options).unwrap();
    leave_free(&volume, 37);
    assert_eq!(needs(&volume), Need::Nothing, "they write in order");
    leave_free(&volume, 36);
    assert_eq!(needs(&volume), Need::Preclean);
    volume.balance().attend(true);
    assert_eq!(volume.balance().need(), Need::Attendance);
    volume.balance().attend(false);
    assert_eq!(volume.balance().need(), Need::Preclean);
    volume.precleaner.set_prepared(1);
    assert_eq!(needs(&volume), Need::Nothing, "what was cleared is not used up");
}

/// Dirty directory blocks have sections of their own kept free, and so have the nodes that they dirty.
#[test]
fn dirty_directory_blocks_have_their_room() {
    let volume = plain(64);
    volume.balance().add_dirty_dentries(1);
    assert_eq!(segments(&volume).dirty_sections(), 2);
    volume.balance().sub_dirty_dentries(1);
    assert_eq!(segments(&volume).dirty_sections(), 0);
}
