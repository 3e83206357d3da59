//! `cargo xtask loom`: runs the models of all crates, and the mutants that they must kill.
//!
//! # What it reads
//!
//! - *Models* are the tests of `crates/*/tests/loom_*.rs`. Such a file starts with `#![cfg(loom)]`, and its tests run
//!   their bodies through `f2fs_sync::model::exhaustive` or `bounded`, which print how many schedules there were.
//! - *Mutants* are faults in the production code, switched by `f2fs_sync::mutant("name")` (a constant `false` in
//!   production):
//!
//!   ```text
//!   protocol_step!("gate_enter_fence", fence(SeqCst));
//!   ```
//!
//!   A comment in the test file announces each with the model that must find it, on a line of this form:
//!
//!   ```text
//!   // mutant: gate_enter_fence, killed by: a_closer_is_alone
//!   ```
//!
//!   Names are unique in the workspace: begin them with the noun. A mutant may be announced more than once, with
//!   several models, each of which must kill it. For the mutants of a crate without models, a scenario of any crate
//!   will do (see `shuttle.rs`).
//!
//! # What it does
//!
//! It builds the models of all crates with `RUSTFLAGS="--cfg loom"` and a target directory of its own (`target/loom`), as
//! cargo builds tests: what runs the models is optimised, and the rest a little, which costs them nothing. It runs each
//! model in a process of its own, as many at once as there are processors; then each mutant, by setting `F2FS_MUTANT`.
//! One line each tells the name, the iterations, the seconds, and `passed` or `killed` with the first line of the panic.
//! It fails if a model fails, a mutant survives, a mutant in the sources is announced nowhere, or one that is announced
//! does not exist.

mod build;
mod half;
mod jobs;
mod registry;

use std::time::{Duration, Instant};

use anyhow::bail;

pub(crate) use self::half::Half;
pub(crate) use self::jobs::Terms;
use crate::{Result, Usage, process};

/// Options of `cargo xtask loom`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only the models of this package. It may be given more than once.
    #[arg(short, long, value_name = "CRATE")]
    package: Vec<String>,
    /// Run only models and mutants whose name contains this.
    #[arg(value_name = "NAME")]
    filter: Option<String>,
    /// Seconds that one model may take.
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Explore bounded models with at least so many preemptions.
    #[arg(long, value_name = "NUMBER")]
    preemptions: Option<u32>,
    /// Bound the models that explore every schedule too, to four preemptions.
    #[arg(long)]
    quick: bool,
}

/// Runs the models and mutants.
///
/// # Errors
///
/// If a model fails, a mutant survives, or the announcements do not fit the sources.
pub(crate) fn run(args: &Args) -> Result<()> {
    let terms = Terms {
        limit: Duration::from_secs(args.limit),
        preemptions: args.preemptions,
        quick: args.quick,
        factor: None,
    };
    run_half(Half::Loom, &args.package, args.filter.as_deref(), terms)
}

/// Runs the models of one half, and their mutants.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn run_half(half: Half, packages: &[String], filter: Option<&str>, terms: Terms) -> Result<()> {
    let start = Instant::now();
    let crates = registry::discover(&process::root(), packages, half)?;
    let mut tally = jobs::Tally::default();
    for krate in &crates {
        for problem in &krate.problems {
            println!("{}: {problem}", krate.package);
        }
        tally.failed += krate.problems.len();
    }
    if crates.iter().any(|krate| !krate.tests.is_empty()) {
        for (krate, models) in crates.iter().zip(build::models(&crates, half)?) {
            tally.add(&jobs::run(&jobs::plan(krate, &models, filter)?, terms)?);
        }
    }
    println!("{}: {tally}; {:.0} s with building", half.name(), start.elapsed().as_secs_f64());
    if tally.models == 0 && tally.mutants == 0 && tally.failed == 0 {
        bail!(Usage("no model was run: nothing has that name".to_owned()));
    }
    if tally.failed > 0 {
        bail!("{} models or mutants are not as they must be", tally.failed);
    }
    Ok(())
}
