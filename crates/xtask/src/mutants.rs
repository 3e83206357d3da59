//! `cargo xtask mutants`: faults that a program makes in the sources, and whether tests notice them.
//!
//! The mutants of `loom.rs` and `shuttle.rs` are faults that people thought of. [cargo-mutants] changes each operator,
//! each condition and each function's result once. It runs the tests of the changed crate, and lists the changes that
//! no test noticed. For `volume` it runs those of `files` as well, which judge most of it. Parts that it must not
//! change are in `.cargo/mutants.toml`, with the reasons.
//!
//! ```text
//!   list ──► sample or all ──► without those that are known ──► batch after batch ──► results ──► survivors, rate
//!                                                                     │
//!                                               quick tests ──► what survived: the others
//! ```
//!
//! It works on a copy of the tree in `target/mutants/tree`, in place, so that only the changed crate is built again.
//! Each result is kept in `target/mutants/results` until the changed file changes: a run that was stopped goes on where
//! it was. A survivor that somebody has looked at and found to be none of the tests' business stands in
//! `docs/mutants-accepted.txt` with the reason. Any other one makes the chore fail.
//!
//! [cargo-mutants]: https://mutants.rs

mod accepted;
mod baseline;
mod name;
mod results;
mod switched;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use self::accepted::Accepted;
use self::baseline::Pass;
use self::name::Mutant;
use self::results::{Outcome, Results};
use self::tree::Tree;
use crate::{Result, process, tools};

/// The crates whose faults are asked for.
const CRATES: [&str; 6] = ["sync", "nat", "extent", "segment", "volume", "files"];
/// Crates that are judged mostly by the tests of a crate above them.
const JUDGED_ABOVE: [(&str, &str); 1] = [("volume", "files")];
/// Mutants that one call of cargo-mutants tries.
const BATCH: usize = 4;
/// Seconds that building a mutant may take.
const BUILD_LIMIT: &str = "600";

/// Options of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Try only mutants of this crate: sync, nat, extent, segment, volume or files. It may be given more than once.
    #[arg(short, long, value_name = "CRATE")]
    package: Vec<String>,
    /// Try only so many mutants, drawn at random with the seed.
    #[arg(long, value_name = "NUMBER")]
    sample: Option<usize>,
    /// The seed of the sample.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// Begin no batch after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Seconds that a mutant's tests may take at least. They have four times what they take without a fault. A mutant
    /// that takes longer counts as noticed.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    limit: u64,
    /// Let the mutants meet the quick tests only. What survives these is printed, and has no result yet.
    #[arg(long)]
    quick: bool,
    /// Try mutants again whose results are known.
    #[arg(long)]
    anew: bool,
    /// Try nothing, and print the results that are known.
    #[arg(long)]
    report: bool,
}

/// Tries the mutants whose results are not known, and prints the results of all that were asked for.
///
/// # Errors
///
/// If cargo-mutants is not there or fails, or a mutant survives that nobody has accepted.
pub(crate) fn run(args: &Args) -> Result<()> {
    if tools::find("cargo-mutants").is_none() && !cargo_bin_has_it() {
        bail!("cargo-mutants is missing; install it first: cargo install --locked cargo-mutants");
    }
    if let Some(unknown) = args.package.iter().find(|name| !CRATES.contains(&name.as_str())) {
        bail!("there are no mutants of {unknown}; the crates are {}", CRATES.join(", "));
    }
    let root = process::root();
    let tree = Tree::update(&root)?;
    let asked: Vec<&str> =
        CRATES.into_iter().filter(|name| args.package.is_empty() || args.package.iter().any(|p| p == name)).collect();
    let mut mutants = list(&tree, &asked)?;
    let of = mutants.len();
    if let Some(sample) = args.sample {
        mutants.sort_by_key(|mutant| mutant.lot(args.seed));
        mutants.truncate(sample);
    }
    let mut results = Results::open(&root.join("target/mutants/results"), tree.path())?;
    if args.anew {
        results.forget(&mutants);
    }
    let start = Instant::now();
    let unknown: Vec<&Mutant> = mutants.iter().filter(|mutant| results.get(mutant).is_none()).collect();
    println!("{} of {of} mutants, {} of them to be tried", mutants.len(), unknown.len());
    if !args.report {
        try_all(&tree, &unknown, args, start, &mut results)?;
    }
    report(&mutants, &results, &Accepted::read(&root)?, start)
}

/// Tries mutants in batches of one crate each, until the time is over.
fn try_all(tree: &Tree, mutants: &[&Mutant], args: &Args, start: Instant, results: &mut Results) -> Result<()> {
    // Grouped, so that a crate's siblings are built once. The sort is stable: within a crate the lots keep their order.
    let mut mutants = mutants.to_vec();
    mutants.sort_by(|a, b| a.package().cmp(b.package()));
    for of_one in mutants.chunk_by(|a, b| a.package() == b.package()) {
        let mut passes = baseline::passes(tree, of_one[0].package())?;
        let rest = if args.quick { passes.split_off(1) } else { Vec::new() };
        for batch in of_one.chunks(BATCH) {
            if args.seconds.is_some_and(|seconds| start.elapsed() >= Duration::from_secs(seconds)) {
                println!("the time is over: the next run goes on here");
                return Ok(());
            }
            for (mutant, outcome) in try_passes(tree, batch, &passes, args.limit)? {
                let alive = outcome == Outcome::Missed && !rest.is_empty();
                let told = if alive { "alive".to_owned() } else { outcome.to_string() };
                println!("{:>6.0} s  {told:<9} {}", start.elapsed().as_secs_f64(), mutant.name());
                if !alive {
                    results.add(mutant, outcome)?;
                }
            }
        }
    }
    Ok(())
}

/// The packages whose tests judge the mutants of a crate: its own, and some of the crates above it.
fn judges(name: &str) -> Vec<String> {
    let above = JUDGED_ABOVE.iter().filter(|(judged, _)| *judged == name).map(|(_, judge)| *judge);
    std::iter::once(name).chain(above).map(|name| format!("f2fs-{name}")).collect()
}

/// Lets a few mutants of one crate meet the tests, pass after pass: what survives one meets the next.
fn try_passes<'a>(
    tree: &Tree,
    batch: &[&'a Mutant],
    passes: &[Pass],
    least: u64,
) -> Result<Vec<(&'a Mutant, Outcome)>> {
    let mut done = Vec::new();
    let mut alive = batch.to_vec();
    for pass in passes {
        let (survived, ended): (Vec<_>, Vec<_>) =
            try_batch(tree, &alive, pass, least)?.into_iter().partition(|(_, outcome)| *outcome == Outcome::Missed);
        done.extend(ended);
        alive = survived.into_iter().map(|(mutant, _)| mutant).collect();
    }
    done.extend(alive.into_iter().map(|mutant| (mutant, Outcome::Missed)));
    Ok(done)
}

/// Runs cargo-mutants on a few mutants of one crate, with some of the tests.
fn try_batch<'a>(tree: &Tree, batch: &[&'a Mutant], pass: &Pass, least: u64) -> Result<Vec<(&'a Mutant, Outcome)>> {
    let Some(first) = batch.first() else { return Ok(Vec::new()) };
    let limit = pass.limit(least);
    let output = tree.output();
    if output.exists() {
        std::fs::remove_dir_all(&output).with_context(|| format!("cannot remove {}", output.display()))?;
    }
    let mut command = cargo_mutants(tree);
    command.args([
        "--in-place",
        "--baseline",
        "skip",
        "--build-timeout",
        BUILD_LIMIT,
        "--no-shuffle",
        "--colors",
        "never",
    ]);
    command.args(["--timeout", &limit.to_string(), "--package", &format!("f2fs-{}", first.package())]);
    for judge in judges(first.package()) {
        command.args(["--test-package", &judge]);
    }
    command.arg("--output").arg(tree.output_parent());
    // Version 27.1 also tries the mutants that delete a field, whatever `--re` says: those of other files are left out.
    for mutant in batch {
        command.args(["--re", &mutant.pattern(), "--file", mutant.file()]);
    }
    // Tests alone: examples in documentation are built one by one, which takes most of the time.
    command.arg("--").args(&pass.chosen);
    // Each mutant takes its build and its tests, and the whole a little more.
    let most = Duration::from_secs((limit + 700) * batch.len() as u64);
    let outcome = process::capture(&mut command, most)?;
    let found = Outcome::of_each(&output, batch)?;
    if found.len() != batch.len() {
        let tail = |text: &str| {
            text.lines().rev().take(20).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
        };
        bail!(
            "cargo-mutants told of {} of {} mutants:\n{}\n{}",
            found.len(),
            batch.len(),
            tail(&outcome.stdout),
            tail(&outcome.stderr)
        );
    }
    Ok(found)
}

/// All mutants of these crates, in the order of their places, without those of switched faults.
fn list(tree: &Tree, crates: &[&str]) -> Result<Vec<Mutant>> {
    let mut command = cargo_mutants(tree);
    command.args(["--list", "--colors", "never"]);
    for name in crates {
        command.args(["--package", &format!("f2fs-{name}")]);
    }
    let text = String::from_utf8(process::output(&mut command)?).context("a list of mutants is text")?;
    let mut mutants = Mutant::all(&text);
    let mut switched: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    mutants.retain(|mutant| {
        let lines = switched.entry(mutant.file().to_owned()).or_insert_with_key(|file| {
            switched::lines(&std::fs::read_to_string(tree.path().join(file)).unwrap_or_default())
        });
        !lines.contains(&mutant.line())
    });
    if mutants.is_empty() {
        bail!("cargo-mutants lists no mutant");
    }
    Ok(mutants)
}

fn cargo_mutants(tree: &Tree) -> Command {
    let mut command = process::cargo(["mutants"]);
    tree.prepare(&mut command);
    command
}

/// Whether cargo's own directory of programs has it, which need not be on the path.
fn cargo_bin_has_it() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    home.is_some_and(|home| home.join("bin/cargo-mutants").is_file())
}

/// Prints the rate of each crate and the survivors.
fn report(mutants: &[Mutant], results: &Results, accepted: &Accepted, start: Instant) -> Result<()> {
    println!(
        "\n{:<10} {:>7} {:>8} {:>8} {:>9} {:>9} {:>6}",
        "crate", "tried", "noticed", "by time", "survived", "accepted", "rate"
    );
    let mut open = Vec::new();
    for name in CRATES {
        let of_crate = || mutants.iter().filter(|mutant| mutant.package() == name);
        let known: Vec<_> = of_crate().filter_map(|mutant| Some((mutant, results.get(mutant)?))).collect();
        // A change that does not compile is no fault.
        let tried = known.iter().filter(|(_, outcome)| *outcome != Outcome::Unviable).count();
        if tried == 0 {
            continue;
        }
        let survivors: Vec<&Mutant> =
            known.iter().filter(|(_, outcome)| *outcome == Outcome::Missed).map(|(mutant, _)| *mutant).collect();
        let looked_at = survivors.iter().filter(|mutant| accepted.reason(mutant).is_some()).count();
        let noticed = tried - survivors.len();
        // Of those that were noticed: a hang, unless the machine was far busier than when it ran the tests without a fault.
        let by_time = known.iter().filter(|(_, outcome)| *outcome == Outcome::Timeout).count();
        // The rate is that of the faults that are some.
        let rate = 100.0 * noticed as f64 / (tried - looked_at).max(1) as f64;
        println!("{name:<10} {tried:>7} {noticed:>8} {by_time:>8} {:>9} {looked_at:>9} {rate:>5.1}%", survivors.len());
        open.extend(survivors.into_iter().filter(|mutant| accepted.reason(mutant).is_none()));
    }
    for mutant in &open {
        println!("survived: {}", mutant.name());
    }
    println!("mutants: {:.0} s", start.elapsed().as_secs_f64());
    if !open.is_empty() {
        bail!("{} mutants survived: kill them with a test, or accept them in {}", open.len(), accepted::FILE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::judges;

    #[test]
    fn the_tests_of_files_judge_the_volume_too() {
        assert_eq!(judges("volume"), ["f2fs-volume", "f2fs-files"]);
        assert_eq!(judges("files"), ["f2fs-files"]);
    }
}
