//! What the command says when it fails.

use std::fmt;
use std::io;
use std::path::Path;

/// A message, and what caused it.
#[derive(Debug)]
pub(crate) struct CliError {
    message: String,
    broken_pipe: bool,
}

impl CliError {
    pub(crate) fn new(message: impl fmt::Display) -> CliError {
        CliError { message: message.to_string(), broken_pipe: false }
    }

    /// With the path that it is about.
    pub(crate) fn at(path: &Path, error: impl fmt::Display) -> CliError {
        CliError::new(format_args!("{}: {error}", path.display()))
    }

    /// Whether the reader of our output went away, which is no failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        CliError { broken_pipe: error.kind() == io::ErrorKind::BrokenPipe, message: error.to_string() }
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
