//! The operations of a journal, and its answers to damage.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Image, OWNER, Random, look};
use f2fs_device::Claims;
use f2fs_journal::{
    AREA, Create, Entry, Error, Gather, Journal, LaneEnd, Medium, MediumError, RegionMedium, SMALLEST_GRAIN, Uuid,
};
use f2fs_pmem::{MemoryRegion, PersistentRegion};
use f2fs_sync::{Mutex, PlainArc};
use proptest::prelude::*;

type Memory = RegionMedium<MemoryRegion>;

fn memory(bytes: usize) -> Memory {
    RegionMedium::new(MemoryRegion::new(bytes).unwrap())
}

fn journal(bytes: usize, lanes: usize) -> Journal<Memory> {
    Journal::create(memory(bytes), &Create::new(OWNER).lanes(lanes)).unwrap()
}

fn bytes(medium: &Memory) -> Vec<u8> {
    let mut all = vec![0; medium.region().len()];
    medium.region().load(0, &mut all).unwrap();
    all
}

/// Stamp and payload of all records.
fn records<M: Medium>(found: &f2fs_journal::Recovered<M>) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    found
        .for_each::<Error>(|record| {
            all.push((record.stamp, record.payload.to_vec()));
            Ok(())
        })
        .unwrap();
    all
}

#[test]
fn what_does_not_fit_is_refused_with_numbers_before_anything_is_written() {
    let journal = journal(8192 + 2 * 256, 2);
    let before = bytes(journal.medium());
    assert_eq!((journal.lanes(), journal.lane_bytes()), (2, 256));
    let error = journal.append(0, &[&[1; 217]]).unwrap_err();
    assert!(matches!(error, Error::TooLarge { bytes: 320, most: 256 }), "{error}");
    let huge: Vec<&[u8]> = vec![&before; 500_000];
    let error = journal.append(0, &huge).unwrap_err();
    assert!(matches!(error, Error::TooLarge { most: 256, .. }), "{error}");
    assert!(matches!(journal.append_batch(0, &[]), Err(Error::Nothing)));
    assert!(matches!(journal.set_area(&[0; AREA + 1]), Err(Error::AreaTooLarge { bytes: 161, most: 160 })));
    assert!(matches!(journal.append(u64::MAX, &[b"a"]), Err(Error::Exhausted { value: u64::MAX, .. })));
    assert_eq!(bytes(journal.medium()), before);
    journal.append(0, &[&[1; 216]]).unwrap();
    // The other lane is tried.
    let last = journal.append(0, &[&[2; 88]]).unwrap();
    assert_eq!(last.free, 128);
    let error = journal.append(0, &[&[3; 89]]).unwrap_err();
    assert!(matches!(error, Error::Full { wanted: 192, free: 128 }), "{error}");
    assert_eq!(journal.usage().used, 256 + 128);
    journal.truncate_to(&journal.mark()).unwrap();
    journal.append(0, &[&[3; 216]]).unwrap();
}

#[test]
fn a_journal_is_not_written_over_and_not_opened_by_others() {
    let medium = journal(1 << 16, 2).into_medium();
    let other = Uuid([9; 16]);
    assert!(matches!(Journal::open(Image::new(bytes(&medium), 64), Some(other)), Err(Error::Foreign { .. })));
    let found = Journal::open(Image::new(bytes(&medium), 64), None).unwrap();
    assert_eq!(found.owner(), OWNER);
    // A medium for reading only cannot be appended to.
    assert!(matches!(found.start(), Err(Error::ReadOnly)));
    assert!(matches!(Journal::open(Image::new(bytes(&medium), 128), None), Err(Error::BadGrain { found: 64 })));
    let region = medium.into_region();
    let error = Journal::create(RegionMedium::new(region), &Create::new(other)).unwrap_err();
    assert!(matches!(error, Error::OccupiedByJournal { owner } if owner == OWNER), "{error}");
    let medium = memory(1 << 16);
    medium.region().store(4100, &[1]).unwrap();
    let error = Journal::create(medium, &Create::new(other)).unwrap_err();
    assert!(matches!(error, Error::Occupied { offset: 4100 }), "{error}");
    assert!(matches!(look(vec![0; 1 << 16], 64), Err(Error::NotAJournal)));
    for bytes in [1, 63, 8192, 8192 + 64 * 4 - 1] {
        let error = Journal::create(memory(bytes), &Create::new(other).lanes(4)).unwrap_err();
        assert!(matches!(error, Error::TooSmall { needed: 8448, .. }), "{error}");
        look(vec![0; bytes], 64).unwrap_err();
    }
}

/// Two that append each believe that the room behind the last record is theirs.
#[test]
fn a_medium_has_one_that_appends_or_many_that_read() {
    let medium = PlainArc::new(memory(1 << 16));
    let open = || Journal::open(medium.clone(), Some(OWNER));
    let create = || Journal::create(medium.clone(), &Create::new(OWNER).lanes(2).force(true));
    let busy = |error: Error, by: &str| {
        assert!(matches!(&error, Error::AlreadyOpen(open) if open.to_string().contains(by)), "{error}");
    };
    let journal = create().unwrap();
    journal.append(0, &[b"first"]).unwrap();
    let before = bytes(&medium);
    busy(open().unwrap_err(), "journal");
    busy(create().unwrap_err(), "journal");
    assert_eq!(bytes(&medium), before);
    drop(journal);
    let readers = [open().unwrap(), open().unwrap()];
    busy(create().unwrap_err(), "reader");
    let [one, other] = readers;
    busy(one.start().unwrap_err(), "reader");
    assert_eq!(bytes(&medium), before);
    let journal = other.start().unwrap();
    journal.append(0, &[b"second"]).unwrap();
    busy(open().unwrap_err(), "journal");
    drop(journal.into_medium());
    assert_eq!(open().unwrap().records(), 2);
}

#[test]
fn records_of_an_earlier_journal_are_none() {
    let old = journal(8192 + 1024, 1);
    old.append(0, &[b"old"]).unwrap();
    let new = Journal::create(old.into_medium(), &Create::new(OWNER).lanes(1).force(true)).unwrap();
    let found = Journal::open(new.into_medium(), Some(OWNER)).unwrap();
    assert_eq!((found.records(), found.is_whole()), (0, true));
}

#[test]
fn a_mark_counts_for_its_journal_as_it_was_opened() {
    let first = journal(1 << 16, 1);
    let mark = first.mark();
    let found = Journal::open(first.into_medium(), None).unwrap();
    assert!(matches!(found.start().unwrap().truncate_to(&mark), Err(Error::ForeignMark)));
    assert!(matches!(journal(1 << 16, 1).truncate_to(&mark), Err(Error::ForeignMark)));
}

/// Every bit of a record in the middle: the lane counts as damaged, and says up to where nothing is missing.
#[test]
fn a_damaged_record_is_not_taken_for_the_end() {
    let journal = journal(8192 + 2 * 1024, 1);
    let payload = [5; 100];
    for number in 1..=5 {
        assert_eq!(journal.append(0, &[&payload]).unwrap().stamp, number);
    }
    let sound = bytes(journal.medium());
    let third = 8192 + 2 * 192;
    for bit in 0..(40 + payload.len()) * 8 {
        let mut bytes = sound.clone();
        bytes[third + bit / 8] ^= 1 << (bit % 8);
        let found = look(bytes, 64).unwrap();
        let report = &found.lanes()[0];
        assert!(matches!(report.how, LaneEnd::Damaged { .. }), "bit {bit}: {report:?}");
        assert_eq!((report.end, report.end_offset, report.records, report.behind), (384, third as u64, 2, 2));
        assert_eq!((found.is_whole(), found.whole_up_to()), (false, Some(2)));
        assert_eq!(records(&found).len(), 2);
        let mut behind = Vec::new();
        let all = found.for_each_behind(|record| {
            behind.push((record.stamp, record.lane, record.position, record.payload.to_vec()));
            Ok::<(), Error>(())
        });
        all.unwrap();
        assert_eq!(behind, [(4, 0, 3 * 192, payload.to_vec()), (5, 0, 4 * 192, payload.to_vec())]);
    }
    // The last one may have been torn, for all that is known.
    let mut last = sound.clone();
    last[8192 + 4 * 192 + 60] ^= 1;
    let found = look(last, 64).unwrap();
    assert!(matches!(found.lanes()[0].how, LaneEnd::Torn) && found.is_whole() && found.records() == 4);
    assert_eq!(found.lanes()[0].behind, 0);
    // Of two that are damaged, what stands behind both is whole.
    let mut two = sound.clone();
    two[third + 60] ^= 1;
    two[third + 192 + 60] ^= 1;
    assert_eq!(look(two, 64).unwrap().lanes()[0].behind, 1);
    // Not so if the journal was opened since.
    let medium = Journal::open(journal.into_medium(), None).unwrap().start().unwrap().into_medium();
    let mut last = bytes(&medium);
    last[8192 + 4 * 192 + 60] ^= 1;
    assert!(!look(last, 64).unwrap().is_whole());
}

#[test]
fn a_damaged_lane_is_used_again_when_its_space_was_taken_back() {
    let journal = journal(8192 + 2 * 1024, 1);
    for _ in 0..6 {
        journal.append(0, &[&[5; 100]]).unwrap();
    }
    let medium = journal.into_medium();
    medium.region().store(8192 + 192 + 50, &[0]).unwrap();
    let found = Journal::open(medium, None).unwrap();
    assert_eq!((found.records(), found.is_whole()), (1, false));
    let journal = found.start().unwrap();
    assert!(matches!(journal.append(0, &[b"a"]), Err(Error::Closed)));
    journal.truncate_to(&journal.mark()).unwrap();
    for number in 0..8_u8 {
        journal.append(0, &[&[number; 100]]).unwrap();
    }
    let found = Journal::open(journal.into_medium(), None).unwrap();
    assert!(found.is_whole(), "{:?}", found.lanes());
    let payloads: Vec<u8> = records(&found).iter().map(|(_, payload)| payload[0]).collect();
    assert_eq!(payloads, [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// The newer copy of the header is lost when space was used again: the older one does not make a short journal of it.
#[test]
fn a_lost_header_is_seen_by_the_records() {
    let journal = journal(8192 + 1024, 1);
    for round in 0..3_u8 {
        for _ in 0..5 {
            journal.append(0, &[&[round; 100]]).unwrap();
        }
        journal.truncate_to(&journal.mark()).unwrap();
    }
    journal.append(0, &[b"new"]).unwrap();
    journal.append(0, &[b"newer"]).unwrap();
    let sound = bytes(journal.medium());
    assert_eq!(records(&look(sound.clone(), 64).unwrap()).len(), 2);
    let lost = (0..2).filter(|copy| {
        let mut bytes = sound.clone();
        bytes[copy * 4096 + 100] ^= 1;
        !look(bytes, 64).unwrap().is_whole()
    });
    assert_eq!(lost.count(), 1, "one copy is the newer one");
    let mut both = sound;
    (both[100], both[4196]) = (both[100] ^ 1, both[4196] ^ 1);
    assert!(matches!(look(both, 64), Err(Error::DamagedHeader)));
}

/// A medium of which some grains cannot be read, and which may fail to write.
#[derive(Debug)]
struct Failing {
    inner: Memory,
    unreadable: Mutex<Vec<u64>>,
    fails: Mutex<(bool, bool)>,
}

impl Medium for Failing {
    fn grain(&self) -> usize {
        SMALLEST_GRAIN
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let range = offset..offset + into.len() as u64;
        match self.unreadable.lock().iter().find(|at| range.contains(at)) {
            Some(at) => Err(MediumError::Unreadable { offset: *at, bytes: 64 }),
            None => self.inner.read(offset, into),
        }
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        if self.fails.lock().0 {
            return Err(MediumError::Other("no write".into()));
        }
        self.inner.write(offset, bytes)
    }

    fn persist(&self) -> Result<(), MediumError> {
        if self.fails.lock().1 {
            return Err(MediumError::Other("not durable".into()));
        }
        self.inner.persist()
    }
}

fn failing(lanes: usize) -> Journal<Failing> {
    let inner = memory(8192 + lanes * 1024);
    let medium = Failing { inner, unreadable: Mutex::default(), fails: Mutex::default() };
    Journal::create(medium, &Create::new(OWNER).lanes(lanes)).unwrap()
}

#[test]
fn memory_that_cannot_be_read_is_told_by_its_place_and_not_used_any_more() {
    let journal = failing(2);
    // Lane by lane, as both fill.
    let mut stamps = [Vec::new(), Vec::new()];
    while let Ok(appended) = journal.append(0, &[&[1; 88]]) {
        stamps[appended.lane].push(appended.stamp);
    }
    let medium = journal.into_medium();
    medium.unreadable.lock().push(8192 + 1024 + 3 * 128 + 64);
    let found = Journal::open(medium, None).unwrap();
    let report = &found.lanes()[1];
    assert!(matches!(report.how, LaneEnd::Unreadable(MediumError::Unreadable { offset: 9664, .. })), "{report:?}");
    assert_eq!((report.records, report.end), (3, 384));
    assert_eq!(found.whole_up_to(), Some(stamps[1][2]));
    let mut replay = found.replay().up_to(stamps[1][2]);
    while let Some(record) = replay.advance().unwrap() {
        assert!(record.stamp <= stamps[1][2]);
    }
    let journal = found.start().unwrap();
    journal.truncate_to(&journal.mark()).unwrap();
    let mut lanes = Vec::new();
    while let Ok(appended) = journal.append(0, &[&[2; 88]]) {
        lanes.push(appended.lane);
    }
    assert_eq!(lanes, [0; 8], "lane 1 is not used");
    let found = Journal::open(journal.into_medium(), None).unwrap();
    assert!(matches!(found.lanes()[1].how, LaneEnd::Retired));
    assert_eq!((found.is_whole(), found.records()), (true, 8));
}

#[test]
fn headers_that_cannot_be_read_are_errors_of_the_medium() {
    let journal = failing(1);
    journal.append(0, &[b"a"]).unwrap();
    let medium = journal.into_medium();
    medium.unreadable.lock().extend([0, 4096]);
    let error = Journal::open(medium, None).unwrap_err();
    assert!(matches!(error, Error::Medium(MediumError::Unreadable { .. })), "{error}");
}

#[test]
fn a_lane_that_failed_takes_no_more_and_what_is_not_durable_closes_all() {
    let journal = failing(1);
    journal.append(0, &[b"a"]).unwrap();
    journal.medium().fails.lock().0 = true;
    assert!(matches!(journal.append(0, &[b"b"]), Err(Error::Medium(MediumError::Other(_)))));
    journal.medium().fails.lock().0 = false;
    assert!(matches!(journal.append(0, &[b"c"]), Err(Error::Closed)));
    let found = Journal::open(journal.into_medium(), None).unwrap();
    assert_eq!(records(&found).len(), 1);

    let journal = found.start().unwrap();
    journal.medium().fails.lock().1 = true;
    assert!(matches!(journal.append(0, &[b"d"]), Err(Error::Medium(_))));
    journal.medium().fails.lock().1 = false;
    assert!(matches!(journal.append(0, &[b"e"]), Err(Error::Closed)));
    assert!(matches!(journal.truncate_to(&journal.mark()), Err(Error::Closed)));
}

/// Damage of any kind: opening, replaying and going on end well or with an error, and take no more memory than there
/// are bytes.
fn survive(image: &[u8]) {
    let size = image.len();
    let medium = memory(size);
    medium.region().store(0, image).unwrap();
    let mut started = None;
    let taken = allocation_counter::measure(|| {
        if let Ok(found) = Journal::open(medium, None) {
            let records = found.records();
            let mut replayed = 0;
            let count = found.for_each::<Error>(|_| {
                replayed += 1;
                Ok(())
            });
            count.unwrap();
            assert_eq!(records, replayed);
            started = found.start().ok();
        }
    });
    // Beside windows and payload, a few hundred bytes for each lane.
    assert!(taken.bytes_max <= 4 * size as u64 + (128 << 10), "{} bytes for {size}", taken.bytes_max);
    if let Some(journal) = started {
        let _ = journal.append(0, &[b"goes on"]);
        let _ = journal.truncate_to(&journal.mark());
        while journal.append(0, &[&[1; 100]]).is_ok() {}
        let found = Journal::open(journal.into_medium(), None).unwrap();
        assert_eq!(records(&found).len() as u64, found.records());
    }
}

fn some_journal(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let journal = journal(8192 + 4096, 1 << random.below(3));
    for _ in 0..random.below(60) {
        let payload = vec![seed as u8; random.below(300) as usize];
        let parts: [&[u8]; 1] = [&payload];
        let twice = [Entry::new(&parts), Entry::new(&parts)];
        if journal.append_batch(random.below(100), &twice[..1 + random.below(2) as usize]).is_err() {
            journal.truncate_to(&journal.mark()).unwrap();
        }
    }
    bytes(journal.medium())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_on_the_medium_nothing_panics_hangs_or_takes_memory(
        seed in any::<u64>(),
        patches in prop::collection::vec((0..12288_usize, prop_oneof![Just(0_u64), Just(u64::MAX), any::<u64>(), 0..4096_u64]), 0..6),
        mends in any::<bool>(),
    ) {
        let mut image = some_journal(seed);
        for (at, word) in patches {
            let at = if word % 3 == 0 { at % 512 + at / 512 % 2 * 4096 } else { at } / 8 * 8;
            image[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        if mends {
            // The headers' checksums are made right, so that what they say is believed.
            common::mend_headers(&mut image);
        }
        survive(&image);
    }
}
