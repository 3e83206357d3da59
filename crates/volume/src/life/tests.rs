#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_format::checkpoint::CheckpointBlock;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BlockAddr, FormatError};

use super::*;
use crate::format::FormatOptions;
use crate::samples::{inode, made, plain, segment, segments, write, zones};
use crate::{CostModel, Reason};

fn fresh() -> PlainArc<MemoryDevice> {
    let device = PlainArc::new(MemoryDevice::new(64 << 8));
    crate::format::format(&*device, &FormatOptions::default()).unwrap();
    device
}

fn open(device: &PlainArc<MemoryDevice>, options: &VolumeOptions) -> Result<Volume, VolumeError> {
    Volume::open(device.clone(), options)
}

#[test]
fn a_pack_has_room_for_orphans_beside_everything_else() {
    let mut geometry = plain(64).geometry.clone();
    geometry.cp_payload = 0;
    assert_eq!(most_orphans(&geometry), 504 * 1020);
    geometry.cp_payload = 10;
    assert_eq!(most_orphans(&geometry), 494 * 1020);
}

#[test]
fn large_volumes_have_more_lanes() {
    let mut geometry = plain(64).geometry.clone();
    let mut lanes = |sections, wanted| {
        geometry.sections = sections;
        lanes_of(&geometry, wanted)
    };
    assert_eq!((lanes(24, 0), lanes(24, 1), lanes(24, 7), lanes(24, 100)), (1, 1, 7, 8));
    assert_eq!((lanes(8 * 32 + 31, 100), lanes(9 * 32, 100), lanes(9 * 32, 9), lanes(9 * 32, 3)), (8, 9, 9, 3));
}

/// Only data of a volume without zones may wait in front of the device, if it is asked for.
#[test]
fn writes_wait_behind_where_that_is_possible() {
    let device = fresh();
    let waits = |options: &VolumeOptions| open(&device, options).unwrap().behind.is_some();
    assert!(waits(&VolumeOptions::new().write_behind(100)));
    assert!(!waits(&VolumeOptions::new()));
    assert!(!waits(&VolumeOptions::new().write_behind(100).read_only(true)));
    let device = zones(64, 1);
    drop(made(device.clone(), &FormatOptions::default().with_features(Features::BLKZONED)));
    let options = VolumeOptions::new().write_behind(100).allocation(Allocation::partial(CostModel::nvme()));
    let volume = Volume::open(device, &options).unwrap();
    assert!(volume.behind.is_none());
    assert!(volume.precleaner.planner().is_none(), "logs on zones never write into holes");
}

/// They are discarded if that is asked for, and the device can.
#[test]
fn segments_are_discarded_where_that_is_possible() {
    let device = fresh();
    assert!(open(&device, &VolumeOptions::new()).unwrap().discards);
    assert!(!open(&device, &VolumeOptions::new().discard(false)).unwrap().discards);
    let zoned = zones(64, 1);
    let volume = made(zoned, &FormatOptions::default().with_features(Features::BLKZONED));
    assert!(!volume.discards);
}

/// Changes both superblocks.
fn with_features(device: &PlainArc<MemoryDevice>, bits: u32) {
    for block in 0..2 {
        let mut bytes = *device.read(block, 1).unwrap().block(0);
        let mut raw = SuperBlock::read(&bytes);
        raw.feature = (raw.feature.get() | bits).into();
        raw.write(&mut bytes);
        device.write_slice(block, &bytes).unwrap();
    }
}

#[test]
fn features_decide_how_a_volume_opens() {
    let (writing, reading) = (VolumeOptions::new(), VolumeOptions::new().read_only(true));
    let device = fresh();
    with_features(&device, Features::CASEFOLD.0 | Features::INODE_CRTIME.0);
    let error = open(&device, &writing).unwrap_err();
    let VolumeError::OnlyForReading { bits, names } = error else { panic!("{error}") };
    assert_eq!((bits, names.as_str()), (Features::CASEFOLD.0, "casefold"));
    assert!(open(&device, &reading).is_ok());
    let device = fresh();
    with_features(&device, 1 << 30);
    for options in [&writing, &reading] {
        let error = open(&device, options).unwrap_err();
        let unsupported = matches!(error, VolumeError::Format(FormatError::Unsupported { bits: 0x4000_0000, .. }));
        assert!(unsupported, "{error}");
    }
    let device: PlainArc<MemoryDevice> = PlainArc::new(fresh().snapshot().read_only());
    assert!(matches!(open(&device, &writing), Err(VolumeError::ReadOnly)));
    assert!(open(&device, &reading).is_ok());
}

/// The newest checkpoint lost its first block: a careful owner does not go on with the one before.
#[test]
fn a_lost_checkpoint_is_not_given_up_unasked() {
    for checkpoints in [2, 3] {
        let device = fresh();
        let volume = open(&device, &VolumeOptions::new()).unwrap();
        for _ in 0..checkpoints {
            drop(inode(&volume));
            volume.checkpoints().write(Reason::Sync).unwrap();
        }
        let (last, geometry) = (volume.last_checkpoint.get(), volume.geometry.clone());
        drop(volume);
        device.write_slice(geometry.checkpoint_pack(last.pack).0.into(), &[0; 4096]).unwrap();
        let error = open(&device, &VolumeOptions::new().newest_only(true)).unwrap_err();
        let VolumeError::LostCheckpoint { pack, newer, older } = error else { panic!("{error}") };
        assert_eq!((pack, newer, older), (last.pack, last.checkpoint.version, last.checkpoint.version - 1));
        let reading = open(&device, &VolumeOptions::new().newest_only(true).read_only(true)).unwrap();
        assert_eq!(reading.damage().newer, Some(newer));
        drop(reading);
        assert_eq!(open(&device, &VolumeOptions::new()).unwrap().last_checkpoint().version, older);
    }
}

#[test]
fn a_volume_whose_checkpoints_are_disabled_is_only_read() {
    let device = fresh();
    for pack in 0..2 {
        let geometry = open(&device, &VolumeOptions::new().read_only(true)).unwrap().geometry.clone();
        let first = u64::from(geometry.checkpoint_pack(pack).0);
        let mut block = CheckpointBlock::read(device.read(first, 1).unwrap().block(0));
        let total = u64::from(block.header.cp_pack_total_block_count.get());
        block.header.ckpt_flags = (block.header.ckpt_flags.get() | flags::DISABLED).into();
        block.seal();
        for at in [first, first + total - 1] {
            device.write_slice(at, block.as_block()).unwrap();
        }
    }
    assert!(matches!(open(&device, &VolumeOptions::new()), Err(VolumeError::CheckpointDisabled)));
    assert!(open(&device, &VolumeOptions::new().read_only(true)).is_ok());
}

/// The table of segments has as many nodes as the checkpoint says, and no more blocks.
#[test]
fn a_table_that_contradicts_the_checkpoint_is_refused() {
    let with = |change: fn(&mut CheckpointBlock)| {
        let device = fresh();
        let geometry = open(&device, &VolumeOptions::new().read_only(true)).unwrap().geometry.clone();
        let first = u64::from(geometry.checkpoint_pack(0).0);
        let mut block = CheckpointBlock::read(device.read(first, 1).unwrap().block(0));
        change(&mut block);
        block.seal();
        let total = u64::from(block.header.cp_pack_total_block_count.get());
        for at in [first, first + total - 1] {
            device.write_slice(at, block.as_block()).unwrap();
        }
        open(&device, &VolumeOptions::new()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(with(|_| {}), Ok(()));
    let error = with(|block| block.header.valid_node_count = 2.into()).unwrap_err();
    assert!(error.contains("node blocks in the SIT"), "{error}");
    let error = with(|block| block.header.valid_block_count = 1.into()).unwrap_err();
    assert!(error.contains("valid blocks in the SIT"), "{error}");
}

/// Who reads a volume on zones sees as much room as who writes to it, and whether zones were changed.
#[test]
fn a_volume_on_zones_is_the_same_for_readers() {
    let layout = f2fs_device::ZoneLayout::new(512).with_conventional(8).with_capacity(300);
    let device = PlainArc::new(f2fs_device::ZonedDevice::new(MemoryDevice::new(64 * 512), layout).unwrap());
    let volume = made(device.clone(), &FormatOptions::default().with_features(Features::BLKZONED));
    write(&volume, &inode(&volume), 0..20, LogType::WarmData);
    volume.recovery().settle_zones().unwrap();
    volume.checkpoints().write(Reason::Sync).unwrap();
    let (room, warm) = (volume.stat().user_blocks, segments(&volume).log(LogType::WarmData).segment);
    let geometry = volume.geometry.clone();
    drop(volume);
    let reading = VolumeOptions::new().read_only(true);
    let volume = Volume::open(device.clone(), &reading).unwrap();
    volume.recovery().settle_zones().unwrap();
    assert_eq!(volume.stat().user_blocks, room);
    drop(volume);
    device.reset(geometry.block_at(warm, 0).0 / 512).unwrap();
    for options in [reading, VolumeOptions::new()] {
        let error = Volume::open(device.clone(), &options).unwrap_err();
        let VolumeError::Zone { found: 0, expected: 20, .. } = error else { panic!("{error}") };
    }
}

/// The summaries of segments that logs have left say what they are of.
#[test]
fn summaries_tell_nodes_from_data() {
    let volume = plain(256);
    // As they stand when a volume is opened.
    let device = volume.device().clone();
    volume.close().unwrap();
    drop(volume);
    let volume = Volume::open(device, &VolumeOptions::new().lanes(1)).unwrap();
    let node = segment(&volume, 512);
    write(&volume, &inode(&volume), 0..1, LogType::WarmData);
    let nodes: Vec<_> = (0..300).map(|_| inode(&volume)).collect();
    volume.checkpoints().write(Reason::Sync).unwrap();
    let more: Vec<_> = (0..300).map(|_| inode(&volume)).collect();
    volume.checkpoints().write(Reason::Sync).unwrap();
    let type_of = |addr: BlockAddr| {
        let (segment, _) = volume.geometry.locate(addr).unwrap();
        let block = volume.geometry.summary_block(segment);
        summary::SummaryBlock::read(volume.device().read(block.0.into(), 1).unwrap().block(0)).entry_type
    };
    assert_eq!(type_of(crate::samples::address(&volume, &node, 0)), summary::TYPE_DATA);
    assert_eq!(type_of(volume.nat.get(nodes[0].nid()).unwrap().addr), summary::TYPE_NODE);
    drop(more);
}
