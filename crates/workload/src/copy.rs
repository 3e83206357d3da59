//! Trees in and out of a volume: kinds, permissions, owners, times, extended attributes, hard links and holes are kept.
//!
//! Extended attributes that the other side refuses (`trusted.*` and `security.*` need privileges; some file systems
//! have none) are counted, not fatal; so are owners on a host where we are not root.

mod attributes;
mod below;
mod content;
mod crew;
mod inward;
mod onto;
mod outward;
mod place;
mod stream;
mod tally;
mod volume_files;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use f2fs::FsError;
use f2fs::files::Xattr;

use crate::shell::Quoted;

pub use inward::{copy_in, copy_in_open};
pub use outward::copy_out;
pub use stream::write_to;
pub use volume_files::VolumeFiles;

/// Options of a copy.
#[derive(Clone, Debug, Default)]
pub struct CopyOptions {
    /// Directories with all that they hold; without it a directory is refused.
    pub recursive: bool,
    /// Threads that copy; `None`: as many as there are processors.
    pub jobs: Option<NonZeroUsize>,
    /// Device nodes, pipes and sockets are left out of a copy to the host.
    pub skip_special: bool,
    /// What the volume itself lies on.
    pub volume_files: VolumeFiles,
}

impl CopyOptions {
    fn workers(&self) -> usize {
        self.jobs.map_or_else(f2fs::sync::processors, NonZeroUsize::get).clamp(1, 256)
    }
}

/// The progress of a copy, and its totals at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Files of all kinds so far.
    pub files: u64,
    /// Bytes of regular files so far.
    pub bytes: u64,
    /// Bytes of regular files in all, as far as is known.
    pub total_bytes: u64,
    /// Extended attributes that the other side did not take; each was told as [`CopyEvent::Lost`].
    pub lost: u64,
    /// Special files that were left out because of [`CopyOptions::skip_special`].
    pub skipped: u64,
    /// Entries that could not be copied; each was told as [`CopyEvent::Failed`].
    pub failed: u64,
}

/// An event during a copy.
#[derive(Debug)]
#[non_exhaustive]
pub enum CopyEvent<'a> {
    /// An entry was copied.
    Progress(CopyProgress),
    /// An entry could not be copied; the copy goes on.
    Failed(&'a CopyError),
    /// An extended attribute of an entry could not be copied; the entry was.
    Lost(&'a CopyError),
}

/// The listener of a copy while it runs, called from any of its threads.
pub type Watch<'a> = &'a (dyn Fn(CopyEvent<'_>) + Sync);

/// Why something was not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A path of the host.
    #[error("{}: {source}", Quoted::path(.path))]
    Host {
        /// The path.
        path: PathBuf,
        /// The host's error.
        source: io::Error,
    },
    /// A path of the volume.
    #[error("{} in the volume: {source}", Quoted::path(.path))]
    Volume {
        /// The path.
        path: PathBuf,
        /// The file system's error.
        source: Box<FsError>,
    },
    /// A directory without [`CopyOptions::recursive`].
    #[error("{}: is a directory; only a recursive copy takes it", Quoted::path(.path))]
    IsDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The volume has room for the beginning of a file only.
    #[error("{}: the volume is full behind byte {written} of {wanted}", Quoted::path(.path))]
    Short {
        /// The path in the volume.
        path: PathBuf,
        /// Where the first byte stands that there was no room for.
        written: u64,
        /// Bytes that there are.
        wanted: u64,
    },
    /// An entry in the volume has a name that no system could have given it.
    #[error("{} in the volume: an entry has the invalid name {}, and is not copied", Quoted::path(.path), Quoted(.name))]
    BadName {
        /// The directory.
        path: PathBuf,
        /// The name.
        name: Vec<u8>,
    },
    /// An extended attribute that the other side does not take.
    #[error("{}: its attribute {} of {bytes} bytes is not copied: {source}", Quoted::path(.path), Quoted(.name))]
    Attribute {
        /// The path that it was to be set on.
        path: PathBuf,
        /// Its name.
        name: Vec<u8>,
        /// Bytes of its value.
        bytes: usize,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of the host that the volume itself lies on ([`VolumeFiles`]). It is neither copied nor replaced.
    #[error("{}: the volume itself lies on it", Quoted::path(.path))]
    OwnFile {
        /// The path.
        path: PathBuf,
    },
    /// The destination is a symbolic link to nothing.
    #[error("{}: is a symbolic link whose target is missing; nothing is written through it", Quoted::path(.path))]
    Dangling {
        /// The path.
        path: PathBuf,
    },
    /// The copy of a tree ended before its end, since nothing more could be copied.
    #[error("{source}; the copy stopped there, after {copied} entries")]
    Ended {
        /// Entries that were copied until then.
        copied: u64,
        /// Why.
        source: Box<CopyError>,
    },
    /// A file was not replaced: what was there before is there, and whole.
    #[error("{source}; the file that was there is as it was")]
    Kept {
        /// Why.
        source: Box<CopyError>,
    },
    /// A file was written in part, and is still there.
    #[error("{source}; {} is incomplete", Quoted::path(.path))]
    Incomplete {
        /// The path.
        path: PathBuf,
        /// Why.
        source: Box<CopyError>,
    },
}

fn host(path: &Path) -> impl FnOnce(io::Error) -> CopyError + '_ {
    move |source| CopyError::Host { path: path.to_path_buf(), source }
}

fn volume(path: &Path) -> impl FnOnce(FsError) -> CopyError + '_ {
    move |source| CopyError::Volume { path: path.to_path_buf(), source: Box::new(source) }
}

fn lost(path: &Path, (name, value): &Xattr, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CopyError {
    CopyError::Attribute { path: path.to_path_buf(), name: name.clone(), bytes: value.len(), source: source.into() }
}

fn incomplete(path: &Path, error: CopyError) -> CopyError {
    CopyError::Incomplete { path: path.to_path_buf(), source: Box::new(error) }
}
