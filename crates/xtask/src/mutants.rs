//! `cargo xtask mutants`: faults that a program makes in the sources, and whether tests notice them.
//!
//! The mutants of `loom.rs` and `shuttle.rs` are faults that people thought of. This chore replaces operators, turns
//! conditions round, leaves out statements and returns early, each once, all over the crates that it is told of. It
//! lists the changes that no test noticed.
//!
//! ```text
//!   sources ──► all faults in one text, switched by number ──► without those that do not compile ──► one build
//!                                                                                                      │
//!   survivors, rate ◄── results ◄── each fault meets the tests that reach it, best first ◄── each test alone
//! ```
//!
//! One build serves all faults, as `f2fs_sync::mutant` does for the named ones: a variable of the environment chooses
//! the fault (`support.rs`). So a fault costs the tests that it meets, and no build.
//!
//! It works on a copy of the tree in `target/mutants/tree`. Each result is kept in `target/mutants/results` until the
//! changed file changes: a run that was stopped goes on where it was. A survivor that somebody has looked at and found
//! to be none of the tests' business stands in `docs/mutants-accepted.txt` with the reason. Any other one makes the
//! chore fail.

mod accepted;
mod build;
mod conditions;
mod fault;
mod find;
mod judges;
mod operators;
mod order;
mod pool;
mod report;
mod results;
mod sources;
mod support;
mod tree;
mod trial;
mod values;
mod weave;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::bail;

use self::accepted::Accepted;
use self::judges::Judge;
use self::order::Order;
use self::results::{Outcome, Results};
use self::sources::Sources;
use crate::{Result, Usage, process};

/// The crates whose faults are asked for, and whose tests judge.
const CRATES: [&str; 6] = ["sync", "nat", "extent", "segment", "volume", "files"];

/// Options of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Try only faults of this crate: sync, nat, extent, segment, volume or files, or one of them as a package, like
    /// f2fs-nat. It may be given more than once.
    #[arg(short, long, value_name = "CRATE")]
    package: Vec<String>,
    /// Try only faults whose name has this text in it.
    #[arg(long, value_name = "TEXT")]
    like: Option<String>,
    /// Try only so many faults, drawn at random with the seed.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// The seed of the sample, and of the order.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// Begin no fault after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Seconds of tests that a fault may meet. What survives them, and has not met all of its tests, is listed as
    /// `alive`, and the next run tries it again: give it more.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// Try also those that survived all of their tests before, as there are new ones; but none that is accepted.
    #[arg(long)]
    survivors: bool,
    /// Try all that were asked for, also those whose results are known.
    #[arg(long)]
    anew: bool,
    /// Try nothing, and print the results that are known.
    #[arg(long)]
    report: bool,
}

/// Tries the faults whose results are not known, and prints the results of all that were asked for.
///
/// # Errors
///
/// If the sources cannot be built with faults in them, or a fault survives that nobody has accepted.
pub(crate) fn run(args: &Args) -> Result<()> {
    let packages: Vec<&str> = args.package.iter().map(|name| name.strip_prefix("f2fs-").unwrap_or(name)).collect();
    if let Some(unknown) = packages.iter().find(|name| !CRATES.contains(name)) {
        bail!(Usage(format!("there are no mutants of {unknown}; the crates are {}", CRATES.join(", "))));
    }
    let root = process::root();
    let home = root.join("target/mutants");
    let start = Instant::now();
    let sources = Sources::read(&root, &CRATES)?;
    let faults = sources.faults();
    let mut results = Results::open(&home.join("results"), &root, faults)?;
    let accepted = Accepted::read(&root)?;
    let is_asked = |index: usize| {
        let fault = &faults[index];
        (packages.is_empty() || packages.contains(&fault.package()))
            && args.like.as_ref().is_none_or(|text| fault.name().contains(text))
    };
    let mut asked: Vec<usize> = (0..faults.len()).filter(|&index| is_asked(index)).collect();
    let of = asked.len();
    if of == 0 {
        // Before anything is built.
        bail!(Usage("no fault has that in its name".to_owned()));
    }
    asked.sort_by_key(|&index| faults[index].lot(args.seed));
    asked.truncate(args.sample.map_or(usize::MAX, |number| number as usize));
    if !args.report {
        let mut refused: BTreeSet<usize> = (0..faults.len())
            .filter(|&index| results.get(&faults[index]) == Some(Outcome::Unviable))
            .map(|index| index + 1)
            .collect();
        let before = refused.clone();
        let tree = build::prepare(&root, &sources, &CRATES, &mut refused)?;
        for number in refused.difference(&before) {
            results.add(&faults[number - 1], Outcome::Unviable)?;
        }
        let programs = build::programs(&tree, &CRATES)?;
        let judges = judges::ask(&programs, &home.join("judges"), &home.join("scratch"))?;
        if args.anew {
            let tried = asked.iter().filter(|&&index| !refused.contains(&(index + 1)));
            tried.for_each(|&index| results.forget(&faults[index]));
        }
        let again = |index: &usize| match results.get(&faults[*index]) {
            None => true,
            Some(Outcome::Alive) => !args.survivors || accepted.reason(&faults[*index]).is_none(),
            Some(Outcome::Missed | Outcome::Unreached) => args.survivors && accepted.reason(&faults[*index]).is_none(),
            Some(Outcome::Caught | Outcome::Timeout | Outcome::Unviable) => false,
        };
        let unknown: Vec<usize> = asked.iter().copied().filter(again).collect();
        println!(
            "{} of {of} faults, {} of them to be tried by {} tests; {:.0} s so far",
            asked.len(),
            unknown.len(),
            judges.len(),
            start.elapsed().as_secs_f64()
        );
        try_all(&sources, &unknown, &judges, args, start, &mut results)?;
    }
    for name in accepted.unknown(faults.iter()) {
        println!("{}: there is no such fault: {name}", accepted::FILE);
    }
    let asked: Vec<_> = asked.iter().map(|&index| &faults[index]).collect();
    report::print(&asked, &results, &accepted, start)
}

/// Tries faults side by side, until the time is over.
fn try_all(
    sources: &Sources,
    unknown: &[usize],
    judges: &[Judge],
    args: &Args,
    start: Instant,
    results: &mut Results,
) -> Result<()> {
    let faults = sources.faults();
    let order = Order::new(judges, faults);
    let budget = Duration::from_secs(args.budget);
    let tried = pool::each(unknown, |_, &index| {
        if args.seconds.is_some_and(|seconds| start.elapsed() >= Duration::from_secs(seconds)) {
            return Ok(None);
        }
        let fault = &faults[index];
        let places = order.of(index + 1, fault);
        let of_fault: Vec<&Judge> = places.iter().map(|&judge| &judges[judge]).collect();
        let (outcome, by) = trial::of(index + 1, &of_fault, budget)?;
        if let Some(by) = by {
            order.note(fault, places[by]);
        }
        let by = by.map(|by| format!(" by {} {}", of_fault[by].program.name, of_fault[by].test)).unwrap_or_default();
        println!("{:>6.0} s  {outcome:<9} {}{by}", start.elapsed().as_secs_f64(), fault.name());
        // At once: the run may be stopped.
        results.write(fault, outcome)?;
        Ok(Some((index, outcome)))
    })?;
    tried.into_iter().flatten().for_each(|(index, outcome)| results.know(&faults[index], outcome));
    Ok(())
}
