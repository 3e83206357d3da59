//! What this machine's processors cost: the numbers of which a played machine's table is made. Each is the median of
//! many, on threads that stay on a processor each.
//!
//! A line's transfer is a quarter of a round trip between two processors that wait for each other's change of a word:
//! each of the two changes on the way is a read that fetches the line and a write that takes it away.

use std::sync::Barrier;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use f2fs_format::hash::dentry_hash;
use f2fs_sync::CachePadded;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::report::ascending;

/// Round trips of one measurement between two processors.
const TRIPS: u64 = 2_000;
/// Measurements, of which the median counts.
const TIMES: usize = 9;
/// Lines of the memory that is read at random: 512 MiB.
const LINES: usize = 8 << 20;

/// Costs in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hardware {
    /// An atomic change of a line that the processor has, beyond a load.
    pub change: f64,
    /// A load of it that the next one waits for.
    pub hit: f64,
    /// A load from memory that the next one waits for.
    pub memory: f64,
    /// A pause instruction.
    pub pause: f64,
    /// The system call that gives the processor up.
    pub yield_call: f64,
    /// Waking a thread that is parked, for the one that wakes it.
    pub wake: f64,
    /// From there until the woken thread runs.
    pub wakeup: f64,
    /// By how much each of several readers of a line that was changed sees it later than the one before.
    pub shared_read: f64,
    /// A transfer of a line between processors, in the order of the processors.
    pub transfers: Vec<Vec<f64>>,
    /// The rate of computing, relative to one thread, by the number of threads.
    pub computing: Vec<(usize, f64)>,
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let sorted = ascending(values);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn nanoseconds(time: Duration, parts: u64) -> f64 {
    time.as_nanos() as f64 / parts as f64
}

/// Nanoseconds of each of so many operations.
fn each(count: u64, mut operation: impl FnMut()) -> f64 {
    median((0..TIMES).map(|_| {
        let start = Instant::now();
        (0..count).for_each(|_| operation());
        nanoseconds(start.elapsed(), count)
    }))
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Keeps the running thread on a processor.
fn stay_on(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    // Without it, the numbers are less exact.
    let _ = sched_setaffinity(None, &only);
}

/// Waits for a value, by loads alone.
fn until(word: &AtomicU64, value: u64) {
    while word.load(Acquire) != value {
        std::hint::spin_loop();
    }
}

/// A transfer of a line between these two.
fn transfer(one: usize, other: usize) -> f64 {
    let word = CachePadded::new(AtomicU64::new(0));
    let trips = TRIPS * TIMES as u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(other);
            for trip in 0..trips {
                until(&word, 2 * trip + 1);
                word.store(2 * trip + 2, Release);
            }
        });
        stay_on(one);
        let mut trip = 0;
        let round = each(TRIPS, || {
            word.store(2 * trip + 1, Release);
            until(&word, 2 * trip + 2);
            trip += 1;
        });
        round / 4.0
    })
}

/// Loads in a random order over much memory.
fn memory() -> f64 {
    const STEP: usize = 0x9E37_79B5;
    #[repr(align(64))]
    #[derive(Clone, Copy)]
    struct Line(usize);
    // A full cycle through all lines, in an order that no prefetcher foresees.
    let next = |line: usize| (line.wrapping_mul(STEP * 4 + 1).wrapping_add(STEP | 1)) % LINES;
    let lines: Vec<Line> = (0..LINES).map(|line| Line(next(line))).collect();
    let mut at = 0;
    let result = each(200_000, || at = lines[at].0);
    std::hint::black_box(at);
    result
}

/// Parks a thread and wakes it: the cost of waking, and the time until it runs.
fn parking(one: usize, other: usize) -> (f64, f64) {
    let (base, ran, over) = (Instant::now(), AtomicU64::new(0), AtomicBool::new(false));
    let now = || base.elapsed().as_nanos() as u64;
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            stay_on(other);
            while !over.load(Relaxed) {
                std::thread::park();
                ran.store(now(), Release);
            }
        });
        stay_on(one);
        for _ in 0..300 {
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(60) {
                std::hint::spin_loop();
            }
            ran.store(0, Relaxed);
            let before = now();
            sleeper.thread().unpark();
            let after = now();
            let woken = loop {
                match ran.load(Acquire) {
                    0 => std::hint::spin_loop(),
                    at => break at,
                }
            };
            times.push(((after - before) as f64, woken.saturating_sub(after) as f64));
        }
        over.store(true, Relaxed);
        sleeper.thread().unpark();
    });
    (median(times.iter().map(|(wake, _)| *wake)), median(times.iter().map(|(_, wakeup)| *wakeup)))
}

/// One processor changes a line, all others wait for it: how far apart they see it.
fn shared_read(processors: &[usize]) -> f64 {
    let Some(readers) = processors.len().checked_sub(1).filter(|readers| *readers > 1) else { return f64::NAN };
    let word = CachePadded::new(AtomicU64::new(0));
    let seen: Vec<CachePadded<AtomicU64>> = (0..readers).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
    let (base, together) = (Instant::now(), Barrier::new(processors.len()));
    const ROUNDS: u64 = 300;
    std::thread::scope(|scope| {
        for (reader, seen) in seen.iter().enumerate() {
            let (word, together) = (&word, &together);
            scope.spawn(move || {
                stay_on(processors[reader + 1]);
                for round in 1..=ROUNDS {
                    together.wait();
                    until(word, round);
                    seen.store(base.elapsed().as_nanos() as u64, Release);
                    together.wait();
                }
            });
        }
        stay_on(processors[0]);
        let spreads = (1..=ROUNDS).map(|round| {
            together.wait();
            let start = Instant::now();
            // Until all wait.
            while start.elapsed() < Duration::from_micros(50) {
                std::hint::spin_loop();
            }
            word.store(round, Release);
            together.wait();
            let times = seen.iter().map(|seen| seen.load(Acquire));
            let first = times.clone().min().unwrap_or(0);
            (times.max().unwrap_or(0) - first) as f64 / (readers - 1) as f64
        });
        median(spreads.collect::<Vec<_>>())
    })
}

/// So many threads hash names, each for itself: names a second.
fn computing(processors: &[usize], threads: usize) -> f64 {
    const NAMES: u64 = 100_000;
    let rates = (0..TIMES).map(|_| {
        let together = Barrier::new(threads);
        let work = |processor: usize| {
            stay_on(processor);
            let mut name = *b"name-00000000-of-a-file";
            together.wait();
            let start = Instant::now();
            let mut sum = 0u32;
            for number in 0..NAMES {
                name[5..13].copy_from_slice(&number.to_le_bytes());
                sum = sum.wrapping_add(dentry_hash(&name));
            }
            std::hint::black_box(sum);
            start.elapsed()
        };
        let longest = std::thread::scope(|scope| {
            let threads: Vec<_> =
                processors.iter().take(threads).map(|processor| scope.spawn(|| work(*processor))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).max()
        });
        longest.map_or(f64::NAN, |longest| threads as f64 * NAMES as f64 / longest.as_secs_f64())
    });
    median(rates)
}

/// Measures this machine, with `counts` threads where the number matters.
#[must_use]
pub fn measure(counts: &[usize]) -> Hardware {
    let processors = processors();
    let own = AtomicU64::new(0);
    let alone = std::thread::scope(|scope| {
        let alone = scope.spawn(|| {
            stay_on(processors[0]);
            let mut at = 0;
            let chain: Vec<usize> = (0..64).map(|at| (at + 8) % 64).collect();
            let hit = each(100_000, || at = chain[std::hint::black_box(at)]);
            let change = each(100_000, || _ = own.fetch_add(1, Relaxed));
            Hardware {
                hit,
                change: (change - hit).max(0.0),
                memory: memory(),
                pause: each(100_000, std::hint::spin_loop),
                yield_call: each(20_000, std::thread::yield_now),
                ..Hardware::default()
            }
        });
        alone.join().unwrap_or_default()
    });
    let pair = |one: usize, other: usize| match (processors.get(one), processors.get(other)) {
        (Some(one), Some(other)) if one != other => {
            std::thread::scope(|scope| scope.spawn(|| transfer(*one, *other)).join().unwrap_or(f64::NAN))
        }
        _ => 0.0,
    };
    let all = 0..processors.len();
    let transfers = all.clone().map(|one| all.clone().map(|other| pair(one.max(other), one.min(other))).collect());
    let (wake, wakeup) = match processors[..] {
        [first, .., last] => {
            std::thread::scope(|scope| scope.spawn(|| parking(first, last)).join().unwrap_or((f64::NAN, f64::NAN)))
        }
        _ => (f64::NAN, f64::NAN),
    };
    let shared_read = std::thread::scope(|scope| scope.spawn(|| shared_read(&processors)).join().unwrap_or(f64::NAN));
    let one = computing(&processors, 1);
    let computing = counts.iter().filter(|count| **count <= processors.len());
    let computing = computing.map(|count| (*count, self::computing(&processors, *count) / one)).collect();
    Hardware { transfers: transfers.collect(), wake, wakeup, shared_read, computing, ..alone }
}

impl Hardware {
    /// Prints all of it, the transfers as a matrix.
    pub fn print(&self) {
        println!(
            "nanoseconds: hit {:.2}, change {:.2}, memory {:.1}, pause {:.2}, yield {:.0}, wake {:.0}, wakeup {:.0}, \
             shared read {:.1}",
            self.hit, self.change, self.memory, self.pause, self.yield_call, self.wake, self.wakeup, self.shared_read
        );
        println!("transfers of a line:");
        for row in &self.transfers {
            println!("{}", row.iter().map(|time| format!("{time:>6.1}")).collect::<String>());
        }
        println!("computing, rate relative to one thread:");
        for (threads, ratio) in &self.computing {
            println!("{threads:>4} threads {ratio:>6.2}");
        }
    }
}
