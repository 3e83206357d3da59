//! The life of a volume by itself: nodes and data blocks, checkpoints, unclean stops.
#![allow(clippy::unwrap_used)] // what fails here is a failed test

use std::sync::Arc;

use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice};
use f2fs_format::checkpoint::{CheckpointBlock, flags};
use f2fs_format::node::XATTR_NODE_OFFSET;
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BlockAddr, LogType, Nid};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::tree::Slot;
use f2fs_volume::{Flight, NewNode, Reason, Volume, VolumeError, VolumeOptions};

fn fresh() -> Arc<MemoryDevice> {
    let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
    Volume::format(&*device, &FormatOptions::default()).unwrap();
    device
}

fn open(device: &Arc<MemoryDevice>) -> Volume {
    Volume::open(device.clone(), &VolumeOptions::new()).unwrap()
}

const INODE: NewNode = NewNode { ino: None, offset: 0, directory: false };

#[test]
fn what_a_checkpoint_holds_is_what_is_found() {
    let device = fresh();
    let volume = open(&device);
    let before = volume.stat();
    let (kept, lost);
    {
        let op = volume.begin().unwrap();
        let node = volume.nodes().create(&op, INODE).unwrap();
        kept = node.nid();
        node.write(&op).inode_mut().i_uid = 77.into();
    }
    let report = volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!(report.nodes, 1);
    {
        let op = volume.begin().unwrap();
        lost = volume.nodes().create(&op, INODE).unwrap().nid();
        volume.nodes().get(kept).unwrap().write(&op).inode_mut().i_uid = 88.into();
    }
    assert_eq!(volume.stat().valid_inodes, before.valid_inodes + 2);
    drop(volume); // as a crash would

    let volume = open(&device);
    assert_eq!(volume.stat().valid_inodes, before.valid_inodes + 1);
    assert_eq!(volume.nodes().get(kept).unwrap().read().inode().i_uid.get(), 77);
    assert!(volume.nodes().get(lost).is_err());
}

#[test]
fn freed_blocks_and_nids_wait_for_the_checkpoint() {
    let device = fresh();
    let volume = open(&device);
    let file = volume.nodes().create(&volume.begin().unwrap(), INODE).unwrap();
    let write = |fill: u8| {
        let op = volume.begin().unwrap();
        let data = AlignedBuf::from_bytes(&[fill; 4096]);
        let slot = Slot { node: file.clone(), index: 0 };
        let flight = Flight::begin_blocks(&op, LogType::WarmData, [slot.clone()].into_iter(), data, 1).unwrap();
        flight.land(&op, &file, |_, _| {}, |_| {}).unwrap();
        slot.get(&volume)
    };
    let free = || volume.slots().clear(&volume.begin().unwrap(), &file, 0..1, |_, _| {});
    let first = write(1);
    assert_eq!(free().unwrap(), 1);
    assert_eq!(free().unwrap(), 0, "freed twice");
    {
        let op = volume.begin().unwrap();
        file.write(&op).set_address(0, first, volume.features());
    }
    assert!(free().is_err(), "a slot names what is free");
    // Far more than a segment: the freed block must not come back.
    for _ in 0..1500 {
        let addr = write(2);
        assert_ne!(addr, first);
        assert_eq!(free().unwrap(), 1);
    }
    let prefree = volume.stat().prefree_segments;
    assert!(prefree >= 2, "{prefree}");
    let free = volume.stat().free_segments;
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!(volume.stat().prefree_segments, 0);
    assert_eq!(volume.stat().free_segments, free + prefree);

    let freed = {
        let op = volume.begin().unwrap();
        let node = volume.nodes().create(&op, INODE).unwrap();
        volume.nodes().remove(&op, &node).unwrap();
        node.nid()
    };
    for _ in 0..2000 {
        let op = volume.begin().unwrap();
        let node = volume.nodes().create(&op, INODE).unwrap();
        assert_ne!(node.nid(), freed);
        volume.nodes().remove(&op, &node).unwrap();
    }
}

#[test]
fn reading_only_changes_nothing() {
    let device = fresh();
    open(&device).close().unwrap();
    let before = device.snapshot();
    let volume = Volume::open(device.clone(), &VolumeOptions::new().read_only(true)).unwrap();
    assert!(matches!(volume.begin(), Err(VolumeError::ReadOnly)));
    assert!(matches!(volume.checkpoints().write(Reason::Sync), Err(VolumeError::ReadOnly)));
    volume.nodes().get(Nid(3)).unwrap();
    volume.close().unwrap();
    let (a, b) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
    before.save(a.path()).unwrap();
    device.save(b.path()).unwrap();
    assert!(std::fs::read(a.path()).unwrap() == std::fs::read(b.path()).unwrap());
}

#[test]
fn a_closed_volume_refuses_changes_and_is_clean() {
    let device = fresh();
    let volume = open(&device);
    {
        let op = volume.begin().unwrap();
        let node = volume.nodes().create(&op, INODE).unwrap();
        let xattr = NewNode { ino: Some(node.nid()), offset: XATTR_NODE_OFFSET, directory: false };
        let xattr = volume.nodes().create(&op, xattr).unwrap();
        volume.nodes().remove(&op, &xattr).unwrap();
        volume.nodes().remove(&op, &node).unwrap();
    }
    volume.close().unwrap();
    assert!(matches!(volume.begin(), Err(VolumeError::Stopped { .. })));
    let image = tempfile::NamedTempFile::new().unwrap();
    device.save(image.path()).unwrap();
    f2fs_oracle::assert_clean(image.path());
}

#[test]
fn addresses_outside_the_main_area_are_corruption() {
    let device = fresh();
    let volume = open(&device);
    let mut buf = AlignedBuf::new(2);
    let main = volume.geometry().main_blkaddr;
    let end = volume.geometry().main_end();
    for addr in [BlockAddr(0), BlockAddr(1), BlockAddr(main.0 - 1), BlockAddr(end.0 - 1), end, BlockAddr::NEW] {
        assert!(matches!(volume.data().read(Nid(3), addr, &mut buf), Err(VolumeError::Corrupt(_))), "{addr}");
    }
    volume.data().read(Nid(3), main, &mut buf).unwrap();
}

/// Operations keep the checkpoints of their own volume away, and no other's.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "an operation on another volume")]
fn an_operation_on_another_volume_is_told() {
    let (one, other) = (open(&fresh()), open(&fresh()));
    let op = one.begin().unwrap();
    let _ = other.data().reserve(&op, 1);
}

/// Its blocks would be in use, and nobody's, in the next checkpoint.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a flight neither landed nor was abandoned")]
fn a_flight_without_an_end_is_told() {
    let volume = open(&fresh());
    let op = volume.begin().unwrap();
    let node = volume.nodes().create(&op, INODE).unwrap();
    let slot = Slot { node, index: 0 };
    let data = AlignedBuf::from_bytes(&[1; 4096]);
    drop(Flight::begin_blocks(&op, LogType::WarmData, [slot].into_iter(), data, 1).unwrap());
}

/// Changes both checkpoint blocks of the pack that counts.
fn patch_checkpoint(device: &MemoryDevice, change: impl Fn(&mut CheckpointBlock)) {
    let found = f2fs_volume::examine(device);
    let pack = found
        .packs
        .iter()
        .filter(|pack| pack.problem.is_none())
        .max_by_key(|pack| pack.raw.map_or(0, |header| header.checkpoint_ver.get()));
    let pack = pack.unwrap();
    let total = u64::from(pack.raw.unwrap().cp_pack_total_block_count.get());
    for block in [pack.block, pack.block + total - 1] {
        let mut checkpoint = CheckpointBlock::read(device.read(block, 1).unwrap().block(0));
        change(&mut checkpoint);
        checkpoint.seal();
        device.write_slice(block, checkpoint.as_block()).unwrap();
    }
}

#[test]
fn a_volume_whose_checkpoints_are_switched_off_is_read_and_not_written() {
    let device = fresh();
    patch_checkpoint(&device, |checkpoint| {
        checkpoint.header.ckpt_flags = (checkpoint.header.ckpt_flags.get() | flags::DISABLED).into();
    });
    let refused = Volume::open(device.clone(), &VolumeOptions::new()).unwrap_err();
    assert!(matches!(refused, VolumeError::CheckpointDisabled), "{refused}");
    Volume::open(device, &VolumeOptions::new().read_only(true)).unwrap();
}

#[test]
fn what_was_written_in_all_lives_is_counted() {
    let device = fresh();
    let written = || {
        let found = f2fs_volume::examine(&*device);
        let packs = found.packs.iter().filter_map(|pack| Some((pack.block, pack.raw?)));
        let (block, header) = packs.max_by_key(|(_, header)| header.checkpoint_ver.get()).unwrap();
        // The summaries of the node logs are in a pack of an unmount, in front of its last block.
        let hot_node = block + u64::from(header.cp_pack_total_block_count.get()) - 4;
        SummaryBlock::read(device.read(hot_node, 1).unwrap().block(0)).journal.kbytes_written()
    };
    let mut before = written();
    for _ in 0..3 {
        let volume = open(&device);
        {
            let op = volume.begin().unwrap();
            volume.nodes().create(&op, INODE).unwrap();
        }
        volume.checkpoints().write(Reason::Unmount).unwrap();
        drop(volume);
        let now = written();
        assert!(now >= before + 4, "{before} KiB, then {now}");
        before = now;
    }
}

/// A checkpoint of few nodes writes them with the gate closed, unless it is told to leave it fewer.
#[test]
fn nodes_are_left_to_the_freeze_as_the_options_say() {
    for (left, frozen) in [(u64::MAX, 20), (512, 20), (0, 0)] {
        // With segments to spare: what is written ahead stands aside.
        let device = Arc::new(MemoryDevice::new((512 << 20) >> 12));
        Volume::format(&*device, &FormatOptions::default()).unwrap();
        let volume = Volume::open(device, &VolumeOptions::new().nodes_left_to_freeze(left)).unwrap();
        {
            let op = volume.begin().unwrap();
            (0..20).for_each(|_| drop(volume.nodes().create(&op, INODE).unwrap()));
        }
        let report = volume.checkpoints().write_with::<VolumeError>(Reason::Sync, || Ok(()), |_| Ok(())).unwrap();
        assert_eq!((report.nodes, report.frozen_nodes), (20, frozen), "{left}");
    }
}

/// What frees nothing leaves nothing for a checkpoint.
#[test]
fn slots_that_hold_nothing_are_cleared_without_a_trace() {
    let volume = open(&fresh());
    let file = volume.nodes().create(&volume.begin().unwrap(), INODE).unwrap();
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!(volume.slots().clear(&volume.begin().unwrap(), &file, 0..900, |_, _| {}).unwrap(), 0);
    assert_eq!(volume.stat().dirty_nodes, 0);
}

/// All numbers of the table but 0, 1 and 2 are for nodes, the root's among them.
#[test]
fn nodes_may_be_as_many_as_there_are_numbers() {
    let volume = open(&fresh());
    let numbers = u64::from(volume.geometry().nat_blocks()) * 455;
    let stat = volume.stat();
    assert_eq!((stat.max_nodes, stat.free_nids), (numbers - 3, numbers - 3 - stat.valid_nodes));
}
