//! The freeze: with the gate closed, all that a checkpoint will hold is taken as it is.
//!
//! ```text
//!   dirty nodes get their places and are copied (dnodes, then indirect) -> SIT, summaries -> NAT -> zones -> counts -> orphans, cleared segments
//! ```
//!
//! Nodes come first: their new places are in the SIT and the NAT that are taken then. An error here stops the volume,
//! since its memory may be ahead of its tables.
//!
//! # Locking
//!
//! The gate is closed, so nobody changes a node or counts. The pages of nodes are locked one at a time. [`Frozen`]
//! holds the right to write ([`Writing`]): syncs wait until it is dropped.

use f2fs_format::summary::SIT_JOURNAL_ENTRIES;
use f2fs_format::{Nid, SegmentNo};
use f2fs_segment::SegmentFlush;

use super::Checkpoints;
use crate::VolumeError;
use crate::blocks::WriteBatch;
use crate::epoch::{Turn, Writing};
use crate::node_log::{NodeLogs, is_indirect_offset};
use crate::node_page::NodePage;
use crate::node_store::TakenNodes;

/// The state that a checkpoint holds: that of the moment when the gate was closed.
pub(super) struct Frozen<'a> {
    /// Nodes on their way, copied.
    pub(super) nodes: WriteBatch<'a>,
    /// The pages of `nodes`, which stay in memory until the device has them, and the pages that were written ahead.
    pub(super) pages: TakenNodes,
    /// Nodes that were written ahead, in blocks.
    pub(super) ahead: u64,
    pub(super) tables: Tables,
    /// Segments that the precleaner had cleared.
    pub(super) cleared: Vec<SegmentNo>,
    /// Syncs wait until this is dropped.
    pub(super) writing: Writing<'a>,
}

/// The part of it that tables and pack are made of, but for the NAT, which knows what it froze.
pub(super) struct Tables {
    pub(super) segments: SegmentFlush,
    pub(super) orphans: Vec<Nid>,
    pub(super) counts: Counts,
}

/// The totals that a pack records.
pub(super) struct Counts {
    pub(super) valid_blocks: u64,
    pub(super) valid_nodes: u64,
    pub(super) valid_inodes: u64,
    pub(super) next_free_nid: Nid,
    pub(super) elapsed_time: u64,
    /// Data blocks written since the last checkpoint.
    pub(super) written: u64,
}

impl<'a> Checkpoints<'a> {
    /// Gives all dirty nodes their places, and takes SIT, NAT and counts as they are for the checkpoint. Called with
    /// the gate closed; what changes from here on belongs to the next one. `ahead`: nodes that were written ahead, in
    /// blocks.
    pub(super) fn freeze(self, turn: &'a Turn<'_>, ahead: u64) -> Result<Frozen<'a>, VolumeError> {
        let (nodes, pages) = self.place_nodes()?;
        let segments = self.0.segments.manager()?.begin_checkpoint(SIT_JOURNAL_ENTRIES)?;
        self.0.nat.freeze();
        self.0.zoning.note_left(self.0.segments.manager()?);
        // Nobody else counts: all of these are exact.
        let counts = Counts {
            valid_blocks: self.0.space.blocks(),
            valid_nodes: self.0.space.nodes(),
            valid_inodes: self.0.space.inodes(),
            next_free_nid: self.0.nat.next_free_nid(),
            elapsed_time: self.0.clock.now(),
            written: self.0.blocks_written.restart(),
        };
        self.0.roll_forward.freeze(counts.valid_blocks, counts.valid_nodes);
        self.0.attached_journal.freeze();
        self.0.unflushed_moves.freeze();
        self.0.names.settle(self.0.names.end());
        let (orphans, cleared) = (self.0.orphans.list(), self.0.precleaner.take_cleared());
        let tables = Tables { segments, orphans, counts };
        Ok(Frozen { nodes, pages, ahead, tables, cleared, writing: turn.freeze() })
    }

    /// Gives all dirty nodes blocks of their logs: direct nodes first, as roll-forward expects them, then indirect
    /// ones. They are copied; most of them are on their way when the batch is finished, and their pages have to stay in
    /// memory until then.
    fn place_nodes(self) -> Result<(WriteBatch<'a>, TakenNodes), VolumeError> {
        let mut taken = self.0.store.take_dirty();
        let pages = &mut taken.dirty;
        // In order of inode and offset, so that a file's nodes lie together.
        pages.sort_unstable_by_key(|page| (page.ino, page.nid));
        let mut batch = self.0.batch();
        // A version that is past: they end the chain of synced nodes, so that a crash before the pack is durable leaves
        // no way over them to nodes that an earlier crash left further on.
        let version = self.0.footer_version().wrapping_sub(1);
        for indirect in [false, true] {
            for page in pages.iter().filter(|page| is_indirect(page) == indirect) {
                let mut block = page.block.write();
                NodeLogs(self.0).write(page, &mut block, version, 0, &mut batch, None)?;
            }
        }
        Ok((batch, taken))
    }
}

fn is_indirect(page: &NodePage) -> bool {
    is_indirect_offset(page.block.read().footer.node_offset())
}
