//! Directories that a repair makes: those of lost files, and the root if it is gone.

use f2fs_format::dentry::{DentryViewMut, FileType};
use f2fs_format::feature::Features;
use f2fs_format::inode::{DEFAULT_INLINE_XATTR_WORDS, EXTRA_SIZE, inline, mode};
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, LogType, Nid};

use super::RepairError;
use super::entries::{insert, make_room};
use super::grow::block;
use super::nodes::node_of;
use super::state::{Claim, Reference, Slot, Trust};
use super::walk::Walk;

/// The permissions of a directory of absent owners.
const LOST_PERMISSIONS: u16 = 0o700;
const ROOT_PERMISSIONS: u16 = 0o755;

/// Makes an empty directory in the root.
pub(super) fn directory(walk: &mut Walk<'_>, root: Nid, name: &[u8]) -> Result<Nid, RepairError> {
    let taken = |nid: &u32| {
        walk.state.nodes.contains_key(nid)
            || walk.state.reserved_nids.contains(nid)
            || walk.tables.nat.get(Nid(*nid)).block_addr.get() != 0
    };
    let nid = (4..walk.tables.nat.len()).find(|nid| !taken(nid)).ok_or(RepairError::NoRoom("an inode number"))?;
    let ino = Nid(nid);
    let addr = block(walk, LogType::HotNode)?.ok_or(RepairError::NoRoom("a directory of lost files"))?;
    if !make_room(walk, root, name)? || !insert(walk, root, name, ino, FileType::Directory)? {
        return Err(RepairError::NoRoom("a directory of lost files in the root"));
    }
    let mut node = empty(walk, ino, root, addr)?;
    let time = node_of(walk, root)?.1.inode().i_ctime;
    let inode = node.inode_mut();
    inode.i_mode = (mode::DIRECTORY | LOST_PERMISSIONS).into();
    (inode.i_atime, inode.i_mtime, inode.i_ctime) = (time, time, time);
    inode.i_namelen = (name.len() as u32).into();
    inode.i_name[..name.len()].copy_from_slice(name);
    add(walk, ino, root, addr, &mut node);
    walk.state.act(|| format!("directory {} is made, inode {ino}", name.escape_ascii()));
    Ok(ino)
}

/// Makes a root with nothing in it. Its times are zero: when the old one changed is not known.
pub(super) fn root(walk: &mut Walk<'_>) -> Result<(), RepairError> {
    let ino = walk.tables.geometry.root_ino;
    let addr = block(walk, LogType::HotNode)?.ok_or(RepairError::NoRoom("a root"))?;
    let mut node = empty(walk, ino, ino, addr)?;
    node.inode_mut().i_mode = (mode::DIRECTORY | ROOT_PERMISSIONS).into();
    add(walk, ino, ino, addr, &mut node);
    walk.state.act(|| format!("the root is gone: an empty one is made, inode {ino}"));
    Ok(())
}

/// A directory with `.` and `..`, without a name.
fn empty(walk: &Walk<'_>, ino: Nid, parent: Nid, addr: BlockAddr) -> Result<Box<NodeBlock>, RepairError> {
    let features = walk.tables.geometry.features;
    let mut node = NodeBlock::new_box();
    (node.footer.nid, node.footer.ino) = (ino.into(), ino.into());
    node.footer.cp_ver = walk.tables.pack.block.footer_version().into();
    node.footer.next_blkaddr = addr.offset(1).into();
    let inode = node.inode_mut();
    inode.i_inline = inline::DENTRY | inline::XATTR;
    (inode.i_links, inode.i_blocks, inode.i_current_depth) = (2.into(), 1.into(), 1.into());
    inode.i_pino = parent.into();
    if features.contains(Features::EXTRA_ATTR) {
        inode.i_inline |= inline::EXTRA_ATTR;
        let extra = inode.extra_mut();
        extra.i_extra_isize = (EXTRA_SIZE as u16).into();
        extra.i_inline_xattr_size = (DEFAULT_INLINE_XATTR_WORDS as u16).into();
    }
    let area = inode.inline_data_mut(features);
    let size = area.len() as u64;
    if !DentryViewMut::inline(area).make_empty(ino, parent) {
        return Err(RepairError::NoRoom("the entries of a directory"));
    }
    inode.i_size = size.into();
    Ok(node)
}

/// Enters a directory that was made into everything that knows of it.
fn add(walk: &mut Walk<'_>, ino: Nid, parent: Nid, addr: BlockAddr, node: &mut NodeBlock) {
    let by = Reference { holder: ino, slot: Slot::Table };
    let claim = Claim { by, trust: Trust::Sound, is_node: true, owner: (ino, 0) };
    walk.state.claim_node(ino, claim);
    walk.state.claim_block(addr.0, claim);
    walk.state.inodes.insert(ino.0, 1);
    walk.state.directories.insert(ino.0, parent);
    let mut entry = walk.tables.nat.get(ino);
    (entry.ino, entry.block_addr) = (ino.into(), addr.into());
    walk.tables.nat.set(ino, entry);
    walk.put(addr, node);
}
