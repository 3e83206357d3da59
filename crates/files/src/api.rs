//! The operations of a file system by path. A path begins at the root, with or without a slash; it may hold any bytes
//! but NUL.

use std::path::Path;

use f2fs_format::xattr::SetMode;
use f2fs_sync::Arc;

use crate::FsError;
use crate::dir::Dir;
use crate::file::File;
use crate::filesystem::FileSystem;
use crate::handle::Handle;
use crate::inode::Inode;
use crate::listing::ReadDir;
use crate::namespace::create::NewFile;
use crate::namespace::path::{Last, Special, bytes, lasting};
use crate::namespace::rename::{Place, RenameMode};
use crate::stat::{self, FileKind, Metadata, Time};
use crate::xattr::Xattr;

/// A change of times. A time that is `None` stays.
///
/// ```
/// use f2fs_files::{SetTimes, Time};
///
/// let times = SetTimes::new().modified(Time { seconds: 1_000_000_000, nanoseconds: 0 });
/// assert_eq!(times.accessed, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetTimes {
    /// Last read.
    pub accessed: Option<Time>,
    /// Last change of content.
    pub modified: Option<Time>,
}

impl SetTimes {
    /// Nothing changes.
    #[must_use]
    pub fn new() -> SetTimes {
        SetTimes::default()
    }

    /// Sets the time of the last read.
    #[must_use]
    pub fn accessed(mut self, time: impl Into<Time>) -> SetTimes {
        self.accessed = Some(time.into());
        self
    }

    /// Sets the time of the last change of content.
    #[must_use]
    pub fn modified(mut self, time: impl Into<Time>) -> SetTimes {
        self.modified = Some(time.into());
        self
    }
}

/// The reason why a directory cannot be removed by such a path.
fn unremovable(special: Special) -> FsError {
    match special {
        Special::Root => FsError::Busy,
        Special::Here => FsError::Invalid("a path that ends in `.` cannot be removed"),
        Special::Up => FsError::NotEmpty,
    }
}

impl FileSystem {
    fn at<T>(&self, path: &Path, last: Last, with: impl Fn(&Arc<Inode>) -> Result<T, FsError>) -> Result<T, FsError> {
        lasting(|| self.namespace().resolve(bytes(path), last), with)
    }

    pub(crate) fn handle(&self, path: &Path, last: Last) -> Result<Handle, FsError> {
        self.at(path, last, |inode| Handle::open(self.core_ref(), inode.clone()))
    }

    // ---- looking ----

    /// The attributes of a file; a symbolic link at the end is followed.
    ///
    /// # Errors
    /// [`FsError::NotFound`] and the other errors of a path.
    pub fn metadata(&self, path: impl AsRef<Path>) -> Result<Metadata, FsError> {
        self.at(path.as_ref(), Last::Follow, |inode| inode.stat(self.core.volume.features()))
    }

    /// The attributes of a file; a symbolic link at the end is not followed.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    pub fn symlink_metadata(&self, path: impl AsRef<Path>) -> Result<Metadata, FsError> {
        self.at(path.as_ref(), Last::Keep, |inode| inode.stat(self.core.volume.features()))
    }

    /// Whether there is something under this path.
    ///
    /// # Errors
    /// Errors other than [`FsError::NotFound`], [`FsError::NoTarget`] and [`FsError::NotDirectory`].
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, FsError> {
        match self.symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(FsError::NotFound | FsError::NoTarget | FsError::NotDirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`FsError::WrongKind`] if it is not one, [`FsError::NoTarget`].
    pub fn read_link(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, FsError> {
        self.at(path.as_ref(), Last::Keep, |inode| self.namespace().read_link_target(inode))
    }

    /// Opens a directory for listing.
    ///
    /// # Errors
    /// [`FsError::NotDirectory`].
    pub fn open_dir(&self, path: impl AsRef<Path>) -> Result<Dir, FsError> {
        Dir::new(self.handle(path.as_ref(), Last::Follow)?)
    }

    /// The entries of a directory but `.` and `..`, in the order in which they stand. The iterator reads the directory
    /// as it goes. Each item is an entry or an error; after [`FsError::BadEntry`], an entry with an invalid name, the
    /// next ones follow.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// fs.create_file("/one", 0o644)?;
    /// fs.create_file("/two", 0o644)?;
    /// let names: Result<Vec<_>, _> = fs.read_dir("/")?.map(|entry| entry.map(|entry| entry.name)).collect();
    /// assert_eq!(names?, [b"one", b"two"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NotDirectory`].
    pub fn read_dir(&self, path: impl AsRef<Path>) -> Result<ReadDir, FsError> {
        Ok(self.open_dir(path)?.into_iter())
    }

    // ---- files ----

    /// Opens a regular file.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::IsDirectory`], [`FsError::WrongKind`].
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<File, FsError> {
        let path = path.as_ref();
        match self.namespace().open(bytes(path))? {
            Some(opened) => File::new(Handle::of(self.core_ref(), opened)),
            None => File::new(self.handle(path, Last::Follow)?),
        }
    }

    /// Makes a regular file and opens it.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NoSpace`] when the volume is full.
    pub fn create_file(&self, path: impl AsRef<Path>, permissions: u16) -> Result<File, FsError> {
        let last = self.namespace().resolve_parent(bytes(path.as_ref()))?;
        let name = last.name.map_err(|_| FsError::Exists)?;
        if last.slash {
            return Err(FsError::IsDirectory);
        }
        let new = NewFile::new(FileKind::Regular, permissions);
        File::new(Handle::first(self.core_ref(), self.namespace().create(&last.parent, name, &new)?))
    }

    fn create_at(&self, path: &Path, new: &NewFile) -> Result<Handle, FsError> {
        let (parent, name) = self.namespace().resolve_new(bytes(path), new.kind == FileKind::Directory)?;
        Ok(Handle::first(self.core_ref(), self.namespace().create(&parent, name, new)?))
    }

    /// Makes a file of any kind but a symbolic link.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::DeviceNumber`], [`FsError::NoSpace`] when the volume is full.
    pub fn create(&self, path: impl AsRef<Path>, new: &NewFile) -> Result<Metadata, FsError> {
        new.check()?;
        self.create_at(path.as_ref(), new)?.inode.stat(self.core.volume.features())
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NoSpace`] when the volume is full.
    pub fn create_dir(&self, path: impl AsRef<Path>, permissions: u16) -> Result<Metadata, FsError> {
        self.create(path, &NewFile::new(FileKind::Directory, permissions))
    }

    /// Makes a symbolic link that holds `target`; only the owner of `new` counts.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::LinkTarget`].
    pub fn symlink(&self, target: &[u8], path: impl AsRef<Path>, new: &NewFile) -> Result<Metadata, FsError> {
        let (parent, name) = self.namespace().resolve_new(bytes(path.as_ref()), false)?;
        let new = NewFile { kind: FileKind::Symlink, permissions: 0o777, ..*new };
        let made = Handle::first(self.core_ref(), self.namespace().symlink(&parent, name, target, &new)?);
        made.inode.stat(self.core.volume.features())
    }

    /// Gives a file that is not a directory another name.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::DirectoryLink`].
    pub fn link(&self, path: impl AsRef<Path>, new_path: impl AsRef<Path>) -> Result<(), FsError> {
        let handle = self.handle(path.as_ref(), Last::Keep)?;
        let (parent, name) = self.namespace().resolve_new(bytes(new_path.as_ref()), false)?;
        self.namespace().link(&handle.inode, &parent, name)
    }

    /// Removes a name of a file that is not a directory. An open file lives on without it. What the device does not let
    /// be freed then stays in use until the next open of the volume, which tries again: that is no error.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::IsDirectory`].
    pub fn remove_file(&self, path: impl AsRef<Path>) -> Result<(), FsError> {
        let last = self.namespace().resolve_parent(bytes(path.as_ref()))?;
        let name = last.name.map_err(|_| FsError::IsDirectory)?;
        if last.slash {
            let kind = self.namespace().child(&last.parent, name.bytes())?.kind;
            return Err(if kind == FileKind::Directory { FsError::IsDirectory } else { FsError::NotDirectory });
        }
        self.namespace().unlink(&last.parent, name)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NotDirectory`], [`FsError::NotEmpty`], also for a path that ends in `..`;
    /// [`FsError::Invalid`] for one that ends in `.`; [`FsError::Busy`] for the root.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> Result<(), FsError> {
        let last = self.namespace().resolve_parent(bytes(path.as_ref()))?;
        self.namespace().rmdir(&last.parent, last.name.map_err(unremovable)?)
    }

    /// Removes a file of any kind, and a directory with all that it holds. A symbolic link is removed, not its target.
    ///
    /// # Errors
    /// As [`remove_dir`](Self::remove_dir) for a path that ends in `.`, `..` or nothing, and [`FsError::NotDirectory`]
    /// for one that ends in a slash and means no directory: then nothing was removed. [`FsError::BadEntry`] for the
    /// first entry with an invalid name: all the others are gone. [`FsError::NotEmpty`] if others go on making names
    /// there. Any other error stops it on the way; entries that were removed until then are gone.
    pub fn remove_all(&self, path: impl AsRef<Path>) -> Result<(), FsError> {
        let last = self.namespace().resolve_parent(bytes(path.as_ref()))?;
        let name = last.name.map_err(unremovable)?;
        if last.slash {
            self.namespace().child(&last.parent, name.bytes())?.directory()?;
        }
        self.namespace().remove_tree(&last.parent, name)
    }

    /// Renames a file or directory. A path that ends in a slash means a directory.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NotEmpty`], [`FsError::IntoItself`], and by mode [`FsError::Exists`];
    /// [`FsError::Busy`] for the root and paths that end in `.` or `..`.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>, mode: RenameMode) -> Result<(), FsError> {
        let from = self.namespace().resolve_parent(bytes(from.as_ref()))?;
        let to = self.namespace().resolve_parent(bytes(to.as_ref()))?;
        let from_name = from.name.map_err(|_| FsError::Busy)?;
        let to_name =
            to.name.map_err(|_| if mode == RenameMode::NoReplace { FsError::Exists } else { FsError::Busy })?;
        let from = Place { parent: &from.parent, name: from_name, directory: from.slash };
        let to = Place { parent: &to.parent, name: to_name, directory: to.slash };
        self.namespace().rename(from, to, mode)
    }

    // ---- attributes ----

    fn change_attributes(
        &self,
        path: &Path,
        last: Last,
        mut change: impl FnMut(&mut f2fs_format::inode::Inode),
    ) -> Result<(), FsError> {
        let handle = self.handle(path, last)?;
        let core = &self.core;
        core.balance()?;
        core.refill_nids();
        core.change(|op| {
            let mut block = handle.inode.write_attributes(op);
            let raw = block.inode_mut();
            change(raw);
            stat::set_changed(raw, core.now());
            Ok(())
        })
    }

    /// Sets the permission bits (07777) of a file; a symbolic link at the end is followed.
    ///
    /// # Errors
    /// Those of the path, [`FsError::Volume`].
    pub fn set_permissions(&self, path: impl AsRef<Path>, permissions: u16) -> Result<(), FsError> {
        self.change_attributes(path.as_ref(), Last::Follow, |raw| {
            raw.i_mode = (raw.i_mode.get() & !0o7777 | permissions & 0o7777).into();
        })
    }

    /// Sets owner and group; a symbolic link at the end is not followed. An owner that is `None` stays.
    ///
    /// # Errors
    /// Those of the path, [`FsError::Volume`].
    pub fn set_owner(&self, path: impl AsRef<Path>, uid: Option<u32>, gid: Option<u32>) -> Result<(), FsError> {
        self.change_attributes(path.as_ref(), Last::Keep, |raw| {
            if let Some(uid) = uid {
                raw.i_uid = uid.into();
            }
            if let Some(gid) = gid {
                raw.i_gid = gid.into();
            }
        })
    }

    /// Sets times; a symbolic link at the end is not followed.
    ///
    /// # Errors
    /// [`FsError::Time`] for one with more nanoseconds than a second; those of the path, [`FsError::Volume`].
    pub fn set_times(&self, path: impl AsRef<Path>, times: SetTimes) -> Result<(), FsError> {
        for time in [times.accessed, times.modified].into_iter().flatten() {
            time.check()?;
        }
        self.change_attributes(path.as_ref(), Last::Keep, |raw| {
            if let Some(time) = times.accessed {
                stat::set_accessed(raw, time);
            }
            if let Some(time) = times.modified {
                stat::set_modified(raw, time);
            }
        })
    }

    // ---- extended attributes ----

    /// The value of an extended attribute, by its full name (`user.mime_type`). A symbolic link at the end is not
    /// followed.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`].
    pub fn xattr(&self, path: impl AsRef<Path>, name: impl AsRef<[u8]>) -> Result<Vec<u8>, FsError> {
        self.at(path.as_ref(), Last::Keep, |inode| self.attributes().xattr_get(inode, name.as_ref()))
    }

    /// All extended attributes with their values, sorted by name.
    ///
    /// # Errors
    /// Those of the path, [`FsError::Volume`].
    pub fn xattrs(&self, path: impl AsRef<Path>) -> Result<Vec<Xattr>, FsError> {
        self.at(path.as_ref(), Last::Keep, |inode| self.attributes().xattr_list(inode))
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// [`FsError::Attribute`] if name or value are invalid or do not fit, [`FsError::WrongKind`] for attributes that a
    /// file of this kind cannot have, [`FsError::Exists`] and [`FsError::NoAttribute`] by mode.
    pub fn set_xattr(
        &self,
        path: impl AsRef<Path>,
        name: impl AsRef<[u8]>,
        value: &[u8],
        mode: SetMode,
    ) -> Result<(), FsError> {
        let handle = self.handle(path.as_ref(), Last::Keep)?;
        self.attributes().xattr_set(&handle.inode, name.as_ref(), value, mode)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`].
    pub fn remove_xattr(&self, path: impl AsRef<Path>, name: impl AsRef<[u8]>) -> Result<(), FsError> {
        let handle = self.handle(path.as_ref(), Last::Keep)?;
        self.attributes().xattr_remove(&handle.inode, name.as_ref())
    }
}
