//! Programs of the workspace as its tests were built: of the same packages, features and profile, so that nothing is
//! built twice.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::ensure;
use serde::Deserialize;

use crate::{Result, built, process};

/// What cargo says of the workspace, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The optional features that some tests need. The mutants are in all tests, switched off: those tests that must find
/// one switch it on for a process of its own.
pub(crate) const FEATURES: [&str; 2] = [
    "--features",
    "f2fs/tracing,f2fs/serde,f2fs-files/mutants,f2fs-journal/mutants,f2fs-segment/mutants,f2fs-trials/mutants",
];

/// Cargo's words for all integration tests but the models and scenarios, `loom_*` and `shuttle_*`: without their halves
/// of `f2fs-sync` these are empty programs, which take time to link.
///
/// # Errors
///
/// If cargo names no tests.
pub(crate) fn tests() -> Result<Vec<String>> {
    let metadata = process::output(&mut process::cargo(["metadata", "--offline", "--no-deps", "--format-version=1"]))?;
    let metadata: Metadata = serde_json::from_slice(&metadata)?;
    let targets = metadata.packages.into_iter().flat_map(|package| package.targets);
    let tests = targets.filter(|target| target.kind == ["test"]).map(|target| target.name);
    let is_model = |name: &String| name.starts_with("loom_") || name.starts_with("shuttle_");
    let (models, tests): (BTreeSet<String>, BTreeSet<String>) = tests.partition(is_model);
    ensure!(!models.is_empty() && !tests.is_empty(), "cargo names {} models, {} tests", models.len(), tests.len());
    Ok(tests.into_iter().map(|name| format!("--test={name}")).collect())
}

/// Tests of structures whose size follows from the number of processors: seconds each. Two crates have a `journal`.
const SIZED: [&str; 8] = [
    "f2fs_sync",
    "f2fs_extent",
    "f2fs_journal",
    "f2fs_volume",
    "f2fs_files",
    "cache_limits",
    "dentry_memory",
    "journal",
];

/// Processors that those tests are told of (`F2FS_PROCESSORS`): the fewest, and more than most machines have.
const PROCESSORS: [&str; 2] = ["1", "256"];

/// Runs tests of structures that are sized by the processors as on other machines. They were built by `cargo test` with
/// the words `all`, [`tests`] and [`FEATURES`].
///
/// # Errors
///
/// If one fails, or is not there.
pub(crate) fn run_with_processors(all: &[&str]) -> Result<()> {
    let built = built::programs(process::cargo(["test", "--no-run"]).args(all).args(tests()?).args(FEATURES))?;
    for name in SIZED {
        built::named(&built, name)?;
    }
    for program in built.iter().filter(|program| SIZED.contains(&&*program.name)) {
        for processors in PROCESSORS {
            println!("{}, as with {processors} processors", program.name);
            process::run(Command::new(&program.path).arg("--quiet").env("F2FS_PROCESSORS", processors))?;
        }
    }
    Ok(())
}

/// Builds a program of a kind, `bin` or `example`, and returns its file.
///
/// # Errors
///
/// If it does not build.
pub(crate) fn build(kind: &str, name: &str) -> Result<PathBuf> {
    // A test is named too: as soon as there is one, what the tests of all packages are built on decides with which
    // features everything is built.
    let mut command = process::cargo(["build", "--workspace", "--test", "facade", &format!("--{kind}"), name]);
    built::program(command.args(FEATURES), name)
}
