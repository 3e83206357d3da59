//! Blocks that others own up to, or nobody.

use f2fs_device::MemoryDevice;
use f2fs_format::Nid;
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_sync::PlainArc;

use super::*;
use crate::flight::Destination;
use crate::format::{FormatOptions, format};
use crate::samples::{address, assert_content, leave_free, plain};
use crate::write_stat::Count;
use crate::{Allocation, CostModel, Need, VolumeOptions};

/// A summary that names another owner than there is, as on a volume whose tables contradict each other. What is in use
/// stays; what is free by now needs nobody.
#[test]
fn a_block_that_nobody_owns_up_to_is_left() {
    let volume = plain(256);
    let nodes = filled(&volume, &[100]);
    let from = info(&volume, &nodes[0]).segment;
    let mut summary = SummaryBlock::new_box();
    let root = volume.geometry.root_ino;
    for (at, entry) in summary.entries.iter_mut().enumerate() {
        // The right one, another node, one that is free, and a slot that no node has.
        *entry = match at % 4 {
            0 => Summary::new(nodes[0].nid(), 0, at as u16),
            1 => Summary::new(root, 0, at as u16),
            2 => Summary::new(Nid(4000), 0, at as u16),
            _ => Summary::new(nodes[0].nid(), 0, 60_000),
        };
    }
    let op = volume.begin().unwrap();
    let cleaning = volume.cleaning();
    let offsets: Vec<u32> = (96..104).collect();
    let done = cleaning.move_data(&op, from, &offsets, &summary, Count::MovedData, Destination::ColdLog).unwrap();
    assert_eq!((done.moved, done.lost, done.left, done.is_whole()), (1, 4, 3, false));
    assert_eq!(volume.segment(from).unwrap().valid, 99);
    assert_content(&volume, &nodes[0], 0..100);
    let written = volume.stat().written;
    assert_eq!((written.moved_data_blocks, written.lost_moves), (1, 4));

    let done = cleaning.move_nodes(&op, from, &[1, 2, 3, 101, 102], &summary);
    assert_eq!((done.moved, done.lost, done.left, done.is_whole()), (0, 2, 3, false));
    let done = cleaning.move_nodes(&op, from, &[101, 102], &summary);
    assert_eq!((done.moved, done.lost, done.left, done.is_whole()), (0, 2, 0, true));
}

/// A volume whose writes have runs moved out of their way: segments in which blocks of two nodes take turns, of which
/// one was freed.
fn with_holes() -> (Volume, Node) {
    let device = PlainArc::new(MemoryDevice::new(128 << 8));
    format(&*device, &FormatOptions::default()).unwrap();
    let options = VolumeOptions::new().allocation(Allocation::partial(CostModel::nvme())).lanes(1);
    let volume = Volume::open(device, &options).unwrap();
    let (kept, gone) = (inode(&volume), inode(&volume));
    for at in 0..80 {
        write(&volume, &kept, at..at + 1, LogType::WarmData);
        write(&volume, &gone, at * 10..at * 10 + 10, LogType::WarmData);
    }
    volume.slots().clear(&volume.begin().unwrap(), &gone, 0..800, |_, _| {}).unwrap();
    write(&volume, &inode(&volume), 0..700, LogType::WarmData);
    settle(&volume);
    (volume, kept)
}

#[test]
fn precleaning_clears_segments_for_writes() {
    let (volume, kept) = with_holes();
    leave_free(&volume, 30);
    assert_eq!(volume.balance().needs_in_turn(), Need::Preclean);
    let first = info(&volume, &kept).segment;
    let moved = volume.cleaning().preclean().unwrap();
    assert!(moved > 0);
    let written = volume.stat().written;
    assert_eq!((written.precleaned_blocks, written.precleaned_segments), (moved, marked(&volume).len() as u64));
    assert!(marked(&volume).contains(&first.0));
    assert_content(&volume, &kept, 0..80);
    assert_eq!(segments(&volume).dirty_sections(), 1, "the dirty node is told");
    // As much may be written as the cleared segments have room for.
    assert_eq!(volume.balance().needs_in_turn(), Need::Nothing);
    let room: u32 = marked(&volume).iter().map(|at| 512 - volume.segment(SegmentNo(*at)).unwrap().valid).sum();
    volume.precleaner.note_request(u64::from(room) - 1, || true);
    assert_eq!(volume.balance().needs_in_turn(), Need::Nothing);
    volume.precleaner.note_request(1, || true);
    assert_eq!(volume.balance().needs_in_turn(), Need::Preclean);
    settle(&volume);
    assert_eq!(marked(&volume), [], "the logs have them");
}

#[test]
fn precleaning_leaves_a_checkpoint_its_room() {
    let (volume, kept) = with_holes();
    leave_free(&volume, 8);
    let before = address(&volume, &kept, 0);
    assert_eq!(volume.cleaning().preclean().unwrap(), 0);
    assert_eq!((address(&volume, &kept, 0), marked(&volume)), (before, vec![]));
    assert_eq!(volume.balance().needs_in_turn(), Need::Cleaning);

    let (volume, _) = with_holes();
    leave_free(&volume, 9);
    assert!(volume.cleaning().preclean().unwrap() > 0);
}

/// A step that could not go on says so, and keeps no segment from the logs.
#[test]
fn segments_of_a_precleaning_that_failed_come_back() {
    use f2fs_device::Operation;
    use f2fs_device_test::{FaultDevice, FaultRule};
    let mut failed = 0;
    for after in 0.. {
        let (volume, kept) = with_holes();
        let nid = kept.nid();
        drop(kept);
        let memory = volume.device().clone();
        volume.close().unwrap();
        drop(volume);
        let device = PlainArc::new(FaultDevice::new(memory));
        let options = VolumeOptions::new().allocation(Allocation::partial(CostModel::nvme())).lanes(1);
        let volume = Volume::open(device.clone(), &options).unwrap();
        leave_free(&volume, 30);
        device.arm(FaultRule::on([Operation::Read]).after(after));
        let result = volume.cleaning().preclean();
        device.disarm();
        let kept = volume.nodes().get(nid).unwrap();
        assert_content(&volume, &kept, 0..80);
        settle(&volume);
        assert_eq!(marked(&volume), [], "{after}");
        if device.faults() == 0 {
            assert!(result.unwrap() > 0, "{after}");
            break;
        }
        // What is read ahead is read again.
        failed += u32::from(result.is_err());
    }
    assert!(failed > 1);
}
