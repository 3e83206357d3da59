//! `trials`: what `cargo xtask crash` runs.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | everything is as it must be |
//! | 1 | something is not: it is printed, with the way to see it again |
//! | 2 | the command line is wrong |
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use f2fs_device::{Cut, CutPlan};
use f2fs_trials::campaign::{self, Bases, Class, Fault, Outcome, Settings};
use f2fs_trials::explore::Plan;
use f2fs_trials::faults;
use f2fs_trials::mutants::MUTANTS;
use f2fs_trials::workload::Workload;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

/// Crashes volumes at every point, and looks at what is left.
#[derive(Debug, Parser)]
#[command(name = "trials")]
struct Arguments {
    /// Classes of workloads, separated by commas.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Class::USUAL)]
    classes: Vec<Class>,
    /// Distinct states to look at, about.
    #[arg(long, default_value_t = 120_000)]
    states: u64,
    /// Where chance begins.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Threads; 0: as many as processors.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// All states of the enumerated workloads.
    #[arg(long)]
    exhaustive: bool,
    /// Every subset of so many outstanding requests at most.
    #[arg(long, default_value_t = 12)]
    subsets: usize,
    /// One in so many states is crashed again during recovery.
    #[arg(long, default_value_t = 24)]
    again: usize,
    /// One in so many states is given to fsck.f2fs (0: none).
    #[arg(long, default_value_t = 2000)]
    fsck: usize,
    /// Only this workload.
    #[arg(long)]
    workload: Option<Workload>,
    /// Only this state of the workload; once more for each crash during recovery.
    #[arg(long)]
    cut: Vec<Cut>,
    /// Where bad states are kept.
    #[arg(long, default_value = "target/crash")]
    keep: std::path::PathBuf,
    /// For programs.
    #[arg(long)]
    json: bool,
    /// Fail every request of a workload in every way, instead of crashing.
    #[arg(long)]
    faults: bool,
    /// With --faults: only every so many-th request.
    #[arg(long, default_value_t = 1)]
    sample: u64,
    /// Print the names of the mutants with the classes that find them, and do nothing.
    #[arg(long)]
    list_mutants: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("trials: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if arguments.list_mutants {
        for (name, what, class) in MUTANTS {
            println!("{name}\t{}\t{what}", class.name());
        }
        return Ok(true);
    }
    let cuts = CutPlan { exhaustive: arguments.subsets, ..CutPlan::default() };
    let settings = Settings {
        classes: arguments.classes.clone(),
        states: arguments.states,
        seed: arguments.seed,
        plan: Plan {
            cuts,
            quota: 0,
            again: arguments.again.max(1),
            again_quota: 12,
            fsck: arguments.fsck,
            whole: false,
        },
        exhaustive: arguments.exhaustive,
        limit: arguments.seconds.map(Duration::from_secs),
        threads: arguments.threads,
        keep: arguments.keep.clone(),
    };
    let bases = Bases::new().context("the base volumes cannot be made")?;
    // A panic is a finding like any other; where it happened is worth a line.
    std::panic::set_hook(Box::new(|info| eprintln!("panic: {info}")));
    if arguments.faults {
        return run_faults(arguments, &bases);
    }
    let outcome = if let Some(workload) = &arguments.workload {
        let mut outcome = Outcome::default();
        match campaign::repeat(&bases, workload, &arguments.cut, &settings) {
            Ok(tally) => drop(outcome.tallies.insert(Class::Random, tally)),
            Err(fault) => outcome.faults.push(fault),
        }
        outcome
    } else {
        let bar = bar();
        let outcome = campaign::run(&bases, &settings, &|done, all, states| {
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(format!("{states} states"));
        });
        bar.finish_and_clear();
        outcome
    };
    if arguments.json {
        print_json(&outcome, arguments.seed);
    } else {
        print(&outcome, arguments.seed);
    }
    Ok(outcome.faults.is_empty())
}

fn run_faults(arguments: &Arguments, bases: &Bases) -> anyhow::Result<bool> {
    let bar = bar();
    let base = bases.get(faults::BASE);
    let matrix = faults::run(base, arguments.seed, arguments.sample, arguments.threads, &|done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    let broken = matrix.broken.iter().take(20);
    if arguments.json {
        let rows: Vec<_> = matrix
            .rows
            .iter()
            .map(|(way, row)| {
                json!({
                    "fault": way.name(), "runs": row.runs, "surfaced": row.surfaced, "absorbed": row.absorbed,
                    "stopped": row.stopped, "damaged": row.damaged, "refused": row.refused,
                })
            })
            .collect();
        let broken: Vec<_> = broken
            .map(|broken| json!({ "fault": broken.way.name(), "index": broken.index, "what": broken.what }))
            .collect();
        let value = json!({
            "requests": matrix.requests, "reads": matrix.kinds.0, "writes": matrix.kinds.1,
            "flushes": matrix.kinds.2, "rows": rows, "broken": broken, "seconds": matrix.took.as_secs_f64(),
        });
        println!("{value:#}");
    } else {
        let (reads, writes, flushes) = matrix.kinds;
        println!("{} requests: {reads} reads, {writes} writes, {flushes} flushes", matrix.requests);
        println!("fault                  runs  surfaced  absorbed  stopped  damaged  refused");
        for (way, row) in &matrix.rows {
            println!(
                "{:<20} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8}",
                way.name(),
                row.runs,
                row.surfaced,
                row.absorbed,
                row.stopped,
                row.damaged,
                row.refused
            );
        }
        for broken in broken {
            println!("BROKEN: {} at request {}: {}", broken.way.name(), broken.index, broken.what);
        }
        println!("{} broken promises, {:.1} s", matrix.broken.len(), matrix.took.as_secs_f64());
    }
    Ok(matrix.broken.is_empty())
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("workloads [{bar:40}] {pos}/{len} {msg} {eta}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn again(fault: &Fault) -> String {
    let cuts: String = fault.cuts.iter().map(|cut| format!(" --cut {cut}")).collect();
    format!("cargo xtask crash -- --workload '{}'{cuts}", fault.workload)
}

fn print(outcome: &Outcome, seed: u64) {
    let row = |name: &str, tally: &f2fs_trials::explore::Tally| {
        println!(
            "{name:<8} {:>9} {:>8} {:>10} {:>9} {:>8} {:>8} {:>6}",
            tally.workloads, tally.epochs, tally.cuts, tally.states, tally.torn, tally.again, tally.fsck
        );
    };
    println!("class    workloads   epochs       cuts    states     torn    again   fsck");
    for (class, tally) in &outcome.tallies {
        row(class.name(), tally);
    }
    row("all", &outcome.total());
    let seconds = outcome.took.as_secs_f64();
    if seconds > 0.0 {
        println!(
            "seed {seed}, {seconds:.1} s, {:.0} states/s{}",
            outcome.total().states as f64 / seconds,
            if outcome.cut_short { ", stopped at its limit of time" } else { "" }
        );
    }
    for fault in &outcome.faults {
        println!("\nVIOLATION in `{}`\n  {}", fault.workload, fault.what);
        if let Some(image) = &fault.image {
            println!("  the state: {}", image.display());
        }
        println!("  again: {}", again(fault));
    }
    println!("{} violations", outcome.faults.len());
}

fn print_json(outcome: &Outcome, seed: u64) {
    let tally = |tally: &f2fs_trials::explore::Tally| {
        json!({
            "workloads": tally.workloads, "epochs": tally.epochs, "cuts": tally.cuts, "states": tally.states,
            "torn": tally.torn, "again": tally.again, "fsck": tally.fsck, "duplicates": tally.duplicates,
        })
    };
    let classes: serde_json::Map<String, serde_json::Value> =
        outcome.tallies.iter().map(|(class, counts)| (class.name().to_owned(), tally(counts))).collect();
    let faults: Vec<_> = outcome
        .faults
        .iter()
        .map(|fault| {
            json!({
                "workload": fault.workload, "cuts": fault.cuts, "what": fault.what, "image": fault.image,
                "again": again(fault),
            })
        })
        .collect();
    let value = json!({
        "seed": seed, "seconds": outcome.took.as_secs_f64(), "cut_short": outcome.cut_short,
        "total": tally(&outcome.total()), "classes": classes, "violations": faults,
    });
    println!("{value:#}");
}
