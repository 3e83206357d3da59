//! Feature bits of the superblock, and which of them this library opens.
//!
//! | Feature | Bit | Read-write | Read-only |
//! |---|---|---|---|
//! | `extra_attr` | 0x0008 | yes | yes |
//! | `project_quota` (the project id is kept, no quota is counted) | 0x0010 | yes | yes |
//! | `inode_checksum` | 0x0020 | yes | yes |
//! | `flexible_inline_xattr` | 0x0040 | yes | yes |
//! | `inode_crtime` | 0x0100 | yes | yes |
//! | `lost_found` | 0x0200 | yes | yes |
//! | `sb_checksum` | 0x0800 | yes | yes |
//! | `quota` (hidden quota files would go stale) | 0x0080 | refused | yes |
//! | `verity` (protected files are read without verification) | 0x0400 | refused | yes |
//! | `readonly` | 0x4000 | refused | yes |
//! | `encrypt` (names as the kernel shows them without a key; no contents of encrypted files) | 0x0001 | refused | yes |
//! | `casefold` (names beyond ASCII are found by their exact bytes only) | 0x1000 | refused | yes |
//! | `compression` (no contents of compressed clusters) | 0x2000 | refused | yes |
//! | `device_alias` (a file that stands for a device of the volume shows that device's bytes) | 0x8000 | refused | yes |
//! | `blkzoned` (on devices with zones) | 0x0002 | yes | yes |
//! | `atomic_write` (never used by any kernel) | 0x0004 | refused | refused |
//! | `packed_ssa` (on volumes with blocks above 4 KiB) | 0x10000 | refused | refused |
//! | anything else | | refused | refused |
//!
//! A feature that is refused for writing is refused also where no file uses it yet: a new file takes encryption,
//! compression and casefolding from its directory, and quota files go stale with every block.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::FormatError;

/// A set of feature bits, as in the superblock's `feature` field.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Features(pub u32);

impl Features {
    /// Per-file encryption.
    pub const ENCRYPT: Features = Features(0x0001);
    /// A host-managed zoned device.
    pub const BLKZONED: Features = Features(0x0002);
    /// Reserved, never used.
    pub const ATOMIC_WRITE: Features = Features(0x0004);
    /// Inodes carry 36 bytes of extra attributes.
    pub const EXTRA_ATTR: Features = Features(0x0008);
    /// Inodes carry a project id.
    pub const PROJECT_QUOTA: Features = Features(0x0010);
    /// Inodes carry a checksum.
    pub const INODE_CHECKSUM: Features = Features(0x0020);
    /// The room for inline xattrs is stated by each inode.
    pub const FLEXIBLE_INLINE_XATTR: Features = Features(0x0040);
    /// Hidden quota inodes.
    pub const QUOTA: Features = Features(0x0080);
    /// Inodes carry a creation time.
    pub const INODE_CRTIME: Features = Features(0x0100);
    /// `/lost+found` exists from the start.
    pub const LOST_FOUND: Features = Features(0x0200);
    /// fs-verity.
    pub const VERITY: Features = Features(0x0400);
    /// The superblock carries a checksum.
    pub const SB_CHECKSUM: Features = Features(0x0800);
    /// Case-insensitive directories.
    pub const CASEFOLD: Features = Features(0x1000);
    /// Compressed files.
    pub const COMPRESSION: Features = Features(0x2000);
    /// Written once, then read-only: other layout of the main area.
    pub const READONLY: Features = Features(0x4000);
    /// Device aliasing files.
    pub const DEVICE_ALIAS: Features = Features(0x8000);
    /// Several summaries share a block, where blocks are larger than 4 KiB.
    pub const PACKED_SSA: Features = Features(0x1_0000);

    /// The names used by `mkfs.f2fs -O`, in the order of the bits.
    pub const NAMES: [(Features, &'static str); 17] = [
        (Features::ENCRYPT, "encrypt"),
        (Features::BLKZONED, "blkzoned"),
        (Features::ATOMIC_WRITE, "atomic_write"),
        (Features::EXTRA_ATTR, "extra_attr"),
        (Features::PROJECT_QUOTA, "project_quota"),
        (Features::INODE_CHECKSUM, "inode_checksum"),
        (Features::FLEXIBLE_INLINE_XATTR, "flexible_inline_xattr"),
        (Features::QUOTA, "quota"),
        (Features::INODE_CRTIME, "inode_crtime"),
        (Features::LOST_FOUND, "lost_found"),
        (Features::VERITY, "verity"),
        (Features::SB_CHECKSUM, "sb_checksum"),
        (Features::CASEFOLD, "casefold"),
        (Features::COMPRESSION, "compression"),
        (Features::READONLY, "readonly"),
        (Features::DEVICE_ALIAS, "device_alias"),
        (Features::PACKED_SSA, "packed_ssa"),
    ];

    /// Features that are opened for writing, and that `format` can set; [`BLKZONED`](Self::BLKZONED) on devices with
    /// zones only.
    pub const READ_WRITE: Features = Features(
        Self::EXTRA_ATTR.0
            | Self::PROJECT_QUOTA.0
            | Self::INODE_CHECKSUM.0
            | Self::FLEXIBLE_INLINE_XATTR.0
            | Self::INODE_CRTIME.0
            | Self::LOST_FOUND.0
            | Self::SB_CHECKSUM.0
            | Self::BLKZONED.0,
    );

    /// Features that are opened for reading.
    pub const READ_ONLY: Features = Features(
        Self::READ_WRITE.0
            | Self::ENCRYPT.0
            | Self::QUOTA.0
            | Self::VERITY.0
            | Self::CASEFOLD.0
            | Self::COMPRESSION.0
            | Self::READONLY.0
            | Self::DEVICE_ALIAS.0,
    );

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn union(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// The names of the set bits; bits without a name as `bit N`.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        (0..32)
            .filter(|bit| self.0 & (1 << bit) != 0)
            .map(|bit| {
                Self::NAMES
                    .iter()
                    .find(|(feature, _)| feature.0 == 1 << bit)
                    .map_or_else(|| format!("bit {bit}"), |(_, name)| String::from(*name))
            })
            .collect()
    }

    /// The feature with this name, as `mkfs.f2fs -O` spells it (also `ro`, its short name of `readonly`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Features> {
        if name == "ro" {
            return Some(Self::READONLY);
        }
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(feature, _)| *feature)
    }

    /// Refuses every bit outside `allowed`, by name.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] with the offending bits and their names.
    pub fn require_within(self, allowed: Features) -> Result<(), FormatError> {
        let bits = self.0 & !allowed.0;
        if bits == 0 {
            return Ok(());
        }
        Err(FormatError::Unsupported { bits, names: Features(bits).names().join(", ") })
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Features({:#06x}: {})", self.0, self.names().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_bits_are_refused_by_name() {
        let all = Features(Features::READ_WRITE.0 | 0x2000 | 0x0100_0000);
        let error = all.require_within(Features::READ_WRITE).unwrap_err();
        assert_eq!(error, FormatError::Unsupported { bits: 0x0100_2000, names: "compression, bit 24".into() });
        assert!(Features::READ_WRITE.require_within(Features::READ_WRITE).is_ok());
        let error = Features::PACKED_SSA.require_within(Features::READ_ONLY).unwrap_err();
        assert_eq!(error, FormatError::Unsupported { bits: 0x1_0000, names: "packed_ssa".into() });
    }
}
