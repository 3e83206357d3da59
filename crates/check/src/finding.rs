//! A finding of the check: one inconsistency, where it is, and the numbers that show it.

use std::fmt;

use f2fs_format::{BlockAddr, Corruption, LogType, Nid, SegmentNo};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// What a power cut at a bad moment leaves: one of two copies is bad or stale and the other one is in force, or
    /// Linux, when it recovered a file, left blocks behind its end. The volume is whole.
    Torn,
    /// The volume contradicts itself or the format.
    Damage,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The kind of an inconsistency. Kinds are ordered roughly as the structures stand on the device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingKind {
            $($(#[$doc])* $name,)*
        }

        impl FindingKind {
            /// All kinds, in their order.
            pub const ALL: &[FindingKind] = &[$(FindingKind::$name,)*];

            /// The short name that reports begin with.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(FindingKind::$name => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// One superblock copy is invalid, or the two valid copies differ.
    SuperblockCopy = "superblock copy",
    /// A field of the superblock in force that the layout check does not stop at.
    Superblock = "superblock",
    /// Feature bits that no known version of the format defines.
    Features = "features",
    /// One checkpoint pack is invalid; the other one is in force.
    TornPack = "torn pack",
    /// The newest checkpoint has lost its first block, and the one before it is in force. No power cut leaves that: the
    /// last block, which still is there, is written when all others are durable.
    LostCheckpoint = "lost checkpoint",
    /// Neither checkpoint pack is valid.
    NoCheckpoint = "no checkpoint",
    /// A field of the checkpoint in force.
    Checkpoint = "checkpoint",
    /// The checkpoint says that the volume was found damaged earlier.
    Marked = "marked as damaged",
    /// The quotas of the volume are to be counted anew, as the checkpoint says. `fsck.f2fs` does that, and Linux does not
    /// use them before. A repair leaves it so.
    Quotas = "quotas not counted",
    /// An orphan block or an entry of it.
    Orphan = "orphan",
    /// A current segment: its number, offset, type, or blocks behind the offset of a log that fills in order.
    Log = "log",
    /// A NAT journal entry.
    NatJournal = "nat journal",
    /// A SIT journal entry.
    SitJournal = "sit journal",
    /// The NAT bits of the pack in force.
    NatBits = "nat bits",
    /// The chain of nodes that roll-forward would follow.
    RecoveryChain = "recovery chain",
    /// A NAT entry.
    NatEntry = "nat entry",
    /// A SIT entry contradicts itself.
    SitEntry = "sit entry",
    /// The zones of the device do not fit the volume: their size and place, or blocks in use where a zone is not
    /// written.
    Zone = "zone",
    /// A log of a volume that was closed does not stand at the write pointer of its zone. Nothing is lost: an open for
    /// writing moves it.
    WritePointer = "write pointer",
    /// A segment's type does not fit the blocks in it.
    SegmentType = "segment type",
    /// A summary entry, or the type of a summary block.
    Summary = "summary",
    /// A block is in use, but its SIT bit is clear.
    NotValid = "not valid in sit",
    /// Blocks are valid in the SIT, but nothing refers to them.
    Unreached = "unreached block",
    /// A NID is in use in the NAT, but nothing refers to it.
    UnreachableNid = "unreachable nid",
    /// An address lies outside the main area.
    Address = "address",
    /// Two slots refer to one block.
    DuplicateBlock = "duplicate block",
    /// A reference to a node that is impossible: out of range, or a second one to the same node.
    NodeTree = "node tree",
    /// The footer of a node block.
    NodeFooter = "node footer",
    /// A field of an inode.
    Inode = "inode",
    /// The checksum of an inode.
    InodeChecksum = "inode checksum",
    /// Inline data or dentries: flags, size, the reserved word, junk.
    Inline = "inline",
    /// The extent that an inode caches.
    Extent = "extent",
    /// `i_blocks`.
    BlockCount = "block count",
    /// `i_size`.
    FileSize = "file size",
    /// Nodes of a file that all lie behind its end. Linux leaves them when it recovers a file that was cut and then
    /// synced: the nodes that were cut off it come back from the checkpoint. fsck.f2fs accepts them. Should the file
    /// grow, Linux shows their content again.
    BehindEnd = "behind the end",
    /// `i_links`.
    Links = "links",
    /// How a compressed file is compressed, a cluster's mark, or what the clusters save.
    Compression = "compression",
    /// A field of a directory entry.
    Dentry = "dentry",
    /// The hash of a directory entry.
    DentryHash = "dentry hash",
    /// A directory entry outside its bucket, or beyond the depth or size of its directory.
    DentryPosition = "dentry position",
    /// A name that stands twice in a directory.
    DuplicateName = "duplicate name",
    /// `.` and `..`.
    Dots = "dots",
    /// The file type of a directory entry does not fit the inode.
    FileType = "file type",
    /// A directory's parent, or a directory with two parents.
    Parent = "parent",
    /// Extended attributes.
    Xattr = "xattr",
    /// A quota file that holds none. A repair says that the quotas are to be counted anew.
    QuotaFile = "quota file",
    /// A count of the checkpoint does not match what was counted.
    Counts = "counts",
}

impl FindingKind {
    /// How bad such a finding is.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            FindingKind::SuperblockCopy
            | FindingKind::TornPack
            | FindingKind::WritePointer
            | FindingKind::Quotas
            | FindingKind::BehindEnd => Severity::Torn,
            _ => Severity::Damage,
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a finding is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The volume as a whole.
    Volume,
    /// Superblock copy 0 or 1.
    Superblock(u32),
    /// Checkpoint pack 0 or 1.
    Pack(u32),
    /// A log.
    Log(LogType),
    /// A NAT block.
    NatBlock(u32),
    /// A segment of the main area.
    Segment(SegmentNo),
    /// A block.
    Block(BlockAddr),
    /// A node by number alone.
    Nid(Nid),
    /// A node block.
    Node {
        /// The node.
        nid: Nid,
        /// Its block.
        addr: BlockAddr,
    },
    /// An address or NID slot of a node.
    Slot {
        /// The node that holds the slot.
        nid: Nid,
        /// Its index in the node, counted as summaries count.
        index: u32,
    },
    /// A directory entry.
    Dentry {
        /// The directory.
        dir: Nid,
        /// The directory's file block; `None` for inline dentries.
        block: Option<u32>,
        /// The slot in the block.
        slot: u32,
        /// The name, as far as it can be told.
        name: Box<[u8]>,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Volume => f.write_str("volume"),
            Place::Superblock(copy) => write!(f, "superblock {}", copy + 1),
            Place::Pack(pack) => write!(f, "checkpoint pack {pack}"),
            Place::Log(log) => write!(f, "{} log", log.name()),
            Place::NatBlock(index) => write!(f, "nat block {index}"),
            Place::Segment(segment) => write!(f, "segment {segment}"),
            Place::Block(addr) => write!(f, "block {addr}"),
            Place::Nid(nid) => write!(f, "nid {nid}"),
            Place::Node { nid, addr } => write!(f, "nid {nid} at block {addr}"),
            Place::Slot { nid, index } => write!(f, "nid {nid} slot {index}"),
            Place::Dentry { dir, block: Some(block), slot, name } => {
                write!(f, "directory {dir} block {block} slot {slot} \"{}\"", name.escape_ascii())
            }
            Place::Dentry { dir, block: None, slot, name } => {
                write!(f, "directory {dir} inline slot {slot} \"{}\"", name.escape_ascii())
            }
        }
    }
}

/// The fault there, with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A number is another one than it must be.
    Mismatch {
        /// The field.
        what: &'static str,
        /// The right value.
        expected: u64,
        /// The value that was found.
        found: u64,
    },
    /// The same for bits, hashes and checksums, which read better in hexadecimal.
    Bits {
        /// The field.
        what: &'static str,
        /// The right value.
        expected: u64,
        /// The value that was found.
        found: u64,
    },
    /// A number is out of its range.
    Range {
        /// The field.
        what: &'static str,
        /// The value that was found.
        found: u64,
        /// The least that it may be.
        min: u64,
        /// The most that it may be.
        max: u64,
    },
    /// Something must not be there, or not be so; with the number that shows it.
    Fault {
        /// The reason.
        what: &'static str,
        /// The number.
        found: u64,
    },
    /// The format crate refused the structure.
    Corrupt(Corruption),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Mismatch { what, expected, found } => write!(f, "{what}: expected {expected}, found {found}"),
            Problem::Bits { what, expected, found } => write!(f, "{what}: expected {expected:#x}, found {found:#x}"),
            Problem::Range { what, found, min, max } => write!(f, "{what}: {found} is not in the range {min} to {max}"),
            Problem::Fault { what, found } => write!(f, "{what}: {found}"),
            Problem::Corrupt(corruption) => corruption.fmt(f),
        }
    }
}

/// One inconsistency. Its display form is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The kind of the inconsistency.
    pub kind: FindingKind,
    /// Where.
    pub place: Place,
    /// How, with its numbers.
    pub problem: Problem,
}

impl Finding {
    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.kind, self.place, self.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_its_numbers() {
        let place = Place::Dentry { dir: Nid(3), block: Some(1), slot: 7, name: (*b"a\nb").into() };
        let problem = Problem::Bits { what: "hash", expected: 0x10, found: 0x11 };
        let finding = Finding { kind: FindingKind::DentryHash, place, problem };
        assert_eq!(
            finding.to_string(),
            "dentry hash: directory 3 block 1 slot 7 \"a\\nb\": hash: expected 0x10, found 0x11"
        );
        assert_eq!(finding.severity(), Severity::Damage);
        assert_eq!(FindingKind::TornPack.severity(), Severity::Torn);
    }
}
