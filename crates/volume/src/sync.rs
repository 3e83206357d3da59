//! Syncing a file: its nodes go to the warm-node log, and one flush makes them durable for all who wait.
//!
//! ```text
//!   data of the file (on the device already) -> dirty nodes of the file -> its inode, with the fsync mark -> device flush
//! ```
//!
//! Data that a write sends with its sync ([`Syncs::flight`]) is waited for in front of the flush, together with
//! the nodes. In mode [`Strict`](FsyncMode::Strict) it is durable before any node is written, as is all other data that the
//! nodes name when they are read.
//!
//! The inode comes last and carries the mark, so a crash in between leaves a chain from which roll-forward takes all of
//! the sync or nothing of it. A new inode carries the dentry mark as well: roll-forward puts its name back. After an
//! error the group's first node is written over, so that roll-forward takes nothing of the group: its nodes may be on
//! the device, and the data that they name not.
//!
//! Roll-forward can repeat what happens to one file; whatever else changed needs a checkpoint ([`MustCheckpoint`]).
//!
//! # Locking
//!
//! Syncs form groups ([`GroupCommit`](f2fs_sync::GroupCommit)). One group is written at a time, in the order of the
//! log. So all earlier nodes of the chain are on the device before a group's flush begins, and a chain has no gap in
//! front of a node that was promised. The leader of a group locks one page at a time, also pages of the other threads'
//! files; a thread that waits for the leader holds none.
//!
//! On a device of memory each sync is a group of its own, and they are written side by side
//! ([`SyncWriters`](crate::SyncWriters), `roll_forward/chain.rs`): each has the lock of its file from before it changes
//! a slot to the end, and waits between its writes and its flush for those in front of it in the chain.
//!
//! A sync first waits until a frozen checkpoint is durable (`epoch.rs`). It holds the gate, so no checkpoint freezes in
//! between.

mod names;
mod to_journal;
mod to_log;

use f2fs_format::BlockAddr;
use f2fs_format::inode::{self, Inode};
use f2fs_format::node::NodeBlock;
use f2fs_segment::NodeLog;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, Mutex, protocol_value};

use crate::flight::joined::Joined;
use crate::node::Node;
use crate::node_log::node_log;
use crate::node_page::NodePage;
use crate::synced::{MustCheckpoint, SyncRequest, Synced};
use crate::{Flight, FsyncMode, Op, StopCause, Volume, VolumeError};

pub use names::NameClosure;

/// The syncs of files: [`Volume::syncs`].
#[derive(Clone, Copy, Debug)]
pub struct Syncs<'a>(pub(crate) &'a Volume);

impl Syncs<'_> {
    /// Makes a file durable through the warm-node log: its nodes as they are, and the data that they name. Waits for
    /// the device.
    ///
    /// # Errors
    /// [`VolumeError::Device`]: the volume is stopped. [`VolumeError::Segment`] when no segment is free: a checkpoint may help.
    pub fn file(self, op: &Op<'_>, inode: &Node) -> Result<Synced, VolumeError> {
        self.join_group(op, inode, None)
    }

    /// The same, with data of the file that is on its way: it is waited for together with the nodes that name it. In
    /// the end the file has it, durable or not ([`Synced::Must`]). The caller has its range exclusively. `of_inode`:
    /// makes the write's changes to the inode, other than the count of blocks (true), or undoes them (false). `named`
    /// is told in the end where each block lies. Both are called with the page locked.
    ///
    /// # Errors
    /// [`VolumeError::Device`], [`VolumeError::Stopped`]: the file in memory is as it was, and the blocks are free. So
    /// it is on the device, if that went on and has no zones; else there is what a crash may leave ([`FsyncMode`]). Others
    /// concern the sync alone: the file has the blocks.
    pub fn flight(
        self,
        op: &Op<'_>,
        inode: &Node,
        flight: Flight,
        of_inode: impl FnMut(&mut Inode, bool) + Send + 'static,
        named: impl FnMut(u64, BlockAddr),
    ) -> Result<Synced, VolumeError> {
        let joined = Arc::new(Mutex::new(Joined::new(flight, inode, of_inode)));
        let synced = match self.join_group(op, inode, Some(joined.clone())) {
            Err(error) if error.is_no_space() => Ok(Synced::Must(MustCheckpoint::Room)),
            synced => synced,
        };
        let mut joined = joined.lock();
        let synced = joined.end(op, synced);
        joined.tell(op, named);
        synced
    }

    fn join_group(self, op: &Op<'_>, inode: &Node, flight: Option<Arc<Mutex<Joined>>>) -> Result<Synced, VolumeError> {
        op.expect_of(self.0);
        self.0.epochs.wait_until_durable();
        if let Some(reason) = self.must_checkpoint(&inode.page, &inode.read()) {
            return Ok(Synced::Must(reason));
        }
        match self.0.attached_journal.get() {
            Some(journal) if journal.is_open() => return self.to_journal(op, journal, &inode.page, flight.as_deref()),
            Some(journal)
                if protocol_value!("journal_retired_beside_log", journal.has_retired_in(self.0.epoch()), false) =>
            {
                return Ok(Synced::Must(MustCheckpoint::Journal));
            }
            _ => {}
        }
        let request = SyncRequest { inode: inode.page.clone(), flight };
        let answer = if self.0.roll_forward.chain.is_some() {
            let _alone = inode.page.syncing.lock();
            self.write_group(op, &[request]).pop()
        } else {
            self.0.roll_forward.syncs.join(request, |group| self.write_group(op, &group))
        };
        answer.unwrap_or_else(|| Err(VolumeError::Stopped { reason: StopCause::Panic }))
    }

    /// Notes that an inode got another name, lost one of several, or was moved. Roll-forward does not repeat that: until
    /// the next checkpoint, or record of names, its syncs are more than its own nodes.
    pub fn set_renamed(self, op: &Op<'_>, inode: &Node) {
        op.expect_of(self.0);
        inode.page.renamed.store(self.0.names.now(), Ordering::Release);
        self.0.attached_journal.note_name(inode.ino(), b"");
    }

    /// Whether an inode got another name, lost one of several, or was moved, and that is not durable.
    #[must_use]
    pub fn is_renamed(self, inode: &Node) -> bool {
        !self.0.names.is_durable(inode.page.renamed.load(Ordering::Acquire))
    }

    /// Notes that data which may have been synced left an inode for a block: a sync into the log that is cut off might
    /// leave the inode without it, and the block not yet. The record of a journal is there as a whole, behind the data
    /// or with it.
    pub fn set_left_inline(self, op: &Op<'_>, inode: &Node) {
        op.expect_of(self.0);
        inode.page.left_inline.store(self.0.epoch(), Ordering::Release);
    }

    /// Whether a new inode has a name that is not durable.
    fn is_unnamed(self, page: &NodePage) -> bool {
        !self.0.names.is_durable(page.born.load(Ordering::Acquire))
    }

    /// The promise of a sync.
    #[must_use]
    pub fn fsync_mode(self) -> FsyncMode {
        self.0.roll_forward.mode
    }

    /// The reason for a checkpoint that lies in the file itself. Whether there is room
    /// is asked by the group's leader.
    pub(crate) fn must_checkpoint(self, page: &NodePage, block: &NodeBlock) -> Option<MustCheckpoint> {
        let raw = block.inode();
        if raw.file_type() != inode::mode::REGULAR || node_log(block) != NodeLog::Warm {
            return Some(MustCheckpoint::NotRegular);
        }
        // In a journal a file may have several names that the checkpoint has as well: they are not restored, and nobody
        // else reads it.
        if raw.i_links.get() == 0 || (raw.i_links.get() > 1 && !self.0.journal().is_open()) {
            return Some(MustCheckpoint::Links);
        }
        if self.0.roll_forward.opened.load(Ordering::Acquire) {
            return Some(MustCheckpoint::Opened);
        }
        let epoch = self.0.epoch();
        let left_inline = page.left_inline.load(Ordering::Acquire) == epoch;
        if page.unloggable.load(Ordering::Acquire) == epoch || (left_inline && !self.0.attached_journal.is_whole()) {
            return Some(MustCheckpoint::Changed);
        }
        if !self.0.names.is_durable(page.renamed.load(Ordering::Acquire)) {
            return Some(MustCheckpoint::Renamed);
        }
        if self.is_unnamed(page) && self.0.nodes().is_new(raw.i_pino.into()) {
            return Some(MustCheckpoint::NewParent);
        }
        None
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
