//! A sync that goes to the journal.

use f2fs_journal::Error;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, Mutex, protocol_never, protocol_value};

use super::Syncs;
use crate::blocks::WriteBatch;
use crate::flight::joined::Joined;
use crate::journal::bases::FileOrder;
use crate::journal::data::{Collected, KeptRun, MOST_BLOCKS};
use crate::journal::record::Writer;
use crate::journal::{Buffers, DENTRY, FSYNC, SyncJournal};
use crate::node_log::is_indirect_offset;
use crate::node_page::NodePage;
use crate::synced::{MustCheckpoint, Synced};
use crate::write_stat::Count;
use crate::{JournalMode, Op, VolumeError};

impl Syncs<'_> {
    /// Makes a file durable in the journal, with data that is on its way, if there is some. An error of the device
    /// stops the volume; one of the journal asks for a checkpoint.
    pub(crate) fn to_journal(
        self,
        op: &Op<'_>,
        journal: &SyncJournal,
        inode: &Arc<NodePage>,
        flight: Option<&Mutex<Joined>>,
    ) -> Result<Synced, VolumeError> {
        self.0.check_writable()?;
        let mut order = journal.files.stripe(&inode.ino).lock();
        if let Some(flight) = flight {
            self.send_for_journal(op, flight).inspect_err(|error| self.0.stop(error))?;
        }
        if let Some(reason) = self.must_checkpoint(inode, &inode.block.read()) {
            return Ok(Synced::Must(reason));
        }
        let nodes = self.0.store.take_file(inode.ino);
        let mut buffers = core::mem::take(&mut *journal.buffers.slot().lock());
        if let Some(data) = &journal.data {
            data.begin(inode.ino);
        }
        let synced = self.journal_nodes(journal, inode, &nodes, &mut buffers, &mut order);
        let is_synced = matches!(synced, Ok(Synced::Logged));
        if let Some(data) = &journal.data {
            data.end(inode.ino, &mut buffers.collected, is_synced);
        }
        if !is_synced {
            // They are still to be synced.
            nodes.iter().for_each(|page| self.0.store.set_dirty_again(page));
            self.0.store.put_file(inode.ino, nodes);
        }
        *journal.buffers.slot().lock() = buffers;
        synced
    }

    /// Sends data that waited for its sync, and names it.
    fn send_for_journal(self, op: &Op<'_>, flight: &Mutex<Joined>) -> Result<(), VolumeError> {
        let mut flight = flight.lock();
        if self.0.attached_journal.keeps_data() {
            // The data of the record is read back from the device.
            flight.land(&*self.0.device)?;
        }
        flight.name(op);
        let mut batch = WriteBatch::new(&*self.0.device);
        if let Some(request) = flight.take_deferred() {
            batch.push_request(request)?;
        }
        batch.finish()?;
        Ok(flight.land(&*self.0.device)?)
    }

    /// Writes the record of these nodes of a file and its inode. The file's stripe is locked.
    fn journal_nodes(
        self,
        journal: &SyncJournal,
        inode: &Arc<NodePage>,
        nodes: &[Arc<NodePage>],
        buffers: &mut Buffers,
        order: &mut FileOrder,
    ) -> Result<Synced, VolumeError> {
        let version = self.0.footer_version();
        let new = self.is_unnamed(inode);
        let first = |page: &NodePage| page.is_unsynced() && !page.is_journaled();
        let fresh = nodes.iter().filter(|page| first(page)).count() as u64;
        // The inode goes with them, also if it did not change.
        let fresh = fresh + u64::from(!inode.is_journaled() && (!nodes.is_empty() || inode.is_unsynced()));
        let any = !nodes.is_empty() || inode.is_unsynced();
        if any && !self.count_room(fresh, u64::from(new && !inode.is_journaled())) {
            return Ok(Synced::Must(MustCheckpoint::Room));
        }
        let Buffers { bytes, collected } = buffers;
        let collect = |collected: &mut Collected| {
            if let Some(data) = &journal.data {
                data.collect(inode.ino, collected);
            }
        };
        protocol_never!("journal_data_collected_early", collect(collected));
        order.bases.begin();
        let mut writer = Writer::new(bytes, version);
        let mut written = 0;
        for page in nodes {
            let block = page.block.write();
            // Roll-forward makes indirect nodes itself, as the direct ones need them.
            if is_indirect_offset(block.footer.node_offset()) || page.removed.load(Ordering::Acquire) {
                continue;
            }
            writer.node_upon(&block, 0, &mut order.bases);
            page.set_journaled();
            written += 1;
        }
        let block = inode.block.write();
        if let Some(reason) = self.must_checkpoint(inode, &block) {
            return Ok(Synced::Must(reason));
        }
        // With the pages that were read a panic may have been left half way.
        self.0.check_writable()?;
        let anything = written != 0 || inode.is_unsynced();
        if anything {
            writer.node_upon(&block, FSYNC | if new { DENTRY } else { 0 }, &mut order.bases);
            inode.set_journaled();
        }
        drop(block);
        if !anything && journal.data.is_some() {
            // The data that is kept for the file is not named yet.
            return Ok(Synced::Logged);
        }
        // All data that the nodes name was written before they were read.
        protocol_value!("journal_data_collected_early", collect(collected), ());
        let flushes = match journal.mode {
            JournalMode::Ordered => true,
            JournalMode::Writeback => false,
            JournalMode::Journal => protocol_value!("journal_large_data_unflushed", collected.is_partial, false),
        };
        if flushes {
            journal.flush(&*self.0.device).inspect_err(|error| self.0.stop(error))?;
        }
        let blocks = || collected.runs.iter().flat_map(KeptRun::blocks);
        blocks().for_each(|(addr, _)| writer.block(addr));
        // All in one piece, in the order of the addresses.
        let mut parts = [&[][..]; MOST_BLOCKS + 1];
        parts[0] = writer.finish();
        let mut used = 1;
        for (part, (_, block)) in parts[1..].iter_mut().zip(blocks()) {
            *part = block;
            used += 1;
        }
        let synced = if anything { self.append(journal, &parts[..used], &mut order.stamp) } else { Synced::Logged };
        if synced == Synced::Logged {
            order.bases.settle(order.stamp);
            self.0.written.add(Count::SyncedNodes, written + u64::from(anything));
        } else {
            self.0.store.set_dirty_again(inode);
        }
        Ok(synced)
    }

    pub(super) fn append(self, journal: &SyncJournal, parts: &[&[u8]], stamp: &mut u64) -> Synced {
        match journal.log.append(*stamp, parts) {
            Ok(appended) => {
                *stamp = appended.stamp;
                journal.filling.tell(appended.free, journal.log.lane_bytes());
                Synced::Logged
            }
            Err(Error::Full { .. } | Error::TooLarge { .. }) => Synced::Must(MustCheckpoint::Journal),
            Err(_) => {
                // Nobody knows whether the record is there. A checkpoint holds the same changes.
                journal.retire(self.0.epoch());
                Synced::Must(MustCheckpoint::Journal)
            }
        }
    }

    /// Counts nodes that are journaled for the first time since the checkpoint, and names: each may need blocks in
    /// roll-forward. False: there is no room. It is asked for nodes that are in the journal already, too: they may name
    /// more blocks by now.
    pub(super) fn count_room(self, fresh: u64, names: u64) -> bool {
        protocol_never!("journal_asks_for_room_once", {
            if fresh == 0 && names == 0 {
                return true;
            }
        });
        let most = self.0.pressure.dirty_limit();
        self.0.roll_forward.room.log(fresh, names, &self.0.space, &self.0.blocks_written, most)
    }
}
