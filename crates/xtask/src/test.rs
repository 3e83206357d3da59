//! `cargo xtask test`: everything that the project promises, checked in order of increasing cost.
//!
//! Tests are built as cargo builds them by default, optimised a little: building all of the workspace so takes four
//! fifths of the processor time that full optimisation takes, this program's own dependencies are shared, and the tests
//! spend theirs in other programs and in the kernel.
//!
//! ```text
//!   tools ── fmt ── clippy ── doc ── tests ── doctests ── examples ── crash ──────────────── guest
//!                └─ loom ── shuttle ── counting ── fuzz ── package ── prepare ─┘      beside the others
//! ```
//!
//! The models, the counting half, the fuzz targets and the packages have target directories of their own, and compilers
//! seldom keep all processors busy: so those steps run beside the others, and their output is printed when they have
//! ended.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::ValueEnum;

use crate::{Result, Usage, as_tested, chore, crash, lint, process, tools};

/// This program, by a link that stays. The path that it was started by does not do: the tests of the workspace may
/// build it again, with other features, and replace the file there.
const SELF: &str = "/proc/self/exe";

/// Options of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only these steps.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    only: Vec<Step>,
    /// Leave out these steps.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    skip: Vec<Step>,
    /// Go on after a step that failed.
    #[arg(long)]
    keep_going: bool,
    /// Run one step after the other. Otherwise some run at the same time.
    #[arg(long)]
    in_turn: bool,
}

/// Lines that a step printed last, shown again behind the summary if it failed: those who read a part of a long output
/// read its end.
const LAST_LINES: usize = 30;

/// How long a step may take that runs at the same time as others.
const LIMIT: Duration = Duration::from_secs(3600);

/// The steps, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Step {
    /// Find the programs that the steps need, or install them.
    Tools,
    /// Check the formatting.
    Fmt,
    /// Run clippy, with warnings denied.
    Clippy,
    /// Build the documentation, with warnings denied.
    Doc,
    /// Run unit, integration and property tests, and those that compare with mkfs.f2fs and fsck.f2fs; some of them
    /// again as on machines with one processor and with many.
    Tests,
    /// Run the examples in the documentation.
    Doctests,
    /// Run the loom models, with four preemptions at most, and their mutants.
    Loom,
    /// Run larger scenarios under random schedules, and their mutants.
    Shuttle,
    /// Count the cache lines that operations write.
    Counting,
    /// Run the quickstart of the README, built as the tests were.
    Examples,
    /// Check 100,000 crash states, or as many as half a minute allows, and the mutants that they must find; built as
    /// the tests were.
    Crash,
    /// Run the fuzz targets, one second each.
    Fuzz,
    /// Package each published crate and compile it from its package; compile `f2fs-format` without the standard library.
    Package,
    /// Fetch the guest's kernel.
    Prepare,
    /// Run the tests in the guest, whose Linux kernel is the judge, with small and medium trees, and with programs that
    /// are built as the tests were.
    Guest,
}

impl Step {
    fn run(self) -> Result<()> {
        match self {
            // `run` does it: which programs depends on the other steps.
            Step::Tools => Ok(()),
            Step::Fmt => lint::format(),
            Step::Clippy => lint::clippy(),
            Step::Doc => lint::documentation(),
            Step::Tests => {
                let all = ["--workspace", "--no-fail-fast", "--lib", "--bins", "--examples"];
                process::run(process::cargo(["test"]).args(all).args(as_tested::tests()?).args(as_tested::FEATURES))?;
                as_tested::run_with_processors(&all)
            }
            Step::Doctests => process::run(process::cargo(["test", "--workspace", "--doc"]).args(as_tested::FEATURES)),
            Step::Examples => process::run(&mut Command::new(as_tested::build("example", "quickstart")?)),
            Step::Crash => crash::as_tested(),
            Step::Guest => chore(&["guest", "--quick", "--as-tested"]),
            Step::Loom | Step::Shuttle | Step::Counting | Step::Fuzz | Step::Package | Step::Prepare => {
                chore(self.words())
            }
        }
    }

    /// The chore that a step is which has a target directory of its own; nothing for the others.
    fn words(self) -> &'static [&'static str] {
        match self {
            Step::Loom => &["loom", "--quick"],
            Step::Shuttle => &["shuttle"],
            Step::Counting => &["counting"],
            Step::Fuzz => &["fuzz", "--quick", "--seconds", "1"],
            Step::Package => &["package"],
            Step::Prepare => &["guest", "--prepare", "--as-tested"],
            _ => &[],
        }
    }

    /// The programs that the step needs.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Step::Tests | Step::Crash => tools::FOR_TESTS,
            Step::Fuzz => tools::FOR_FUZZ,
            Step::Prepare | Step::Guest => tools::FOR_GUEST,
            _ => &[],
        }
    }

    /// Runs the step as a program of its own, and prints its output when it has ended.
    fn run_beside(self) -> Result<()> {
        let mut command = Command::new(SELF);
        let outcome = process::capture(command.args(self.words()), LIMIT)?;
        // One call, so that nothing of another step comes between.
        print!("\n=== {}, beside the others ===\n{}{}", name(self), outcome.stderr, outcome.stdout);
        if !outcome.success {
            let how = if outcome.timed_out { "took too long" } else { "failed" };
            bail!("`{}` {how}:\n{}", process::shown(&command), last_lines(&outcome.stderr));
        }
        Ok(())
    }
}

/// What a step took.
#[derive(Debug, Clone, Copy)]
struct Took {
    wall: Duration,
    /// Of all processors, by the programs that ended during the step: more than its own where others ran beside it.
    processor: Duration,
}

/// How a step went.
enum End {
    Passed(Took),
    Failed(Took, String),
    NotRun,
}

/// Runs the steps.
///
/// # Errors
///
/// If a step fails.
pub(crate) fn run(args: &Args) -> Result<()> {
    let start = Instant::now();
    let chosen = |step: &Step| !args.skip.contains(step) && (args.only.is_empty() || args.only.contains(step));
    let all = Step::value_variants().iter().copied().filter(chosen);
    if all.clone().next().is_none() {
        bail!(Usage("no step is left: all that --only names are left out by --skip".to_owned()));
    }
    // Before all else: packages are installed by one program at a time.
    let needs: Vec<&str> = all.clone().flat_map(Step::needs).copied().collect();
    let here = |step: Step| {
        println!("\n=== {} ===", name(step));
        if step == Step::Tools { tools::require(&needs) } else { step.run() }
    };
    let comes_first = |step: &Step| matches!(step, Step::Tools | Step::Fmt);
    // With nothing beside them, their output is shown as it comes.
    let in_turn = args.in_turn || !all.clone().any(|step| step.words().is_empty() && !comes_first(&step));
    let (beside, others): (Vec<Step>, Vec<Step>) = all.partition(|step| !in_turn && !step.words().is_empty());
    let ends = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    let run_all = |steps: &[Step], run: &dyn Fn(Step) -> Result<()>| {
        for &step in steps {
            let end = if stop.load(Ordering::Relaxed) { End::NotRun } else { timed(step, run) };
            if matches!(end, End::Failed(..)) && !args.keep_going {
                stop.store(true, Ordering::Relaxed);
            }
            ends.lock().unwrap_or_else(PoisonError::into_inner).push((step, end));
        }
    };
    // Steps that all others need come first.
    let first = others.iter().take_while(|step| comes_first(step)).count();
    run_all(&others[..first], &here);
    // The guest has limits of time, and prints rates: it comes when all others have ended.
    let last = others.iter().position(|step| *step == Step::Guest).unwrap_or(others.len());
    thread::scope(|scope| {
        scope.spawn(|| run_all(&beside, &Step::run_beside));
        run_all(&others[first..last], &here);
    });
    run_all(&others[last..], &here);
    let mut ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    ends.sort_by_key(|(step, _)| *step);

    println!("\n=== summary ===");
    let line = |name: String, took: Took, how: &str| {
        let (wall, processor) = (took.wall.as_secs_f64(), took.processor.as_secs_f64());
        // Where steps run beside each other, only the sum tells something.
        let processor =
            if in_turn || how.is_empty() { format!("{processor:>8.1} s of processors") } else { String::new() };
        println!("{name:<9} {wall:>7.1} s {processor} {how}");
    };
    for (step, end) in &ends {
        match end {
            End::Passed(took) => line(name(*step), *took, "passed"),
            End::Failed(took, _) => line(name(*step), *took, "FAILED"),
            End::NotRun => println!("{:<9} {:>7}   not run", name(*step), ""),
        }
    }
    line("all".to_owned(), Took { wall: start.elapsed(), processor: process::processor_time()? }, "");
    let mut failed = Vec::new();
    for (step, end) in &ends {
        if let End::Failed(_, why) = end {
            println!("\n{}: {why}", name(*step));
            failed.push(name(*step));
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn timed(step: Step, run: &dyn Fn(Step) -> Result<()>) -> End {
    let (start, before) = (Instant::now(), process::processor_time().unwrap_or_default());
    let ended = run(step);
    let processor = process::processor_time().unwrap_or_default().saturating_sub(before);
    let took = Took { wall: start.elapsed(), processor };
    match ended {
        Ok(()) => End::Passed(took),
        Err(error) => {
            let why = format!("{error:#}");
            eprintln!("{}: {why}", name(step));
            End::Failed(took, why)
        }
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// A step's name on the command line.
fn name(step: Step) -> String {
    step.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::Step;

    #[test]
    fn documents_say_how_long_a_target_is_fuzzed() {
        assert!(Step::Fuzz.words().ends_with(&["--seconds", "1"]));
        for (document, says) in [
            (include_str!("../../../docs/TESTING.md"), "one second a target in the tests"),
            (include_str!("../../trials/RESULTS.md"), "one second of each is a step of the tests"),
        ] {
            let words: Vec<&str> = document.split_whitespace().collect();
            assert!(words.join(" ").contains(says), "{says}");
        }
    }
}
