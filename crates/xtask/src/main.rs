//! The project's own chores: `cargo xtask help`.
#![forbid(unsafe_code)]

mod as_tested;
mod bench;
mod built;
mod counting;
mod crash;
mod crash_kernel;
mod files;
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

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The result of a chore: an error is printed with its causes, and the process exits 1.
type Result<T> = anyhow::Result<T>;

/// The command line names something that is not there: the process exits 2, as where the parser refuses it.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    // Nobody finds a command `xtask` on the path.
    bin_name = "cargo xtask",
    about = "Test, measure and package this project",
    after_help = "\
Examples:
  cargo xtask test                     # everything, as before a release
  cargo xtask test --only fmt,clippy   # some of its steps
  cargo xtask loom -p f2fs-nat         # the models of one crate

Exit codes: 0 done, 1 a step failed, 2 the command line is wrong."
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the whole test suite: lints, tests, models, crash states, the Linux kernel in a virtual machine.
    Test(test::Args),
    /// Check formatting, clippy and documentation.
    Lint(lint::Args),
    /// Run the loom models of all crates, and the mutants that they must find.
    Loom(loom::Args),
    /// Run larger scenarios under random schedules (shuttle), and the mutants that they must find.
    Shuttle(shuttle::Args),
    /// Put faults of all kinds into the sources, all in one build, and list those that no test notices.
    Mutants(mutants::Args),
    /// Count the cache lines that operations write.
    Counting(counting::Args),
    /// Predict speeds on a machine with many processors, by a model of its cache lines.
    Manycore(manycore::Args),
    /// Run tests against the Linux kernel in a virtual machine.
    Guest(guest::Args),
    /// Package the published crates, and build each from its package.
    Package(package::Args),
    /// Run the benches, and count instructions.
    Bench(bench::Args),
    /// Run the fuzz targets, each for a minute unless told otherwise.
    Fuzz(fuzz::Args),
    /// Cut the power at every point of many workloads, and check what is left on the device.
    Crash(crash::Args),
    /// Run scripts on Linux's F2FS in a virtual machine, and check what a power cut may leave on its device.
    CrashKernel(crash_kernel::Args),
    /// Run test suites and programs of others on volumes that `f2fs mount` serves.
    Mount(mount::Args),
}

fn main() -> ExitCode {
    match Args::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // An error that `main` returns is printed with a backtrace of this program, which says nothing of what
            // failed.
            eprintln!("error: {error:#}");
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn what_is_not_there_is_a_wrong_command_line() {
        for words in [
            &["loom", "-p", "nosuch"][..],
            &["shuttle", "-p", "nosuch"],
            &["guest", "nosuch"],
            &["fuzz", "nosuch"],
            &["mutants", "-p", "nosuch"],
            &["mutants", "-p", "f2fs-nosuch"],
        ] {
            let error = chore(words).expect_err("there is none");
            assert!(error.is::<Usage>() && error.to_string().contains("nosuch"), "{words:?}: {error:#}");
        }
    }

    #[test]
    fn a_selection_of_nothing_is_a_wrong_command_line() {
        for words in
            [&["test", "--only", "fmt", "--skip", "fmt"][..], &["mutants", "-p", "sync", "--like", "nosuchthing"]]
        {
            let error = chore(words).expect_err("nothing is selected");
            assert!(error.is::<Usage>(), "{words:?}: {error:#}");
        }
    }

    #[test]
    fn amounts_that_would_do_nothing_or_never_end_are_refused() {
        for words in [
            // libFuzzer takes 0 for no limit, and keeps 32 bits of a number.
            "fuzz --seconds 0",
            "fuzz --seconds 2147483648",
            "fuzz --seconds 4294967297",
            "fuzz --total 1e9 --seconds 0",
            "fuzz --runs 0",
            "fuzz --runs 4294967297",
            "loom --limit 0",
            "shuttle --limit 0",
            "shuttle --factor 0",
            "mutants --sample 0",
            "mutants --budget 0",
            "mount --operations 0",
            "mount --transactions 0",
            "mount --seconds 0",
            "mount --rounds 0",
            "mount --files 0",
            "crash-kernel --count 0",
            "crash-kernel --states 0",
        ] {
            let refused = Args::try_parse_from(["xtask"].into_iter().chain(words.split(' '))).expect_err(words);
            assert_eq!(refused.kind(), clap::error::ErrorKind::ValueValidation, "{words}: {refused}");
        }
        assert!(Args::try_parse_from(["xtask", "fuzz", "--seconds", "2147483647"]).is_ok());
    }

    #[test]
    fn help_says_how_a_chore_is_called() {
        let names: Vec<String> = Args::command().get_subcommands().map(|chore| chore.get_name().to_owned()).collect();
        assert!(names.len() >= 14, "{names:?}");
        for name in names {
            let help = Args::try_parse_from(["xtask", &name, "--help"]).expect_err("help ends the parser").to_string();
            assert!(help.contains(&format!("Usage: cargo xtask {name}")), "{help}");
        }
    }
}
