//! Volumes that are cut, damaged or lie: each gives a typed error with its numbers, or opens with what is left; nothing
//! is written on the way. Damage behind the checkpoint is in `bad_nodes.rs`.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs_check::{CheckError, CheckOptions, check};
use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_files::{AllocateFlags, FileSystem, FsError, Options};
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{Corruption, FormatError};
use f2fs_test_kit::harm::{geometry, open, patch_superblock, read, refuse, volume};
use f2fs_volume::{VolumeError, VolumeOptions};

#[test]
fn truncated_images() {
    let device = volume();
    let blocks = device.info().blocks;
    let geometry = geometry(&device);
    let whole = device.to_bytes();
    let cuts = [
        0,
        1,
        2,
        3,
        u64::from(geometry.cp_blkaddr.0),
        u64::from(geometry.cp_blkaddr.0) + 1,
        u64::from(geometry.sit_blkaddr.0),
        u64::from(geometry.nat_blkaddr.0) + 17,
        u64::from(geometry.ssa_blkaddr.0),
        u64::from(geometry.main_blkaddr.0),
        u64::from(geometry.main_end().0) - 1,
        blocks - 1,
    ];
    for cut in cuts {
        let cut_device = MemoryDevice::from_bytes(&whole[..cut as usize * 4096]);
        match refuse(&cut_device) {
            VolumeError::Truncated { volume, device } => {
                assert_eq!(device, cut);
                assert!(volume > cut && volume <= blocks, "cut {cut}: {volume}");
            }
            other => panic!("cut {cut}: {other}"),
        }
    }
}

#[test]
fn wrong_magic() {
    let device = volume();
    patch_superblock(&device, 0, true, |sb| sb.magic = 0x1234.into());
    let fs = open(&device);
    let damage = fs.volume().damage();
    assert_eq!(damage.superblock_copy, 1);
    let Some(Corruption::Magic { expected: 0xf2f5_2010, found: 0x1234, .. }) = damage.superblock else {
        panic!("{damage:?}");
    };
    assert!(fs.exists("/new").unwrap());
    patch_superblock(&device, 1, true, |sb| sb.magic = 0x5678.into());
    match refuse(&device) {
        VolumeError::NoSuperblock {
            first: Corruption::Magic { found: 0x1234, .. },
            second: Corruption::Magic { found: 0x5678, .. },
        } => {}
        other => panic!("{other}"),
    }
    let nothing = MemoryDevice::new(16384);
    assert!(matches!(refuse(&nothing), VolumeError::NoSuperblock { first: Corruption::Magic { found: 0, .. }, .. }));
}

/// A sound volume with larger blocks, as machines with larger pages make them, is none that is damaged. Its second
/// superblock does not stand where that of others does.
#[test]
fn volumes_with_larger_blocks_are_refused_by_their_size() {
    let larger = |log: u32, between: u32, seal: bool| {
        let device = volume();
        patch_superblock(&device, 0, seal, |sb| {
            (sb.log_blocksize, sb.log_sectors_per_block) = (log.into(), between.into());
        });
        device.write_slice(1, &[0; 4096]).unwrap();
        let found = refuse(&device);
        (found, check(&device, &CheckOptions::default()).unwrap_err())
    };
    for log in 13..=16 {
        let (found, judged) = larger(log, log - 9, true);
        let size = 1 << log;
        assert!(matches!(found, VolumeError::Format(FormatError::BlockSize { bytes }) if bytes == size), "{found}");
        assert!(matches!(judged, CheckError::BlockSize { bytes } if bytes == size), "{judged}");
        assert!(found.to_string().contains(&format!("{size} bytes")), "{found}");
    }
    for (log, between, seal) in [(17, 8, true), (11, 2, true), (14, 3, true), (14, 5, false)] {
        let (found, judged) = larger(log, between, seal);
        assert!(matches!(found, VolumeError::NoSuperblock { .. }), "{found}");
        assert!(matches!(judged, CheckError::NoSuperblock { .. }), "{judged}");
    }
}

#[test]
fn bad_checksums_of_superblocks() {
    for copy in [0, 1] {
        let device = volume();
        patch_superblock(&device, copy, false, |sb| sb.uuid[3] ^= 1);
        let fs = open(&device);
        let damage = fs.volume().damage();
        assert_eq!(u64::from(damage.superblock_copy), if copy == 0 { 1 } else { 0 });
        match &damage.superblock {
            Some(Corruption::Checksum { expected, found, .. }) => assert_ne!(expected, found),
            other => panic!("{other:?}"),
        }
        assert!(fs.exists("/new").unwrap());
        patch_superblock(&device, 1 - copy, false, |sb| sb.uuid[3] ^= 2);
        let error = refuse(&device);
        assert!(
            matches!(
                error,
                VolumeError::NoSuperblock { first: Corruption::Checksum { .. }, second: Corruption::Checksum { .. } }
            ),
            "{error}"
        );
    }
}

fn version(device: &MemoryDevice, pack: u32) -> u64 {
    let start = geometry(device).checkpoint_pack(pack);
    CheckpointBlock::read(&read(device, start.0.into())).header.checkpoint_ver.get()
}

fn damage_pack(device: &MemoryDevice, pack: u32, at_end: bool) {
    let start = geometry(device).checkpoint_pack(pack).0;
    let first = CheckpointBlock::read(&read(device, start.into()));
    let block = if at_end { start + first.header.cp_pack_total_block_count.get() - 1 } else { start };
    let mut bytes = read(device, block.into());
    bytes[200] ^= 0x10;
    device.write_slice(block.into(), &bytes).unwrap();
}

/// A volume that was closed has everything twice.
#[test]
fn one_pack_of_a_closed_volume_is_enough() {
    for (pack, at_end) in [(0, false), (0, true), (1, false), (1, true)] {
        let device = volume();
        damage_pack(&device, pack, at_end);
        let fs = open(&device);
        assert!(matches!(fs.volume().damage().pack, Some(Corruption::Checksum { .. })));
        assert_eq!(
            fs.volume().damage().newer.is_some(),
            !at_end && version(&volume(), pack) > version(&volume(), 1 - pack)
        );
        assert!(fs.exists("/new").unwrap());
    }
}

#[test]
fn bad_checksums_of_packs() {
    for at_end in [false, true] {
        let device = Arc::new(volume());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        // In the last checkpoint only.
        fs.create_file("/newest", 0o644).unwrap();
        fs.checkpoint().unwrap();
        drop(fs);
        let device = device.snapshot();
        let current = if version(&device, 1) > version(&device, 0) { 1 } else { 0 };
        let good = device.snapshot();

        // The other one is not needed.
        damage_pack(&device, 1 - current, at_end);
        let fs = open(&device);
        assert!(matches!(fs.volume().damage().pack, Some(Corruption::Checksum { .. })), "{:?}", fs.volume().damage());
        assert!(fs.exists("/newest").unwrap());

        // The current one: the volume is what it was at the checkpoint before.
        damage_pack(&good, current, at_end);
        let shared = Arc::new(good.snapshot());
        let fs = FileSystem::open(shared.clone(), Options::new()).unwrap();
        assert!(matches!(fs.volume().damage().pack, Some(Corruption::Checksum { .. })));
        // Without its last block it never counted; without its first one it did.
        let (older, newer) = (version(&good, 1 - current), (!at_end).then(|| version(&device, current)));
        assert_eq!(fs.volume().damage().newer, newer);
        drop(fs);
        let careful =
            || FileSystem::open(shared.clone(), Options::new().volume(VolumeOptions::new().newest_only(true)));
        match newer {
            Some(newer) => {
                let expected = VolumeError::LostCheckpoint { pack: current, newer, older };
                let error = careful().unwrap_err().to_string();
                assert_eq!(error, FsError::Volume(expected).to_string());
            }
            None => drop(careful().unwrap()),
        }
        let fs = FileSystem::open(shared.clone(), Options::new()).unwrap();
        assert!(!fs.exists("/newest").unwrap());
        assert_eq!(fs.metadata("/small").unwrap().size, 6);
        // The next checkpoint heals it.
        fs.create_file("/again", 0o644).unwrap();
        fs.close().unwrap();
        f2fs_test_kit::volumes::assert_clean(&shared);

        damage_pack(&device, current, at_end);
        let error = refuse(&device);
        match &error {
            VolumeError::NoCheckpoint {
                first: Corruption::Checksum { expected, found, .. },
                second: Corruption::Checksum { .. },
            } => {
                assert_ne!(expected, found);
                assert!(error.to_string().contains(&format!("{found:#010x}")), "{error}");
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn sizes_that_lie() {
    type Change = fn(&mut SuperBlock);
    let lies: [(&str, Change); 12] = [
        ("segment_count", |sb| sb.segment_count = u32::MAX.into()),
        ("segment_count_main", |sb| sb.segment_count_main = 8_000_000.into()),
        ("segment_count_sit", |sb| sb.segment_count_sit = 4096.into()),
        ("segment_count_nat", |sb| sb.segment_count_nat = 0.into()),
        ("sit_blkaddr", |sb| sb.sit_blkaddr = 0.into()),
        ("nat_blkaddr", |sb| std::mem::swap(&mut sb.nat_blkaddr, &mut sb.ssa_blkaddr)),
        ("main_blkaddr", |sb| sb.main_blkaddr = u32::MAX.into()),
        ("block_count", |sb| sb.block_count = 1.into()),
        ("block_count", |sb| sb.block_count = u64::MAX.into()),
        ("segs_per_sec", |sb| sb.segs_per_sec = 0.into()),
        ("section_count", |sb| sb.section_count = u32::MAX.into()),
        ("cp_payload", |sb| sb.cp_payload = u32::MAX.into()),
    ];
    for (field, change) in lies {
        let device = volume();
        patch_superblock(&device, 0, true, change);
        let fs = open(&device);
        let said = fs.volume().damage().superblock.clone().unwrap().to_string();
        assert!(said.contains(field), "{field}: {said}");
        patch_superblock(&device, 1, true, change);
        match refuse(&device) {
            VolumeError::NoSuperblock { first, second } => assert_eq!(first, second),
            other => panic!("{field}: {other}"),
        }
    }

    let device = volume();
    let blocks = device.info().blocks;
    for copy in [0, 1] {
        patch_superblock(&device, copy, true, |sb| sb.block_count = (blocks + 1).into());
    }
    let error = refuse(&device);
    assert!(matches!(error, VolumeError::Truncated { volume, device } if volume == blocks + 1 && device == blocks));
    assert!(error.to_string().contains(&(blocks + 1).to_string()) && error.to_string().contains(&blocks.to_string()));
}

#[test]
fn features_are_refused_by_name() {
    for (bits, names, reading) in [
        (0x1000, "casefold", true),
        (0x2001, "encrypt, compression", true),
        (0x8000, "device_alias", true),
        (0x4000, "readonly", true),
        (0x0002, "blkzoned", true),
        (0x0004, "atomic_write", false),
        (0x8000_0000, "bit 31", false),
        (0x0080, "quota", true),
        (0x0400, "verity", true),
    ] {
        let device = volume();
        for copy in [0, 1] {
            patch_superblock(&device, copy, true, |sb| sb.feature = (sb.feature.get() | bits).into());
        }
        let shared = Arc::new(device.snapshot());
        match FileSystem::open(shared.clone(), Options::new()).unwrap_err() {
            FsError::Volume(VolumeError::Format(FormatError::Unsupported { bits: found, names: said })) => {
                assert_eq!((found, said.as_str(), reading), (bits, names, false));
            }
            FsError::Volume(VolumeError::OnlyForReading { bits: found, names: said }) => {
                assert_eq!((found, said.as_str(), reading), (bits, names, true));
            }
            FsError::Volume(VolumeError::NoZones) => assert_eq!((bits, reading), (2, true)),
            other => panic!("{other}"),
        }
        assert!(shared.to_bytes() == device.to_bytes());
        assert_eq!(FileSystem::open(shared, Options::new().read_only(true)).is_ok(), reading, "{names}");
    }
}

#[test]
fn names_and_paths() {
    let device = Arc::new(volume());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let long = "n".repeat(255);
    fs.create_file(format!("/dir/{long}"), 0o644).unwrap();
    assert!(fs.exists(format!("/dir/{long}")).unwrap());
    let too_long = format!("/dir/{}", "n".repeat(256));
    for result in [
        fs.create_file(&too_long, 0o644).map(|_| ()),
        fs.create_dir(&too_long, 0o755).map(|_| ()),
        fs.link("/small", &too_long),
        fs.rename("/small", &too_long, f2fs_files::RenameMode::Replace),
        fs.metadata(&too_long).map(|_| ()),
    ] {
        match result.unwrap_err() {
            FsError::Name(FormatError::Name { len: 256, .. }) => {}
            other => panic!("{other}"),
        }
    }
    let nul = f2fs_test_kit::volumes::at(b"/dir/a\0b");
    assert!(matches!(fs.create_file(nul, 0o644).unwrap_err(), FsError::Name(FormatError::Name { len: 3, .. })));
    assert!(matches!(fs.create_file("", 0o644).unwrap_err(), FsError::NotFound));
    for nameless in ["/", "//", "/dir/.", "/dir/.."] {
        assert!(matches!(fs.create_file(nameless, 0o644).unwrap_err(), FsError::Exists), "{nameless:?}");
    }
    // Bytes that are no UTF-8 are names like others.
    let odd: &[u8] = b"/dir/\xff\xfe\x01 \\";
    fs.create_file(f2fs_test_kit::volumes::at(odd), 0o600).unwrap().write_at(b"odd", 0).unwrap();
    assert!(fs.read_dir("/dir").unwrap().any(|entry| entry.unwrap().name == odd[5..]));

    assert!(matches!(fs.metadata("/small/below").unwrap_err(), FsError::NotDirectory));
    assert!(matches!(fs.create_file("/small/below", 0o644).unwrap_err(), FsError::NotDirectory));
    assert!(matches!(fs.metadata("/small/").unwrap_err(), FsError::NotDirectory));
    assert!(matches!(fs.metadata("/none/below").unwrap_err(), FsError::NotFound));
    let link = f2fs_files::NewFile::new(f2fs_files::FileKind::Symlink, 0o777);
    fs.symlink(b"/loop-b", "/loop-a", &link).unwrap();
    fs.symlink(b"loop-a", "/loop-b", &link).unwrap();
    fs.symlink(b"self/self/self", "/self", &link).unwrap();
    for path in ["/loop-a", "/loop-b/x", "/self"] {
        assert!(matches!(fs.metadata(path).unwrap_err(), FsError::Loop { limit: 40 }), "{path}");
    }
    for len in [0, 4096] {
        match fs.symlink(&vec![b'x'; len], "/link", &link).unwrap_err() {
            FsError::LinkTarget { len: found, limit: 4095, .. } => assert_eq!(found, len),
            other => panic!("{other}"),
        }
    }
    let file = fs.open_file("/small").unwrap();
    for result in [
        file.set_len(u64::MAX),
        file.allocate(u64::MAX - 5, 4, AllocateFlags::NONE),
        file.write_at(b"x", 1 << 60).map(|_| ()),
    ] {
        assert!(matches!(result.unwrap_err(), FsError::FileTooLarge { .. }));
    }
    drop(file);
    fs.close().unwrap();
    f2fs_test_kit::volumes::assert_clean(&device);
}

#[test]
fn a_device_that_is_read_only() {
    let device = Arc::new(volume().read_only());
    let error = FileSystem::open(device.clone(), Options::new()).unwrap_err();
    assert!(matches!(error, FsError::ReadOnly), "{error}");
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    assert_eq!(fs.metadata("/large").unwrap().size, 5 << 20);
    let refused = [
        fs.create_file("/x", 0o644).map(|_| ()),
        fs.remove_file("/small"),
        fs.checkpoint().map(|_| ()),
        fs.open_file("/small").unwrap().set_len(0),
        fs.set_permissions("/small", 0),
        fs.rename("/small", "/y", f2fs_files::RenameMode::Replace),
    ];
    for result in refused {
        assert!(matches!(result.unwrap_err(), FsError::ReadOnly));
    }
    fs.close().unwrap();
}
