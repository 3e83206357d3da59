//! The programs that run in the guest: statically linked, since the guest has no C library.

use std::path::{Path, PathBuf};

use crate::{Result, process};

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Optimised, with debug assertions.
const PROFILE: &str = "checked";

/// Builds the packages' programs in a target directory of their own and returns the files, in the order of `programs`
/// (package, program).
pub(crate) fn build(cache: &Path, programs: &[(&str, &str)]) -> Result<Vec<PathBuf>> {
    let directory = cache.join("static");
    let mut command = process::cargo(["build", "--quiet", "--target", TARGET, "--profile", PROFILE, "--target-dir"]);
    command.arg(&directory);
    for (package, program) in programs {
        command.args(["--package", package, "--bin", program]);
    }
    // Only the target's own code is built with these flags, since a target is named.
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", "-C target-feature=+crt-static");
    process::output(&mut command)?;
    let home = directory.join(TARGET).join(PROFILE);
    Ok(programs.iter().map(|(_, program)| home.join(program)).collect())
}
