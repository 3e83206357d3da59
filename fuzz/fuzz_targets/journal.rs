//! The journal: records, truncations and reopenings by choice, then damage by choice: bytes at any place, or fields of
//! the header and of records with their checksums made right. What is there is opened, replayed, appended to and opened
//! again.
//!
//! Nothing panics or hangs. A journal without damage replays what was appended and not taken back, no more. One with
//! damage replays no record that nobody wrote, unless its checksums were made right; and what is appended behind the
//! damage is replayed in any case.
#![no_main]

use std::collections::BTreeSet;

use f2fs_fuzz::seeds;
use f2fs_journal::{Create, Entry, Error, Journal, Recovered, RegionMedium, Uuid};
use f2fs_pmem::{MemoryRegion, PersistentRegion};

#[allow(dead_code)] // the target uses a part
#[path = "../../crates/journal/tests/common/mod.rs"]
mod common;

const BYTES: usize = 8192 + 4096;
/// Fields of the header: turn, epoch, lanes, bytes of a lane, grain, area, stamp; heads and starts of the first lanes.
const HEADER: [(usize, usize); 13] = [
    (48, 8),
    (56, 4),
    (60, 4),
    (64, 8),
    (72, 4),
    (76, 4),
    (80, 8),
    (256, 8),
    (264, 8),
    (272, 8),
    (280, 8),
    (256, 2),
    (264, 2),
];
/// Fields of a record: length, epoch, position, stamp, batch.
const RECORD: [(usize, usize); 5] = [(8, 4), (12, 4), (16, 8), (24, 8), (32, 8)];

/// Choices out of the fuzzer's bytes; zero when they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn word(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |word, _| word << 8 | u64::from(self.next()))
    }
}

type Memory = RegionMedium<MemoryRegion>;

/// The numbers of the records that were appended and not taken back.
#[derive(Default)]
struct Model {
    live: BTreeSet<u64>,
    last: u64,
}

impl Model {
    fn append(&mut self, journal: &Journal<Memory>, choices: &mut Choices<'_>) {
        let (bytes, count) = (usize::from(choices.next()) * 2, 1 + u64::from(choices.next() % 2));
        let after = choices.word(1);
        let numbers = self.last + 1..=self.last + count;
        self.last += count;
        let payloads: Vec<_> = numbers.clone().map(|number| common::payload(number, 0, bytes)).collect();
        let parts: Vec<[&[u8]; 2]> = payloads.iter().map(|payload| payload.split_at(bytes / 3).into()).collect();
        let entries: Vec<Entry<'_>> = parts.iter().map(|parts| Entry::new(parts)).collect();
        match journal.append_batch(after, &entries) {
            Ok(_) => self.live.extend(numbers),
            Err(Error::Full { .. }) => self.take_back(journal),
            Err(_) => {}
        }
    }

    fn take_back(&mut self, journal: &Journal<Memory>) {
        if journal.truncate_to(&journal.mark()).is_ok() {
            self.live.clear();
        }
    }
}

/// The numbers of the records that are replayed, which are as many as were counted. `None` for one that nobody wrote.
/// No record lies on both sides of a lane's start.
fn replayed(found: &Recovered<Memory>, starts: &[u64]) -> Vec<Option<u64>> {
    let (mut all, mut last) = (Vec::new(), None);
    let mut replay = found.replay();
    while let Some(record) = replay.advance().expect("what was found is replayed") {
        let place = (record.stamp, record.lane);
        assert!(last.is_none_or(|last| last < place), "{place:?} comes behind {last:?}");
        last = Some(place);
        let (begin, end) = (record.position, record.position + (common::RECORD + record.payload.len()) as u64);
        let across = starts.get(record.lane).filter(|start| begin < **start && end > **start);
        assert!(across.is_none(), "a record from {begin} to {end} of a lane that ended at {across:?}");
        all.push(common::numbers(record.payload).map(|(number, _)| number));
    }
    assert_eq!(all.len() as u64, found.records());
    for lane in found.lanes() {
        let (bytes, ring) = (lane.end - lane.head, (BYTES - 8192) / found.lanes().len());
        assert!(bytes <= ring as u64, "{bytes} bytes of records in a lane of {ring}");
    }
    all
}

fn change(image: &mut [u8], (at, len): (usize, usize), ring: u64, choices: &mut Choices<'_>) {
    let bytes = |image: &[u8]| image.get(at..at + len).map(<[u8]>::to_vec);
    let Some(old) = bytes(image) else { return };
    let mut word = [0; 8];
    word[..len].copy_from_slice(&old);
    let old = u64::from_le_bytes(word);
    let (how, number) = (choices.next(), choices.next());
    let new = match how % 6 {
        0 => number.into(),
        1 => old.wrapping_add(i64::from(number as i8) as u64),
        2 => old.wrapping_add((i64::from(number as i8) * 64) as u64),
        // Around the length of a lane: the most that a record in it could have.
        3 => ring.wrapping_sub(40).wrapping_sub(64 * u64::from(number % 8)),
        4 => [0, u64::MAX, u64::MAX >> 1, 1 << 62, 1 << 63, u64::MAX - 39][usize::from(number % 6)],
        _ => old.wrapping_add(ring.wrapping_mul(u64::from(number % 4))),
    };
    image[at..at + len].copy_from_slice(&new.to_le_bytes()[..len]);
}

/// The damage that was done.
struct Done {
    /// Records may be there that nobody wrote.
    forged: bool,
    /// The header is as it was.
    spared: bool,
}

fn damage(image: &mut [u8], choices: &mut Choices<'_>) -> Done {
    let Done { mut forged, mut spared } = Done { forged: false, spared: true };
    for _ in 0..choices.next() % 8 {
        match choices.next() % 4 {
            0 => {
                spared = false;
                let (at, bytes) = (choices.word(2) as usize % image.len(), choices.next() as usize % 9);
                let byte = choices.next();
                image.iter_mut().skip(at).take(bytes).for_each(|each| *each = byte.wrapping_add(*each));
                if choices.next() % 2 == 0 {
                    common::mend_headers(image);
                    forged = true;
                }
            }
            1 => {
                spared = false;
                let copy = usize::from(choices.next() % 2) * 4096;
                let (at, len) = HEADER[usize::from(choices.next()) % HEADER.len()];
                change(image, (copy + at, len), 4096, choices);
                common::mend_headers(image);
                forged = true;
            }
            _ => {
                let records = common::records(image);
                let (which, field) = (usize::from(choices.next()), usize::from(choices.next()) % RECORD.len());
                let Some(record) = records.get(which % records.len().max(1)) else { continue };
                let mut header = vec![0; common::RECORD];
                for (at, byte) in header.iter_mut().enumerate() {
                    *byte = record.get::<1>(image, at).unwrap_or(0) as u8;
                }
                change(&mut header, RECORD[field], record.ring as u64, choices);
                record.put(image, 0, &header);
                record.mend(image);
                forged = true;
            }
        }
    }
    Done { forged, spared }
}

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin(&[seeds::steps]), |data: &[u8]| {
    let mut choices = Choices(data);
    let mut model = Model::default();
    let medium = RegionMedium::new(MemoryRegion::new(BYTES).expect("there is memory"));
    let options = Create::new(Uuid([1; 16])).lanes(1 << (choices.next() % 4)).id([7; 16]);
    let mut journal = Journal::create(medium, &options).expect("there is room");
    for _ in 0..choices.next() % 32 {
        match choices.next() % 8 {
            0 => model.take_back(&journal),
            1 => {
                let found = Journal::open(journal.into_medium(), None).expect("it is sound");
                let there: BTreeSet<u64> = replayed(&found, &[]).into_iter().map(|number| number.expect("a record")).collect();
                assert_eq!(there, model.live, "what was appended is replayed");
                journal = found.start().expect("it is sound");
            }
            _ => model.append(&journal, &mut choices),
        }
    }
    let region = journal.into_medium().into_region();
    let mut image = vec![0; BYTES];
    region.load(0, &mut image).expect("it is in range");
    let Done { forged, spared } = damage(&mut image, &mut choices);
    let starts = if spared { common::starts(&image) } else { Vec::new() };
    region.store(0, &image).expect("it is in range");
    let Ok(found) = Journal::open(RegionMedium::new(region), None) else { return };
    for number in replayed(&found, &starts) {
        // Where the newer copy of the header is damaged, the older one counts, and what was taken back may come again.
        assert!(forged || number.is_some_and(|number| number <= model.last), "nobody wrote {number:?}");
    }
    let Ok(journal) = found.start() else { return };
    let mut behind = Model { last: model.last, ..Model::default() };
    behind.append(&journal, &mut choices);
    behind.take_back(&journal);
    behind.append(&journal, &mut choices);
    let found = Journal::open(journal.into_medium(), None).expect("its header was written anew");
    let there: BTreeSet<u64> = replayed(&found, &[]).into_iter().flatten().collect();
    assert!(behind.live.is_subset(&there), "{:?} were appended, and {there:?} are there", behind.live);
});
