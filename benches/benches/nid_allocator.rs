//! The NID allocator's policies side by side, from 1 to 128 threads, with a table under one mutex beside them.
//!
//! | Workload | A worker's operation | Table |
//! |---|---|---|
//! | `allocate` | allocate | all free |
//! | `free` | free, in NAT blocks of its own | all bound |
//! | `free_shared` | free; each NAT block is freed from by all workers | all bound |
//! | `mixed` | allocate, bind, free, as a create and an unlink do, with their calls of the balance path | all free |
//! | `unlink_short` | free, then the balance path | all bound but 300, so that a list of free NIDs stays short of 455 and the kernel's policy scans each time |
//!
//! The table has 2 million NIDs, all in memory. Work is fixed: criterion's iteration is a round of a million operations
//! (fewer where a policy scans in each), shared out evenly; every round has a new table, made outside of the measured
//! time. Above the number of processors the figures show behaviour under oversubscription, not
//! scaling. `F2FS_BENCH_THREADS=1,2` measures only those thread counts. Beside criterion's report,
//! `target/nid_allocator.csv` has a line for each measurement.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use f2fs_benches::filled::Filled;
use f2fs_benches::report::Csv;
use f2fs_benches::workers::{Team, thread_counts};
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, Policy};

const BLOCKS: u32 = 4400;
const NIDS: u32 = BLOCKS * Nat::ENTRIES_PER_BLOCK as u32;
/// Free NIDs of the table that is nearly full.
const FEW: u32 = 300;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Workload {
    Allocate,
    Free,
    FreeShared,
    Mixed,
    UnlinkShort,
}

const WORKLOADS: [(Workload, &str); 5] = [
    (Workload::Allocate, "allocate"),
    (Workload::Free, "free"),
    (Workload::FreeShared, "free_shared"),
    (Workload::Mixed, "mixed"),
    (Workload::UnlinkShort, "unlink_short"),
];

/// The operation that is measured.
enum Subject {
    Nat(Box<Nat>),
    /// The naive table: all of it under one lock.
    OneMutex(Mutex<Naive>),
}

struct Naive {
    free: BTreeSet<u32>,
    entries: Vec<(u32, u32, u8)>,
    freed: Vec<u32>,
}

impl Subject {
    fn new(policy: Option<Policy>, bound: u32) -> Subject {
        let Some(policy) = policy else {
            let entries = (0..NIDS).map(|nid| if (3..bound).contains(&nid) { (nid, nid, 0) } else { (0, 0, 0) });
            return Subject::OneMutex(Mutex::new(Naive {
                free: (bound.max(3)..NIDS).collect(),
                entries: entries.collect(),
                freed: Vec::new(),
            }));
        };
        let config = NatConfig::new(BLOCKS).policy(policy);
        let nat = Nat::new(config, Arc::new(Filled { bound }), vec![0; BLOCKS as usize / 8 + 1], &[]).unwrap();
        nat.load_all(8, &|_| {}).unwrap();
        nat.balance();
        Subject::Nat(Box::new(nat))
    }

    fn allocate(&self) -> u32 {
        match self {
            Subject::Nat(nat) => nat.allocate().unwrap().unwrap().0,
            Subject::OneMutex(naive) => naive.lock().unwrap().free.pop_first().unwrap(),
        }
    }

    fn bind(&self, nid: u32) {
        match self {
            Subject::Nat(nat) => drop(nat.bind(Nid(nid), Nid(nid), BlockAddr(7)).unwrap()),
            Subject::OneMutex(naive) => naive.lock().unwrap().entries[nid as usize] = (nid, 7, 0),
        }
    }

    fn free(&self, nid: u32) {
        match self {
            Subject::Nat(nat) => drop(nat.free(Nid(nid)).unwrap()),
            Subject::OneMutex(naive) => {
                let mut naive = naive.lock().unwrap();
                let entry = &mut naive.entries[nid as usize];
                *entry = (entry.0, 0, entry.2.wrapping_add(1));
                naive.freed.push(nid);
            }
        }
    }

    fn balance(&self) {
        if let Subject::Nat(nat) = self {
            nat.balance();
        }
    }

    fn scan_time(&self) -> Duration {
        match self {
            Subject::Nat(nat) => nat.stats().scan_time,
            Subject::OneMutex(_) => Duration::ZERO,
        }
    }
}

impl Workload {
    /// NIDs that are bound at the beginning.
    fn bound(self) -> u32 {
        match self {
            Workload::Allocate | Workload::Mixed => 3,
            Workload::Free | Workload::FreeShared => NIDS,
            Workload::UnlinkShort => NIDS - FEW,
        }
    }

    /// One worker's part of a round.
    fn work(self, subject: &Subject, worker: usize, threads: usize, operations: u64) {
        let own = (NIDS - FEW - 3) / threads as u32;
        for n in 0..operations as u32 {
            match self {
                Workload::Allocate => {
                    std::hint::black_box(subject.allocate());
                }
                Workload::Mixed => {
                    let nid = subject.allocate();
                    subject.bind(nid);
                    subject.balance();
                    subject.free(nid);
                    subject.balance();
                }
                Workload::Free => subject.free(3 + worker as u32 * own + n),
                Workload::FreeShared => subject.free(3 + n * threads as u32 + worker as u32),
                Workload::UnlinkShort => {
                    subject.free(3 + worker as u32 * own + n);
                    subject.balance();
                }
            }
        }
    }
}

/// Operations of a round, all workers together.
fn operations(workload: Workload, policy: Option<Policy>, threads: u64) -> u64 {
    match (workload, policy) {
        (Workload::UnlinkShort, Some(Policy::KernelScan)) => 20_000,
        (Workload::UnlinkShort, Some(Policy::Clue { .. })) => (20_000 * threads).min(1_000_000),
        _ => 1_000_000,
    }
}

/// The rounds of one measurement, added up.
#[derive(Default)]
struct Sum {
    rounds: u32,
    elapsed: Duration,
    scans: Duration,
    processor: Duration,
    /// Of the least even round.
    share: Option<f64>,
}

fn measure(bench: &mut Criterion, csv: &mut Csv, workload: Workload, name: &str) {
    let mut group = bench.benchmark_group(format!("nid_allocator/{name}"));
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(1));
    let policies = [None, Some(Policy::KernelScan), Some(Policy::CLUE), Some(Policy::Sharded)];
    for threads in thread_counts() {
        for policy in policies {
            let variant = policy.map_or("one-mutex".to_owned(), |policy| policy.to_string());
            let share = operations(workload, policy, threads as u64) / threads as u64;
            group.throughput(Throughput::Elements(share * threads as u64));
            let subject = RwLock::new(None);
            let work = |worker, operations| {
                let subject = subject.read().unwrap();
                let subject: &Subject = Option::as_ref(&subject).unwrap();
                workload.work(subject, worker, threads, operations);
            };
            let mut sum = Sum::default();
            Team::with(threads, work, |team| {
                group.bench_function(BenchmarkId::new(&variant, threads), |bencher| {
                    bencher.iter_custom(|rounds| {
                        let mut total = Duration::ZERO;
                        for _ in 0..rounds {
                            // The old one goes first: two need not be in memory.
                            *subject.write().unwrap() = None;
                            let new = Subject::new(policy, workload.bound());
                            let before = new.scan_time();
                            *subject.write().unwrap() = Some(new);
                            let round = team.round(share);
                            let after = subject.read().unwrap().as_ref().map_or(before, Subject::scan_time);
                            total += round.elapsed;
                            sum.rounds += 1;
                            sum.scans += after - before;
                            sum.processor += round.processor;
                            sum.share =
                                Some(sum.share.map_or(round.slowest_share, |least| least.min(round.slowest_share)));
                        }
                        sum.elapsed += total;
                        total
                    });
                });
            });
            if let Some(slowest) = sum.share {
                let operations = u64::from(sum.rounds) * share * threads as u64;
                let seconds = sum.elapsed.as_secs_f64();
                let rate = operations as f64 / seconds;
                let scans = sum.scans.as_secs_f64() / (seconds * threads as f64);
                let processor = sum.processor.as_nanos() as f64 / operations as f64;
                csv.line(&format!(
                    "{name},{variant},{threads},{operations},{seconds:.6},{rate:.0},{slowest:.3},{scans:.3},{processor:.1}"
                ))
                .unwrap();
            }
        }
    }
    group.finish();
}

fn main() {
    let columns = "workload,policy,threads,operations,seconds,ops_per_second,slowest_share,nid_scan_share,processor_ns_per_operation";
    let mut csv = Csv::create("nid_allocator", columns).unwrap();
    let mut bench = Criterion::default().configure_from_args();
    for (workload, name) in WORKLOADS {
        measure(&mut bench, &mut csv, workload, name);
    }
    bench.final_summary();
    println!("{}", csv.path().display());
}
