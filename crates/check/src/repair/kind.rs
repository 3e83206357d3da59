//! What an inode is, where its checksum does not say that its own word is right: its type and the flags of what stands
//! in it, by all witnesses.
//!
//! One bit makes a socket of a file, or addresses of its content. The inode's mode, the entry that names it, and what
//! the inode holds are three witnesses of the type. The count of blocks and the summaries are witnesses of the flags.

use f2fs_format::dentry::{DentryView, FileType};
use f2fs_format::feature::Features;
use f2fs_format::inode::{ADDRS_PER_INODE, DEFAULT_INLINE_XATTR_WORDS, Inode, has_checksum, inline};
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid, xattr};

use super::RepairError;
use super::inode::differences;
use super::walk::Walk;

/// Most bytes of a link's target, with the zero that ends it.
const LINK_SIZE: u64 = 4096;

/// What an inode holds, whatever it says that it is.
struct Inside {
    /// Inline entries that begin with those of a directory.
    has_inline_dots: bool,
    /// A first block that does.
    has_block_dots: bool,
    /// Slots whose blocks name them.
    owned: usize,
    /// Blocks beside the inode and its extended attributes, as it counts them.
    counted: u64,
}

impl Inside {
    fn is_directory(&self) -> bool {
        self.has_inline_dots || self.has_block_dots
    }

    fn has_blocks(&self) -> bool {
        self.owned != 0 && self.counted != 0
    }
}

impl Walk<'_> {
    /// Puts type and flags of an inode right that the directory `parent` names, as one of type `by_entry`, before they
    /// are believed. `node` is the inode as it was found.
    pub(super) fn settle_kind(
        &mut self,
        parent: Nid,
        ino: Nid,
        by_entry: FileType,
        node: &mut NodeBlock,
    ) -> Result<(), RepairError> {
        let features = self.tables.geometry.features;
        let addr = BlockAddr::from(self.tables.nat.get(ino).block_addr);
        let is_at_home = node.nid() == ino && node.ino() == ino && self.tables.is_there(addr);
        // With a checksum a flipped bit was put back already.
        if !is_at_home || self.state.inodes.contains_key(&ino.0) || has_checksum(node.inode(), features) {
            return Ok(());
        }
        // One that was lost as a whole is made anew later.
        let is_whole = Nid::from(node.inode().i_pino) == parent && node.inode().i_links.get() != 0;
        let by_mode = FileType::from_mode(node.inode().i_mode.get());
        if by_mode == FileType::Unknown && !is_whole {
            return Ok(());
        }
        let before = *node;
        let inside = self.look_inside(ino, node)?;
        let file_type = choose(node.inode(), by_mode, by_entry, &inside);
        let inode = node.inode_mut();
        if file_type != by_mode && file_type != FileType::Unknown {
            inode.i_mode = (inode.i_mode.get() & 0o7777 | file_type.to_mode()).into();
        }
        mend_flags(inode, file_type, features, &inside);
        if *node.as_block() != *before.as_block() {
            self.state.act(|| format!("inode {ino}: by what it holds, {}", differences(&before, node)));
            self.overlay.put(addr, node.as_block());
        }
        Ok(())
    }

    fn look_inside(&mut self, ino: Nid, node: &NodeBlock) -> Result<Inside, RepairError> {
        let features = self.tables.geometry.features;
        let mut flat = *node;
        flat.inode_mut().i_inline &= !(inline::DATA | inline::DENTRY);
        let mut owned = 0;
        for (slot, addr) in flat.addresses(features).enumerate() {
            owned += usize::from(addr.is_real() && self.tables.is_owner(self.overlay, addr, ino, slot)?);
        }
        let mut has_block_dots = false;
        if let Some(first) = flat.address(0, features).filter(|addr| self.tables.is_there(*addr)) {
            has_block_dots = begins_with_dots(DentryView::block(&*self.overlay.block(first)?), ino);
        }
        flat.inode_mut().i_inline |= inline::DENTRY;
        let has_inline_dots = begins_with_dots(DentryView::inline(flat.inode().inline_data(features)), ino);
        let beside = 1 + u64::from(node.inode().i_xattr_nid.get() != 0);
        Ok(Inside {
            has_inline_dots,
            has_block_dots,
            owned,
            counted: node.inode().i_blocks.get().saturating_sub(beside),
        })
    }
}

/// The type: the one of the two that fits to what the inode holds. If both do, the mode's; but the entry's if one
/// bit makes one mode of the other, and more than one bit one entry of the other.
fn choose(inode: &Inode, by_mode: FileType, by_entry: FileType, inside: &Inside) -> FileType {
    if by_mode == by_entry || by_entry == FileType::Unknown {
        return by_mode;
    }
    let fits = |file_type| fits(inode, file_type, inside);
    let bits = |one: u32, other: u32| (one ^ other).count_ones();
    let in_mode = bits(by_mode.to_mode().into(), by_entry.to_mode().into());
    let in_entry = bits(by_mode.number().into(), by_entry.number().into());
    match (fits(by_mode), fits(by_entry)) {
        (false, true) => by_entry,
        (true, true) if in_mode == 1 && in_entry > 1 => by_entry,
        _ => by_mode,
    }
}

fn fits(inode: &Inode, file_type: FileType, inside: &Inside) -> bool {
    let size = inode.i_size.get();
    let is_empty = size == 0 && inside.counted == 0 && inode.i_inline & (inline::DATA_EXIST | inline::DENTRY) == 0;
    match file_type {
        FileType::Directory => inside.is_directory(),
        FileType::Regular => !inside.is_directory(),
        // Linux gives every link all permissions.
        FileType::Symlink => {
            let is_whole = (1..=LINK_SIZE).contains(&size) && inside.counted <= 1;
            is_whole && inode.i_mode.get() & 0o777 == 0o777 && !inside.is_directory()
        }
        FileType::Unknown => false,
        _ => is_empty && !inside.is_directory(),
    }
}

/// Whether entries begin with `.` and `..` of this directory.
fn begins_with_dots(view: DentryView<'_>, ino: Nid) -> bool {
    let entry = |slot| view.entry(slot).ok().flatten();
    entry(0).is_some_and(|entry| entry.name == b"." && entry.ino == ino)
        && entry(1).is_some_and(|entry| entry.name == b"..")
}

/// The flags that say what stands in the inode.
fn mend_flags(inode: &mut Inode, file_type: FileType, features: Features, inside: &Inside) {
    if inode.i_inline & inline::XATTR == 0 && has_xattr_area(inode, features) {
        inode.i_inline |= inline::XATTR;
    }
    match file_type {
        FileType::Directory => {
            if inode.i_inline & inline::DENTRY != 0 && !inside.has_inline_dots && inside.has_block_dots {
                inode.i_inline &= !inline::DENTRY;
            } else if inode.i_inline & inline::DENTRY == 0 && inside.has_inline_dots && !inside.has_blocks() {
                inode.i_inline |= inline::DENTRY;
            }
        }
        FileType::Regular | FileType::Symlink => {
            let mut with = *inode;
            with.i_inline |= inline::DATA;
            let room = with.inline_data(features).len() as u64;
            let is_inline = inode.i_inline & inline::DATA != 0;
            if is_inline && inside.has_blocks() {
                inode.i_inline &= !(inline::DATA | inline::DATA_EXIST);
            } else if !is_inline
                && inode.i_inline & inline::DATA_EXIST != 0
                && inside.counted == 0
                && inside.owned == 0
                && (1..=room).contains(&inode.i_size.get())
            {
                inode.i_inline |= inline::DATA;
            }
        }
        _ => {}
    }
}

/// Whether extended attributes begin where the inode would have them.
fn has_xattr_area(inode: &Inode, features: Features) -> bool {
    let mut words = DEFAULT_INLINE_XATTR_WORDS;
    if features.contains(Features::FLEXIBLE_INLINE_XATTR) {
        words = inode.layout(features).xattr_words;
    }
    let first = ADDRS_PER_INODE.checked_sub(words).and_then(|at| inode.i_addr.get(at));
    first.is_some_and(|word| word.get() == xattr::MAGIC)
}
