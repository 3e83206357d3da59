use f2fs_device::{DeviceErrorKind, MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule, RecordingDevice};
use f2fs_format::checkpoint::{Checkpoint, CheckpointBlock, VersionBitmaps};
use f2fs_format::superblock::SuperBlock;
use f2fs_sync::Arc;

use super::*;

/// 96 MiB.
const BLOCKS: u64 = 24576;

fn options() -> FormatOptions {
    FormatOptions::default()
}

fn superblock(device: &dyn BlockDevice, index: u64) -> SuperBlock {
    SuperBlock::read(&read_block(device, index).unwrap())
}

/// The plan of exactly this volume.
fn plan(device: &dyn BlockDevice, mut options: FormatOptions) -> VolumePlan {
    let sb = superblock(device, 0);
    let geometry = Geometry::from_superblock(&sb).unwrap();
    let block = CheckpointBlock::read(&read_block(device, u64::from(geometry.cp_blkaddr.0)).unwrap());
    options.uuid = Some(sb.uuid);
    options.checkpoint_version = Some(block.header.checkpoint_ver.get());
    VolumePlan::new(&options, device.info().bytes()).unwrap()
}

#[test]
fn what_is_written_is_a_valid_volume() {
    let device = MemoryDevice::new(BLOCKS);
    let report = format(&device, &options().with_label("new")).unwrap();
    assert!(report.discarded && report.replaced.is_none());
    assert_eq!((report.uuid[6] >> 4, report.uuid[8] >> 6), (4, 2), "a random UUID");
    for index in 0..2 {
        let sb = superblock(&device, index);
        assert_eq!((sb.label().as_str(), sb.uuid), ("new", report.uuid));
        assert_eq!(Geometry::from_superblock(&sb).unwrap(), report.geometry);
    }
    let packs = [0, 1].map(|pack| {
        let block = read_block(&device, u64::from(report.geometry.checkpoint_pack(pack).0)).unwrap();
        let block = CheckpointBlock::read(&block);
        block.verify().unwrap();
        let maps = VersionBitmaps::read(&block, &[], &report.geometry).unwrap();
        assert_eq!(maps, VersionBitmaps::new(&report.geometry));
        Checkpoint::from_header(&block.header, &report.geometry).unwrap()
    });
    assert_eq!((packs[0].version % 2, packs[1].version), (1, 0));
    assert!(packs[0].has(flags::TRIMMED | flags::NAT_BITS | flags::UMOUNT));
    assert_eq!(packs[0].user_blocks, report.user_blocks);
}

#[test]
fn what_is_planned_is_written() {
    let (device, mut options) = (MemoryDevice::new(BLOCKS), options());
    options.time = Some(1);
    format(&device, &options).unwrap();
    assert_whole(&device, &plan(&device, options));
}

#[test]
fn two_volumes_are_never_alike() {
    let volumes = [0, 1].map(|_| {
        let device = MemoryDevice::new(BLOCKS);
        let report = format(&device, &options()).unwrap();
        let pack = read_block(&device, u64::from(report.geometry.cp_blkaddr.0)).unwrap();
        (report.uuid, CheckpointBlock::read(&pack).header.checkpoint_ver.get())
    });
    assert_ne!(volumes[0].0, volumes[1].0);
    assert_ne!(volumes[0].1, volumes[1].1, "by chance only once in 2^30 runs");
}

#[test]
fn what_is_there_is_overwritten_only_by_force() {
    let device = MemoryDevice::new(BLOCKS);
    let first = format(&device, &options().with_label("first")).unwrap();
    let kept = device.to_bytes();
    let found = Signature::F2fs { label: "first".into(), uuid: first.uuid };
    for damaged in 0..2 {
        // One of the superblocks is enough to be recognised.
        let device = device.snapshot();
        device.write_slice(damaged, &[0; BLOCK_SIZE]).unwrap();
        let error = format(&device, &options()).unwrap_err();
        assert!(error.to_string().contains("an F2FS volume labelled \"first\" with UUID"), "{error}");
    }
    assert!(
        matches!(format(&device, &options()), Err(FormatVolumeError::Exists { found: there, device: 0 }) if there == found)
    );
    assert!(kept == device.to_bytes(), "a refusal wrote something");
    let report = format(&device, &options().forced()).unwrap();
    assert_eq!(report.replaced, Some(found));
    assert_ne!(report.uuid, first.uuid);
}

#[test]
fn other_file_systems_are_recognised_and_wiped() {
    for (at, mark, name) in [
        (1080, &b"\x53\xef"[..], "ext4"),
        (0x10040, b"_BHRfS_M", "Btrfs"),
        (82, b"FAT32   ", "FAT"),
        (510, b"\x55\xaa", "partition table"),
        (4086, b"SWAPSPACE2", "swap"),
        (32769, b"CD001", "ISO 9660"),
        (0, b"\x1f\x8b\x08", "gzip"),
        (0, b"XFSB", "XFS"),
    ] {
        let device = MemoryDevice::new(BLOCKS);
        let mut bytes = vec![0u8; at + mark.len()];
        bytes[at..].copy_from_slice(mark);
        device.write_slice(0, &bytes).unwrap();
        let error = format(&device, &options()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        let mut force = options().forced();
        force.discard = false;
        let report = format(&device, &force).unwrap();
        assert!(matches!(report.replaced, Some(Signature::Other(_))) && !report.discarded);
        assert!(matches!(recognise(&device).unwrap(), Some(Signature::F2fs { .. })));
        device.write_slice(0, &[0; 2 * BLOCK_SIZE]).unwrap();
        assert_eq!(recognise(&device).unwrap(), None, "the mark of {name} is gone");
    }
}

#[test]
fn devices_that_are_too_small_read_only_or_cannot_discard() {
    let error = format(&MemoryDevice::new(1), &options()).unwrap_err();
    assert!(matches!(error, FormatVolumeError::Plan(FormatError::Layout { found: 4096, .. })), "{error}");
    assert!(format(&MemoryDevice::new(0), &options()).is_err());
    let error = format(&MemoryDevice::new(BLOCKS).read_only(), &options()).unwrap_err();
    assert!(matches!(error, FormatVolumeError::Device(DeviceError { kind: DeviceErrorKind::ReadOnly, .. })));

    let device = FaultDevice::new(Arc::new(MemoryDevice::new(BLOCKS)));
    device.arm(FaultRule::on([Operation::Discard]).for_good());
    let report = format(&device, &options()).unwrap();
    assert!(!report.discarded);
    let pack = read_block(&device, u64::from(report.geometry.cp_blkaddr.0)).unwrap();
    assert_eq!(CheckpointBlock::read(&pack).header.ckpt_flags.get() & flags::TRIMMED, 0);
}

#[test]
fn an_error_of_any_operation_is_reported() {
    let count = |device: &FaultDevice| device.operations();
    let healthy = FaultDevice::new(Arc::new(MemoryDevice::new(BLOCKS)));
    format(&healthy, &options()).unwrap();
    let operations = count(&healthy);
    assert!(operations > 15, "{operations}");
    for after in 0..operations {
        let device = FaultDevice::new(Arc::new(MemoryDevice::new(BLOCKS)));
        device.arm(FaultRule::on_all().after(after));
        match format(&device, &options()) {
            Err(FormatVolumeError::Device(_)) => {}
            // Only a failed discard is passed over.
            other => assert!(!other.unwrap().discarded, "operation {after}"),
        }
    }
}

/// The volume that a mount would find on the device.
fn owner(device: &dyn BlockDevice) -> Option<[u8; 16]> {
    let owners: Vec<_> = (0..2)
        .map(|index| superblock(device, index))
        .filter(|sb| Geometry::from_superblock(sb).is_ok())
        .map(|sb| sb.uuid)
        .collect();
    assert!(owners.windows(2).all(|pair| pair[0] == pair[1]), "superblocks of two volumes");
    owners.first().copied()
}

fn assert_whole(device: &dyn BlockDevice, plan: &VolumePlan) {
    for (addr, block) in plan.blocks().unwrap() {
        assert!(read_block(device, u64::from(addr.0)).unwrap() == block, "block {addr}");
    }
    for range in plan.zeroed() {
        let written: Vec<_> = plan.blocks().unwrap().into_iter().map(|(addr, _)| u64::from(addr.0)).collect();
        for addr in range.filter(|addr| !written.contains(addr)).step_by(61) {
            assert!(read_block(device, addr).unwrap() == [0; BLOCK_SIZE], "block {addr}");
        }
    }
}

#[test]
fn a_cut_leaves_the_old_volume_or_the_new_one_or_none() {
    let mut old_options = options().with_sections(2, 1);
    old_options.time = Some(1);
    let mut new_options = options().with_label("new").forced();
    new_options.time = Some(2);
    for discard in [true, false] {
        let base = MemoryDevice::new(BLOCKS);
        format(&base, &old_options).unwrap();
        let old = plan(&base, old_options.clone());
        let device = RecordingDevice::new(base);
        new_options.discard = discard;
        format(&device, &new_options).unwrap();
        let new = plan(&device, new_options.clone());
        let log = device.log();
        let mut replay = log.replay();
        let mut seen = [0; 3];
        loop {
            let at = replay.position() as u64;
            for seed in 0..6u64 {
                // None, all, or every other block survives; with and without requests that are just beginning.
                let survives = |event: usize, block: u64| match seed / 2 {
                    0 => false,
                    1 => true,
                    _ => (event as u64 + block * 7 + at).is_multiple_of(3),
                };
                let image = replay.image(8 * (seed % 2) as usize, survives);
                match owner(&image) {
                    None => seen[0] += 1,
                    Some(uuid) if uuid == old.superblock.uuid => {
                        seen[1] += 1;
                        assert_whole(&image, &old);
                    }
                    Some(uuid) => {
                        seen[2] += 1;
                        assert_eq!(uuid, new.superblock.uuid);
                        assert_whole(&image, &new);
                    }
                }
            }
            if replay.advance().is_none() {
                break;
            }
        }
        // `format` has returned: what was not flushed is lost, and the new volume is there all the same.
        assert_eq!(owner(&replay.image(0, |_, _| false)), Some(new.superblock.uuid));
        assert!(seen.iter().all(|count| *count > 1), "none, old, new: {seen:?}");
    }
}

#[test]
fn a_format_that_is_stopped_leaves_the_old_volume_or_none() {
    let device = MemoryDevice::new(BLOCKS);
    let first = format(&device, &options()).unwrap();
    // Asked before the first write, after each batch, and before the new superblocks.
    for calls in 0_u32.. {
        let left = std::cell::Cell::new(calls);
        let stop = || left.replace(left.get().saturating_sub(1)) == 0;
        let before = recognise(&device).unwrap();
        match format_until(&device, &options().forced(), &stop) {
            Err(FormatVolumeError::Stopped { touched: false }) => {
                assert_eq!(calls, 0);
                assert!(matches!(before, Some(Signature::F2fs { uuid, .. }) if uuid == first.uuid));
                assert_eq!(recognise(&device).unwrap(), before);
            }
            Err(FormatVolumeError::Stopped { touched: true }) => {
                assert_ne!(calls, 0);
                assert_eq!(recognise(&device).unwrap(), None);
            }
            done => {
                assert!(calls > 4, "{calls}");
                let uuid = done.unwrap().uuid;
                assert!(
                    matches!(recognise(&device).unwrap(), Some(Signature::F2fs { uuid: found, .. }) if found == uuid)
                );
                break;
            }
        }
    }
}

#[test]
fn what_is_not_asked_for_is_filled_in() {
    let mut seen = [0; 20];
    for _ in 0..64 {
        let mut options = options();
        complete(&mut options, 512).unwrap();
        let (uuid, version) = (options.uuid.unwrap(), options.checkpoint_version.unwrap());
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6, version % 2, version >> 31), (4, 2, 1, 0));
        uuid.iter().chain(&version.to_le_bytes()[..4]).zip(&mut seen).for_each(|(byte, seen)| *seen |= byte);
        assert!(options.time.is_some_and(|time| time > 1 << 30));
    }
    // By chance a bit is never set only once in 2^64 runs.
    seen[6] |= 0xf0;
    seen[8] |= 0xc0;
    seen[19] |= 0x80;
    assert!(seen.iter().all(|bits| *bits == 0xff), "{seen:x?}");
    let sector = |device: u32, asked: Option<u32>| {
        let mut options = options();
        options.sector_size = asked;
        complete(&mut options, device).unwrap();
        options.sector_size
    };
    assert_eq!((sector(512, None), sector(4096, None), sector(2048, None)), (Some(512), Some(4096), Some(2048)));
    assert_eq!((sector(256, None), sector(8192, None), sector(520, None), sector(1, None)), (None, None, None, None));
    assert_eq!(sector(512, Some(4096)), Some(4096));
    let mut asked = options();
    (asked.uuid, asked.checkpoint_version, asked.time) = (Some([7; 16]), Some(8), Some(9));
    complete(&mut asked, 512).unwrap();
    assert_eq!((asked.uuid, asked.checkpoint_version, asked.time), (Some([7; 16]), Some(8), Some(9)));
}

/// Either copy of its header is enough.
#[test]
fn a_journal_is_recognised() {
    for at in [0, 1] {
        let device = MemoryDevice::new(BLOCKS);
        device.write_slice(at, &f2fs_journal::MAGIC).unwrap();
        assert_eq!(recognise(&device).unwrap(), Some(Signature::Journal));
        let error = format(&device, &options()).unwrap_err();
        assert!(error.to_string().contains("the journal of an F2FS volume"), "{error}");
    }
    let device = MemoryDevice::new(BLOCKS);
    device.write_slice(2, &f2fs_journal::MAGIC).unwrap();
    assert_eq!(recognise(&device).unwrap(), None);
}

#[test]
fn zeros_and_blocks_are_written_where_they_belong() {
    let device = MemoryDevice::new(4096);
    for at in 0..1100 {
        device.write_slice(at, &[1; BLOCK_SIZE]).unwrap();
    }
    let writer = write::Writer { device: &device, stop: &|| false };
    writer.zero([3..5, 100..1000, 7..7]).unwrap();
    let is_zero = |at: u64| read_block(&device, at).unwrap() == [0; BLOCK_SIZE];
    assert!((0..1100).all(|at| is_zero(at) == ((3..5).contains(&at) || (100..1000).contains(&at))));
    let addrs = [9, 4, 10, 2000];
    writer.blocks(addrs.map(|at| (f2fs_format::BlockAddr(at), [at as u8; BLOCK_SIZE])).to_vec()).unwrap();
    assert!(addrs.iter().all(|at| read_block(&device, u64::from(*at)).unwrap() == [*at as u8; BLOCK_SIZE]));
    let stopped = write::Writer { device: &device, stop: &|| true };
    assert!(matches!(stopped.zero(std::iter::once(3..5)), Err(FormatVolumeError::Stopped { touched: true })));
}
