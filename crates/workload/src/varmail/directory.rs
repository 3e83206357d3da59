//! Mails in a directory of a file system that the kernel has mounted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::Mails;

/// A directory of the kernel's. The mails lie in a directory `mail` within it, which is made.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// The mails are to lie in this one.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory(path.into().join("mail"))
    }

    /// Removes the mails, and the directory that they lie in.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove_all(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.0)
    }

    fn path(&self, number: u32) -> PathBuf {
        self.0.join(format!("{number:05}"))
    }
}

impl Mails for Directory {
    type File = File;
    type Error = io::Error;

    fn begin(&self) -> io::Result<()> {
        // The error is printed as it is.
        fs::create_dir(&self.0)
            .map_err(|error| io::Error::new(error.kind(), format!("mkdir {}: {error}", self.0.display())))
    }

    fn create(&self, number: u32) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create_new(true).open(self.path(number))
    }

    fn open(&self, number: u32) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).open(self.path(number))
    }

    fn remove(&self, number: u32) -> io::Result<()> {
        fs::remove_file(self.path(number))
    }

    fn append(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn read_at(&self, file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
        file.read_at(into, at)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn make_durable(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(File::open(&self.0)?)?)
    }

    fn checkpoints(&self) -> u64 {
        0
    }
}
