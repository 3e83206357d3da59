//! References to inodes, and operations by inode and name, for a mount and for programs that walk a tree without paths.
//!
//! No locks of its own: a reference is a handle, counted in the inode's life.

use std::path::Path;

use f2fs_format::Nid;
use f2fs_format::xattr::SetMode;
use f2fs_sync::{Arc, protocol_value};

use crate::FsError;
use crate::core::Core;
use crate::dir::Dir;
use crate::file::File;
use crate::filesystem::FileSystem;
use crate::handle::Handle;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::create::NewFile;
use crate::namespace::path::{Last, lasting};
use crate::namespace::rename::{Place, RenameMode};
use crate::page_cache::Seen;
use crate::stat::{self, FileKind, Metadata, Time};
use crate::xattr::Xattr;

/// A change of attributes. A field that is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetAttributes {
    /// Permission bits, set-id and sticky bits included (07777).
    pub permissions: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Last read.
    pub accessed: Option<Time>,
    /// Last change of content.
    pub modified: Option<Time>,
    /// Last change of anything; the present if it is `None`.
    pub changed: Option<Time>,
}

impl SetAttributes {
    /// Permission bits, set-id and sticky bits included (07777).
    #[must_use]
    pub fn permissions(mut self, permissions: Option<u16>) -> Self {
        self.permissions = permissions;
        self
    }

    /// Owner and group.
    #[must_use]
    pub fn owner(mut self, uid: Option<u32>, gid: Option<u32>) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }

    /// Last read, and last change of content.
    #[must_use]
    pub fn times(mut self, accessed: Option<Time>, modified: Option<Time>) -> Self {
        (self.accessed, self.modified) = (accessed, modified);
        self
    }

    /// Last change of anything.
    #[must_use]
    pub fn changed(mut self, changed: Option<Time>) -> Self {
        self.changed = changed;
        self
    }
}

/// A reference to an inode of any kind. The inode lives as long as there is a reference, also without a name: its
/// number is not given to another file meanwhile. Names are looked up in the directory that the reference means,
/// wherever it was moved.
///
/// A name is one component of a path. `.` and `..` can be looked up, but neither made, moved nor removed. Symbolic
/// links are never followed.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
/// # f2fs_volume::format::format(&*device, &Default::default())?;
/// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
/// use f2fs_files::{FileKind, NewFile};
///
/// let root = fs.root()?;
/// let notes = root.create("notes", &NewFile::new(FileKind::Directory, 0o755))?;
/// let today = notes.create("today", &NewFile::new(FileKind::Regular, 0o644))?;
/// let file = today.open_file()?;
/// file.write_at(b"buy bread", 0)?;
/// notes.remove_file("today")?; // the file lives on: there is a reference
/// assert_eq!(today.metadata()?.size, 9);
/// assert_eq!(today.metadata()?.links, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InodeRef {
    handle: Handle,
    seen: Seen,
}

impl FileSystem {
    /// A reference to the root directory.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn root(&self) -> Result<InodeRef, FsError> {
        Ok(InodeRef::new(Handle::open(self.core_ref(), self.namespace().root()?)?))
    }
}

/// A reference by path.
impl FileSystem {
    /// A reference to what a path means; a symbolic link at the end is followed.
    ///
    /// # Errors
    /// [`FsError::NotFound`] and the other errors of a path.
    pub fn inode_at(&self, path: impl AsRef<Path>) -> Result<InodeRef, FsError> {
        Ok(InodeRef::new(self.handle(path.as_ref(), Last::Follow)?))
    }
}

/// A reference by number.
impl FileSystem {
    /// A reference to the inode of a number, for those who have kept nothing but the number, as handles of a file in a
    /// network file system do. The number may be another file's by now: [`Metadata::generation`] tells.
    ///
    /// No name holds the inode meanwhile. So this waits until no operation is under way on the volume.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if no inode has the number, or if it has no name left and nobody has it open;
    /// [`FsError::Volume`].
    pub fn inode(&self, ino: Nid) -> Result<InodeRef, FsError> {
        let core = self.core_ref();
        // An inode is made in one operation, and goes in the one that takes its number back.
        let _alone = protocol_value!("inode_by_number_beside_operations", Some(core.volume.alone()), None);
        if !core.volume.nodes().is_inode(ino)? {
            return Err(FsError::NotFound);
        }
        let inode = core.inode(ino)?;
        let unused = inode.life.lock().opens == 0;
        if unused && inode.node.read().inode().i_links.get() == 0 {
            return Err(FsError::NotFound);
        }
        // One whose last handle goes now is freed from here on, and cannot be opened.
        Ok(InodeRef::new(Handle::open(core.clone(), inode)?))
    }

    /// A reference to an inode that the caller had before, by its number and its [`Metadata::generation`]. While it has a
    /// name, this waits for nobody; else as [`inode`](Self::inode).
    ///
    /// # Errors
    /// [`FsError::NotFound`] if that inode is gone, or has no name left and nobody has it open; [`FsError::Volume`].
    pub fn inode_again(&self, ino: Nid, generation: u32) -> Result<InodeRef, FsError> {
        let core = self.core_ref();
        let is_linked = |inode: &Inode| {
            let block = inode.node.read();
            // Another generation is a later inode, which may be just about to be made.
            block.inode().i_generation.get() == generation && block.inode().i_links.get() > 0
        };
        let found = core.inodes.in_memory(ino).or_else(|| {
            let _gate = core.volume.begin_read();
            // One that has lost its links does not come to memory again (`Inode::load`). What else is wrong is found
            // below, where nothing changes meanwhile.
            core.inode(ino).ok()
        });
        if let Some(inode) = found
            && is_linked(&inode)
        {
            // One whose last name goes now is freed from here on, and cannot be opened.
            return Ok(InodeRef::new(protocol_value!(
                "inode_again_without_its_life",
                Handle::open(core.clone(), inode)?,
                Handle::first(core.clone(), inode)
            )));
        }
        let inode = self.inode(ino)?;
        if inode.metadata()?.generation != generation {
            return Err(FsError::NotFound);
        }
        Ok(inode)
    }
}

impl InodeRef {
    fn new(handle: Handle) -> InodeRef {
        InodeRef { seen: handle.inode.seen_errors(), handle }
    }

    /// Another reference to the same inode, which must be alive: this reference shows that it is.
    fn another(&self) -> Result<Handle, FsError> {
        Handle::open(self.handle.core.clone(), self.inode().clone())
    }

    pub(crate) fn inode(&self) -> &Arc<Inode> {
        &self.handle.inode
    }

    fn made(&self, inode: Arc<Inode>) -> InodeRef {
        InodeRef::new(Handle::first(self.handle.core.clone(), inode))
    }

    /// Its inode number.
    #[must_use]
    pub fn ino(&self) -> Nid {
        self.inode().ino
    }

    /// The kind of the file.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        self.inode().kind
    }

    /// The attributes of the file.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn metadata(&self) -> Result<Metadata, FsError> {
        self.inode().stat(self.handle.core.volume.features())
    }

    /// Changes attributes, all in one step.
    ///
    /// # Errors
    /// [`FsError::Time`] for a time with more nanoseconds than a second, [`FsError::Volume`].
    pub fn set_attributes(&self, attributes: &SetAttributes) -> Result<(), FsError> {
        for time in [attributes.accessed, attributes.modified, attributes.changed].into_iter().flatten() {
            time.check()?;
        }
        let (core, inode) = (&self.handle.core, self.inode());
        core.balance()?;
        core.refill_nids();
        core.change(|op| {
            let mut block = inode.write_attributes(op);
            let raw = block.inode_mut();
            if let Some(permissions) = attributes.permissions {
                raw.i_mode = (raw.i_mode.get() & !0o7777 | permissions & 0o7777).into();
            }
            if let Some(uid) = attributes.uid {
                raw.i_uid = uid.into();
            }
            if let Some(gid) = attributes.gid {
                raw.i_gid = gid.into();
            }
            if let Some(time) = attributes.accessed {
                stat::set_accessed(raw, time);
            }
            if let Some(time) = attributes.modified {
                stat::set_modified(raw, time);
            }
            stat::set_changed(raw, attributes.changed.unwrap_or_else(|| core.now()));
            Ok(())
        })
    }

    /// Opens the regular file that this is. The file does not need the reference.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`], [`FsError::WrongKind`], [`FsError::Encrypted`].
    pub fn open_file(&self) -> Result<File, FsError> {
        File::new(self.another()?)
    }

    /// Opens the directory that this is, for listing. The directory does not need the reference.
    ///
    /// # Errors
    /// [`FsError::NotDirectory`].
    pub fn open_dir(&self) -> Result<Dir, FsError> {
        Dir::new(self.another()?)
    }

    /// Makes the file durable; see [`File::sync_all`]. For anything but a regular file this is as for a
    /// [directory](Dir::sync_all).
    ///
    /// # Errors
    /// [`FsError::Volume`]; [`FsError::WriteBack`] for an error of write-back that this reference has not been told.
    pub fn sync_all(&self) -> Result<(), FsError> {
        self.handle.sync(&self.seen)
    }

    // ---- names in this directory ----

    /// The inode that a name in this directory leads to; `.` and `..` as well.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NotDirectory`] if this is not one, [`FsError::Name`].
    pub fn lookup(&self, name: impl AsRef<[u8]>) -> Result<InodeRef, FsError> {
        let core = &self.handle.core;
        let open = |inode: &Arc<Inode>| Handle::open(core.clone(), inode.clone());
        let handle = lasting(|| self.handle.namespace().child(self.inode(), name.as_ref()), open)?;
        Ok(InodeRef::new(handle))
    }

    /// Makes a file of any kind but a symbolic link in this directory.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::NotFound`] if this directory was removed, [`FsError::DeviceNumber`],
    /// [`FsError::NoSpace`].
    pub fn create(&self, name: impl AsRef<[u8]>, new: &NewFile) -> Result<InodeRef, FsError> {
        new.check()?;
        let name = free_name(name.as_ref())?;
        Ok(self.made(self.handle.namespace().create(self.inode(), name, new)?))
    }

    /// Makes a symbolic link that holds `target`; only the owner of `new` counts.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::LinkTarget`], [`FsError::NotFound`] if this directory was removed.
    pub fn symlink(&self, target: &[u8], name: impl AsRef<[u8]>, new: &NewFile) -> Result<InodeRef, FsError> {
        let new = NewFile { kind: FileKind::Symlink, permissions: 0o777, ..*new };
        let name = free_name(name.as_ref())?;
        Ok(self.made(self.handle.namespace().symlink(self.inode(), name, target, &new)?))
    }

    /// Makes a file of any kind but a directory or a symbolic link that has no name (`O_TMPFILE`). It is there while there
    /// is a reference or a handle, and not after a crash; until [`link`](Self::link) or [`link_over`](Self::link_over) give
    /// it a name. So nobody ever sees a part of it. It belongs to no directory; its name can be made in any.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// # use f2fs_files::{FileKind, NewFile};
    /// fs.create_file("/settings", 0o644)?.write_at(b"old", 0)?;
    ///
    /// let root = fs.root()?;
    /// let next = root.create_unnamed(&NewFile::new(FileKind::Regular, 0o644))?;
    /// next.open_file()?.write_at(b"new and whole", 0)?;
    /// root.link_over("settings", &next)?; // from one to the other, with nothing in between
    /// assert_eq!(fs.metadata("/settings")?.size, 13);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FsError::NotDirectory`] if this is no directory, [`FsError::NotFound`] if it was removed,
    /// [`FsError::WrongKind`], [`FsError::DeviceNumber`], and [`FsError::NoSpace`], also if there are as many files
    /// without a name as a checkpoint can list.
    pub fn create_unnamed(&self, new: &NewFile) -> Result<InodeRef, FsError> {
        new.check()?;
        Ok(self.made(self.handle.namespace().create_unnamed(self.inode(), new)?))
    }

    /// Gives `file` a name in this directory as [`link`](Self::link) does. Another file that has the name loses it at the
    /// same moment; a directory is not replaced. If the name is the file's already, nothing changes.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`] if the name is a directory's, and those of [`link`](Self::link) but [`FsError::Exists`].
    pub fn link_over(&self, name: impl AsRef<[u8]>, file: &InodeRef) -> Result<(), FsError> {
        self.same_file_system(file)?;
        let name = match free_name(name.as_ref()) {
            Err(FsError::Exists) => return Err(FsError::IsDirectory),
            name => name?,
        };
        self.handle.namespace().link_over(file.inode(), Place::new(self.inode(), name))
    }

    /// Gives `file`, which is not a directory, a name in this directory.
    ///
    /// # Errors
    /// [`FsError::Exists`], [`FsError::DirectoryLink`], [`FsError::NotFound`] if the file has no name left and was not
    /// [made without one](Self::create_unnamed), [`FsError::OtherVolume`] if it is of another file system.
    pub fn link(&self, name: impl AsRef<[u8]>, file: &InodeRef) -> Result<(), FsError> {
        self.same_file_system(file)?;
        self.handle.namespace().link(file.inode(), self.inode(), free_name(name.as_ref())?)
    }

    /// Removes a name of a file that is not a directory. The file lives on while there is a reference or a handle.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::IsDirectory`].
    pub fn remove_file(&self, name: impl AsRef<[u8]>) -> Result<(), FsError> {
        self.handle.namespace().unlink(self.inode(), Name::new(name.as_ref())?)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NotDirectory`], [`FsError::NotEmpty`].
    pub fn remove_dir(&self, name: impl AsRef<[u8]>) -> Result<(), FsError> {
        self.handle.namespace().rmdir(self.inode(), Name::new(name.as_ref())?)
    }

    /// Renames the entry `name` of this directory to `new_name` in `to`, which may be this directory.
    ///
    /// # Errors
    /// [`FsError::NotFound`], [`FsError::NotEmpty`], [`FsError::IntoItself`], by mode [`FsError::Exists`];
    /// [`FsError::OtherVolume`] if `to` is of another file system.
    pub fn rename(
        &self,
        name: impl AsRef<[u8]>,
        to: &InodeRef,
        new_name: impl AsRef<[u8]>,
        mode: RenameMode,
    ) -> Result<(), FsError> {
        self.same_file_system(to)?;
        let from = Place::new(self.inode(), Name::new(name.as_ref())?);
        self.handle.namespace().rename(from, Place::new(to.inode(), Name::new(new_name.as_ref())?), mode)
    }

    fn same_file_system(&self, other: &InodeRef) -> Result<(), FsError> {
        // Not the counted references: each processor has one of its own.
        if std::ptr::eq::<Core>(&***self.handle.core, &***other.handle.core) {
            return Ok(());
        }
        Err(FsError::OtherVolume)
    }

    // ---- symbolic links, extended attributes ----

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`FsError::WrongKind`] if it is not one.
    pub fn read_link(&self) -> Result<Vec<u8>, FsError> {
        self.handle.namespace().read_link_target(self.inode())
    }

    /// The value of an extended attribute, by its full name (`user.mime_type`).
    ///
    /// # Errors
    /// [`FsError::NoAttribute`], [`FsError::Attribute`] for names that no attribute has.
    pub fn xattr(&self, name: impl AsRef<[u8]>) -> Result<Vec<u8>, FsError> {
        self.handle.attributes().xattr_get(self.inode(), name.as_ref())
    }

    /// All extended attributes with their values, sorted by name.
    ///
    /// # Errors
    /// [`FsError::Volume`].
    pub fn xattrs(&self) -> Result<Vec<Xattr>, FsError> {
        self.handle.attributes().xattr_list(self.inode())
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// As [`FileSystem::set_xattr`].
    pub fn set_xattr(&self, name: impl AsRef<[u8]>, value: &[u8], mode: SetMode) -> Result<(), FsError> {
        self.handle.attributes().xattr_set(self.inode(), name.as_ref(), value, mode)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`].
    pub fn remove_xattr(&self, name: impl AsRef<[u8]>) -> Result<(), FsError> {
        self.handle.attributes().xattr_remove(self.inode(), name.as_ref())
    }
}

/// A name that is to be made: `.` and `..` are there already.
fn free_name(name: &[u8]) -> Result<Name<'_>, FsError> {
    if matches!(name, b"." | b"..") { Err(FsError::Exists) } else { Name::new(name) }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
