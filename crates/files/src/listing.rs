//! The entries of a directory, one by one.

use std::vec;

use crate::FsError;
use crate::file::{Dir, DirEntry};

/// Entries that are listed together.
const PAGE: usize = 1024;

/// The entries of a directory but `.` and `..`; see [`Dir::entries`]. Goes on behind a [`FsError::BadEntry`], and ends behind any
/// other error.
#[derive(Debug)]
pub struct DirEntries<'a> {
    dir: &'a Dir,
    listed: vec::IntoIter<DirEntry>,
    /// Where the listing goes on; `None`: nowhere.
    position: Option<u64>,
}

impl<'a> DirEntries<'a> {
    pub(crate) fn new(dir: &'a Dir) -> DirEntries<'a> {
        DirEntries { dir, listed: Vec::new().into_iter(), position: Some(0) }
    }
}

impl Iterator for DirEntries<'_> {
    type Item = Result<DirEntry, FsError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.listed.find(|entry| entry.name != b"." && entry.name != b"..") {
                return Some(Ok(entry));
            }
            match self.dir.read(self.position?, PAGE) {
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

impl std::iter::FusedIterator for DirEntries<'_> {}
