//! Directory entries, in blocks and in the inline area of an inode.
//!
//! ```text
//! | bitmap | reserved | slots x 11 bytes (DirEntry) | slots x 8 bytes of name |
//! ```
//!
//! A name of n bytes takes ceil(n / 8) consecutive slots; the first one's [`DirEntry`] describes it, and the names of
//! the slots lie side by side, so that the name is contiguous. The bitmap counts from the lowest bit of each byte.
//!
//! [`DentryView`] reads and [`DentryViewMut`] changes both forms. Blocks may be corrupt: no entry is followed beyond
//! the last slot, and none that claims no slot.

mod view;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::inode::{NAME_LEN, mode};
use crate::{FormatError, RawBlock};

pub use view::{DentryView, DentryViewMut, Entries, Entry};

/// Slots of a dentry block.
pub const SLOTS_PER_BLOCK: usize = 214;
/// Bytes of name in a slot.
pub const SLOT_LEN: usize = 8;
/// Bytes of the bitmap of a dentry block.
pub const BITMAP_SIZE: usize = 27;
/// Unused bytes behind the bitmap of a dentry block.
pub const RESERVED_SIZE: usize = 3;
/// Bytes of a [`DirEntry`].
pub const ENTRY_SIZE: usize = 11;

/// The fixed part of a directory entry (`struct f2fs_dir_entry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DirEntry {
    /// [`dentry_hash`](crate::hash::dentry_hash) of the name.
    pub hash_code: U32,
    /// The inode.
    pub ino: U32,
    /// Bytes of the name.
    pub name_len: U16,
    /// A [`FileType`].
    pub file_type: u8,
}

const _: () = assert!(size_of::<DirEntry>() == ENTRY_SIZE);

/// A block of a directory (`struct f2fs_dentry_block`).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct DentryBlock {
    /// Which slots are in use, lowest bit first.
    pub dentry_bitmap: [u8; BITMAP_SIZE],
    /// Zero.
    pub reserved: [u8; RESERVED_SIZE],
    /// The entries.
    pub dentry: [DirEntry; SLOTS_PER_BLOCK],
    /// The names.
    pub filename: [[u8; SLOT_LEN]; SLOTS_PER_BLOCK],
}

const _: () = assert!(size_of::<DentryBlock>() == 4096);

impl core::fmt::Debug for DentryBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let used: u32 = self.dentry_bitmap.iter().map(|byte| byte.count_ones()).sum();
        f.debug_struct("DentryBlock").field("slots in use", &used).finish_non_exhaustive()
    }
}

impl DentryBlock {
    /// No entry.
    pub const ZERO: DentryBlock = zerocopy::transmute!([0u8; 4096]);

    /// The block as bytes.
    #[must_use]
    pub fn as_block(&self) -> &RawBlock {
        zerocopy::transmute_ref!(self)
    }

    /// The block as bytes.
    pub fn as_block_mut(&mut self) -> &mut RawBlock {
        zerocopy::transmute_mut!(self)
    }
}

/// The type of the inode, as a directory entry states it (`F2FS_FT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the header's
pub enum FileType {
    Unknown = 0,
    Regular = 1,
    Directory = 2,
    Character = 3,
    Block = 4,
    Fifo = 5,
    Socket = 6,
    Symlink = 7,
}

impl FileType {
    /// The type with this number; `None` above 7.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<FileType> {
        Some(match number {
            0 => FileType::Unknown,
            1 => FileType::Regular,
            2 => FileType::Directory,
            3 => FileType::Character,
            4 => FileType::Block,
            5 => FileType::Fifo,
            6 => FileType::Socket,
            7 => FileType::Symlink,
            _ => return None,
        })
    }

    /// The number as it stands on disk.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The type of an inode with this `i_mode`.
    #[must_use]
    pub const fn from_mode(i_mode: u16) -> FileType {
        match i_mode & mode::MASK {
            mode::REGULAR => FileType::Regular,
            mode::DIRECTORY => FileType::Directory,
            mode::CHARACTER => FileType::Character,
            mode::BLOCK => FileType::Block,
            mode::FIFO => FileType::Fifo,
            mode::SOCKET => FileType::Socket,
            mode::SYMLINK => FileType::Symlink,
            _ => FileType::Unknown,
        }
    }

    /// The type bits of `i_mode`; 0 for [`FileType::Unknown`].
    #[must_use]
    pub const fn to_mode(self) -> u16 {
        match self {
            FileType::Unknown => 0,
            FileType::Regular => mode::REGULAR,
            FileType::Directory => mode::DIRECTORY,
            FileType::Character => mode::CHARACTER,
            FileType::Block => mode::BLOCK,
            FileType::Fifo => mode::FIFO,
            FileType::Socket => mode::SOCKET,
            FileType::Symlink => mode::SYMLINK,
        }
    }
}

/// Slots that a name of `name_len` bytes takes (`GET_DENTRY_SLOTS`).
#[must_use]
pub const fn slots_for(name_len: usize) -> usize {
    name_len.div_ceil(SLOT_LEN)
}

/// Checks that a new entry can have this name: 1 to 255 bytes, no slash, no NUL, and not `.` or `..`.
///
/// # Errors
/// [`FormatError::Name`].
pub fn check_name(name: &[u8]) -> Result<(), FormatError> {
    let why = if name.is_empty() {
        "empty"
    } else if name.len() > NAME_LEN {
        "longer than 255 bytes"
    } else if name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        if name.contains(&b'/') { "holds a slash" } else { "holds a zero byte" }
    } else if name == b"." || name == b".." {
        "reserved"
    } else {
        return Ok(());
    };
    Err(FormatError::Name { len: name.len(), why })
}

/// Where bitmap, entries and names lie in a block or an inline area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DentryLayout {
    /// Slots.
    pub slots: usize,
    /// Byte at which the entries begin.
    pub entries_at: usize,
    /// Byte at which the names begin.
    pub names_at: usize,
}

impl DentryLayout {
    /// The layout of a dentry block.
    pub const BLOCK: DentryLayout = DentryLayout::of_size(4096);

    /// The layout of an inline area of `size` bytes (`NR_INLINE_DENTRY` and its neighbours in `fs/f2fs/f2fs.h`): as
    /// many slots as fit with one bit each, then the bitmap, the rest of the bytes unused, entries, names.
    #[must_use]
    pub const fn of_size(size: usize) -> DentryLayout {
        let slots = size * 8 / ((ENTRY_SIZE + SLOT_LEN) * 8 + 1);
        let names_at = size - slots * SLOT_LEN;
        DentryLayout { slots, entries_at: names_at - slots * ENTRY_SIZE, names_at }
    }
}

const _: () = assert!(DentryLayout::BLOCK.slots == SLOTS_PER_BLOCK);
const _: () = assert!(DentryLayout::BLOCK.entries_at == BITMAP_SIZE + RESERVED_SIZE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_layouts() {
        // A default inode: 923 - 50 - 1 words.
        let layout = DentryLayout::of_size(4 * 872);
        assert_eq!(layout.slots, 182);
        assert_eq!((layout.entries_at, layout.names_at), (3488 - 182 * 19, 3488 - 182 * 8));
        for size in 0..5000 {
            let layout = DentryLayout::of_size(size);
            assert!(layout.slots.div_ceil(8) <= layout.entries_at, "the bitmap fits, {size}");
            assert_eq!(layout.names_at + layout.slots * SLOT_LEN, size);
        }
        assert_eq!(DentryLayout::of_size(40).slots, 2);
        assert_eq!(DentryLayout::of_size(19).slots, 0);
    }

    #[test]
    fn types_and_modes() {
        for number in 0..8 {
            let file_type = FileType::from_number(number).unwrap();
            assert_eq!(file_type.number(), number);
            assert_eq!(FileType::from_mode(file_type.to_mode() | 0o644), file_type);
        }
        assert_eq!(FileType::from_number(8), None);
    }

    #[test]
    fn names() {
        assert_eq!([1, 8, 9, 255].map(slots_for), [1, 1, 2, 32]);
        assert!(check_name(&[b'x'; 255]).is_ok() && check_name(b"\xff...").is_ok());
        for bad in [&b""[..], &[b'x'; 256], b"a/b", b"a\0", b".", b".."] {
            assert!(matches!(check_name(bad), Err(FormatError::Name { len, .. }) if len == bad.len()));
        }
    }
}
