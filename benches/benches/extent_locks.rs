//! Range locks under load, from one thread to 128: f2fs-extent and its peers in one run.
//!
//! `cargo bench --bench extent_locks` runs all; `-- shared_random` those with that in their name;
//! `F2FS_BENCH_THREADS=1,2` chooses thread counts. One iteration is one lock and unlock by every thread, with nothing
//! in between; the time is from the first thread's start to the last one's end. Results also go to
//! `target/extent_locks.csv` and, a chart for each workload, `target/extent_locks.svg`.
//!
//! | Workload | each operation |
//! |---|---|
//! | `shared_random` | shares a random block |
//! | `exclusive_random` | takes a random block |
//! | `shared_hot` | shares block 7 |
//! | `exclusive_own` | takes a random block of the thread's own part of the file |
//! | `mix_95_5` | shares a random block of 1024, or takes it (1 in 20) |
//! | `whole_1000` | shares a random block, or takes the whole file (1 in 1000) |
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use f2fs_benches::range_locks::{CrateLock, FileLock, ListLock, RangeLock, SegmentLocks, StateTree};
use f2fs_benches::report::{Csv, ascending, output};
use f2fs_benches::workers::{Team, thread_counts};
use f2fs_extent::ExtentTable;
use f2fs_sync::{Mutex, OnceLock};
use f2fs_workload::report::{LineChart, Machine};

/// Blocks of the file: 2.5 GB, and as many extent states in the tree that is full.
const BLOCKS: u64 = 640_000;

/// The operations; see the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Workload {
    SharedRandom,
    ExclusiveRandom,
    SharedHot,
    ExclusiveOwn,
    Mix95,
    Whole1000,
}

impl Workload {
    const ALL: [(Workload, &'static str); 6] = [
        (Workload::SharedRandom, "shared_random"),
        (Workload::ExclusiveRandom, "exclusive_random"),
        (Workload::SharedHot, "shared_hot"),
        (Workload::ExclusiveOwn, "exclusive_own"),
        (Workload::Mix95, "mix_95_5"),
        (Workload::Whole1000, "whole_1000"),
    ];
}

/// The results of runs of the team: workload, variant, threads; nanoseconds an operation of a thread, the time of
/// the fastest over that of the slowest.
type Results = BTreeMap<(&'static str, &'static str, usize), Vec<(f64, f64)>>;

static RESULTS: Mutex<Results> = Mutex::new(BTreeMap::new());

/// The work of worker `number` of `threads`, `count` times.
fn work<L: RangeLock>(lock: &L, workload: Workload, threads: usize, number: usize, count: u64) {
    let part = BLOCKS / threads as u64;
    let mut state = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let block = ((state >> 32) * BLOCKS) >> 32;
        let hold = || black_box(());
        match workload {
            Workload::SharedRandom => lock.shared(block, block, hold),
            Workload::ExclusiveRandom => lock.exclusive(block, block, hold),
            Workload::SharedHot => lock.shared(7, 7, hold),
            Workload::ExclusiveOwn => {
                let block = number as u64 * part + block % part;
                lock.exclusive(block, block, hold);
            }
            Workload::Mix95 if state.is_multiple_of(20) => lock.exclusive(block % 1024, block % 1024, hold),
            Workload::Mix95 => lock.shared(block % 1024, block % 1024, hold),
            Workload::Whole1000 if state.is_multiple_of(1000) => lock.exclusive(0, u64::MAX, hold),
            Workload::Whole1000 => lock.shared(block, block, hold),
        }
    }
}

fn variant<L: RangeLock>(
    criterion: &mut Criterion,
    name: &'static str,
    (workload, title): (Workload, &'static str),
    threads: &[usize],
) {
    let mut group = criterion.benchmark_group(title);
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(500));
    for &threads in threads {
        group.throughput(Throughput::Elements(threads as u64));
        // Made when it is first used, so that a filter saves the work; kept from sample to sample.
        let lock = OnceLock::new();
        let work = |number, count| work(lock.get_or_init(|| L::new(BLOCKS)), workload, threads, number, count);
        Team::with(threads, work, |team| {
            group.bench_function(BenchmarkId::new(name, threads), |bencher| {
                bencher.iter_custom(|iterations| {
                    // Not in the first round, which would seem to take as long as that.
                    lock.get_or_init(|| L::new(BLOCKS));
                    let round = team.round(iterations);
                    let each = round.elapsed.as_nanos() as f64 / iterations as f64;
                    // Short rounds are criterion's first guesses.
                    if round.elapsed > Duration::from_millis(20) {
                        let mut results = RESULTS.lock();
                        results.entry((title, name, threads)).or_default().push((each, round.slowest_share));
                    }
                    round.elapsed
                });
            });
        });
    }
    group.finish();
}

/// Writes the results; where to.
fn write_csv() -> std::io::Result<PathBuf> {
    let columns = "workload,variant,threads,ns_lowest,ns_median,ns_highest,million_per_second,fastest_over_slowest";
    let mut csv = Csv::create("extent_locks", columns)?;
    for ((workload, variant, threads), samples) in &*RESULTS.lock() {
        let times = ascending(samples.iter().map(|(each, _)| *each));
        let share = samples.iter().map(|(_, share)| *share).fold(1.0, f64::min);
        let (low, median, high) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        let rate = *threads as f64 * 1e3 / median;
        csv.line(&format!("{workload},{variant},{threads},{low:.1},{median:.1},{high:.1},{rate:.3},{share:.2}"))?;
    }
    Ok(csv.path().to_owned())
}

/// Draws a chart for each workload: the rate of all threads together; where to.
fn draw() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let results = RESULTS.lock();
    let processors = Machine::here().processors;
    let mut charts = Vec::new();
    for (_, title) in Workload::ALL {
        let mut variants: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for ((workload, variant, threads), samples) in &*results {
            if *workload == title {
                let rate = *threads as f64 * 1e9 / median(samples);
                variants.entry(variant).or_default().push((*threads as f64, rate));
            }
        }
        if !variants.is_empty() {
            let mut chart = LineChart::new(title, "threads", "locks and unlocks/s").processors(processors);
            variants.into_iter().for_each(|(variant, points)| chart.line(variant, points));
            charts.push(chart);
        }
    }
    let path = output("extent_locks.svg")?;
    std::fs::write(&path, LineChart::svg_of(&charts)?)?;
    Ok(path)
}

/// Of the times in nanoseconds, of which there is one at least.
fn median(samples: &[(f64, f64)]) -> f64 {
    let times = ascending(samples.iter().map(|(each, _)| *each));
    times[times.len() / 2]
}

fn main() {
    let threads = thread_counts();
    let mut criterion = Criterion::default().configure_from_args();
    for workload in Workload::ALL {
        variant::<ExtentTable>(&mut criterion, "extent", workload, &threads);
        variant::<FileLock>(&mut criterion, "file_rwlock", workload, &threads);
        variant::<SegmentLocks>(&mut criterion, "segments", workload, &threads);
        variant::<ListLock>(&mut criterion, "list", workload, &threads);
        variant::<StateTree<0>>(&mut criterion, "btree_0", workload, &threads);
        variant::<StateTree<BLOCKS>>(&mut criterion, "btree_640000", workload, &threads);
        variant::<CrateLock>(&mut criterion, "range_lock_crate", workload, &threads);
    }
    criterion.final_summary();
    if !RESULTS.lock().is_empty() {
        println!("written: {}", write_csv().unwrap().display());
        println!("drawn: {}", draw().unwrap().display());
    }
}
