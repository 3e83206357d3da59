//! A journal on a block device: power cuts between its requests and within them, and requests that fail.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Batch, Ledger, OWNER, Random, Truncation, look, payload};
use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::{CutPlan, Fault, FaultDevice, FaultRule, RecordingDevice};
use f2fs_journal::{Create, DeviceMedium, Entry, Error, Journal, MediumError};
use f2fs_sync::PlainArc;

/// Header, and two lanes of six blocks.
const BLOCKS: u64 = 2 + 2 * 6;

fn blocks(bytes: usize) -> u64 {
    (bytes as u64 + 40).next_multiple_of(4096)
}

#[test]
fn whatever_a_power_cut_leaves_of_the_requests_what_was_acknowledged_is_replayed() {
    let mut states = 0;
    for seed in 0..30 {
        let device = PlainArc::new(RecordingDevice::new(MemoryDevice::new(BLOCKS)));
        let medium = DeviceMedium::new(PlainArc::clone(&device)).unwrap();
        let options = Create::new(OWNER).lanes(2).area(&0_u64.to_le_bytes());
        let journal = Journal::create(medium, &options).unwrap();
        device.restart();
        let ledger = run(&device, &journal, seed);
        states += judge(&device, &ledger, seed);
    }
    println!("{states} states");
    assert!(states >= 10_000, "only {states} states");
}

fn run(device: &RecordingDevice, journal: &Journal<DeviceMedium<PlainArc<RecordingDevice>>>, seed: u64) -> Ledger {
    let mut random = Random(seed);
    let mut ledger = Ledger::default();
    let (mut next, mut last) = (1, (0, 0));
    for _ in 0..40 {
        let count = 1 + random.below(2);
        let records: Vec<u64> = (next..next + count).collect();
        next += count;
        let before = last.0;
        let follows = |number: u64| if number == records[0] { before } else { number - 1 };
        let bytes: Vec<Vec<u8>> = records
            .iter()
            .map(|number| payload(*number, follows(*number), [0, 100, 4056, 5000][random.below(4) as usize]))
            .collect();
        let parts: Vec<[&[u8]; 1]> = bytes.iter().map(|bytes| [&bytes[..]]).collect();
        let entries: Vec<Entry<'_>> = parts.iter().map(|parts| Entry::new(parts)).collect();
        let begun = device.position();
        match journal.append_batch(last.1, &entries) {
            Ok(appended) => {
                let end = appended.position + bytes.iter().map(|bytes| blocks(bytes.len())).sum::<u64>();
                last = (next - 1, appended.stamp);
                ledger.batches.push(Batch {
                    begun,
                    acknowledged: Some(device.position()),
                    records: records.clone(),
                    follows: follows(records[0]),
                    stamp: Some(appended.stamp),
                    lane: appended.lane,
                    end,
                });
            }
            Err(Error::Full { .. }) => {
                let mark = journal.mark();
                let area = ledger.truncations.len() as u64 + 1;
                journal.truncate_with(&mark, &area.to_le_bytes()).unwrap();
                let ends = mark.ends().to_vec();
                ledger.truncations.push(Truncation { begun, acknowledged: Some(device.position()), ends, area });
            }
            Err(error) => panic!("{error}"),
        }
    }
    ledger
}

fn judge(device: &RecordingDevice, ledger: &Ledger, seed: u64) -> u64 {
    let log = device.log();
    let mut random = Random(seed);
    let mut replay = log.replay();
    let mut states = 0;
    loop {
        let (from, end) = (replay.position(), replay.epoch_end());
        for cut in CutPlan::default().cuts(&replay, end, || random.next()) {
            let (image, _) = replay.cut(&cut, 0);
            states += 1;
            let found = look(image.to_bytes(), 4096).unwrap();
            // A write that is begun when the epoch ends has not reached the device by then.
            let judged = ledger.judge_between(from, end.saturating_sub(1).max(from), &found);
            judged.unwrap_or_else(|wrong| panic!("{wrong}; seed {seed}, cut {cut}"));
        }
        let behind = replay.epoch_behind(end).max(from + 1);
        if from >= log.events().len() {
            return states;
        }
        replay.advance_to(behind);
    }
}

#[test]
fn a_record_in_one_piece_is_one_durable_write() {
    let device = PlainArc::new(RecordingDevice::new(MemoryDevice::new(BLOCKS)));
    let medium = DeviceMedium::new(PlainArc::clone(&device)).unwrap();
    let journal = Journal::create(medium, &Create::new(OWNER).lanes(1)).unwrap();
    let before = device.counts();
    journal.append(0, &[&[1; 4096]]).unwrap();
    let after = device.counts();
    assert_eq!((after.durable_writes - before.durable_writes, after.writes - before.writes), (1, 1));
    assert_eq!((after.blocks_written - before.blocks_written, after.flushes - before.flushes), (2, 0));
    // Two records are two writes and one flush.
    journal.append_batch(0, &[Entry::new(&[b"a"]), Entry::new(&[b"b"])]).unwrap();
    let last = device.counts();
    assert_eq!((last.writes - after.writes, last.durable_writes - after.durable_writes), (2, 0));
    assert_eq!(last.flushes - after.flushes, 1);
    // The device belongs to the journal.
    DeviceMedium::new(PlainArc::clone(&device)).unwrap_err();
}

/// A fault at every operation: what was acknowledged is replayed, or the journal says that it cannot be read.
#[test]
fn a_fault_at_any_request_loses_nothing_that_was_acknowledged() {
    let faults = [Fault::Error(5), Fault::Torn(1), Fault::Short(1)];
    let mut seen = [0; 2];
    for fault in faults {
        for at in 0..40 {
            let memory = PlainArc::new(MemoryDevice::new(BLOCKS));
            let device =
                PlainArc::new(FaultDevice::new(PlainArc::clone(&memory) as PlainArc<dyn f2fs_device::BlockDevice>));
            let medium = DeviceMedium::new(PlainArc::clone(&device)).unwrap();
            let journal = Journal::create(medium, &Create::new(OWNER).lanes(2)).unwrap();
            device.arm(FaultRule::on_changes().after(at).fault(fault));
            let mut acknowledged = Vec::new();
            for number in 0..30_u64 {
                match journal.append(0, &[&payload(number, 0, 100 + 4000 * (number as usize % 3 / 2))]) {
                    Ok(appended) => acknowledged.push((number, appended.lane, appended.position)),
                    Err(Error::Full { .. }) => {
                        let mark = journal.mark();
                        if journal.truncate_to(&mark).is_ok() {
                            acknowledged.retain(|(_, lane, position)| *position >= mark.ends()[*lane]);
                        } else {
                            seen[0] += 1;
                            // It is not known which header there is: either is right.
                            acknowledged.retain(|(_, lane, position)| *position >= mark.ends()[*lane]);
                        }
                    }
                    Err(Error::Medium(MediumError::Device(_))) => seen[1] += 1,
                    Err(Error::Closed) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            let found = look(memory.to_bytes(), 4096).unwrap();
            assert!(found.is_whole(), "{:?}", found.lanes());
            let mut replayed = Vec::new();
            found
                .for_each::<Error>(|record| {
                    replayed.push(common::numbers(record.payload).expect("somebody wrote it").0);
                    Ok(())
                })
                .unwrap();
            for (number, ..) in &acknowledged {
                assert!(replayed.contains(number), "{fault:?} at {at}: {number} is not in {replayed:?}");
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn a_block_that_cannot_be_read_is_told() {
    let memory = PlainArc::new(MemoryDevice::new(BLOCKS));
    let journal =
        Journal::create(DeviceMedium::new(PlainArc::clone(&memory)).unwrap(), &Create::new(OWNER).lanes(1)).unwrap();
    journal.append(0, &[b"a"]).unwrap();
    drop(journal);
    let device = FaultDevice::new(PlainArc::new(memory.snapshot()));
    // The header's copies, and then the lane: all at once, and its first block.
    device.arm(FaultRule::on([Operation::Read]).after(2).for_good());
    let found = Journal::open(DeviceMedium::new(device).unwrap(), None).unwrap();
    assert!(!found.is_whole(), "{:?}", found.lanes());
    assert_eq!(found.whole_up_to(), Some(0));
}
