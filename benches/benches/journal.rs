//! Appends to a journal in ordinary memory, which stands in for persistent memory, beside a log as it is usually
//! written.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench journal -- [--milliseconds 200] [--rounds 5]
//! ```
//!
//! The baseline (`naive`) is one log for all threads: a mutex, the record past the cache, a fence, the tail pointer
//! past the cache, and a second fence; it has the same checksum and begins again when it is full. Both run in turns,
//! round by round, with the same threads; the ratio is that of the medians. With more threads than processors the
//! numbers show behaviour under oversubscription, not scaling. `F2FS_BENCH_THREADS` chooses other thread counts.
//! `target/journal.csv` has a line for each round. Times are processor time of all threads for an append, and time that
//! passed. In the end: the processor time of a sync of 4 KiB of a file, with its data in the journal.

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Parser, value_parser};
use f2fs::device::MemoryDevice;
use f2fs::journal::{Create, Entry, Journal, RegionMedium, Uuid};
use f2fs::pmem::{MemoryRegion, PersistentRegion};
use f2fs::{FileSystem, JournalMode, JournalOptions, Options, create_journal};
use f2fs_benches::arguments::ByCargo;
use f2fs_benches::report::{Csv, ascending, machine};
use f2fs_benches::workers::{Team, thread_counts};
use rustix::time::{ClockId, clock_gettime};

const BYTES: usize = 256 << 20;
const SIZES: [usize; 3] = [64, 4096, 65536];

/// Appends to a journal in ordinary memory, beside a log as it is usually written.
#[derive(Debug, Parser)]
struct Args {
    /// Milliseconds of each measurement.
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u64).range(1..=600_000))]
    milliseconds: u64,
    /// Rounds of each.
    #[arg(long, default_value = "5")]
    rounds: NonZeroUsize,
    #[command(flatten)]
    by_cargo: ByCargo,
}

/// The usual log.
struct Naive {
    region: MemoryRegion,
    tail: Mutex<usize>,
}

impl Naive {
    fn append(&self, payload: &[u8]) {
        std::hint::black_box(&Entry::new(&[payload]));
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = (payload.len() + 40).next_multiple_of(64);
        let at = if *tail + bytes > BYTES { 64 } else { *tail };
        let store = |at: usize, bytes: &[u8]| {
            self.region.store_nontemporal(at, bytes).unwrap_or_else(|error| panic!("{error}"));
        };
        let mut line = [0; 64];
        let (first, rest) = payload.split_at(payload.len().min(24));
        line[40..40 + first.len()].copy_from_slice(first);
        store(at, &line);
        let (whole, last) = rest.split_at(rest.len() / 64 * 64);
        store(at + 64, whole);
        if !last.is_empty() {
            line[..last.len()].copy_from_slice(last);
            store(at + 64 + whole.len(), &line);
        }
        self.region.fence();
        let end = at + bytes;
        line[..8].copy_from_slice(&(end as u64).to_le_bytes());
        store(0, &line);
        self.region.fence();
        *tail = end;
    }
}

fn append(journal: &Journal<RegionMedium<MemoryRegion>>, payload: &[u8]) {
    while let Err(error) = journal.append(0, &[payload]) {
        assert!(matches!(error, f2fs::journal::Error::Full { .. }), "{error}");
        journal.truncate_to(&journal.mark()).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn median(values: Vec<f64>) -> f64 {
    let values = ascending(values);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let Args { milliseconds, rounds, .. } = Args::parse();
    let time = Duration::from_millis(milliseconds);
    println!("{}", machine());
    println!("nanoseconds for an append: processor time of all threads, and time that passed for all of them together");
    println!(
        "{:>6} {:>7} {:>12} {:>12} {:>12} {:>12} {:>14}",
        "bytes", "threads", "journal", "naive", "passed", "naive", "naive/journal"
    );
    let mut csv = Csv::create("journal", "bytes,threads,log,round,processor_ns,passed_ns")?;
    let threads =
        if std::env::var_os("F2FS_BENCH_THREADS").is_some() { thread_counts() } else { vec![1, 2, 8, 32, 128] };
    for bytes in SIZES {
        let payload = vec![7_u8; bytes];
        for threads in threads.iter().copied() {
            let options = Create::new(Uuid([1; 16])).lanes(threads);
            let journal = Journal::create(RegionMedium::new(MemoryRegion::new(BYTES)?), &options)?;
            let naive = Naive { region: MemoryRegion::new(BYTES)?, tail: Mutex::new(64) };
            let mut all = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
            let operations = |work: &(dyn Fn() + Sync)| {
                // As many as take so long, after all memory was touched.
                let begun = std::time::Instant::now();
                let mut done = 0_u64;
                while begun.elapsed() < time / 4 || done * (bytes as u64 + 64) < BYTES as u64 {
                    work();
                    done += 1;
                }
                let each = begun.elapsed().as_secs_f64() / done as f64;
                ((time.as_secs_f64() / each) as u64 / threads as u64).max(16)
            };
            let count = operations(&|| append(&journal, &payload)).min(operations(&|| naive.append(&payload)));
            for round in 0..rounds.get() {
                let work: [&(dyn Fn() + Sync); 2] = [&|| append(&journal, &payload), &|| naive.append(&payload)];
                for (which, name) in ["journal", "naive"].into_iter().enumerate() {
                    let work = work[which];
                    let run = |_: usize, operations: u64| (0..operations).for_each(|_| work());
                    let round_of = Team::with(threads, run, |team| team.round(count));
                    let total = (count * threads as u64) as f64;
                    let ns = [round_of.processor, round_of.elapsed].map(|time| time.as_secs_f64() * 1e9 / total);
                    csv.line(&format!("{bytes},{threads},{name},{round},{:.1},{:.1}", ns[0], ns[1]))?;
                    all[which].iter_mut().zip(ns).for_each(|(all, ns)| all.push(ns));
                }
            }
            let [[journal, passed], [naive, naive_passed]] = all.map(|times| times.map(median));
            let ratio = naive_passed / passed;
            println!(
                "{bytes:>6} {threads:>7} {journal:>12.0} {naive:>12.0} {passed:>12.0} {naive_passed:>12.0} {ratio:>14.2}"
            );
        }
    }
    println!("{}", csv.path().display());
    file_syncs()
}

/// Syncs of 4 KiB of a file into a journal that holds the data, too; without the write before.
fn file_syncs() -> Result<(), Box<dyn Error>> {
    let device = Arc::new(MemoryDevice::new(1 << 18));
    FileSystem::format(&*device, &Default::default())?;
    let region = MemoryRegion::new(BYTES)?;
    // The kernel gives memory at the first touch, which is no part of a sync.
    (0..BYTES).step_by(1 << 20).try_for_each(|at| region.store(at, &[0; 1 << 20]))?;
    let medium = Arc::new(RegionMedium::new(region));
    create_journal(device.clone(), medium.clone(), false)?;
    let options = Options::new().journal(JournalOptions::new(medium, JournalMode::Journal));
    let fs = FileSystem::open(device, options)?;
    let file = fs.create_file("/file", 0o644)?;
    let mut times = Vec::new();
    for round in 0..4000_u64 {
        file.write_at(&[round as u8; 4096], round % 64 * 4096)?;
        let begun = clock_gettime(ClockId::ThreadCPUTime);
        file.sync_data()?;
        let ended = clock_gettime(ClockId::ThreadCPUTime);
        times.push((ended.tv_sec - begun.tv_sec) as f64 * 1e9 + (ended.tv_nsec - begun.tv_nsec) as f64);
    }
    let times = times.split_off(400);
    println!(
        "a sync of 4 KiB of a file with its data: {:.0} ns of processor time (median of {})",
        median(times.clone()),
        times.len()
    );
    Ok(())
}
