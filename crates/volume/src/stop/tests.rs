#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{DeviceErrorKind, MemoryDevice};
use f2fs_format::{Geometry, Nid};
use f2fs_sync::PlainArc;

use super::*;
use crate::format::{FormatOptions, format};
use crate::{Volume, VolumeOptions};

fn superblock(device: &MemoryDevice, copy: u64) -> SuperBlock {
    SuperBlock::read(device.read(copy, 1).unwrap().block(0))
}

fn stopped(device: &PlainArc<MemoryDevice>, read_only: bool, error: &VolumeError) {
    let volume = Volume::open(device.clone(), &VolumeOptions::new().read_only(read_only)).unwrap();
    volume.stop(error);
    assert_eq!(volume.stopped(), Some(&crate::StopCause::Error(error.to_string())));
    // Of the next ones nothing is recorded.
    volume.stop(&VolumeError::ReadOnly);
}

#[test]
fn both_superblocks_tell_why_a_volume_stopped() {
    let device = |operation| VolumeError::Device(DeviceError::new(operation, 0, 1, DeviceErrorKind::Lost));
    let corrupt = |corruption: Corruption| VolumeError::Corrupt(corruption);
    let source = || Box::new(DeviceError::new(Operation::Read, 0, 1, DeviceErrorKind::Lost));
    let addr = BlockAddr(9);
    let node = Corruption::Node { nid: Nid(4), addr, what: "owner", expected: 1, found: 2 };
    let segment = f2fs_format::SegmentNo(1);
    let cases = [
        (device(Operation::Flush), "flush_fail", None),
        (device(Operation::Write), "write_fail", None),
        (VolumeError::NoSpace { wanted: 1, available: 0 }, "no_segment", None),
        (corrupt(node), "meta_page", Some("inconsistent_footer")),
        (corrupt(Corruption::Address { what: "data", nid: Nid(4), addr }), "meta_page", Some("invalid_blkaddr")),
        (
            corrupt(Corruption::Mismatch { what: "a count", expected: 1, found: 2 }),
            "meta_page",
            Some("corrupted_inode"),
        ),
        (SegmentError::NotValid { addr, segment, offset: 1 }.into(), "corrupted_free_bitmap", Some("inconsistent_sit")),
        (SegmentError::Source { segment, source: source() }.into(), "corrupted_summary", Some("inconsistent_summary")),
    ];
    for features in [Features(0), Features::SB_CHECKSUM] {
        for (error, reason, damage) in &cases {
            let image = PlainArc::new(MemoryDevice::new(64 << 8));
            format(&*image, &FormatOptions::default().with_features(features)).unwrap();
            let said = error.to_string();
            let volume = Volume::open(image.clone(), &VolumeOptions::new()).unwrap();
            volume.stop(error);
            assert!(volume.begin().is_err());
            drop(volume);
            for copy in 0..2 {
                let raw = superblock(&image, copy);
                assert_eq!(raw.stops(), [(*reason, 1)], "{said}");
                assert_eq!(raw.errors(), damage.iter().copied().collect::<Vec<_>>(), "{said}");
                assert!(Geometry::from_superblock(&raw).is_ok(), "{said}");
            }
        }
    }
}

/// The copy that was damaged is written as well, and nothing else.
#[test]
fn a_volume_that_was_opened_by_its_second_superblock_records_in_both() {
    let device = PlainArc::new(MemoryDevice::new(64 << 8));
    format(&*device, &FormatOptions::default()).unwrap();
    device.write_slice(0, &[0; 4096]).unwrap();
    let before = device.to_bytes();
    stopped(&device, false, &VolumeError::NoSpace { wanted: 1, available: 0 });
    for copy in 0..2 {
        assert_eq!(superblock(&device, copy).stops(), [("no_segment", 1)]);
    }
    assert!(device.to_bytes()[2 * 4096..] == before[2 * 4096..]);
}

#[test]
fn a_reader_records_nothing() {
    let device = PlainArc::new(MemoryDevice::new(64 << 8));
    format(&*device, &FormatOptions::default()).unwrap();
    stopped(&device, true, &VolumeError::NoSpace { wanted: 1, available: 0 });
    assert!(superblock(&device, 0).stops().is_empty() && superblock(&device, 1).stops().is_empty());
}
