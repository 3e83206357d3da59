//! Extended attributes.
//!
//! One of them is the file system's own, the note of the journal. Users do not see it, whatever copies the attributes of
//! a root: it would be copied to a volume that has no such journal, or be removed where it is needed.

use core::ops::Deref;

use f2fs_format::feature::Features;
use f2fs_format::node::{BODY_SIZE, XATTR_NODE_OFFSET};
use f2fs_format::xattr::{SetMode, XattrBuffer, XattrError, full_name, index, split_name};
use f2fs_format::{Nid, inode::Inode as RawInode};
use f2fs_sync::Arc;
use f2fs_volume::{NewNode, Node, Op};

use crate::acl;
use crate::core::Core;
use crate::error::{BadAttribute, FsError};
use crate::inode::Inode;
use crate::stat::{self, FileKind};
use f2fs_volume::tree::{add_blocks, load_child};

/// An extended attribute: full name and value.
pub type Xattr = (Vec<u8>, Vec<u8>);

/// The attribute of the root that names the journal with which a volume is in use, or was left by a crash. Users of
/// files do not see it: [`FileSystem::missing_journal`](crate::FileSystem::missing_journal) tells of it.
pub(crate) const JOURNAL_NOTE: &[u8] = b"trusted.f2fs_journal";

/// The extended attributes of files.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a>(pub(crate) &'a Core);

impl Deref for Attributes<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.0
    }
}

impl Attributes<'_> {
    fn xattr_node(&self, inode: &Inode) -> Result<Option<Node>, FsError> {
        let nid: Nid = inode.node.read().inode().i_xattr_nid.into();
        if nid.is_null() {
            return Ok(None);
        }
        Ok(Some(load_child(&self.volume, inode.ino, nid, XATTR_NODE_OFFSET)?))
    }

    /// All attributes of an inode. The caller holds the lock of its xattrs.
    pub(crate) fn xattrs(&self, inode: &Inode) -> Result<XattrBuffer, FsError> {
        let node = self.xattr_node(inode)?;
        let body = node.map(|node| Box::new(node.read().body));
        let block = inode.node.read();
        Ok(XattrBuffer::read(inline_area(block.inode(), self.volume.features()), body.as_deref())?)
    }

    /// The value of an attribute, by its full name.
    pub(crate) fn xattr_get(&self, inode: &Inode, name: &[u8]) -> Result<Vec<u8>, FsError> {
        if is_own(name) {
            return Err(FsError::NoAttribute);
        }
        self.any_get(inode, name)
    }

    /// The same, of the file system's own too.
    pub(crate) fn any_get(&self, inode: &Inode, name: &[u8]) -> Result<Vec<u8>, FsError> {
        let (kind, stored) = split(name)?;
        let _xattrs = inode.xattrs.read();
        let _gate = self.volume.begin_read();
        let all = self.xattrs(inode)?;
        let value = all.get(kind, stored).ok_or(FsError::NoAttribute)?;
        match kind {
            index::POSIX_ACL_ACCESS | index::POSIX_ACL_DEFAULT => acl::from_disk(value),
            _ => Ok(value.to_vec()),
        }
    }

    /// Full names of all attributes that users may see, with their values, sorted by name.
    pub(crate) fn xattr_list(&self, inode: &Inode) -> Result<Vec<Xattr>, FsError> {
        let _xattrs = inode.xattrs.read();
        let _gate = self.volume.begin_read();
        let all = self.xattrs(inode)?;
        let mut list = Vec::new();
        for entry in all.entries() {
            let entry = entry?;
            // A damaged name, which nobody can ask for, is not shown.
            let full = full_name(entry.index, entry.name).filter(|name| split(name).is_ok() && !is_own(name));
            let Some(name) = full else { continue };
            let value = match entry.index {
                index::POSIX_ACL_ACCESS | index::POSIX_ACL_DEFAULT => acl::from_disk(entry.value)?,
                _ => entry.value.to_vec(),
            };
            list.push((name, value));
        }
        list.sort_by(|one: &Xattr, other| one.0.cmp(&other.0));
        // Of two entries with one name the first is what the name means.
        list.dedup_by(|second, first| first.0 == second.0);
        Ok(list)
    }

    /// Sets an attribute.
    pub(crate) fn xattr_set(
        &self,
        inode: &Arc<Inode>,
        name: &[u8],
        value: &[u8],
        mode: SetMode,
    ) -> Result<(), FsError> {
        if is_own(name) {
            return Err(bad(name, BadAttribute::Own));
        }
        self.any_set(inode, name, value, mode)
    }

    /// The same, of the file system's own too.
    pub(crate) fn any_set(&self, inode: &Arc<Inode>, name: &[u8], value: &[u8], mode: SetMode) -> Result<(), FsError> {
        let (kind, stored) = split(name)?;
        if kind == index::USER && !matches!(inode.kind, FileKind::Regular | FileKind::Directory) {
            return Err(FsError::WrongKind { operation: "set a user attribute", kind: inode.kind.name() });
        }
        if matches!(kind, index::POSIX_ACL_ACCESS | index::POSIX_ACL_DEFAULT) && inode.kind == FileKind::Symlink
            || kind == index::POSIX_ACL_DEFAULT && inode.kind != FileKind::Directory
        {
            return Err(FsError::WrongKind { operation: "set such an access control list", kind: inode.kind.name() });
        }
        if kind == index::ADVISE {
            return Err(FsError::WrongKind { operation: "set system.advise", kind: inode.kind.name() });
        }
        let converted;
        let value = match kind {
            index::POSIX_ACL_ACCESS | index::POSIX_ACL_DEFAULT => {
                converted = acl::to_disk(value)?;
                &converted
            }
            _ => value,
        };
        self.balance()?;
        let _xattrs = inode.xattrs.write();
        self.refill_nids();
        self.change(|op| {
            let mut all = self.xattrs(inode)?;
            all.set(kind, stored, value, mode).map_err(refused)?;
            self.store_xattrs(op, inode, &all)
        })
    }

    /// Removes an attribute.
    pub(crate) fn xattr_remove(&self, inode: &Arc<Inode>, name: &[u8]) -> Result<(), FsError> {
        if is_own(name) {
            return Err(FsError::NoAttribute);
        }
        self.any_remove(inode, name)
    }

    /// The same, of the file system's own too.
    pub(crate) fn any_remove(&self, inode: &Arc<Inode>, name: &[u8]) -> Result<(), FsError> {
        let (kind, stored) = split(name)?;
        self.balance()?;
        let _xattrs = inode.xattrs.write();
        self.refill_nids();
        self.change(|op| {
            let mut all = self.xattrs(inode)?;
            if !all.remove(kind, stored) {
                return Err(FsError::NoAttribute);
            }
            self.store_xattrs(op, inode, &all)
        })
    }

    /// Writes the attributes: as many as fit into the inode, the rest into an xattr node, which is made and removed as
    /// needed.
    fn store_xattrs(&self, op: &Op<'_>, inode: &Inode, all: &XattrBuffer) -> Result<(), FsError> {
        let old = self.xattr_node(inode)?;
        match (all.node(), old) {
            (Some(body), old) => {
                let node = match old {
                    Some(node) => node,
                    None => {
                        let directory = inode.kind == FileKind::Directory;
                        let new = NewNode { ino: Some(inode.ino), offset: XATTR_NODE_OFFSET, directory };
                        let node = self.volume.nodes().create(op, new)?;
                        inode.node.write(op).inode_mut().i_xattr_nid = node.nid().into();
                        add_blocks(op, &inode.node, 1);
                        node
                    }
                };
                node.write(op).body[..BODY_SIZE].copy_from_slice(body);
            }
            (None, Some(node)) => {
                inode.node.write(op).inode_mut().i_xattr_nid = Nid::NULL.into();
                add_blocks(op, &inode.node, -1);
                self.volume.nodes().remove(op, &node)?;
            }
            (None, None) => {}
        }
        let features = self.volume.features();
        let mut block = inode.node.write(op);
        let raw = block.inode_mut();
        let area = raw.inline_xattr_mut(features);
        if area.len() == all.inline().len() {
            area.copy_from_slice(all.inline());
        }
        stat::set_changed(raw, self.now());
        Ok(())
    }
}

fn inline_area(inode: &RawInode, features: Features) -> &[u8] {
    inode.inline_xattr(features)
}

/// Longest full name in bytes, the prefix included (`XATTR_NAME_MAX`).
const MAX_NAME: usize = 255;

/// Whether an attribute is the file system's own.
fn is_own(name: &[u8]) -> bool {
    name == JOURNAL_NOTE
}

fn bad(name: &[u8], why: BadAttribute) -> FsError {
    FsError::Attribute { why, size: name.len(), limit: MAX_NAME }
}

fn split(name: &[u8]) -> Result<(u8, &[u8]), FsError> {
    if name.len() > MAX_NAME {
        return Err(bad(name, BadAttribute::NameTooLong));
    }
    if name.contains(&0) {
        return Err(bad(name, BadAttribute::ZeroByte));
    }
    split_name(name).ok_or_else(|| {
        // With a letter more it would be a name.
        let only_prefix = split_name(&[name, b"x"].concat()).is_some_and(|(_, name)| name == b"x");
        bad(name, if only_prefix { BadAttribute::OnlyPrefix } else { BadAttribute::Prefix })
    })
}

fn refused(error: XattrError) -> FsError {
    match error {
        XattrError::Exists => FsError::Exists,
        XattrError::NotFound => FsError::NoAttribute,
        XattrError::NameTooLong { len } => {
            FsError::Attribute { why: BadAttribute::NameTooLong, size: len, limit: MAX_NAME }
        }
        XattrError::TooLarge { len, most } => {
            FsError::Attribute { why: BadAttribute::TooLarge, size: len, limit: most }
        }
        XattrError::NoRoom { needed, free } => {
            FsError::Attribute { why: BadAttribute::NoRoom, size: needed, limit: free }
        }
        XattrError::Corrupt(corruption) => corruption.into(),
        _ => FsError::Invalid("extended attribute"),
    }
}
