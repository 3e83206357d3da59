//! `f2fs bench fxmark`.

mod steps;

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use comfy_table::{CellAlignment, Table, presets};
use f2fs::nat::Policy;
use f2fs_workload::fxmark::{self, Measured, Setting, Workload};
use f2fs_workload::report::LineChart;
use f2fs_workload::shell::Quoted;
use serde_json::{Value, json};

use self::steps::{Step, Watch, steps};
use super::{Output, Target, expect_distinct};
use crate::args::bench::{FxmarkArgs, LockArg};
use crate::error::CliError;
use crate::image::Access;
use crate::medium;

pub(crate) fn run(args: &FxmarkArgs, begun: &AtomicBool) -> Result<(), CliError> {
    expect_distinct("--workload", &args.workload)?;
    expect_distinct("--threads", &args.threads.threads)?;
    expect_distinct("--policy", &args.policy)?;
    let settings = settings(args);
    if args.formatted && settings.len() > 1 {
        return Err(CliError::usage("--formatted is for one measurement: one workload, number of threads and policy"));
    }
    let place = Place::new(args)?;
    let device = place.describe()?;
    let lock = match args.directory_lock {
        _ if args.directory.is_some() => "its own",
        LockArg::Whole => "whole",
        LockArg::Bucket => "bucket",
    };
    let about = [("device", &*device), ("directory lock", lock)];
    let mut output = Output::new(&args.output, &about, Measured::COLUMNS, begun)?;
    let steps: Vec<Step<'_>> = steps(&settings).filter(|step| !step.warms_up || place.warms_up()).collect();
    let watch = Watch::new(&steps);
    let mut all = Vec::with_capacity(settings.len());
    for Step { setting, warms_up } in steps {
        watch.warms_up(warms_up);
        let measured = place.measure(setting, &watch)?;
        if warms_up {
            continue;
        }
        output.line(&measured.csv())?;
        all.push(measured);
    }
    watch.finish();
    let processors = output.machine.processors;
    output.charts(&charts(args, lock, &device, processors, &all))?;

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

/// Where it is measured.
enum Place<'a> {
    /// With the library, which formats the device, and makes the journal of `--journal` anew, if there is one. The
    /// first time that has to be empty, unless this is set.
    Device(Target, Cell<bool>),
    /// With the library, on a volume that is there.
    Formatted(Target),
    /// By system calls.
    Directory(&'a Path),
}

impl Place<'_> {
    fn new(args: &FxmarkArgs) -> Result<Place<'_>, CliError> {
        let journal = medium::journal_path().is_some();
        if args.target.force && args.target.image.is_none() && !journal {
            return Err(CliError::usage("--force overwrites what --image or --journal names"));
        }
        match &args.directory {
            Some(_) if journal => Err(CliError::usage("the file system of --directory takes no --journal")),
            Some(directory) => Ok(Place::Directory(directory)),
            None if args.formatted && journal => {
                Err(CliError::usage("--formatted leaves the volume as it is; the journal of --journal is made anew"))
            }
            None if args.formatted => Ok(Place::Formatted(Target::new(&args.target)?)),
            None => Ok(Place::Device(Target::new(&args.target)?, Cell::new(args.target.force))),
        }
    }

    fn describe(&self) -> Result<String, CliError> {
        match self {
            Place::Device(target, _) => {
                Ok(format!("{}{}", target.describe()?, medium::journal_shown().unwrap_or_default()))
            }
            Place::Formatted(target) => target.describe(),
            Place::Directory(directory) => Ok(format!("directory {}", Quoted::path(directory))),
        }
    }

    /// A volume that is there is new only once.
    fn warms_up(&self) -> bool {
        !matches!(self, Place::Formatted(_))
    }

    fn measure(&self, setting: &Setting, watch: &Watch) -> Result<Measured, CliError> {
        let measured = match self {
            Place::Device(target, is_ours) => {
                // Before the image is made, or loses its content.
                let journal = medium::journal(target.path(), Access::Write)?;
                let device = target.open()?;
                match journal {
                    Some(journal) => fxmark::run_journaled(device, journal, is_ours.replace(true), setting, watch),
                    None => fxmark::run(device, setting, watch),
                }
            }
            Place::Formatted(target) => fxmark::run_formatted(target.open()?, setting, watch),
            Place::Directory(directory) => fxmark::run_in_directory(directory, setting, watch),
        };
        measured.map_err(|error| {
            let Setting { workload, policy, threads, .. } = setting;
            let policy = if let Place::Directory(_) = self { "directory".to_owned() } else { policy.to_string() };
            CliError::new(format_args!("{workload}, {policy}, {threads} threads: {error}"))
        })
    }
}

/// The policies to measure, one where a directory is measured.
fn policies(args: &FxmarkArgs) -> &[Policy] {
    if args.directory.is_some() { &args.policy[..1] } else { &args.policy }
}

/// Policies innermost, so that policies are compared by measurements close together.
fn settings(args: &FxmarkArgs) -> Vec<Setting> {
    let mut settings = Vec::new();
    for workload in &args.workload {
        for threads in &args.threads.threads {
            settings.extend(policies(args).iter().map(|policy| Setting {
                policy: *policy,
                directory_lock: args.directory_lock.into(),
                threads: usize::from(*threads),
                files: args.files,
                free_nids: args.free_nids,
                page_cache: medium::page_cache(),
                verify: args.verify,
                ..Setting::new(*workload)
            }));
        }
    }
    settings
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
        let Setting { workload, threads, .. } = &measured.setting;
        table.add_row([
            workload.to_string(),
            measured.policy(),
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
    let Setting { workload, threads, .. } = &measured.setting;
    json!({
        "workload": workload.to_string(),
        "policy": measured.policy(),
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
        for policy in policies(args) {
            let name = if args.directory.is_some() { "directory".to_owned() } else { policy.to_string() };
            chart.line(name, points(all, *workload, *policy));
        }
        chart
    };
    args.workload.iter().map(chart).collect()
}

fn points(all: &[Measured], workload: Workload, policy: Policy) -> Vec<(f64, f64)> {
    let of = |measured: &&Measured| measured.setting.workload == workload && measured.setting.policy == policy;
    all.iter().filter(of).map(|measured| (measured.setting.threads as f64, measured.rate())).collect()
}
