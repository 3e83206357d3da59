//! Inodes.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::compression::Compression;
use crate::feature::Features;
use crate::node::{ADDRS_PER_BLOCK, NodeBlock};
use crate::path::Addresses;
use crate::{crc, superblock};

/// Address slots of an inode without extra attributes and inline xattr.
pub const ADDRS_PER_INODE: usize = 923;
/// Bytes of the extra attributes that this library writes (`F2FS_TOTAL_EXTRA_ATTR_SIZE`).
pub const EXTRA_SIZE: usize = 36;
/// Words of the inline xattr area unless the inode says otherwise (`DEFAULT_INLINE_XATTR_ADDRS`).
pub const DEFAULT_INLINE_XATTR_WORDS: usize = 50;
/// Words kept free in front of inline data (`DEF_INLINE_RESERVED_SIZE`).
pub const INLINE_RESERVED_WORDS: usize = 1;
/// Most words of the inline xattr area: beside all extra attributes they leave 40 bytes, room for the entries `.` and
/// `..` (`MAX_INLINE_XATTR_SIZE`, `MIN_INLINE_DENTRY_SIZE`).
pub const MAX_INLINE_XATTR_WORDS: usize = ADDRS_PER_INODE - EXTRA_SIZE / 4 - INLINE_RESERVED_WORDS - 40 / 4;
/// Longest name of a directory entry in bytes.
pub const NAME_LEN: usize = 255;

/// Flags of `i_inline`.
#[allow(missing_docs)] // the names are the header's
pub mod inline {
    pub const XATTR: u8 = 0x01;
    pub const DATA: u8 = 0x02;
    pub const DENTRY: u8 = 0x04;
    pub const DATA_EXIST: u8 = 0x08;
    pub const DOTS: u8 = 0x10;
    pub const EXTRA_ATTR: u8 = 0x20;
    pub const PIN_FILE: u8 = 0x40;
    pub const COMPRESS_RELEASED: u8 = 0x80;
}

/// Flags of `i_advise`.
#[allow(missing_docs)] // the names are the header's
pub mod advise {
    pub const COLD: u8 = 0x01;
    pub const LOST_PINO: u8 = 0x02;
    pub const ENCRYPT: u8 = 0x04;
    pub const ENC_NAME: u8 = 0x08;
    pub const KEEP_SIZE: u8 = 0x10;
    pub const HOT: u8 = 0x20;
    pub const VERITY: u8 = 0x40;
    pub const TRUNC: u8 = 0x80;
}

/// Flags of `i_flags` that say how the file is stored (`F2FS_*_FL`).
#[allow(missing_docs)] // the names are the header's
pub mod flags {
    pub const COMPR: u32 = 0x0000_0004;
    pub const ENCRYPT: u32 = 0x0000_0800;
    pub const VERITY: u32 = 0x0010_0000;
    pub const CASEFOLD: u32 = 0x4000_0000;
    pub const DEVICE_ALIAS: u32 = 0x8000_0000;
}

/// File types in `i_mode` (`S_IFMT`).
#[allow(missing_docs)] // the names are those of stat(2)
pub mod mode {
    pub const MASK: u16 = 0o170_000;
    pub const SOCKET: u16 = 0o140_000;
    pub const SYMLINK: u16 = 0o120_000;
    pub const REGULAR: u16 = 0o100_000;
    pub const BLOCK: u16 = 0o060_000;
    pub const DIRECTORY: u16 = 0o040_000;
    pub const CHARACTER: u16 = 0o020_000;
    pub const FIFO: u16 = 0o010_000;
}

/// The largest extent of a file, as the inode caches it (`struct f2fs_extent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Extent {
    /// First file block.
    pub fofs: U32,
    /// Its address.
    pub blk_addr: U32,
    /// Blocks; 0: no extent is cached.
    pub len: U32,
}

impl Extent {
    /// None is cached.
    pub const NONE: Extent = Extent { fofs: U32::ZERO, blk_addr: U32::ZERO, len: U32::ZERO };
}

/// An inode (`struct f2fs_inode`): the body of a node block.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)] // the names are the header's
pub struct Inode {
    pub i_mode: U16,
    pub i_advise: u8,
    pub i_inline: u8,
    pub i_uid: U32,
    pub i_gid: U32,
    pub i_links: U32,
    pub i_size: U64,
    pub i_blocks: U64,
    pub i_atime: U64,
    pub i_ctime: U64,
    pub i_mtime: U64,
    pub i_atime_nsec: U32,
    pub i_ctime_nsec: U32,
    pub i_mtime_nsec: U32,
    pub i_generation: U32,
    pub i_current_depth: U32,
    pub i_xattr_nid: U32,
    pub i_flags: U32,
    pub i_pino: U32,
    pub i_namelen: U32,
    pub i_name: [u8; NAME_LEN],
    pub i_dir_level: u8,
    pub i_ext: Extent,
    /// Extra attributes, then addresses (or inline data), then inline xattrs.
    pub i_addr: [U32; ADDRS_PER_INODE],
    /// Two direct, two indirect, one double indirect node.
    pub i_nid: [U32; 5],
}

const _: () = assert!(size_of::<Inode>() == 4072);
const _: () = assert!(core::mem::offset_of!(Inode, i_addr) == 360);

/// The extra attributes: the first nine address words when [`inline::EXTRA_ATTR`] is set.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)] // the names are the header's
pub struct InodeExtra {
    pub i_extra_isize: U16,
    pub i_inline_xattr_size: U16,
    pub i_projid: U32,
    pub i_inode_checksum: U32,
    pub i_crtime: U64,
    pub i_crtime_nsec: U32,
    pub i_compr_blocks: U64,
    pub i_compress_algorithm: u8,
    pub i_log_cluster_size: u8,
    pub i_compress_flag: U16,
}

const _: () = assert!(size_of::<InodeExtra>() == EXTRA_SIZE);

impl core::fmt::Debug for Inode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Inode")
            .field("i_mode", &self.i_mode)
            .field("i_inline", &self.i_inline)
            .field("i_links", &self.i_links)
            .field("i_size", &self.i_size)
            .field("i_blocks", &self.i_blocks)
            .finish_non_exhaustive()
    }
}

/// How the address words of one inode are divided, in words of four bytes.
///
/// ```text
/// | extra_words | (1 reserved) inline data or dentries ... | xattr_words |
/// |             |  or address_count() addresses            |             |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodeLayout {
    /// Words of extra attributes.
    pub extra_words: usize,
    /// Words of inline xattrs.
    pub xattr_words: usize,
    /// Blocks of a cluster in a compressed file, which lies in one node; else 1.
    pub cluster: usize,
}

impl InodeLayout {
    /// Words between the extra attributes and the inline xattrs.
    fn words(self) -> usize {
        ADDRS_PER_INODE.saturating_sub(self.extra_words + self.xattr_words)
    }

    /// Addresses that the inode holds.
    #[must_use]
    pub fn address_count(self) -> usize {
        let words = self.words();
        words - words % self.cluster.max(1)
    }

    /// Addresses that each node of the file holds.
    #[must_use]
    pub fn addresses(self) -> Addresses {
        Addresses {
            inode: self.address_count() as u16,
            direct: (ADDRS_PER_BLOCK - ADDRS_PER_BLOCK % self.cluster.max(1)) as u16,
        }
    }

    /// Bytes of inline data (or inline dentries) that fit.
    #[must_use]
    pub fn inline_data_size(self) -> usize {
        4 * self.words().saturating_sub(INLINE_RESERVED_WORDS)
    }
}

impl Inode {
    /// Counts blocks that the file gets. A count that a damaged volume has at its end stays there.
    pub fn add_blocks(&mut self, blocks: u64) {
        self.i_blocks = self.i_blocks.get().saturating_add(blocks).into();
    }

    /// The inode's extra attributes; `None` unless it says that it has them. Trust only what `i_extra_isize` covers.
    #[must_use]
    pub fn extra(&self) -> Option<&InodeExtra> {
        if self.i_inline & inline::EXTRA_ATTR == 0 {
            return None;
        }
        InodeExtra::ref_from_bytes(&self.i_addr.as_bytes()[..EXTRA_SIZE]).ok()
    }

    /// The place of the extra attributes, whether or not the inode says that it has them.
    pub fn extra_mut(&mut self) -> &mut InodeExtra {
        let (extra, _) = self.i_addr.split_at_mut(EXTRA_SIZE / 4);
        let Ok(extra) = InodeExtra::mut_from_bytes(extra.as_mut_bytes()) else {
            unreachable!("nine words are 36 bytes, and the type has no alignment")
        };
        extra
    }

    /// How the address words are divided (`get_extra_isize`, `get_inline_xattr_addrs` in `fs/f2fs/f2fs.h`).
    #[must_use]
    pub fn layout(&self, features: Features) -> InodeLayout {
        let (extra_words, stated) = match self.extra() {
            Some(extra) => (usize::from(extra.i_extra_isize.get()) / 4, usize::from(extra.i_inline_xattr_size.get())),
            None => (0, 0),
        };
        let xattr_words = if features.contains(Features::FLEXIBLE_INLINE_XATTR) {
            stated
        } else if self.i_inline & (inline::XATTR | inline::DENTRY) != 0 {
            DEFAULT_INLINE_XATTR_WORDS
        } else {
            0
        };
        let extra_words = extra_words.min(ADDRS_PER_INODE);
        let cluster = self.compression(features).map_or(1, |compression| compression.cluster_blocks());
        InodeLayout { extra_words, xattr_words: xattr_words.min(ADDRS_PER_INODE - extra_words), cluster }
    }

    /// How the file is compressed; `None` for one that is not, which every file is on a volume without the feature.
    #[must_use]
    pub fn compression(&self, features: Features) -> Option<Compression> {
        let compressed = features.contains(Features::COMPRESSION)
            && self.i_flags.get() & flags::COMPR != 0
            && self.file_type() == mode::REGULAR;
        let extra = self.extra().filter(|extra| compressed && usize::from(extra.i_extra_isize.get()) >= EXTRA_SIZE)?;
        Some(Compression {
            algorithm: extra.i_compress_algorithm,
            log_cluster_size: extra.i_log_cluster_size,
            saved_blocks: extra.i_compr_blocks.get(),
            released: self.i_inline & inline::COMPRESS_RELEASED != 0,
        })
    }

    /// The inline data (or inline dentry) area.
    #[must_use]
    pub fn inline_data(&self, features: Features) -> &[u8] {
        let layout = self.layout(features);
        let start = 4 * (layout.extra_words + INLINE_RESERVED_WORDS);
        let size = layout.inline_data_size();
        self.i_addr.as_bytes().get(start..start + size).unwrap_or(&[])
    }

    /// The inline data (or inline dentry) area.
    pub fn inline_data_mut(&mut self, features: Features) -> &mut [u8] {
        let layout = self.layout(features);
        let start = 4 * (layout.extra_words + INLINE_RESERVED_WORDS);
        let size = layout.inline_data_size();
        self.i_addr.as_mut_bytes().get_mut(start..start + size).unwrap_or(&mut [])
    }

    /// The inline xattr area: the last words of the address array. Empty without one.
    #[must_use]
    pub fn inline_xattr(&self, features: Features) -> &[u8] {
        let words = if self.i_inline & inline::XATTR == 0 { 0 } else { self.layout(features).xattr_words };
        &self.i_addr.as_bytes()[4 * (ADDRS_PER_INODE - words)..]
    }

    /// The inline xattr area.
    pub fn inline_xattr_mut(&mut self, features: Features) -> &mut [u8] {
        let words = if self.i_inline & inline::XATTR == 0 { 0 } else { self.layout(features).xattr_words };
        &mut self.i_addr.as_mut_bytes()[4 * (ADDRS_PER_INODE - words)..]
    }

    /// The file type bits of `i_mode`.
    #[must_use]
    pub fn file_type(&self) -> u16 {
        self.i_mode.get() & mode::MASK
    }
}

/// Bytes of extra attributes that these features need: what `i_extra_isize` of a new inode says when
/// [`Features::EXTRA_ATTR`] is on (`calc_extra_isize` in f2fs-tools). The kernel reserves all [`EXTRA_SIZE`] bytes.
#[must_use]
pub const fn extra_size(features: Features) -> usize {
    if features.contains(Features::COMPRESSION) {
        EXTRA_SIZE
    } else if features.contains(Features::INODE_CRTIME) {
        24
    } else if features.contains(Features::INODE_CHECKSUM) {
        12
    } else if features.contains(Features::PROJECT_QUOTA) {
        8
    } else {
        4
    }
}

/// The seed of inode checksums: the CRC of the volume's UUID, started from all ones.
#[must_use]
pub fn checksum_seed(sb: &superblock::SuperBlock) -> u32 {
    crc::update(u32::MAX, &sb.uuid)
}

/// Where the checksum stands in a node block.
pub(crate) const CHECKSUM_AT: usize = 360 + 8;

/// The checksum of an inode block (`f2fs_inode_chksum`): over inode number, generation, and the whole block, footer
/// included, with the checksum field taken as zero.
#[must_use]
pub fn checksum(block: &NodeBlock, seed: u32) -> u32 {
    let inode = block.inode();
    let state = crc::update(seed, block.footer.ino.as_bytes());
    let state = crc::update(state, inode.i_generation.as_bytes());
    let bytes = block.as_block();
    let state = crc::update(state, &bytes[..CHECKSUM_AT]);
    let state = crc::update(state, &[0; 4]);
    crc::update(state, &bytes[CHECKSUM_AT + 4..])
}

/// Bytes of extra attributes that reach behind the checksum.
pub const SIZE_WITH_CHECKSUM: u16 = 12;

/// Whether inodes of this volume, and this one, carry a checksum.
#[must_use]
pub fn has_checksum(inode: &Inode, features: Features) -> bool {
    let is_long = |extra: &InodeExtra| extra.i_extra_isize.get() >= SIZE_WITH_CHECKSUM;
    features.contains(Features::INODE_CHECKSUM) && inode.extra().is_some_and(is_long)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{BlockAddr, Nid};

    fn inode(i_inline: u8, extra_isize: u16, inline_xattr_size: u16) -> NodeBlock {
        let mut block = NodeBlock::ZERO;
        (block.footer.nid, block.footer.ino) = (Nid(9).into(), Nid(9).into());
        block.inode_mut().i_inline = i_inline;
        if i_inline & inline::EXTRA_ATTR != 0 {
            let extra = block.inode_mut().extra_mut();
            (extra.i_extra_isize, extra.i_inline_xattr_size) = (extra_isize.into(), inline_xattr_size.into());
        }
        block
    }

    #[test]
    fn layouts() {
        let flexible = Features::EXTRA_ATTR.union(Features::FLEXIBLE_INLINE_XATTR);
        for (i_inline, extra, xattr, features, addresses, data) in [
            (0, 0, 0, Features(0), 923, 4 * 922),
            (inline::XATTR, 0, 0, Features(0), 873, 4 * 872),
            (inline::DENTRY, 0, 0, Features(0), 873, 4 * 872),
            (inline::EXTRA_ATTR, 36, 0, Features::EXTRA_ATTR, 914, 4 * 913),
            (inline::EXTRA_ATTR | inline::XATTR, 36, 0, Features::EXTRA_ATTR, 864, 4 * 863),
            (inline::EXTRA_ATTR | inline::XATTR, 24, 20, flexible, 897, 4 * 896),
            (inline::EXTRA_ATTR | inline::DENTRY, 36, 0, flexible, 914, 4 * 913),
        ] {
            let mut block = inode(i_inline, extra, xattr);
            assert_eq!(block.inode().layout(features).address_count(), addresses);
            assert_eq!(block.inode_mut().inline_data_mut(features).len(), data);
            assert!(block.set_address(addresses - 1, BlockAddr(7), features));
            assert!(!block.set_address(addresses, BlockAddr(7), features));
            let at = addresses - 1 + usize::from(extra) / 4;
            assert_eq!(block.inode().i_addr[at].get(), 7);
        }
    }

    #[test]
    fn the_checksum_covers_everything_but_itself() {
        let mut block = inode(inline::EXTRA_ATTR, 12, 0);
        let checksum_of = |block: &NodeBlock| checksum(block, 5);
        let plain = checksum_of(&block);
        block.inode_mut().extra_mut().i_inode_checksum = plain.into();
        assert_eq!(checksum_of(&block), plain);
        block.footer.next_blkaddr = 1.into();
        assert_ne!(checksum_of(&block), plain, "the footer counts");
        assert!(has_checksum(block.inode(), Features::INODE_CHECKSUM));
        assert!(!has_checksum(block.inode(), Features::EXTRA_ATTR));
    }

    #[test]
    fn extra_sizes_of_new_inodes() {
        let size = |features| extra_size(Features::EXTRA_ATTR.union(features));
        assert_eq!(size(Features(0)), 4);
        assert_eq!(size(Features::FLEXIBLE_INLINE_XATTR), 4);
        assert_eq!(size(Features::PROJECT_QUOTA), 8);
        assert_eq!(size(Features::INODE_CHECKSUM), 12);
        assert_eq!(size(Features::INODE_CRTIME.union(Features::PROJECT_QUOTA)), 24);
        assert_eq!(size(Features::COMPRESSION), EXTRA_SIZE);
    }

    proptest! {
        #[test]
        fn any_sizes_are_safe(i_inline: u8, extra: u16, xattr: u16, features: u32, slot in 0..1200usize) {
            let features = Features(features);
            let mut block = inode(i_inline, extra, xattr);
            let layout = block.inode().layout(features);
            prop_assert!(layout.extra_words + layout.xattr_words + layout.address_count() <= ADDRS_PER_INODE);
            prop_assert!(block.inode().inline_data(features).len() <= layout.inline_data_size());
            let _ = (block.inode_mut().inline_xattr_mut(features).len(), block.inode_mut().inline_data_mut(features).len());
            let stored = block.set_address(slot, BlockAddr(1), features);
            prop_assert_eq!(stored, block.address(slot, features).is_some());
            prop_assert_eq!(stored, slot < block.address_count(features));
        }
    }
}
