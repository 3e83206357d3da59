//! The layout of an inode: where its addresses begin and end.

use f2fs_format::feature::Features;
use f2fs_format::inode::{
    DEFAULT_INLINE_XATTR_WORDS, EXTRA_SIZE, MAX_INLINE_XATTR_WORDS, NAME_LEN, SIZE_WITH_CHECKSUM, inline,
};
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid};

use super::RepairError;
use super::walk::Walk;
use crate::inode::{foreign_advice, foreign_flags};

/// Most words of inline xattrs (`MAX_INLINE_XATTR_SIZE`), least with the flag.
const XATTR_WORDS: (u16, u16) = (6, MAX_INLINE_XATTR_WORDS as u16);

/// The fields that say where everything else stands.
pub(super) fn mend(node: &mut NodeBlock, features: Features) {
    let inode = node.inode_mut();
    if inode.i_inline & inline::EXTRA_ATTR != 0 {
        if features.contains(Features::EXTRA_ATTR) {
            let has_xattr = inode.i_inline & inline::XATTR != 0;
            let extra = inode.extra_mut();
            let size = extra.i_extra_isize.get();
            let least = if features.contains(Features::INODE_CHECKSUM) { SIZE_WITH_CHECKSUM } else { 4 };
            if !(least..=EXTRA_SIZE as u16).contains(&size) || !size.is_multiple_of(4) {
                extra.i_extra_isize = (EXTRA_SIZE as u16).into();
            }
            let words = extra.i_inline_xattr_size.get();
            let least = if has_xattr { XATTR_WORDS.0 } else { 0 };
            if features.contains(Features::FLEXIBLE_INLINE_XATTR) && !(least..=XATTR_WORDS.1).contains(&words) {
                extra.i_inline_xattr_size = (DEFAULT_INLINE_XATTR_WORDS as u16).into();
            }
        } else {
            inode.i_inline &= !inline::EXTRA_ATTR;
        }
    }
    if inode.i_namelen.get() > NAME_LEN as u32 {
        let end = inode.i_name.iter().position(|byte| *byte == 0).unwrap_or(0);
        inode.i_namelen = (end as u32).into();
    }
    inode.i_flags = (inode.i_flags.get() & !foreign_flags(features)).into();
    inode.i_advise &= !foreign_advice(features);
}

impl Walk<'_> {
    /// Gives an inode the extra attributes back, or takes them, by which most of its addresses stand too far back or in
    /// front, as the summaries of their blocks say.
    pub(super) fn mend_shift(&mut self, ino: Nid, node: &mut NodeBlock) -> Result<(), RepairError> {
        let features = self.tables.geometry.features;
        let is_inline = node.inode().i_inline & (inline::DATA | inline::DENTRY) != 0;
        if is_inline || !features.contains(Features::EXTRA_ATTR) || self.checksum_holds(node) == Some(true) {
            return Ok(());
        }
        let words = node.inode().layout(features).extra_words as i32;
        let addresses: Vec<BlockAddr> = node.addresses(features).collect();
        let mut starts = Vec::new();
        for (slot, addr) in addresses.into_iter().enumerate().filter(|(_, addr)| addr.is_real()) {
            let owner = self.tables.owner(self.overlay, addr)?.filter(|(owner, ..)| *owner == ino);
            starts.extend(owner.map(|(_, owner_slot, _)| words + slot as i32 - i32::from(owner_slot)));
        }
        let is_most = |start: &i32| 2 * starts.iter().filter(|other| *other == start).count() > starts.len();
        let most = (EXTRA_SIZE / 4) as i32;
        let Some(start) = (0..=most).find(is_most).filter(|start| *start != words && starts.len() > 1) else {
            return Ok(());
        };
        let inode = node.inode_mut();
        if start == 0 {
            inode.i_inline &= !inline::EXTRA_ATTR;
        } else {
            inode.i_inline |= inline::EXTRA_ATTR;
            inode.extra_mut().i_extra_isize = (4 * start as u16).into();
        }
        self.state
            .act(|| format!("inode {ino}: its addresses begin at word {start}, as summaries say, and not {words}"));
        Ok(())
    }
}
