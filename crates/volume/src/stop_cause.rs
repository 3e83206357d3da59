//! Why a volume has stopped.

use core::fmt;

/// Why a volume takes no changes any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopCause {
    /// An error left a change half done: its text.
    Error(String),
    /// An operation panicked in the middle of a change.
    Panic,
    /// The volume was closed.
    Closed,
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopCause::Error(error) => f.write_str(error),
            StopCause::Panic => f.write_str("an operation panicked"),
            StopCause::Closed => f.write_str("it was closed"),
        }
    }
}
