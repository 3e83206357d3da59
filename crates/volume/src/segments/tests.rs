#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_device_test::TimingDevice;
use f2fs_format::Nid;

use super::*;
use crate::format::FormatOptions;
use crate::samples::{address, inode, made, segment, write};
use crate::{Reason, Volume, VolumeOptions};

/// A volume that was changed in several checkpoints, so that entries stand in both copies of the table, and in the
/// journal; open for writing, and a node with 100 blocks.
fn changed() -> (PlainArc<MemoryDevice>, Volume, Nid) {
    let device = PlainArc::new(MemoryDevice::new(256 << 8));
    let volume = made(device.clone(), &FormatOptions::default());
    let mut last = None;
    for round in 0..3 {
        for valid in [100, 200, 300] {
            last = Some(segment(&volume, valid + round));
        }
        volume.checkpoints().write(Reason::Sync).unwrap();
    }
    let kept = segment(&volume, 100).nid();
    for _ in 0..40 {
        drop(segment(&volume, 1));
    }
    volume.checkpoints().write(Reason::Sync).unwrap();
    drop(last);
    write(&volume, &inode(&volume), 0..3, LogType::ColdData);
    volume.close().unwrap();
    drop(volume);
    let volume = Volume::open(device.clone(), &VolumeOptions::new().lanes(1)).unwrap();
    (device, volume, kept)
}

fn for_reading(device: PlainArc<dyn BlockDevice>) -> Volume {
    Volume::open(device, &VolumeOptions::new().read_only(true)).unwrap()
}

/// Who opens a volume for reading is told the same of its segments as who writes to it.
#[test]
fn a_reader_knows_what_a_writer_knows() {
    let (device, writer, _) = changed();
    let count = writer.geometry.main_segments;
    let all: Vec<SegmentInfo> = (0..count).map(|at| writer.segment(SegmentNo(at)).unwrap()).collect();
    let (free, next) = (writer.segments.free(), LogType::ALL.map(|log| writer.segments.next_block(log)));
    drop(writer);
    let reader = for_reading(device);
    assert!(reader.geometry.sit_blocks() > 2);
    assert_eq!(reader.segments.free(), free);
    assert_eq!(LogType::ALL.map(|log| reader.segments.next_block(log)), next);
    for info in &all {
        let found = reader.segment(info.segment).unwrap();
        assert_eq!((found.valid, found.valid_map, found.log), (info.valid, info.valid_map, info.log));
        let current = next.iter().any(|addr| reader.geometry.locate(*addr).is_some_and(|(at, _)| at == info.segment));
        assert_eq!(found.phase == f2fs_segment::Phase::Current, current, "{info:?}");
        for offset in [0, 99, 100, 101, 511] {
            let addr = reader.geometry.block_at(info.segment, offset);
            assert_eq!(reader.data().is_in_use(addr).unwrap(), info.valid_map.contains(offset), "{addr}");
        }
    }
    for addr in [BlockAddr(0), reader.geometry.main_end(), BlockAddr::NEW] {
        assert!(!reader.data().is_in_use(addr).unwrap(), "{addr}");
    }
    let error = reader.segment(SegmentNo(count)).unwrap_err();
    assert!(matches!(error, VolumeError::Segment(SegmentError::OutsideTable { .. })), "{error}");
}

#[test]
fn blocks_of_the_table_are_read_once() {
    let (device, writer, _) = changed();
    drop(writer);
    let device = PlainArc::new(TimingDevice::new(device, |_| 0.0).charge_reads(|_| 0.0));
    let reader = for_reading(device.clone());
    let ask = || {
        let before = device.stat().reads.requests;
        (0..reader.geometry.main_segments).for_each(|at| assert!(reader.segment(SegmentNo(at)).is_ok()));
        device.stat().reads.requests - before
    };
    assert_eq!((ask(), ask()), (u64::from(reader.geometry.sit_blocks()), 0));
}

/// What roll-forward takes into use and out of use is told from then on, and stays in memory.
#[test]
fn a_reader_tells_what_was_recovered() {
    let (device, writer, nid) = changed();
    let node = writer.nodes().get(nid).unwrap();
    let (in_use, free) = (address(&writer, &node, 5), address(&writer, &node, 99).offset(7));
    let of_node = writer.nat.get(nid).unwrap().addr;
    let empty = LogType::ALL.map(|log| writer.segments.next_block(log));
    let empty = empty.into_iter().find(|addr| {
        let info = writer.segment(writer.geometry.locate(*addr).unwrap().0).unwrap();
        info.valid == 0 && info.log.is_node()
    });
    drop((node, writer));
    let before = device.snapshot();
    let reader = for_reading(device.clone());
    let (segments, recovery) = (&reader.segments, reader.recovery());
    let at = reader.geometry.locate(free).unwrap().0;
    assert_eq!(reader.geometry.locate(in_use).unwrap().0, at);
    let valid = reader.segment(at).unwrap().valid;
    let owner = Summary::new(Nid(77), 3, 9);

    segments.adopt(free, owner, 0).unwrap();
    let info = reader.segment(at).unwrap();
    assert_eq!((info.valid, info.taken), (valid + 1, valid + 1));
    assert!(segments.is_valid(free).unwrap() && info.valid_map.contains(reader.geometry.locate(free).unwrap().1));
    assert_eq!(recovery.owner_of(free).unwrap(), Some(owner));
    let error = segments.adopt(free, owner, 0).unwrap_err();
    assert!(matches!(error, VolumeError::Segment(SegmentError::InUse { .. })), "{error}");
    let error = segments.adopt(in_use, owner, 0).unwrap_err();
    assert!(matches!(error, VolumeError::Segment(SegmentError::InUse { .. })), "{error}");

    segments.invalidate_run(Run { addr: in_use, len: 2 }, 0).unwrap();
    let info = reader.segment(at).unwrap();
    assert_eq!((info.valid, segments.is_valid(in_use.offset(1)).unwrap()), (valid - 1, false));
    assert_eq!(recovery.owner_of(in_use).unwrap(), None);
    let error = segments.invalidate_run(Run { addr: in_use, len: 1 }, 0).unwrap_err();
    assert!(matches!(error, VolumeError::Segment(SegmentError::NotValid { .. })), "{error}");
    assert_eq!(recovery.owner_of(in_use.offset(3)).unwrap().map(|owner| owner.nid.get()), Some(nid.0));

    // Data does not go among nodes, where there are any.
    let error = segments.adopt(of_node.offset(20), owner, 0).unwrap_err();
    assert!(matches!(error, VolumeError::Segment(SegmentError::LogType { .. })), "{error}");
    segments.adopt(empty.unwrap(), owner, 0).unwrap();
    let error = segments.adopt(reader.geometry.main_end(), owner, 0).unwrap_err();
    assert!(matches!(error, VolumeError::Segment(SegmentError::OutsideMain { .. })), "{error}");
    // Nothing is written, so nothing has to be kept from being written.
    segments.hold(free).unwrap();
    segments.leave_held().unwrap();
    drop(reader);
    assert!(before.to_bytes() == device.to_bytes());
}
