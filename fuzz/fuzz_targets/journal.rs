//! The journal: records, truncations and reopenings by choice, then damage by choice, with the headers' checksums made right or not. What is there
//! is opened, replayed, appended to and opened again: nothing panics or hangs, and no record is counted that is not replayed.
#![no_main]

use f2fs_journal::{Create, Entry, Error, Journal, Recovered, RegionMedium, Uuid};
use f2fs_pmem::{MemoryRegion, PersistentRegion};

#[allow(dead_code)] // the target uses a part
#[path = "../../crates/journal/tests/common/mod.rs"]
mod common;

const BYTES: usize = 8192 + 4096;

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

fn append(journal: &Journal<Memory>, choices: &mut Choices<'_>) {
    let bytes = usize::from(choices.next()) * 2;
    let payload = vec![choices.next(); bytes];
    let parts: [&[u8]; 2] = payload.split_at(bytes / 3).into();
    let entries = [Entry::new(&parts), Entry::new(&parts[..1])];
    let (after, count) = (choices.word(1), 1 + usize::from(choices.next() % 2));
    if let Err(Error::Full { .. }) = journal.append_batch(after, &entries[..count]) {
        let _ = journal.truncate_to(&journal.mark());
    }
}

fn all_are_replayed(found: &Recovered<Memory>) {
    let mut replayed = 0;
    let mut replay = found.replay();
    while replay.advance().expect("what was found is replayed").is_some() {
        replayed += 1;
    }
    assert_eq!(replayed, found.records());
}

fn damage(image: &mut [u8], choices: &mut Choices<'_>) {
    for _ in 0..choices.next() % 24 {
        let at = choices.word(2) as usize % image.len();
        let bytes = choices.word(1) as usize % 9;
        let byte = choices.next();
        image.iter_mut().skip(at).take(bytes).for_each(|each| *each = byte.wrapping_add(*each));
    }
    if choices.next() % 2 == 0 {
        common::mend_headers(image);
    }
}

libfuzzer_sys::fuzz_target!(init: f2fs_fuzz::begin("journal"), |data: &[u8]| {
    let mut choices = Choices(data);
    let medium = RegionMedium::new(MemoryRegion::new(BYTES).expect("there is memory"));
    let options = Create::new(Uuid([1; 16])).lanes(1 << (choices.next() % 4)).id([7; 16]);
    let mut journal = Journal::create(medium, &options).expect("there is room");
    for _ in 0..choices.next() % 32 {
        match choices.next() % 8 {
            0 => journal.truncate_to(&journal.mark()).expect("memory does not fail"),
            1 => journal = Journal::open(journal.into_medium(), None).and_then(|found| found.start()).expect("it is sound"),
            _ => append(&journal, &mut choices),
        }
    }
    let region = journal.into_medium().into_region();
    let mut image = vec![0; BYTES];
    region.load(0, &mut image).expect("it is in range");
    damage(&mut image, &mut choices);
    region.store(0, &image).expect("it is in range");
    let Ok(found) = Journal::open(RegionMedium::new(region), None) else { return };
    all_are_replayed(&found);
    let Ok(journal) = found.start() else { return };
    append(&journal, &mut choices);
    let _ = journal.truncate_to(&journal.mark());
    append(&journal, &mut choices);
    let found = Journal::open(journal.into_medium(), None).expect("its header was written anew");
    all_are_replayed(&found);
});
