//! How fair range locks are when far more threads want a block than there are processors.
//!
//! `cargo bench -p f2fs-benches --bench extent_fairness -- [--threads 120] [--each 400]`: threads share or take one block, half and half, each the same number of
//! times. A wait is counted in grants: how many others got the block between a thread's asking and its getting it. Its
//! fair share is one grant for each of the others. A thread that loses the processor after reading the count and before
//! it asks is counted as if it had asked: such waits are the machine's, so the 99.9th percentile stands beside the
//! longest.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use clap::{Parser, value_parser};
use f2fs_benches::arguments::ByCargo;
use f2fs_benches::range_locks::{FileLock, ListLock, RangeLock, SegmentLocks, StateTree};
use f2fs_benches::report;
use f2fs_benches::workers::Team;
use f2fs_extent::ExtentTable;
use f2fs_sync::Mutex;

/// How fair range locks are when far more threads want a block than there are processors.
#[derive(Debug, Parser)]
struct Args {
    /// Threads that want the block.
    #[arg(long, default_value_t = 120, value_parser = value_parser!(u16).range(2..=1024))]
    threads: u16,
    /// Locks that each thread takes.
    #[arg(long, default_value_t = 400, value_parser = value_parser!(u64).range(1..=1 << 20))]
    each: u64,
    #[command(flatten)]
    by_cargo: ByCargo,
}

struct Waits {
    /// In grants to others.
    grants: Vec<u64>,
    /// In nanoseconds.
    times: Vec<u64>,
}

fn measure<L: RangeLock>(name: &str, threads: usize, each: u64) {
    let lock = L::new(1024);
    let (granted, waits) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = |number: usize, count| {
        let mut mine = Waits { grants: Vec::new(), times: Vec::new() };
        for round in 0..count {
            let (start, before) = (Instant::now(), granted.load(Relaxed));
            let hold = || {
                let others = granted.fetch_add(1, Relaxed) - before;
                let time = start.elapsed();
                for _ in 0..50 {
                    black_box(others);
                }
                (others, time)
            };
            let (others, time) = if (round + number as u64).is_multiple_of(2) {
                lock.shared(7, 7, hold)
            } else {
                lock.exclusive(7, 7, hold)
            };
            mine.grants.push(others);
            mine.times.push(time.as_nanos() as u64);
        }
        waits.lock().push(mine);
    };
    let round = Team::with(threads, work, |team| team.round(each));
    let (mut grants, mut times): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for mine in waits.lock().drain(..) {
        grants.extend(mine.grants);
        times.extend(mine.times);
    }
    grants.sort_unstable();
    times.sort_unstable();
    let at = |sorted: &[u64], share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let fair = (threads - 1) as f64;
    println!(
        "{name:<14} {:>8.2} {:>8.2} {:>8.2} {:>10.1} {:>10.1} {:>10.1} {:>9.2} {:>9.3}",
        at(&grants, 0.5) as f64 / fair,
        at(&grants, 0.999) as f64 / fair,
        at(&grants, 1.0) as f64 / fair,
        at(&times, 0.5) as f64 / 1e3,
        at(&times, 0.999) as f64 / 1e3,
        at(&times, 1.0) as f64 / 1e3,
        1.0 / round.slowest_share,
        threads as f64 * each as f64 / round.elapsed.as_secs_f64() / 1e6,
    );
}

fn main() {
    let Args { threads, each, .. } = Args::parse();
    let threads = usize::from(threads);
    println!("{}", report::machine());
    println!("{threads} threads, {each} locks each, half shared, half exclusive, of one block");
    println!(
        "{:<14} {:>26} {:>32} {:>9} {:>9}\n{:<14} {:>8} {:>8} {:>8} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "",
        "wait / fair share",
        "wait, us",
        "slowest/",
        "million/",
        "",
        "median",
        "99.9 %",
        "longest",
        "median",
        "99.9 %",
        "longest",
        "fastest",
        "second"
    );
    measure::<ExtentTable>("extent", threads, each);
    measure::<FileLock>("file_rwlock", threads, each);
    measure::<SegmentLocks>("segments", threads, each);
    measure::<ListLock>("list", threads, each);
    measure::<StateTree<0>>("btree_0", threads, each);
}
