//! FxMark in process: each workload under each way of finding free node IDs, from 1 to 128 threads.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench fxmark                                # quick: 10,000 files
//! cargo bench -p f2fs-benches --bench fxmark -- mwum                        # those with that in their name
//! F2FS_BENCH_FILES=1000000 cargo bench -p f2fs-benches --bench fxmark       # the full size: hours, and 10 GiB of memory
//! F2FS_BENCH_IMAGE=/mnt/image cargo bench -p f2fs-benches --bench fxmark    # on a file, by io_uring; it is overwritten
//! ```
//!
//! The driver is `f2fs_workload::fxmark`, which `f2fs bench fxmark` runs as well: fixed work, full paths, persistent workers
//! that are released together, the time from the first start to the last end, a new volume for each sample. `mwul` and `mwum`
//! begin with no free NID, as FxMark, which fills the volume; the volume has 64 GiB, of which only what is written takes
//! memory, so that it has 13.5 million NIDs, as many as the paper's SSD of 250 GB (mkfs.f2fs caps the table there). In the
//! quick setting it has 4 GiB and 1.2 million. `F2FS_BENCH_THREADS=1,2` measures only those thread counts. Beside criterion's report,
//! `target/fxmark.csv` has a line for each sample, and `target/fxmark.svg` a chart for each workload, of medians.
//!
//! # What was seen, and what was not
//!
//! Intel Xeon, 2 processors, Linux 6.18, `f2fs bench fxmark --memory 64G --files 100000 --threads 120`, one run of each,
//! while compilers took most of both processors: the rates are too low, and the ratios within a line are rough.
//!
//! | Unlinks/s at 120 threads | kernel-scan | clue | sharded | threads' time in scans |
//! |---|---|---|---|---|
//! | `mwul` | 10,200 | 79,800 (7.8x) | 60,700 | 96 %, 1.3 %, 0 % |
//! | `mwum`, directory locked whole | 7,200 | 14,900 (2.1x) | not run | 84 %, 0.7 % |
//! | `mwum`, by bucket | 8,800 | 54,000 (6.2x) | 67,500 | 95 %, 0.8 %, 0 % |
//!
//! Not measured: a million files, thread counts other than 120 by themselves on a quiet machine, and with that whether
//! throughput falls from its peak to 128 threads; files on io_uring. The paper's 15x and 3x of `clue` over `kernel-scan`, and 2x of
//! `sharded` over `clue`, are not shown.
//!
//! Why 15x is far on two processors: with no NID free, a bitmap scan looks at 29,696 NAT blocks and finds nothing, 36 us (median of
//! `mwul` at one thread, 44 us, less the 8 us of an unlink under `sharded`). Under `kernel-scan` that is serial: at most 28,000
//! unlinks/s however many processors there are. Under `clue` one thread scans and the others pass by, so the rest of the machine
//! unlinks: with 2 processors, 8 us and a scanner on one of them, 5 to 9 times as much; 15x takes 4 processors or more, or an unlink of
//! under 5 us. The same sum gives `sharded` at most 2x over `clue` here, where scanning costs `clue` one of two processors, and
//! only as long as the scanner is running: with 120 threads it is mostly not, holds its lock, and lets all others pass.
//!
//! Where the time goes (sampled over creating and unlinking, `mwul`, 2 threads, 100,000 files, `sharded`): 38 % in `DentryView::find`, 9 % in finding
//! pages of directories. A directory of 50,000 names has 9 levels, and each look-up passes over a bucket of up to 428 entries
//! in each. So private directories get faster with more threads, as they get smaller, and `mwum` pays for its one large directory
//! with longer look-ups. It is the likely reason, not tested yet, why `whole` can beat `bucket` with two threads: all look-ups take
//! the reader-writer locks of the pages of the upper levels, which go to and fro between processors unless one lock above keeps
//! the other thread out. An index of hashes in memory for each directory would take most of this away.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use f2fs::DirectoryLock;
use f2fs::device::{BlockDevice, MemoryDevice};
use f2fs::nat::Policy;
use f2fs::uring::{OpenOptions, UringDevice};
use f2fs_benches::report::{Csv, output};
use f2fs_benches::workers::thread_counts;
use f2fs_workload::fxmark::{Measured, Setting, Workload, run};
use f2fs_workload::report::{LineChart, Machine};

const POLICIES: [Policy; 3] = [Policy::KernelScan, Policy::CLUE, Policy::Sharded];

/// The workloads, and the directory locks between which they can tell.
const WORKLOADS: [(Workload, &[DirectoryLock]); 6] = [
    (Workload::Mwul, &[DirectoryLock::Bucket]),
    (Workload::Mwum, &[DirectoryLock::Whole, DirectoryLock::Bucket]),
    (Workload::Mwcl, &[DirectoryLock::Bucket]),
    (Workload::Mwcm, &[DirectoryLock::Whole, DirectoryLock::Bucket]),
    (Workload::Mwrl, &[DirectoryLock::Bucket]),
    (Workload::Mwrm, &[DirectoryLock::Whole, DirectoryLock::Bucket]),
];

/// Files of a sample, and blocks of the volume in memory.
fn size() -> (u64, u64) {
    let files = std::env::var("F2FS_BENCH_FILES").ok().and_then(|files| files.parse().ok()).unwrap_or(10_000);
    let gib = if files < 250_000 { 4 } else { 64 };
    (files, gib << 18)
}

fn device(blocks: u64) -> Arc<dyn BlockDevice> {
    match std::env::var_os("F2FS_BENCH_IMAGE").map(PathBuf::from) {
        None => Arc::new(MemoryDevice::new(blocks)),
        Some(image) if image.exists() => UringDevice::open(&image, OpenOptions::new()).unwrap(),
        Some(image) => UringDevice::create(&image, blocks * 4096, OpenOptions::new()).unwrap(),
    }
}

fn lock_name(lock: DirectoryLock) -> &'static str {
    match lock {
        DirectoryLock::Bucket => "bucket",
        DirectoryLock::Whole => "whole",
    }
}

/// Rates of the samples of one line of a chart, by the number of threads.
type Line = BTreeMap<usize, Vec<f64>>;

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

fn main() {
    let (files, blocks) = size();
    let mut criterion = Criterion::default().configure_from_args();
    let mut csv = Csv::create("fxmark", &format!("directory_lock,{}", Measured::COLUMNS)).unwrap();
    let mut charts = Vec::new();
    for (workload, locks) in WORKLOADS {
        let mut lines: BTreeMap<String, Line> = BTreeMap::new();
        for lock in locks {
            let mut group = criterion.benchmark_group(format!("fxmark/{workload}/{}", lock_name(*lock)));
            group.sample_size(10).sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(files));
            // Making the files takes longer than the time that is measured: no warming up beyond one sample.
            group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_millis(1));
            for threads in thread_counts() {
                for policy in POLICIES {
                    let setting = Setting { policy, threads, files, directory_lock: *lock, ..Setting::new(workload) };
                    let line = lines.entry(format!("{policy}, {}", lock_name(*lock))).or_default();
                    group.bench_function(BenchmarkId::new(policy.to_string(), threads), |bencher| {
                        bencher.iter_custom(|samples| {
                            let mut sum = Duration::ZERO;
                            for _ in 0..samples {
                                let measured = run(device(blocks), &setting, &()).unwrap();
                                csv.line(&format!("{},{}", lock_name(*lock), measured.csv())).unwrap();
                                line.entry(threads).or_default().push(measured.rate());
                                sum += measured.elapsed;
                            }
                            sum
                        });
                    });
                }
            }
            group.finish();
        }
        let title = format!("{}: {files} files", workload.name().to_uppercase());
        let mut chart = LineChart::new(title, "threads", format!("{}/s", workload.operations()));
        chart = chart.processors(Machine::here().processors);
        lines.retain(|_, line| !line.is_empty());
        for (name, line) in &lines {
            chart.line(name, line.iter().map(|(threads, rates)| (*threads as f64, median(rates))).collect());
        }
        if !lines.is_empty() {
            charts.push(chart);
        }
    }
    if !charts.is_empty() {
        std::fs::write(output("fxmark.svg").unwrap(), LineChart::svg_of(&charts).unwrap()).unwrap();
    }
    criterion.final_summary();
}
