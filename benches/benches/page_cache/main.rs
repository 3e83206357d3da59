//! What the page cache is worth: beside the same calls without it, and beside Linux's own caches on the same disk.
//!
//! ```text
//! cargo bench -p f2fs-benches --bench page_cache -- [--dir DIR] [--rounds 3] [--files 100000] [--mib 1024] [--cache-mib 1024]
//!     [--tree DIR] [--only NAME]
//! ```
//!
//! A row is a contest: ours and theirs run in turn, who is first changes from round to round, and the ratio of a round
//! is ours by theirs. The table has the medians, the least and the greatest ratio, and the processor time of each side.
//! `target/page_cache.csv` has every round. Image, ext4's file and plain file lie in `--dir`, and have no holes. All
//! that is written is durable when the clock stops.
//!
//! | Row | ours | theirs |
//! |---|---|---|
//! | create, direct | `--files` new files of 4 KiB in directories of 1000, one thread, then a checkpoint; with a page cache | the same without one |
//! | create, ext4 | the same, with a page cache | the same calls of the system, then `syncfs`, on ext4 on a loop device (as root) |
//! | stream, fio | a file of `--mib` is overwritten in order, 2 MiB a call, then synced | fio on a plain file: `--rw=write --bs=2m --end_fsync=1` |
//! | stream, direct | the same | without a page cache |
//! | reads, pread | reads of 4 KiB at random places of a file of 256 MiB, all in the page cache, one thread | `pread` of a plain file in the kernel's cache |
//! | reads, threads | the same on two threads | on one |
//! | put, mke2fs | `f2fs format`, then `f2fs put -r` of `--tree` | `mke2fs -d` |
//! | put, sload | the same | `mkfs.f2fs`, then `sload.f2fs -f` |
//! | get, cp | `f2fs get -r` of the tree to a directory in memory | `cp -a` from ext4 on a loop device (as root); both read once before |
//!
//! # What was expected, before any measurement
//!
//! create, direct 5; create, ext4 0.8; stream, fio 0.65; reads 1.3 M/s, threads 1.9; put, mke2fs 1.2; put, sload 3;
//! get, cp 1.1.
//!
//! A call in the process is no system call: of the rows `create, ext4` and `reads, pread` a part of the ratio is that.

mod creating;
mod ext4;
mod programs;
mod reading;
mod streaming;
mod volumes;

use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, value_parser};
use f2fs_benches::arguments::{ByCargo, temporary};
use f2fs_benches::report::{Csv, ascending, machine};

/// What may go wrong.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What the page cache is worth: beside the same calls without it, and beside Linux's own caches on the same disk.
#[derive(Debug, Parser)]
struct Args {
    /// A directory for the files.
    #[arg(long, default_value_os_t = temporary())]
    dir: PathBuf,
    /// Rounds of each.
    #[arg(long, default_value = "3")]
    rounds: NonZeroUsize,
    /// New files of 4 KiB.
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=1 << 24))]
    files: u64,
    /// Size of the file that is written in order.
    #[arg(long, default_value_t = 1024, value_parser = value_parser!(u64).range(2..=1 << 20))]
    mib: u64,
    /// Size of the page cache.
    #[arg(long, default_value_t = 1024, value_parser = value_parser!(u64).range(1..=1 << 20))]
    cache_mib: u64,
    /// The tree that is copied.
    #[arg(long, default_value = "/usr/share")]
    tree: PathBuf,
    /// Only the rows whose name has this in it.
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
    #[command(flatten)]
    by_cargo: ByCargo,
}

impl Args {
    /// Bytes of the file that is written in order.
    fn bytes(&self) -> u64 {
        self.mib.next_multiple_of(2) << 20
    }

    /// Bytes of the page cache.
    fn cache(&self) -> u64 {
        self.cache_mib << 20
    }
}

/// Files that all rows use.
struct Place {
    args: Args,
    dir: tempfile::TempDir,
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of so many bytes without holes, made when it is first asked for.
    fn filled(&self, name: &str, bytes: u64) -> io::Result<PathBuf> {
        let path = self.path(name);
        if !path.exists() {
            let mut file = File::create_new(&path)?;
            let piece = vec![0x5a; 2 << 20];
            for _ in 0..bytes.div_ceil(piece.len() as u64) {
                file.write_all(&piece)?;
            }
            file.sync_all()?;
        }
        Ok(path)
    }

    /// Bytes of an image: data and nodes of the small files, or the large one twice, and room for what is written
    /// before the old is free.
    fn image_bytes(&self) -> u64 {
        (self.args.files * 3 * 4096).max(self.args.bytes() * 3).next_multiple_of(2 << 20) + (256 << 20)
    }
}

/// What one side of a row does: it gives how much it did, and how long that took.
type Side<'a> = Box<dyn FnMut() -> Result<Measure> + 'a>;

struct Measure {
    per_second: f64,
    /// Seconds of processor time of this process and of those that it waited for.
    cpu: f64,
}

/// Times one side.
struct Clock {
    start: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> io::Result<Clock> {
        Ok(Clock { cpu: cpu_seconds()?, start: Instant::now() })
    }

    fn stop(&self, amount: f64) -> io::Result<Measure> {
        let seconds = self.start.elapsed().as_secs_f64();
        Ok(Measure { per_second: amount / seconds, cpu: cpu_seconds()? - self.cpu })
    }
}

/// Of this process and of its children that ended, user and system, from `/proc/self/stat`: in steps of 10 ms.
fn cpu_seconds() -> io::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let ticks = stat.rsplit(')').next().into_iter().flat_map(|rest| rest.split_whitespace().skip(11).take(4));
    Ok(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// The goal of a row.
#[derive(Clone, Copy)]
enum Goal {
    Ratio(f64),
    Rate(f64),
    None,
}

struct Row<'a> {
    name: &'static str,
    unit: &'static str,
    goal: Goal,
    ours: Side<'a>,
    theirs: Side<'a>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    println!("{}; load {}", machine(), std::fs::read_to_string("/proc/loadavg")?.trim());
    let dir = tempfile::Builder::new().prefix("page_cache-").tempdir_in(&args.dir)?;
    let place = Place { args, dir };
    println!(
        "{:16} {:>14} {:>14} {:>7} {:>13} {:>8} {:>15} {:>7}",
        "", "theirs", "ours", "ratio", "least..most", "goal", "cpu s of both", "load"
    );
    let mut csv = Csv::create("page_cache", "row,round,unit,theirs,ours,ratio,their_cpu_s,our_cpu_s,load")?;
    type Make = for<'a> fn(&'a Place) -> Result<Row<'a>>;
    let rows: [(&str, Make); 9] = [
        ("create, direct", creating::beside_direct),
        ("create, ext4", creating::beside_ext4),
        ("stream, fio", streaming::beside_fio),
        ("stream, direct", streaming::beside_direct),
        ("reads, pread", reading::beside_pread),
        ("reads, threads", reading::two_threads),
        ("put, mke2fs", programs::put_beside_mke2fs),
        ("put, sload", programs::put_beside_sload),
        ("get, cp", programs::get_beside_cp),
    ];
    for (name, make) in rows {
        if !name.contains(&place.args.only) {
            continue;
        }
        match make(&place).and_then(|row| contest(&place, row, &mut csv)) {
            Ok(()) => {}
            Err(error) => println!("{name:16} not measured: {error}"),
        }
    }
    println!("every round: {}", csv.path().display());
    Ok(())
}

/// Runs both sides in turn, and prints the row.
fn contest(place: &Place, mut row: Row<'_>, csv: &mut Csv) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 0..place.args.rounds.get() {
        let (theirs, ours) = if round % 2 == 0 {
            let theirs = (row.theirs)()?;
            (theirs, (row.ours)()?)
        } else {
            let ours = (row.ours)()?;
            ((row.theirs)()?, ours)
        };
        let load = load()?;
        csv.line(&format!(
            "{},{round},{},{:.1},{:.1},{:.3},{:.2},{:.2},{load}",
            row.name.replace(", ", "-"),
            row.unit,
            theirs.per_second,
            ours.per_second,
            ours.per_second / theirs.per_second,
            theirs.cpu,
            ours.cpu
        ))?;
        rounds.push((theirs, ours));
    }
    let sorted = |pick: fn(&(Measure, Measure)) -> f64| ascending(rounds.iter().map(pick));
    let middle = rounds.len() / 2;
    let ratios = sorted(|(theirs, ours)| ours.per_second / theirs.per_second);
    let ours = sorted(|round| round.1.per_second)[middle];
    let (goal, met) = match row.goal {
        Goal::Ratio(goal) => (format!("{goal:.2}"), ratios[middle] >= goal),
        Goal::Rate(goal) => (format!("{:.1} M/s", goal / 1e6), ours >= goal),
        Goal::None => (String::new(), true),
    };
    println!(
        "{:16} {:>14} {:>14} {:>7.2} {:>13} {:>8} {:>15} {:>7}{}",
        row.name,
        rate(row.unit, sorted(|round| round.0.per_second)[middle]),
        rate(row.unit, ours),
        ratios[middle],
        format!("{:.2}..{:.2}", ratios[0], ratios[ratios.len() - 1]),
        goal,
        format!("{:.2} / {:.2}", sorted(|round| round.0.cpu)[middle], sorted(|round| round.1.cpu)[middle]),
        load()?,
        if met { "" } else { " below its goal" },
    );
    Ok(())
}

fn rate(unit: &str, per_second: f64) -> String {
    if per_second < 1000.0 { format!("{per_second:.1} {unit}/s") } else { format!("{per_second:.0} {unit}/s") }
}

/// Processes that run or wait to run, of the last minute.
fn load() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// An error with what was tried.
fn about<T, E: std::fmt::Display>(what: impl AsRef<Path>, result: std::result::Result<T, E>) -> Result<T> {
    result.map_err(|error| format!("{}: {error}", what.as_ref().display()).into())
}
