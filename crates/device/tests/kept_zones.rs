//! Zones that are kept: found again as they were, and after a power cut as a zone may be.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, DeviceErrorKind, KeptError, KeptZones, MemoryDevice, Operation, ZoneChange,
    ZoneError, ZoneLayout, ZoneState,
};
use f2fs_device_test::{CutPlan, FaultDevice, FaultRule, Random, RecordingDevice};
use f2fs_sync::Arc;

const ZONE: u64 = 6;
const CAPACITY: u64 = 5;
const ZONES: u32 = 70;

fn layout() -> ZoneLayout {
    ZoneLayout::new(ZONE).with_capacity(CAPACITY).with_conventional(1)
}

/// Two more blocks than the zones: one for the table, one for the header.
fn disk() -> MemoryDevice {
    MemoryDevice::new(u64::from(ZONES) * ZONE + 2)
}

/// A block that names its number and the life of its zone that it belongs to.
fn stamped(life: u64, at: u64) -> AlignedBuf {
    let mut buf = AlignedBuf::new(1);
    buf.as_bytes_mut()[..8].copy_from_slice(&(life << 8 | at | 1 << 63).to_le_bytes());
    buf.as_bytes_mut()[BLOCK_SIZE - 8..].copy_from_slice(&(life << 8 | at | 1 << 63).to_le_bytes());
    buf
}

fn stamps(device: &dyn BlockDevice, start: u64, blocks: u64) -> Vec<u64> {
    let buf = device.read(start, blocks as usize).unwrap();
    let word = |block: &[u8], at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    buf.as_bytes()
        .chunks(BLOCK_SIZE)
        .map(|block| {
            assert_eq!(word(block, 0), word(block, BLOCK_SIZE - 8), "a torn block");
            word(block, 0)
        })
        .collect()
}

#[test]
fn every_state_is_found_again() {
    let disk = Arc::new(disk());
    let device = KeptZones::create(disk.clone(), layout()).unwrap();
    assert_eq!(device.info().blocks, u64::from(ZONES) * ZONE);
    let start = |zone: u64| zone * ZONE;
    device.write_slice(3, b"anywhere").unwrap();
    device.write_slice(start(1), b"open").unwrap();
    device.write(start(2), AlignedBuf::new(CAPACITY as usize)).unwrap();
    device.write_slice(start(3), b"finished").unwrap();
    device.change_zone(start(3), ZoneChange::Finish).unwrap();
    device.write_slice(start(4), b"reset").unwrap();
    device.flush().unwrap();
    device.change_zone(start(4), ZoneChange::Reset).unwrap();
    device.write_slice(start(5), b"worn out").unwrap();
    device.wear_out(5).unwrap();
    device.take_offline(6).unwrap();
    device.change_zone(start(7), ZoneChange::Open).unwrap();
    device.write_slice(start(69), b"the last").unwrap();
    device.flush().unwrap();
    drop(device);

    assert!(KeptZones::are_on(&disk).unwrap());
    let device = KeptZones::open(disk.clone()).unwrap();
    assert_eq!(*device.layout(), layout());
    let found = |zone: u32| device.zone(zone).map(|zone| (zone.state, zone.written)).unwrap();
    assert_eq!(found(0), (ZoneState::Conventional, None));
    assert_eq!((found(1), found(69)), ((ZoneState::Closed, Some(1)), (ZoneState::Closed, Some(1))));
    assert_eq!((found(2), found(3)), ((ZoneState::Full, None), (ZoneState::Full, None)));
    assert_eq!(
        (found(4), found(7), found(8)),
        ((ZoneState::Empty, Some(0)), (ZoneState::Empty, Some(0)), (ZoneState::Empty, Some(0)))
    );
    assert_eq!((found(5), found(6)), ((ZoneState::ReadOnly, Some(1)), (ZoneState::Offline, None)));
    assert!(device.read(start(3), 2).unwrap().as_bytes()[BLOCK_SIZE..].iter().all(|byte| *byte == 0));
    assert!(device.read(3, 1).unwrap().as_bytes().starts_with(b"anywhere"));
    device.write_slice(start(1) + 1, b"goes on").unwrap();
    assert!(matches!(device.write_slice(start(1), b"again").unwrap_err().kind, DeviceErrorKind::Zone(_)));
    let read_only = KeptZones::open(disk.snapshot().read_only()).unwrap();
    read_only.flush().unwrap();
    assert_eq!(read_only.change_zone(start(1), ZoneChange::Reset).unwrap_err().kind, DeviceErrorKind::ReadOnly);
}

#[test]
fn what_a_finished_zone_had_before_its_reset_stays_away() {
    let disk = Arc::new(disk());
    let device = KeptZones::create(disk.clone(), layout()).unwrap();
    device.write(ZONE, stamped(1, 0)).unwrap();
    device.write(ZONE + 1, stamped(1, 1)).unwrap();
    device.change_zone(ZONE, ZoneChange::Reset).unwrap();
    device.write(ZONE, stamped(2, 0)).unwrap();
    device.change_zone(ZONE, ZoneChange::Finish).unwrap();
    drop(device);
    let device = KeptZones::open(disk).unwrap();
    assert_eq!(stamps(&device, ZONE, 2), [2 << 8 | 1 << 63, 0]);
}

#[test]
fn what_keeps_no_zones_is_refused() {
    assert!(matches!(KeptZones::open(MemoryDevice::new(10)), Err(KeptError::NotThere)));
    assert!(matches!(KeptZones::open(MemoryDevice::new(0)), Err(KeptError::NotThere)));
    let error = KeptZones::create(MemoryDevice::new(ZONE + 1), layout()).unwrap_err();
    assert!(matches!(error, KeptError::Layout(ZoneError::Layout { what: "zones", .. })), "{error}");
    let made = disk();
    drop(KeptZones::create(Arc::new(made.snapshot()), layout()).unwrap());
    let disk = Arc::new(disk());
    drop(KeptZones::create(disk.clone(), layout()).unwrap());
    let last = disk.info().blocks - 1;
    // Each number of the header, and an entry of the table.
    for (block, at, value) in [
        (last, 8, 7),
        (last, 16, 1 << 40),
        (last, 16, 0),
        (last, 24, 9),
        (last, 24, 0),
        (last, 32, 1 << 33),
        (last - 1, 8, 9),
        (last - 1, 15, 4),
    ] {
        let copy = disk.snapshot();
        let mut bytes = copy.block(block);
        bytes.0[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        copy.set_block(block, &bytes);
        assert!(KeptZones::open(copy).is_err(), "{block}, {at}");
    }
    // Moved to a larger device, the header is not at its end.
    let mut bytes = disk.to_bytes();
    bytes.resize(bytes.len() + BLOCK_SIZE, 0);
    assert!(matches!(KeptZones::open(MemoryDevice::from_bytes(&bytes)), Err(KeptError::NotThere)));
}

#[test]
fn a_failure_below_is_no_promise() {
    for operation in [Operation::Write, Operation::Flush] {
        let faulty = Arc::new(FaultDevice::new(Arc::new(disk())));
        let device = KeptZones::create(faulty.clone(), layout()).unwrap();
        device.write_slice(ZONE, b"x").unwrap();
        faulty.arm(FaultRule::on([operation]));
        assert!(device.flush().is_err(), "{operation}");
        faulty.disarm();
        let kinds = [
            device.flush().unwrap_err().kind,
            device.write_slice(ZONE + 1, b"y").unwrap_err().kind,
            device.change_zone(ZONE, ZoneChange::Reset).unwrap_err().kind,
        ];
        assert!(kinds.iter().all(|kind| matches!(kind, DeviceErrorKind::Poisoned { .. })), "{operation}: {kinds:?}");
    }
}

/// The history of a zone: its lives, and in each how many blocks were written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Life {
    number: u64,
    written: u64,
    /// Of these, promised to be durable.
    flushed: u64,
}

/// Where the log stood when an operation began and ended, and the zones then.
struct Step {
    begin: usize,
    end: usize,
    zones: Vec<Life>,
}

#[test]
fn a_power_cut_leaves_prefixes() {
    let (mut states, mut lost, mut kept) = (0, 0, 0);
    for seed in 0..12 {
        let recorder = Arc::new(RecordingDevice::new(disk()));
        let device = KeptZones::create(recorder.clone(), layout()).unwrap();
        recorder.restart();
        let mut random = Random::new(seed);
        // Few zones, in two sectors of the table.
        let zones: Vec<u64> = vec![1, 2, 63, 64, 65];
        let mut lives = vec![Life::default(); zones.len()];
        let mut steps = vec![Step { begin: 0, end: 0, zones: lives.clone() }];
        for _ in 0..40 {
            let begin = recorder.position();
            let index = random.below(zones.len());
            let (start, life) = (zones[index] * ZONE, &mut lives[index]);
            match random.below(10) {
                0..=5 if life.written < CAPACITY => {
                    let buf = stamped(life.number, life.written);
                    device.write(start + life.written, buf).unwrap();
                    life.written += 1;
                }
                6 if life.written < CAPACITY => {
                    device.write_fua(start + life.written, stamped(life.number, life.written)).unwrap();
                    life.written += 1;
                    lives.iter_mut().for_each(|life| life.flushed = life.written);
                }
                7 => {
                    device.change_zone(start, ZoneChange::Reset).unwrap();
                    *life = Life { number: life.number + 1, written: 0, flushed: 0 };
                }
                _ => {
                    device.flush().unwrap();
                    lives.iter_mut().for_each(|life| life.flushed = life.written);
                }
            }
            steps.push(Step { begin, end: recorder.position(), zones: lives.clone() });
        }
        let log = recorder.log();
        let mut replay = log.replay();
        let plan = CutPlan { exhaustive: 6, sampled: 30, tears: 4 };
        loop {
            let (start, end) = (replay.position(), replay.epoch_end());
            let promised = steps.iter().rev().find(|step| step.end <= start).unwrap();
            let begun = steps.iter().rev().find(|step| step.begin <= end).unwrap();
            for cut in plan.cuts(&replay, end, || random.next()) {
                let found = KeptZones::open(replay.cut(&cut, 0).0).unwrap();
                for (index, number) in zones.iter().enumerate() {
                    let (promised, begun) = (promised.zones[index], begun.zones[index]);
                    let zone = found.zone(*number as u32).unwrap();
                    let written = if zone.state == ZoneState::Full { CAPACITY } else { zone.written.unwrap() };
                    let stamps = stamps(&found, zone.start, written);
                    let life = stamps.first().map_or(begun.number, |stamp| (stamp & !(1 << 63)) >> 8);
                    let whole: Vec<u64> = (0..written).map(|at| life << 8 | at | 1 << 63).collect();
                    assert_eq!(stamps, whole, "seed {seed}, cut {cut}, zone {number}: no prefix of a life");
                    assert!(
                        (promised.number..=begun.number).contains(&life),
                        "seed {seed}, cut {cut}, zone {number}: life {life}"
                    );
                    let least = if life == promised.number && begun.number == life { promised.flushed } else { 0 };
                    assert!(written >= least, "seed {seed}, cut {cut}, zone {number}: {written} of {least} blocks");
                    (lost, kept) = (lost + u32::from(written < begun.written), kept + u32::from(written > 0));
                }
                states += 1;
            }
            let next = replay.epoch_behind(end);
            replay.advance_to(next);
            if start == next {
                break;
            }
        }
    }
    assert!(states > 2000 && lost > 500 && kept > 500, "{states} states, {lost} losses, {kept} kept");
}
