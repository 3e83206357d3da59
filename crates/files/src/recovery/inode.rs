//! Inodes: new ones, and attributes.
//!
//! The chain has regular files only. A journal has inodes of all kinds: a directory comes back without names, which are
//! then added, and what is no file with blocks as it was.

use f2fs_format::Nid;
use f2fs_format::dentry::DentryViewMut;
use f2fs_format::feature::Features;
use f2fs_format::inode::{self as raw, Extent, inline};
use f2fs_format::node::NodeBlock;
use f2fs_sync::protocol_step;
use f2fs_volume::Op;

use crate::FsError;
use crate::inode::{Inode, check};
use crate::recovery::RollForward;
use crate::stat::FileKind;

impl RollForward<'_> {
    /// Makes a new inode of one in the chain, with nothing in it yet (`f2fs_recover_inode_page`).
    pub(super) fn adopt_inode(&self, op: &Op<'_>, ino: Nid, block: &NodeBlock) -> Result<(), FsError> {
        let kind = self.check_synced(ino, block.inode(), None)?;
        let mut fresh = Box::new(*block);
        let to = fresh.inode_mut();
        let from = block.inode();
        to.i_size = 0.into();
        to.i_blocks = 1.into();
        to.i_links = 1.into();
        to.i_xattr_nid = 0.into();
        to.i_inline = from.i_inline & (inline::XATTR | inline::EXTRA_ATTR);
        to.i_nid = [0.into(); 5];
        to.i_ext = Extent::NONE;
        let features = self.volume.features();
        let layout = to.layout(features);
        match kind {
            FileKind::Regular | FileKind::Symlink => to.i_addr[layout.extra_words..].fill(0.into()),
            FileKind::Directory => {
                to.i_addr[layout.extra_words..].fill(0.into());
                to.i_links = 2.into();
                to.i_inline |= inline::DENTRY;
                to.i_current_depth = 1.into();
                let parent = to.i_pino.into();
                let area = to.inline_data_mut(features);
                let size = area.len() as u64;
                let fits = DentryViewMut::inline(area).make_empty(ino, parent);
                debug_assert!(fits, "an inode has room for two entries");
                to.i_size = size.into();
            }
            // The number of a device.
            FileKind::BlockDevice | FileKind::CharDevice | FileKind::Fifo | FileKind::Socket => {}
        }
        self.volume.recovery().adopt_inode(op, ino, fresh)?;
        Ok(())
    }

    /// The properties that all other code relies on, and that it is of the kind that it was.
    fn check_synced(&self, ino: Nid, inode: &raw::Inode, was: Option<FileKind>) -> Result<FileKind, FsError> {
        let kind = check(&self.volume, ino, inode)?;
        if was.is_some_and(|was| was != kind) {
            return Err(FsError::WrongKind { operation: "recover a synced node", kind: kind.name() });
        }
        Ok(kind)
    }

    /// Takes over the attributes of an inode (`recover_inode`).
    pub(super) fn recover_inode(&self, op: &Op<'_>, inode: &Inode, block: &NodeBlock) -> Result<(), FsError> {
        let from = block.inode();
        self.check_synced(inode.ino, from, Some(inode.kind))?;
        let features = self.volume.features();
        let mut node = inode.node.write(op);
        let to = node.inode_mut();
        let (new, old) = (from.layout(features), to.layout(features));
        if new.extra_words != old.extra_words {
            let (found, expected) = (new.extra_words as u64 * 4, old.extra_words as u64 * 4);
            return Err(FsError::corrupt("extra attributes of a synced inode", found, expected, expected));
        }
        protocol_step!("recovery_restores_owner", {
            to.i_mode = from.i_mode;
            to.i_uid = from.i_uid;
            to.i_gid = from.i_gid;
        });
        if features.contains(Features::PROJECT_QUOTA) && from.i_inline & inline::EXTRA_ATTR != 0 {
            let project = from.extra().map_or(0, |extra| extra.i_projid.get());
            to.extra_mut().i_projid = project.into();
        }
        if let Some(directory) = &inode.directory {
            // Its names came just now: the times that follow did not.
            directory.settle_touch(to);
        } else {
            to.i_size = from.i_size;
            // Failures of pinned files' moving: the field is shared with directories' depth.
            to.i_current_depth = from.i_current_depth;
        }
        to.i_atime = from.i_atime;
        to.i_ctime = from.i_ctime;
        protocol_step!("recovery_restores_modified", to.i_mtime = from.i_mtime);
        to.i_atime_nsec = from.i_atime_nsec;
        to.i_ctime_nsec = from.i_ctime_nsec;
        to.i_mtime_nsec = from.i_mtime_nsec;
        to.i_advise = from.i_advise;
        inode.mark.set(from.i_advise);
        to.i_flags = from.i_flags;
        let flags = inline::PIN_FILE | inline::DATA_EXIST;
        to.i_inline = to.i_inline & !flags | from.i_inline & flags;
        to.i_ext = Extent::NONE;
        Ok(())
    }

    /// Takes over the attributes in the inode itself (`f2fs_recover_inline_xattr`).
    pub(super) fn recover_inline_xattrs(&self, op: &Op<'_>, inode: &Inode, from: &raw::Inode) -> Result<(), FsError> {
        let features = self.volume.features();
        let mut node = inode.node.write(op);
        let to = node.inode_mut();
        to.i_inline = to.i_inline & !inline::XATTR | from.i_inline & inline::XATTR;
        let (from, to) = (from.inline_xattr(features), to.inline_xattr_mut(features));
        if from.len() != to.len() {
            let (found, expected) = (from.len() as u64, to.len() as u64);
            return Err(FsError::corrupt("inline attributes of a synced inode", found, expected, expected));
        }
        to.copy_from_slice(from);
        Ok(())
    }
}
