//! `cargo xtask lint`: formatting, clippy and the documentation, with warnings denied; licences and advisories on
//! request.

use anyhow::{Context, bail};

use crate::{Result, process};

/// Options of `cargo xtask lint`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Check licences, advisories and bans as well. This needs cargo-deny and the network.
    #[arg(long)]
    deny: bool,
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
    if args.deny { dependencies() } else { Ok(()) }
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
