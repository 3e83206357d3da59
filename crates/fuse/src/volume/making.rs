//! Files come to be, and get names: with owner, permissions and access control lists as their directory gives them.
//!
//! No locks of its own.

use f2fs_files::{DeviceNumber, FileKind, FsError, InodeRef, Metadata, NewFile, SetMode};

use super::Mounted;
use crate::acl;
use crate::caller::Caller;

/// What is stored with a new file, beside itself.
struct Lists {
    kind: FileKind,
    /// The access control list of the file, and that which its directory gives to all in it.
    inherited: Option<(Vec<u8>, Vec<u8>)>,
}

impl Lists {
    fn store(&self, made: &InodeRef) -> Result<(), FsError> {
        let Some((access, default)) = &self.inherited else { return Ok(()) };
        if !acl::mode(access)?.1 {
            made.set_xattr(acl::ACCESS, access, SetMode::Any)?;
        }
        if self.kind == FileKind::Directory {
            made.set_xattr(acl::DEFAULT, default, SetMode::Any)?;
        }
        Ok(())
    }
}

/// What a caller wants made.
#[derive(Clone, Copy)]
struct Wanted {
    caller: Caller,
    mode: u32,
    umask: u32,
    device: Option<DeviceNumber>,
}

/// A new file of a directory.
fn new_file(parent: &InodeRef, wanted: Wanted) -> Result<(NewFile, Lists), FsError> {
    let Wanted { caller, mode, umask, device } = wanted;
    let kind = FileKind::from_mode(mode as u16).ok_or(FsError::Invalid("no kind of file"))?;
    let above = parent.metadata()?;
    let default = match parent.xattr(acl::DEFAULT) {
        Ok(list) => Some(list),
        Err(FsError::NoAttribute) => None,
        Err(error) => return Err(error),
    };
    let asked = mode as u16 & 0o7777;
    let (inherited, mut permissions) = match default {
        Some(list) => {
            let (access, permissions) = acl::inherit(&list, asked)?;
            (Some((access, list)), permissions)
        }
        None => (None, asked & !(umask as u16 & 0o777)),
    };
    let mut gid = caller.gid;
    if above.permissions & 0o2000 != 0 {
        gid = above.gid;
        if kind == FileKind::Directory {
            permissions |= 0o2000;
        }
    }
    let mut new = NewFile::new(kind, permissions).owner(caller.uid, gid);
    if matches!(kind, FileKind::BlockDevice | FileKind::CharDevice) {
        new.device = device;
    }
    Ok((new, Lists { kind, inherited }))
}

impl Mounted {
    pub(crate) fn create(
        &self,
        caller: Caller,
        parent: u64,
        name: &[u8],
        mode: u32,
        umask: u32,
        device: Option<DeviceNumber>,
    ) -> Result<Metadata, FsError> {
        let parent = self.get(parent)?;
        let (new, lists) = new_file(&parent.inode, Wanted { caller, mode, umask, device })?;
        let made = parent.inode.create(name, &new)?;
        if let Err(error) = lists.store(&made) {
            // Without its list others could do more with it than they should.
            let _ = match lists.kind {
                FileKind::Directory => parent.inode.remove_dir(name),
                _ => parent.inode.remove_file(name),
            };
            return Err(error);
        }
        self.told(made)
    }

    /// Makes a file without a name, which [`link`](Self::link) can give it (`O_TMPFILE`). It is gone when the kernel
    /// forgets it, or after a crash.
    pub(crate) fn create_unnamed(
        &self,
        caller: Caller,
        parent: u64,
        mode: u32,
        umask: u32,
    ) -> Result<Metadata, FsError> {
        let parent = self.get(parent)?;
        let (new, lists) = new_file(&parent.inode, Wanted { caller, mode, umask, device: None })?;
        let made = parent.inode.create_unnamed(&new)?;
        lists.store(&made)?;
        let data = self.shown(&made)?;
        // Nothing but this reference keeps it: it must not rest.
        self.table.tell(made, data.generation).hold();
        Ok(data)
    }

    pub(crate) fn symlink(&self, caller: Caller, parent: u64, name: &[u8], target: &[u8]) -> Result<Metadata, FsError> {
        let parent = self.get(parent)?;
        let above = parent.inode.metadata()?;
        let gid = if above.permissions & 0o2000 != 0 { above.gid } else { caller.gid };
        let new = NewFile::new(FileKind::Symlink, 0o777).owner(caller.uid, gid);
        self.told(parent.inode.symlink(target, name, &new)?)
    }

    pub(crate) fn link(&self, number: u64, parent: u64, name: &[u8]) -> Result<Metadata, FsError> {
        let known = self.get(number)?;
        self.get(parent)?.inode.link(name, &known.inode)?;
        let data = self.shown(&known.inode)?;
        // The kernel knows it already, and counts once more.
        self.table.tell(self.get(parent)?.inode.lookup(name)?, data.generation);
        Ok(data)
    }
}
