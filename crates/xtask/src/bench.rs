//! `cargo xtask bench`: the benches, and counts of instructions.

use crate::{Result, process};

/// Options of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Arguments for `cargo bench`, as `--bench NAME`. Without any, all benches run, and instructions are counted.
    #[arg(allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
    /// Words for each bench that runs, so name one. A filter and `--quick` are for those that use criterion:
    /// `create_unlink`, `extent_locks`, `fxmark`, `nid_allocator`, `nid_open` and `segment`. The others have options of
    /// their own (docs/TESTING.md).
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<String>,
}

/// Runs the benches.
///
/// # Errors
///
/// If they do not compile, or fail.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut command = process::cargo(["bench", "--package", "f2fs-benches"]);
    command.args(&args.args);
    if !args.words.is_empty() {
        command.arg("--").args(&args.words);
    }
    process::run(&mut command)?;
    if args.args.is_empty() && args.words.is_empty() {
        process::run(&mut process::cargo(["bench", "--package", "f2fs-instructions"]))?;
    }
    Ok(())
}
