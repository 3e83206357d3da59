//! The same size and options give the same volume as mkfs.f2fs 1.15: every superblock and checkpoint field, and every
//! block that either of the two writes, byte by byte. And fsck.f2fs finds nothing to complain of. mkfs.f2fs 1.16 keeps
//! less from users, and makes the same volume otherwise: beside that tool these numbers are masked.
//!
//! Fields that cannot agree are masked: the version strings in the superblock. Others agree because both are told the
//! same: UUID (`-U`), time (`-T`), owner (`-R`), and the version of the first checkpoint, which is read from the volume
//! that mkfs.f2fs made.

#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use f2fs_device::{BlockDevice, MemoryDevice};
use f2fs_format::checkpoint::{Checkpoint, CheckpointBlock, VersionBitmaps};
use f2fs_format::feature::Features;
use f2fs_format::mkfs::VolumePlan;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BLOCK_SIZE, Geometry, RawBlock};
use f2fs_oracle::{OracleError, assert_clean, mkfs_sized};
use f2fs_volume::format::{FormatOptions, FormatReport, format};
use rustix::fs::SeekFrom;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";
const TIME: u64 = 1_234_567_890;

/// The same options for both.
#[derive(Clone, Debug, Default)]
struct Case {
    args: Vec<String>,
    change: Vec<fn(&mut FormatOptions)>,
}

impl Case {
    fn with(mut self, args: &str, change: fn(&mut FormatOptions)) -> Case {
        self.args.extend(args.split_whitespace().map(|arg| arg.replace('_', " ")));
        self.change.push(change);
        self
    }

    fn features(mut self, names: &'static [&'static str]) -> Case {
        self.args.extend(["-O".to_owned(), names.join(",")]);
        self.args.retain(|arg| !arg.is_empty());
        self
    }

    fn options(&self, checkpoint_version: u64) -> FormatOptions {
        let mut options = FormatOptions::default();
        for change in &self.change {
            change(&mut options);
        }
        if let Some(at) = self.args.iter().position(|arg| arg == "-O") {
            let names = self.args[at + 1].split(',').map(|name| Features::from_name(name).unwrap());
            options.features = names.fold(Features(0), Features::union);
        }
        options.uuid = Some(u128::from_str_radix(&UUID.replace('-', ""), 16).unwrap().to_be_bytes());
        options.time = Some(TIME);
        options.checkpoint_version = Some(checkpoint_version);
        options
    }
}

/// The volume that mkfs.f2fs made.
struct Reference {
    file: File,
}

impl Reference {
    fn make(path: &Path, bytes: u64, case: &Case) -> Result<Reference, OracleError> {
        let time = TIME.to_string();
        let mut args = vec!["-U", UUID, "-T", &time, "-R", "0:0"];
        args.extend(case.args.iter().map(String::as_str));
        mkfs_sized(path, bytes, &args)?;
        Ok(Reference { file: File::open(path).unwrap() })
    }

    fn block(&self, index: u64) -> RawBlock {
        let mut block = [0; BLOCK_SIZE];
        self.file.read_exact_at(&mut block, index * BLOCK_SIZE as u64).unwrap();
        block
    }

    /// Whether the tool is one that keeps less from users than this library: 1.16.
    fn keeps_less(&self) -> bool {
        SuperBlock::read(&self.block(0)).minor_ver.get() == 16
    }

    /// The blocks that are not zero.
    fn blocks(&self) -> Vec<u64> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Ok(start) = rustix::fs::seek(self.file.as_fd(), SeekFrom::Data(at)) {
            at = rustix::fs::seek(self.file.as_fd(), SeekFrom::Hole(start)).unwrap();
            let blocks = start / BLOCK_SIZE as u64..at / BLOCK_SIZE as u64;
            found.extend(blocks.filter(|index| self.block(*index) != [0; BLOCK_SIZE]));
        }
        found
    }
}

/// Lines of the debug form in which two values differ.
fn differences(ours: &impl Debug, theirs: &impl Debug) -> String {
    let (ours, theirs) = (format!("{ours:#?}"), format!("{theirs:#?}"));
    let pairs = ours.lines().zip(theirs.lines()).filter(|(ours, theirs)| ours != theirs);
    pairs.map(|(ours, theirs)| format!("ours {}, mkfs.f2fs {}\n", ours.trim(), theirs.trim())).collect()
}

fn masked(block: &RawBlock) -> SuperBlock {
    let mut sb = SuperBlock::read(block);
    Geometry::from_superblock(&sb).unwrap();
    // The version of the tool, which nobody reads.
    assert!([15, 16].contains(&sb.minor_ver.get()), "{:?}", sb.minor_ver);
    sb.minor_ver = 0.into();
    (sb.version, sb.init_version, sb.crc) = ([0; 256], [0; 256], 0.into());
    sb
}

/// Compares everything. `tail`: segments behind the last zone, which mkfs.f2fs counts as free and the user's.
fn compare(name: &str, device: &MemoryDevice, reference: &Reference, tail: u32) {
    let ours = |index: u64| *device.read(index, 1).unwrap().block(0);
    let keeps_less = reference.keeps_less();
    for index in 0..2 {
        let different = differences(&masked(&ours(index)), &masked(&reference.block(index)));
        assert!(different.is_empty(), "{name}: superblock {index}:\n{different}");
        assert_eq!(ours(index)[..1024], reference.block(index)[..1024], "{name}: in front of superblock {index}");
    }
    let geometry = Geometry::from_superblock(&SuperBlock::read(&ours(0))).unwrap();

    let mut checkpoints = Vec::new();
    for pack in 0..2 {
        let first = u64::from(geometry.checkpoint_pack(pack).0);
        let block = CheckpointBlock::read(&ours(first));
        let checkpoint = Checkpoint::from_header(&block.header, &geometry).unwrap();
        for at in [first, first + u64::from(checkpoint.pack_blocks) - 1] {
            let ours = CheckpointBlock::read(&ours(at));
            ours.verify().unwrap();
            let mut theirs = CheckpointBlock::read(&reference.block(at));
            theirs.verify().unwrap();
            let header = &mut theirs.header;
            header.free_segment_count = (header.free_segment_count.get() - tail).into();
            header.user_block_count = (header.user_block_count.get() - u64::from(tail) * 512).into();
            if keeps_less {
                let known = &ours.header;
                let (more, less) = (header.user_block_count.get(), known.user_block_count.get());
                assert!(more >= less, "{name}: mkfs.f2fs gives users {more} blocks, this library {less}");
                header.user_block_count = known.user_block_count;
                header.rsvd_segment_count = known.rsvd_segment_count;
                header.overprov_segment_count = known.overprov_segment_count;
            }
            theirs.seal();
            let different = differences(&ours, &theirs);
            assert!(different.is_empty(), "{name}: checkpoint in block {at}:\n{different}");
            assert!(ours.as_block() == theirs.as_block(), "{name}: checkpoint in block {at}: the bitmaps");
            checkpoints.push(at);
        }
        let payload: Vec<_> = (1..=u64::from(geometry.cp_payload)).map(|index| ours(first + index)).collect();
        let maps = VersionBitmaps::read(&block, &payload, &geometry).unwrap();
        assert_eq!(maps, VersionBitmaps::new(&geometry), "{name}");
    }

    // Everything else: first all that mkfs.f2fs wrote, then all that we wrote. With a tail, or other numbers, the NAT
    // bits cannot agree, because they carry the checksum of the checkpoint.
    let bits_at = u64::from(geometry.checkpoint_pack(1).0) - u64::from(f2fs_format::nat_bits::block_count(&geometry));
    let mut compared = 0;
    for index in reference.blocks().into_iter().filter(|index| *index > 1 && !checkpoints.contains(index)) {
        let (mut ours, mut theirs) = (ours(index), reference.block(index));
        if (tail > 0 || keeps_less) && index == bits_at {
            ours[..8].fill(0);
            theirs[..8].fill(0);
        }
        assert!(ours == theirs, "{name}: block {index} differs");
        compared += 1;
    }
    assert!(compared >= 7, "{name}: only {compared} blocks compared");
}

fn check(bytes: u64, case: &Case) -> FormatReport {
    let name = format!("{bytes} bytes, {}", case.args.join(" "));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    let reference = Reference::make(&path, bytes, case).unwrap_or_else(|error| panic!("{name}: {error}"));
    let sb = SuperBlock::read(&reference.block(0));
    let pack = CheckpointBlock::read(&reference.block(sb.cp_blkaddr.get().into()));

    let options = case.options(pack.header.checkpoint_ver.get());
    let device = MemoryDevice::new(bytes / BLOCK_SIZE as u64);
    let report = format(&device, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
    let zone = report.geometry.segs_per_sec * report.geometry.secs_per_zone;
    let tail = bytes / (2 * MIB) - u64::from(zone) - u64::from(report.geometry.segment_count);
    compare(&name, &device, &reference, tail as u32);
    for (addr, block) in VolumePlan::new(&options, bytes).unwrap().blocks().unwrap() {
        assert!(device.read(addr.0.into(), 1).unwrap().block(0) == &block, "{name}: block {addr}");
    }
    drop(reference);
    device.save(&path).unwrap();
    assert_clean(&path);
    report
}

#[test]
fn sizes() {
    let odd = [64 * MIB + 123_457, 100_000_000, 511 * MIB, 512 * MIB + 4096, 3 * GIB + 777_777, 10_000_000_000];
    let even = [64 * MIB, 128 * MIB, 512 * MIB, GIB, 8 * GIB, 37 * GIB, 64 * GIB];
    for bytes in odd.into_iter().chain(even) {
        check(bytes, &Case::default());
    }
}

#[test]
fn the_smallest_size_is_the_same() {
    let cases = [
        Case::default(),
        Case::default().with("-s 2", |o| o.segs_per_sec = 2),
        Case::default().with("-s 2 -z 3", |o| (o.segs_per_sec, o.secs_per_zone) = (2, 3)),
        Case::default().with("-o 20", |o| o.overprovision = Some(20.0)),
        Case::default().with("-i", |o| o.large_nat_bitmap = true),
    ];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    for case in cases {
        let Err(f2fs_format::FormatError::Layout { min, .. }) = VolumePlan::new(&case.options(1), MIB) else {
            panic!("{case:?}: a mebibyte is enough");
        };
        check(min, &case);
        let keeps_less = Reference::make(&path, min, &case).unwrap().keeps_less();
        let below = Reference::make(&path, min - 4096, &case);
        // What 1.16 keeps from users fits on smaller devices.
        let is_least = matches!(below, Err(OracleError::Refused { .. }));
        assert!(is_least || keeps_less, "{case:?}: mkfs.f2fs takes less than {min} bytes");
    }
}

#[test]
fn options() {
    let none = Case::default;
    check(256 * MIB, &none().with("-l Ein_Köfferchen_🧳", |o| o.label = "Ein Köfferchen 🧳".into()));
    check(512 * MIB, &none().with("-s 4", |o| o.segs_per_sec = 4));
    check(2 * GIB, &none().with("-z 3", |o| o.secs_per_zone = 3));
    let sections = none().with("-s 3 -z 5", |o| (o.segs_per_sec, o.secs_per_zone) = (3, 5));
    check(4 * GIB, &sections);
    check(GIB, &sections);
    check(2 * GIB, &none().with("-a 1", |o| o.heap = true));
    check(2 * GIB, &none().with("-a 1 -s 2 -z 2", |o| (o.heap, o.segs_per_sec, o.secs_per_zone) = (true, 2, 2)));
    for (args, change) in [
        ("-o 1", (|o| o.overprovision = Some(1.0)) as fn(&mut FormatOptions)),
        ("-o 3.7", |o| o.overprovision = Some(3.7)),
        ("-o 25", |o| o.overprovision = Some(25.0)),
    ] {
        check(2 * GIB, &none().with(args, change));
    }
    let extensions = none().with("-e tar,gz,dat -E sqlite", |o| {
        o.cold_extensions = ["tar", "gz", "dat"].map(String::from).to_vec();
        o.hot_extensions = vec!["sqlite".into()];
    });
    check(100 * MIB, &extensions);
    for bytes in [128 * MIB, 5 * GIB, 64 * GIB] {
        check(bytes, &none().with("-i", |o| o.large_nat_bitmap = true));
    }
    let all = extensions.with("-l all -s 2 -z 2 -o 12.5 -i", |o| {
        (o.segs_per_sec, o.secs_per_zone, o.overprovision, o.large_nat_bitmap) = (2, 2, Some(12.5), true);
        o.label = "all".into();
    });
    check(
        3 * GIB + 5 * MIB + 77,
        &all.features(&["extra_attr", "inode_checksum", "inode_crtime", "lost_found", "sb_checksum"]),
    );
    let undiscarded = none().with("-t 0", |o| o.discard = false);
    check(128 * MIB, &undiscarded);
}

#[test]
fn features() {
    for names in [
        &["extra_attr"][..],
        &["sb_checksum"],
        &["lost_found"],
        &["extra_attr", "inode_checksum"],
        &["extra_attr", "inode_crtime"],
        &["extra_attr", "flexible_inline_xattr"],
        &["extra_attr", "inode_checksum", "lost_found"],
        &["extra_attr", "inode_checksum", "inode_crtime", "flexible_inline_xattr", "lost_found", "sb_checksum"],
    ] {
        let report = check(100 * MIB, &Case::default().features(names));
        assert_eq!(report.geometry.features.names().len(), names.len());
    }
}

#[test]
fn project_quota_is_clean_although_mkfs_would_add_quota_files() {
    let device = MemoryDevice::new(64 * MIB / BLOCK_SIZE as u64);
    let features = Features::EXTRA_ATTR.union(Features::PROJECT_QUOTA);
    format(&device, &FormatOptions::default().with_features(features)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    device.save(&path).unwrap();
    assert_clean(&path);
}

/// Volumes with features that are not ours to make still pass the checks of superblock and checkpoint: whether they are
/// opened is decided by the feature bits alone, by name.
#[test]
fn the_checks_accept_what_mkfs_makes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume");
    for (features, args) in [
        ("ro", ""),
        ("quota,extra_attr,project_quota", ""),
        ("encrypt,verity", ""),
        ("extra_attr,compression", ""),
        ("casefold", "-C utf8"),
    ] {
        let mut all = vec!["-O", features];
        all.extend(args.split_whitespace());
        mkfs_sized(&path, 128 * MIB, &all).unwrap();
        let reference = Reference { file: File::open(&path).unwrap() };
        let sb = SuperBlock::read(&reference.block(0));
        let geometry = Geometry::from_superblock(&sb).unwrap_or_else(|error| panic!("{features}: {error}"));
        for pack in 0..2 {
            let block = CheckpointBlock::read(&reference.block(geometry.checkpoint_pack(pack).0.into()));
            block.verify().unwrap();
            let checkpoint = Checkpoint::from_header(&block.header, &geometry);
            let checkpoint = checkpoint.unwrap_or_else(|error| panic!("{features}: {error}"));
            assert!(VersionBitmaps::read(&block, &[], &geometry).is_ok());
            assert_eq!(checkpoint.data_summary_blocks(), 1);
        }
        for name in features.split(',') {
            assert!(geometry.features.contains(Features::from_name(name).unwrap()), "{name}");
        }
    }
}
