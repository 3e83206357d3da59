//! Reading and writing a file of a volume, beside fio on a plain file of the same size and file system.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench files_vs_fio -- [--dir DIR] [--mib 512] [--seconds 2] [--rounds 5] [--only NAME]
//! ```
//!
//! Each round runs fio (`--ioengine=io_uring --direct=1`) and this library one after the other; the ratio of a round is
//! ours by fio's. Who is first changes from round to round, because a throttled device may favour the first. The table
//! has the medians, and the least and the greatest ratio; `target/files_vs_fio.csv` has every round. Before its rounds
//! each workload gets a volume with a file written in order; image and plain file have no holes. Processor time a
//! request (user and system, of the process) is what a busy machine disturbs least.
//!
//! | Name | How a file of the volume is used |
//! |---|---|
//! | ... d1 | `File::read_at` or `File::write_at`, one after the other |
//! | ... d32, threads | the same calls from 32 threads; fio: one thread, depth 32 |
//! | ... d32, one thread | `File::read_many` or `File::write_many`, 2048 pieces a call (64 for 2 MiB) |
//!
//! The work in each: fio reads and writes in place at fixed offsets of an ext4 (or other) file. The library finds the
//! address of each block in the file's nodes, copies between the caller's memory and aligned memory, writes every block
//! to a new place, and keeps the tables of nodes and segments; checkpoints that a full log makes necessary are in its
//! time, one checkpoint between two rounds is not. What `File::write_many` is given for all over the file goes to one
//! place of the log, in requests of several blocks: it writes more a second than the device takes requests.
//!
//! # What is expected of range locks and of writing runs as they are allocated
//!
//! Put down before any measurement of them; "before": with one reader-writer lock a file, on two AMD EPYC processors;
//! "came": the table in the README, on two Intel Xeon processors.
//!
//! | Workload | before | expected | came | because |
//! |---|--:|--:|--:|---|
//! | sequential write 2 MiB d1 | 40% | 60 to 70% | 87% | one copy in place of up to two; three quarters of it run while 512 KiB are on their way |
//! | sequential write 2 MiB d32, threads | 46% | 70% | 62% | the same, and the threads do not take turns |
//! | random write 4 KiB d32, threads | 18% | 60% and more | 79% | depth 32 in place of 1; the page of the inode is still locked once a write |
//! | random write 4 KiB d32, one thread | none | over 200% | 168% | 16 writes to a request |
//! | random read 4 KiB d32, one thread | 82% | 90% | 101% | no look-up in nodes, one allocation less a read |
//! | sequential read 2 MiB d1 | 78% | 78% | 95% | unchanged: it still waits for the last copy |

use std::error::Error;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser, value_parser};
use f2fs::device::{AlignedBuf, BlockDevice};
use f2fs::uring::{Direct, Engine, OpenOptions, UringDevice};
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{File, FileSystem, Options, ReadSlice, WriteSlice};
use f2fs_benches::arguments::{ByCargo, seconds, temporary};
use f2fs_benches::report::{Csv, ascending, machine};
use f2fs_device_test::Random;

const SEGMENT: usize = 2 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// Blocking calls from as many threads as the depth.
    Threads,
    /// One thread.
    Many,
}

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    fio: &'static str,
    write: bool,
    bytes: usize,
    depth: usize,
    ours: Ours,
}

const WORKLOADS: [Workload; 11] = {
    const fn new(name: &'static str, fio: &'static str, bytes: usize, depth: usize, ours: Ours) -> Workload {
        // "write" and "randwrite", as against "read" and "randread".
        let write = matches!(fio.as_bytes(), [.., b'i', b't', b'e']);
        Workload { name, fio, write, bytes, depth, ours }
    }
    [
        new("sequential write 2 MiB d1", "write", SEGMENT, 1, Ours::Threads),
        new("sequential read 2 MiB d1", "read", SEGMENT, 1, Ours::Threads),
        new("random read 4 KiB d1", "randread", 4096, 1, Ours::Threads),
        new("random write 4 KiB d1", "randwrite", 4096, 1, Ours::Threads),
        new("sequential write 2 MiB d32, threads", "write", SEGMENT, 32, Ours::Threads),
        new("sequential read 2 MiB d32, threads", "read", SEGMENT, 32, Ours::Threads),
        new("sequential read 2 MiB d32, one thread", "read", SEGMENT, 32, Ours::Many),
        new("random read 4 KiB d32, threads", "randread", 4096, 32, Ours::Threads),
        new("random read 4 KiB d32, one thread", "randread", 4096, 32, Ours::Many),
        new("random write 4 KiB d32, threads", "randwrite", 4096, 32, Ours::Threads),
        new("random write 4 KiB d32, one thread", "randwrite", 4096, 32, Ours::Many),
    ]
};

/// The result of one run.
#[derive(Clone, Copy)]
struct Measure {
    per_second: f64,
    /// Microseconds of processor time a request.
    cpu: f64,
}

/// Reading and writing a file of a volume, beside fio on a plain file of the same size and file system.
#[derive(Debug, Parser)]
struct Args {
    /// A directory for the files.
    #[arg(long, default_value_os_t = temporary())]
    dir: PathBuf,
    /// Size of the file that is read and written, of 64 MiB at least.
    #[arg(long, default_value_t = 512, value_parser = value_parser!(u64).range(64..=1 << 20))]
    mib: u64,
    /// Seconds of each measurement.
    #[arg(long, default_value = "2", value_parser = seconds)]
    seconds: Duration,
    /// Rounds of each.
    #[arg(long, default_value = "5")]
    rounds: NonZeroUsize,
    /// Only the rows whose name has this in it.
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
    #[command(flatten)]
    by_cargo: ByCargo,
}

impl Args {
    /// Bytes of the file.
    fn bytes(&self) -> u64 {
        self.mib.next_multiple_of(2) << 20
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let fio = Command::new("fio").arg("--version").output();
    let fio = fio.map_err(|error| io::Error::new(error.kind(), format!("fio (package fio): {error}")))?;
    println!("{}; {}", machine(), String::from_utf8_lossy(&fio.stdout).trim());
    let dir = tempfile::Builder::new().prefix("files_vs_fio-").tempdir_in(&args.dir)?;
    let (plain, image) = (dir.path().join("plain"), dir.path().join("image"));
    fill(&plain, args.bytes())?;
    // Room for what is written before the old blocks are free.
    fill(&image, args.bytes() * 3 + (256 << 20))?;

    println!(
        "{:38} {:>10} {:>10} {:>7} {:>11} {:>9} {:>9}",
        "", "fio", "ours", "ratio", "least..most", "fio us", "ours us"
    );
    let columns = "workload,depth,round,fio_per_s,ours_per_s,ratio,fio_cpu_us,ours_cpu_us";
    let mut csv = Csv::create("files_vs_fio", columns)?;
    for workload in WORKLOADS.into_iter().filter(|workload| workload.name.contains(&args.only)) {
        let fs = volume(&image)?;
        let file = make_file(&fs, args.bytes())?;
        let mut rounds = Vec::new();
        for round in 0..args.rounds.get() {
            let mut theirs = None;
            if round % 2 == 0 {
                theirs = Some(run_fio(&args, &plain, workload)?);
            }
            let ours = match workload.ours {
                Ours::Threads => threads(&file, workload, &args)?,
                Ours::Many => many(&file, workload, &args)?,
            };
            let theirs = match theirs {
                Some(theirs) => theirs,
                None => run_fio(&args, &plain, workload)?,
            };
            fs.checkpoint()?;
            let name = workload.name.replace(',', "");
            let (their_rate, our_rate) = (theirs.per_second, ours.per_second);
            let ratio = our_rate / their_rate;
            let rates = format!("{their_rate:.1},{our_rate:.1},{ratio:.3},{:.2},{:.2}", theirs.cpu, ours.cpu);
            csv.line(&format!("{name},{},{round},{rates}", workload.depth))?;
            rounds.push((theirs, ours));
        }
        let sorted = |pick: fn(&(Measure, Measure)) -> f64| ascending(rounds.iter().map(pick));
        let middle = rounds.len() / 2;
        let ratios = sorted(|(theirs, ours)| ours.per_second / theirs.per_second * 100.0);
        println!(
            "{:38} {:>10} {:>10} {:>6.0}% {:>11} {:>9.1} {:>9.1}",
            workload.name,
            rate(workload, sorted(|round| round.0.per_second)[middle]),
            rate(workload, sorted(|round| round.1.per_second)[middle]),
            ratios[middle],
            format!("{:.0}..{:.0}%", ratios[0], ratios[ratios.len() - 1]),
            sorted(|round| round.0.cpu)[middle],
            sorted(|round| round.1.cpu)[middle],
        );
        drop(file);
        fs.close()?;
    }
    println!("{}", csv.path().display());
    Ok(())
}

/// Requests a second as people read them.
fn rate(workload: Workload, per_second: f64) -> String {
    if workload.bytes == SEGMENT {
        format!("{:.0} MB/s", per_second * SEGMENT as f64 / 1e6)
    } else {
        format!("{per_second:.0}/s")
    }
}

/// A file without holes.
fn fill(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = std::fs::File::create_new(path)?;
    let piece = vec![0x5a; SEGMENT];
    for _ in 0..bytes.div_ceil(SEGMENT as u64) {
        file.write_all(&piece)?;
    }
    file.sync_all()
}

fn volume(image: &Path) -> Result<FileSystem, Box<dyn Error>> {
    let options = OpenOptions::new().engine(Engine::IoUring).direct(Direct::Required);
    let device: Arc<dyn BlockDevice> = UringDevice::open(image, options)?;
    // Not discarded: the image must stay without holes.
    let mut options = FormatOptions::default().forced();
    options.discard = false;
    format(&*device, &options)?;
    Ok(FileSystem::open(device, Options::new())?)
}

fn make_file(fs: &FileSystem, bytes: u64) -> Result<File, Box<dyn Error>> {
    let file = fs.create_file("/file", 0o644)?;
    let piece = vec![0xa5; SEGMENT];
    for offset in (0..bytes).step_by(SEGMENT) {
        if file.write_at(&piece, offset)? != SEGMENT {
            return Err("the volume is too small".into());
        }
    }
    fs.checkpoint()?;
    Ok(file)
}

/// Where the requests go: in order, or all over the file. Shared by the threads of a run.
struct Offsets {
    next: AtomicU64,
    bytes: u64,
    places: u64,
    random: bool,
}

impl Offsets {
    fn new(workload: Workload, args: &Args) -> Offsets {
        let bytes = workload.bytes as u64;
        Offsets {
            next: AtomicU64::new(0),
            bytes,
            places: args.bytes() / bytes,
            random: workload.fio.starts_with("rand"),
        }
    }

    fn next(&self) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = if self.random { Random::new(number).next() } else { number };
        place % self.places * self.bytes
    }
}

/// Times our own runs.
struct Clock {
    start: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> Clock {
        Clock { start: Instant::now(), cpu: cpu_seconds() }
    }

    fn stop(&self, requests: u64) -> Measure {
        let requests = requests as f64;
        let cpu = (cpu_seconds() - self.cpu) * 1e6 / requests;
        Measure { per_second: requests / self.start.elapsed().as_secs_f64(), cpu }
    }
}

/// Processor time of this process in seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Requests with blocking calls.
fn threads(file: &File, workload: Workload, args: &Args) -> Result<Measure, Box<dyn Error>> {
    let offsets = Offsets::new(workload, args);
    let clock = Clock::start();
    let worker = || -> Result<u64, f2fs::FsError> {
        // Aligned, as fio's are.
        let mut buf = AlignedBuf::new(workload.bytes / 4096);
        let mut done = 0;
        while clock.start.elapsed() < args.seconds {
            if workload.write {
                file.write_at(buf.as_bytes(), offsets.next())?;
            } else {
                file.read_at(buf.as_bytes_mut(), offsets.next())?;
            }
            done += 1;
        }
        Ok(done)
    };
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workload.depth).map(|_| scope.spawn(worker)).collect();
        let mut sum = 0;
        for worker in workers {
            sum += worker.join().map_err(|_| "a worker has panicked")??;
        }
        Ok::<u64, Box<dyn Error>>(sum)
    })?;
    Ok(clock.stop(done))
}

/// Requests with many reads or writes in one call.
fn many(file: &File, workload: Workload, args: &Args) -> Result<Measure, Box<dyn Error>> {
    let offsets = Offsets::new(workload, args);
    let batch = if workload.bytes == SEGMENT { 64 } else { 2048 };
    let mut bufs: Vec<_> = (0..batch).map(|_| AlignedBuf::new(workload.bytes / 4096)).collect();
    let (clock, mut done) = (Clock::start(), 0);
    while clock.start.elapsed() < args.seconds {
        if workload.write {
            let mut writes: Vec<_> = bufs.iter().map(|buf| WriteSlice::new(offsets.next(), buf.as_bytes())).collect();
            file.write_many(workload.depth, &mut writes)?;
        } else {
            let mut reads: Vec<_> =
                bufs.iter_mut().map(|buf| ReadSlice::new(offsets.next(), buf.as_bytes_mut())).collect();
            file.read_many(workload.depth, &mut reads)?;
        }
        done += batch;
    }
    Ok(clock.stop(done))
}

/// Requests of fio.
fn run_fio(args: &Args, path: &Path, workload: Workload) -> Result<Measure, Box<dyn Error>> {
    let output = Command::new("fio")
        .args(["--name=baseline", "--ioengine=io_uring", "--direct=1", "--time_based", "--output-format=json"])
        .args(["--norandommap", "--randrepeat=0"])
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--rw={}", workload.fio))
        .arg(format!("--bs={}", workload.bytes))
        .arg(format!("--iodepth={}", workload.depth))
        .arg(format!("--size={}", args.bytes()))
        .arg(format!("--runtime={}ms", args.seconds.as_millis()))
        .output()?;
    if !output.status.success() {
        return Err(format!("fio: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let job = &report["jobs"][0];
    let side = &job[if workload.write { "write" } else { "read" }];
    let number = |value: &serde_json::Value| value.as_f64().ok_or("fio's report lacks a number");
    let busy = (number(&job["usr_cpu"])? + number(&job["sys_cpu"])?) / 100.0;
    let cpu = busy * number(&job["job_runtime"])? * 1000.0 / number(&side["total_ios"])?;
    Ok(Measure { per_second: number(&side["iops"])?, cpu })
}
