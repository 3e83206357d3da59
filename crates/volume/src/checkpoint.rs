//! The checkpoint: how what is in memory becomes durable, all of it or nothing.
//!
//! ```text
//! gate open:     dirty nodes are written ahead, until few are left (`write_ahead.rs`)
//! gate closed:   above: directory blocks -> nodes (dnodes, then indirect) get their places -> SIT, NAT, SSA and counts are frozen
//! gate open:     nodes, SIT, NAT, SSA -> device flush -> pack without its last block -> device flush -> last block of the pack, durable
//!                -> discards -> what was freed before the freeze can be used
//! ```
//!
//! The first flush makes everything that the pack speaks of durable before the pack can become valid; the pack becomes valid
//! with its last block. Freed NIDs, prefree segments and overwritten table copies can be used after that, not before. The
//! packs alternate, so that the previous checkpoint stays whole until then.
//!
//! From the freeze on operations run again. What they change belongs to the next checkpoint ([`Epochs`](crate::epoch::Epochs)): the frozen nodes
//! and tables are copies, and NIDs and blocks that are freed meanwhile stay apart from those that this checkpoint frees. Syncs wait.
//!
//! An error while directory blocks are written leaves everything as it was, and the checkpoint can be tried again. An error from the
//! first node on stops the volume: memory may be ahead of what the tables say, and only a new opening knows what is true.
//!
//! # Locking
//!
//! One checkpoint runs at a time: it has the turn ([`Epochs::turn`](crate::epoch::Epochs::turn)), which it takes before it closes the gate. The
//! state's mutex is held to read or replace it; no other lock is taken under it.

use std::time::{Duration, Instant};

use f2fs_device::{AlignedBuf, Request};
use f2fs_format::checkpoint::{Checkpoint, ComposedPack, LogPosition, NextPack, VersionBitmaps, flags};
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::path::NodeKind;
use f2fs_format::summary::{Journal, NAT_JOURNAL_ENTRIES, SIT_JOURNAL_ENTRIES, Summary, SummaryBlock};
use f2fs_format::{BlockAddr, Corruption, LogType, Nid, SegmentNo, inode};
use f2fs_nat::NatFlush;
use f2fs_segment::{NodeLog, Run, SegmentFlush};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{protocol_never, protocol_step, protocol_value};

use crate::blocks::WriteBatch;
use crate::epoch::{Turn, Writing};
use crate::node::NodePage;
use crate::node_store::TakenNodes;
use crate::pack::Pack;
use crate::stop::Unwinding;
use crate::write_stat::Count;
use crate::{Need, Op, Volume, VolumeError};

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
    /// How long operations were kept out: from when the gate began to close until it was open again. Zero if all of the checkpoint was written
    /// with the gate closed, as when the volume is closed or cleaned in its last reserve.
    pub pause: Duration,
}

/// The state that the next checkpoint starts from.
#[derive(Debug)]
pub(crate) struct CheckpointState {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) pack: u32,
    pub(crate) kbytes_written: u64,
}

/// What a checkpoint holds, as it was when the gate was closed.
struct Frozen<'a> {
    /// Nodes on their way, copied.
    nodes: WriteBatch<'a>,
    /// The pages of `nodes`, which stay in memory until the device has them, and the pages that were written ahead.
    pages: TakenNodes,
    /// Nodes that were written ahead, in blocks.
    ahead: u64,
    tables: Tables,
    /// Segments that the precleaner had cleared.
    cleared: Vec<SegmentNo>,
    /// Syncs wait until this is dropped.
    writing: Writing<'a>,
}

/// The part of it that tables and pack are made of.
struct Tables {
    segments: SegmentFlush,
    nat: NatFlush,
    orphans: Vec<Nid>,
    counts: Counts,
}

/// The totals that a pack records.
struct Counts {
    valid_blocks: u64,
    valid_nodes: u64,
    valid_inodes: u64,
    next_free_nid: Nid,
    elapsed_time: u64,
    /// Data blocks written since the last checkpoint.
    written: u64,
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
        self.checkpoint_beside(reason, || Ok(()), above)
    }

    /// As [`checkpoint_with`](Self::checkpoint_with), for who has blocks that can be written while operations run: `ahead` writes what is dirty
    /// of them, before `above` and perhaps several times.
    ///
    /// # Errors
    /// As there. Those of `ahead` leave everything as it was.
    pub fn checkpoint_beside<E: From<VolumeError>>(
        &self,
        reason: Reason,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<CheckpointReport, E> {
        self.check_checkpoint()?;
        let turn = self.epochs.turn();
        self.checkpoint_in_turn(&turn, reason, ahead, above)
    }

    /// As [`checkpoint_beside`](Self::checkpoint_beside), unless what was changed in this epoch ([`epoch`](Self::epoch)) is durable by then:
    /// `None` then.
    ///
    /// # Errors
    /// As there.
    pub fn checkpoint_past<E: From<VolumeError>>(
        &self,
        epoch: u64,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<Option<CheckpointReport>, E> {
        self.checkpoint_unless(|| self.epoch() != epoch, ahead, above)
    }

    /// As [`checkpoint_beside`](Self::checkpoint_beside), unless none is [needed](Self::need) any more when it is this thread's turn: `None`
    /// then. `hint`: as there.
    ///
    /// # Errors
    /// As [`checkpoint_with`](Self::checkpoint_with).
    pub fn checkpoint_if_needed<E: From<VolumeError>>(
        &self,
        hint: Nid,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<Option<CheckpointReport>, E> {
        self.checkpoint_unless(|| self.needs_in_turn(hint) != Need::Checkpoint, ahead, above)
    }

    fn checkpoint_unless<E: From<VolumeError>>(
        &self,
        done: impl FnOnce() -> bool,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<Option<CheckpointReport>, E> {
        self.check_checkpoint()?;
        let turn = self.epochs.turn();
        // The one that was waited for may have failed.
        self.check_writable()?;
        if done() {
            return Ok(None);
        }
        self.checkpoint_in_turn(&turn, Reason::Sync, ahead, above).map(Some)
    }

    fn check_checkpoint(&self) -> Result<(), VolumeError> {
        if self.is_recovering() { Err(VolumeError::ReadOnly) } else { self.check_writable() }
    }

    fn checkpoint_in_turn<E: From<VolumeError>>(
        &self,
        turn: &Turn<'_>,
        reason: Reason,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<CheckpointReport, E> {
        let ahead = self.write_ahead(ahead)?;
        let begun = Instant::now();
        let mut closed = Some(self.gate.close());
        self.check_writable()?;
        let op = Op::within_checkpoint(self);
        above(&op)?;
        protocol_never!("checkpoint_freezes_behind_the_gate", closed = None);
        let mut frozen = self.freeze(turn).inspect_err(|error| self.stop(error))?;
        frozen.ahead = ahead;
        drop(op);
        drop(closed.take());
        let pause = begun.elapsed();
        Ok(CheckpointReport { pause, ..self.write_frozen(reason, frozen)? })
    }

    /// Runs `above` and then `work` with the gate closed.
    pub(crate) fn with_gate_closed<T, E: From<VolumeError>>(
        &self,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
        work: impl FnOnce(&Op<'_>, &Turn<'_>) -> Result<T, VolumeError>,
    ) -> Result<T, E> {
        self.check_checkpoint()?;
        let turn = self.epochs.turn();
        let _closed = self.gate.close();
        self.check_writable()?;
        let op = Op::within_checkpoint(self);
        above(&op)?;
        Ok(work(&op, &turn)?)
    }

    /// Writes a checkpoint of a volume that nothing lies on.
    ///
    /// # Errors
    /// As [`checkpoint_with`](Self::checkpoint_with).
    pub fn checkpoint(&self, reason: Reason) -> Result<CheckpointReport, VolumeError> {
        self.checkpoint_with(reason, |_| Ok(()))
    }

    /// Writes the checkpoint itself, all of it with the gate closed. An error stops the volume.
    pub(crate) fn write_checkpoint(&self, reason: Reason, turn: &Turn<'_>) -> Result<CheckpointReport, VolumeError> {
        let frozen = self.freeze(turn).inspect_err(|error| self.stop(error))?;
        self.write_frozen(reason, frozen)
    }

    /// Gives all dirty nodes their places, and takes SIT, NAT and counts as they are for the checkpoint. Called with the gate closed; what
    /// changes from here on belongs to the next one.
    fn freeze<'a>(&'a self, turn: &'a Turn<'_>) -> Result<Frozen<'a>, VolumeError> {
        let (nodes, pages) = self.place_nodes()?;
        let segments = self.segments.manager()?.begin_checkpoint(SIT_JOURNAL_ENTRIES)?;
        let nat = self.nat.begin_checkpoint(NAT_JOURNAL_ENTRIES)?;
        self.note_left_zones();
        // Nobody else counts: all of these are exact.
        let counts = Counts {
            valid_blocks: self.space.blocks(),
            valid_nodes: self.space.nodes(),
            valid_inodes: self.space.inodes(),
            next_free_nid: self.nat.next_free_nid(),
            elapsed_time: self.clock.now(),
            written: self.blocks_written.restart(),
        };
        self.roll_forward.freeze(counts.valid_blocks, counts.valid_nodes);
        self.freeze_journal();
        let (orphans, cleared) = (self.orphans.list(), self.precleaner.take_cleared());
        let tables = Tables { segments, nat, orphans, counts };
        Ok(Frozen { nodes, pages, ahead: 0, tables, cleared, writing: turn.freeze() })
    }

    /// Writes what was frozen, and makes it durable. Operations may run. An error stops the volume.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "checkpoint", skip_all, fields(reason = ?reason), ret, err))]
    fn write_frozen(&self, reason: Reason, frozen: Frozen<'_>) -> Result<CheckpointReport, VolumeError> {
        let Frozen { nodes, pages, ahead, tables, cleared, writing } = frozen;
        // Dropped behind all others: whoever waited finds the volume stopped if this fails or panics.
        let _writing = writing;
        let _unwinding = Unwinding::new(self);
        let write = || {
            let nodes = nodes.finish()?.1 + ahead;
            let report = self.write_tables_and_pack(reason, nodes, tables, &cleared)?;
            self.store.settle(pages);
            self.store.shrink();
            Ok(report)
        };
        write().inspect_err(|error| self.stop(error))
    }

    fn write_tables_and_pack(
        &self,
        reason: Reason,
        nodes: u64,
        tables: Tables,
        cleared: &[SegmentNo],
    ) -> Result<CheckpointReport, VolumeError> {
        protocol_never!("zones_reset_before_the_checkpoint", self.begin_zones_anew(self.segments.manager()?));
        let table_blocks = self.write_tables(&tables)?;
        // Data, nodes and tables are durable before a pack can speak of them.
        self.device.flush()?;
        let (old, index, kbytes) = {
            let state = self.state.lock();
            (state.checkpoint.clone(), 1 - state.pack, state.kbytes_written)
        };
        // Only counted, and a damaged count may be the largest there is.
        let kbytes_written = kbytes.saturating_add(4 * (tables.counts.written + nodes + table_blocks));
        let pack = self.compose_pack(reason, &old, tables, kbytes_written)?;
        let mut report = CheckpointReport {
            version: pack.checkpoint.version,
            nodes,
            table_blocks,
            pack_blocks: pack.front.len() as u64 + 1,
            freed_segments: 0,
            pause: Duration::ZERO,
        };
        self.announce_to_journal(pack.block.footer_version());
        self.write_pack(index, &pack)?;
        self.roll_forward.begin();
        self.footer_version.store(pack.block.footer_version(), Ordering::Release);
        *self.state.lock() = CheckpointState { checkpoint: pack.checkpoint, pack: index, kbytes_written };
        self.take_back_journal();
        self.publish(&mut report, cleared)?;
        Ok(report)
    }

    fn compose_pack(
        &self,
        reason: Reason,
        old: &Checkpoint,
        tables: Tables,
        kbytes_written: u64,
    ) -> Result<ComposedPack, VolumeError> {
        let Tables { segments, nat, orphans, counts } = tables;
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
            checkpoint: next_checkpoint(old, reason, &segments, &counts),
            bitmaps: VersionBitmaps { sit: segments.sit_bitmap, nat: nat.version_bitmap },
            orphans: &orphans,
            summaries: core::array::from_fn(|log| &*summaries[log]),
            node_summaries: reason == Reason::Unmount,
        };
        Ok(pack.compose()?)
    }

    /// Writes a pack, its last block when all others are durable. With that one the checkpoint counts.
    fn write_pack(&self, index: u32, pack: &ComposedPack) -> Result<(), VolumeError> {
        let mut batch = self.batch();
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

    /// The checkpoint is durable: the blocks, segments and NIDs that it frees can be used. `cleared`: segments that the precleaner had cleared when it was frozen.
    fn publish(&self, report: &mut CheckpointReport, cleared: &[SegmentNo]) -> Result<(), VolumeError> {
        let segments = self.segments.manager()?;
        let discarded = self.begin_zones_anew(segments);
        if self.discards {
            // Before anybody may write there. It is a favour to the device; that it fails loses nothing.
            let discard = |run: &Run| Request::discard(u64::from(run.addr.0), run.len.into());
            let discards = self.device.submit(discarded.iter().map(discard).collect());
            protocol_step!("checkpoint_waits_for_discards", drop(discards.wait()));
        }
        self.nat.end_checkpoint();
        let freed = segments.end_checkpoint();
        report.freed_segments = freed.iter().map(|run| u64::from(run.len)).sum::<u64>() / 512;
        for segment in cleared {
            // Its number came from the manager itself.
            let _ = segments.release_segment(*segment);
        }
        self.pressure.tell(&self.store, &self.segments);
        self.written.add(Count::Checkpoints, 1);
        self.written.add(Count::Nodes, report.nodes);
        self.written.add(Count::Tables, report.table_blocks);
        self.written.add(Count::Pack, report.pack_blocks);
        Ok(())
    }

    /// Gives all dirty nodes blocks of their logs: direct nodes first, as roll-forward expects them, then indirect ones. They are copied; most
    /// of them are on their way when the batch is finished, and their pages have to stay in memory until then.
    fn place_nodes(&self) -> Result<(WriteBatch<'_>, TakenNodes), VolumeError> {
        let mut taken = self.store.take_dirty();
        let pages = &mut taken.dirty;
        // In order of inode and offset, so that a file's nodes lie together.
        pages.sort_unstable_by_key(|page| (page.ino, page.nid));
        let mut batch = self.batch();
        // A version that is past: they end the chain of synced nodes, so that a crash before the pack is durable leaves no way
        // over them to nodes that an earlier crash left further on.
        let version = self.footer_version.load(Ordering::Acquire).wrapping_sub(1);
        for indirect in [false, true] {
            for page in pages.iter().filter(|page| is_indirect(page) == indirect) {
                let mut block = page.block.write();
                self.write_node(page, &mut block, version, 0, &mut batch)?;
            }
        }
        Ok((batch, taken))
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
        let version_of_nid = self.nat.get(page.nid)?.version;
        let summary = Summary::new(page.nid, version_of_nid, 0);
        let (addr, next) = self.segments.manager()?.allocate_node(log, summary, now)?;
        self.seal(block, version, next, marks);
        batch.push(addr, block.as_block())?;
        let old = self.nat.bind(page.nid, page.ino, addr)?;
        if old.addr.is_real() {
            self.segments.invalidate_run(Run { addr: old.addr, len: 1 }, now)?;
        }
        page.set_clean();
        Ok(())
    }

    /// Gives a node the footer, and the checksum, with which it is written.
    pub(crate) fn seal(&self, block: &mut NodeBlock, version: u64, next: BlockAddr, marks: u32) {
        block.footer.cp_ver = version.into();
        block.footer.next_blkaddr = next.into();
        block.footer.set_mark(mark::FSYNC, marks & mark::FSYNC != 0);
        block.footer.set_mark(mark::DENTRY, marks & mark::DENTRY != 0);
        if block.is_inode() && inode::has_checksum(block.inode(), self.features()) {
            let sum = inode::checksum(block, self.checksum_seed);
            block.inode_mut().extra_mut().i_inode_checksum = sum.into();
        }
    }

    /// Writes SIT and NAT blocks to their other copies, and the summaries of left segments. Returns blocks written.
    fn write_tables(&self, tables: &Tables) -> Result<u64, VolumeError> {
        let Tables { segments, nat, .. } = tables;
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
}

fn next_checkpoint(old: &Checkpoint, reason: Reason, segments: &SegmentFlush, counts: &Counts) -> Checkpoint {
    // Flags of an earlier checkpoint on NAT bits, trimming or fast boot no longer hold.
    let keep = flags::LARGE_NAT_BITMAP | flags::FSCK | flags::ERROR | flags::QUOTA_NEED_FSCK;
    let unmount = if reason == Reason::Unmount { flags::UMOUNT } else { 0 };
    Checkpoint {
        version: old.version.wrapping_add(1),
        flags: old.flags & keep | flags::CRC_RECOVERY | unmount,
        valid_blocks: counts.valid_blocks,
        free_segments: segments.free_segments,
        logs: core::array::from_fn(|log| {
            let state = &segments.logs[log];
            LogPosition { segment: state.segment, next_offset: state.next_offset, alloc_type: state.alloc_type }
        }),
        valid_nodes: counts.valid_nodes as u32,
        valid_inodes: counts.valid_inodes as u32,
        next_free_nid: counts.next_free_nid,
        elapsed_time: counts.elapsed_time,
        ..old.clone()
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
