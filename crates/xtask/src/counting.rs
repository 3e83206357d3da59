//! `cargo xtask counting`: the cache lines that operations write, in the counting half of f2fs-sync.
//!
//! It builds with `RUSTFLAGS="--cfg f2fs_counting"` and a target directory of its own (`target/counting`). It runs the
//! tests that pin the lines that an operation may write, or prints the table. Counts do not depend on optimisation, so
//! the build has none, which halves its time; but for `f2fs-sync`, which does the counting.

use std::env;

use crate::{Result, process};

/// Options of `cargo xtask counting`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the table of all operations instead of running the tests.
    #[arg(long)]
    table: bool,
    /// With --table: name every line that two threads wrote, not only those that all threads wrote.
    #[arg(long, requires = "table")]
    all: bool,
}

/// Runs the tests, or prints the table.
///
/// # Errors
///
/// If they do not compile, or fail.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut command = if args.table {
        process::cargo(["bench", "--quiet", "--profile", "dev", "--package", "f2fs-benches", "--bench", "cache_lines"])
    } else {
        let packages = ["--package", "f2fs-sync", "--package", "f2fs-benches", "--package", "f2fs-journal"];
        let mut command = process::cargo(["test"]);
        command.args(packages).args(["--test", "halves", "--test", "counting", "--test", "cache_lines"]);
        command
    };
    command.args(["--target-dir", "target/counting"]);
    command.args(["dev", "test"].map(|profile| format!("--config=profile.{profile}.package.f2fs-sync.opt-level=2")));
    if args.all {
        command.args(["--", "--all"]);
    }
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_TEST_OPT_LEVEL", "0");
    // Added to the user's own flags. Cargo would prefer the encoded form, if it were set.
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg f2fs_counting").trim()).env_remove("CARGO_ENCODED_RUSTFLAGS");
    process::run(&mut command)
}
