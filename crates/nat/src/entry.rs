//! One entry of the table.

use f2fs_format::nat::RawNatEntry;
use f2fs_format::{BlockAddr, Nid};

/// Where a node is (`struct node_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NatEntry {
    /// The inode that the node belongs to: the NID itself for an inode. Keeps its last value when the node is freed.
    pub ino: Nid,
    /// The node's block; [`BlockAddr::NULL`]: no node has this NID; [`BlockAddr::NEW`]: bound, not written yet.
    pub addr: BlockAddr,
    /// Rises when the node is freed, so that a summary that still names it is seen to be stale.
    pub version: u8,
}

impl NatEntry {
    /// Whether a node has this NID.
    #[must_use]
    pub const fn is_bound(&self) -> bool {
        !self.addr.is_null()
    }

    /// The inode and the address as one word, so that they are loaded and stored together.
    pub(crate) const fn word(&self) -> u64 {
        (self.ino.0 as u64) << 32 | self.addr.0 as u64
    }

    /// The entry from its word and version.
    pub(crate) const fn from_word(word: u64, version: u8) -> NatEntry {
        NatEntry { ino: Nid((word >> 32) as u32), addr: BlockAddr(word as u32), version }
    }
}

impl From<RawNatEntry> for NatEntry {
    fn from(raw: RawNatEntry) -> Self {
        NatEntry { ino: raw.ino.into(), addr: BlockAddr(raw.block_addr.get()), version: raw.version }
    }
}

impl From<NatEntry> for RawNatEntry {
    fn from(entry: NatEntry) -> Self {
        RawNatEntry { version: entry.version, ino: entry.ino.into(), block_addr: entry.addr.0.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_raw_entries_round_trip() {
        let entry = NatEntry { ino: Nid(0xdead_beef), addr: BlockAddr::NEW, version: 255 };
        assert_eq!(NatEntry::from_word(entry.word(), entry.version), entry);
        assert_eq!(NatEntry::from(RawNatEntry::from(entry)), entry);
        assert!(entry.is_bound() && !NatEntry::default().is_bound());
    }
}
