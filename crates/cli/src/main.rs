//! The `f2fs` command: F2FS images and devices without mounting them.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | done; for `check`: the volume is sound, though a copy may be torn as by a crash |
//! | 1 | the operation failed; for `check --repair`: the volume was corrupt and is repaired, as with `fsck` |
//! | 2 | the command line is wrong: nothing was opened |
//! | 4 | `check`: the volume is corrupt, one line a finding; with `--repair`: it still is |
//! | 8 | `check`: the volume could not be checked, repaired, or put back |
//! | 129, 130, 143 | SIGHUP, SIGINT (Ctrl-C) or SIGTERM came; a message says in what state things are left; `mount --foreground` closes the volume, and ends with 0 |
#![forbid(unsafe_code)]

mod args;
mod closing;
mod commands;
mod error;
mod escape;
mod image;
mod interrupt;
mod journal_file;
mod medium;
mod memory_limit;
mod mounts;
mod progress;
mod size;
mod system_log;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use rustix::fs::{OFlags, fcntl_getfl};

use args::Arguments;
use error::CliError;

fn main() -> ExitCode {
    let Some(args) = as_helper(env::args_os().collect()) else { return ExitCode::SUCCESS };
    match Arguments::try_parse_from(args) {
        Ok(arguments) => {
            interrupt::survive_large_files();
            let done = expect_output().and_then(|()| commands::run(&arguments));
            error::say_left_out();
            done
        }
        Err(answer) => say_answer(&answer),
    }
    .unwrap_or_else(|error| ExitCode::from(&error))
}

/// What is written to a standard output that is open for reading only is lost, and the library of the language tells no
/// error of it.
fn expect_output() -> Result<(), CliError> {
    match fcntl_getfl(io::stdout()) {
        Ok(flags) if flags & OFlags::ACCMODE == OFlags::RDONLY => Err(io::Error::from(rustix::io::Errno::BADF).into()),
        _ => Ok(()),
    }
}

/// Prints help, the version, or what is wrong with the command line.
fn say_answer(answer: &clap::Error) -> Result<ExitCode, CliError> {
    let printed = answer.print().and_then(|()| io::stdout().flush());
    let code = u8::try_from(answer.exit_code()).unwrap_or(2);
    match printed {
        // Nobody is left to be told.
        Err(_) if answer.use_stderr() => {}
        printed => printed?,
    }
    Ok(ExitCode::from(code))
}

/// Under a name that `mount` looks for (`mount.f2fs-fuse IMAGE DIR -o OPTIONS`) this is `f2fs mount`. Flags that
/// mount(8) hands on and that mean nothing here are left out. `None`: nothing is to be done, since its `-f` asks for a
/// mount that is not made (`--fake`).
fn as_helper(mut args: Vec<OsString>) -> Option<Vec<OsString>> {
    let name = args.first().and_then(|program| Path::new(program).file_name());
    if name.is_some_and(|name| name == "mount.f2fs-fuse" || name == "mount.fuse.f2fs") {
        if args.iter().any(|arg| arg == "-f") {
            return None;
        }
        args.retain(|arg| !matches!(arg.to_str(), Some("-n" | "-s" | "-v")));
        args.insert(1, "mount".into());
    }
    Some(args)
}
