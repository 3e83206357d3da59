//! An open directory.

use f2fs_format::Nid;

use crate::FsError;
use crate::handle::Handle;
use crate::listing::{self, DirEntries, DirEntry, ReadDir};
use crate::stat::Metadata;

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    handle: Handle,
}

impl Dir {
    pub(crate) fn new(handle: Handle) -> Result<Dir, FsError> {
        handle.inode.directory()?;
        Ok(Dir { handle })
    }

    /// Its inode number.
    #[must_use]
    pub fn ino(&self) -> Nid {
        self.handle.inode.ino
    }

    /// Up to `limit` entries from position `from` on (0: from the start), `.` and `..` included. None: the end.
    ///
    /// # Errors
    /// [`FsError::BadEntry`] if the entry that stands at `from` has an invalid name: the listing goes on at
    /// [`BadEntry::next`](crate::BadEntry::next). One that stands farther behind ends the part in front of it.
    /// [`FsError::Volume`].
    pub fn read(&self, from: u64, limit: usize) -> Result<Vec<DirEntry>, FsError> {
        listing::read(&self.handle, from, limit)
    }

    /// All entries but `.` and `..`, in the order in which they stand. Each is an entry or an error by itself.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// use f2fs_files::FsError;
    ///
    /// fs.create_file("/one", 0o644)?;
    /// let mut names = Vec::new();
    /// for entry in fs.open_dir("/")?.entries() {
    ///     match entry {
    ///         Ok(entry) => names.push(entry.name),
    ///         Err(FsError::BadEntry(bad)) => eprintln!("left out: {bad}"),
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// assert_eq!(names, [b"one"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn entries(&self) -> DirEntries<'_> {
        DirEntries::new(&self.handle)
    }

    /// Makes the directory durable, with all changes of names in the file system, and the files whose names changed as
    /// they are. With a journal this is a record; else, or if very many names changed, a checkpoint.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn sync_all(&self) -> Result<(), FsError> {
        self.handle.data().sync(&self.handle.inode)
    }

    /// The attributes of the directory.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn metadata(&self) -> Result<Metadata, FsError> {
        self.handle.inode.stat(self.handle.core.volume.features())
    }
}

impl IntoIterator for Dir {
    type Item = Result<DirEntry, FsError>;
    type IntoIter = ReadDir;

    fn into_iter(self) -> ReadDir {
        ReadDir::new(self.handle)
    }
}

impl<'a> IntoIterator for &'a Dir {
    type Item = Result<DirEntry, FsError>;
    type IntoIter = DirEntries<'a>;

    fn into_iter(self) -> DirEntries<'a> {
        self.entries()
    }
}
