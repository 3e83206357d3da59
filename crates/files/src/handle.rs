//! The part that an open file and an open directory have in common.

use f2fs_sync::Arc;

use crate::FsError;
use crate::close::{close, leave};
use crate::core::CoreRef;
use crate::file_data::FileData;
use crate::free::InodeEnds;
use crate::inode::Inode;
use crate::namespace::Namespace;
use crate::open_files::Opened;
use crate::page_cache::Seen;
use crate::xattr::Attributes;

/// An open inode. The file lives as long as there is a handle, also without a name.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) core: CoreRef,
    pub(crate) inode: Opened,
}

impl Handle {
    pub(crate) fn open(core: CoreRef, inode: Arc<Inode>) -> Result<Handle, FsError> {
        InodeEnds(&core).open_handle(&inode, false)?;
        Ok(Handle::first(core, inode))
    }

    /// A handle of a file that was opened, and is counted already.
    pub(crate) fn of(core: CoreRef, inode: Opened) -> Handle {
        Handle { core, inode }
    }

    /// The first handle of an inode that was just made, which counts it already.
    pub(crate) fn first(core: CoreRef, inode: Arc<Inode>) -> Handle {
        Handle { core, inode: Opened::Own(inode) }
    }

    /// Makes the file durable, and tells the errors of write-back that the handle has not `seen`.
    pub(crate) fn sync(&self, seen: &Seen) -> Result<(), FsError> {
        let result = self.data().sync(&self.inode);
        // An error of this sync is among those.
        match self.inode.pages().and_then(|pages| pages.errors.next(seen)) {
            Some(error) => Err(result.err().unwrap_or(FsError::WriteBack(error))),
            None => result,
        }
    }

    /// The data of files.
    pub(crate) fn data(&self) -> FileData<'_> {
        FileData(&self.core)
    }

    /// Paths and names.
    pub(crate) fn namespace(&self) -> Namespace<'_> {
        Namespace(&self.core)
    }

    /// Extended attributes.
    pub(crate) fn attributes(&self) -> Attributes<'_> {
        Attributes(&self.core)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        match &self.inode {
            Opened::Own(inode) => close(&self.core, inode, false),
            Opened::Shared(kept) => leave(&self.core, kept),
        }
    }
}
