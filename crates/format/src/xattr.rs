//! Extended attributes: one logical buffer over the inline area of an inode and the body of its xattr node.
//!
//! ```text
//! | header 24 | entry | entry | ... | 0000 | free ... |
//! |<---- inline area (often 200 bytes) ---->|<-- xattr node body (4072 bytes) -->|
//! ```
//!
//! An entry is `{name_index, name_len, value_size}` in four bytes, the name without its prefix, the value, and padding
//! to a multiple of four. A zero word ends the list; where the buffer ends behind the last entry there is none. Entries
//! cross from the inline area into the node as if they were one. Source: `fs/f2fs/xattr.c`, `fs/f2fs/xattr.h`.

mod buffer;

use alloc::vec::Vec;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub use buffer::{SetMode, XattrBuffer, XattrEntries, XattrEntry, XattrError};

/// Magic number of the header (`F2FS_XATTR_MAGIC`).
pub const MAGIC: u32 = 0xF2F5_2011;
/// Bytes of the header.
pub const HEADER_SIZE: usize = 24;
/// Bytes in front of an entry's name.
pub const ENTRY_HEADER_SIZE: usize = 4;
/// Bytes that the xattr node adds to the inline area (`VALID_XATTR_BLOCK_SIZE`).
pub const NODE_SIZE: usize = crate::node::BODY_SIZE;

/// The header (`struct f2fs_xattr_header`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct XattrHeader {
    /// [`MAGIC`]; anything else: no attribute was ever set.
    pub h_magic: U32,
    /// 1.
    pub h_refcount: U32,
    /// Zero.
    pub h_reserved: [U32; 4],
}

/// The fixed part of an entry (`struct f2fs_xattr_entry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct XattrEntryHeader {
    /// Which prefix the name has; see [`index`].
    pub e_name_index: u8,
    /// Bytes of the name, without the prefix.
    pub e_name_len: u8,
    /// Bytes of the value.
    pub e_value_size: U16,
}

const _: () = assert!(size_of::<XattrHeader>() == HEADER_SIZE);
const _: () = assert!(size_of::<XattrEntryHeader>() == ENTRY_HEADER_SIZE);

/// Name indexes (`F2FS_XATTR_INDEX_*`).
#[allow(missing_docs)] // the names are the header's
pub mod index {
    pub const USER: u8 = 1;
    pub const POSIX_ACL_ACCESS: u8 = 2;
    pub const POSIX_ACL_DEFAULT: u8 = 3;
    pub const TRUSTED: u8 = 4;
    pub const LUSTRE: u8 = 5;
    pub const SECURITY: u8 = 6;
    /// `system.advise` stands in `i_advise`, never in the buffer.
    pub const ADVISE: u8 = 7;
    pub const ENCRYPTION: u8 = 9;
    pub const VERITY: u8 = 11;
}

/// Prefixes that are followed by a name.
const PREFIXES: [(u8, &[u8]); 4] = [
    (index::USER, b"user."),
    (index::TRUSTED, b"trusted."),
    (index::LUSTRE, b"lustre."),
    (index::SECURITY, b"security."),
];

/// Indexes whose stored name is empty.
const WHOLE: [(u8, &[u8]); 3] = [
    (index::POSIX_ACL_ACCESS, b"system.posix_acl_access"),
    (index::POSIX_ACL_DEFAULT, b"system.posix_acl_default"),
    (index::ADVISE, b"system.advise"),
];

/// Splits a full name into index and stored name; `None` if no index has its prefix, or nothing follows the prefix.
#[must_use]
pub fn split_name(full: &[u8]) -> Option<(u8, &[u8])> {
    if let Some((index, _)) = WHOLE.iter().find(|(_, whole)| *whole == full) {
        return Some((*index, &[]));
    }
    PREFIXES
        .iter()
        .find_map(|(index, prefix)| Some((*index, full.strip_prefix(*prefix)?)))
        .filter(|(_, name)| !name.is_empty())
}

/// The full name of an entry, which [`split_name`] takes apart again; `None` where there is none: for indexes that are
/// never shown to users (encryption, verity, unknown ones), and for entries that no name leads to.
#[must_use]
pub fn full_name(index: u8, name: &[u8]) -> Option<Vec<u8>> {
    let (_, prefix) = PREFIXES.iter().chain(WHOLE.iter()).find(|(known, _)| *known == index)?;
    let full = [*prefix, name].concat();
    (split_name(&full) == Some((index, name))).then_some(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for full in [
            &b"user.x"[..],
            b"trusted.overlay.opaque",
            b"security.selinux",
            b"lustre.lov",
            b"system.posix_acl_access",
            b"system.posix_acl_default",
            b"system.advise",
            b"user.\xff\n",
        ] {
            let (index, name) = split_name(full).unwrap();
            assert_eq!(full_name(index, name).as_deref(), Some(full));
        }
        assert_eq!(split_name(b"security.selinux"), Some((6, &b"selinux"[..])));
        assert_eq!((full_name(1, b""), full_name(2, b"x"), full_name(7, b"x")), (None, None, None));
        assert_eq!(split_name(b"system.posix_acl_access"), Some((2, &b""[..])));
        for unknown in [&b"user."[..], b"user", b"system.foo", b"", b"os2.x"] {
            assert_eq!(split_name(unknown), None);
        }
        for hidden in [0, index::ENCRYPTION, index::VERITY, 255] {
            assert_eq!(full_name(hidden, b"c"), None);
        }
    }
}
