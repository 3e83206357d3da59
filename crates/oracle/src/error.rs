//! Why an oracle gave no verdict.

use std::path::PathBuf;
use std::time::Duration;

/// The tool could not be asked, or did not finish. Never a verdict about the volume.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// The tool is not installed.
    #[error("{tool} was not found: install the package {package} (Debian: apt-get install {package})")]
    MissingTool {
        /// The program that was wanted.
        tool: &'static str,
        /// The Debian package that carries it.
        package: &'static str,
    },
    /// The tool could not be started, fed or read.
    #[error("running {tool} failed: {source}")]
    Run {
        /// The program that was started.
        tool: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The tool ran past the time limit and was killed.
    #[error("{tool} was still running after {limit:?} and was killed; it had printed:\n{output}")]
    TimedOut {
        /// The program that was started.
        tool: &'static str,
        /// The limit that it passed.
        limit: Duration,
        /// Its output until then.
        output: String,
    },
    /// `mkfs.f2fs` refused to make the volume.
    #[error("{tool} ended with {status}; it printed:\n{output}")]
    Refused {
        /// The program that was started.
        tool: &'static str,
        /// Its exit status, or the signal that killed it.
        status: String,
        /// Everything that it printed.
        output: String,
    },
    /// The file for the volume could not be created or sized.
    #[error("cannot create {path:?} with {bytes} bytes: {source}")]
    Create {
        /// The file.
        path: PathBuf,
        /// The size wanted, in bytes.
        bytes: u64,
        /// The operating system's error.
        source: std::io::Error,
    },
}
