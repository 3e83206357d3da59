//! The checkpoint: how what is in memory becomes durable, all of it or nothing.
//!
//! ```text
//! gate closed -> above: directory blocks -> nodes (dnodes, then indirect) -> SIT, NAT, SSA -> device flush
//!   -> pack without its last block -> device flush -> last block of the pack, durable -> gate open
//! ```
//!
//! The first flush makes everything that the pack speaks of durable before the pack can become valid; the pack becomes valid
//! with its last block. Freed NIDs, prefree segments and overwritten table copies can be used after that, not before. The
//! packs alternate, so that the previous checkpoint stays whole until then.
//!
//! An error while directory blocks are written leaves everything as it was, and the checkpoint can be tried again. An error from the
//! first node on stops the volume: memory may be ahead of what the tables say, and only a new opening knows what is true.
//!
//! # Locking
//!
//! One checkpoint runs at a time: the gate has one closer. The state's mutex is held meanwhile; nothing else takes it.

use f2fs_device::{AlignedBuf, Request};
use f2fs_format::checkpoint::{Checkpoint, ComposedPack, LogPosition, NextPack, VersionBitmaps, flags};
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::path::NodeKind;
use f2fs_format::summary::{Journal, NAT_JOURNAL_ENTRIES, SIT_JOURNAL_ENTRIES, Summary, SummaryBlock};
use f2fs_format::{Corruption, LogType, inode};
use f2fs_nat::NatFlush;
use f2fs_segment::{NodeLog, Run, SegmentFlush};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{protocol_step, protocol_value};

use crate::blocks::WriteBatch;
use crate::node::NodePage;
use crate::pack::Pack;
use crate::write_stat::Count;
use crate::{Op, Volume, VolumeError};

/// Why a checkpoint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// On the way: the volume stays open.
    Sync,
    /// The volume is closed: the pack says so (`CP_UMOUNT_FLAG`), and carries the node summaries.
    Unmount,
}

/// The counts of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointReport {
    /// Its version.
    pub version: u64,
    /// Node blocks written.
    pub nodes: u64,
    /// Blocks of SIT, NAT and SSA written.
    pub table_blocks: u64,
    /// Blocks of the pack.
    pub pack_blocks: u64,
    /// Segments that became free.
    pub freed_segments: u64,
}

/// The state that the next checkpoint starts from.
#[derive(Debug)]
pub(crate) struct CheckpointState {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) pack: u32,
    pub(crate) kbytes_written: u64,
}

/// The tables of a checkpoint, as they were when its nodes were written.
struct Frozen {
    segments: SegmentFlush,
    nat: NatFlush,
}

impl CheckpointState {
    pub(crate) fn new(pack: &Pack) -> CheckpointState {
        CheckpointState {
            checkpoint: pack.checkpoint.clone(),
            pack: pack.index,
            kbytes_written: pack.node.as_ref().map_or(0, |node| node[0].journal.kbytes_written()),
        }
    }
}

impl Volume {
    /// Writes a checkpoint. `above` runs first, with the gate closed: what lies on top of the volume writes its own dirty
    /// blocks there (directories), through the [`Op`] that it gets.
    ///
    /// # Errors
    /// Those of `above`, and [`VolumeError::ReadOnly`], leave everything as it was. Every other error stops the volume.
    pub fn checkpoint_with<E: From<VolumeError>>(
        &self,
        reason: Reason,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<CheckpointReport, E> {
        self.with_gate_closed(above, |_, state| self.write_checkpoint(reason, state))
    }

    /// As [`checkpoint_with`](Self::checkpoint_with), unless another checkpoint has become durable since the footer version
    /// was `version` ([`footer_version`](Self::footer_version)): `None` then.
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint_past<E: From<VolumeError>>(
        &self,
        version: u64,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<Option<CheckpointReport>, E> {
        let passed = || self.footer_version() != version;
        self.with_gate_closed(
            |op| if passed() { Ok(()) } else { above(op) },
            |_, state| if passed() { Ok(None) } else { self.write_checkpoint(Reason::Sync, state).map(Some) },
        )
    }

    /// Runs `above` and then `work` with the gate closed.
    pub(crate) fn with_gate_closed<T, E: From<VolumeError>>(
        &self,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
        work: impl FnOnce(&Op<'_>, &mut CheckpointState) -> Result<T, VolumeError>,
    ) -> Result<T, E> {
        if self.is_recovering() {
            return Err(VolumeError::ReadOnly.into());
        }
        self.check_writable()?;
        let _closed = self.gate.close();
        self.check_writable()?;
        let mut state = self.state.lock();
        let op = Op::within_checkpoint(self);
        above(&op)?;
        Ok(work(&op, &mut state)?)
    }

    /// Writes a checkpoint of a volume that nothing lies on.
    ///
    /// # Errors
    /// As [`checkpoint_with`](Self::checkpoint_with).
    pub fn checkpoint(&self, reason: Reason) -> Result<CheckpointReport, VolumeError> {
        self.checkpoint_with(reason, |_| Ok(()))
    }

    /// Writes the checkpoint itself. An error stops the volume.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "checkpoint", skip_all, fields(reason = ?reason), ret, err))]
    pub(crate) fn write_checkpoint(
        &self,
        reason: Reason,
        state: &mut CheckpointState,
    ) -> Result<CheckpointReport, VolumeError> {
        self.try_write_checkpoint(reason, state).inspect_err(|error| self.stop(error))
    }

    fn try_write_checkpoint(
        &self,
        reason: Reason,
        state: &mut CheckpointState,
    ) -> Result<CheckpointReport, VolumeError> {
        let nodes = self.write_nodes()?;
        let frozen = self.freeze()?;
        let table_blocks = self.write_tables(&frozen)?;
        // Data, nodes and tables are durable before a pack can speak of them.
        self.device.flush()?;
        let kbytes_written = self.count_kbytes(state, nodes + table_blocks);
        let pack = self.compose_pack(reason, &state.checkpoint, frozen, kbytes_written)?;
        let mut report = CheckpointReport {
            version: pack.checkpoint.version,
            nodes,
            table_blocks,
            pack_blocks: pack.front.len() as u64 + 1,
            freed_segments: 0,
        };
        let index = 1 - state.pack;
        self.announce_to_journal(pack.block.footer_version());
        self.write_pack(index, &pack)?;
        self.roll_forward.begin(&pack.checkpoint);
        self.footer_version.store(pack.block.footer_version(), Ordering::Release);
        *state = CheckpointState { checkpoint: pack.checkpoint, pack: index, kbytes_written };
        self.take_back_journal();
        self.publish(&mut report)?;
        Ok(report)
    }

    /// Takes SIT and NAT as they are for the checkpoint; what changes from here on belongs to the next one.
    fn freeze(&self) -> Result<Frozen, VolumeError> {
        let segments = self.segments.manager()?.begin_checkpoint(SIT_JOURNAL_ENTRIES)?;
        let nat = self.nat.begin_checkpoint(NAT_JOURNAL_ENTRIES)?;
        Ok(Frozen { segments, nat })
    }

    /// The amount written to the volume in its life, in KiB, with the `meta` blocks of this checkpoint.
    fn count_kbytes(&self, state: &CheckpointState, meta: u64) -> u64 {
        // The gate is closed: nobody else writes. Only counted, and a damaged count may be the largest there is.
        state.kbytes_written.saturating_add(4 * (self.blocks_written.restart() + meta))
    }

    fn compose_pack(
        &self,
        reason: Reason,
        old: &Checkpoint,
        frozen: Frozen,
        kbytes_written: u64,
    ) -> Result<ComposedPack, VolumeError> {
        let Frozen { segments, nat } = frozen;
        let orphans = self.orphans.list();
        let mut summaries: Vec<Box<SummaryBlock>> = segments.logs.iter().map(|log| log.summary.clone()).collect();
        for summary in &mut summaries {
            summary.journal = Journal::ZERO;
        }
        summaries[LogType::HotData.index()].journal =
            Journal::from_nat(&nat.journal).ok_or_else(|| too_many(nat.journal.len(), NAT_JOURNAL_ENTRIES))?;
        summaries[LogType::ColdData.index()].journal = Journal::from_sit(&segments.sit_journal)
            .ok_or_else(|| too_many(segments.sit_journal.len(), SIT_JOURNAL_ENTRIES))?;
        summaries[LogType::HotNode.index()].journal = Journal::from_kbytes_written(kbytes_written);
        let pack = NextPack {
            geometry: &self.geometry,
            checkpoint: self.next_checkpoint(old, reason, &segments),
            bitmaps: VersionBitmaps { sit: segments.sit_bitmap, nat: nat.version_bitmap },
            orphans: &orphans,
            summaries: core::array::from_fn(|log| &*summaries[log]),
            node_summaries: reason == Reason::Unmount,
        };
        Ok(pack.compose()?)
    }

    /// Writes a pack, its last block when all others are durable. With that one the checkpoint counts.
    fn write_pack(&self, index: u32, pack: &ComposedPack) -> Result<(), VolumeError> {
        let mut batch = WriteBatch::new(&*self.device);
        for (block, bytes) in pack.front.iter().enumerate() {
            batch.push(self.geometry.pack_block(index, block), bytes)?;
        }
        batch.finish()?;
        protocol_step!("checkpoint_flush", self.device.flush()?);
        let end = self.geometry.pack_block(index, pack.front.len());
        let last = AlignedBuf::from_bytes(pack.block.as_block());
        let end = u64::from(end.0);
        protocol_value!("checkpoint_fua_left_out", self.device.write_fua(end, last), self.device.write(end, last))?;
        Ok(())
    }

    /// The checkpoint is durable: what it frees can be used.
    fn publish(&self, report: &mut CheckpointReport) -> Result<(), VolumeError> {
        let segments = self.segments.manager()?;
        self.nat.end_checkpoint();
        let freed = segments.end_checkpoint();
        report.freed_segments = freed.iter().map(|run| u64::from(run.len)).sum::<u64>() / 512;
        self.precleaner.release(segments);
        self.store.shrink();
        self.pressure.tell(&self.store, &self.segments);
        self.written.add(Count::Checkpoints, 1);
        self.written.add(Count::Nodes, report.nodes);
        self.written.add(Count::Tables, report.table_blocks);
        self.written.add(Count::Pack, report.pack_blocks);
        if self.discards {
            // With the gate closed: nobody may write there before the discard is through. It is a favour to the device; that
            // it fails loses nothing.
            let discard = |run: &Run| Request::discard(u64::from(run.addr.0), run.len.into());
            let discards = self.device.submit(freed.iter().map(discard).collect());
            protocol_step!("checkpoint_waits_for_discards", drop(discards.wait()));
        }
        Ok(())
    }

    /// Writes all dirty nodes to their logs: direct nodes first, as roll-forward expects them, then indirect ones.
    fn write_nodes(&self) -> Result<u64, VolumeError> {
        let mut pages = self.store.take_dirty();
        // In order of inode and offset, so that a file's nodes lie together.
        pages.sort_unstable_by_key(|page| (page.ino, page.nid));
        let mut batch = WriteBatch::new(&*self.device);
        // A version that is past: they end the chain of synced nodes, so that a crash before the pack is durable leaves no way
        // over them to nodes that an earlier crash left further on.
        let version = self.footer_version.load(Ordering::Acquire).wrapping_sub(1);
        let mut count = 0;
        for indirect in [false, true] {
            for page in pages.iter().filter(|page| is_indirect(page) == indirect) {
                let mut block = page.block.write();
                self.write_node(page, &mut block, version, 0, &mut batch)?;
                count += 1;
            }
        }
        batch.finish()?;
        Ok(count)
    }

    /// Gives a node a block of its log, with these marks, and hands it to the batch. `block` is that of `page`, locked.
    pub(crate) fn write_node(
        &self,
        page: &NodePage,
        block: &mut NodeBlock,
        version: u64,
        marks: u32,
        batch: &mut WriteBatch<'_>,
    ) -> Result<(), VolumeError> {
        let now = self.clock.now();
        let log = node_log(block);
        let entry = self.nat.get(page.nid)?;
        let (addr, next) =
            self.segments.manager()?.allocate_node(log, Summary::new(page.nid, entry.version, 0), now)?;
        block.footer.cp_ver = version.into();
        block.footer.next_blkaddr = next.into();
        block.footer.set_mark(mark::FSYNC, marks & mark::FSYNC != 0);
        block.footer.set_mark(mark::DENTRY, marks & mark::DENTRY != 0);
        if block.is_inode() && inode::has_checksum(block.inode(), self.features()) {
            let sum = inode::checksum(block, self.checksum_seed);
            block.inode_mut().extra_mut().i_inode_checksum = sum.into();
        }
        batch.push(addr, block.as_block())?;
        self.nat.bind(page.nid, page.ino, addr)?;
        if entry.addr.is_real() {
            self.segments.invalidate_run(Run { addr: entry.addr, len: 1 }, now)?;
        }
        page.dirty.store(false, Ordering::Release);
        Ok(())
    }

    /// Writes SIT and NAT blocks to their other copies, and the summaries of left segments. Returns blocks written.
    fn write_tables(&self, frozen: &Frozen) -> Result<u64, VolumeError> {
        let Frozen { segments, nat } = frozen;
        let mut batch = WriteBatch::new(&*self.device);
        for write in &segments.sit_blocks {
            batch.push(self.geometry.sit_block(write.index, write.second), write.block.as_block())?;
        }
        for write in &nat.blocks {
            batch.push(self.geometry.nat_block(write.index, write.second), write.block.as_block())?;
        }
        for (segment, summary) in &segments.summaries {
            batch.push(self.geometry.summary_block(*segment), summary.as_block())?;
        }
        Ok(batch.finish()?.1)
    }

    fn next_checkpoint(&self, old: &Checkpoint, reason: Reason, segments: &SegmentFlush) -> Checkpoint {
        // Flags of an earlier checkpoint on NAT bits, trimming or fast boot no longer hold.
        let keep = flags::LARGE_NAT_BITMAP | flags::FSCK | flags::ERROR | flags::QUOTA_NEED_FSCK;
        let unmount = if reason == Reason::Unmount { flags::UMOUNT } else { 0 };
        Checkpoint {
            version: old.version.wrapping_add(1),
            flags: old.flags & keep | flags::CRC_RECOVERY | unmount,
            valid_blocks: self.space.blocks(),
            free_segments: segments.free_segments,
            logs: core::array::from_fn(|log| {
                let state = &segments.logs[log];
                LogPosition { segment: state.segment, next_offset: state.next_offset, alloc_type: state.alloc_type }
            }),
            valid_nodes: self.space.nodes() as u32,
            valid_inodes: self.space.inodes() as u32,
            next_free_nid: self.nat.next_free_nid(),
            elapsed_time: self.clock.now(),
            ..old.clone()
        }
    }
}

fn too_many(found: usize, max: usize) -> Corruption {
    Corruption::Range { what: "journal entries", found: found as u64, min: 0, max: max as u64 }
}

fn is_indirect(page: &NodePage) -> bool {
    is_indirect_offset(page.block.read().footer.node_offset())
}

pub(crate) fn is_indirect_offset(offset: u32) -> bool {
    matches!(NodeKind::of(offset), Some(NodeKind::Indirect | NodeKind::DoubleIndirect))
}

/// The log that a node belongs to (`__get_segment_type_6` in `fs/f2fs/segment.c`).
pub(crate) fn node_log(block: &NodeBlock) -> NodeLog {
    if is_indirect_offset(block.footer.node_offset()) {
        NodeLog::Cold
    } else if block.footer.has_mark(mark::COLD) {
        NodeLog::Warm
    } else {
        NodeLog::Hot
    }
}
