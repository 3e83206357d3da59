//! Counting the cache lines that an operation writes, in the counting half (`--cfg f2fs_counting`).
//!
//! On record is every write to an atomic, every lock that is taken or released (readers of a reader-writer lock write its
//! word, too), and every [`share`](crate::share) of an [`Arc`](crate::Arc); each with the type and the place in the source.
//! Not on record: what is written behind a lock, the other clones of an `Arc`, and the allocator's own state. Lines are told
//! apart by address, in blocks of 64 bytes, so that neighbours that falsely share a line count once, as for the processor.
//!
//! [`Footprint::measure`] has two threads do an operation, each on its own objects, and tells which lines *both* wrote: those
//! that belong to no object, to the file system at large. What is striped meets by chance; what is per processor meets when a
//! batch is refilled. So each such line comes with its share of the operations, and only those that a quarter of the
//! operations write count as [global](Footprint::global).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::thread::ScopedJoinHandle;

use crate::counting_half::{Lines, on_processor, record, take};

pub use crate::counting_half::Site;

/// A line written in this share of both threads' operations is global.
const GLOBAL: f64 = 0.25;

/// How many distinct lines `operation` writes on this thread, with who writes each.
pub fn lines_written<R>(operation: impl FnOnce() -> R) -> (R, Vec<BTreeSet<Site>>) {
    record();
    let result = operation();
    (result, take().into_values().collect())
}

/// A line that both threads wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// In which share of its operations each thread wrote it.
    pub share: [f64; 2],
    /// Who writes it.
    pub sites: BTreeSet<Site>,
}

/// What an operation writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Footprint {
    /// Distinct lines per operation, on average.
    pub lines: f64,
    /// Of these, how many the other thread writes as well, in some operation of its own.
    pub shared: f64,
    /// The lines that both threads wrote, the most frequent first.
    pub common: Vec<Common>,
}

impl Footprint {
    /// Has two threads, as if on processors 1 and 2, do `operation(thread, n)` for each `n` below `operations`, in turns. It
    /// is up to the operation to use objects of its thread's own.
    pub fn measure(operations: usize, operation: impl Fn(usize, usize) + Sync) -> Footprint {
        Self::measure_prepared(operations, |_, _| (), |thread, n, ()| operation(thread, n))
    }

    /// As [`measure`](Self::measure), with a part before each operation that does not count.
    pub fn measure_prepared<P>(
        operations: usize,
        prepare: impl Fn(usize, usize) -> P + Sync,
        operation: impl Fn(usize, usize, P) + Sync,
    ) -> Footprint {
        let ((to_second, first_says), (to_first, second_says)) = (channel(), channel());
        // The first turn is the first thread's.
        let _ = to_first.send(());
        let [first, second] = std::thread::scope(|scope| {
            let turns = [(second_says, to_second), (first_says, to_first)];
            let mut threads = turns.into_iter().enumerate().map(|(thread, (said, say))| {
                let (prepare, operation) = (&prepare, &operation);
                scope.spawn(move || {
                    on_processor(thread + 1);
                    let mut counts = Counts::default();
                    for n in 0..operations {
                        // If the other one panicked, so does whoever joins it.
                        if said.recv().is_err() {
                            break;
                        }
                        let prepared = prepare(thread, n);
                        record();
                        operation(thread, n, prepared);
                        counts.add(take());
                        let _ = say.send(());
                    }
                    counts
                })
            });
            // Both are started before the first is waited for.
            let threads = [threads.next(), threads.next()];
            threads.map(|thread| match thread.map(ScopedJoinHandle::join) {
                Some(Ok(counts)) => counts,
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => Counts::default(),
            })
        });
        Footprint::of(&first, &second, operations as f64)
    }

    fn of(first: &Counts, second: &Counts, operations: f64) -> Footprint {
        let mut common = Vec::new();
        for (line, (times, sites)) in &first.lines {
            if let Some((others, more)) = second.lines.get(line) {
                let share = [*times as f64 / operations, *others as f64 / operations];
                common.push(Common { share, sites: sites.union(more).copied().collect() });
            }
        }
        let of_both = |common: &Common| common.share[0] + common.share[1];
        common.sort_by(|a, b| of_both(b).total_cmp(&of_both(a)));
        let written = first.written + second.written;
        Footprint {
            lines: written as f64 / (2.0 * operations),
            shared: common.iter().fold(0.0, |sum, common| sum + of_both(common)) / 2.0,
            common,
        }
    }

    /// The lines that belong to no object: both threads write them in many of their operations.
    pub fn global(&self) -> impl Iterator<Item = &Common> {
        self.common.iter().filter(|common| common.share.iter().all(|share| *share >= GLOBAL))
    }
}

/// What one thread wrote.
#[derive(Default)]
struct Counts {
    /// Distinct lines, summed over the operations.
    written: usize,
    /// For each line: operations that wrote it, and who did.
    lines: BTreeMap<usize, (usize, BTreeSet<Site>)>,
}

impl Counts {
    fn add(&mut self, lines: Lines) {
        self.written += lines.len();
        for (line, sites) in lines {
            let known = self.lines.entry(line).or_default();
            known.0 += 1;
            known.1.extend(sites);
        }
    }
}
