//! Errors of the driver.

use f2fs::FsError;
use f2fs::volume::format::FormatVolumeError;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadsError {
    /// A setting that cannot be measured.
    #[error("{0}")]
    Setting(&'static str),
    /// The volume could not be laid out.
    #[error("format: {0}")]
    Format(#[from] FormatVolumeError),
    /// An operation on the volume.
    #[error("{what}: {source}")]
    Volume {
        /// Which.
        what: &'static str,
        /// The file system's error.
        source: Box<FsError>,
    },
    /// A file did not fit.
    #[error("write {path}: {written} of {wanted} bytes fitted")]
    Full {
        /// The file.
        path: String,
        /// Bytes that were written.
        written: u64,
        /// Bytes that there were to write.
        wanted: u64,
    },
    /// A block does not hold what was written there.
    #[error("file {file}, block {block}: stamp {found:#x} instead of {expected:#x}, {bytes} bytes read")]
    Content {
        /// The number of the file.
        file: usize,
        /// The block in the file.
        block: u64,
        /// The stamp that was written.
        expected: u64,
        /// The stamp that was read.
        found: u64,
        /// Bytes that the read returned.
        bytes: usize,
    },
    /// A thread could not be started.
    #[error("thread {thread}: {source}")]
    Thread {
        /// Which.
        thread: usize,
        /// The system's error.
        source: std::io::Error,
    },
}

impl ReadsError {
    pub(super) fn volume(what: &'static str) -> impl Fn(FsError) -> ReadsError {
        move |source| ReadsError::Volume { what, source: Box::new(source) }
    }
}
