//! The `f2fs` command: F2FS images and devices without mounting them.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | done; for `check`: clean |
//! | 1 | the operation failed; for `check --repair`: the volume was corrupt and is repaired, as with `fsck` |
//! | 2 | the command line is wrong |
//! | 4 | `check`: the volume is corrupt, one line a finding; with `--repair`: it still is |
//! | 8 | `check`: the volume could not be checked, repaired, or put back |
#![forbid(unsafe_code)]

mod args;
mod commands;
mod error;
mod escape;
mod image;
mod progress;
mod size;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match commands::run(&arguments) {
        Ok(code) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "f2fs: {error}");
            ExitCode::FAILURE
        }
    }
}
