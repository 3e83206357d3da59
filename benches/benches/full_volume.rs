//! How long operations wait on a volume that is nearly full, where room has to be cleaned for them.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench full_volume -- [--mib 1024] [--full 50,90,97] [--zone 2] [--threads 2] [--seconds 5]
//!     [--flush 5] [--attended]
//! ```
//!
//! For each share of the users' blocks: a new volume in memory, files of 1 MiB until so many of its blocks are taken, and
//! then threads, each with steps of three operations: it overwrites 4 KiB at a random place of a random file, makes a
//! file of 4 KiB, and removes the one that it made 64 steps before. Without zones blocks are written into holes where free
//! sections run short; on zones (of `--zone` MiB) only cleaning makes room. With `--attended` a thread of its own writes the
//! checkpoints that are due; with `--flush` the device takes so many milliseconds for a flush.
//!
//! *victims* are sections that were emptied, *alone* are cleanings that kept operations out, *written* are the blocks that
//! the device was given for each of users' data. The longest wait is that of one operation; the time for which a thread
//! was not run counts, so a busy machine makes it longer.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use f2fs::device::{BlockDevice, MemoryDevice, ZoneLayout, ZonedDevice};
use f2fs::volume::WriteStat;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{FileSystem, FlusherOptions, FsError, Options};
use f2fs_benches::arguments::{ByCargo, seconds};
use f2fs_benches::report::{Csv, machine};
use f2fs_device_test::{Random, SlowDevice};
use f2fs_format::feature::Features;
use f2fs_workload::report::Latencies;

/// Blocks of a file that fills the volume.
const FILE: u64 = 256;
/// Small files that each thread has at a time.
const KEPT: u64 = 64;

/// How long operations wait on a volume that is nearly full.
#[derive(Debug, Parser)]
struct Args {
    /// Size of the volume.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(256..=1 << 20))]
    mib: u64,
    /// Shares of the users' blocks that are taken, in per cent.
    #[arg(long, value_delimiter = ',', default_values_t = [50, 90, 97], value_parser = clap::value_parser!(u64).range(1..=100))]
    full: Vec<u64>,
    /// Percentage of the main area that is kept for cleaning.
    #[arg(long)]
    overprovision: Option<f64>,
    /// MiB of a zone.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..=4096))]
    zone: u64,
    /// Threads.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=128))]
    threads: u64,
    /// Seconds for each row.
    #[arg(long, default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// Milliseconds that the device takes for a flush.
    #[arg(long, default_value_t = 0.0)]
    flush: f64,
    /// A thread writes the checkpoints that are due beside operations.
    #[arg(long)]
    attended: bool,
    #[command(flatten)]
    by_cargo: ByCargo,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if !(0.0..=1000.0).contains(&args.flush) {
        return Err("0 to 1000 ms for a flush".into());
    }
    println!("{}", machine());
    let columns = "allocation,full,operations_per_s,p50_us,p99_us,p999_us,longest_us,victims,alone,checkpoints,written";
    let mut csv = Csv::create("full_volume", columns)?;
    println!(
        "{:>5} {:>6} {:>10} {:>8} {:>8} {:>9} {:>11} {:>8} {:>6} {:>12} {:>8}",
        "", "full %", "1/s", "50 % us", "99 %", "99.9 %", "longest us", "victims", "alone", "checkpoints", "written"
    );
    for full in &args.full {
        for name in ["holes", "zones"] {
            let row = measure(&args, *full, name == "zones")?;
            let us = |percent| row.waits.percentile(percent).as_micros();
            let (rate, longest) = (row.waits.len() as f64 / row.took.as_secs_f64(), row.waits.longest().as_micros());
            println!(
                "{name:>5} {full:>6} {rate:>10.0} {:>8} {:>8} {:>9} {longest:>11} {:>8} {:>6} {:>12} {:>8.2}",
                us(50.0),
                us(99.0),
                us(99.9),
                row.stat.victims,
                row.stat.cleanings_alone,
                row.stat.checkpoints,
                row.stat.amplification()
            );
            let (p50, p99, p999) = (us(50.0), us(99.0), us(99.9));
            let WriteStat { victims, cleanings_alone, checkpoints, .. } = row.stat;
            let counts = format!("{victims},{cleanings_alone},{checkpoints},{:.3}", row.stat.amplification());
            csv.line(&format!("{name},{full},{rate:.0},{p50},{p99},{p999},{longest},{counts}"))?;
        }
    }
    println!("every row: {}", csv.path().display());
    Ok(())
}

struct Row {
    waits: Latencies,
    took: Duration,
    stat: WriteStat,
}

fn measure(args: &Args, full: u64, zones: bool) -> Result<Row, Box<dyn Error>> {
    let flush = Duration::from_secs_f64(args.flush / 1e3);
    let medium = SlowDevice::new(MemoryDevice::new(args.mib << 8), |_| 0.0).with_flushes(flush);
    let device: Arc<dyn BlockDevice> = if zones {
        // In front, room for the tables.
        let conventional = (args.mib / 16).div_ceil(args.zone).max(2) as u32;
        Arc::new(ZonedDevice::new(medium, ZoneLayout::new(args.zone << 8).with_conventional(conventional))?)
    } else {
        Arc::new(medium)
    };
    let features = if zones { Features::BLKZONED } else { Features(0) };
    let mut how = FormatOptions::default().with_features(features);
    how.overprovision = args.overprovision;
    format(&*device, &how)?;
    let fs = FileSystem::open(device, Options::new())?;
    let files = fill(&fs, full)?;
    if files == 0 {
        return Err(format!("no file of 1 MiB fits into {full} % of {} MiB", args.mib).into());
    }
    for thread in 0..args.threads {
        fs.create_dir(format!("/own-{thread}"), 0o755)?;
    }
    fs.checkpoint()?;
    let flusher = args.attended.then(|| fs.start_flusher(FlusherOptions::default()).expect("a thread"));
    let before = fs.write_stat();
    let end = AtomicBool::new(false);
    let begun = Instant::now();
    let waits = std::thread::scope(|scope| -> Result<Latencies, Box<dyn Error>> {
        let work = |thread| {
            scope.spawn({
                let (fs, end) = (&fs, &end);
                move || work(fs, thread, files, end)
            })
        };
        let threads: Vec<_> = (0..args.threads).map(work).collect();
        std::thread::sleep(args.seconds);
        end.store(true, Ordering::Relaxed);
        let mut all = Latencies::default();
        for thread in threads {
            all.merge(&thread.join().map_err(|_| "a thread panicked")??);
        }
        Ok(all)
    })?;
    let (took, stat) = (begun.elapsed(), fs.write_stat().minus(&before));
    drop(flusher);
    fs.close()?;
    Ok(Row { waits, took, stat })
}

/// Fills the volume; returns how many files there are.
fn fill(fs: &FileSystem, full: u64) -> Result<u64, FsError> {
    let mut count = 0;
    let block = vec![1; FILE as usize * 4096];
    loop {
        let stat = fs.statfs();
        if (stat.valid_blocks + FILE) * 100 > stat.user_blocks * full {
            return Ok(count);
        }
        fs.create_file(format!("/file-{count}"), 0o644)?.write_at(&block, 0)?;
        count += 1;
    }
}

/// One thread's operations until the end.
fn work(fs: &FileSystem, thread: u64, files: u64, end: &AtomicBool) -> Result<Latencies, FsError> {
    let mut waits = Latencies::default();
    let mut random = Random::new(thread + 1);
    let files = (0..files).map(|number| fs.open_file(format!("/file-{number}"))).collect::<Result<Vec<_>, _>>()?;
    let name = |number: u64| format!("/own-{thread}/{number}");
    for number in 0.. {
        let (file, place) = (random.below_u64(files.len() as u64), random.below_u64(FILE));
        for operation in 0..3 {
            if end.load(Ordering::Relaxed) {
                return Ok(waits);
            }
            let begun = Instant::now();
            match operation {
                0 => drop(files[file as usize].write_at(&[2; 4096], place * 4096)?),
                1 => drop(fs.create_file(name(number), 0o644)?.write_at(&[3; 4096], 0)?),
                _ if number >= KEPT => fs.remove_file(name(number - KEPT))?,
                _ => continue,
            }
            waits.record(begun.elapsed());
        }
    }
    Ok(waits)
}
