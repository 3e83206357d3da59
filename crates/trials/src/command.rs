//! The command line of `trials`.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | everything is as it must be |
//! | 1 | something is not: it is printed, with the way to see it again |
//! | 2 | the command line is wrong |

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use f2fs_device_test::{Cut, CutPlan};
use indicatif::{ProgressBar, ProgressStyle};

use crate::campaign::{self, Bases, Class, Diary, Outcome, Settings};
use crate::explore::Plan;
use crate::faults;
use crate::joint::{self, JointPlan};
use crate::lines::{LinePlan, WORKLOADS, explore_workload};
use crate::mutants::{MUTANTS, OF_JOINT, OF_LINES, OF_STORM};
use crate::report;
use crate::storm::{self, StormPlan, StormTally};
use crate::workload::Workload;

/// Cut the power at every point of many workloads, and check what is left on the device.
#[derive(Debug, Parser)]
#[command(name = "trials")]
struct Arguments {
    /// Classes of workloads, separated by commas.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Class::USUAL)]
    classes: Vec<Class>,
    /// Number of distinct states to check, at least.
    #[arg(long, default_value_t = 100_000)]
    states: u64,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// End after so many violations. A workload counts once.
    #[arg(long, default_value_t = 5, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    enough: usize,
    /// Number of threads; 0: one for each processor.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Check all states of the enumerated workloads.
    #[arg(long)]
    exhaustive: bool,
    /// Try every subset of the unflushed requests if there are at most so many.
    #[arg(long, default_value_t = 12)]
    subsets: usize,
    /// Use one in so many states: change files, close the volume, and check it again.
    #[arg(long, default_value_t = 4)]
    used: usize,
    /// Cut the power again in one in so many of the states that are used, in their recovery and use.
    #[arg(long, default_value_t = 6)]
    again: usize,
    /// Run fsck.f2fs on one in so many of the states that are used (0: none).
    #[arg(long, default_value_t = 500)]
    fsck: usize,
    /// Run only this workload.
    #[arg(long)]
    workload: Option<Workload>,
    /// Check only this state of the workload. Give it again for each cut during recovery.
    #[arg(long)]
    cut: Vec<Cut>,
    /// With --workload: print its operations, and do not crash it.
    #[arg(long, requires = "workload")]
    steps: bool,
    /// Go on where the campaigns of this diary ended. It is written every five minutes and at the end.
    #[arg(long, value_name = "FILE")]
    diary: Option<std::path::PathBuf>,
    /// The directory for images of bad states.
    #[arg(long, default_value = "target/crash")]
    keep: std::path::PathBuf,
    /// Print JSON, for programs.
    #[arg(long)]
    json: bool,
    /// Fail every request of a workload in every way, instead of cutting the power.
    #[arg(long)]
    faults: bool,
    /// With --faults: a volume with a journal on a device of its own, and the requests of both.
    #[arg(long, requires = "faults")]
    journaled: bool,
    /// With --faults: fail one in so many requests.
    #[arg(long, default_value_t = 1)]
    sample: u64,
    /// With --faults: fail only this request, EPISODE:INDEX.
    #[arg(long, value_parser = request)]
    request: Option<(usize, u64)>,
    /// Cut the power of persistent memory, which loses words of 8 bytes, instead of a disk. `--states` and most other
    /// options have no effect then.
    #[arg(long)]
    lines: bool,
    /// Check joint states of a volume and of its journal in persistent memory. Only `--states`, `--seed` and
    /// `--threads` have an effect then.
    #[arg(long)]
    joint: bool,
    /// So many volumes, each with threads on a device that is late, completes in any order and fails by chance, until its
    /// power goes. Only `--seed`, `--seconds`, `--threads`, `--enough` and `--fsck` have an effect then; volumes with a
    /// later seed follow.
    #[arg(long, value_name = "VOLUMES", conflicts_with_all = ["lines", "joint", "faults", "workload"])]
    storm: Option<u64>,
    /// Print the names of the mutants with the classes that find them, and do nothing.
    #[arg(long)]
    list_mutants: bool,
}

fn request(text: &str) -> Result<(usize, u64), String> {
    let (episode, index) = text.split_once(':').ok_or("EPISODE:INDEX is expected")?;
    let number = |error: std::num::ParseIntError| error.to_string();
    Ok((episode.parse().map_err(number)?, index.parse().map_err(number)?))
}

/// Does what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("trials: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Explores the workloads by lines; says whether all states were as they must be.
fn run_lines(json: bool) -> bool {
    let plan = LinePlan { draws: 24, every: 1, used: 20 };
    let (mut states, mut torn, mut violations) = (0, 0, Vec::new());
    for text in WORKLOADS {
        match explore_workload(text, plan) {
            Ok(tally) => (states, torn) = (states + tally.states, torn + tally.torn),
            Err(violation) => violations.push(violation),
        }
    }
    if json {
        println!("{}", serde_json::json!({ "total": { "states": states, "torn": torn }, "violations": violations }));
    } else {
        violations.iter().for_each(|violation| println!("{violation}"));
        println!("{states} states by lines, {torn} of them torn, {} violations", violations.len());
    }
    violations.is_empty()
}

/// Explores joint states; says whether all were as they must be.
fn run_joint(arguments: &Arguments) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let plan = JointPlan { draws: 6, used: 20 };
    let (tally, violations) =
        joint::campaign(arguments.states, arguments.seed, arguments.threads, plan).map_err(anyhow::Error::msg)?;
    let joint::JointTally { moments, within, states, both, used } = tally;
    if arguments.json {
        let total = serde_json::json!({
            "states": states, "moments": moments, "within": within, "both": both, "used": used,
        });
        println!("{}", serde_json::json!({ "total": total, "violations": violations }));
    } else {
        violations.iter().for_each(|violation| println!("{violation}"));
        println!(
            "{states} joint states at {moments} moments ({within} within a write to the journal), {both} of them with both uncertain, {used} \
             used, {} violations, {:.1} s",
            violations.len(),
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(violations.is_empty())
}

/// Runs storms; says whether all promises were kept.
fn run_storms(volumes: u64, arguments: &Arguments) -> bool {
    let begun = Instant::now();
    let plan = StormPlan {
        seed: arguments.seed,
        volumes,
        until: arguments.seconds.map(|seconds| begun + Duration::from_secs(seconds)),
        threads: arguments.threads,
        fsck: arguments.fsck as u64,
    };
    let hangs = |storm: &str| {
        println!("hangs: {storm}");
        std::process::exit(1);
    };
    let (tally, violations) = storm::run(plan, arguments.enough, &hangs);
    let StormTally { volumes, operations: [done, refused], syncs, faults, closed, journals_lost } = tally;
    if arguments.json {
        let total = serde_json::json!({
            "states": volumes, "operations": done, "refused": refused, "syncs": syncs, "faults": faults,
            "closed": closed, "journals_lost": journals_lost,
        });
        println!("{}", serde_json::json!({ "total": total, "violations": violations }));
    } else {
        violations.iter().for_each(|violation| println!("{violation}"));
        println!(
            "{volumes} volumes, {closed} of them closed: {done} operations and {refused} refused ones, {syncs} syncs, {faults} faults, \
             {journals_lost} journals lost with their devices, {} violations, {:.1} s",
            violations.len(),
            begun.elapsed().as_secs_f64()
        );
    }
    violations.is_empty()
}

fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if arguments.list_mutants {
        for (name, what, class) in MUTANTS {
            println!("{name}\t{}\t{what}", class.name());
        }
        for (name, what) in OF_JOINT {
            println!("{name}\tjoint\t{what}");
        }
        for (name, what) in OF_LINES {
            println!("{name}\tlines\t{what}");
        }
        for (name, what) in OF_STORM {
            println!("{name}\tstorm\t{what}");
        }
        return Ok(true);
    }
    if let Some(volumes) = arguments.storm {
        return Ok(run_storms(volumes, arguments));
    }
    if arguments.joint {
        return run_joint(arguments);
    }
    if arguments.lines {
        return Ok(run_lines(arguments.json));
    }
    let cuts = CutPlan { exhaustive: arguments.subsets, ..CutPlan::default() };
    let settings = Settings {
        classes: arguments.classes.clone(),
        states: arguments.states,
        seed: arguments.seed,
        plan: Plan {
            cuts,
            quota: 0,
            used: arguments.used.max(1),
            again: arguments.again.max(1),
            again_quota: 12,
            fsck: arguments.fsck,
            whole: false,
            endured: 0,
        },
        exhaustive: arguments.exhaustive,
        limit: arguments.seconds.map(Duration::from_secs),
        enough: arguments.enough,
        threads: arguments.threads,
        keep: arguments.keep.clone(),
    };
    let bases = Bases::new().context("the base volumes cannot be made")?;
    // A panic is a finding like any other; where it happened is worth a line.
    std::panic::set_hook(Box::new(|info| eprintln!("panic: {info}")));
    if arguments.faults {
        return run_faults(arguments, &bases);
    }
    if let Some(workload) = arguments.workload.as_ref().filter(|_| arguments.steps) {
        print!("{}", workload.run(bases.get(workload.base()))?);
        return Ok(true);
    }
    let outcome = if let Some(workload) = &arguments.workload {
        let mut outcome = Outcome { threads: 1, ..Outcome::default() };
        match campaign::repeat(&bases, workload, &arguments.cut, &settings) {
            Ok(tally) => drop(outcome.tallies.insert(Class::Random, tally)),
            Err(fault) => outcome.faults.push(fault),
        }
        outcome
    } else {
        let diary = arguments.diary.as_deref().map(Diary::open).transpose()?.unwrap_or_default();
        let bar = bar();
        let progress = |done, all, states| {
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(format!("{states} distinct states"));
        };
        let hangs = |outcome: &Outcome| {
            bar.finish_and_clear();
            report_on(outcome, arguments);
            // The thread that hangs cannot be ended by itself.
            std::process::exit(1);
        };
        let outcome = campaign::run(&bases, &settings, &diary, &progress, &hangs)?;
        bar.finish_and_clear();
        outcome
    };
    report_on(&outcome, arguments);
    Ok(outcome.faults.is_empty())
}

fn report_on(outcome: &Outcome, arguments: &Arguments) {
    if arguments.json {
        println!("{:#}", report::campaign_json(outcome, arguments.seed));
    } else {
        report::campaign(outcome, arguments.seed);
    }
}

fn run_faults(arguments: &Arguments, bases: &Bases) -> anyhow::Result<bool> {
    let bar = bar();
    let settings = faults::Settings {
        seed: arguments.seed,
        sample: arguments.sample,
        only: arguments.request,
        threads: arguments.threads,
    };
    let base = if arguments.journaled { faults::JOURNALED } else { faults::BASE };
    let matrix = faults::run(bases.get(base), &settings, &|done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    if arguments.json {
        println!("{:#}", report::matrix_json(&matrix));
    } else {
        report::matrix(&matrix);
    }
    Ok(matrix.broken.is_empty())
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("[{bar:40}] {pos}/{len} {msg} {eta}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
