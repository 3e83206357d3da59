//! `cargo xtask manycore`: a machine with many processors, played in the half of f2fs-sync that is made for it.
//!
//! It builds with `RUSTFLAGS="--cfg f2fs_manycore"` and a target directory of its own (`target/manycore`). Without
//! options it runs the tests: structures with known answers, and a small form of the validation. With options it passes
//! them to the bench `manycore`, which plays workloads (`cargo xtask manycore --help` of the bench: `cargo xtask
//! manycore -- --help`). For `--validate` it first measures one and two threads of this machine with the same bench,
//! built as in production.

use std::env;

use crate::{Result, process};

/// Options of `cargo xtask manycore`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Options of the bench. Without any, the tests run.
    ///
    /// Examples: `--validate`; `--workload mwul --policy sharded --machine epyc --cores 1,8,128 --lines`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

/// Measures one and two threads of this machine, in the half of production; gives the file.
fn measure() -> Result<String> {
    // The bench runs in another directory than cargo, and the target directory may be elsewhere.
    let home = process::root().join("target");
    fs_err::create_dir_all(&home)?;
    let file = home.join("manycore-measured.csv").to_string_lossy().into_owned();
    let mut command = process::cargo(["bench", "--quiet", "--package", "f2fs-benches", "--bench", "manycore"]);
    process::run(command.args(["--", "--measure", "--csv", &file]))?;
    Ok(file)
}

/// Runs the tests, or the bench with these options.
///
/// # Errors
///
/// If they do not compile, or fail.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut command = if args.options.is_empty() {
        let mut command = process::cargo(["test", "--release", "--package", "f2fs-sync", "--package", "f2fs-benches"]);
        command.args(["--test", "halves", "--test", "manycore"]);
        command
    } else {
        process::cargo(["bench", "--quiet", "--package", "f2fs-benches", "--bench", "manycore"])
    };
    let mut options = args.options.clone();
    if options.iter().any(|option| option == "--validate") && !options.iter().any(|option| option == "--measured") {
        options.extend(["--measured".to_owned(), measure()?]);
    }
    command.args(["--target-dir", "target/manycore"]);
    // The machine that is played is the process's.
    command.args(if args.options.is_empty() { &["--", "--test-threads=1"][..] } else { &["--"] });
    command.args(&options);
    // Added to the user's own flags. Cargo would prefer the encoded form, if it were set.
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg f2fs_manycore").trim()).env_remove("CARGO_ENCODED_RUSTFLAGS");
    process::run(&mut command)
}
