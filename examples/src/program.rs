//! How an example begins and ends: its command line, its output, and its exit code.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | it failed, or what it says could not be written: the pipe is closed, or the disk full |
//! | 2 | the command line is wrong: nothing was opened |

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::output::{Output, say};

/// The exit codes, for the help of an example.
pub const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, also if the output cannot be written, 2 usage.";

/// The exit code of what failed.
pub const FAILED: u8 = 1;

/// Runs an example on the arguments of this process. It writes to what it is given, and the errors of that are its own.
#[must_use]
pub fn run<A: Parser, E: Display + From<io::Error>>(
    work: impl FnOnce(&A, &mut dyn Write) -> Result<(), E>,
) -> ExitCode {
    run_with(work, |_| FAILED)
}

/// The same, with an exit code for each error.
#[must_use]
pub fn run_with<A: Parser, E: Display + From<io::Error>>(
    work: impl FnOnce(&A, &mut dyn Write) -> Result<(), E>,
    code: impl FnOnce(&E) -> u8,
) -> ExitCode {
    let mut out = Output::new("standard output", io::stdout().lock());
    run_on(std::env::args_os(), &mut out, &mut io::stderr(), work, code)
}

/// The same, on any arguments and streams.
fn run_on<A: Parser, E: Display + From<io::Error>>(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    error: &mut dyn Write,
    work: impl FnOnce(&A, &mut dyn Write) -> Result<(), E>,
    code: impl FnOnce(&E) -> u8,
) -> ExitCode {
    let name = A::command().get_name().to_owned();
    let arguments = match A::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(answer) if answer.use_stderr() => {
            let _ = write!(error, "{answer}");
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
        // Help.
        Err(answer) => {
            return match write!(out, "{answer}").and_then(|()| out.flush()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failed) => say(error, &name, &failed, FAILED),
            };
        }
    };
    match work(&arguments, out).and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            let code = code(&failed);
            say(error, &name, &failed, code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "test")]
    struct Arguments {
        path: Option<String>,
    }

    /// Whether it was done, the exit code, and what was said.
    fn ran(words: &[&str], out: &mut dyn Write) -> (bool, ExitCode, String) {
        let (mut done, mut said) = (false, Vec::new());
        let words = ["test"].iter().chain(words).map(OsString::from);
        let work = |arguments: &Arguments, out: &mut dyn Write| -> io::Result<()> {
            done = true;
            writeln!(out, "{:?}", arguments.path)
        };
        let code = run_on(words, out, &mut said, work, |_| 7);
        (done, code, String::from_utf8(said).unwrap())
    }

    fn full() -> impl Write {
        Output::new("out", std::fs::File::options().write(true).open("/dev/full").unwrap())
    }

    #[test]
    fn the_exit_code_says_how_it_went() {
        let mut out = Vec::new();
        assert_eq!(ran(&["x"], &mut out), (true, ExitCode::SUCCESS, String::new()));
        assert_eq!(out, b"Some(\"x\")\n");
        let (done, code, said) = ran(&["x", "more"], &mut Vec::new());
        assert_eq!((done, code), (false, ExitCode::from(2)));
        assert!(said.contains("'more'"), "{said}");
        let mut out = Vec::new();
        assert_eq!(ran(&["--help"], &mut out), (false, ExitCode::SUCCESS, String::new()));
        assert!(out.starts_with(b"Usage: "));
    }

    #[test]
    fn an_output_that_cannot_be_written_is_an_error() {
        let (done, code, said) = ran(&[], &mut full());
        assert_eq!((done, code), (true, ExitCode::from(7)));
        assert!(said.starts_with("test: out: "), "{said}");
        let (done, code, said) = ran(&["--help"], &mut full());
        assert_eq!((done, code), (false, ExitCode::from(1)));
        assert!(said.starts_with("test: out: "), "{said}");
        // What stays in a buffer is written at the end.
        let (_, code, said) = ran(&[], &mut io::BufWriter::new(full()));
        assert_eq!(code, ExitCode::from(7));
        assert!(said.starts_with("test: out: "), "{said}");
    }
}
