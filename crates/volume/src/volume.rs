//! An open volume: its parts, and what each of its operations asks of all of them.
//!
//! What the volume does stands above this: opening, the checkpoint, syncs, cleaning, roll-forward each in a file of
//! theirs, as a view of the volume (`views.rs` hands them out). The parts stand below, and do not know the volume, but
//! for the chain of synced nodes: a sync that waits there may bring a write along, and that ends in an operation.
//!
//! An operation that changes the volume holds an [`Op`] (`op.rs`) from [`Volume::begin`] to its end.

use core::error::Error;
use core::fmt;

use f2fs_device::{AlreadyOpen, BlockDevice, Claim, Recycler, WriteBehind};
use f2fs_format::feature::Features;
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{Geometry, Nid, SegmentNo};
use f2fs_nat::Nat;
use f2fs_segment::SegmentManager;
use f2fs_sync::{Gate, Mutex, OnceLock, PerCore, PlainArc};

use crate::attendance::Attendance;
use crate::batched_count::BatchedCount;
use crate::blocks::WriteBatch;
use crate::brake::Brake;
use crate::clock::Clock;
use crate::damage::Damage;
use crate::epoch::Epochs;
use crate::journal::AttachedJournal;
use crate::last_checkpoint::LastCheckpoint;
use crate::moves::Moves;
use crate::name_versions::NameVersions;
use crate::node_store::NodeStore;
use crate::op::Op;
use crate::orphans::{OrphanRoom, Orphans};
use crate::precleaner::Precleaner;
use crate::pressure::Pressure;
use crate::recent_nodes::RecentNodes;
use crate::roll_forward::RollForward;
use crate::segments::Segments;
use crate::space::Space;
use crate::steps::Steps;
use crate::stop_cause::StopCause;
use crate::unflushed_moves::UnflushedMoves;
use crate::victims::Victims;
use crate::write_stat::WriteCounters;
use crate::zoning::Zoning;
use crate::{VolumeError, VolumeStat, stop};

/// An open F2FS volume: nodes, blocks, checkpoints. Share it between threads in an `Arc`.
///
/// The crate documentation has the locking model.
pub struct Volume {
    pub(crate) device: PlainArc<dyn BlockDevice>,
    /// The same, if writes may wait in front of it.
    pub(crate) behind: Option<PlainArc<WriteBehind>>,
    pub(crate) superblock: SuperBlock,
    pub(crate) geometry: Geometry,
    pub(crate) read_only: bool,
    pub(crate) gate: Gate,
    pub(crate) nat: Nat,
    pub(crate) segments: Segments,
    pub(crate) store: NodeStore,
    pub(crate) recent_nodes: RecentNodes,
    /// The zones that the volume lies on, if there are some and it is open for writing.
    pub(crate) zoning: Zoning,
    pub(crate) space: Space,
    /// Blocks that the checkpoint counted and no segment had, when the volume was opened for writing.
    pub(crate) unplaced_blocks: u64,
    pub(crate) orphans: Orphans,
    pub(crate) moves: Moves,
    pub(crate) unflushed_moves: UnflushedMoves,
    /// The checkpoint that will hold the changes made now, and the thread that writes it.
    pub(crate) epochs: Epochs,
    /// Which changes of names are durable.
    pub(crate) names: NameVersions,
    /// The last durable checkpoint.
    pub(crate) last_checkpoint: LastCheckpoint,
    /// The blocks of the warm-node log since then, and the threads that wait for them.
    pub(crate) roll_forward: RollForward,
    /// The journal that syncs go to instead of that log, if one was attached.
    pub(crate) attached_journal: AttachedJournal,
    pub(crate) stopped: OnceLock<StopCause>,
    pub(crate) checksum_seed: u32,
    pub(crate) clock: Clock,
    /// Whether freed segments are discarded.
    pub(crate) discards: bool,
    /// Since the last checkpoint.
    pub(crate) blocks_written: BatchedCount,
    /// The blocks that the next checkpoint has to write, and whether it is due.
    pub(crate) pressure: Pressure,
    /// Sections that are being emptied beside operations.
    pub(crate) steps: Steps,
    /// Sections that stay marked while nobody empties them.
    pub(crate) victims: Victims,
    /// Slows operations down when a checkpoint cannot follow them.
    pub(crate) brake: Brake,
    pub(crate) attendance: Attendance,
    /// Moves blocks out of the way of writes into holes, and plans these.
    pub(crate) precleaner: Precleaner,
    pub(crate) damage: Damage,
    pub(crate) recycler: Recycler,
    /// Maps this thread's processor to a lane: the one of each data log that its data goes to.
    pub(crate) lanes: PerCore<()>,
    pub(crate) written: WriteCounters,
    /// Threads that work when nobody else does.
    pub(crate) threads: usize,
    /// Keeps others from opening the device; `None` once the volume was closed.
    pub(crate) claim: Mutex<Option<Claim>>,
}

/// Claims a device for a volume.
pub(crate) fn claim(device: &dyn BlockDevice, read_only: bool) -> Result<Claim, AlreadyOpen> {
    if read_only { device.claims().shared("a volume") } else { device.claims().exclusive("a volume") }
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume")
            .field("device", &self.device)
            .field("geometry", &self.geometry)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

impl Volume {
    /// The device under the volume.
    #[must_use]
    pub fn device(&self) -> &PlainArc<dyn BlockDevice> {
        &self.device
    }

    /// The areas of the volume.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The features of the volume.
    #[must_use]
    pub fn features(&self) -> Features {
        self.geometry.features
    }

    /// The superblock as it was read.
    #[must_use]
    pub fn superblock(&self) -> &SuperBlock {
        &self.superblock
    }

    /// Whether the volume was opened for reading.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The contents of the last durable checkpoint.
    #[must_use]
    pub fn last_checkpoint(&self) -> f2fs_format::checkpoint::Checkpoint {
        self.last_checkpoint.get().checkpoint
    }

    /// The version that node blocks carry now: that of the last durable checkpoint, with its checksum above.
    #[must_use]
    pub fn footer_version(&self) -> u64 {
        self.last_checkpoint.footer_version()
    }

    /// The epoch of changes that an operation makes now: all of one epoch becomes durable with one checkpoint
    /// ([`write_past`](crate::Checkpoints::write_past)). It stays the same as long as the caller holds an [`Op`].
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epochs.current()
    }

    /// Memory for long transfers of data.
    #[must_use]
    pub fn recycler(&self) -> &Recycler {
        &self.recycler
    }

    /// Damage that was found at opening, in copies that were not needed.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Blocks on their way to the device, in requests that do not leave their zone.
    pub(crate) fn batch(&self) -> WriteBatch<'_> {
        let batch = WriteBatch::new(&*self.device);
        if self.zoning.is_zoned() { batch.within_segments(self.geometry.main_blkaddr) } else { batch }
    }

    pub(crate) fn check_writable(&self) -> Result<(), VolumeError> {
        if self.read_only && !self.roll_forward.is_recovering() {
            return Err(VolumeError::ReadOnly);
        }
        match self.stopped.get() {
            None => Ok(()),
            Some(reason) => Err(VolumeError::Stopped { reason: reason.clone() }),
        }
    }

    /// The reason why the volume refuses changes, if it does.
    #[must_use]
    pub fn stopped(&self) -> Option<&StopCause> {
        self.stopped.get()
    }

    /// Refuses all further changes for this cause, unless there is one already: whether it was the first.
    pub(crate) fn stop_for(&self, cause: StopCause) -> bool {
        let first = self.stopped.set(cause).is_ok();
        if first {
            self.zoning.give_up();
        }
        first
    }

    /// Refuses all further changes, because the state in memory can no longer be trusted to become a checkpoint: an
    /// error left a change half done. The last checkpoint is safe. The reason is recorded in the superblock if the
    /// device still takes it.
    pub fn stop(&self, error: &(dyn Error + 'static)) {
        if self.stop_for(StopCause::Error(error.to_string())) && !self.read_only {
            let (in_use, error) = (self.damage.superblock_copy, error.downcast_ref());
            // That the record fails changes nothing: the volume has stopped anyway.
            let _ = stop::record(&*self.device, self.superblock, in_use, error);
        }
    }

    /// Refuses all further changes, because an operation panicked. The volume notices by itself a panic that unwinds an
    /// operation; this is for a caller that catches one in a destructor while the thread unwinds already.
    pub fn stop_after_panic(&self) {
        self.stop_for(StopCause::Panic);
    }

    /// Counts how often data blocks of the inode were moved by the cleaner; it may also rise spuriously. Addresses that
    /// were looked up at another count, in an earlier operation, may be wrong.
    #[must_use]
    #[inline]
    pub fn moves(&self, ino: Nid) -> u64 {
        self.moves.count(ino)
    }

    // ---- orphans ----

    /// Takes room for one orphan, before the last link of an inode goes.
    ///
    /// # Errors
    /// [`VolumeError::TooManyOrphans`] if the checkpoint pack has no more.
    #[inline]
    pub fn orphan_room(&self) -> Result<OrphanRoom<'_>, VolumeError> {
        self.orphans.room()
    }

    /// Whether an inode is listed as an orphan.
    #[must_use]
    pub fn is_orphan(&self, ino: Nid) -> bool {
        self.orphans.has(ino)
    }

    /// Records an inode without links that is not freed yet: it is open, or freeing it takes several operations. The
    /// next open frees it if this process ends before.
    pub fn add_orphan(&self, op: &Op<'_>, room: OrphanRoom<'_>, ino: Nid) {
        op.expect_of(self);
        room.fill(ino);
    }

    /// Forgets an orphan: it was freed, or got a link.
    pub fn remove_orphan(&self, op: &Op<'_>, ino: Nid) -> bool {
        op.expect_of(self);
        self.orphans.remove(ino)
    }

    /// The orphans, sorted.
    #[must_use]
    pub fn orphans(&self) -> Vec<Nid> {
        self.orphans.list()
    }

    // ---- life ----

    /// Makes a new, empty volume of the whole device. The same as [`format::format`](crate::format::format).
    ///
    /// # Errors
    /// As there.
    pub fn format(
        device: &dyn BlockDevice,
        options: &crate::format::FormatOptions,
    ) -> Result<crate::format::FormatReport, crate::format::FormatVolumeError> {
        crate::format::format(device, options)
    }

    // ---- state ----

    /// Counts and sizes, as `statfs` wants them, and more.
    #[must_use]
    pub fn stat(&self) -> VolumeStat {
        let (free_segments, prefree_segments) = self.segments.free();
        VolumeStat {
            user_blocks: self.space.block_limit(),
            valid_blocks: self.space.blocks(),
            max_nodes: self.space.node_limit(),
            valid_nodes: self.space.nodes(),
            valid_inodes: self.space.inodes(),
            free_segments,
            prefree_segments,
            dirty_nodes: self.store.dirty(),
            cached_nodes: self.store.len() as u64,
            free_nids: self.space.node_limit().saturating_sub(self.space.nodes()),
            data_blocks_written: self.blocks_written.sum(),
            written: self.written.read(),
            unplaced_blocks: self.unplaced_blocks,
        }
    }

    /// The valid blocks of a segment, and its phase in the allocator. A volume that is open for reading may have to
    /// read the block of the SIT.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] for a segment that the volume does not have, [`VolumeError::Device`].
    pub fn segment(&self, segment: SegmentNo) -> Result<f2fs_segment::SegmentInfo, VolumeError> {
        self.segments.info(segment)
    }

    /// The mean length of the holes that a log writes into now, in blocks; of a volume that is open for reading, 0.
    #[must_use]
    pub fn mean_hole(&self, log: f2fs_format::LogType) -> f64 {
        self.segments.manager().map_or(0.0, |segments| segments.mean_hole(log))
    }

    /// Whether free segments are so few that logs write into the holes of dirty ones.
    #[must_use]
    pub fn writes_into_holes(&self) -> bool {
        !self.zoning.is_zoned() && self.segments.manager().is_ok_and(SegmentManager::need_ssr)
    }

    /// Seconds since the volume was first used, as segments' modification times count them.
    #[must_use]
    pub fn elapsed(&self) -> u64 {
        self.clock.now()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
