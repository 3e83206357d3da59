//! Volumes made by the real tools are clean, and everything that is no volume is refused.

use std::sync::Mutex;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_format::feature::Features;

use super::image;
use crate::{CheckError, CheckOptions, Phase, check};

const MIB: u64 = 1 << 20;

#[test]
fn fresh_volumes_are_clean() {
    let all = "extra_attr,project_quota,inode_checksum,flexible_inline_xattr,quota,inode_crtime,lost_found,sb_checksum";
    for (bytes, args) in [
        (64 * MIB, &[][..]),
        (100 * MIB + 4096, &["-O", "extra_attr,inode_checksum,lost_found,sb_checksum"]),
        (128 * MIB, &["-O", all]),
        (128 * MIB, &["-i"]),
        (512 * MIB, &["-s", "2"]),
        (600 * MIB, &["-o", "12", "-e", "jpg", "-l", "label"]),
        (64 * MIB, &["-O", "verity"]),
    ] {
        let report = image::fresh(bytes, args).check();
        assert!(report.is_clean() && report.complete, "{bytes} {args:?}:\n{report}");
        assert!(report.counts.inodes >= 1 && report.counts.directories >= 1, "{:?}", report.counts);
    }
}

/// On one device, mkfs.f2fs counts the zone in front of the volume's first segment as the users'.
#[test]
fn the_zone_in_front_is_the_users() {
    let image = image::fresh(512 * MIB, &["-s", "4"]);
    for copy in 0..2 {
        image.edit_superblock(copy, |sb| sb.feature = (sb.feature.get() | Features::BLKZONED.0).into());
    }
    let geometry = image.geometry.clone();
    let segments = |count: u32| u64::from(count) * 512;
    image.edit_checkpoint(|cp| {
        let main = geometry.main_segments - cp.header.overprov_segment_count.get();
        cp.header.user_block_count = segments(main + geometry.segs_per_sec).into();
    });
    let report = image.check();
    assert!(report.is_clean(), "{report}");
    // With an incomplete last zone as well, one segment less than two zones.
    image.edit_checkpoint(|cp| {
        cp.header.user_block_count = (cp.header.user_block_count.get() + segments(geometry.segs_per_sec)).into();
    });
    assert!(!image.check().is_clean());
}

#[test]
fn a_populated_volume_is_clean() {
    let image = image::populated();
    let report = image.check();
    assert!(report.is_clean(), "{report}");
    assert!(image.fsck().is_clean());
    let counts = report.counts;
    // The root, lost+found, deep, er, still, many; 700 small files, small, tiny, large, two links.
    assert_eq!((counts.directories, counts.inodes), (6, 6 + 705));
    // large: two direct nodes, one indirect node with one child.
    assert_eq!(counts.nodes, counts.inodes + 4);
    let header = image.pack().block.header;
    assert_eq!(counts.blocks, header.valid_block_count.get());
    assert_eq!(counts.free_segments, u64::from(header.free_segment_count.get()));
}

#[test]
fn progress_is_told_from_start_to_end() {
    let seen = Mutex::new(Vec::new());
    let progress = |now| seen.lock().unwrap().push(now);
    let options = CheckOptions { threads: Some(3), progress: Some(&progress) };
    let report = check(&image::populated().device, &options).unwrap();
    let seen = seen.into_inner().unwrap();
    let tree: Vec<u64> = seen.iter().filter(|now| now.phase == Phase::Tree).map(|now| now.done).collect();
    assert_eq!(tree.iter().max(), Some(&report.counts.nodes));
    assert!(seen.iter().all(|now| now.phase != Phase::Tree || now.total == report.counts.nodes));
    assert_eq!((seen[0].phase, seen[0].done), (Phase::Tables, 0));
    let last = seen[seen.len() - 1];
    assert_eq!((last.phase, last.done), (Phase::Totals, last.total));
}

#[test]
fn a_check_writes_nothing() {
    let image = image::populated().copy();
    let device = image.device.snapshot().read_only();
    assert!(check(&device, &CheckOptions::default()).unwrap().is_clean());
}

#[test]
fn what_is_no_volume_is_an_error() {
    let options = CheckOptions::default();
    for blocks in [0, 1] {
        let error = check(&MemoryDevice::new(blocks), &options).unwrap_err();
        assert!(matches!(error, CheckError::Device(_)), "{error}");
    }
    let noise: Vec<u8> = (0..1u32 << 20).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let error = check(&MemoryDevice::from_bytes(&noise), &options).unwrap_err();
    assert!(matches!(error, CheckError::NoSuperblock { .. }), "{error}");

    let image = image::fresh(64 * MIB, &[]);
    let short = MemoryDevice::new(image.device.info().blocks / 2);
    short.write(0, image.device.read(0, 100).unwrap()).unwrap();
    match check(&short, &options).unwrap_err() {
        CheckError::DeviceTooSmall { needed, found } => {
            assert_eq!((needed, found), (image.geometry.main_end().0.into(), short.info().blocks));
        }
        other => panic!("{other}"),
    }

    let unknown = image::fresh(64 * MIB, &[]);
    for copy in [0, 1] {
        unknown.edit_superblock(copy, |sb| sb.feature = Features::ATOMIC_WRITE.0.into());
    }
    let error = check(&unknown.device, &options).unwrap_err();
    assert!(matches!(&error, CheckError::Unsupported { bits: 4, names } if names == "atomic_write"), "{error}");
}
