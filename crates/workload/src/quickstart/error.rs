//! Errors of the driver.

use std::path::PathBuf;

use f2fs::FsError;
use f2fs::check::{CheckError, CheckReport};
use f2fs::volume::format::FormatVolumeError;

/// Why it stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuickstartError {
    /// The device could not be opened.
    #[error("open the device: {0}")]
    Device(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The volume could not be laid out.
    #[error("format: {0}")]
    Format(#[from] FormatVolumeError),
    /// An operation on the volume as a whole.
    #[error("{what}: {source}")]
    Volume {
        /// Which.
        what: &'static str,
        /// The file system's error.
        source: Box<FsError>,
    },
    /// An operation on a file.
    #[error("{what} {}: {source}", .path.display())]
    File {
        /// Which.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: Box<FsError>,
    },
    /// The volume was full in the middle of a write.
    #[error("write {}: {written} of {wanted} bytes fitted", .path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// Bytes that were written.
        written: u64,
        /// Bytes that there are.
        wanted: u64,
    },
    /// A file is not as long as it was made.
    #[error("{}: {found} bytes instead of {expected}", .path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// The size it was given.
        expected: u64,
        /// The size it has.
        found: u64,
    },
    /// A file does not hold what was written.
    #[error("{}: byte {offset} is {found:#04x} instead of {expected:#04x}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The first byte that differs.
        offset: u64,
        /// The value that was written.
        expected: u8,
        /// The value that was read.
        found: u8,
    },
    /// A file that was unlinked is there.
    #[error("{}: still exists after it was unlinked", .path.display())]
    Undead {
        /// The file.
        path: PathBuf,
    },
    /// A directory does not list as many names as it was given.
    #[error("{}: lists {found} names instead of {expected}", .path.display())]
    Names {
        /// The directory.
        path: PathBuf,
        /// Names that it should have.
        expected: u64,
        /// Names that it has.
        found: u64,
    },
    /// The volume could not be checked.
    #[error("check: {0}")]
    NotChecked(#[from] CheckError),
    /// The check found something.
    #[error("check: {} findings\n{}", .0.findings.len() as u64 + .0.suppressed, .0)]
    Corrupt(Box<CheckReport>),
}

impl QuickstartError {
    /// Whether the volume has wrong contents, in contrast to an operation that was refused.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Size { .. } | Self::Content { .. } | Self::Undead { .. } | Self::Names { .. } | Self::Corrupt(_)
        )
    }
}
