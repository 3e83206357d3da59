//! The experiment of "Analysis of Btrfs single file read performance on manycore systems", in user space: random reads
//! of 4 KiB of one file, by 1 to 120 threads.
//!
//! ```text
//! cargo run --release --example single_file_reads [-- [--threads 1,2,128] [--reads N] [--csv FILE] [--svg FILE]]
//! ```
//!
//! The paper found that Btrfs stops scaling at 20 jobs because all readers of a file take turns at its tree of extent
//! states; ext4 and F2FS, which lock the file as a whole, reach what the device gives. Here one volume is read with the
//! lock table of `f2fs-extent`, on which readers share, and with a tree of locked ranges under one mutex, on which they
//! do not; on a device in memory and on a file through io_uring; one read at a time in each thread (as fio's psync) and
//! many (`--depth`).
//!
//! The paper's figures, of 120 cores, stand beside them for the shape, not for comparison: with more threads than
//! processors, ours show whether anything collapses. A device in memory is as fast as memory: it shows the locks at
//! their worst. Where fio is installed it reads a plain file of the same size in the same directory, with one job at
//! both depths.
//!
//! One run (`--reads 100000 --mib 1024 --fio-seconds 3`; two virtual Intel Xeon processors, ext4 on a virtio disk,
//! Linux 6.18; thousands of reads a second, in brackets the share of the threads' time in which they waited for locks
//! of the file):
//!
//! | threads, one read at a time | paper: Btrfs | memory: tree | memory: ours | io_uring: tree | io_uring: ours |
//! |--:|--:|--:|--:|--:|--:|
//! | 1 | 10.8 (0 %) | 672 (0 %) | 524 (0 %) | 21.6 (0 %) | 25.6 (0 %) |
//! | 2 | | 718 (13 %) | 1018 (0 %) | 31.9 (0 %) | 32.3 (0 %) |
//! | 8 | | 663 (77 %) | 1031 (0 %) | 50.4 (0.3 %) | 52.0 (0 %) |
//! | 20 | 165.0 (19 %) | 713 (90 %) | 985 (0 %) | 56.6 (0.3 %) | 56.0 (0 %) |
//! | 50 | 82.2 (80 %) | 692 (96 %) | 967 (0 %) | 64.1 (0.4 %) | 60.7 (0 %) |
//! | 120 | 119.0 (89 %) | 669 (98 %) | 1038 (0 %) | 58.8 (0.9 %) | 63.2 (0 %) |
//!
//! | threads, 32 reads at a time | memory: tree | memory: ours | io_uring: tree | io_uring: ours |
//! |--:|--:|--:|--:|--:|
//! | 1 | 346 (0 %) | 360 (0 %) | 55.5 (0 %) | 63.9 (0 %) |
//! | 2 | 469 (13 %) | 627 (0 %) | 61.5 (0.7 %) | 64.7 (0 %) |
//! | 8 | 413 (76 %) | 550 (0 %) | 60.2 (2 %) | 58.9 (0 %) |
//! | 120 | 166 (91 %) | 365 (0 %) | 61.6 (23 %) | 59.6 (0 %) |
//!
//! On a device of 60 thousand reads a second the tree's mutex is not what limits two processors; in memory it is, and
//! ours has no such limit. Beside fio, one thread each, nine rounds in turns: at depth 1 22.1 and 24.0 thousand a
//! second, in the median round 96 % (83 to 101); at depth 32 58.2 and 62.1 thousand, 91 % (80 to 114). The device's
//! rate changes by as much from one second to the next. At depth 32 both send 32 requests in 110 to 150 us and wait 190
//! to 210 us for the device.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use f2fs::RangeLock;
use f2fs::device::{BlockDevice, MemoryDevice};
use f2fs::uring::{OpenOptions, UringDevice};
use f2fs_examples::program;
use f2fs_workload::reads::{Engine, Files, FioError, Measured, PUBLISHED, Setting, fio, prepare};
use f2fs_workload::report::{LineChart, Machine};

/// Rounds of the comparison with fio.
const ROUNDS: usize = 9;

/// Random reads of one file by many threads.
#[derive(Debug, Parser)]
#[command(name = "single_file_reads", after_help = program::EXIT_CODES)]
struct Arguments {
    /// Numbers of threads, separated by commas.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,5,10,20,30,50,80,120",
        value_parser = clap::value_parser!(u16).range(1..=4096)
    )]
    threads: Vec<u16>,
    /// Reads of all threads together in one measurement.
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u64).range(1..))]
    reads: u64,
    /// Reads that a thread has on the device at a time when it batches.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(2..))]
    depth: u16,
    /// MiB of the file.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    mib: u64,
    /// Where to make the image and fio's file [default: the system's directory for temporary files].
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Seconds of each run of fio, and of ours beside it, up to 3600; 0 leaves them out.
    #[arg(long, default_value_t = 0.2, value_parser = seconds)]
    fio_seconds: f64,
    /// A line for each measurement.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// A picture: the rate, and the share of time in locks.
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// Of a device: its name, and what was measured on it.
type OnDevice = (&'static str, Vec<Measured>);

/// The greatest number of seconds of a run.
const LONGEST: f64 = 3600.0;

/// A sensible number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=LONGEST).contains(&seconds) => Ok(seconds),
        _ => Err(format!("not a number from 0 to {LONGEST}")),
    }
}

fn main() -> ExitCode {
    program::run(|arguments, out| -> Result<(), Box<dyn Error>> { Ok(writeln!(out, "{}", run(arguments)?)?) })
}

/// An error with the path that it is about.
fn about(path: &Path) -> impl FnOnce(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// Measures everything; the tables.
fn run(arguments: &Arguments) -> Result<String, Box<dyn Error>> {
    let dir = match &arguments.dir {
        Some(dir) => tempfile::tempdir_in(dir).map_err(about(dir))?,
        None => tempfile::tempdir()?,
    };
    let files = Files { count: 1, bytes: arguments.mib << 20 };
    let room = files.bytes * 2 + (128 << 20);
    let memory: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(room / 4096));
    let image: Arc<dyn BlockDevice> = UringDevice::create(dir.path().join("image"), room, OpenOptions::new())?;
    let mut all: Vec<OnDevice> = Vec::new();
    for (name, device) in [("memory", memory), ("io_uring", Arc::clone(&image))] {
        prepare(Arc::clone(&device), files, &|_| ())?;
        all.push((name, measure(arguments, files, &device)?));
    }

    let machine = Machine::here();
    let mut text = format!("{machine}\nRandom reads of 4 KiB of one file of {} MiB; thousands a second", arguments.mib);
    write!(text, ", and the share of the threads' time in which they waited for its locks\n\n")?;
    write!(text, "One read at a time in each thread\n{}\n\n", table(arguments, &all, 1))?;
    let depth = usize::from(arguments.depth);
    write!(text, "{depth} reads at a time in each thread\n{}\n", table(arguments, &all, depth))?;
    if arguments.fio_seconds > 0.0 {
        text.push('\n');
        text.push_str(&against_fio(arguments, files, &image, dir.path())?);
    }
    if let Some(path) = &arguments.csv {
        let mut csv = format!("{}device,{}\n", machine.comments(), Measured::COLUMNS);
        for (device, measured) in &all {
            measured.iter().for_each(|measured| csv.push_str(&format!("{device},{}\n", measured.csv())));
        }
        std::fs::write(path, csv).map_err(about(path))?;
    }
    if let Some(path) = &arguments.svg {
        let drawn = LineChart::svg_of(&charts(arguments, &all, machine.processors))?;
        std::fs::write(path, drawn).map_err(about(path))?;
    }
    Ok(text)
}

/// All thread counts, both depths, both tables.
fn measure(
    arguments: &Arguments,
    files: Files,
    device: &Arc<dyn BlockDevice>,
) -> Result<Vec<Measured>, Box<dyn Error>> {
    let mut all = Vec::new();
    for table in [RangeLock::Btree, RangeLock::Extent] {
        let volume = files.open(Arc::clone(device), table)?;
        for depth in [1, usize::from(arguments.depth)] {
            for threads in &arguments.threads {
                let threads = usize::from(*threads);
                let setting = Setting { threads, depth, table, reads: arguments.reads, ..Setting::default() };
                all.push(volume.measure(&setting)?);
            }
        }
        volume.close()?;
    }
    Ok(all)
}

/// The measurements of a depth, a row for each number of threads, beside the paper's.
fn table(arguments: &Arguments, all: &[OnDevice], depth: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let mut header = vec!["threads".to_owned(), "paper: Btrfs".to_owned(), "in locks".to_owned()];
    for (device, _) in all {
        for lock in ["btree", "extent"] {
            header.extend([format!("{device}: {lock}"), "in locks".to_owned()]);
        }
    }
    table.set_header(header);
    for threads in &arguments.threads {
        let threads = usize::from(*threads);
        // The paper's rates for many requests at a time are in a figure.
        let paper = PUBLISHED.iter().find(|(jobs, ..)| *jobs == threads && depth == 1);
        let mut row = vec![threads.to_string()];
        row.extend(paper.map_or([String::new(), String::new()], |(_, rate, share)| {
            [format!("{rate:.1}"), format!("{share:.1} %")]
        }));
        for (_, measured) in all {
            for lock in [RangeLock::Btree, RangeLock::Extent] {
                let one = measured.iter().find(|measured| {
                    let Setting { threads: t, depth: d, table, .. } = measured.setting;
                    (t, d, table) == (threads, depth, lock)
                });
                row.extend(one.map_or([String::new(), String::new()], |one| {
                    [format!("{:.1}", one.iops() / 1e3), format!("{:.1} %", one.lock_share * 100.0)]
                }));
            }
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn charts(arguments: &Arguments, all: &[OnDevice], processors: usize) -> Vec<LineChart> {
    let mut charts = Vec::new();
    for depth in [1, usize::from(arguments.depth)] {
        for (device, measured) in all {
            let mut chart = LineChart::new(format!("One file on {device}, depth {depth}"), "threads", "reads/s");
            let mut shares =
                LineChart::new(format!("One file on {device}, depth {depth}"), "threads", "time in locks, %");
            chart = chart.processors(processors);
            shares = shares.processors(processors);
            for lock in [RangeLock::Extent, RangeLock::Btree] {
                let of = |measured: &&Measured| measured.setting.depth == depth && measured.setting.table == lock;
                let line = |value: fn(&Measured) -> f64| {
                    let points = measured.iter().filter(of);
                    points.map(|measured| (measured.setting.threads as f64, value(measured))).collect()
                };
                let name = if lock == RangeLock::Extent { "extent" } else { "btree" };
                chart.line(name, line(Measured::iops));
                shares.line(name, line(|measured| measured.lock_share * 100.0));
            }
            charts.extend([chart, shares]);
        }
    }
    charts
}

/// One thread of ours and one job of fio, in turns.
fn against_fio(
    arguments: &Arguments,
    files: Files,
    image: &Arc<dyn BlockDevice>,
    dir: &Path,
) -> Result<String, Box<dyn Error>> {
    let plain = dir.join("plain");
    std::fs::write(&plain, vec![0x5a; files.bytes as usize])?;
    std::fs::File::open(&plain)?.sync_all()?;
    let volume = files.open(Arc::clone(image), RangeLock::Extent)?;
    let mut text = String::new();
    let depth = usize::from(arguments.depth);
    for (name, engine, depth) in [("psync", Engine::Psync, 1), ("io_uring", Engine::IoUring { depth }, depth)] {
        let mut ratios = Vec::new();
        let mut rates = Vec::new();
        // So many reads as last about as long as fio's run.
        let mut setting = Setting { depth, reads: 1000, ..Setting::default() };
        setting.reads = ((volume.measure(&setting)?.iops() * arguments.fio_seconds) as u64).max(1);
        for _ in 0..ROUNDS {
            let ours = volume.measure(&setting)?.iops();
            let theirs = match fio(&plain, engine, 1, arguments.fio_seconds) {
                Ok(theirs) => theirs,
                Err(FioError::Missing) => return Ok("fio is not installed: not compared with it\n".to_owned()),
                Err(error) => return Err(error.into()),
            };
            ratios.push(ours / theirs * 100.0);
            rates.push((ours, theirs));
        }
        ratios.sort_by(f64::total_cmp);
        let (least, median, most) = (ratios[0], ratios[ROUNDS / 2], ratios[ROUNDS - 1]);
        let mean = |pick: fn(&(f64, f64)) -> f64| rates.iter().map(pick).sum::<f64>() / ROUNDS as f64 / 1e3;
        let (ours, theirs) = (mean(|rate| rate.0), mean(|rate| rate.1));
        writeln!(
            text,
            "depth {depth:>3}: ours {ours:.1} k/s, fio ({name}) {theirs:.1} k/s: {median:.0} % ({least:.0} to {most:.0} in {ROUNDS} rounds)"
        )?;
    }
    volume.close()?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_csv_and_picture_have_every_measurement() {
        let dir = tempfile::tempdir().unwrap();
        let (csv, svg) = (dir.path().join("out.csv"), dir.path().join("out.svg"));
        let words = ["single_file_reads", "--threads", "1,5,7", "--reads", "300", "--mib", "4", "--fio-seconds", "0"];
        let mut arguments = Arguments::try_parse_from(words).unwrap();
        arguments.csv = Some(csv.clone());
        arguments.svg = Some(svg.clone());
        let text = run(&arguments).unwrap();
        for word in ["paper: Btrfs", "54.2", "memory: extent", "io_uring: btree", "32 reads at a time"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        let lines = std::fs::read_to_string(csv).unwrap();
        let lines: Vec<_> = lines.lines().filter(|line| !line.starts_with('#')).collect();
        // Devices, tables, depths, numbers of threads, and the columns.
        assert_eq!(lines.len(), 2 * 2 * 2 * 3 + 1);
        let picture = std::fs::read_to_string(svg).unwrap();
        assert_eq!(picture.matches("<circle").count(), 2 * 24);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let seconds = ["nan", "inf", "-1", "-inf", "1e300", "3601", "x", ""].map(|value| ["--fio-seconds", value]);
        let others = [["--threads", "0"], ["--reads", "0"], ["--depth", "1"], ["--mib", "0"]];
        for words in seconds.into_iter().chain(others) {
            let words = [format!("{}={}", words[0], words[1])];
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert!(Arguments::try_parse_from(["single_file_reads"].iter().chain(&words)).is_err(), "{words:?}");
        }
        assert!(Arguments::try_parse_from(["single_file_reads", "--fio-seconds", "0.5"]).is_ok());
    }
}
