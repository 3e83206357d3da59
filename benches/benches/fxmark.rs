//! FxMark in process: each workload under each way of finding free node IDs, from 1 to 128 threads.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench fxmark                                # quick: 10,000 files
//! cargo bench -p f2fs-benches --bench fxmark -- mwum                        # those with that in their name
//! F2FS_BENCH_FILES=1000000 cargo bench -p f2fs-benches --bench fxmark       # the full size: hours, and 10 GiB of memory
//! F2FS_BENCH_IMAGE=/mnt/image cargo bench -p f2fs-benches --bench fxmark    # on a file, by io_uring; it is overwritten
//! ```
//!
//! The driver is `f2fs_workload::fxmark`, which `f2fs bench fxmark` runs as well: fixed work, full paths, persistent
//! workers that are released together, the time from the first start to the last end, a new volume for each sample.
//! `mwul` and `mwum` begin with no free NID, as FxMark, which fills the volume; the volume has 64 GiB, of which only
//! what is written takes memory, so that it has 13.5 million NIDs, as many as the paper's SSD of 250 GB (mkfs.f2fs caps
//! the table there). In the quick setting it has 4 GiB and 1.2 million. `F2FS_BENCH_THREADS=1,2` measures only those
//! thread counts. Beside criterion's report, `target/fxmark.csv` has a line for each sample, and `target/fxmark.svg` a
//! chart for each workload, of medians.
//!
//! # What was seen
//!
//! AMD EPYC, 2 processors, 24 GiB, Linux 6.18, a **busy machine** (load averages of 12 to 33); `f2fs bench fxmark
//! --files 100000 --memory 8G` and `64G`. At the start no NID is free and all are cached: 2.1 and 13.5 million.
//! Thousands of unlinks a second, medians of five rounds, everything in turn in each; ratios are medians of the rounds'
//! own, with the least and the greatest:
//!
//! | | volume | threads | kernel-scan | clue | sharded | clue / kernel-scan | sharded / clue |
//! |---|--:|--:|--:|--:|--:|--:|--:|
//! | `mwul` | 8 GiB | 1 | 84 | 84 | 227 | 1.1 (0.8 to 1.2) | 2.7 (2.2 to 3.3) |
//! | `mwul` | 8 GiB | 2 | 75 | 91 | 223 | 1.3 (0.8 to 1.6) | 2.6 (2.2 to 2.9) |
//! | `mwul` | 8 GiB | 16 | 84 | 129 | 204 | 1.5 (1.3 to 1.9) | 1.6 (1.3 to 2.6) |
//! | `mwul` | 8 GiB | 120 | 72 | 214 | 382 | 3.5 (1.8 to 8.4) | 1.9 (0.8 to 2.6) |
//! | `mwul` | 64 GiB | 1 | 16 | 16 | 256 | 1.0 (0.8 to 1.2) | 10.6 (8.9 to 17.2) |
//! | `mwul` | 64 GiB | 2 | 20 | 29 | 279 | 1.2 (0.8 to 1.5) | 10.0 (9.0 to 11.1) |
//! | `mwul` | 64 GiB | 16 | 22 | 91 | 212 | 4.5 (2.6 to 7.0) | 2.4 (1.9 to 3.2) |
//! | `mwul` | 64 GiB | 120 | 23 | 402 | 275 | 10.8 (8.2 to 24.1) | 0.8 (0.5 to 2.9) |
//! | `mwum`, whole | 8 GiB | 1 | 53 | 64 | 186 | 1.3 (1.1 to 1.6) | 2.5 (2.1 to 3.0) |
//! | `mwum`, whole | 8 GiB | 2 | 84 | 97 | 238 | 1.1 (0.9 to 1.4) | 2.5 (2.2 to 3.8) |
//! | `mwum`, whole | 8 GiB | 16 | 101 | 108 | 242 | 1.1 (0.9 to 1.2) | 2.6 (2.1 to 3.7) |
//! | `mwum`, whole | 8 GiB | 120 | 84 | 102 | 412 | 1.1 (1.1 to 1.2) | 3.7 (2.9 to 6.0) |
//! | `mwum`, whole | 64 GiB | 1 | 15 | 13 | 135 | 0.8 (0.7 to 1.1) | 10.3 (9.5 to 11.3) |
//! | `mwum`, whole | 64 GiB | 2 | 16 | 18 | 165 | 1.3 (0.7 to 1.5) | 9.0 (8.1 to 10.8) |
//! | `mwum`, whole | 64 GiB | 16 | 17 | 19 | 259 | 1.1 (1.0 to 1.8) | 14.4 (8.4 to 15.5) |
//! | `mwum`, whole | 64 GiB | 120 | 23 | 23 | 368 | 1.0 (0.9 to 1.2) | 18.9 (9.3 to 23.3) |
//! | `mwum`, by bucket | 8 GiB | 1 | 78 | 81 | 173 | 1.0 (0.7 to 1.2) | 2.5 (2.1 to 2.7) |
//! | `mwum`, by bucket | 8 GiB | 2 | 74 | 80 | 272 | 1.1 (0.9 to 1.3) | 2.7 (2.3 to 3.4) |
//! | `mwum`, by bucket | 8 GiB | 16 | 101 | 99 | 290 | 1.0 (0.9 to 1.2) | 2.5 (1.8 to 3.0) |
//! | `mwum`, by bucket | 8 GiB | 120 | 158 | 221 | 266 | 1.4 (1.0 to 1.9) | 1.6 (0.4 to 2.5) |
//! | `mwum`, by bucket | 64 GiB | 1 | 16 | 14 | 133 | 1.0 (0.9 to 1.3) | 9.6 (6.2 to 11.1) |
//! | `mwum`, by bucket | 64 GiB | 2 | 14 | 14 | 164 | 0.9 (0.5 to 1.4) | 11.5 (9.2 to 12.5) |
//! | `mwum`, by bucket | 64 GiB | 16 | 28 | 28 | 144 | 0.9 (0.8 to 1.5) | 5.6 (5.1 to 8.3) |
//! | `mwum`, by bucket | 64 GiB | 120 | 33 | 108 | 151 | 3.3 (1.1 to 4.3) | 2.5 (1.0 to 6.0) |
//!
//! The meaning of these rows, with the baselines' differences from Linux in mind ([`Policy`] lists them: most make the
//! baselines faster):
//!
//! - **The size of the volume decides.** A scan looks at each NAT block, 29,700 of them on 64 GiB and 4,600 on 8 GiB,
//!   and a baseline does one in each unlink. So any ratio of these is of a size: `sharded` over `kernel-scan` for
//!   `mwul` is 2.5 to 5.3 on 8 GiB and 11 to 13 on 64 GiB.
//! - **`mwum` with the directory locked whole, as in Linux: `clue` gains nothing here**, on either volume, with any
//!   number of threads. Linux scans with the directory's lock held, so no thread of that directory meets a scan that it
//!   could pass by. The 3 times of the paper, which has 120 processors, are neither reached nor refuted.
//! - **`mwul`: `clue` gains as much as there are threads that pass a scan by**, little with two, and most with 120 on
//!   two processors, where they pass by whoever was put to sleep in its scan. That is oversubscription, not scaling.
//! - `sharded` scans nothing, so the volume's size does not matter to it; under `whole` it is bound by the one lock.
//!
//! **Open, because two processors cannot show it:** the 15 and 3 times of the paper at 120 processors; how any of the
//! three scales beyond two; what it costs when a lock, or a line, goes between sockets. Which lines would go is counted
//! (`cache_lines`).
//!
//! Where the time of an unlink under `sharded` goes: 12 % finding the inode in memory, 11 % hashing names (three times
//! a name then, once since), 9 % finding the block of the name, 8 % taking the node out of the cache, 4 % the clock; no
//! more than 1.6 % in the allocator.
//!
//! The other workloads (`--files 50000` on 64 GiB, three rounds, the same busy machine, so that a factor of two between
//! neighbours says nothing; no NID is short there, so the policies differ by their locks: `kernel-scan` and `clue` take
//! two of the whole table for each new file, `sharded` none; thousands a second):
//!
//! | | threads | kernel-scan | clue | sharded |
//! |---|--:|--:|--:|--:|
//! | `mwcl` | 1 | 31 | 66 | 86 |
//! | `mwcl` | 2 | 57 | 71 | 121 |
//! | `mwcl` | 120 | 60 | 319 | 360 |
//! | `mwcm` | 1 | 24 | 41 | 40 |
//! | `mwcm` | 2 | 27 | 37 | 41 |
//! | `mwcm` | 120 | 86 | 65 | 49 |
//! | `mwrl` | 1 | 166 | 154 | 182 |
//! | `mwrl` | 2 | 182 | 159 | 182 |
//! | `mwrl` | 120 | 713 | 452 | 732 |
//!
//! More than two threads show behaviour under oversubscription, not scaling. Not measured: `mwrm` and the other
//! workloads on a file through io_uring at this size, single techniques of `clue` at this size, more than two
//! processors.
//!
//! [`Policy`]: f2fs::nat::Policy
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
use f2fs_benches::report::{Csv, ascending, output};
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
        _ => "another",
    }
}

/// Rates of the samples of one line of a chart, by the number of threads.
type Line = BTreeMap<usize, Vec<f64>>;

fn median(rates: &[f64]) -> f64 {
    let sorted = ascending(rates.iter().copied());
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
