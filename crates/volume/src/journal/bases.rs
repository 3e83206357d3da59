//! The nodes that the last records of files hold, so that the next record of such a file holds what changed in them.
//!
//! ```text
//!   record 1: the node, without its zeros                       base := the node,            stamp 1
//!   record 2: the pieces that differ from the base; "upon 1"    base := the node as it is,   stamp 2
//! ```
//!
//! A full inode, or a node full of addresses, is some 60 lines; an overwrite of a block changes two or three of them. A
//! replay lays the pieces over the node of the record that is named. So that this is the last one that holds the node, a
//! base is forgotten when another record holds it: one of names.
//!
//! Each stripe of files keeps one inode and one other node, of each the pieces that are not zero.
//!
//! # Locking
//!
//! None of its own: they belong to a stripe's lock.

use f2fs_format::Nid;
use f2fs_format::bits::is_zero;
use f2fs_format::node::{BODY_SIZE, NodeBlock};
use f2fs_sync::protocol_step;

use super::piece::{mask, place};

/// The order of the records of a stripe's files, and what the last of them hold.
#[derive(Debug, Default)]
pub(crate) struct FileOrder {
    /// The stamp of the last record.
    pub(crate) stamp: u64,
    pub(crate) bases: Bases,
}

/// The nodes that a stripe keeps.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    inode: Option<Box<Base>>,
    other: Option<Box<Base>>,
}

/// A node as the last record has it.
#[derive(Debug)]
pub(crate) struct Base {
    nid: Nid,
    ino: Nid,
    /// The footer version of the checkpoint that the record builds on.
    version: u64,
    /// The record's; 0: there is none.
    stamp: u64,
    /// It is in a record that is being put together.
    is_pending: bool,
    /// A bit for each piece that is in `body`. The others are zero in the node.
    pieces: u64,
    body: [u8; BODY_SIZE],
}

impl Base {
    /// The stamp of the record that holds this node; `None` if there is none.
    pub(crate) fn stamp_of(&self, block: &NodeBlock, version: u64) -> Option<u64> {
        let is_same = self.stamp != 0 && self.version == version && (self.nid, self.ino) == (block.nid(), block.ino());
        is_same.then_some(self.stamp)
    }

    /// Whether the node has these bytes in this place: in one piece, or in several.
    #[inline]
    pub(crate) fn has(&self, at: usize, bytes: &[u8]) -> bool {
        match self.pieces & mask(at, bytes.len()) {
            0 => is_zero(bytes),
            some if some == mask(at, bytes.len()) => self.body[at..at + bytes.len()] == *bytes,
            // Some of them are zero, and are looked at by themselves.
            _ => false,
        }
    }

    /// The record that is being put together holds the node as it is; it differs in these pieces.
    pub(crate) fn take(&mut self, block: &NodeBlock, pieces: u64) {
        let mut rest = pieces;
        while rest != 0 {
            let place = place(rest.trailing_zeros() as usize);
            self.body[place.clone()].copy_from_slice(&block.body[place]);
            rest &= rest - 1;
        }
        self.pieces |= pieces;
        (self.stamp, self.is_pending) = (0, true);
    }
}

impl Bases {
    /// A record begins. What an earlier one was to hold, and did not get to, is no base.
    pub(crate) fn begin(&mut self) {
        self.each(|base| base.is_pending = false);
    }

    /// The record is durable.
    pub(crate) fn settle(&mut self, stamp: u64) {
        self.each(|base| {
            if base.is_pending {
                (base.stamp, base.is_pending) = (stamp, false);
            }
        });
    }

    /// Another record holds the nodes of this file.
    pub(crate) fn forget(&mut self, ino: Nid) {
        self.each(|base| {
            if base.ino == ino {
                protocol_step!("journal_base_kept_behind_names", base.stamp = 0);
            }
        });
    }

    /// The one that may be the base of this node.
    pub(crate) fn of(&mut self, block: &NodeBlock) -> Option<&mut Base> {
        self.place(block).as_deref_mut()
    }

    /// The record that is being put together holds the node as a whole; these pieces are not zero.
    pub(crate) fn keep(&mut self, block: &NodeBlock, version: u64, pieces: u64) {
        let (nid, ino) = (block.nid(), block.ino());
        let new = || Box::new(Base { nid, ino, version, stamp: 0, is_pending: false, pieces: 0, body: [0; BODY_SIZE] });
        let base = self.place(block).get_or_insert_with(new);
        (base.nid, base.ino, base.version, base.pieces) = (nid, ino, version, 0);
        base.take(block, pieces);
    }

    fn place(&mut self, block: &NodeBlock) -> &mut Option<Box<Base>> {
        if block.is_inode() { &mut self.inode } else { &mut self.other }
    }

    fn each(&mut self, change: impl Fn(&mut Base)) {
        self.inode.iter_mut().chain(&mut self.other).for_each(|base| change(base));
    }
}
