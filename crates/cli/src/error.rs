//! Failures of the command: messages and exit codes.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use f2fs_workload::shell::Quoted;

use crate::{interrupt, system_log};

/// A message, and how the command ends.
#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    end: End,
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Failed,
    /// The command line is wrong, whatever the volume holds.
    Usage,
    /// A signal came.
    Interrupted(u8),
    /// The reader of our output went away, which is no failure.
    BrokenPipe,
    /// Every message was said when it happened; the exit code.
    Said(u8),
}

impl CliError {
    pub(crate) fn new(message: impl fmt::Display) -> CliError {
        CliError { message: plain(message.to_string()), end: End::Failed }
    }

    /// With the path that it is about.
    pub(crate) fn at(path: &Path, error: impl fmt::Display) -> CliError {
        CliError::new(format_args!("{}: {error}", Quoted::path(path)))
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl fmt::Display) -> CliError {
        CliError { end: End::Usage, ..CliError::new(message) }
    }

    /// A signal ended the work; `left` says in which state.
    pub(crate) fn interrupted(signal: u8, left: impl fmt::Display) -> CliError {
        CliError { end: End::Interrupted(signal), ..CliError::new(format_args!("interrupted: {left}")) }
    }

    /// Something failed, and was [said](say) then.
    pub(crate) fn said() -> CliError {
        CliError::said_with(1)
    }

    /// The same with another exit code.
    pub(crate) fn said_with(code: u8) -> CliError {
        CliError { message: String::new(), end: End::Said(code) }
    }

    pub(crate) fn is_interruption(&self) -> bool {
        matches!(self.end, End::Interrupted(_))
    }

    /// Says the message, if there is one left to say, and how to end.
    pub(crate) fn report(&self) -> u8 {
        if !matches!(self.end, End::BrokenPipe | End::Said(_)) {
            say(&self.message);
        }
        match self.end {
            End::Failed => 1,
            End::Said(code) => code,
            End::Usage => 2,
            End::Interrupted(signal) => 128 + signal,
            // What failed before it went away did so.
            End::BrokenPipe => u8::from(NOTED.load(Ordering::Relaxed) > 0),
        }
    }
}

/// Writes a line to standard error, as the command's, and to the system's log if this serves in the background. Nobody
/// is left to be told if that fails.
pub(crate) fn say(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "f2fs: {message}");
    system_log::tell(&message);
}

/// The most failures of single paths that one run of the command says: a damaged directory may have one for each of
/// its entries.
const MOST_SAID: u64 = 1000;

/// Failures of single paths until now.
static NOTED: AtomicU64 = AtomicU64::new(0);

/// Says a failure of one of many paths, or only counts it when there were too many before.
pub(crate) fn say_one_of_many(message: impl fmt::Display) {
    if NOTED.fetch_add(1, Ordering::Relaxed) < MOST_SAID {
        say(message);
    }
}

/// Says how many failures were not said.
pub(crate) fn say_left_out() {
    let left_out = NOTED.load(Ordering::Relaxed).saturating_sub(MOST_SAID);
    if left_out > 0 {
        let messages = if left_out == 1 { "message was" } else { "messages were" };
        say(format_args!("{left_out} more {messages} left out"));
    }
}

/// Failures of several paths: all paths are tried, each failure is reported, and the command fails in the end.
#[derive(Debug, Default)]
pub(crate) struct Failures(Option<CliError>);

impl Failures {
    /// Says an error and goes on; an error that ends the command is given back.
    pub(crate) fn note(&mut self, result: Result<(), CliError>) -> Result<(), CliError> {
        match result {
            Err(error) if matches!(error.end, End::Failed | End::Said(_)) && !interrupt::is_stopping() => {
                if error.end == End::Failed {
                    say_one_of_many(&error);
                }
                self.0 = Some(CliError::said());
                Ok(())
            }
            result => result,
        }
    }

    pub(crate) fn result(self) -> Result<(), CliError> {
        self.0.map_or(Ok(()), Err)
    }
}

/// A message without the system's number of its error at the end, which says nothing that the words before it do not.
fn plain(mut message: String) -> String {
    if let Some((words, number)) = message.rsplit_once(" (os error ")
        && number.strip_suffix(')').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    {
        message.truncate(words.len());
    }
    message
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<&CliError> for ExitCode {
    fn from(error: &CliError) -> ExitCode {
        ExitCode::from(error.report())
    }
}

/// Writing to standard output failed.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        let end = if error.kind() == io::ErrorKind::BrokenPipe { End::BrokenPipe } else { End::Failed };
        CliError { end, ..CliError::new(format_args!("standard output: {error}")) }
    }
}

impl From<f2fs::FsError> for CliError {
    fn from(error: f2fs::FsError) -> CliError {
        CliError::new(error)
    }
}

impl From<f2fs::VolumeError> for CliError {
    fn from(error: f2fs::VolumeError) -> CliError {
        CliError::new(error)
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> CliError {
        CliError::new(error)
    }
}

/// Adds the path that an error is about.
pub(crate) trait Context<T> {
    /// The same result, the error with a path in front.
    fn about(self, path: &Path) -> Result<T, CliError>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn about(self, path: &Path) -> Result<T, CliError> {
        self.map_err(|error| CliError::at(path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_system_are_left_out_at_the_end_only() {
        let error = CliError::at(Path::new("a b"), io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "'a b': No such file or directory");
        for kept in ["x (os error y)", "(os error 2) is what it said", "read of 3 blocks"] {
            assert_eq!(CliError::new(kept).to_string(), kept);
        }
    }
}
