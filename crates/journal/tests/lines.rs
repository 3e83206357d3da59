//! Power cuts between any two stores and fences of several threads, on a simulator of lines: what is replayed then.
//!
//! `F2FS_JOURNAL_SEEDS=N` takes N workloads in place of 12. A cut is looked at in all of its states if it has few,
//! else in some that are drawn. Some are lived on: opened, appended to, and cut again.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, PoisonError};
use std::thread;

use common::{Batch, Ledger, OWNER, Random, Replayed, Truncation, look, payload};
use f2fs_device::MemoryDevice;
use f2fs_device_test::pmem::{SimulatedRegion, WAYS};
use f2fs_journal::{Create, Entry, Error, Journal, RegionMedium};
use f2fs_sync::PlainArc;

/// The header, and lanes of 1 to 2 KiB: small enough to be used round and round.
const BYTES: usize = 12 << 10;

type Simulated = RegionMedium<PlainArc<SimulatedRegion>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that the threads of a workload share.
struct Workload<'a> {
    journal: &'a Journal<Simulated>,
    region: &'a SimulatedRegion,
    ledger: Mutex<Ledger>,
    /// Of each object, the number and the stamp of its last record.
    objects: Vec<Mutex<(u64, u64)>>,
    next: Mutex<u64>,
}

impl Workload<'_> {
    fn append(&self, random: &mut Random) -> Result<(), Error> {
        let which = random.below(self.objects.len() as u64) as usize;
        let mut object = lock(&self.objects[which]);
        let count = [1, 1, 1, 2, 3][random.below(5) as usize];
        let first = {
            let mut next = lock(&self.next);
            *next += count;
            *next - count
        };
        let records: Vec<u64> = (first..first + count).collect();
        let follows = |number: u64| if number == first { object.0 } else { number - 1 };
        let sizes = [0, 1, 16, 17, 40, 64, 100, 128, 300];
        let bytes: Vec<Vec<u8>> =
            records.iter().map(|number| payload(*number, follows(*number), sizes[random.below(9) as usize])).collect();
        let cut = random.below(30) as usize;
        let parts: Vec<[&[u8]; 2]> = bytes.iter().map(|bytes| bytes.split_at(cut.min(bytes.len())).into()).collect();
        let entries: Vec<Entry<'_>> = parts.iter().map(|parts| Entry::new(parts)).collect();
        let begun = self.region.position();
        let appended = self.journal.append_batch(object.1, &entries)?;
        let acknowledged = Some(self.region.position());
        let footprint: u64 = bytes.iter().map(|bytes| (bytes.len() as u64 + 40).next_multiple_of(64)).sum();
        let batch = Batch {
            begun,
            acknowledged,
            records,
            follows: object.0,
            stamp: Some(appended.stamp),
            lane: appended.lane,
            end: appended.position + footprint,
        };
        *object = (first + count - 1, appended.stamp);
        lock(&self.ledger).batches.push(batch);
        Ok(())
    }

    /// Takes back what was appended before `mark`, or before now.
    fn truncate(&self, mark: Option<f2fs_journal::Mark>) {
        let begun = self.region.position();
        // One after the other, as the owner of a journal does.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = lock(&ONE);
        let mark = mark.unwrap_or_else(|| self.journal.mark());
        let (number, before) = {
            let ledger = lock(&self.ledger);
            let last = ledger.truncations.last();
            (last.map_or(ledger.area, |last| last.area) + 1, last.map(|last| last.ends.clone()))
        };
        let mut ends = mark.ends().to_vec();
        // An older mark takes nothing back that a later one did.
        ends.iter_mut().zip(before.unwrap_or_default()).for_each(|(end, before)| *end = before.max(*end));
        {
            // It is in the ledger from when it begins: an image may have it before it ends.
            let truncation = Truncation { begun, acknowledged: None, ends, area: number };
            lock(&self.ledger).truncations.push(truncation);
        }
        self.journal.truncate_with(&mark, &number.to_le_bytes()).unwrap();
        let end = self.region.position();
        lock(&self.ledger).truncations.iter_mut().for_each(|cut| {
            if cut.area == number {
                cut.acknowledged = Some(end);
            }
        });
    }

    fn run(&self, threads: u64, operations: u64, seed: u64) {
        thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let mut random = Random(seed.wrapping_mul(1000) + thread);
                    let mut mark = None;
                    for _ in 0..operations {
                        match random.below(12) {
                            0 => self.truncate(None),
                            1 => mark = Some(self.journal.mark()),
                            2 => self.truncate(mark.take()),
                            _ => match self.append(&mut random) {
                                Ok(()) => {}
                                Err(Error::Full { wanted, free }) => {
                                    assert!(wanted > free);
                                    self.truncate(None);
                                }
                                Err(Error::TooLarge { bytes, most }) => assert!(bytes > most),
                                Err(error) => panic!("{error}"),
                            },
                        }
                    }
                });
            }
        });
    }
}

/// Counts of the states that were looked at.
#[derive(Default)]
struct Tally {
    cuts: u64,
    states: u64,
    lives: u64,
    distinct: HashSet<u64>,
}

fn fingerprint(bytes: &[u8], position: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.write_usize(position);
    hasher.finish()
}

/// Cuts the power at each event of a log, from `from` on, and judges what is left.
fn judge(ledger: &Ledger, region: &SimulatedRegion, from: usize, seed: u64, life: u32, tally: &mut Tally) {
    let log = region.log();
    let mut replay = log.replay();
    let mut random = Random(seed);
    while replay.advance().is_some() {
        let at = replay.position();
        if at < from {
            continue;
        }
        let cut = replay.cut();
        tally.cuts += 1;
        let few = cut.states() <= 24;
        let number = if few { cut.states() as u64 } else { 2 + 2 * WAYS };
        for state in 0..number {
            let state = match state {
                _ if few => cut.state(u128::from(state)),
                0 => cut.lost(),
                1 => cut.kept(),
                state => cut.draw(random.next() / WAYS * WAYS + state % WAYS),
            };
            let media = state.into_media();
            let bytes = media.to_bytes();
            tally.states += 1;
            tally.distinct.insert(fingerprint(&bytes, at));
            let found = look(bytes, 64).unwrap_or_else(|error| panic!("judge: {error}, seed {seed}, cut {at}"));
            let replayed = ledger.judge(at, &found);
            let replayed =
                replayed.unwrap_or_else(|wrong| panic!("judge: {wrong}; life {life}, seed {seed}, cut {at}"));
            if life < 3 && random.below(if life == 1 { 40 } else { 400 }) == 0 {
                tally.lives += 1;
                let area = found.area().try_into().map(u64::from_le_bytes).unwrap();
                live(&ledger.after(&replayed, area), &replayed, &media, random.next(), life + 1, tally);
            }
        }
    }
}

/// Opens what a power cut left, goes on, and cuts the power again.
fn live(known: &Ledger, replayed: &[Replayed], media: &MemoryDevice, seed: u64, life: u32, tally: &mut Tally) {
    let region = PlainArc::new(SimulatedRegion::on(media));
    // Until the journal is opened to append, nothing is written: a replay may be cut.
    let found = Journal::open(RegionMedium::new(PlainArc::clone(&region)), Some(OWNER)).unwrap();
    found.for_each(|_| Ok::<(), Error>(())).unwrap();
    assert_eq!(region.position(), 0, "judge: looking at a journal writes");
    let journal = found.start().unwrap();
    let last = replayed.last().map_or((0, 0), |last| (last.number, last.stamp));
    let workload = Workload {
        journal: &journal,
        region: &region,
        ledger: Mutex::new(known.clone()),
        objects: vec![Mutex::new(last), Mutex::new((0, 0))],
        next: Mutex::new(u64::from(life) * 1_000_000),
    };
    workload.run(1, 4, seed);
    let ledger = lock(&workload.ledger).clone();
    judge(&ledger, &region, 0, seed, life, tally);
}

fn explore(seed: u64, tally: &mut Tally) {
    let mut random = Random(seed);
    let region = PlainArc::new(SimulatedRegion::new(BYTES));
    let lanes = [1, 2, 2, 4][random.below(4) as usize];
    // So that a grain's neighbour is often of an earlier round, not zero.
    let options = Create::new(OWNER).lanes(lanes).area(&0_u64.to_le_bytes()).id([seed as u8; 16]);
    let medium = RegionMedium::new(PlainArc::clone(&region));
    let journal = Journal::create(medium, &options).unwrap();
    let from = region.position();
    let workload = Workload {
        journal: &journal,
        region: &region,
        ledger: Mutex::default(),
        objects: (0..3).map(|_| Mutex::new((0, 0))).collect(),
        next: Mutex::new(1),
    };
    let threads = 1 + random.below(3);
    workload.run(threads, 36 / threads, seed);
    let ledger = lock(&workload.ledger).clone();
    judge(&ledger, &region, from, seed, 1, tally);
}

/// Some mutants are found once in hundreds of seeds; a search ends at the first that finds one.
fn seeds() -> u64 {
    std::env::var("F2FS_JOURNAL_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(if std::env::var_os("F2FS_MUTANT").is_some() { 400 } else { 12 })
}

#[test]
fn whatever_a_power_cut_leaves_all_that_was_acknowledged_is_replayed() {
    let mut tally = Tally::default();
    for seed in 1..=seeds() {
        explore(seed, &mut tally);
    }
    println!(
        "{} cuts, {} states, {} of them distinct; {} were lived on",
        tally.cuts,
        tally.states,
        tally.distinct.len(),
        tally.lives
    );
    if seeds() >= 12 {
        assert!(tally.distinct.len() >= 100_000, "only {} distinct states", tally.distinct.len());
        assert!(tally.lives >= 500, "only {} lives", tally.lives);
    }
}

/// Making a journal over another one: at any moment there is one of the two, or none.
#[test]
fn a_power_cut_while_a_journal_is_made_leaves_the_old_one_the_new_one_or_none() {
    let region = PlainArc::new(SimulatedRegion::new(BYTES));
    let medium = || RegionMedium::new(PlainArc::clone(&region));
    let old = Journal::create(medium(), &Create::new(OWNER).lanes(2).id([1; 16])).unwrap();
    old.append(0, &[&payload(1, 0, 100)]).unwrap();
    old.set_area(b"old").unwrap();
    drop(old);
    let from = region.position();
    Journal::create(medium(), &Create::new(OWNER).lanes(2).id([2; 16]).force(true).area(b"new")).unwrap();
    let log = region.log();
    let mut replay = log.replay();
    let mut seen = [0; 3];
    while replay.advance().is_some() {
        if replay.position() <= from {
            continue;
        }
        let cut = replay.cut();
        for seed in 0..60 {
            match look(cut.draw(seed).media().to_bytes(), 64) {
                Ok(found) if found.area() == b"new" => {
                    assert_eq!(found.records(), 0);
                    seen[2] += 1;
                }
                Ok(found) => {
                    assert_eq!((found.area(), found.records()), (&b"old"[..], 1));
                    seen[0] += 1;
                }
                Err(Error::NotAJournal | Error::DamagedHeader) => seen[1] += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(seen.iter().all(|states| *states > 0), "{seen:?}");
}

/// Each fault that needs no race is found by the test above (the models of `loom_journal.rs` find those that do).
/// `cargo test -p f2fs-journal --features mutants --test lines` runs this.
#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    const MUTANTS: [&str; 6] = [
        "journal_fence_left_out",
        "journal_length_uncovered",
        "journal_last_grain_uncovered",
        "journal_header_in_one_place",
        "journal_epoch_unchecked",
        "journal_starts_over_torn_header",
    ];
    f2fs_sync::assert_found("whatever_a_power_cut_leaves_all_that_was_acknowledged_is_replayed", &MUTANTS, "judge: ");
}
