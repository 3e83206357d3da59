//! The command line of `trials`.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | everything is as it must be |
//! | 1 | something is not: it is printed, with the way to see it again |
//! | 2 | the command line is wrong |

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use f2fs_device_test::{Cut, CutPlan};
use indicatif::{ProgressBar, ProgressStyle};

use crate::campaign::{self, Bases, Class, Diary, Outcome, Settings};
use crate::explore::Plan;
use crate::faults;
use crate::joint::{self, JointPlan};
use crate::lines::{LinePlan, WORKLOADS, explore_workload};
use crate::mutants::{MUTANTS, OF_JOINT, OF_LINES};
use crate::report;
use crate::workload::Workload;

/// Crashes volumes at every point, and looks at what is left.
#[derive(Debug, Parser)]
#[command(name = "trials")]
struct Arguments {
    /// Classes of workloads, separated by commas.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Class::USUAL)]
    classes: Vec<Class>,
    /// Distinct states to look at, at least.
    #[arg(long, default_value_t = 100_000)]
    states: u64,
    /// Where chance begins.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// End after so many violations, one for each workload at most.
    #[arg(long, default_value_t = 5, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    enough: usize,
    /// Threads; 0: as many as processors.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// All states of the enumerated workloads.
    #[arg(long)]
    exhaustive: bool,
    /// Every subset of so many outstanding requests at most.
    #[arg(long, default_value_t = 12)]
    subsets: usize,
    /// One in so many states is used and looked at again.
    #[arg(long, default_value_t = 4)]
    used: usize,
    /// One in so many of those that are used is crashed again, in its recovery and its use.
    #[arg(long, default_value_t = 6)]
    again: usize,
    /// One in so many of those that are used is given to fsck.f2fs (0: none).
    #[arg(long, default_value_t = 500)]
    fsck: usize,
    /// Only this workload.
    #[arg(long)]
    workload: Option<Workload>,
    /// Only this state of the workload; once more for each crash during recovery.
    #[arg(long)]
    cut: Vec<Cut>,
    /// With --workload: print what it does, and do not crash it.
    #[arg(long, requires = "workload")]
    steps: bool,
    /// Go on where the campaigns of this diary ended, and write it, every five minutes and at the end.
    #[arg(long, value_name = "FILE")]
    diary: Option<std::path::PathBuf>,
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
    /// With --faults: only this request, EPISODE:INDEX.
    #[arg(long, value_parser = request)]
    request: Option<(usize, u64)>,
    /// Instead of crashes that lose sectors: those on persistent memory, which lose words of 8 bytes; `--states` and
    /// other options have no meaning here.
    #[arg(long)]
    lines: bool,
    /// Instead: joint states of a volume and of its journal in persistent memory, which loses words; `--states`,
    /// `--seed` and `--threads` have their meaning.
    #[arg(long)]
    joint: bool,
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
    let begun = std::time::Instant::now();
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
        return Ok(true);
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
        print!("{}", report::steps(&workload.run(bases.get(workload.base()))?));
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
        let outcome = campaign::run(&bases, &settings, &diary, &|done, all, states| {
            bar.set_length(all);
            bar.set_position(done);
            bar.set_message(format!("{states} distinct states"));
        })?;
        bar.finish_and_clear();
        outcome
    };
    if arguments.json {
        println!("{:#}", report::campaign_json(&outcome, arguments.seed));
    } else {
        report::campaign(&outcome, arguments.seed);
    }
    Ok(outcome.faults.is_empty())
}

fn run_faults(arguments: &Arguments, bases: &Bases) -> anyhow::Result<bool> {
    let bar = bar();
    let settings = faults::Settings {
        seed: arguments.seed,
        sample: arguments.sample,
        only: arguments.request,
        threads: arguments.threads,
    };
    let matrix = faults::run(bases.get(faults::BASE), &settings, &|done, all| {
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
