//! The segment manager: taking and freeing blocks, and choosing victims.
//!
//! `allocate and free/VARIANT/N`: batches of 512 blocks taken from a log and freed again, by N threads; the time is for
//! one block of each thread taken and freed. Checkpoints in between (their time counted too) make freed segments
//! available. `victim/POLICY/N`: one choice among N dirty segments, one of which changed since the last choice; with
//! two looks at the clock. `company/age/N`: one block taken among others of its age (`AT_SSR`), with N dirty segments,
//! and freed again. `cleaning, per block moved/WAY`: sections of a volume in memory whose every other block is valid
//! are emptied: their summary, the owners of their blocks, reads of single blocks, writes, the change of each address.
//! The checkpoints that free the sections are not counted. *device alone*: the same number of blocks read in one
//! request and written in another.
//!
//! Seen once on a virtual machine with two Intel Xeon processors (Linux 6.18), alone on it, medians with short runs:
//!
//! | | |
//! |---|---|
//! | a block taken in a batch of 512 and freed in runs, 1 thread | 7.7 ns |
//! | the same, each block freed by a call | 40 ns; in lanes 43 ns |
//! | the same, time of one block of each thread, 2, 8, 32, 128 threads on one log | 0.14, 0.60, 2.3, 8.4 us |
//! | the same, 16 lanes | 0.17, 0.51, 2.3, 7.8 us |
//! | choice among 10^3 ... 10^6 segments, and its release: greedy | 0.41 to 0.50 us |
//! | the same: cost-benefit | 0.74 to 0.92 us |
//! | the same: age threshold | 1.4 to 1.8 us |
//! | later, with a bound for each chunk of classes that rules most of them out: cost-benefit | 0.57 to 0.86 us |
//! | the same: age threshold | 0.67 to 0.83 us, once 1.00; 0.77 among 10^6 |
//! | a block among others of its age, 10^3 ... 10^6 segments | 0.13 to 0.21 us |
//! | cleaning, a block moved: greedy, age threshold | 2.9, 3.9 us: 81 % and 60 % of the device alone, 2.3 us |
//!
//! Beyond two threads these tell how the manager bears more threads than processors, not how it scales. That no line of
//! the whole file system is written on the way is what `f2fs_benches::cache_lines` counts.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use f2fs::device::{BlockDevice, MemoryDevice};
use f2fs::files::{FileSystem, Options};
use f2fs_benches::segments::{manager, manager_with_summaries};
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::Summary;
use f2fs_format::{LogType, Nid};
use f2fs_segment::{AgeThreshold, Class, Run, SegmentManager, VictimPolicy};

const BATCH: usize = 512;

/// Batches are taken and freed, each run at once or block by block.
fn churn(manager: &SegmentManager, lane: usize, log: LogType, batches: u64, singly: bool) {
    let summaries = [Summary::new(Nid(9), 0, 1); BATCH];
    let mut runs: Vec<Run> = Vec::with_capacity(4);
    for _ in 0..batches {
        manager.allocate_on(lane, Class::User, log, &summaries, 7, &mut runs).unwrap();
        for run in runs.drain(..) {
            if singly {
                (0..run.len).for_each(|at| manager.invalidate(run.addr.offset(at), 8).unwrap());
            } else {
                manager.invalidate_run(run, 8).unwrap();
            }
        }
    }
}

fn checkpoint(manager: &SegmentManager) {
    manager.begin_checkpoint(6).unwrap();
    manager.end_checkpoint();
}

/// Time for `batches` by each of `threads`, in rounds with a checkpoint after each.
fn churn_by(threads: usize, batches: u64, logs: &[LogType], lanes: usize, singly: bool) -> Duration {
    let manager = manager(16 * 1024, lanes, |_| RawSitEntry::ZERO);
    let round = (12_000 / threads as u64).max(1);
    let mut time = Duration::ZERO;
    let mut left = batches;
    while left != 0 {
        let now = round.min(left);
        left -= now;
        let start = Barrier::new(threads);
        let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|index| {
                    let (manager, start, log) = (&manager, &start, logs[index % logs.len()]);
                    scope.spawn(move || {
                        start.wait();
                        let begin = Instant::now();
                        churn(manager, index, log, now, singly);
                        (begin, Instant::now())
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        let begin = spans.iter().map(|span| span.0).min().unwrap();
        time += spans.iter().map(|span| span.1).max().unwrap() - begin;
        let begin = Instant::now();
        checkpoint(&manager);
        time += begin.elapsed();
    }
    time
}

fn allocate(c: &mut Criterion) {
    let mut group = c.benchmark_group("allocate and free, per block");
    group.sample_size(10);
    for (variant, logs, lanes, singly) in [
        ("one log, freed in runs", &[LogType::WarmData][..], 1, false),
        ("one log, freed singly", &[LogType::WarmData][..], 1, true),
        ("one log of 16 lanes, freed singly", &[LogType::WarmData][..], 16, true),
        ("three logs, freed singly", &[LogType::HotData, LogType::WarmData, LogType::ColdData][..], 1, true),
    ] {
        for threads in [1, 2, 4, 8, 16, 32, 64, 128] {
            group.throughput(Throughput::Elements(threads as u64));
            group.bench_with_input(BenchmarkId::new(variant, threads), &threads, |b, &threads| {
                // One iteration is one block of each thread.
                b.iter_custom(|iterations| {
                    let batches = iterations.div_ceil(BATCH as u64);
                    churn_by(threads, batches, logs, lanes, singly)
                        .mul_f64(iterations as f64 / (batches * BATCH as u64) as f64)
                });
            });
        }
    }
    group.finish();
}

/// A dirty segment: a number of valid blocks and an age that look random.
fn dirty(segment: u32) -> RawSitEntry {
    let mixed = u64::from(segment).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let valid = 1 + (mixed >> 33) as u32 % 511;
    let mut entry = RawSitEntry::ZERO;
    entry.set_blocks(LogType::WarmData, valid);
    (0..valid as usize).for_each(|at| entry.valid_map[at / 8] |= 0x80 >> (at % 8));
    entry.mtime.set(1 + (mixed >> 20) % 1_000_000);
    entry
}

fn victim(c: &mut Criterion) {
    let mut group = c.benchmark_group("victim");
    group.sample_size(20);
    let policies = [
        ("greedy", VictimPolicy::Greedy),
        ("cost-benefit", VictimPolicy::CostBenefit),
        ("age threshold", VictimPolicy::AgeThreshold(AgeThreshold::default().threshold(100_000))),
    ];
    for segments in [1_000u32, 10_000, 100_000, 1_000_000] {
        let manager = manager(segments, 1, dirty);
        for (name, policy) in policies {
            // The index of ages is built by the first choice.
            let first = manager.choose_victim(policy, 2_000_000).unwrap();
            manager.release_victim(&first).unwrap();
            group.bench_function(BenchmarkId::new(name, segments), |b| {
                // Choosing marks the victim; releasing it puts it back, so that the next choice has one change to look
                // at.
                b.iter_custom(|choices| {
                    let choose = || {
                        let start = Instant::now();
                        let victim = manager.choose_victim(policy, 2_000_000).unwrap();
                        let took = start.elapsed();
                        manager.release_victim(&victim).unwrap();
                        took
                    };
                    (0..choices).map(|_| choose()).sum()
                });
            });
        }
    }
    group.finish();
}

/// Blocks that a cleaner moves find others of their age.
fn company(c: &mut Criterion) {
    let mut group = c.benchmark_group("company");
    group.sample_size(20);
    for segments in [1_000u32, 10_000, 100_000, 1_000_000] {
        let manager = manager_with_summaries(segments, dirty);
        let victim = manager.choose_victim(VictimPolicy::Greedy, 2_000_000).unwrap();
        let mut runs: Vec<Run> = Vec::with_capacity(4);
        let mut one = || {
            manager.allocate_aged(victim.first, &[Summary::new(Nid(9), 0, 1)], 2_000_000, &mut runs).unwrap();
            manager.invalidate_run(runs.pop().unwrap(), 2_000_000).unwrap();
        };
        // The index of ages is built by the first choice.
        one();
        let mut since = 0;
        group.bench_function(BenchmarkId::new("age", segments), |b| {
            b.iter_custom(|iterations| {
                let mut time = Duration::ZERO;
                let mut left = iterations;
                while left != 0 {
                    let now = left.min(10_000 - since);
                    let begin = Instant::now();
                    (0..now).for_each(|_| one());
                    time += begin.elapsed();
                    (left, since) = (left - now, (since + now) % 10_000);
                    if since == 0 {
                        // Freed blocks become holes again.
                        checkpoint(&manager);
                    }
                }
                time
            });
        });
    }
    group.finish();
}

/// A volume in memory: one large file of which every other block was written a second time.
fn half_valid() -> MemoryDevice {
    let device = f2fs::sync::Arc::new(MemoryDevice::new((512 << 20) >> 12));
    f2fs::volume::format::format(&*device, &Default::default()).unwrap();
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let stat = fs.statfs();
    let blocks = (stat.user_blocks - stat.valid_blocks) / 3;
    let data = vec![7; 1 << 20];
    (0..blocks / 256).for_each(|chunk| assert_eq!(file.write_at(&data, chunk << 20).unwrap(), 1 << 20));
    for block in (0..blocks / 256 * 256).step_by(2) {
        assert_eq!(file.write_at(&data[..4096], block * 4096).unwrap(), 4096);
    }
    drop(file);
    fs.close().unwrap();
    device.snapshot()
}

fn cleaning(c: &mut Criterion) {
    let mut group = c.benchmark_group("cleaning, per block moved");
    group.sample_size(10).throughput(Throughput::Bytes(4096));
    let volume = half_valid();
    for (name, policy) in
        [("greedy", VictimPolicy::Greedy), ("age threshold", VictimPolicy::AgeThreshold(AgeThreshold::default()))]
    {
        group.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                let (mut time, mut moved) = (Duration::ZERO, 0);
                while moved < iterations {
                    let device = f2fs::sync::Arc::new(volume.snapshot());
                    let fs = FileSystem::open(device, Options::new()).unwrap();
                    for _ in 0..32 {
                        let begin = Instant::now();
                        let step = fs.clean_step_by(policy).unwrap().unwrap();
                        time += begin.elapsed();
                        moved += step.data_blocks;
                    }
                }
                time.mul_f64(iterations as f64 / moved as f64)
            });
        });
    }
    group.bench_function("device alone", |b| {
        let device = volume.snapshot();
        let half = device.info().blocks / 2;
        b.iter_custom(|iterations| {
            let begin = Instant::now();
            for part in 0..iterations.div_ceil(256) {
                let at = part * 256 % (half - 256);
                let data = device.read(at, 256).unwrap();
                device.write(half + at, data).unwrap();
            }
            begin.elapsed().mul_f64(iterations as f64 / (iterations.div_ceil(256) * 256) as f64)
        });
    });
    group.finish();
}

criterion_group!(benches, allocate, victim, company, cleaning);
criterion_main!(benches);
