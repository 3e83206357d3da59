#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_format::SegmentNo;
use f2fs_format::summary::Summary;
use f2fs_journal::{Create, DeviceMedium, Journal, SharedMedium, Uuid};

use super::*;
use crate::JournalMode;
use crate::flight::moved::Moved;
use crate::journal::SyncJournal;
use crate::write_stat::Count;

const BLOCKS: usize = 3;

fn with_blocks() -> (Bench, Vec<BlockAddr>) {
    let bench = Bench::new();
    bench.write(0, BLOCKS, 1);
    let from = (0..BLOCKS as u64).map(|block| bench.address(block)).collect();
    (bench, from)
}

fn attach(volume: &Volume, mode: JournalMode) {
    let medium: SharedMedium = Arc::new(DeviceMedium::new(Arc::new(MemoryDevice::new(64))).unwrap());
    let journal = Journal::create(medium, &Create::new(Uuid([1; 16])).lanes(1)).unwrap();
    assert!(volume.attached_journal.attach(SyncJournal::new(journal, mode, None)));
}

/// Begins to move the blocks.
fn begin(bench: &Bench, op: &Op<'_>) -> Flight {
    let volume = &bench.volume;
    let segment: SegmentNo = volume.geometry().locate(bench.address(0)).unwrap().0;
    let version = volume.nodes().version(bench.file.nid()).unwrap();
    let summaries: Vec<_> = (0..BLOCKS).map(|slot| Summary::new(bench.file.nid(), version, slot as u16)).collect();
    let owners = (0..BLOCKS).map(|slot| (bench.file.clone(), slot));
    let data = AlignedBuf::from_bytes(&[9; BLOCKS * BLOCK]);
    Flight::begin_move(op, (segment, Destination::ColdLog), owners, &summaries, data).unwrap()
}

fn land(op: &Op<'_>, flight: Flight, from: &[BlockAddr]) -> (u64, u64) {
    let Moved { moved, lost } = flight.land_move(op, from, Count::MovedData).unwrap();
    (moved, lost)
}

#[test]
fn blocks_move_unless_they_changed_meanwhile() {
    let (bench, from) = with_blocks();
    let (before, stat, moves) = (bench.state(0..0), bench.volume.stat(), bench.volume.moves(bench.file.nid()));
    let op = bench.volume.begin().unwrap();
    let flight = begin(&bench, &op);
    bench.begin(&op, 1, 1, 2, Next::Land).land_slots(&op, |_, _| {}).unwrap();
    assert_eq!(land(&op, flight, &from), (2, 1));
    drop(op);
    assert_eq!((bench.fills(0..3), bench.state(0..0)), (vec![9, 2, 9], before));
    assert!(from.iter().all(|addr| !bench.volume.data().is_in_use(*addr).unwrap()));
    assert_ne!(bench.volume.moves(bench.file.nid()), moves, "who remembers where blocks are looks again");
    let after = bench.volume.stat();
    assert_eq!(after.written.moved_data_blocks - stat.written.moved_data_blocks, 2);
    assert_eq!(after.written.move_requests - stat.written.move_requests, 1);
    // Roll-forward may need the place of each.
    assert_eq!(after.data_blocks_written - stat.data_blocks_written, 3 + 1);
}

#[test]
fn a_move_that_fails_leaves_the_blocks_where_they_are() {
    let (bench, from) = with_blocks();
    let before = bench.state(0..3);
    let op = bench.volume.begin().unwrap();
    bench.device.arm(FaultRule::on([Operation::Write]));
    let flight = begin(&bench, &op);
    assert!(matches!(flight.land_move(&op, &from, Count::MovedData), Err(VolumeError::Device(_))));
    assert_eq!((bench.state(0..3), bench.fills(0..3)), (before, vec![1; 3]));
}

/// Before anything durable names them: by the next sync, by a step for itself where there is a journal, and by the
/// checkpoint where it moves them.
#[test]
fn moved_blocks_are_flushed_once() {
    for (journal, in_checkpoint, at_once, at_sync) in
        [(false, false, 0, 1), (true, false, 1, 0), (false, true, 0, 0), (true, true, 0, 0)]
    {
        let (bench, from) = with_blocks();
        let volume = &bench.volume;
        if journal {
            attach(volume, JournalMode::Ordered);
        }
        let flushes = || bench.recorded.counts().flushes;
        let before = flushes();
        let op = if in_checkpoint { Op::within_checkpoint(volume) } else { volume.begin().unwrap() };
        let flight = begin(&bench, &op);
        assert_eq!(land(&op, flight, &from), (3, 0));
        assert_eq!(flushes() - before, at_once, "journal: {journal}, checkpoint: {in_checkpoint}");
        for _ in 0..2 {
            drop(volume.unflushed_moves.sync(&*bench.device).unwrap());
        }
        assert_eq!(flushes() - before, at_once + at_sync, "journal: {journal}, checkpoint: {in_checkpoint}");
    }
    // A checkpoint has flushed them, too.
    let (bench, from) = with_blocks();
    let op = bench.volume.begin().unwrap();
    let flight = begin(&bench, &op);
    land(&op, flight, &from);
    drop(op);
    bench.volume.checkpoints().write(crate::Reason::Sync).unwrap();
    let before = bench.recorded.counts().flushes;
    drop(bench.volume.unflushed_moves.sync(&*bench.device).unwrap());
    assert_eq!(bench.recorded.counts().flushes, before);
}

#[test]
fn moved_blocks_that_cannot_be_flushed_stop_a_volume_with_a_journal() {
    let (bench, from) = with_blocks();
    attach(&bench.volume, JournalMode::Ordered);
    let op = bench.volume.begin().unwrap();
    let flight = begin(&bench, &op);
    bench.device.arm(FaultRule::on([Operation::Flush]));
    assert!(matches!(flight.land_move(&op, &from, Count::MovedData), Err(VolumeError::Device(_))));
    drop(op);
    assert!(matches!(bench.volume.begin(), Err(VolumeError::Stopped { .. })));
    assert_eq!((0..3).map(|block| bench.address(block)).collect::<Vec<_>>(), from);
}

/// In the mode that puts data into records: what a file wrote and did not flush, and nothing that was written for
/// another one.
#[test]
fn a_journal_gets_the_data_of_one_file() {
    let bench = Bench::new();
    let other = new_inode(&bench.volume);
    attach(&bench.volume, JournalMode::Journal);
    let journal = bench.volume.attached_journal.get().unwrap();
    let kept = |ino: &Node| {
        let mut collected = crate::journal::data::Collected::default();
        journal.data.as_ref().unwrap().collect(ino.nid(), &mut collected);
        (collected.blocks, collected.is_partial)
    };
    for next in [Next::Other, Next::Land, Next::Sync] {
        let op = bench.volume.begin().unwrap();
        let flight = bench.begin(&op, 0, 3, 1, next);
        flight.land(&op, &bench.file, |_, _| {}, |_| {}).unwrap();
        bench.begin(&op, 5, 1, 1, next).land(&op, &bench.file, |_, _| {}, |_| {}).unwrap();
        // What is overwritten, and what is no longer named, is of no use.
        bench.begin(&op, 5, 1, 2, next).land_slots(&op, |_, _| {}).unwrap();
        bench.begin(&op, 6, 1, 2, next).abandon(&op).unwrap();
        assert_eq!((kept(&bench.file), kept(&other)), ((4, false), (0, false)), "{next:?}");
    }
    let two = |op: &Op<'_>| {
        let slots = [&bench.file, &other].map(|node| Slot { node: node.clone(), index: 9 });
        Flight::begin_blocks(op, LogType::WarmData, slots.into_iter(), AlignedBuf::new(2), 0).unwrap()
    };
    let op = bench.volume.begin().unwrap();
    two(&op).land_slots(&op, |_, _| {}).unwrap();
    drop(op);
    assert_eq!((kept(&bench.file), kept(&other)), ((0, true), (0, true)), "both have to be flushed");
    // Where blocks of others go along in the requests.
    let op = bench.volume.begin().unwrap();
    let mut flight = bench.begin(&op, 0, 1, 3, Next::Other);
    flight.keep = Keep::Mark;
    flight.land(&op, &bench.file, |_, _| {}, |_| {}).unwrap();
    assert_eq!((kept(&bench.file), kept(&other)), ((0, true), (0, false)));
    drop(op);
    // A checkpoint makes durable what it writes.
    let op = Op::within_checkpoint(&bench.volume);
    two(&op).land_slots(&op, |_, _| {}).unwrap();
    assert_eq!((kept(&bench.file), kept(&other)), ((0, false), (0, false)));
    drop(op);
    bench.volume.journal().retire(&bench.volume.begin().unwrap());
    bench.write(0, 1, 1);
    assert_eq!(kept(&bench.file), (0, false), "no record will have it");
}
