//! `cargo xtask lint`: formatting, clippy and the documentation, with warnings denied; on request licences and
//! advisories, and the oldest compiler that is promised.

use std::process::Command;

use anyhow::{Context, bail};

use crate::{Result, process};

/// Options of `cargo xtask lint`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Check licences, advisories and bans as well. This needs cargo-deny and the network.
    #[arg(long)]
    deny: bool,
    /// Compile all of it, tests and benches as well, with the oldest Rust that the manifest promises. This needs rustup,
    /// which fetches that compiler if it is not there.
    #[arg(long)]
    oldest: bool,
}

/// Runs all lints.
///
/// # Errors
///
/// If one of them finds something.
pub(crate) fn run(args: &Args) -> Result<()> {
    format()?;
    clippy()?;
    documentation()?;
    if args.oldest {
        oldest_compiler()?;
    }
    if args.deny { dependencies() } else { Ok(()) }
}

/// Compiles the workspace with the version of `rust-version`, in a target directory of its own.
fn oldest_compiler() -> Result<()> {
    let root = process::root();
    let manifest = fs_err::read_to_string(root.join("Cargo.toml"))?;
    let version = oldest(&manifest).context("Cargo.toml names no rust-version")?;
    let mut command = Command::new("rustup");
    command.current_dir(&root).args(["run", "--install", version, "cargo", "check", "--locked", "--workspace"]);
    // What the cargo that runs this has set for itself.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    process::run(command.arg("--all-targets").arg("--target-dir").arg(root.join("target/oldest")))
}

/// The version that a manifest promises.
fn oldest(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "))?;
    line.trim().strip_prefix('"')?.strip_suffix('"')
}

/// Checks the formatting.
pub(crate) fn format() -> Result<()> {
    process::run(&mut process::cargo(["fmt", "--all", "--check"]))
}

/// Runs clippy on everything, with warnings denied; and on the library as embedders build it, without the feature
/// `baselines`, which the command turns on.
pub(crate) fn clippy() -> Result<()> {
    process::run(&mut process::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    process::run(&mut process::cargo(["clippy", "--package", "f2fs", "--lib", "--", "-D", "warnings"]))
}

/// Builds the documentation, with warnings denied (a broken link is one).
pub(crate) fn documentation() -> Result<()> {
    let mut command = process::cargo(["doc", "--workspace", "--no-deps"]);
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks the dependencies by `deny.toml`.
fn dependencies() -> Result<()> {
    let installed = process::cargo(["deny", "--version"]).output().context("cannot start cargo")?;
    if !installed.status.success() {
        bail!("cargo-deny is missing; install it first: cargo install --locked cargo-deny");
    }
    process::run(&mut process::cargo(["deny", "check"]))
}

#[cfg(test)]
mod tests {
    use super::oldest;

    #[test]
    fn the_promised_compiler_stands_in_the_manifest() {
        assert_eq!(oldest("[package]\nrust-version = \"1.88\"\nlicense = \"MIT\""), Some("1.88"));
        assert_eq!(oldest("rust-version.workspace = true"), None);
    }
}
