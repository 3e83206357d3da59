//! The errors of the table.

use f2fs_format::{BlockAddr, Nid};

/// The error of a [`NatSource`](crate::NatSource) that cannot read a block.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// An error of the table. "No NID is free" is not one: see [`Nat::allocate`](crate::Nat::allocate).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NatError {
    /// A NID behind the end of the table.
    #[error("NID {nid} is out of range: the table has only {max} NIDs")]
    OutOfRange {
        /// The NID.
        nid: Nid,
        /// The number of NIDs.
        max: u32,
    },
    /// A NID that belongs to nobody: 0, 1 or 2.
    #[error("NID {nid} is reserved")]
    Reserved {
        /// The NID.
        nid: Nid,
    },
    /// The NID was to be bound, but it is free, or freed since the last checkpoint.
    #[error("NID {nid} is not allocated")]
    NotAllocated {
        /// The NID.
        nid: Nid,
    },
    /// The NID was to be freed, but no node has it.
    #[error("NID {nid} is not bound to a node")]
    NotBound {
        /// The NID.
        nid: Nid,
    },
    /// The NID was to be bound to a new node, but a node has it.
    #[error("NID {nid} is already bound to block {addr}")]
    AlreadyBound {
        /// The NID.
        nid: Nid,
        /// Where its node is.
        addr: BlockAddr,
    },
    /// A node was to be bound to no block, or to the mark of a compressed cluster.
    #[error("NID {nid} cannot be bound to block {addr}")]
    InvalidAddress {
        /// The NID.
        nid: Nid,
        /// The address.
        addr: BlockAddr,
    },
    /// A checkpoint began while a node was bound to [`BlockAddr::NEW`]: it has no block that could be recorded.
    #[error("node {nid} of inode {ino} is not written yet")]
    Unwritten {
        /// The NID.
        nid: Nid,
        /// Its inode.
        ino: Nid,
    },
    /// The table on the device holds an address that cannot stand there.
    #[error("NAT block {block} says that node {nid} is at block {addr}, where no node can be")]
    Corrupt {
        /// The NAT block.
        block: u32,
        /// The NID.
        nid: Nid,
        /// The address that stands there.
        addr: BlockAddr,
    },
    /// The journal names a NID behind the end of the table.
    #[error("the NAT journal names NID {nid}, but the table has only {max} NIDs")]
    Journal {
        /// The NID.
        nid: Nid,
        /// The number of NIDs.
        max: u32,
    },
    /// The table has no blocks, or more than NIDs can number.
    #[error("a NAT of {nat_blocks} blocks is not possible: 1 to {max} are")]
    Size {
        /// Blocks of the table.
        nat_blocks: u32,
        /// The most that there can be.
        max: u32,
    },
    /// The version bitmap is shorter than the table needs.
    #[error("the NAT version bitmap has {found} bytes, the table needs {expected}")]
    VersionBitmap {
        /// Bytes needed.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The owner could not read a block of the table.
    #[error("cannot read NAT block {block}, {} copy: {source}", if *.second { "second" } else { "first" })]
    Source {
        /// The NAT block.
        block: u32,
        /// Which copy.
        second: bool,
        /// Why not.
        source: SourceError,
    },
}
