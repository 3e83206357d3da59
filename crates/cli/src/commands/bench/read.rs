//! `f2fs bench read`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use comfy_table::{CellAlignment, Table, presets};
use f2fs::RangeLock;
use f2fs_workload::reads::{Files, Measured, ReadsError, Setting, Sharing, prepare};
use f2fs_workload::report::LineChart;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::{Output, Target, expect_distinct};
use crate::args::bench::ReadArgs;
use crate::error::CliError;
use crate::memory_limit::memory;
use crate::progress;
use crate::size::human;

pub(crate) fn run(args: &ReadArgs, begun: &AtomicBool) -> Result<(), CliError> {
    expect_distinct("--threads", &args.threads.threads)?;
    let tables = args.table.iter().map(|table| Setting { table: (*table).into(), ..Setting::default() }.table_name());
    expect_distinct("--table", tables)?;
    // Before an image is made.
    if let Some(bytes) = Target::planned(&args.target())? {
        expect_room(args, bytes).map_err(CliError::usage)?;
    }
    let setting = Setting {
        pattern: args.pattern.into(),
        sharing: args.file.into(),
        depth: usize::from(args.depth),
        reads: args.reads,
        ..Setting::default()
    };
    let most = args.threads.threads.iter().copied().max().map_or(1, usize::from);
    expect_memory(&Setting { threads: most, ..setting })?;
    let target = Target::new(&args.target())?;
    let described = target.describe()?;
    let Setting { pattern, sharing, depth, reads, .. } = setting;
    let what = match sharing {
        Sharing::Shared => format!("{pattern} reads of one file of {}", human(args.file_size.0)),
        Sharing::Private => format!("{pattern} reads of a file each, {} together", human(args.file_size.0)),
    };
    let about = [("device", &*described), ("reads", &*what)];
    let mut output = Output::new(&args.output, &about, Measured::COLUMNS, begun)?;

    let files = Files { count: if sharing == Sharing::Shared { 1 } else { most }, bytes: args.file_size.0 };
    let device = target.open()?;
    expect_room(args, device.info().bytes()).map_err(CliError::new)?;
    let bar = progress::bytes("write the files", args.file_size.0);
    prepare(Arc::clone(&device), files, &|bytes| bar.inc(bytes)).map_err(CliError::new)?;
    bar.finish_and_clear();

    let bar = bar_of_measurements(args);
    let mut all = Vec::new();
    for threads in &args.threads.threads {
        // Tables innermost, so that tables are compared by measurements close together.
        for (index, table) in args.table.iter().enumerate() {
            let setting = Setting { threads: usize::from(*threads), table: (*table).into(), ..setting };
            let failed =
                |error: ReadsError| CliError::new(format_args!("{}, {threads} threads: {error}", setting.table_name()));
            let measure = |warming: &str| {
                bar.set_message(format!("{warming}{} {threads} threads", setting.table_name()));
                let volume = files.open(Arc::clone(&device), setting.table).map_err(failed)?;
                let measured = volume.measure(&setting).map_err(failed)?;
                volume.close().map_err(failed)?;
                Ok::<_, CliError>(measured)
            };
            if index == 0 {
                // It alone would pay for the memory that the others then find in the process.
                measure("warm-up: ")?;
            }
            let measured = measure("")?;
            output.line(&measured.csv())?;
            all.push(measured);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let processors = output.machine.processors;
    output.charts(&charts(&format!("{what}, depth {depth}, {described}"), processors, &all))?;

    let mut out = std::io::stdout().lock();
    if args.output.json {
        let value = json!({
            "machine": output.machine_json(),
            "device": described,
            "pattern": pattern.to_string(),
            "file": sharing.to_string(),
            "file_bytes": args.file_size.0,
            "depth": depth,
            "measurements": all.iter().map(describe).collect::<Vec<_>>(),
        });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(out, "{}", output.machine)?;
        writeln!(out, "{described}; {what}; depth {depth}; {reads} reads a measurement")?;
        writeln!(out, "{}", table(&all))?;
    }
    Ok(())
}

/// Refuses files that are larger than all of the device.
fn expect_room(args: &ReadArgs, device: u64) -> Result<(), String> {
    let wanted = args.file_size.0;
    if wanted < device {
        return Ok(());
    }
    Err(format!("--file-size: {} do not fit on a device of {}", human(wanted), human(device)))
}

/// Refuses buffers that the memory has no room for beside what is measured.
fn expect_memory(setting: &Setting) -> Result<(), CliError> {
    let (wanted, memory) = (setting.buffer_bytes(), memory());
    if wanted <= memory / 2 {
        return Ok(());
    }
    let Setting { depth, threads, .. } = setting;
    let (wanted, memory) = (human(wanted), human(memory));
    Err(CliError::usage(format_args!(
        "--depth {depth}: {threads} threads take {wanted} for what they read at once, more than half of the memory of \
         this machine, {memory}"
    )))
}

fn bar_of_measurements(args: &ReadArgs) -> ProgressBar {
    progress::bar("", Some((args.threads.threads.len() * args.table.len()) as u64))
}

fn table(all: &[Measured]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["threads", "table", "IOPS", "p50 us", "p99 us", "p99.9 us", "longest us", "in locks", "slowest"]);
    for measured in all {
        table.add_row([
            measured.setting.threads.to_string(),
            measured.setting.table_name().to_owned(),
            format!("{:.0}", measured.iops()),
            format!("{:.1}", measured.micros(50.0)),
            format!("{:.1}", measured.micros(99.0)),
            format!("{:.1}", measured.micros(99.9)),
            format!("{:.1}", measured.latencies.longest().as_secs_f64() * 1e6),
            format!("{:.1} %", measured.lock_share * 100.0),
            format!("{:.0} %", measured.slowest_share * 100.0),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn describe(measured: &Measured) -> Value {
    json!({
        "table": measured.setting.table_name(),
        "threads": measured.setting.threads,
        "reads": measured.setting.reads,
        "seconds": measured.elapsed.as_secs_f64(),
        "iops": measured.iops(),
        "p50_us": measured.micros(50.0),
        "p99_us": measured.micros(99.0),
        "p999_us": measured.micros(99.9),
        "longest_us": measured.latencies.longest().as_secs_f64() * 1e6,
        "lock_share": measured.lock_share,
        "lock_waits": measured.lock_waits,
        "slowest_share": measured.slowest_share,
    })
}

/// One chart of the rate and one of the share of time in locks, a line for each table.
fn charts(title: &str, processors: usize, all: &[Measured]) -> Vec<LineChart> {
    let chart = |y: &str, value: fn(&Measured) -> f64| {
        let mut chart = LineChart::new(title, "threads", y).processors(processors);
        for lock in [RangeLock::Extent, RangeLock::Btree] {
            let of: Vec<_> = all.iter().filter(|measured| measured.setting.table == lock).collect();
            if let Some(first) = of.first() {
                let points = of.iter().map(|measured| (measured.setting.threads as f64, value(measured)));
                chart.line(first.setting.table_name(), points.collect());
            }
        }
        chart
    };
    vec![chart("reads/s", Measured::iops), chart("time waiting for locks, %", |measured| measured.lock_share * 100.0)]
}
