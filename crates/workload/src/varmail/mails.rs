//! The file system that holds the mails.

use std::fmt;

use f2fs_files::{File, FileSystem, FsError};

const DIRECTORY: &str = "/mail";

/// A file system with the files of a mail server in one directory of it. Files are named by numbers.
pub trait Mails: Sync {
    /// An open file.
    type File: fmt::Debug;
    /// Why something failed.
    type Error: Send;

    /// Makes the directory.
    ///
    /// # Errors
    /// Those of the file system, here and below.
    fn begin(&self) -> Result<(), Self::Error>;

    /// Makes a file that is not there.
    ///
    /// # Errors
    /// Those of the file system.
    fn create(&self, number: u32) -> Result<Self::File, Self::Error>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// Those of the file system.
    fn open(&self, number: u32) -> Result<Self::File, Self::Error>;

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the file system.
    fn remove(&self, number: u32) -> Result<(), Self::Error>;

    /// Writes all of `bytes` behind the end of a file.
    ///
    /// # Errors
    /// Those of the file system.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Reads from a place (bytes) of a file; how much, 0 at its end.
    ///
    /// # Errors
    /// Those of the file system.
    fn read_at(&self, file: &Self::File, into: &mut [u8], at: u64) -> Result<usize, Self::Error>;

    /// Makes a file durable.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync(&self, file: &Self::File) -> Result<(), Self::Error>;

    /// Makes everything durable.
    ///
    /// # Errors
    /// Those of the file system.
    fn make_durable(&self) -> Result<(), Self::Error>;

    /// Checkpoints until now; 0 where nobody counts them.
    fn checkpoints(&self) -> u64;
}

fn path(number: u32) -> String {
    format!("{DIRECTORY}/{number:05}")
}

impl Mails for FileSystem {
    type File = File;
    type Error = FsError;

    fn begin(&self) -> Result<(), FsError> {
        self.create_dir(DIRECTORY, 0o755).map(drop)
    }

    fn create(&self, number: u32) -> Result<File, FsError> {
        self.create_file(path(number), 0o644)
    }

    fn open(&self, number: u32) -> Result<File, FsError> {
        self.open_file(path(number))
    }

    fn remove(&self, number: u32) -> Result<(), FsError> {
        self.remove_file(path(number))
    }

    fn append(&self, file: &File, bytes: &[u8]) -> Result<(), FsError> {
        file.append(bytes).map(drop)
    }

    fn read_at(&self, file: &File, into: &mut [u8], at: u64) -> Result<usize, FsError> {
        file.read_at(into, at)
    }

    fn sync(&self, file: &File) -> Result<(), FsError> {
        file.sync_all()
    }

    fn make_durable(&self) -> Result<(), FsError> {
        self.checkpoint().map(drop)
    }

    fn checkpoints(&self) -> u64 {
        self.statfs().written.checkpoints
    }
}
