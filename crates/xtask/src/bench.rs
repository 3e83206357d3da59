//! `cargo xtask bench`: the criterion benches, and counts of instructions.

use crate::{Result, process};

/// Options of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Arguments for `cargo bench`, as `--bench NAME` or `-- FILTER`. Without any, instructions are counted as well.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
}

/// Runs the benches.
///
/// # Errors
///
/// If they do not compile, or fail.
pub(crate) fn run(args: &Args) -> Result<()> {
    process::run(process::cargo(["bench", "--package", "f2fs-benches"]).args(&args.args))?;
    if args.args.is_empty() {
        process::run(&mut process::cargo(["bench", "--package", "f2fs-instructions"]))?;
    }
    Ok(())
}
