//! The entries of a directory, one by one.

use std::iter::FusedIterator;
use std::vec;

use f2fs_format::Nid;

use crate::FsError;
use crate::handle::Handle;
use crate::stat::FileKind;

/// Entries that are listed together.
const PAGE: usize = 1024;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// The name, as bytes: 1 to 255 of them, not necessarily UTF-8.
    pub name: Vec<u8>,
    /// The inode.
    pub ino: Nid,
    /// The kind that the entry states.
    pub kind: Option<FileKind>,
    /// Where a listing goes on behind this entry: stays good while other names come and go.
    pub next: u64,
}

/// Up to `limit` entries from position `from` on; see [`Dir::read`](crate::Dir::read).
pub(crate) fn read(handle: &Handle, from: u64, limit: usize) -> Result<Vec<DirEntry>, FsError> {
    let core = &handle.core;
    let _gate = core.volume.begin_read();
    let listed = handle.inode.directory()?.list(&core.volume, from, limit);
    core.dentries.trim(&core.inodes);
    let listed = listed?;
    if let (true, Some(bad)) = (listed.entries.is_empty(), listed.bad) {
        return Err(bad.into());
    }
    Ok(listed
        .entries
        .into_iter()
        .map(|entry| DirEntry {
            name: entry.name,
            ino: entry.ino,
            kind: entry.file_type.and_then(|file_type| FileKind::from_mode(file_type.to_mode())),
            next: entry.next,
        })
        .collect())
}

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

    fn next(&mut self, dir: &Handle) -> Option<Result<DirEntry, FsError>> {
        loop {
            if let Some(entry) = self.listed.find(|entry| entry.name != b"." && entry.name != b"..") {
                return Some(Ok(entry));
            }
            match read(dir, self.position?, PAGE) {
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

/// The entries of a directory but `.` and `..`; see [`Dir::entries`](crate::Dir::entries). Goes on behind a
/// [`FsError::BadEntry`], and ends behind any other error.
#[derive(Debug)]
pub struct DirEntries<'a> {
    dir: &'a Handle,
    progress: Progress,
}

impl<'a> DirEntries<'a> {
    pub(crate) fn new(dir: &'a Handle) -> DirEntries<'a> {
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
/// [`FileSystem::read_dir`](crate::FileSystem::read_dir) gives. The directory stays open as long as it is there. It is
/// read page by page, as the entries are asked for: names that come and go meanwhile may be among them or not, the
/// others are, once.
#[derive(Debug)]
pub struct ReadDir {
    dir: Handle,
    progress: Progress,
}

impl ReadDir {
    pub(crate) fn new(dir: Handle) -> ReadDir {
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
