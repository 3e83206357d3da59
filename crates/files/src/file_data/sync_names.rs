//! Making names durable in a journal: where each name that changed leads now, and which inodes belong to it.
//!
//! See [`Syncs::names`](f2fs_volume::Syncs::names) for why these are enough.
//!
//! # Locking
//!
//! The names are looked up with the gate closed: no operation changes them meanwhile, so no stripe is taken.

use f2fs_format::Nid;
use f2fs_sync::Arc;
use f2fs_volume::{ChangedNames, NameClosure, Op, Synced};

use crate::FsError;
use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::inode::Inode;
use crate::name::Name;
use crate::stat::FileKind;

impl FileData<'_> {
    /// Makes an inode durable, with all names that changed. If this does not do, a checkpoint is needed.
    pub(crate) fn sync_names(&self, inode: &Arc<Inode>) -> Result<Synced, FsError> {
        // An error here is one that the checkpoint meets as well, and tells.
        let close = |op: &Op<'_>, changed: &ChangedNames, closure: &mut NameClosure| {
            self.close_names(op, changed, closure).is_ok()
        };
        Ok(self.volume.syncs().names(&inode.node, close)?)
    }

    fn close_names(&self, op: &Op<'_>, changed: &ChangedNames, closure: &mut NameClosure) -> Result<(), FsError> {
        let mut last: Option<(Nid, Option<Arc<Inode>>)> = None;
        for (ino, name) in &changed.names {
            // They come by their directories.
            let parent = match last.take() {
                Some((last, parent)) if last == *ino => parent,
                _ => self.there(*ino)?,
            };
            let found = match &parent {
                Some(parent) => {
                    closure.inode(*ino);
                    parent.directory()?.find(&self.volume, Name::new(name)?)?
                }
                None => None,
            };
            closure.name(*ino, name.clone(), found.map(|found| found.ino));
            last = Some((*ino, parent));
        }
        let inodes = closure.inodes().iter().copied().collect::<Vec<_>>();
        for ino in inodes {
            let Some(inode) = self.inodes.in_memory(ino) else { continue };
            match &inode.directory {
                Some(directory) if !inode.node.is_removed() => directory.tell_inode(op),
                None if inode.kind == FileKind::Regular => {
                    WriteBack(self).write_back_within(op, &inode, 0, u64::MAX)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A directory, if it was not freed.
    fn there(&self, ino: Nid) -> Result<Option<Arc<Inode>>, FsError> {
        if self.volume.recovery().has_node(ino)? { self.inode(ino).map(Some) } else { Ok(None) }
    }
}
