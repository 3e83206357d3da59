//! A whole life of a file-backed volume, with rates.
//!
//! ```text
//! cargo run --release --example quickstart
//! cargo run --release --example quickstart -- --files 1000000 --threads 8 --image /dev/shm/f2fs.img --json
//! ```
//!
//! Formats a sparse file on io_uring, creates files in several directories from several threads, writes and reads them,
//! unlinks half, checkpoints, closes, opens again, verifies every byte, and checks the image.
//!
//! Exit codes: 0 done and everything verified; 1 an operation failed, or the output cannot be written; 2 usage; 4 the volume is not what it should be.

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use f2fs::device::BlockDevice;
use f2fs::uring::{OpenOptions, UringDevice};
use f2fs_examples::program;
use f2fs_workload::quickstart::{Config, Observer, Phase, PhaseReport, QuickstartError, Report, run};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

/// The volume is not what it should be.
const DAMAGED: u8 = 4;

/// A whole life of a file-backed F2FS volume, with rates.
#[derive(Debug, Parser)]
#[command(name = "quickstart")]
#[command(
    after_help = "Exit codes: 0 verified, 1 failed, also if the output cannot be written, 2 usage, 4 the volume is not what it should be."
)]
struct Arguments {
    /// Small files to create.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    files: u64,
    /// Directories that they are spread over.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    directories: u64,
    /// Threads.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Where to make the image, which is then kept. Without it, a temporary file.
    #[arg(long)]
    image: Option<PathBuf>,
    /// Overwrite an image that is there.
    #[arg(long, requires = "image")]
    force: bool,
    /// For programs.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::run_with(whole_life, |error| {
        let damaged = error.downcast_ref().is_some_and(QuickstartError::is_damage);
        if damaged { DAMAGED } else { program::FAILED }
    })
}

fn whole_life(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let report = life(arguments)?;
    if arguments.json {
        writeln!(out, "{:#}", as_json(&report))?;
    } else {
        print(&report, arguments.image.as_deref(), out)?;
    }
    Ok(())
}

fn life(arguments: &Arguments) -> Result<Report, Box<dyn Error>> {
    let config = Config {
        files: arguments.files,
        directories: arguments.directories,
        threads: arguments.threads as usize,
        ..Config::default()
    };
    // Dropped, and with it the image, at the end, also after an error.
    let directory;
    let path = if let Some(path) = &arguments.image {
        path.clone()
    } else {
        directory = tempfile::Builder::new().prefix("f2fs-quickstart-").tempdir()?;
        directory.path().join("image")
    };
    if arguments.force && path.is_file() {
        // Opening it for writing fails if somebody else works on it.
        drop(UringDevice::open(&path, OpenOptions::new())?);
        std::fs::remove_file(&path)?;
    }
    drop(UringDevice::create(&path, config.volume_bytes(), OpenOptions::new())?);
    let open = || -> Result<Arc<dyn BlockDevice>, Box<dyn Error + Send + Sync>> {
        Ok(UringDevice::open(&path, OpenOptions::new())?)
    };
    Ok(run(&open, &config, &Bar::new())?)
}

fn print(report: &Report, kept: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
    let Config { files, directories, threads, large_files, large_bytes } = report.config;
    writeln!(
        out,
        "{files} files in {directories} directories and {large_files} files of {} MiB, {threads} threads\n\
         {} MiB on {}\n",
        large_bytes >> 20,
        report.volume_bytes >> 20,
        report.device
    )?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["phase", "operations", "seconds", "a second", "MiB/s"]);
    for phase in &report.phases {
        let rate = if phase.operations > 1 { format!("{:.0}", phase.rate()) } else { String::new() };
        let bandwidth =
            if phase.bytes > 0 { format!("{:.0}", phase.bandwidth() / f64::from(1 << 20)) } else { String::new() };
        let seconds = format!("{:.3}", phase.time.as_secs_f64());
        table.add_row([phase.phase.name().to_owned(), phase.operations.to_string(), seconds, rate, bandwidth]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{table}\n")?;
    writeln!(out, "Every byte is as it was written, and the check found nothing.")?;
    if let Some(path) = kept {
        writeln!(out, "The image is {}.", path.display())?;
    }
    Ok(())
}

fn as_json(report: &Report) -> serde_json::Value {
    let phases: Vec<_> = report
        .phases
        .iter()
        .map(|phase| {
            json!({
                "phase": phase.phase.name(),
                "operations": phase.operations,
                "bytes": phase.bytes,
                "seconds": phase.time.as_secs_f64(),
                "operations_per_second": phase.rate(),
                "bytes_per_second": phase.bandwidth(),
            })
        })
        .collect();
    json!({
        "files": report.config.files,
        "directories": report.config.directories,
        "threads": report.config.threads,
        "large_files": report.config.large_files,
        "large_bytes": report.config.large_bytes,
        "device": report.device,
        "volume_bytes": report.volume_bytes,
        "verified": true,
        "phases": phases,
    })
}

/// A progress bar, on a terminal only.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    fn new() -> Bar {
        let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{msg:12} [{bar:40}] {pos}/{len} {per_sec}") {
            bar.set_style(style);
        }
        Bar { bar }
    }
}

impl Observer for Bar {
    fn begin(&self, phase: Phase, total: u64) {
        self.bar.reset();
        self.bar.set_length(total);
        self.bar.set_message(phase.name());
    }

    fn advance(&self, steps: u64) {
        self.bar.inc(steps);
    }

    fn end(&self, report: &PhaseReport) {
        if report.phase == Phase::Check {
            self.bar.finish_and_clear();
        }
    }
}
