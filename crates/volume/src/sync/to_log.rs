//! A group of syncs that goes to the log: all that wait, or one beside others. `sync.rs` has the rules of locking.

use f2fs_device::BlockDevice;
use f2fs_format::feature::Features;
use f2fs_format::inode::{self, Inode};
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET, mark};
use f2fs_format::{BLOCK_SIZE, BlockAddr};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, BrokenOff, protocol_never, protocol_step, protocol_value};

use super::Syncs;
use crate::blocks::WriteBatch;
use crate::node_log::{NodeLogs, is_indirect_offset};
use crate::node_page::NodePage;
use crate::op::Unwinding;
use crate::roll_forward::chain::{Chain, Links};
use crate::synced::{MustCheckpoint, SyncRequest, Synced};
use crate::write_stat::Count;
use crate::{FsyncMode, Op, StopCause, VolumeError};

impl Syncs<'_> {
    /// Writes the files of a group and flushes the device.
    pub(super) fn write_group(self, op: &Op<'_>, group: &[SyncRequest]) -> Vec<Result<Synced, VolumeError>> {
        let mut links = self.0.roll_forward.chain.as_ref().map(Chain::links);
        // The next group begins before the leader's operation ends: nodes that this one leaves out would be a gap in
        // its chain. The links are dropped later: who gets an error from a gap finds the volume stopped.
        let _unwinding = Unwinding::new(self.0);
        let mut batch = self.0.batch();
        self.try_group(op, group, &mut batch, links.as_mut()).unwrap_or_else(|error| {
            if links.as_ref().is_none_or(Links::may_be_cut) {
                self.cut_chain(batch.first());
            }
            self.0.stop(&error);
            let reason = StopCause::Error(error.to_string());
            let others = (1..group.len()).map(|_| Err(VolumeError::Stopped { reason: reason.clone() }));
            // The first request is the leader's own, or as good as it.
            others.chain([Err(error)]).rev().collect()
        })
    }

    /// The same, without what follows an error that concerns all of the group. `links`: of a sync that is written
    /// beside others.
    fn try_group(
        self,
        op: &Op<'_>,
        group: &[SyncRequest],
        batch: &mut WriteBatch<'_>,
        mut links: Option<&mut Links<'_>>,
    ) -> Result<Vec<Result<Synced, VolumeError>>, VolumeError> {
        self.0.check_writable()?;
        let _order = self.0.unflushed_moves.sync(&*self.0.device)?;
        let flights = || group.iter().filter_map(|request| request.flight.as_deref());
        let arrive = || flights().try_for_each(|flight| flight.lock().land(&*self.0.device));
        let land = || protocol_value!("sync_forgets_arrivals", arrive(), Ok(()));
        for flight in flights() {
            let mut flight = flight.lock();
            flight.name(op);
            if let Some(request) = flight.take_deferred() {
                batch.push_request(request)?;
            }
        }
        if self.0.roll_forward.mode == FsyncMode::Strict {
            // A node that is read now may name data that another thread wrote a moment ago: the flush comes behind that.
            let flush = || protocol_value!("strict_flush_before_nodes", Ok(()), self.0.device.flush());
            batch.write_out().and_then(|()| land()).and_then(|()| flush())?;
            protocol_step!("strict_flush_before_nodes", batch.follow_flushes());
        }
        let mut answers = Vec::with_capacity(group.len());
        for request in group {
            match self.log_file(&request.inode, batch, links.as_deref_mut()) {
                Err(error @ (VolumeError::Device(_) | VolumeError::Stopped { .. })) => return Err(error),
                answer => answers.push(answer),
            }
        }
        let flush = || protocol_value!("sync_flush", self.0.device.flush(), Ok(()));
        let written = |links: Option<&mut Links<'_>>| match links {
            Some(links) => links.written().map_err(|BrokenOff| self.gap()),
            None => Ok(()),
        };
        protocol_value!(
            "sync_inode_behind_flush",
            {
                batch.write_out().and_then(|()| land())?;
                written(links)?;
                flush()?;
            },
            {
                land().and_then(|()| flush()).and_then(|()| batch.write_out())?;
                written(links)?;
            }
        );
        Ok(answers)
    }

    /// The error of a sync behind one that failed.
    fn gap(self) -> VolumeError {
        self.0.check_writable().err().unwrap_or(VolumeError::Stopped { reason: StopCause::Panic })
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
    fn log_file(
        self,
        inode: &Arc<NodePage>,
        batch: &mut WriteBatch<'_>,
        mut links: Option<&mut Links<'_>>,
    ) -> Result<Synced, VolumeError> {
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
            if let Err(error) = NodeLogs(self.0).write(page, &mut block, version, 0, batch, links.as_deref_mut()) {
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
            NodeLogs(self.0).write(inode, &mut block, version, marks, batch, links)?;
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
