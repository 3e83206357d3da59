//! The project's own chores: `cargo xtask help`.
#![forbid(unsafe_code)]

mod bench;
mod counting;
mod crash;
mod crash_kernel;
mod fuzz;
mod guest;
mod lint;
mod loom;
mod manycore;
mod mount;
mod mutants;
mod package;
mod process;
mod shuttle;
mod test;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The result of a chore: an error is printed with its causes, and the process exits 1.
type Result<T> = anyhow::Result<T>;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs everything: lints, tests, models, the guest tests.
    Test(test::Args),
    /// Checks formatting, clippy and documentation.
    Lint(lint::Args),
    /// Runs the loom models of all crates, and the mutants that they must kill.
    Loom(loom::Args),
    /// Runs larger scenarios under random schedules, and the mutants that they must kill.
    Shuttle(shuttle::Args),
    /// Tries faults that a program makes in the sources (`cargo-mutants`), and lists those that no test notices.
    Mutants(mutants::Args),
    /// Counts the cache lines that operations write.
    Counting(counting::Args),
    /// Plays a machine with many processors.
    Manycore(manycore::Args),
    /// Runs tests against the Linux kernel in a virtual machine.
    Guest(guest::Args),
    /// Packages the published crates, and builds each from its package; builds `f2fs-format` without the standard library.
    Package(package::Args),
    /// Runs the criterion benches.
    Bench(bench::Args),
    /// Runs the fuzz targets for a while.
    Fuzz(fuzz::Args),
    /// Crashes volumes at every point of many workloads, and looks at what is left.
    Crash(crash::Args),
    /// Runs scripts on Linux's F2FS in a virtual machine, and looks at what a power cut may leave of its device.
    CrashKernel(crash_kernel::Args),
    /// Runs suites and programs of others on volumes that `f2fs mount` serves.
    Mount(mount::Args),
}

fn main() -> ExitCode {
    match Args::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Returned from `main`, it would come with a backtrace of this program, which says nothing of what failed.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Command {
    fn run(self) -> Result<()> {
        match self {
            Command::Test(args) => test::run(&args),
            Command::Lint(args) => lint::run(&args),
            Command::Loom(args) => loom::run(&args),
            Command::Shuttle(args) => shuttle::run(&args),
            Command::Mutants(args) => mutants::run(&args),
            Command::Counting(args) => counting::run(&args),
            Command::Manycore(args) => manycore::run(&args),
            Command::Guest(args) => guest::run(args),
            Command::Package(args) => package::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Fuzz(args) => fuzz::run(&args),
            Command::Crash(args) => crash::run(&args),
            Command::CrashKernel(args) => crash_kernel::run(&args),
            Command::Mount(args) => mount::run(&args),
        }
    }
}

/// Runs a chore as the command line would, with the options given and the defaults of the others.
///
/// # Errors
///
/// If there is no such chore or option, or the chore fails.
fn chore(words: &[&str]) -> Result<()> {
    Args::try_parse_from(["xtask"].iter().chain(words))?.command.run()
}
