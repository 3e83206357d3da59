//! Counting the cache lines that an operation touches, in the counting half (`--cfg f2fs_counting`).
//!
//! On record is every read and write of an atomic, every lock that is taken or released (readers of a reader-writer
//! lock write its word, too), the value behind a lock where it is used (its own bytes, the first four lines of a larger
//! one), and every clone and drop of an [`Arc`](crate::Arc) or a [`Weak`](crate::Weak); each with the type and the
//! place in the source (a drop has none: it is told as one of the type). A failed compare-and-swap counts as a write:
//! it takes the line away from its holder. Lines are told apart by address, in blocks of 64 bytes, so that neighbours
//! that falsely share a line count once, as for the processor.
//!
//! Not on record: the memory that a value behind a lock points to (the entries of a map, the bytes of a page),
//! references that are a [`PlainArc`](crate::PlainArc) (the device and the source of tables, which no operation
//! clones), and the allocator's own state.
//!
//! [`Footprint::measure`] has several threads do an operation in turns, each on its own objects, and tells three
//! things:
//!
//! - the lines that an operation writes;
//! - the lines that *several* threads write: those that belong to no object, to the file system at large. What is
//!   striped meets by chance; what is per processor meets when a batch is refilled. So each such line comes with its
//!   share of the operations. A line is [global](Footprint::global) if at least two threads, and at least half of them,
//!   write it in one operation of a hundred or more: at 120 cores, such a line is somebody's all the time;
//! - the lines that *move*: those that a thread reads or writes after another thread wrote them, or writes after
//!   another one read them. The caches of a machine with one processor for each thread would fetch these lines from
//!   each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ScopedJoinHandle;

use crate::watched_half::{Lines, on_processor, record, take};

pub use crate::watched_half::Site;

/// A line that a thread writes in this share of its operations counts for [`Footprint::global`].
const GLOBAL: f64 = 0.01;

/// How many distinct lines `operation` writes on this thread, with the writers of each.
pub fn lines_written<R>(operation: impl FnOnce() -> R) -> (R, Vec<BTreeSet<Site>>) {
    let (result, lines) = on_record(operation);
    (result, lines.into_values().filter(|touched| touched.written).map(|touched| touched.sites).collect())
}

/// How many distinct lines `operation` reads on this thread and does not write, with the readers of each.
pub fn lines_read<R>(operation: impl FnOnce() -> R) -> (R, Vec<BTreeSet<Site>>) {
    let (result, lines) = on_record(operation);
    (result, lines.into_values().filter(|touched| !touched.written).map(|touched| touched.sites).collect())
}

fn on_record<R>(operation: impl FnOnce() -> R) -> (R, Lines) {
    record();
    let result = operation();
    (result, take())
}

/// A line that several threads wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// In which share of its operations each thread wrote it: 0 for one that did not.
    pub share: Vec<f64>,
    /// The places that write it.
    pub sites: BTreeSet<Site>,
}

impl Common {
    /// In which share of all operations it is written.
    #[must_use]
    pub fn of_all(&self) -> f64 {
        self.share.iter().sum::<f64>() / self.share.len() as f64
    }
}

/// The lines that an operation touches.
#[derive(Clone, Debug, PartialEq)]
pub struct Footprint {
    /// Distinct lines written by an operation, on average.
    pub lines: f64,
    /// Of these, how many another thread writes as well, in some operation of its own.
    pub shared: f64,
    /// Lines that an operation has to fetch because another thread wrote them, or to take from others that read them.
    pub moved: f64,
    /// The lines that several threads wrote, the most frequent first.
    pub common: Vec<Common>,
}

impl Footprint {
    /// Has `threads` threads, as if on processors of their own, do `operation(thread, n)` for each `n` below
    /// `operations`, in turns. It is up to the operation to use objects of its thread's own.
    pub fn measure(threads: usize, operations: usize, operation: impl Fn(usize, usize) + Sync) -> Footprint {
        Self::measure_prepared(threads, operations, |_, _| (), |thread, n, ()| operation(thread, n))
    }

    /// As [`measure`](Self::measure), with a part before each operation that does not count.
    pub fn measure_prepared<P>(
        threads: usize,
        operations: usize,
        prepare: impl Fn(usize, usize) -> P + Sync,
        operation: impl Fn(usize, usize, P) + Sync,
    ) -> Footprint {
        let (senders, receivers): (Vec<Sender<()>>, Vec<Receiver<()>>) = (0..threads).map(|_| channel()).unzip();
        let work = |thread: usize, turn: &Receiver<()>, next: &Sender<()>| {
            on_processor(thread + 1);
            let mut records = Vec::with_capacity(operations);
            for n in 0..operations {
                // If another one panicked, so does the thread that joins it.
                if turn.recv().is_err() {
                    break;
                }
                let prepared = prepare(thread, n);
                record();
                operation(thread, n, prepared);
                records.push(take());
                let _ = next.send(());
            }
            records
        };
        // The first turn is the first thread's.
        senders.first().map(|first| first.send(()));
        let records = std::thread::scope(|scope| {
            // Each passes the turn to the next one, and has the only sender to it: one that panics ends the others.
            let mut next = senders;
            if !next.is_empty() {
                next.rotate_left(1);
            }
            let all: Vec<ScopedJoinHandle<'_, Vec<Lines>>> = receivers
                .into_iter()
                .zip(next)
                .enumerate()
                .map(|(thread, (turn, next))| {
                    let work = &work;
                    scope.spawn(move || work(thread, &turn, &next))
                })
                .collect();
            // All are joined before a panic is passed on: the first one's own is the one that counts.
            let ended: Vec<_> = all.into_iter().map(ScopedJoinHandle::join).collect();
            ended.into_iter().map(|records| records.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        Footprint::of(records)
    }

    fn of(records: Vec<Vec<Lines>>) -> Footprint {
        let threads = records.len();
        let operations = records.iter().map(Vec::len).max().unwrap_or(0);
        let total = records.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let (mut written, mut moved) = (0, 0);
        let mut lines = BTreeMap::<usize, Line>::new();
        let mut turns: Vec<_> = records.into_iter().map(Vec::into_iter).collect();
        for _ in 0..operations {
            for (thread, turn) in turns.iter_mut().enumerate() {
                for (number, touched) in turn.next().unwrap_or_default() {
                    let line = lines.entry(number).or_insert_with(|| Line::new(threads));
                    moved += usize::from(line.touched_by(thread, touched.written));
                    if touched.written {
                        written += 1;
                        line.writes[thread] += 1;
                        line.sites.extend(touched.sites);
                    }
                }
            }
        }
        let mut common: Vec<Common> = lines.into_values().filter_map(|line| line.common(operations as f64)).collect();
        common.sort_by(|a, b| b.of_all().total_cmp(&a.of_all()));
        Footprint {
            lines: written as f64 / total,
            shared: common.iter().fold(0.0, |sum, common| sum + common.of_all()),
            moved: moved as f64 / total,
            common,
        }
    }

    /// The lines that belong to no object: many threads write them, in one operation of a hundred at least.
    pub fn global(&self) -> impl Iterator<Item = &Common> {
        self.common.iter().filter(|common| {
            let often = common.share.iter().filter(|share| **share >= GLOBAL).count();
            often >= 2 && 2 * often >= common.share.len()
        })
    }
}

/// The accesses of all threads to a line so far.
struct Line {
    /// How many operations of each thread wrote it.
    writes: Vec<usize>,
    /// Whose caches have the line as it is now.
    holders: BTreeSet<usize>,
    /// Whether somebody wrote it: a thread that has lost it must fetch it.
    dirty: bool,
    sites: BTreeSet<Site>,
}

impl Line {
    fn new(threads: usize) -> Line {
        Line { writes: vec![0; threads], holders: BTreeSet::new(), dirty: false, sites: BTreeSet::new() }
    }

    /// Notes that a thread touches it; whether the line moves for that. The first touch of all is no move.
    fn touched_by(&mut self, thread: usize, written: bool) -> bool {
        let has_it = self.holders.contains(&thread);
        if written {
            let others = self.holders.iter().any(|holder| *holder != thread);
            self.holders = BTreeSet::from([thread]);
            self.dirty = true;
            return others;
        }
        self.holders.insert(thread);
        !has_it && self.dirty
    }

    /// The line, if several threads wrote it.
    fn common(self, operations: f64) -> Option<Common> {
        let writers = self.writes.iter().filter(|writes| **writes > 0).count();
        let share = self.writes.iter().map(|writes| *writes as f64 / operations).collect();
        (writers > 1).then_some(Common { share, sites: self.sites })
    }
}
