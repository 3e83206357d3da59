//! The file system that is measured.

use std::error::Error;

use f2fs::{File, FileSystem, FsError, RenameMode};

/// The directory of a volume that everything lies in.
pub(super) const ROOT: &str = "/fxmark";

/// Operations of FxMark, by the library or by system calls. Paths are full.
pub(super) trait System: Sync {
    /// An open file.
    type File;
    /// Why something failed.
    type Error: Error + Send + Sync + 'static;

    /// The directory that everything lies in, and that is the shared one.
    fn root(&self) -> &str;
    fn create_dir(&self, path: &str) -> Result<(), Self::Error>;
    /// Makes a file that is not there, and opens it.
    fn create(&self, path: &str) -> Result<Self::File, Self::Error>;
    fn open(&self, path: &str) -> Result<Self::File, Self::Error>;
    fn remove(&self, path: &str) -> Result<(), Self::Error>;
    fn rename(&self, from: &str, to: &str) -> Result<(), Self::Error>;
    /// Reads from a place (bytes) of a file; how many bytes.
    fn read_at(&self, file: &Self::File, into: &mut [u8], at: u64) -> Result<usize, Self::Error>;
    /// Writes to a place (bytes) of a file; how many bytes.
    fn write_at(&self, file: &Self::File, bytes: &[u8], at: u64) -> Result<usize, Self::Error>;
}

impl System for FileSystem {
    type File = File;
    type Error = FsError;

    fn root(&self) -> &str {
        ROOT
    }

    fn create_dir(&self, path: &str) -> Result<(), FsError> {
        FileSystem::create_dir(self, path, 0o700).map(drop)
    }

    fn create(&self, path: &str) -> Result<File, FsError> {
        self.create_file(path, 0o700)
    }

    fn open(&self, path: &str) -> Result<File, FsError> {
        self.open_file(path)
    }

    fn remove(&self, path: &str) -> Result<(), FsError> {
        self.remove_file(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), FsError> {
        FileSystem::rename(self, from, to, RenameMode::Replace)
    }

    fn read_at(&self, file: &File, into: &mut [u8], at: u64) -> Result<usize, FsError> {
        file.read_at(into, at)
    }

    fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> Result<usize, FsError> {
        file.write_at(bytes, at)
    }
}
