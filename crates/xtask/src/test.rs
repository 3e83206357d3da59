//! `cargo xtask test`: everything that the project promises, checked in order of increasing cost.
//!
//! Tests are built as cargo builds them by default, optimised a little: building all of the workspace so takes four fifths
//! of the processor time that full optimisation takes, this program's own dependencies are shared, and the tests spend
//! theirs in other programs and in the kernel.

use std::time::{Duration, Instant};

use anyhow::bail;
use clap::ValueEnum;

use crate::{Result, chore, lint, process, tools};

/// Options of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only these steps.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<Step>,
    /// Leave these steps out.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    skip: Vec<Step>,
    /// Go on after a step that failed.
    #[arg(long)]
    keep_going: bool,
}

/// The steps, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// The programs that the steps need are there, or get installed.
    Tools,
    /// The formatting.
    Fmt,
    /// Clippy, with warnings denied.
    Clippy,
    /// The documentation builds without warnings.
    Doc,
    /// Unit, integration, property and interoperability tests (mkfs.f2fs and fsck.f2fs are the judges).
    Tests,
    /// The documentation's examples.
    Doctests,
    /// The loom models and their mutants.
    Loom,
    /// The larger scenarios under random schedules, and their mutants.
    Shuttle,
    /// The cache lines that operations write.
    Counting,
    /// The examples run: the quickstart, as the README has it.
    Examples,
    /// 100,000 crash states, or as many as two minutes allow, and the faults in the sources that these must show.
    Crash,
    /// The fuzz targets, three seconds each.
    Fuzz,
    /// The Linux kernel is the judge, of trees of medium size.
    Guest,
}

impl Step {
    fn run(self) -> Result<()> {
        match self {
            Step::Tools => tools::require(tools::FOR_TESTS),
            Step::Fmt => lint::format(),
            Step::Clippy => lint::clippy(),
            Step::Doc => lint::documentation(),
            Step::Tests => {
                let all = ["--workspace", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"];
                process::run(process::cargo(["test"]).args(all))
            }
            Step::Doctests => process::run(&mut process::cargo(["test", "--workspace", "--doc"])),
            Step::Loom => chore(&["loom"]),
            Step::Shuttle => chore(&["shuttle"]),
            Step::Counting => chore(&["counting"]),
            Step::Examples => process::run(&mut process::cargo(["run", "--release", "--example", "quickstart"])),
            Step::Crash => {
                chore(&["crash", "--", "--states", "100000", "--seconds", "120"])?;
                chore(&["crash", "--mutants"])
            }
            Step::Fuzz => chore(&["fuzz", "--quick", "--seconds", "3"]),
            Step::Guest => chore(&["guest", "--quick"]),
        }
    }
}

/// How a step went.
enum End {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

/// Runs the steps.
///
/// # Errors
///
/// If a step fails.
pub(crate) fn run(args: &Args) -> Result<()> {
    let start = Instant::now();
    let mut ends = Vec::new();
    let mut failed = Vec::new();
    for &step in Step::value_variants() {
        if args.skip.contains(&step) || !(args.only.is_empty() || args.only.contains(&step)) {
            continue;
        }
        if !failed.is_empty() && !args.keep_going {
            ends.push((step, End::NotRun));
            continue;
        }
        println!("\n=== {} ===", name(step));
        let start = Instant::now();
        match step.run() {
            Ok(()) => ends.push((step, End::Passed(start.elapsed()))),
            Err(error) => {
                eprintln!("{}: {error:#}", name(step));
                ends.push((step, End::Failed(start.elapsed())));
                failed.push(name(step));
            }
        }
    }

    println!("\n=== summary ===");
    for (step, end) in &ends {
        match end {
            End::Passed(took) => println!("{:<9} {:>7.1} s  passed", name(*step), took.as_secs_f64()),
            End::Failed(took) => println!("{:<9} {:>7.1} s  FAILED", name(*step), took.as_secs_f64()),
            End::NotRun => println!("{:<9} {:>7}    not run", name(*step), ""),
        }
    }
    println!("{:<9} {:>7.1} s", "all", start.elapsed().as_secs_f64());
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// A step's name on the command line.
fn name(step: Step) -> String {
    step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
