//! The part that an open file and an open directory have in common.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::panicking;

use f2fs_sync::Arc;

use crate::FsError;
use crate::core::{Core, CoreRef};
use crate::file_data::FileData;
use crate::free::InodeEnds;
use crate::inode::Inode;
use crate::namespace::Namespace;
use crate::open_files::{Forgotten, KeptOpen};
use crate::page_cache::Seen;
use crate::xattr::Attributes;

/// An open inode. The file lives as long as there is a handle, also without a name.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) core: CoreRef,
    pub(crate) inode: Opened,
}

/// The inode of a handle.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Its handle alone is counted.
    Own(Arc<Inode>),
    /// The handle shares it with others that were opened on the same processor.
    Shared(Arc<KeptOpen>),
}

impl Deref for Opened {
    type Target = Arc<Inode>;

    #[inline]
    fn deref(&self) -> &Arc<Inode> {
        match self {
            Opened::Own(inode) => inode,
            Opened::Shared(kept) => &kept.inode,
        }
    }
}

impl Handle {
    pub(crate) fn open(core: CoreRef, inode: Arc<Inode>) -> Result<Handle, FsError> {
        InodeEnds(&core).open_handle(&inode)?;
        Ok(Handle::first(core, inode))
    }

    /// A handle of a file that a processor keeps open, which counts it already.
    pub(crate) fn shared(core: CoreRef, kept: Arc<KeptOpen>) -> Handle {
        Handle { core, inode: Opened::Shared(kept) }
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
            Opened::Own(inode) => close(&self.core, inode),
            Opened::Shared(kept) => leave(&self.core, kept),
        }
    }
}

/// Files that processors kept open and forgot. Their names may be gone, and with the last handle of each its file ends: this is
/// dropped when no lock is held that others wait for.
#[derive(Debug)]
pub(crate) struct Left<'a> {
    pub(crate) core: &'a Core,
    pub(crate) files: Forgotten,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.files.drain(..).for_each(|known| leave(self.core, &known.value));
    }
}

fn leave(core: &Core, kept: &KeptOpen) {
    if kept.leave() {
        close(core, &kept.inode);
    }
}

fn close(core: &Core, inode: &Inode) {
    // An orphan that could not be freed now is on the checkpoint's list, and freed by the next open of the volume.
    if !panicking() {
        let _ = InodeEnds(core).close_handle(inode);
    } else if catch_unwind(AssertUnwindSafe(|| InodeEnds(core).close_handle(inode))).is_err() {
        // A second panic would have ended the process. The volume does not tell the two apart by itself.
        core.volume.stop_after_panic();
    }
}
