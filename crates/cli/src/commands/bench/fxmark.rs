//! `f2fs bench fxmark`.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};
use f2fs::nat::Policy;
use f2fs_workload::fxmark::{self, Measured, Observer, Setting, Workload};
use f2fs_workload::report::LineChart;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::{Output, Target};
use crate::args::bench::{FxmarkArgs, LockArg};
use crate::error::CliError;
use crate::progress;

pub(crate) fn run(args: &FxmarkArgs) -> Result<(), CliError> {
    let target = Target::new(&args.target)?;
    let device = target.describe()?;
    let lock = match args.directory_lock {
        LockArg::Whole => "whole",
        LockArg::Bucket => "bucket",
    };
    let about = [("device", &*device), ("directory lock", lock)];
    let mut output = Output::new(&args.output, &about, Measured::COLUMNS)?;
    let settings = settings(args);
    let watch = Watch::new(&settings);
    let mut all = Vec::with_capacity(settings.len());
    for setting in &settings {
        let measured = fxmark::run(target.open()?, setting, &watch).map_err(|error| {
            let Setting { workload, policy, threads, .. } = setting;
            CliError::new(format_args!("{workload}, {policy}, {threads} threads: {error}"))
        })?;
        output.line(&measured.csv())?;
        all.push(measured);
    }
    watch.bar.finish_and_clear();
    output.charts(&charts(args, lock, &device, output.machine.processors, &all))?;

    let mut out = std::io::stdout().lock();
    if args.output.json {
        let value = json!({
            "machine": output.machine_json(),
            "device": device,
            "directory_lock": lock,
            "measurements": all.iter().map(describe).collect::<Vec<_>>(),
        });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(out, "{}", output.machine)?;
        writeln!(out, "{device}; directory lock {lock}; {} operations a measurement", args.files)?;
        writeln!(out, "{}", table(&all))?;
    }
    Ok(())
}

/// Policies innermost, so that policies are compared by measurements close together.
fn settings(args: &FxmarkArgs) -> Vec<Setting> {
    let mut settings = Vec::new();
    for workload in &args.workload {
        for threads in &args.threads.threads {
            settings.extend(args.policy.iter().map(|policy| Setting {
                policy: *policy,
                directory_lock: args.directory_lock.into(),
                threads: usize::from(*threads),
                files: args.files,
                free_nids: args.free_nids,
                verify: args.verify,
                ..Setting::new(*workload)
            }));
        }
    }
    settings
}

/// The progress bar, over files made before and operations done in the measurements.
struct Watch {
    bar: ProgressBar,
}

impl Watch {
    fn new(settings: &[Setting]) -> Watch {
        let steps = settings.iter().map(|setting| setting.prepared_files() + setting.files).sum();
        Watch { bar: progress::bar("", Some(steps)) }
    }
}

impl Observer for Watch {
    fn begin(&self, setting: &Setting, _files: u64) {
        self.bar.set_message(format!("{} {} {} threads", setting.workload, setting.policy, setting.threads));
    }

    fn advance(&self, files: u64) {
        self.bar.inc(files);
    }

    fn end(&self, measured: &Measured) {
        self.bar.inc(measured.operations);
    }
}

fn table(all: &[Measured]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "workload",
        "policy",
        "threads",
        "ops/s",
        "slowest",
        "p50 us",
        "p99 us",
        "NID scans",
        "NIDs used",
        "free",
        "cached",
    ]);
    for measured in all {
        let Setting { workload, policy, threads, .. } = &measured.setting;
        table.add_row([
            workload.to_string(),
            policy.to_string(),
            threads.to_string(),
            format!("{:.0}", measured.rate()),
            format!("{:.0} %", measured.slowest_share * 100.0),
            format!("{:.1}", measured.micros(50.0)),
            format!("{:.1}", measured.micros(99.0)),
            format!("{:.1} %", measured.nid_scan_share * 100.0),
            measured.fill.used_nids.to_string(),
            measured.fill.free_nids.to_string(),
            measured.fill.cached_nat_entries.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn describe(measured: &Measured) -> Value {
    let Setting { workload, policy, threads, .. } = &measured.setting;
    json!({
        "workload": workload.to_string(),
        "policy": policy.to_string(),
        "threads": threads,
        "operations": measured.operations,
        "seconds": measured.elapsed.as_secs_f64(),
        "ops_per_second": measured.rate(),
        "slowest_share": measured.slowest_share,
        "p50_us": measured.micros(50.0),
        "p99_us": measured.micros(99.0),
        "longest_us": measured.latencies.longest().as_secs_f64() * 1e6,
        "nid_scan_share": measured.nid_scan_share,
        "nid_scans": measured.nid_scans,
        "checkpoints": measured.checkpoints,
        "nids": measured.fill.nids,
        "used_nids": measured.fill.used_nids,
        "free_nids": measured.fill.free_nids,
        "cached_nat_entries": measured.fill.cached_nat_entries,
        "blocks_used": measured.fill.blocks,
        "verified": measured.setting.verify,
    })
}

/// One chart a workload, one line a policy.
fn charts(args: &FxmarkArgs, lock: &str, device: &str, processors: usize, all: &[Measured]) -> Vec<LineChart> {
    let chart = |workload: &Workload| {
        let title = format!("{} on {device}, directory lock {lock}", workload.name().to_uppercase());
        let mut chart = LineChart::new(title, "threads", format!("{}/s", workload.operations())).processors(processors);
        for policy in &args.policy {
            chart.line(policy.to_string(), points(all, *workload, *policy));
        }
        chart
    };
    args.workload.iter().map(chart).collect()
}

fn points(all: &[Measured], workload: Workload, policy: Policy) -> Vec<(f64, f64)> {
    let of = |measured: &&Measured| measured.setting.workload == workload && measured.setting.policy == policy;
    all.iter().filter(of).map(|measured| (measured.setting.threads as f64, measured.rate())).collect()
}
