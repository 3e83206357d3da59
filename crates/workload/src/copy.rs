//! Trees in and out of a volume: kinds, permissions, owners, times, extended attributes, hard links and holes are kept.
//!
//! Extended attributes that the other side refuses (`trusted.*` and `security.*` need privileges; some file systems have
//! none) are counted, not fatal; so are owners and device files on a host where we are not root.

mod inward;
mod outward;

use std::io;
use std::path::{Path, PathBuf};

use f2fs::FsError;

pub use inward::copy_in;
pub use outward::copy_out;

/// Bytes moved at a time.
const CHUNK: usize = 4 << 20;

/// What is copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyOptions {
    /// Directories with all that they hold; without it a directory is refused.
    pub recursive: bool,
}

/// How far a copy is, and at its end what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Files of all kinds so far.
    pub files: u64,
    /// Bytes of regular files so far.
    pub bytes: u64,
    /// Bytes of regular files in all, as far as is known.
    pub total_bytes: u64,
    /// Owners, attributes and special files that the other side refused.
    pub refused: u64,
    /// Files of a volume that are not in the copy, since their data needs a key or a decompressor.
    pub unread: u64,
}

/// Why a copy stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A path of the host.
    #[error("{}: {source}", .path.display())]
    Host {
        /// The path.
        path: PathBuf,
        /// What the host said.
        source: io::Error,
    },
    /// A path of the volume.
    #[error("{} in the volume: {source}", .path.display())]
    Volume {
        /// The path.
        path: PathBuf,
        /// What the file system said.
        source: Box<FsError>,
    },
    /// A directory without [`CopyOptions::recursive`].
    #[error("{}: is a directory; only a recursive copy takes it", .path.display())]
    IsDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The volume took only a part of a file.
    #[error("{}: no space: {written} of {wanted} bytes written", .path.display())]
    Short {
        /// The path in the volume.
        path: PathBuf,
        /// Bytes that were written.
        written: u64,
        /// Bytes that there are.
        wanted: u64,
    },
}

fn host(path: &Path) -> impl FnOnce(io::Error) -> CopyError + '_ {
    move |source| CopyError::Host { path: path.to_path_buf(), source }
}

fn volume(path: &Path) -> impl FnOnce(FsError) -> CopyError + '_ {
    move |source| CopyError::Volume { path: path.to_path_buf(), source: Box::new(source) }
}
