//! How long operations wait while a checkpoint is written, and how many get through.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench checkpoint_pause -- [--inodes 20000,100000,300000] [--rounds 3] [--seconds 1]
//!     [--threads 1] [--dir DIR]
//! ```
//!
//! For each number of inodes, and each round: a new volume, and that many new empty files in directories of 1000. Then
//! threads go on, each with steps of four operations: it makes a file in a directory of its own, looks up an earlier
//! one, overwrites 4 KiB of one of 64 files, and removes every second file that it made. After `--seconds` of that
//! alone, a checkpoint is written beside them. Each operation's time goes into a histogram: *during* if it overlapped
//! the checkpoint, else *alone*.
//!
//! Each round is a process of its own: in one that had a round before, the threads alone find memory that was given
//! back, and those beside the checkpoint take theirs from the system, page by page.
//!
//! The volume is on a device in memory, or with `--dir` in a file there. The longest wait is that of one operation in
//! one round; a busy machine adds times for which the thread was not run, so the longest wait *alone* stands beside it.
//! *pause* is how long the checkpoint kept operations out, by its own report; *ratio* is operations a second during by
//! alone; *cpu* the same for a second of the threads' processor time, which leaves out what other programs took.
//! Behind each row stands the operation that waited longest during the checkpoint, and how long after its begin that was.
//! `target/checkpoint_pause.csv` has every round.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser, value_parser};
use f2fs::device::{BlockDevice, MemoryDevice};
use f2fs::uring::{OpenOptions, UringDevice};
use f2fs::volume::VolumeOptions;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{FileSystem, FsError, Options};
use f2fs_benches::arguments::{ByCargo, seconds};
use f2fs_benches::report::{Csv, machine};
use f2fs_workload::report::Latencies;
use rustix::time::{ClockId, clock_gettime};

/// Blocks of the volume: 6 GiB.
const BLOCKS: u64 = 6 << 18;
/// Files in one of the directories that make the volume dirty.
const IN_DIRECTORY: u64 = 1000;
/// Files that are overwritten by each thread.
const OVERWRITTEN: u64 = 64;

const ALONE: u8 = 0;
const DURING: u8 = 1;
const ENOUGH: u8 = 2;

/// How long operations wait while a checkpoint is written, and how many get through.
#[derive(Debug, Parser)]
struct Args {
    /// New inodes that the checkpoint writes.
    #[arg(long, value_delimiter = ',', default_values_t = [20_000, 100_000, 300_000])]
    inodes: Vec<u64>,
    /// Rounds of each.
    #[arg(long, default_value = "3")]
    rounds: NonZeroUsize,
    /// Seconds that the threads work alone.
    #[arg(long, default_value = "1", value_parser = seconds)]
    seconds: Duration,
    /// Threads: 1 to 128.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(1..=128))]
    threads: u16,
    /// A directory for the volume's file, in place of memory.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// This process is that of one round: its number.
    #[arg(long, hide = true)]
    round: Option<usize>,
    #[command(flatten)]
    by_cargo: ByCargo,
}

/// What a line for the table of all rounds begins with, where a round tells it.
const FOR_CSV: &str = "csv ";

/// The operations of a step.
const OPERATIONS: [&str; 4] = ["create", "look up", "overwrite", "remove"];

/// One operation.
#[derive(Clone, Copy)]
struct Longest {
    took: Duration,
    operation: usize,
    begun: Instant,
}

/// The operations of one phase.
#[derive(Default)]
struct Phase {
    waits: Latencies,
    longest: Option<Longest>,
    /// Processor time of the threads.
    cpu: Duration,
}

/// One round.
struct Round {
    nodes: u64,
    checkpoint: Duration,
    /// How long the gate was closed.
    pause: Duration,
    phases: [Phase; 2],
    /// Operations a second, alone and during.
    rates: [f64; 2],
    /// The operation that waited longest during the checkpoint, and when it began.
    longest: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if let Some(round) = args.round {
        return run_round(&args, round);
    }
    println!("{}", machine());
    let mut csv = Csv::create(
        "checkpoint_pause",
        "inodes,round,nodes,checkpoint_ms,pause_us,alone_per_s,during_per_s,phase,operations,cpu_us,p50_us,p99_us,p999_us,p9999_us,longest_us",
    )?;
    println!(
        "{:>8} {:>8} {:>13} {:>8} {:>11} {:>11} {:>6} {:>6} {:>24} {:>32}",
        "inodes",
        "nodes",
        "checkpoint ms",
        "pause us",
        "alone 1/s",
        "during 1/s",
        "ratio",
        "cpu",
        "alone: 99.9 %, longest us",
        "during: 50, 99.9 %, longest us"
    );
    for &inodes in &args.inodes {
        for round in 0..args.rounds.get() {
            for line in in_process(&args, inodes, round)?.lines() {
                match line.strip_prefix(FOR_CSV) {
                    Some(line) => csv.line(line)?,
                    None => println!("{line}"),
                }
            }
        }
    }
    println!("every round: {}", csv.path().display());
    Ok(())
}

/// What a process prints that measures one round.
fn in_process(args: &Args, inodes: u64, round: usize) -> Result<String, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--inodes", &inodes.to_string(), "--round", &round.to_string()]);
    command.args(["--threads", &args.threads.to_string(), "--seconds", &args.seconds.as_secs_f64().to_string()]);
    if let Some(dir) = &args.dir {
        command.arg("--dir").arg(dir);
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the round ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Measures one round, and prints it.
fn run_round(args: &Args, round: usize) -> Result<(), Box<dyn Error>> {
    let inodes = args.inodes[0];
    let measured = measure(args, inodes)?;
    let [alone, during] = measured.rates;
    for (name, phase) in ["alone", "during"].into_iter().zip(&measured.phases) {
        let at = |percent: f64| phase.waits.percentile(percent).as_micros();
        println!(
            "{FOR_CSV}{inodes},{round},{},{:.1},{},{alone:.0},{during:.0},{name},{},{},{},{},{},{},{}",
            measured.nodes,
            measured.checkpoint.as_secs_f64() * 1e3,
            measured.pause.as_micros(),
            phase.waits.len(),
            phase.cpu.as_micros(),
            at(50.0),
            at(99.0),
            at(99.9),
            at(99.99),
            phase.waits.longest().as_micros()
        );
    }
    let [before, beside] = &measured.phases;
    let cost = |phase: &Phase| phase.cpu.as_secs_f64() / phase.waits.len().max(1) as f64;
    println!(
        "{inodes:>8} {:>8} {:>13.1} {:>8} {alone:>11.0} {during:>11.0} {:>6.2} {:>6.2} {:>12} {:>12} {:>8} {:>12} {:>10}  {}",
        measured.nodes,
        measured.checkpoint.as_secs_f64() * 1e3,
        measured.pause.as_micros(),
        during / alone,
        cost(before) / cost(beside),
        before.waits.percentile(99.9).as_micros(),
        before.waits.longest().as_micros(),
        beside.waits.percentile(50.0).as_micros(),
        beside.waits.percentile(99.9).as_micros(),
        beside.waits.longest().as_micros(),
        measured.longest,
    );
    Ok(())
}

fn measure(args: &Args, inodes: u64) -> Result<Round, Box<dyn Error>> {
    let dir = args.dir.as_ref().map(|dir| tempfile::Builder::new().prefix("pause-").tempdir_in(dir)).transpose()?;
    let device: Arc<dyn BlockDevice> = match &dir {
        None => Arc::new(MemoryDevice::new(BLOCKS)),
        Some(dir) => {
            let path = dir.path().join("image");
            std::fs::File::create_new(&path)?.set_len(BLOCKS * 4096)?;
            UringDevice::open(&path, OpenOptions::new())?
        }
    };
    let mut options = FormatOptions::default();
    options.discard = false;
    format(&*device, &options)?;
    let volume = VolumeOptions::new().dirty_nodes(u64::MAX / 2);
    let fs = FileSystem::open(device, Options::new().volume(volume))?;
    for thread in 0..usize::from(args.threads) {
        fs.create_dir(format!("/own-{thread}"), 0o755)?;
        for number in 0..OVERWRITTEN {
            fs.create_file(format!("/own-{thread}/data-{number}"), 0o644)?.write_at(&[1; 4096], 0)?;
        }
    }
    fs.checkpoint()?;
    for number in 0..inodes {
        if number % IN_DIRECTORY == 0 {
            fs.create_dir(format!("/dirty-{}", number / IN_DIRECTORY), 0o755)?;
        }
        fs.create_file(format!("/dirty-{}/{number}", number / IN_DIRECTORY), 0o644)?;
    }
    let phase = AtomicU8::new(ALONE);
    let result = std::thread::scope(|scope| -> Result<Round, Box<dyn Error>> {
        let workers: Vec<_> = (0..usize::from(args.threads))
            .map(|thread| {
                let (fs, phase) = (&fs, &phase);
                scope.spawn(move || work(fs, thread, phase))
            })
            .collect();
        let begun = Instant::now();
        std::thread::sleep(args.seconds);
        let alone = begun.elapsed();
        phase.store(DURING, Ordering::SeqCst);
        let begun = Instant::now();
        let report = fs.checkpoint();
        let checkpoint = begun.elapsed();
        phase.store(ENOUGH, Ordering::SeqCst);
        let mut phases: [Phase; 2] = Default::default();
        for worker in workers {
            let own = worker.join().map_err(|_| "a thread panicked")??;
            for (all, own) in phases.iter_mut().zip(&own) {
                all.merge(own);
            }
        }
        let rates = [
            phases[0].waits.len() as f64 / alone.as_secs_f64(),
            phases[1].waits.len() as f64 / checkpoint.as_secs_f64(),
        ];
        let report = report?;
        let longest = phases[1].longest.map(|longest| {
            let since = longest.begun.saturating_duration_since(begun);
            format!("{} at {:.0} ms", OPERATIONS[longest.operation], since.as_secs_f64() * 1e3)
        });
        let longest = longest.unwrap_or_default();
        Ok(Round { nodes: report.nodes, checkpoint, pause: report.pause, phases, rates, longest })
    })?;
    fs.close()?;
    Ok(result)
}

impl Phase {
    fn record(&mut self, operation: usize, begun: Instant, took: Duration) {
        self.waits.record(took);
        if self.longest.is_none_or(|longest| longest.took < took) {
            self.longest = Some(Longest { took, operation, begun });
        }
    }

    fn merge(&mut self, other: &Phase) {
        self.waits.merge(&other.waits);
        self.cpu += other.cpu;
        if let Some(longest) = other.longest.filter(|other| self.longest.is_none_or(|mine| mine.took < other.took)) {
            self.longest = Some(longest);
        }
    }
}

/// One thread's operations until there are enough of them.
fn work(fs: &FileSystem, thread: usize, phase: &AtomicU8) -> Result<[Phase; 2], FsError> {
    let mut phases: [Phase; 2] = Default::default();
    let files = (0..OVERWRITTEN)
        .map(|number| fs.open_file(format!("/own-{thread}/data-{number}")))
        .collect::<Result<Vec<_>, _>>()?;
    let name = |number: u64| format!("/own-{thread}/{}-{number}", number / IN_DIRECTORY);
    let mut number = 0;
    let (mut last, mut since) = (ALONE, cpu());
    loop {
        for operation in 0..4 {
            let now = phase.load(Ordering::Relaxed);
            if now != last {
                let used = cpu();
                phases[usize::from(last)].cpu = used - since;
                (last, since) = (now, used);
            }
            let Some(here) = phases.get_mut(usize::from(now)) else { return Ok(phases) };
            let path = name(number);
            let begun = Instant::now();
            match operation {
                0 => drop(fs.create_file(path, 0o644)?),
                1 => drop(fs.metadata(name(number - number % 16))?),
                2 => drop(files[(number % OVERWRITTEN) as usize].write_at(&[2; 4096], 0)?),
                _ if number % 2 == 1 && number % 16 != 0 => fs.remove_file(path)?,
                _ => continue,
            }
            let took = begun.elapsed();
            if now == ALONE && phase.load(Ordering::Relaxed) != ALONE {
                phases[usize::from(DURING)].record(operation, begun, took);
            } else {
                here.record(operation, begun, took);
            }
        }
        number += 1;
    }
}

/// Processor time that this thread has had.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
