//! Programs of the workspace as its tests were built: of the same packages, features and profile, so that nothing is
//! built twice.

use std::path::PathBuf;

use crate::{Result, process};

/// The optional features that some tests need. The mutants are in all tests, switched off: those tests that must find
/// one switch it on for a process of its own.
pub(crate) const FEATURES: [&str; 2] = [
    "--features",
    "f2fs/tracing,f2fs/serde,f2fs-files/mutants,f2fs-journal/mutants,f2fs-segment/mutants,f2fs-trials/mutants",
];

/// Builds a program of a kind, `bin` or `example`, and returns its file.
///
/// # Errors
///
/// If it does not build.
pub(crate) fn build(kind: &str, name: &str) -> Result<PathBuf> {
    // The tests are named too, since what they are built on decides with which features everything is built.
    let mut command = process::cargo(["build", "--workspace", "--tests", &format!("--{kind}"), name]);
    process::run(command.args(FEATURES))?;
    let home = process::root().join("target").join("debug");
    Ok(if kind == "example" { home.join("examples") } else { home }.join(name))
}
