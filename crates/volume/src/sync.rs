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
//! front of a node that was promised. A sync first waits until a frozen checkpoint is durable (`epoch.rs`). It holds
//! the gate, so no checkpoint freezes in between. The leader of a group locks one page at a time, also pages of the
//! other threads' files; a thread that waits for the leader holds none.

mod names;
mod to_journal;

use f2fs_device::BlockDevice;
use f2fs_format::feature::Features;
use f2fs_format::inode::{self, Inode};
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET, mark};
use f2fs_format::{BLOCK_SIZE, BlockAddr};
use f2fs_segment::NodeLog;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, Mutex, protocol_never, protocol_step, protocol_value};

use crate::blocks::WriteBatch;
use crate::flight::joined::Joined;
use crate::node::Node;
use crate::node_log::{NodeLogs, is_indirect_offset, node_log};
use crate::node_page::NodePage;
use crate::op::Unwinding;
use crate::synced::{MustCheckpoint, SyncRequest, Synced};
use crate::write_stat::Count;
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
        let answer = self.0.roll_forward.syncs.join(request, |group| self.write_group(op, &group));
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

    /// Writes the files of a group and flushes the device.
    fn write_group(self, op: &Op<'_>, group: &[SyncRequest]) -> Vec<Result<Synced, VolumeError>> {
        // The next group begins before the leader's operation ends: nodes that this one leaves out would be a gap in
        // its chain.
        let _unwinding = Unwinding::new(self.0);
        let failed = |error: VolumeError| {
            self.0.stop(&error);
            let reason = StopCause::Error(error.to_string());
            let others = (1..group.len()).map(|_| Err(VolumeError::Stopped { reason: reason.clone() }));
            // The first request is the leader's own, or as good as it.
            others.chain([Err(error)]).rev().collect()
        };
        if let Err(error) = self.0.check_writable() {
            return failed(error);
        }
        let _order = match self.0.unflushed_moves.sync(&*self.0.device) {
            Ok(order) => order,
            Err(error) => return failed(error.into()),
        };
        let flights = || group.iter().filter_map(|request| request.flight.as_deref());
        let arrive = || flights().try_for_each(|flight| flight.lock().land(&*self.0.device));
        let land = || protocol_value!("sync_forgets_arrivals", arrive(), Ok(()));
        let mut batch = self.0.batch();
        for flight in flights() {
            let mut flight = flight.lock();
            flight.name(op);
            if let Some(request) = flight.take_deferred()
                && let Err(error) = batch.push_request(request)
            {
                drop(flight);
                return failed(error.into());
            }
        }
        if self.0.roll_forward.mode == FsyncMode::Strict {
            // A node that is read now may name data that another thread wrote a moment ago: the flush comes behind that.
            let flush = || protocol_value!("strict_flush_before_nodes", Ok(()), self.0.device.flush());
            if let Err(error) = batch.write_out().and_then(|()| land()).and_then(|()| flush()) {
                return failed(error.into());
            }
            protocol_step!("strict_flush_before_nodes", batch.follow_flushes());
        }
        let mut answers = Vec::with_capacity(group.len());
        for request in group {
            match self.log_file(&request.inode, &mut batch) {
                Err(error @ (VolumeError::Device(_) | VolumeError::Stopped { .. })) => {
                    self.cut_chain(batch.first());
                    return failed(error);
                }
                answer => answers.push(answer),
            }
        }
        let flush = || protocol_value!("sync_flush", self.0.device.flush(), Ok(()));
        let ended = protocol_value!(
            "sync_inode_behind_flush",
            batch.write_out().and_then(|()| land()).and_then(|()| flush()),
            land().and_then(|()| flush()).and_then(|()| batch.write_out())
        );
        if let Err(error) = ended {
            self.cut_chain(batch.first());
            return failed(error.into());
        }
        answers
    }

    /// Takes the nodes of a group that failed out of the log, from its first block on: they may be on the device, and
    /// the data that they name not. Roll-forward ends at a block that is no node. Zones take no second write, and an error
    /// here changes nothing: then the device is as after a crash.
    fn cut_chain(self, first: Option<BlockAddr>) {
        let Some(first) = first.filter(|_| !self.0.zoning.is_zoned()) else { return };
        let cut = self.0.device.write_slice(u64::from(first.0), &[0; BLOCK_SIZE]);
        let _ = cut.and_then(|()| self.0.device.flush());
    }

    /// Writes the dirty nodes of a file, its inode last.
    fn log_file(self, inode: &Arc<NodePage>, batch: &mut WriteBatch<'_>) -> Result<Synced, VolumeError> {
        let version = self.0.footer_version();
        // Asked again here: everything that was changed before the sync began is on the list by now, and no other sync
        // of the same file is under way.
        if let Some(reason) = self.must_checkpoint(inode, &inode.block.read()) {
            return Ok(Synced::Must(reason));
        }
        let nodes = self.0.store.take_file(inode.ino);
        let new = self.is_unnamed(inode);
        let most = self.0.pressure.dirty_limit();
        // The data that the sync promises was counted before it joined.
        let any = !nodes.is_empty() || inode.is_unsynced();
        let count = nodes.len() as u64 + 1;
        if any && !self.0.roll_forward.room.log(count, u64::from(new), &self.0.space, &self.0.blocks_written, most) {
            self.0.store.put_file(inode.ino, nodes);
            return Ok(Synced::Must(MustCheckpoint::Room));
        }
        let mut written = 0;
        for (index, page) in nodes.iter().enumerate() {
            protocol_never!("sync_direct_node_left_out", continue);
            let mut block = page.block.write();
            if block.footer.node_offset() == XATTR_NODE_OFFSET {
                protocol_never!("sync_xattr_node_left_out", continue);
            }
            // Roll-forward makes indirect nodes itself, as the direct ones need them.
            if is_indirect_offset(block.footer.node_offset()) || page.removed.load(Ordering::Acquire) {
                continue;
            }
            if let Err(error) = NodeLogs(self.0).write(page, &mut block, version, 0, batch) {
                drop(block);
                self.0.written.add(Count::SyncedNodes, written);
                self.0.store.put_file(inode.ino, nodes[index..].to_vec());
                return Err(error);
            }
            written += 1;
        }
        self.0.written.add(Count::SyncedNodes, written);
        let mut block = inode.block.write();
        if let Some(reason) = self.must_checkpoint(inode, &block) {
            return Ok(Synced::Must(reason));
        }
        // With the pages that were read a panic may have been left half way. Without the mark roll-forward ignores
        // them.
        self.0.check_writable()?;
        if written != 0 || inode.is_unsynced() {
            let marks = protocol_value!("sync_mark", mark::FSYNC, 0) | if new { mark::DENTRY } else { 0 };
            protocol_never!("sync_inode_behind_flush", batch.write_out()?);
            let whole = leave_out(&mut block, self.0.features());
            NodeLogs(self.0).write(inode, &mut block, version, marks, batch)?;
            if let Some(whole) = whole {
                **block = whole;
            }
            self.0.written.add(Count::SyncedNodes, 1);
        }
        Ok(Synced::Logged)
    }
}

/// The change that a mutant keeps from the inode of a synced file: it goes to the log like the inode of a new file.
/// Gives the inode as it was.
#[inline]
fn leave_out(block: &mut NodeBlock, features: Features) -> Option<NodeBlock> {
    let mut whole = None;
    let mut spoil = |change: &dyn Fn(&mut Inode)| {
        whole.get_or_insert(*block);
        change(block.inode_mut());
    };
    protocol_never!("sync_mode_left_out", spoil(&|raw| raw.i_mode = (inode::mode::REGULAR | 0o644).into()));
    protocol_never!("sync_owner_left_out", spoil(&|raw| (raw.i_uid, raw.i_gid) = (0.into(), 0.into())));
    protocol_never!("sync_times_left_out", spoil(&|raw| (raw.i_atime, raw.i_mtime) = (raw.i_ctime, raw.i_ctime)));
    protocol_never!("sync_inline_xattrs_left_out", spoil(&|raw| raw.inline_xattr_mut(features).fill(0)));
    whole
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
