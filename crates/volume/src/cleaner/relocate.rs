//! Moving data blocks while others use them.
//!
//! ```text
//!   gate entered (or closed by the caller)
//!     for each block: its owner, by the summary; skipped unless the owner's slot names it
//!     largest extents of the owners' inodes forgotten
//!     read all -> write all to the cold log -> for each: slot still the same ? slot = new place, old one freed
//!                                                     : new place freed (somebody was quicker)
//! ```
//!
//! # Locking
//!
//! The caller holds an [`Op`], so no checkpoint freezes: what is moved becomes durable as a whole with the next one,
//! and the old places keep their bytes until then. No lock is held while the device works. Pages are locked one at a
//! time: the inode's to forget the extent, then the owner's to change the slot ([`Flight::land_move`]). The latter within the
//! order of moves and syncs ([`crate::unflushed_moves`]), which waits for a sync that is writing.
//!
//! # Why no crash can lose a block
//!
//! Until the next checkpoint is durable, the last one names the old places, and these are taken: nobody writes to them.
//! Once it is durable it names the new places, which were written and flushed before it. A sync of a file may write its
//! nodes with the new places in them before that, and a crash in the middle of it leave the nodes and nothing else of
//! it: so beside operations, moved blocks are flushed before any synced node names them.

use f2fs_device::AlignedBuf;
use f2fs_format::inode::Extent;
use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{Nid, SegmentNo};

use super::Cleaning;
use crate::blocks::{read_block, read_each};
use crate::flight::Destination;
use crate::write_stat::Count;
use crate::{Flight, Op, VolumeError};

/// The fate of blocks that were to be moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Relocated {
    /// Their slots name the new places.
    pub(crate) moved: u64,
    /// Their slots name something else: what was asked for was freed by then.
    pub(crate) lost: u64,
    /// Nobody owns up to them: a writer that took them is not done yet, or the tables contradict each other.
    pub(crate) left: u64,
}

impl Relocated {
    pub(crate) fn is_whole(self) -> bool {
        self.left == 0
    }
}

impl Cleaning<'_> {
    /// The summary of a segment that no log may take or leave meanwhile.
    pub(crate) fn summary_of(self, segment: SegmentNo) -> Result<Box<SummaryBlock>, VolumeError> {
        if let Some(summary) = self.0.segments.manager()?.summary(segment) {
            return Ok(summary);
        }
        let buf = read_block(&*self.0.device, self.0.geometry.summary_block(segment))?;
        Ok(Box::new(*SummaryBlock::read(buf.block(0))))
    }

    /// Moves valid data blocks of a segment, given by their offsets.
    pub(crate) fn move_data(
        self,
        op: &Op<'_>,
        segment: SegmentNo,
        offsets: &[u32],
        summary: &SummaryBlock,
        cause: Count,
        destination: Destination,
    ) -> Result<Relocated, VolumeError> {
        let features = self.0.features();
        let mut done = Relocated::default();
        // Blocks, and the nodes and slots that name them.
        let (mut from, mut owners) = (Vec::with_capacity(offsets.len()), Vec::with_capacity(offsets.len()));
        let mut summaries = Vec::with_capacity(offsets.len());
        let mut last_ino = Nid::NULL;
        for offset in offsets {
            let entry = summary.entries[*offset as usize];
            let addr = self.0.geometry.block_at(segment, *offset);
            let slot = usize::from(entry.ofs_in_node.get());
            let node = self.0.nodes().get(entry.nid.into()).ok().filter(|_| slot < ADDRS_PER_BLOCK);
            let Some(node) = node.filter(|node| node.owns(slot, addr, features)) else {
                // Freed meanwhile, not owned up to, or on its way.
                if self.0.segments.is_valid(addr)? {
                    done.left += 1;
                } else {
                    done.lost += 1;
                }
                continue;
            };
            if node.ino() != last_ino {
                last_ino = node.ino();
                self.forget_extent(op, last_ino)?;
            }
            summaries.push(Summary::new(node.nid(), self.0.nodes().version(node.nid())?, entry.ofs_in_node.get()));
            owners.push((node, slot));
            from.push(addr);
        }
        if owners.is_empty() {
            return Ok(done);
        }
        let mut data = AlignedBuf::new(from.len());
        read_each::<VolumeError>(&*self.0.device, &from, |index, block| {
            data.block_mut(index).copy_from_slice(block);
            Ok(())
        })?;
        let flight = Flight::begin_move(op, (segment, destination), owners.into_iter(), &summaries, data)?;
        let moved = flight.land_move(op, &from, cause)?;
        done.moved += moved.moved;
        done.lost += moved.lost;
        self.0.written.add(Count::LostMoves, done.lost);
        Ok(done)
    }

    /// The largest extent that an inode caches may speak of a block that moves. An inode that is gone has none.
    fn forget_extent(self, op: &Op<'_>, ino: Nid) -> Result<(), VolumeError> {
        let inode = match self.0.nodes().get(ino) {
            Ok(inode) => inode,
            Err(_) if !self.0.nat.get(ino).is_ok_and(|entry| entry.addr.is_real()) => return Ok(()),
            Err(error) => return Err(error),
        };
        if inode.read().inode().i_ext.len.get() != 0 {
            inode.write(op).inode_mut().i_ext = Extent::NONE;
        }
        Ok(())
    }

    /// Makes valid nodes of a segment dirty: they move by being written back. Gives how many, and how many nobody
    /// knows.
    pub(crate) fn move_nodes(
        self,
        op: &Op<'_>,
        segment: SegmentNo,
        offsets: &[u32],
        summary: &SummaryBlock,
    ) -> Relocated {
        let mut done = Relocated::default();
        for offset in offsets {
            let nid: Nid = summary.entries[*offset as usize].nid.into();
            let here = self.0.geometry.block_at(segment, *offset);
            let node = self.0.nat.get(nid).is_ok_and(|entry| entry.addr == here).then(|| self.0.nodes().get(nid));
            match node {
                Some(Ok(node)) => {
                    drop(node.write(op));
                    done.moved += 1;
                }
                _ if self.0.segments.is_valid(here).unwrap_or(true) => done.left += 1,
                _ => done.lost += 1,
            }
        }
        self.0.written.add(Count::MovedNodes, done.moved);
        done
    }
}
