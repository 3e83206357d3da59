//! How to open persistent memory, and why that failed.

use std::{io, ops::Range, path::PathBuf, time::Duration};

/// Whether the file has to lie in persistent memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dax {
    /// Where it does not, its page cache is mapped, and a flush is a system call:
    /// [`Durability::Sync`](crate::Durability::Sync).
    #[default]
    Auto,
    /// Or fail with [`OpenError::NotDax`].
    Required,
}

/// How to open a file or a character device of memory.
///
/// ```
/// use f2fs_pmem::{Dax, OpenOptions};
///
/// let options = OpenOptions::new().read_only(true).dax(Dax::Required);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    pub(crate) read_only: bool,
    pub(crate) dax: Dax,
    pub(crate) patience: Duration,
    pub(crate) touch: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { read_only: false, dax: Dax::default(), patience: Duration::from_millis(500), touch: false }
    }
}

impl OpenOptions {
    /// For reading and writing, in persistent memory where the file lies there.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to open for reading only, next to other readers.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Whether the file has to lie in persistent memory.
    #[must_use]
    pub fn dax(self, dax: Dax) -> Self {
        Self { dax, ..self }
    }

    /// Whether every page is made ready for stores at the opening, so that none of them waits for that later. The first
    /// store to a page of a file in persistent memory may wait until the file system has written its journal; that is
    /// too long for a journal of one's own. Kernels before 5.14 do not have it, and nothing is done there.
    #[must_use]
    pub fn touch(self, touch: bool) -> Self {
        Self { touch, ..self }
    }

    /// How long to wait for another process that has the file open. Half a second by default, which is enough for one
    /// that was killed.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }
}

/// Why persistent memory could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Somebody (this process or another) has it open for writing, or has it open at all and writing was asked for.
    #[error("{}: in use", .path.display())]
    AlreadyOpen {
        /// The path.
        path: PathBuf,
    },
    /// Neither a regular file nor a character device of memory. A block device of persistent memory is none of them:
    /// the kernel maps its page cache only, so that it is better off with `io_uring`.
    #[error("{}: is a {kind}, not a regular file or a character device of memory (/dev/dax*)", .path.display())]
    NotMemory {
        /// The path.
        path: PathBuf,
        /// The kind of file that is there.
        kind: &'static str,
    },
    /// Smaller than one block of 4096 bytes.
    #[error("{}: {bytes} bytes is less than one block of 4096", .path.display())]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// [`Dax::Required`], and the file does not lie in persistent memory.
    #[error("{}: does not lie in persistent memory: {reason}", .path.display())]
    NotDax {
        /// The path.
        path: PathBuf,
        /// The kernel's error.
        reason: io::Error,
    },
    /// The file became shorter while it was mapped. A load behind its end would kill the process (SIGBUS).
    #[error("{}: has {bytes} bytes, fewer than the {mapped} that were mapped", .path.display())]
    Shortened {
        /// The path.
        path: PathBuf,
        /// Bytes that were mapped.
        mapped: u64,
        /// Its size.
        bytes: u64,
    },
    /// The file has holes, and its file system no room to fill them. A store to such a hole would kill the process
    /// (SIGBUS).
    #[error("{}: has holes of {holes} bytes, and its file system has room for {room}", .path.display())]
    NoRoom {
        /// The path.
        path: PathBuf,
        /// Bytes that are missing.
        holes: u64,
        /// Bytes that are free.
        room: u64,
    },
    /// The kernel knows bad memory in it. A load there would kill the process (SIGBUS).
    #[error("{}: {} bytes from byte {} on are bad, one of {count} such places", .path.display(), .first.end - .first.start, .first.start)]
    BadMemory {
        /// The path.
        path: PathBuf,
        /// The first bad bytes of the file or device.
        first: Range<u64>,
        /// How many such places there are.
        count: usize,
    },
    /// A system call failed.
    #[error("{}: {call}: {source}", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The call.
        call: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl OpenError {
    /// The standard library's kind of the error.
    #[must_use]
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::AlreadyOpen { .. } => io::ErrorKind::ResourceBusy,
            Self::NotMemory { .. } | Self::TooSmall { .. } => io::ErrorKind::InvalidInput,
            Self::NotDax { .. } => io::ErrorKind::Unsupported,
            Self::Shortened { .. } => io::ErrorKind::UnexpectedEof,
            Self::NoRoom { .. } => io::ErrorKind::StorageFull,
            Self::BadMemory { .. } => io::ErrorKind::InvalidData,
            Self::Io { source, .. } => source.kind(),
        }
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        Self::new(error.io_kind(), error)
    }
}
