//! `cargo xtask crash`: crash states and injected faults, by the crate `f2fs-trials`.
//!
//! Options behind `--` go to its program: `cargo xtask crash -- --states 10000000 --diary FILE` goes on
//! where it ended the last time, `-- --help` tells the rest.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::{Result, as_tested, built, process};

/// States of each search for a mutant, at most.
const SEARCH: &str = "12000";
/// Options of storms: their volumes wait for their devices most of the time.
const STORM: [&str; 4] = ["--threads", "8", "--fsck", "10"];
/// How long a mutant may take to be found.
const LIMIT: Duration = Duration::from_secs(300);

/// Options of `cargo xtask crash`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fail each request of a workload in turn, instead of cutting the power.
    #[arg(long, conflicts_with = "mutants")]
    faults: bool,
    /// Run the mutants. Each of them must be found.
    #[arg(long)]
    mutants: bool,
    /// Options of the explorer; `cargo xtask crash -- --help` lists them.
    #[arg(last = true)]
    options: Vec<String>,
}

/// Packages with mutants that tests of their own find, and those tests.
const BESIDE_TESTS: [(&str, &str); 5] = [
    ("f2fs-journal", "lines"),
    ("f2fs-segment", "opening"),
    ("f2fs-files", "full"),
    ("f2fs-files", "page_cache"),
    ("f2fs-files", "journal"),
];

/// Runs the explorer, the matrix of faults, or the search for the mutants.
///
/// # Errors
///
/// If it does not build, finds something, or a mutant is not found.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.mutants {
        // A program with a name of its own, so that nobody runs the switches by mistake.
        let program = built::release("f2fs-trials", "trials-mutants", &["--features", "mutants"])?;
        find_mutants(&program, &args.options)?;
        // The others stand beside the tests that find them.
        let mut command = process::cargo(["test"]);
        for (package, test) in BESIDE_TESTS {
            command.args(["--package", package, "--features", &format!("{package}/mutants"), "--test", test]);
        }
        process::run(command.args(["mutants_are_found", "--", "--nocapture"]))?;
        let mut within = process::cargo(["test", "--package", "f2fs-uring", "--features", "mutants", "--lib"]);
        return process::run(within.args(["mutants_are_found", "--", "--nocapture"]));
    }
    let mut command = Command::new(built::release("f2fs-trials", "trials", &[])?);
    command.current_dir(process::root()).args(args.faults.then_some("--faults")).args(&args.options);
    process::run(&mut command)
}

/// What the test of everything does: 100,000 states, or as many as half a minute allows, storms for a quarter of a
/// minute, and the mutants, by programs
/// that are built as the tests are. The mutants that tests find are found by the tests.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn as_tested() -> Result<()> {
    let mut command = Command::new(as_tested::build("bin", "trials")?);
    process::run(command.current_dir(process::root()).args(["--states", "100000", "--seconds", "30"]))?;
    let mut command = Command::new(as_tested::build("bin", "trials")?);
    process::run(command.current_dir(process::root()).args(["--storm", "1000", "--seconds", "15"]).args(STORM))?;
    find_mutants(&as_tested::build("bin", "trials-mutants")?, &[])
}

fn find_mutants(program: &Path, options: &[String]) -> Result<()> {
    let list = process::output(Command::new(program).arg("--list-mutants"))?;
    let mut survivors = Vec::new();
    for line in String::from_utf8_lossy(&list).lines() {
        let mut words = line.split('\t');
        let (Some(name), Some(class), Some(what)) = (words.next(), words.next(), words.next()) else {
            bail!("a mutant is listed as `{line}`");
        };
        let begun = Instant::now();
        let mut command = Command::new(program);
        command.current_dir(process::root()).env("F2FS_MUTANT", name).arg("--json");
        if class == "lines" {
            command.arg("--lines");
        } else if class == "storm" {
            command.args(["--storm", "1000", "--enough", "1"]).args(STORM);
        } else if class == "joint" {
            command.args(["--joint", "--states", SEARCH]);
        } else {
            // One workload that shows it is enough.
            command.args(["--classes", class, "--states", SEARCH, "--fsck", "0", "--enough", "1"]).args(options);
        }
        let outcome = process::capture(&mut command, LIMIT)?;
        let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let found = report["violations"].as_array().is_some_and(|all| !all.is_empty());
        let verdict = if found { "found" } else { "NOT FOUND" };
        let states = report["total"]["states"].as_u64().unwrap_or(0);
        println!("{name:<32} {verdict} after {states} states, {:.1} s: {what}", begun.elapsed().as_secs_f64());
        if !found {
            survivors.push(name.to_owned());
        }
    }
    if survivors.is_empty() { Ok(()) } else { bail!("not found: {}", survivors.join(", ")) }
}
