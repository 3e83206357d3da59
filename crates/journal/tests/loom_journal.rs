//! Models of appending, of taking space back, and of marks. Whenever something was written or made durable, and
//! whenever an append was acknowledged, the power is cut: of what is not durable, any of the writes may have reached
//! the medium.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a model fails by panicking")]

// mutant: journal_fence_left_out, killed by: two_threads_append_to_one_lane
// mutant: journal_unlocked_before_fence, killed by: two_threads_append_to_one_lane
// mutant: journal_space_reused_early, killed by: space_is_used_again_when_that_is_durable
// mutant: journal_mark_lane_by_lane, killed by: a_mark_is_one_moment
// mutant: journal_fence_left_out, killed by: two_threads_append_to_two_lanes

mod common;

use std::collections::BTreeSet;
use std::sync::Mutex as Plain;

use common::{Image, OWNER};
use f2fs_device::Claims;
use f2fs_journal::{Create, Error, Gather, Journal, Medium, MediumError};
use f2fs_sync::atomic::{AtomicUsize, Ordering};
use f2fs_sync::{Arc, PlainArc, model, thread};

/// Bytes in front of the lanes.
const HEADER: usize = 8192;

/// A medium of which it is known what is durable.
#[derive(Debug)]
struct Model {
    /// For loom, which may let another thread run here.
    steps: AtomicUsize,
    state: Plain<State>,
    bytes: usize,
    claims: Claims,
}

#[derive(Debug)]
struct State {
    durable: Vec<u8>,
    shown: Vec<u8>,
    /// By which thread, where, what.
    pending: Vec<(String, usize, Vec<u8>)>,
    /// Records that were acknowledged, by their one byte.
    acknowledged: BTreeSet<u8>,
    /// Whether an owner's area that is not empty means that record 1 was taken back.
    watched: bool,
}

fn this() -> String {
    format!("{:?}", thread::current().id())
}

impl Model {
    fn new(lane_bytes: usize, lanes: usize) -> PlainArc<Self> {
        let bytes = HEADER + lane_bytes * lanes;
        let (durable, shown) = (vec![0; bytes], vec![0; bytes]);
        let state = State { durable, shown, pending: Vec::new(), acknowledged: BTreeSet::new(), watched: false };
        PlainArc::new(Model { steps: AtomicUsize::new(0), state: Plain::new(state), bytes, claims: Claims::new() })
    }

    fn acknowledge(&self, record: u8) {
        let mut state = self.state.lock().unwrap();
        state.acknowledged.insert(record);
        state.cut();
    }

    /// The area and the records after a cut that loses everything that is not durable.
    fn left(&self) -> (Vec<u8>, Vec<u8>) {
        let state = self.state.lock().unwrap();
        look(state.durable.clone())
    }
}

fn look(bytes: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let found = Journal::open(Image::new(bytes, 64), Some(OWNER)).expect("there is a journal");
    assert!(found.is_whole(), "{:?}", found.lanes());
    let mut records = Vec::new();
    found
        .for_each::<Error>(|record| {
            let first = record.payload[0];
            assert!(record.payload.iter().all(|byte| *byte == first), "a record that nobody wrote");
            records.push(first);
            Ok(())
        })
        .expect("it can be replayed");
    (found.area().to_vec(), records)
}

impl State {
    /// Cuts the power, in all ways.
    fn cut(&self) {
        if !self.watched {
            return;
        }
        for chosen in 0..1_u32 << self.pending.len().min(5) {
            let mut bytes = self.durable.clone();
            for (number, (_, at, written)) in self.pending.iter().enumerate() {
                if chosen >> number & 1 == 1 {
                    bytes[*at..*at + written.len()].copy_from_slice(written);
                }
            }
            let (area, records) = look(bytes);
            for record in self.acknowledged.iter().filter(|record| area.is_empty() || **record != 1) {
                assert!(records.contains(record), "record {record} was acknowledged, and there are {records:?}");
            }
        }
    }
}

impl Medium for Model {
    fn grain(&self) -> usize {
        64
    }

    fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let state = self.state.lock().unwrap();
        into.copy_from_slice(&state.shown[offset as usize..][..into.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let mut all = bytes.slices().collect::<Vec<_>>().concat();
        all.resize(all.len().next_multiple_of(64), 0);
        let at = offset as usize;
        let mut state = self.state.lock().unwrap();
        state.shown[at..at + all.len()].copy_from_slice(&all);
        state.pending.push((this(), at, all));
        state.cut();
        Ok(())
    }

    fn persist(&self) -> Result<(), MediumError> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap();
        let this = this();
        for (thread, at, bytes) in std::mem::take(&mut state.pending) {
            if thread == this {
                state.durable[at..at + bytes.len()].copy_from_slice(&bytes);
            } else {
                state.pending.push((thread, at, bytes));
            }
        }
        state.cut();
        Ok(())
    }
}

/// A journal with so many lanes, and what it lies on.
fn journal(lane_bytes: usize, lanes: usize) -> (PlainArc<Model>, Arc<Journal<PlainArc<Model>>>) {
    let medium = Model::new(lane_bytes, lanes);
    let options = Create::new(OWNER).lanes(lanes).id([1; 16]);
    let journal = Journal::create(PlainArc::clone(&medium), &options).expect("there is room");
    medium.state.lock().unwrap().watched = true;
    (medium, Arc::new(journal))
}

fn append(medium: &Model, journal: &Journal<PlainArc<Model>>, after: u64, record: u8, bytes: usize) -> Option<u64> {
    match journal.append(after, &[&vec![record; bytes]]) {
        Ok(appended) => {
            medium.acknowledge(record);
            Some(appended.stamp)
        }
        Err(Error::Full { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn two_threads_append(name: &str, lanes: usize) {
    model::exhaustive(name, move || {
        let (medium, journal) = journal(256, lanes);
        let (other_medium, other) = (PlainArc::clone(&medium), Arc::clone(&journal));
        let thread = thread::spawn(move || append(&other_medium, &other, 0, 2, 20));
        let mine = append(&medium, &journal, 0, 1, 30).expect("there is room");
        let theirs = thread.join().unwrap().expect("there is room");
        let mark = journal.mark();
        assert_eq!(mark.stamp(), mine.max(theirs));
        assert_eq!(mark.ends().iter().sum::<u64>(), 128 + 64, "no space is lost");
        let after = append(&medium, &journal, theirs, 3, 1).expect("there is room");
        assert!(after > theirs);
        let (_, records) = medium.left();
        let at = |record| records.iter().position(|found| *found == record).expect("it is there");
        assert!(at(2) < at(3) && at(1) < 3);
    });
}

#[test]
fn two_threads_append_to_one_lane() {
    two_threads_append("two_threads_append_to_one_lane", 1);
}

#[test]
fn two_threads_append_to_two_lanes() {
    two_threads_append("two_threads_append_to_two_lanes", 2);
}

#[test]
fn space_is_used_again_when_that_is_durable() {
    model::exhaustive("space_is_used_again_when_that_is_durable", || {
        let (medium, journal) = journal(128, 1);
        append(&medium, &journal, 0, 1, 60).expect("there is room");
        let mark = journal.mark();
        let other = Arc::clone(&journal);
        let thread = thread::spawn(move || other.truncate_with(&mark, b"taken back").unwrap());
        let second = append(&medium, &journal, 0, 2, 70);
        thread.join().unwrap();
        let (area, records) = medium.left();
        assert_eq!(area, b"taken back");
        assert_eq!(records, if second.is_some() { vec![2] } else { vec![] });
        // There is room for certain now.
        append(&medium, &journal, 0, 3, if second.is_some() { 0 } else { 70 }.max(1));
    });
}

#[test]
fn a_mark_is_one_moment() {
    model::exhaustive("a_mark_is_one_moment", || {
        let (medium, journal) = journal(128, 2);
        // The effect of record 1 is replayed or not with record 2, which follows it.
        medium.state.lock().unwrap().watched = false;
        let other = Arc::clone(&journal);
        let thread = thread::spawn(move || {
            let mark = other.mark();
            other.truncate_with(&mark, b"taken back").unwrap();
        });
        // It fills its lane, so that the next one goes to the other.
        let first = append(&medium, &journal, 0, 1, 80).expect("there is room");
        let second = append(&medium, &journal, first, 2, 80).expect("there is room");
        assert!(second > first);
        thread.join().unwrap();
        let (_, records) = medium.left();
        let expected: [&[u8]; 3] = [&[], &[2], &[1, 2]];
        assert!(
            expected.contains(&&records[..]),
            "record 2 was taken back, and not record 1, which it follows: {records:?}"
        );
    });
}
