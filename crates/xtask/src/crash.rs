//! `cargo xtask crash`: crash states and injected faults, by the crate `f2fs-trials`.
//!
//! What stands behind `--` goes to its program: `cargo xtask crash -- --states 1000000 --seed 7`, `-- --help`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::{Result, process};

/// States of the short part, and of each search for a mutant at most.
const SHORT: &str = "4000";
/// How long a mutant may take to be found.
const LIMIT: Duration = Duration::from_secs(300);

/// Options of `cargo xtask crash`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The mutants as well, each of which must be found.
    #[arg(long)]
    mutants: bool,
    /// A short part, with what the tests have built.
    #[arg(long)]
    short: bool,
    /// Options of the program that does it.
    #[arg(last = true)]
    options: Vec<String>,
}

/// Runs the explorer, and the mutants if they are wanted.
///
/// # Errors
///
/// If it does not build, finds something, or a mutant is not found.
pub(crate) fn run(args: &Args) -> Result<()> {
    let build = |features: bool| -> Result<std::path::PathBuf> {
        let mut command = process::cargo(["build", "--package", "f2fs-trials", "--bin", "trials"]);
        if !args.short {
            command.arg("--release");
        }
        let target = process::root().join("target").join(if features { "mutants" } else { "" });
        if features {
            // A directory of its own: other builds must not find the switches.
            command.args(["--features", "mutants", "--target-dir"]).arg(&target);
        }
        process::run(&mut command)?;
        Ok(target.join(if args.short { "debug" } else { "release" }).join("trials"))
    };
    let mut command = Command::new(build(false)?);
    command.current_dir(process::root()).args(&args.options);
    if args.short {
        command.args(["--states", SHORT, "--seconds", "60", "--fsck", "400"]);
    }
    process::run(&mut command)?;
    if args.mutants { find_mutants(&build(true)?) } else { Ok(()) }
}

fn find_mutants(program: &Path) -> Result<()> {
    let list = process::output(Command::new(program).arg("--list-mutants"))?;
    let mut survivors = Vec::new();
    for line in String::from_utf8_lossy(&list).lines() {
        let mut words = line.split('\t');
        let (Some(name), Some(class), Some(what)) = (words.next(), words.next(), words.next()) else {
            bail!("a mutant is listed as `{line}`");
        };
        let begun = Instant::now();
        let mut command = Command::new(program);
        command.current_dir(process::root()).env("F2FS_MUTANT", name).args(["--classes", class]);
        let outcome = process::capture(command.args(["--states", SHORT, "--fsck", "0", "--json"]), LIMIT)?;
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
