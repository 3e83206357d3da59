//! Making new inodes.

use f2fs_format::Nid;
use f2fs_format::dentry::DentryViewMut;
use f2fs_format::feature::Features;
use f2fs_format::inode::{self as raw, DEFAULT_INLINE_XATTR_WORDS, EXTRA_SIZE, inline};
use f2fs_format::node::mark;
use f2fs_volume::{NewNode, Node, Op};

use crate::FsError;
use crate::device_number::DeviceNumber;
use crate::namespace::Namespace;
use crate::stat::{self, FileKind, Time};

/// The kind, permissions and owner of a new file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewFile {
    /// Its kind.
    pub kind: FileKind,
    /// Permission bits, set-id and sticky bits included (07777).
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// For device files.
    pub device: Option<DeviceNumber>,
}

impl NewFile {
    /// A file of this kind with these permission bits, owned by user and group 0.
    #[must_use]
    pub fn new(kind: FileKind, permissions: u16) -> NewFile {
        NewFile { kind, permissions: permissions & 0o7777, uid: 0, gid: 0, device: None }
    }

    /// Owner and group.
    #[must_use]
    pub fn owner(mut self, uid: u32, gid: u32) -> NewFile {
        self.uid = uid;
        self.gid = gid;
        self
    }

    /// The device number of a block or character device.
    #[must_use]
    pub fn device(mut self, major: u32, minor: u32) -> NewFile {
        self.device = Some(DeviceNumber { major, minor });
        self
    }

    /// # Errors
    /// [`FsError::WrongKind`] if it needs a target, [`FsError::DeviceNumber`] if an inode cannot hold its number.
    pub(crate) fn check(&self) -> Result<(), FsError> {
        match (self.kind, self.device) {
            (FileKind::Symlink, _) => {
                Err(FsError::WrongKind { operation: "create without a target", kind: self.kind.name() })
            }
            (FileKind::BlockDevice | FileKind::CharDevice, Some(number)) if !number.fits() => {
                Err(FsError::DeviceNumber { major: number.major, minor: number.minor })
            }
            _ => Ok(()),
        }
    }
}

impl Namespace<'_> {
    /// Makes an inode (`f2fs_new_inode`, `f2fs_init_inode_metadata`). It is in no directory yet.
    pub(crate) fn new_inode(&self, op: &Op<'_>, new: &NewFile, parent: Nid, name: &[u8]) -> Result<Node, FsError> {
        let directory = new.kind == FileKind::Directory;
        let node = self.volume.nodes().create(op, NewNode { ino: None, offset: 0, directory })?;
        let ino = node.nid();
        let features = self.volume.features();
        let now = self.now();
        let mut block = node.write(op);
        block.footer.set_mark(mark::DENTRY, false);
        let inode = block.inode_mut();
        inode.i_mode = (new.kind.to_mode() | new.permissions & 0o7777).into();
        inode.i_uid = new.uid.into();
        inode.i_gid = new.gid.into();
        inode.i_links = if directory { 2 } else { 1 }.into();
        inode.i_blocks = 1.into();
        inode.i_generation = generation(ino, now).into();
        inode.i_pino = parent.into();
        set_name(inode, name);
        stat::set_accessed(inode, now);
        stat::set_modified(inode, now);
        stat::set_changed(inode, now);
        inode.i_inline |= inline::XATTR;
        if features.contains(Features::EXTRA_ATTR) {
            inode.i_inline |= inline::EXTRA_ATTR;
            let extra = inode.extra_mut();
            extra.i_extra_isize = (EXTRA_SIZE as u16).into();
            if features.contains(Features::FLEXIBLE_INLINE_XATTR) {
                extra.i_inline_xattr_size = (DEFAULT_INLINE_XATTR_WORDS as u16).into();
            }
            if features.contains(Features::INODE_CRTIME) {
                extra.i_crtime = (now.seconds as u64).into();
                extra.i_crtime_nsec = now.nanoseconds.into();
            }
        }
        match new.kind {
            FileKind::Directory => {
                inode.i_inline |= inline::DENTRY;
                inode.i_current_depth = 1.into();
                let area = inode.inline_data_mut(features);
                let size = area.len() as u64;
                let fits = DentryViewMut::inline(area).make_empty(ino, parent);
                debug_assert!(fits, "an inode of our own making has room for two entries");
                inode.i_size = size.into();
            }
            FileKind::Regular => {
                inode.i_inline |= inline::DATA;
                inode.i_advise |= crate::temperature::marks_of_name(self.volume.superblock(), name);
            }
            FileKind::Symlink => inode.i_inline |= inline::DATA,
            FileKind::BlockDevice | FileKind::CharDevice => {
                let number = new.device.unwrap_or(DeviceNumber { major: 0, minor: 0 });
                let at = inode.layout(features).extra_words;
                if number.is_old() {
                    inode.i_addr[at] = (number.major << 8 | number.minor).into();
                } else {
                    inode.i_addr[at + 1] = number.encode().into();
                }
            }
            FileKind::Fifo | FileKind::Socket => {}
        }
        drop(block);
        Ok(node)
    }
}

/// The name that roll-forward uses.
pub(crate) fn set_name(inode: &mut raw::Inode, name: &[u8]) {
    let len = name.len().min(raw::NAME_LEN);
    inode.i_name = [0; raw::NAME_LEN];
    inode.i_name[..len].copy_from_slice(&name[..len]);
    inode.i_namelen = (len as u32).into();
}

/// A generation that a later inode with the same number will not have.
fn generation(ino: Nid, now: Time) -> u32 {
    let mix = (now.seconds as u64) << 30 ^ u64::from(now.nanoseconds) ^ u64::from(ino.0) << 40;
    (mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_kind_is_not_part_of_the_permissions() {
        assert_eq!(NewFile::new(FileKind::Fifo, 0o107_644).permissions, 0o7644);
    }

    /// The number and the generation together name a file for as long as the volume lives.
    #[test]
    fn a_number_that_is_used_again_has_another_generation() {
        for ino in [3, 4, 5, 1000, 1 << 20] {
            let mut seen = HashSet::new();
            for seconds in [0, 1, 2, 1024, 1_700_000_000, 1_700_000_001] {
                for nanoseconds in [0, 1, 1000, 999_999_999] {
                    seen.insert(generation(Nid(ino), Time { seconds, nanoseconds }));
                }
            }
            assert_eq!(seen.len(), 6 * 4, "of number {ino}");
        }
        let now = Time { seconds: 1_700_000_000, nanoseconds: 5 };
        assert_ne!(generation(Nid(7), now), generation(Nid(8), now));
    }

    #[test]
    fn a_name_in_an_inode_has_nothing_of_the_one_before() {
        let mut block = f2fs_format::node::NodeBlock::new_box();
        let inode = block.inode_mut();
        for name in [&b"a-longer-name"[..], b"short", &[b'x'; 255]] {
            set_name(inode, name);
            assert_eq!(inode.i_namelen.get() as usize, name.len());
            assert_eq!(&inode.i_name[..name.len()], name);
            assert!(inode.i_name[name.len()..].iter().all(|byte| *byte == 0));
        }
    }
}
