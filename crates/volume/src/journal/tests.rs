#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{AlignedBuf, MemoryDevice, Operation};
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_format::BlockAddr;
use f2fs_journal::{Create, DeviceMedium, Uuid};

use super::*;

/// A journal with one lane of 62 blocks.
fn made(mode: JournalMode, behind: Option<PlainArc<WriteBehind>>) -> (PlainArc<FaultDevice>, SyncJournal) {
    let device = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(64))));
    let medium: SharedMedium = PlainArc::new(DeviceMedium::new(device.clone()).unwrap());
    let journal = Journal::create(medium, &Create::new(Uuid([1; 16])).lanes(1)).unwrap();
    (device, SyncJournal::new(journal, mode, behind))
}

fn attached(mode: JournalMode) -> AttachedJournal {
    let attached = AttachedJournal::default();
    assert!(attached.attach(made(mode, None).1));
    attached
}

fn write(start: u64, blocks: usize) -> PlainArc<Request> {
    PlainArc::new(Request::write(start, AlignedBuf::new(blocks)))
}

/// The area, and the bytes that records take.
fn state(journal: &SyncJournal) -> (u64, u64, u64) {
    let area = JournalArea::read(&journal.log.area()).unwrap();
    (area.base, area.next, journal.log.usage().used)
}

#[test]
fn a_journal_retires_once() {
    let (_, journal) = made(JournalMode::Ordered, None);
    assert!(journal.is_open() && !journal.has_retired_in(5));
    journal.retire(5);
    journal.retire(6);
    assert!(!journal.is_open() && journal.has_retired_in(5) && !journal.has_retired_in(6));
}

#[test]
fn a_checkpoint_is_announced_and_then_takes_the_records_back() {
    let (_, journal) = made(JournalMode::Ordered, None);
    let appended = journal.log.append(0, &[&[1; 60 * 4096]]).unwrap();
    journal.filling.tell(appended.free, journal.log.lane_bytes());
    assert!(journal.filling.is_nearly_full());
    journal.announce(7, 8, 1);
    let (base, next, used) = state(&journal);
    assert!((base, next) == (7, 8) && used > 60 * 4096, "the records are still there");
    journal.take_back(8, 1);
    assert_eq!(state(&journal), (8, 0, 0));
    assert!(!journal.filling.is_due() && journal.is_open());
}

#[test]
fn a_journal_that_cannot_be_told_of_a_checkpoint_takes_no_more_records() {
    let calls: [fn(&SyncJournal); 2] = [|journal| journal.announce(7, 8, 5), |journal| journal.take_back(8, 5)];
    for call in calls {
        let (device, journal) = made(JournalMode::Ordered, None);
        device.arm(FaultRule::on_changes());
        call(&journal);
        assert!(journal.has_retired_in(5));
    }
}

#[test]
fn a_flush_makes_the_device_durable_or_says_why_not() {
    let (_, journal) = made(JournalMode::Ordered, None);
    let device = FaultDevice::new(PlainArc::new(MemoryDevice::new(8)));
    journal.flush(&device).unwrap();
    assert_eq!(device.operations(), 1);
    device.arm(FaultRule::on([Operation::Flush]));
    assert!(matches!(journal.flush(&device), Err(VolumeError::Device(_))));
}

#[test]
fn each_mode_says_what_is_in_its_records() {
    let none = AttachedJournal::default();
    assert!(none.get().is_none() && !none.is_whole() && !none.keeps_data());
    assert!(!none.is_due() && !none.is_nearly_full() && !none.defer(&write(1, 1)));
    for (mode, whole, data) in [
        (JournalMode::Ordered, true, false),
        (JournalMode::Writeback, false, false),
        (JournalMode::Journal, true, true),
    ] {
        let attached = attached(mode);
        assert_eq!((attached.is_whole(), attached.keeps_data()), (whole, data), "{mode:?}");
        assert!(!attached.attach(made(mode, None).1), "it has one");
        let journal = attached.get().unwrap();
        assert_eq!(journal.data.is_some(), data);
        assert_eq!((attached.is_due(), attached.is_nearly_full()), (false, false));
        journal.filling.tell(450, 1000);
        assert_eq!((attached.is_due(), attached.is_nearly_full()), (true, false));
        journal.filling.tell(0, 1000);
        assert_eq!((attached.is_due(), attached.is_nearly_full()), (true, true));
        journal.retire(1);
        assert_eq!((attached.is_whole(), attached.keeps_data()), (false, false), "{mode:?}, retired");
    }
}

/// So that several records have room in a lane.
#[test]
fn a_record_takes_an_eighth_of_a_lane_in_data() {
    let attached = attached(JournalMode::Journal);
    let sync = |blocks| {
        attached.keep(Nid(7), [write(10, blocks)].into_iter(), true);
        let mut collected = Collected::default();
        attached.get().unwrap().data.as_ref().unwrap().collect(Nid(7), &mut collected);
        (collected.blocks, collected.is_partial)
    };
    assert_eq!((sync(7), sync(8)), ((7, false), (0, true)));
}

#[test]
fn a_freeze_forgets_what_its_checkpoint_makes_durable() {
    let below = PlainArc::new(MemoryDevice::new(100));
    let behind = PlainArc::new(WriteBehind::new(below, 64));
    let attached = AttachedJournal::default();
    assert!(attached.attach(made(JournalMode::Journal, Some(behind.clone())).1));
    let journal = attached.get().unwrap();
    let displaced = |addr| {
        let mut displaced = Displaced::default();
        displaced.add(BlockAddr(addr));
        displaced
    };
    let request = write(10, 2);
    assert!(attached.defer(&request));
    attached.keep(Nid(7), [request].into_iter(), true);
    attached.note_name(Nid(3), b"name");
    attached.forget(Nid(7), &Displaced::default());
    attached.forget(Nid(7), &displaced(10));
    assert_eq!(behind.waiting(), 1);
    attached.freeze();
    attached.forget(Nid(7), &displaced(11));
    assert_eq!(behind.waiting(), 1, "the frozen nodes name it");
    let mut collected = Collected::default();
    journal.data.as_ref().unwrap().collect(Nid(7), &mut collected);
    assert_eq!((collected.blocks, collected.is_partial), (0, false));
    assert!(journal.names.take().unwrap().names.is_empty());
    attached.note_name(Nid(3), b"name");
    assert_eq!(journal.names.take().unwrap().names.len(), 1);
    journal.retire(1);
    attached.note_name(Nid(3), b"name");
    assert!(journal.names.take().unwrap().names.is_empty(), "nobody will ask");
    assert!(!attached.defer(&write(20, 1)));
}
