//! Writes the frozen state, so that all of it counts from the write of one block on.
//!
//! ```text
//!   nodes -> SIT, NAT, SSA, into the copies that no durable checkpoint names -> device flush
//!         -> pack without its last block -> device flush -> last block of the pack, durable: from here on the checkpoint counts
//! ```
//!
//! A crash before the last block leaves the previous checkpoint, whose pack, tables and blocks were not written over.
//! The first flush makes all that the pack speaks of durable before the pack can be valid; the second one the front of
//! the pack before its end.
//!
//! # Locking
//!
//! Operations run. Nothing here is locked but for a moment; the checkpoint's turn keeps others out, and syncs wait for
//! [`Writing`](crate::epoch::Writing).

use std::time::Duration;

use f2fs_device::AlignedBuf;
use f2fs_format::checkpoint::{Checkpoint, ComposedPack, LogPosition, NextPack, VersionBitmaps, flags};
use f2fs_format::summary::{Journal, NAT_JOURNAL_ENTRIES, SIT_JOURNAL_ENTRIES, SummaryBlock};
use f2fs_format::{Corruption, LogType, SegmentNo};
use f2fs_nat::NatFlush;
use f2fs_segment::SegmentFlush;
use f2fs_sync::{protocol_never, protocol_step, protocol_value};

use super::freeze::{Counts, Frozen, Tables};
use super::{CheckpointReport, Checkpoints, Reason};
use crate::VolumeError;
use crate::blocks::WriteBatch;
use crate::last_checkpoint::Durable;
use crate::op::Unwinding;

impl Checkpoints<'_> {
    /// Writes the frozen state, and makes it durable. Operations may run. An error stops the volume.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "checkpoint", skip_all, fields(reason = ?reason), ret, err))]
    pub(super) fn write_frozen(self, reason: Reason, frozen: Frozen<'_>) -> Result<CheckpointReport, VolumeError> {
        let Frozen { nodes, pages, ahead, tables, cleared, writing } = frozen;
        // Dropped behind all others: whoever waited finds the volume stopped if this fails or panics.
        let writing = writing;
        let _unwinding = Unwinding::new(self.0);
        let write = || -> Result<CheckpointReport, VolumeError> {
            let frozen_nodes = nodes.finish()?.1;
            let report = self.write_tables_and_pack(reason, frozen_nodes + ahead, tables, &cleared)?;
            self.0.store.settle(pages);
            Ok(CheckpointReport { frozen_nodes, ..report })
        };
        let report = write().inspect_err(|error| self.0.stop(error))?;
        drop(writing);
        self.0.store.take_out();
        Ok(report)
    }

    fn write_tables_and_pack(
        self,
        reason: Reason,
        nodes: u64,
        tables: Tables,
        cleared: &[SegmentNo],
    ) -> Result<CheckpointReport, VolumeError> {
        protocol_never!(
            "zones_reset_before_the_checkpoint",
            self.0.zoning.begin_anew(self.0.segments.manager()?, self.0.discards)
        );
        let nat = self.0.nat.flush(NAT_JOURNAL_ENTRIES)?;
        let table_blocks = self.write_tables(&tables.segments, &nat)?;
        // Data, nodes and tables are durable before a pack can speak of them.
        self.0.device.flush()?;
        let last = self.0.last_checkpoint.get();
        let index = 1 - last.pack;
        // Only counted, and a damaged count may be the largest there is.
        let kbytes_written = last.kbytes_written.saturating_add(4 * (tables.counts.written + nodes + table_blocks));
        let pack = self.compose_pack(reason, &last.checkpoint, tables, nat, kbytes_written)?;
        let mut report = CheckpointReport {
            version: pack.checkpoint.version,
            nodes,
            frozen_nodes: 0,
            table_blocks,
            pack_blocks: pack.front.len() as u64 + 1,
            freed_segments: 0,
            pause: Duration::ZERO,
        };
        self.0.attached_journal.announce(self.0.footer_version(), pack.block.footer_version(), self.0.epoch());
        self.write_pack(index, &pack)?;
        self.0.roll_forward.begin();
        let durable = Durable { checkpoint: pack.checkpoint, pack: index, kbytes_written };
        self.0.last_checkpoint.replace(durable, pack.block.footer_version());
        self.0.attached_journal.take_back(self.0.footer_version(), self.0.epoch());
        self.publish(&mut report, cleared)?;
        Ok(report)
    }

    /// Writes SIT and NAT blocks to their other copies, and the summaries of left segments. Returns blocks written.
    fn write_tables(self, segments: &SegmentFlush, nat: &NatFlush) -> Result<u64, VolumeError> {
        let mut batch = WriteBatch::new(&*self.0.device);
        for write in &segments.sit_blocks {
            batch.push(self.0.geometry.sit_block(write.index, write.second), write.block.as_block())?;
        }
        for write in &nat.blocks {
            batch.push(self.0.geometry.nat_block(write.index, write.second), write.block.as_block())?;
        }
        for (segment, summary) in &segments.summaries {
            batch.push(self.0.geometry.summary_block(*segment), summary.as_block())?;
        }
        Ok(batch.finish()?.1)
    }

    fn compose_pack(
        self,
        reason: Reason,
        old: &Checkpoint,
        tables: Tables,
        nat: NatFlush,
        kbytes_written: u64,
    ) -> Result<ComposedPack, VolumeError> {
        let Tables { segments, orphans, counts } = tables;
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
            geometry: &self.0.geometry,
            checkpoint: next_checkpoint(old, reason, &segments, &counts),
            bitmaps: VersionBitmaps { sit: segments.sit_bitmap, nat: nat.version_bitmap },
            orphans: &orphans,
            summaries: core::array::from_fn(|log| &*summaries[log]),
            node_summaries: reason == Reason::Unmount,
        };
        Ok(pack.compose()?)
    }

    /// Writes a pack, its last block when all others are durable. With that one the checkpoint counts.
    fn write_pack(self, index: u32, pack: &ComposedPack) -> Result<(), VolumeError> {
        let mut batch = self.0.batch();
        for (block, bytes) in pack.front.iter().enumerate() {
            batch.push(self.0.geometry.pack_block(index, block), bytes)?;
        }
        batch.finish()?;
        protocol_step!("checkpoint_flush", self.0.device.flush()?);
        let end = self.0.geometry.pack_block(index, pack.front.len());
        let last = AlignedBuf::from_bytes(pack.block.as_block());
        let end = u64::from(end.0);
        protocol_value!("checkpoint_fua_left_out", self.0.device.write_fua(end, last), self.0.device.write(end, last))?;
        Ok(())
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
