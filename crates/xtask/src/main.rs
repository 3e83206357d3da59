//! The project's own chores: `cargo xtask help`.
#![forbid(unsafe_code)]

mod guest;

use clap::{Parser, Subcommand};

/// What every chore returns: an error is printed with its causes and the process exits 1.
type Result<T> = anyhow::Result<T>;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs tests against the Linux kernel in a virtual machine.
    Guest(guest::Args),
}

fn main() -> Result<()> {
    match Args::parse().command {
        Command::Guest(args) => guest::run(args),
    }
}
