//! The programs that run in the guest: statically linked, since the guest has no C library; or as the tests were built,
//! or installed ones, with theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::{Result, as_tested, built, process, tools};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Optimised, with debug assertions.
const PROFILE: &str = "checked";

/// The two programs that every test has.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) f2fs: PathBuf,
    pub(super) agent: PathBuf,
    /// What they load, for the same paths in the guest.
    pub(super) libraries: BTreeSet<PathBuf>,
}

impl Programs {
    /// Builds them for the guest.
    pub(super) fn built(cache: &Path) -> Result<Programs> {
        println!("building the programs for the guest");
        let programs = build(cache, &[("f2fs-cli", "f2fs"), ("guest-agent", "guest-agent")])?;
        let [f2fs, agent] = programs.try_into().ok().context("cargo built no two programs")?;
        Ok(Programs { f2fs, agent, libraries: BTreeSet::new() })
    }

    /// Takes them as the tests of the workspace were built.
    pub(super) fn as_tested() -> Result<Programs> {
        let [f2fs, agent] = [as_tested::build("bin", "f2fs")?, as_tested::build("bin", "guest-agent")?];
        let mut libraries = BTreeSet::new();
        for program in [&f2fs, &agent] {
            libraries.extend(with_libraries(program)?.into_iter().filter(|file| file != program));
        }
        Ok(Programs { f2fs, agent, libraries })
    }
}

/// Builds the packages' programs in a target directory of their own and returns the files, in the order of `programs`
/// (package, program).
pub(crate) fn build(cache: &Path, programs: &[(&str, &str)]) -> Result<Vec<PathBuf>> {
    build_as(cache, PROFILE, programs)
}

/// Builds a package's program as users have it, without debug assertions, and names it `PROGRAM-release`.
pub(super) fn measured(cache: &Path, package: &str, program: &str) -> Result<PathBuf> {
    let built = build_as(cache, "release", &[(package, program)])?;
    let named = cache.join("static").join(format!("{program}-release"));
    for built in built {
        std::fs::copy(&built, &named).with_context(|| format!("cannot copy {}", built.display()))?;
    }
    Ok(named)
}

fn build_as(cache: &Path, profile: &str, programs: &[(&str, &str)]) -> Result<Vec<PathBuf>> {
    let directory = cache.join("static");
    let mut command = process::cargo(["build", "--quiet", "--target", TARGET, "--profile", profile, "--target-dir"]);
    command.arg(&directory);
    for (package, program) in programs {
        command.args(["--package", package, "--bin", program]);
    }
    // Only the target's own code is built with these flags, since a target is named.
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C target-feature=+crt-static");
    let built = built::programs(&mut command)?;
    programs.iter().map(|(_, program)| built::named(&built, program)).collect()
}

/// Builds a package's test program, as [`build`] does its programs, under the name of the test.
pub(crate) fn test(cache: &Path, package: &str, test: &str) -> Result<PathBuf> {
    build_target(cache, &["test", "--no-run", "--package", package, "--test", test], test)
}

/// Builds a package's example in the same way.
pub(crate) fn example(cache: &Path, package: &str, example: &str) -> Result<PathBuf> {
    build_target(cache, &["build", "--package", package, "--example", example], example)
}

fn build_target(cache: &Path, words: &[&str], name: &str) -> Result<PathBuf> {
    let directory = cache.join("static");
    let mut command = process::cargo(words.iter().copied());
    command.args(["--quiet", "--target", TARGET, "--profile", PROFILE, "--target-dir"]);
    command.arg(&directory);
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C target-feature=+crt-static");
    // Cargo names the file of a test by a hash.
    let built = built::program(&mut command, name)?;
    let named = directory.join(name);
    std::fs::copy(&built, &named).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(named)
}

/// Dynamic programs are started by it, since it does not lie where they look for it.
pub(super) const LOADER: &str = "ld-linux-x86-64.so.2";

/// Programs with their loader and libraries, each file once: the guest has none.
pub(super) fn dynamic(programs: &[&str]) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for program in programs {
        files.extend(with_libraries(&tools::find(program).with_context(|| format!("{program} is not installed"))?)?);
    }
    Ok(files)
}

/// The same for the program of this path.
pub(super) fn with_libraries(path: &Path) -> Result<Vec<PathBuf>> {
    let needed = process::output(Command::new("ldd").arg(path))?;
    let needed = String::from_utf8_lossy(&needed);
    let files = needed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(std::iter::once(path.to_owned()).chain(files).collect())
}
