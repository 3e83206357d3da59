//! Errors of bytes that claim to be F2FS.

use alloc::format;
use alloc::string::String;
use thiserror::Error;

use crate::{BlockAddr, Nid, SegmentNo};

/// A structure contradicts the format. The fields have the numbers that show it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Corruption {
    /// A fixed number (magic, type, signature) is another one.
    #[error("{what}: expected {expected:#x}, found {found:#x}")]
    Magic {
        /// The field.
        what: &'static str,
        /// The value that the format demands.
        expected: u64,
        /// The value that was found.
        found: u64,
    },
    /// A checksum does not match.
    #[error("{what}: checksum {found:#010x}, computed {expected:#010x}")]
    Checksum {
        /// The structure.
        what: &'static str,
        /// Computed from the bytes.
        expected: u32,
        /// Stored in them.
        found: u32,
    },
    /// A number lies outside its possible range.
    #[error("{what}: {found} is not in the range {min} to {max}")]
    Range {
        /// The field.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
    },
    /// Two numbers that must agree do not.
    #[error("{what}: expected {expected}, found {found}")]
    Mismatch {
        /// The field.
        what: &'static str,
        /// The value in the other structure.
        expected: u64,
        /// The value that was found.
        found: u64,
    },
    /// A node block is not the node that the NAT promises.
    #[error("node {nid} at block {addr}: {what}: expected {expected}, found {found}")]
    Node {
        /// The node that was asked for.
        nid: Nid,
        /// Where the NAT says it is.
        addr: BlockAddr,
        /// The field of it.
        what: &'static str,
        /// The right value.
        expected: u64,
        /// The value that was found.
        found: u64,
    },
    /// An address points outside the main area.
    #[error("{what} of node {nid}: block {addr} is outside the main area")]
    Address {
        /// The kind of slot.
        what: &'static str,
        /// The node that holds the slot.
        nid: Nid,
        /// The address in it.
        addr: BlockAddr,
    },
    /// Two structures disagree about who a block belongs to, or whether it is in use.
    #[error("block {addr} of node {nid}: {what}")]
    Block {
        /// The reason.
        what: &'static str,
        /// The node that names it.
        nid: Nid,
        /// The block.
        addr: BlockAddr,
    },
    /// A directory entry has impossible fields.
    #[error("directory entry in slot {slot}: {what}: {found} is not in the range {min} to {max}")]
    Dentry {
        /// Its first slot in the dentry block or inline area.
        slot: usize,
        /// The field.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// Smallest legal value.
        min: u64,
        /// Largest legal value.
        max: u64,
    },
    /// An extended attribute has impossible sizes.
    #[error("xattr entry at byte {offset}: {what}: {found} is more than {max}")]
    Xattr {
        /// Where the entry begins, in bytes from the xattr header.
        offset: usize,
        /// The field.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// Largest legal value.
        max: u64,
    },
    /// An inode contradicts itself, or the tree that it stands in.
    #[error("inode {ino}: {what}")]
    Inode {
        /// Its number.
        ino: Nid,
        /// The fault.
        what: &'static str,
    },
    /// A segment's SIT entry contradicts itself.
    #[error("segment {segment}: {what}: expected {expected}, found {found}")]
    Segment {
        /// The segment.
        segment: SegmentNo,
        /// The field.
        what: &'static str,
        /// The right value.
        expected: u64,
        /// The value that was found.
        found: u64,
    },
}

impl Corruption {
    /// [`Corruption::Range`] unless `found` is in `min..=max`.
    pub fn check_range(what: &'static str, found: u64, min: u64, max: u64) -> Result<(), Corruption> {
        if (min..=max).contains(&found) { Ok(()) } else { Err(Corruption::Range { what, found, min, max }) }
    }

    /// [`Corruption::Mismatch`] unless the two numbers agree.
    pub fn check_equal(what: &'static str, expected: u64, found: u64) -> Result<(), Corruption> {
        if expected == found { Ok(()) } else { Err(Corruption::Mismatch { what, expected, found }) }
    }
}

/// Why bytes could not be taken as, or turned into, an F2FS structure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes contradict the format.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// Features that this library does not know, or does not support for this kind of opening.
    #[error("unsupported feature: {names} (bits {bits:#x})")]
    Unsupported {
        /// The offending bits.
        bits: u32,
        /// Their names, comma separated.
        names: String,
    },
    /// The volume has blocks of another size than this library reads.
    #[error("unsupported block size: {bytes} bytes; only volumes with blocks of 4096 bytes can be read")]
    BlockSize {
        /// Bytes of a block of the volume.
        bytes: u64,
    },
    /// The volume asked for cannot be laid out.
    #[error("{what}: {found} is {}", not_within(*.min, *.max))]
    Layout {
        /// The quantity that does not fit.
        what: &'static str,
        /// The value that was asked for.
        found: u64,
        /// Smallest that works.
        min: u64,
        /// Largest that works.
        max: u64,
    },
    /// A quantity has to be a power of two, and is not.
    #[error("{what}: {found} is not a power of two")]
    NotAPowerOfTwo {
        /// The quantity.
        what: &'static str,
        /// Its value.
        found: u64,
    },
    /// A feature was asked for without another one that it depends on.
    #[error("feature {feature} needs feature {needs}")]
    Dependency {
        /// The feature that was asked for.
        feature: &'static str,
        /// The one that it depends on.
        needs: &'static str,
    },
    /// The feature `blkzoned` was asked for, and no device has zones.
    #[error("a zoned volume was asked for (feature blkzoned), and no device has zones")]
    NoZones,
    /// Devices have zones, and the feature `blkzoned` was not asked for.
    #[error("zones, on {devices} of the devices, which only a zoned volume can use (feature blkzoned)")]
    ZonesUnasked {
        /// How many.
        devices: u64,
    },
    /// A name is empty, too long, or holds a slash or NUL.
    #[error("invalid name of {len} bytes: {why}")]
    Name {
        /// Its length in bytes.
        len: usize,
        /// The reason.
        why: &'static str,
    },
}

/// Why a value is none of those from `min` to `max`.
fn not_within(min: u64, max: u64) -> String {
    if min == max {
        format!("not {min}")
    } else if max == u64::MAX {
        format!("less than {min}")
    } else if min == 0 {
        format!("more than {max}")
    } else {
        format!("not in the range {min} to {max}")
    }
}
