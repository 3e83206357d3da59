//! The entries of a directory, one by one.

use std::iter::FusedIterator;
use std::vec;

use crate::FsError;
use crate::file::{Dir, DirEntry};

/// Entries that are listed together.
const PAGE: usize = 1024;

/// Where a listing is.
#[derive(Debug)]
struct Progress {
    listed: vec::IntoIter<DirEntry>,
    /// Where it goes on; `None`: nowhere.
    position: Option<u64>,
}

impl Progress {
    fn new() -> Progress {
        Progress { listed: Vec::new().into_iter(), position: Some(0) }
    }

    fn next(&mut self, dir: &Dir) -> Option<Result<DirEntry, FsError>> {
        loop {
            if let Some(entry) = self.listed.find(|entry| entry.name != b"." && entry.name != b"..") {
                return Some(Ok(entry));
            }
            match dir.read(self.position?, PAGE) {
                Ok(listed) => {
                    self.position = listed.last().map(|last| last.next);
                    self.listed = listed.into_iter();
                }
                Err(error) => {
                    self.position = match &error {
                        FsError::BadEntry(bad) => Some(bad.next),
                        _ => None,
                    };
                    return Some(Err(error));
                }
            }
        }
    }
}

/// The entries of a directory but `.` and `..`; see [`Dir::entries`]. Goes on behind a [`FsError::BadEntry`], and ends behind any
/// other error.
#[derive(Debug)]
pub struct DirEntries<'a> {
    dir: &'a Dir,
    progress: Progress,
}

impl<'a> DirEntries<'a> {
    pub(crate) fn new(dir: &'a Dir) -> DirEntries<'a> {
        DirEntries { dir, progress: Progress::new() }
    }
}

impl Iterator for DirEntries<'_> {
    type Item = Result<DirEntry, FsError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.progress.next(self.dir)
    }
}

impl FusedIterator for DirEntries<'_> {}

/// The same with the directory inside, as [`std::fs::ReadDir`]: what
/// [`FileSystem::read_dir`](crate::FileSystem::read_dir) gives. The directory stays open as long as it is there. It is read page by page, as
/// the entries are asked for: names that come and go meanwhile may be among them or not, the others are, once.
#[derive(Debug)]
pub struct ReadDir {
    dir: Dir,
    progress: Progress,
}

impl ReadDir {
    pub(crate) fn new(dir: Dir) -> ReadDir {
        ReadDir { dir, progress: Progress::new() }
    }
}

impl Iterator for ReadDir {
    type Item = Result<DirEntry, FsError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.progress.next(&self.dir)
    }
}

impl FusedIterator for ReadDir {}

impl IntoIterator for Dir {
    type Item = Result<DirEntry, FsError>;
    type IntoIter = ReadDir;

    fn into_iter(self) -> ReadDir {
        ReadDir::new(self)
    }
}

impl<'a> IntoIterator for &'a Dir {
    type Item = Result<DirEntry, FsError>;
    type IntoIter = DirEntries<'a>;

    fn into_iter(self) -> DirEntries<'a> {
        self.entries()
    }
}
