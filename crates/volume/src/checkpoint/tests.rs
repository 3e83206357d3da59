#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::{Arc, Mutex};

use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_device_test::{FlushedDevice, RecordingDevice};
use f2fs_format::checkpoint::flags;
use f2fs_format::node::XATTR_NODE_OFFSET;
use f2fs_format::{BlockAddr, LogType, SegmentNo};
use f2fs_journal::{Create, DeviceMedium, Journal, SharedMedium, Uuid};
use f2fs_segment::Victim;

use super::*;
use crate::format::FormatOptions;
use crate::tree::Slot;
use crate::{Flight, FoundJournal, JournalArea, JournalMode, NewNode, Node, VolumeOptions};

fn recorded(mib: u64) -> Arc<RecordingDevice> {
    let device = MemoryDevice::new(mib << 8);
    Volume::format(&device, &FormatOptions::default()).unwrap();
    Arc::new(RecordingDevice::new(device))
}

fn volume(options: &VolumeOptions) -> (Arc<RecordingDevice>, Volume) {
    // With segments to spare: what is written ahead stands aside.
    let device = recorded(512);
    let volume = Volume::open(device.clone(), options).unwrap();
    (device, volume)
}

fn create(volume: &Volume, ino: Option<&Node>) -> Node {
    let offset = if ino.is_some() { XATTR_NODE_OFFSET } else { 0 };
    let new = NewNode { ino: ino.map(Node::nid), offset, directory: false };
    volume.nodes().create(&volume.begin().unwrap(), new).unwrap()
}

fn block_of(volume: &Volume, node: &Node) -> BlockAddr {
    volume.nat.get(node.nid()).unwrap().addr
}

#[test]
fn a_checkpoint_tells_what_it_wrote() {
    for left in [u64::MAX, 0] {
        let (device, volume) = volume(&VolumeOptions::new().nodes_left_to_freeze(left));
        let node = create(&volume, None);
        let op = volume.begin().unwrap();
        let slot = Slot { node: node.clone(), index: 0 };
        let flight = Flight::begin_blocks(&op, LogType::WarmData, [slot].into_iter(), AlignedBuf::new(1), 1).unwrap();
        flight.land_slots(&op, |_, _| {}).unwrap();
        drop(op);
        let (stat, kbytes) = (volume.stat(), volume.last_checkpoint.get().kbytes_written);
        let before = device.counts();
        let report = volume.checkpoints().write(Reason::Sync).unwrap();
        let (now, after) = (volume.stat().written, device.counts());
        assert_eq!((report.nodes, report.frozen_nodes), (1, u64::from(left != 0)));
        assert_eq!(report.version, volume.last_checkpoint().version);
        assert_eq!(now.checkpoints - stat.written.checkpoints, 1);
        assert_eq!(now.node_blocks - stat.written.node_blocks, report.nodes);
        assert_eq!(now.table_blocks - stat.written.table_blocks, report.table_blocks);
        assert_eq!(now.pack_blocks - stat.written.pack_blocks, report.pack_blocks);
        let written = after.blocks_written - before.blocks_written;
        assert_eq!(report.nodes + report.table_blocks + report.pack_blocks, written);
        // A block of data as well; the pack is not counted there.
        let in_life = volume.last_checkpoint.get().kbytes_written - kbytes;
        assert_eq!(in_life, 4 * (1 + report.nodes + report.table_blocks));
        assert_eq!((volume.stat().dirty_nodes, volume.stat().data_blocks_written), (0, 0));
        // Its pages need not stay in memory.
        assert_eq!(volume.store.kept(), 0);
        assert_eq!((after.flushes - before.flushes, after.durable_writes - before.durable_writes), (2, 1));
    }
}

#[test]
fn the_nodes_of_a_file_lie_together() {
    for left in [u64::MAX, 0] {
        let (_, volume) = volume(&VolumeOptions::new().nodes_left_to_freeze(left));
        let (one, other) = (create(&volume, None), create(&volume, None));
        let nodes = [&one, &other, &create(&volume, Some(&one)), &create(&volume, Some(&other))];
        volume.checkpoints().write(Reason::Sync).unwrap();
        let places = nodes.map(|node| block_of(&volume, node).0);
        // Which file comes first depends on the processor that its number is from.
        let first = places[0].min(places[1]);
        assert_eq!([places[0] + 1, places[1] + 1], places[2..], "{left}: {places:?}");
        assert_eq!(places.iter().max().copied(), Some(first + 3), "{left}: {places:?}");
    }
}

/// Of nodes that change again, and of those that are freed.
#[test]
fn blocks_of_nodes_are_free_when_something_newer_counts() {
    for left in [u64::MAX, 0] {
        let (_, volume) = volume(&VolumeOptions::new().nodes_left_to_freeze(left));
        let (kept, freed) = (create(&volume, None), create(&volume, None));
        volume.checkpoints().write(Reason::Sync).unwrap();
        let before = [&kept, &freed].map(|node| block_of(&volume, node));
        {
            let op = volume.begin().unwrap();
            kept.write(&op).inode_mut().i_uid = 5.into();
            drop(freed.write(&op));
            volume.nodes().remove(&op, &freed).unwrap();
        }
        assert_eq!(volume.checkpoints().write(Reason::Sync).unwrap().nodes, 1);
        let in_use = |addr| volume.data().is_in_use(addr).unwrap();
        assert!(before.iter().all(|addr| !in_use(*addr)) && in_use(block_of(&volume, &kept)), "{left}");
        let found = volume.recovery().synced_node(block_of(&volume, &kept)).unwrap();
        assert_eq!(found.inode().i_uid.get(), 5);
    }
}

#[test]
fn what_a_checkpoint_wrote_presses_nobody() {
    for left in [u64::MAX, 0] {
        let (_, volume) = volume(&VolumeOptions::new().nodes_left_to_freeze(left));
        (0..200).for_each(|_| drop(create(&volume, None)));
        let pressure = || volume.segments.manager().unwrap().dirty_sections();
        assert!(pressure() > 0);
        let mut written_ahead = 0;
        let write = volume.checkpoints().write_with::<VolumeError>(
            Reason::Sync,
            || Ok(()),
            |_| {
                written_ahead = pressure();
                Ok(())
            },
        );
        assert_eq!(write.unwrap().nodes, 200);
        assert_eq!((written_ahead == 0, pressure()), (left == 0, 0));
    }
}

/// Segments that nothing is left in, nodes beyond the limit of the cache, and operations that were slowed down.
#[test]
fn a_checkpoint_leaves_room() {
    const NODES: usize = 3000;
    let (_, volume) = volume(&VolumeOptions::new().node_cache(core::num::NonZeroUsize::MIN).lanes(1));
    let node = create(&volume, None);
    for _ in 0..2 {
        let op = volume.begin().unwrap();
        let slots = (0..900).map(|index| Slot { node: node.clone(), index });
        let flight = Flight::begin_blocks(&op, LogType::WarmData, slots, AlignedBuf::new(900), 0).unwrap();
        flight.land_slots(&op, |_, _| {}).unwrap();
    }
    (0..NODES).for_each(|_| drop(create(&volume, None)));
    volume.brake.adjust(0, 0, 100);
    // A section that nobody empties any more.
    let victim = Victim { section: 50, first: SegmentNo(50), segments: 1, valid: 1, mtime: 0 };
    assert!(volume.victims.set_aside(victim, 1));
    let before = volume.stat();
    assert!(before.prefree_segments > 0 && volume.store.len() >= NODES);
    let report = volume.checkpoints().write(Reason::Sync).unwrap();
    assert_eq!(report.freed_segments, u64::from(before.prefree_segments));
    assert_eq!(volume.stat().prefree_segments, 0);
    assert!(volume.store.len() < NODES / 2, "{} of {NODES} nodes", volume.store.len());
    assert!(volume.victims.take_aside().is_empty());
    assert_eq!(format!("{:?}", volume.brake), format!("{:?}", crate::brake::Brake::default()));
}

/// Who waited for another thread's checkpoint may have what it wanted.
#[test]
fn a_checkpoint_is_not_written_twice() {
    let (_, volume) = volume(&VolumeOptions::new());
    let (epoch, written) = (volume.epoch(), || volume.stat().written.sync_checkpoints);
    let before = written();
    let past = || volume.checkpoints().write_past::<VolumeError>(epoch, || Ok(()), |_| Ok(())).unwrap();
    assert!(past().is_some() && past().is_none());
    assert_eq!((written() - before, volume.stat().written.checkpoints), (1, 1));
    let needed = || volume.checkpoints().write_if_needed::<VolumeError>(|| Ok(()), |_| Ok(())).unwrap();
    assert!(needed().is_none(), "nothing is dirty");
    assert_eq!(volume.stat().written.checkpoints, 1);
}

#[test]
fn numbers_of_nodes_can_be_used_again_when_it_is_durable_that_they_are_free() {
    let (_, volume) = volume(&VolumeOptions::new());
    let node = create(&volume, None);
    volume.checkpoints().write(Reason::Sync).unwrap();
    volume.nodes().remove(&volume.begin().unwrap(), &node).unwrap();
    assert!(!volume.nat.reserve(node.nid()).unwrap());
    volume.checkpoints().write(Reason::Sync).unwrap();
    assert!(volume.nat.reserve(node.nid()).unwrap());
}

/// An error of the layer above, that stands for any.
const OF_ABOVE: VolumeError = VolumeError::FileTooLarge { size: 1, limit: 0 };

#[test]
fn an_error_above_leaves_the_volume_as_it_was() {
    let (device, volume) = volume(&VolumeOptions::new().nodes_left_to_freeze(0));
    create(&volume, None);
    let version = volume.footer_version();
    let failed = volume.checkpoints().write_with(Reason::Sync, || Err(OF_ABOVE), |_| panic!("frozen"));
    assert!(matches!(failed, Err(VolumeError::FileTooLarge { .. })));
    assert!(matches!(
        volume.checkpoints().write_with(Reason::Sync, || Ok(()), |_| Err(OF_ABOVE)),
        Err(VolumeError::FileTooLarge { .. })
    ));
    let failed: Result<(), VolumeError> =
        volume.checkpoints().with_gate_closed(|_| Err(OF_ABOVE), |_, _| panic!("it goes on"));
    assert!(matches!(failed, Err(VolumeError::FileTooLarge { .. })));
    let node = create(&volume, None);
    assert!(volume.close_with(|| Err(OF_ABOVE), |_| Ok(())).is_err());
    assert!(volume.close_with(|| Ok(()), |_| Err(OF_ABOVE)).is_err());
    assert_eq!(volume.footer_version(), version);
    // It is still the volume's.
    assert!(Volume::open(device.clone(), &VolumeOptions::new()).is_err());
    volume.close().unwrap();
    Volume::open(device, &VolumeOptions::new()).unwrap().nodes().get(node.nid()).unwrap();
}

/// Half of a recovery is nothing that may become durable, nor is anything of a volume that stopped.
#[test]
fn no_checkpoint_is_written_in_a_recovery_or_of_a_volume_that_stopped() {
    let refuse = |volume: &Volume, device: &RecordingDevice, because: fn(&VolumeError) -> bool| {
        let writes = device.counts().writes;
        let checkpoints = volume.checkpoints();
        let errors = [
            checkpoints.write(Reason::Sync).unwrap_err(),
            checkpoints.write_past::<VolumeError>(volume.epoch(), || Ok(()), |_| Ok(())).unwrap_err(),
            checkpoints.write_if_needed::<VolumeError>(|| Ok(()), |_| Ok(())).unwrap_err(),
            checkpoints.with_gate_closed::<(), VolumeError>(|_| Ok(()), |_, _| Ok(())).unwrap_err(),
            volume.close().unwrap_err(),
        ];
        assert!(errors.iter().all(because), "{errors:?}");
        assert_eq!(device.counts().writes, writes);
    };
    let (device, volume) = volume(&VolumeOptions::new());
    create(&volume, None);
    volume.recovery().begin().unwrap();
    refuse(&volume, &device, |error| matches!(error, VolumeError::ReadOnly));
    volume.recovery().end();
    assert_eq!(volume.checkpoints().write(Reason::Sync).unwrap().nodes, 1);
    create(&volume, None);
    volume.stop_for(StopCause::Panic);
    refuse(&volume, &device, |error| matches!(error, VolumeError::Stopped { .. }));
}

/// While it waits for the gate, or writes ahead.
#[test]
fn a_checkpoint_of_a_volume_that_stops_meanwhile_is_none() {
    type Call = fn(&Volume) -> Result<(), VolumeError>;
    let calls: [Call; 2] = [
        |volume| {
            let ahead = || {
                volume.stop_for(StopCause::Panic);
                Ok(())
            };
            volume.checkpoints().write_with(Reason::Sync, ahead, |_| panic!("frozen")).map(|_| ())
        },
        |volume| {
            let ahead = || {
                volume.stop_for(StopCause::Panic);
                Ok(())
            };
            volume.close_with(ahead, |_| panic!("frozen"))
        },
    ];
    for call in calls {
        let (device, volume) = volume(&VolumeOptions::new().nodes_left_to_freeze(0));
        // A directory block, so that the nodes do not see it first.
        volume.balance().add_dirty_dentries(1);
        let writes = device.counts().writes;
        assert!(matches!(call(&volume), Err(VolumeError::Stopped { .. })));
        assert_eq!(device.counts().writes, writes);
    }
}

#[test]
fn a_checkpoint_keeps_what_others_have_to_know() {
    let (_, volume) = volume(&VolumeOptions::new());
    let kept = [flags::FSCK, flags::ERROR, flags::QUOTA_NEED_FSCK];
    let lost = flags::FASTBOOT | flags::NAT_BITS | flags::TRIMMED | flags::NOCRC_RECOVERY | flags::UMOUNT;
    for flag in kept {
        let mut durable = volume.last_checkpoint.get();
        durable.checkpoint.flags = flag | lost;
        volume.last_checkpoint.replace(durable, volume.footer_version());
        volume.checkpoints().write(Reason::Sync).unwrap();
        let now = volume.last_checkpoint().flags;
        assert_eq!(now & (lost | kept.iter().sum::<u32>()), flag);
        assert_ne!(now & flags::CRC_RECOVERY, 0);
    }
    volume.checkpoints().write(Reason::Unmount).unwrap();
    assert_ne!(volume.last_checkpoint().flags & flags::UMOUNT, 0);
}

/// A crash between the pack and the journal's header finds a journal that belongs to either checkpoint.
#[test]
fn a_journal_knows_of_a_checkpoint_before_it_counts() {
    let below = Arc::new(MemoryDevice::new(64));
    let medium = |device: MemoryDevice| -> SharedMedium { Arc::new(DeviceMedium::new(Arc::new(device)).unwrap()) };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = {
        let (below, seen) = (below.clone(), seen.clone());
        move || seen.lock().unwrap().push(below.snapshot())
    };
    let device = FlushedDevice::new(recorded(64), look);
    let volume = Volume::open(Arc::new(device), &VolumeOptions::new()).unwrap();
    let journal: SharedMedium = Arc::new(DeviceMedium::new(below.clone()).unwrap());
    drop(Journal::create(journal.clone(), &Create::new(Uuid(volume.superblock().uuid)).lanes(1)).unwrap());
    volume.journal().attach(FoundJournal::open(&volume, journal, JournalMode::Ordered).unwrap()).unwrap();
    let before = volume.footer_version();
    seen.lock().unwrap().clear();
    volume.checkpoints().write(Reason::Sync).unwrap();
    let now = volume.footer_version();
    let area = |device: MemoryDevice| {
        let JournalArea { base, next } =
            JournalArea::read(Journal::open(medium(device), None).unwrap().area()).unwrap();
        (base, next)
    };
    let areas: Vec<_> = seen.lock().unwrap().drain(..).map(area).collect();
    assert_eq!(areas, [(before, 0), (before, now)]);
    assert_eq!(area(below.snapshot()), (now, 0));
}
