//! `cargo xtask shuttle`: runs the larger scenarios of all crates under random schedules, and the mutants that they
//! must kill.
//!
//! A scenario is a test of a `crates/*/tests/shuttle_*.rs`, which starts with `#![cfg(shuttle)]` and runs its body
//! through `f2fs_sync::scenario`. Files, announcements of mutants and output are as for the loom models (see
//! `loom.rs`), with two exceptions: not every mutant needs a scenario, and a scenario may announce mutants of other
//! crates: code that is too large for loom, like operations on files with all layers below them, has scenarios only.

use std::time::Duration;

use crate::Result;
use crate::loom::{Half, Terms, run_half};

/// Options of `cargo xtask shuttle`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only the scenarios of this package. It may be given more than once.
    #[arg(short, long, value_name = "CRATE")]
    package: Vec<String>,
    /// Run only scenarios and mutants whose name contains this.
    #[arg(value_name = "NAME")]
    filter: Option<String>,
    /// Seconds that one scenario may take.
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Multiply the number of schedules by this.
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    factor: u32,
}

/// Runs the scenarios and mutants.
///
/// # Errors
///
/// If a scenario fails, a mutant survives, or an announced mutant does not exist.
pub(crate) fn run(args: &Args) -> Result<()> {
    let terms =
        Terms { limit: Duration::from_secs(args.limit), preemptions: None, quick: false, factor: Some(args.factor) };
    run_half(Half::Shuttle, &args.package, args.filter.as_deref(), terms)
}
