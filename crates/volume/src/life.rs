//! The life of a volume: its opening at the last checkpoint, and its closing with one more. Opening reads superblock and
//! checkpoint pack; for writing also SIT and logs. Of the NAT nothing is read before it is needed.

use f2fs_device::{BlockDevice, WriteBehind};
use f2fs_format::checkpoint::flags;
use f2fs_format::feature::Features;
use f2fs_format::{BLOCKS_PER_SEGMENT, Corruption, Geometry, LogType, SegmentNo, inode, orphan, summary};
use f2fs_nat::{Nat, NatConfig};
use f2fs_segment::{SegmentConfig, SegmentManager};
use f2fs_sync::{Gate, Mutex, OnceLock, PerCore, PlainArc};

use crate::attendance::Attendance;
use crate::batched_count::BatchedCount;
use crate::brake::Brake;
use crate::clock::Clock;
use crate::epoch::Epochs;
use crate::journal::AttachedJournal;
use crate::kept_sections::{self, KeptSections};
use crate::last_checkpoint::LastCheckpoint;
use crate::name_versions::NameVersions;
use crate::node_store::NodeStore;
use crate::orphans::Orphans;
use crate::pack::Pack;
use crate::precleaner::Precleaner;
use crate::pressure::Pressure;
use crate::recent_nodes::RecentNodes;
use crate::roll_forward::RollForward;
use crate::segments::{Segments, SitReader};
use crate::space::Space;
use crate::steps::Steps;
use crate::table_source::TableSource;
use crate::victims::Victims;
use crate::write_stat::WriteCounters;
use crate::zones::{self, Zones};
use crate::zoning::Zoning;
use crate::{Allocation, Damage, Op, Volume, VolumeError, VolumeOptions, devices, logs, sit};

impl Volume {
    /// Opens the volume at its last checkpoint, and claims the device until the volume is closed or dropped.
    ///
    /// For reading, this reads the superblock and the checkpoint, whatever the size of the volume. For writing it reads
    /// one copy of the SIT as well, 4 KiB for 110 MiB of main area (38 MiB for a TiB), on [`VolumeOptions::threads`]
    /// threads. The crate documentation says what a TiB takes.
    ///
    /// # Errors
    /// [`VolumeError`]: [`AlreadyOpen`](VolumeError::AlreadyOpen) for a device that somebody has open for writing, or at all if
    /// this is for writing; no valid superblock or checkpoint pack, an unsupported feature (by name), a truncated
    /// image, or a contradiction in the tables, each with its numbers. Nothing is written.
    pub fn open(device: PlainArc<dyn BlockDevice>, options: &VolumeOptions) -> Result<Volume, VolumeError> {
        let claim = crate::volume::claim(&*device, options.read_only)?;
        let loaded = devices::load_superblock(&*device)?;
        let geometry = loaded.geometry;
        check_openable(&geometry, &*device, options)?;
        let zoned = !options.read_only && geometry.features.contains(Features::BLKZONED);
        let zones = if zoned { Some(Zones::find(device.clone(), &geometry)?) } else { None };
        let device = zones.as_ref().map_or(device, Zones::device);
        let may_wait = if options.read_only || zoned { 0 } else { options.write_behind };
        let behind = (may_wait != 0).then(|| PlainArc::new(WriteBehind::new(device.clone(), may_wait)));
        let device = behind.clone().map_or(device, |behind| behind);
        let pack = Pack::load(&*device, &geometry)?;
        let checkpoint = &pack.checkpoint;
        if let Some(newer) = pack.newer.filter(|_| options.newest_only && !options.read_only) {
            return Err(VolumeError::LostCheckpoint { pack: 1 - pack.index, newer, older: checkpoint.version });
        }
        let kept = KeptSections::new(&geometry, checkpoint.overprovision_segments);
        let lanes = zones
            .as_ref()
            .map_or_else(|| lanes_of(&geometry, options.lanes), |zones| kept.lanes(options.lanes, zones.limit()));
        if checkpoint.has(flags::DISABLED) && !options.read_only {
            return Err(VolumeError::CheckpointDisabled);
        }
        let source = PlainArc::new(TableSource { device: device.clone(), geometry: geometry.clone() });
        let segments = if options.read_only {
            let journal = sit::journal(&geometry, &pack)?;
            let reader = SitReader::new(device.clone(), &geometry, &pack, journal);
            if geometry.features.contains(Features::BLKZONED) {
                reader.check_written()?;
            }
            Segments::OnDemand(Box::new(reader))
        } else {
            Segments::Managed(open_segments(&source, &pack, zones.as_ref(), lanes, options.threads)?)
        };
        let unplaced_blocks = match &segments {
            Segments::Managed(manager) => checkpoint.valid_blocks.saturating_sub(manager.valid_blocks()),
            Segments::OnDemand(_) => 0,
        };
        let nat = open_nat(source, &pack, options)?;

        // Logs on zones never write into holes.
        let in_order = Allocation::ssr();
        let capacity = match &zones {
            Some(zones) => zones.capacity(),
            None if geometry.features.contains(Features::BLKZONED) => zones::capacity_to_show(&*device, &geometry)?,
            None => None,
        };
        let is_zoned = geometry.features.contains(Features::BLKZONED);
        let room =
            if is_zoned { zones::room(&geometry, capacity, checkpoint.overprovision_segments) } else { u64::MAX };
        let space = Space::new(
            checkpoint.valid_blocks,
            checkpoint.user_blocks,
            checkpoint.valid_nodes.into(),
            // 0, 1 and 2 are not for nodes.
            u64::from(geometry.max_nid()) - 3,
            checkpoint.valid_inodes.into(),
        );
        let space = space.with_room(room);
        Ok(Volume {
            checksum_seed: inode::checksum_seed(&loaded.raw),
            superblock: loaded.raw,
            read_only: options.read_only,
            gate: Gate::new(),
            nat,
            segments,
            store: NodeStore::new(options.node_cache.get()),
            recent_nodes: RecentNodes::default(),
            space,
            unplaced_blocks,
            orphans: Orphans::new(most_orphans(&geometry), &pack.orphans)?,
            moves: crate::moves::Moves::new(),
            unflushed_moves: crate::unflushed_moves::UnflushedMoves::new(),
            roll_forward: RollForward::new(
                checkpoint,
                options.fsync,
                options.sync_writers.is_each(&*device, zones.is_some()),
            ),
            attached_journal: AttachedJournal::default(),
            stopped: OnceLock::new(),
            clock: Clock::new(checkpoint.elapsed_time),
            discards: options.discard && device.info().supports_discard,
            blocks_written: BatchedCount::new(DATA_BATCH),
            pressure: Pressure::new(options.dirty_nodes, options.nodes_left_to_freeze),
            steps: Steps::new(),
            victims: Victims::default(),
            brake: Brake::default(),
            attendance: Attendance::default(),
            precleaner: Precleaner::new(if zones.is_some() { &in_order } else { &options.allocation }),
            epochs: Epochs::new(),
            names: NameVersions::new(),
            last_checkpoint: LastCheckpoint::new(&pack),
            damage: Damage {
                superblock: loaded.other,
                pack: pack.other,
                newer: pack.newer,
                superblock_copy: loaded.copy,
            },
            recycler: f2fs_device::Recycler::new(),
            lanes: PerCore::with_slots(lanes, |_| ()),
            written: WriteCounters::new(),
            threads: options.threads,
            claim: Mutex::new(Some(claim)),
            zoning: Zoning(zones),
            geometry,
            device,
            behind,
        })
    }

    /// Writes the last checkpoint of a volume that nothing lies on, marks the volume as cleanly closed, and refuses all
    /// further changes; others may open the device. A volume that was opened for reading only lets go of the device.
    ///
    /// # Errors
    /// As [`write_with`](crate::Checkpoints::write_with).
    pub fn close(&self) -> Result<(), VolumeError> {
        self.close_with(|| Ok(()), |_| Ok(()))
    }

    /// The same, for a volume that something lies on: `ahead` and `above` as for
    /// [`write_with`](crate::Checkpoints::write_with). Most nodes are written on [`VolumeOptions::threads`] threads. No
    /// change comes between the checkpoint and the end of the volume.
    ///
    /// # Errors
    /// As there; the volume then stays open, and the device its.
    pub fn close_with<E: From<VolumeError>>(
        &self,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.read_only {
            self.checkpoints().write_last(ahead, above)?;
        }
        drop(self.claim.lock().take());
        Ok(())
    }
}

/// Whether a volume of these features may be opened as it is asked for.
fn check_openable(geometry: &Geometry, device: &dyn BlockDevice, options: &VolumeOptions) -> Result<(), VolumeError> {
    geometry.features.require_within(Features::READ_ONLY)?;
    if options.read_only {
        return Ok(());
    }
    let unwritten = Features(geometry.features.0 & !Features::READ_WRITE.0);
    if unwritten != Features(0) {
        return Err(VolumeError::OnlyForReading { bits: unwritten.0, names: unwritten.names().join(", ") });
    }
    if device.info().read_only { Err(VolumeError::ReadOnly) } else { Ok(()) }
}

/// Orphans that a checkpoint pack has room for, beside its two checkpoint blocks, six summaries and the SIT's bitmap.
fn most_orphans(geometry: &Geometry) -> u64 {
    (u64::from(BLOCKS_PER_SEGMENT) - 2 - 6 - u64::from(geometry.cp_payload)) * orphan::PER_BLOCK as u64
}

/// Blocks of data that a processor counts between two tellings to the others: as many as it gets of a segment.
const DATA_BATCH: u32 = BLOCKS_PER_SEGMENT;

/// Lanes that a log may have however small the volume is.
const LANES: usize = 8;
/// Sections of the main area for each lane of a log beyond those.
const SECTIONS_OF_A_LANE: u32 = 32;

/// Lanes of each data log on a volume of this size, of so many that are asked for: the open segments of a log are a
/// small part of it.
fn lanes_of(geometry: &Geometry, wanted: usize) -> usize {
    wanted.clamp(1, LANES.max((geometry.sections / SECTIONS_OF_A_LANE) as usize))
}

/// The segment manager of a volume that is opened for writing: reads the SIT, and where the logs stand.
fn open_segments(
    source: &PlainArc<TableSource>,
    pack: &Pack,
    zones: Option<&Zones>,
    lanes: usize,
    threads: usize,
) -> Result<SegmentManager, VolumeError> {
    let TableSource { device, geometry } = &**source;
    let table = sit::load(&**device, geometry, pack, threads)?;
    let logs = logs::load(&**device, geometry, pack, &table)?;
    let (reserved, overprovision) = (pack.checkpoint.reserved_segments, pack.checkpoint.overprovision_segments);
    let mut config =
        SegmentConfig::new(geometry.clone(), reserved, overprovision).summaries(source.clone()).lanes(lanes);
    if let Some(blocks) = zones.and_then(Zones::capacity) {
        config = config.section_capacity(blocks);
    }
    if let Some(zones) = zones {
        let segments = (0..geometry.main_segments).map(SegmentNo);
        zones::check_written(&**device, geometry, segments, |segment| Ok(table.valid_map(segment)?))?;
        let kept = KeptSections::new(geometry, overprovision);
        config = config.aside(kept.aside(lanes, zones.limit())).user_floor(kept_sections::FLOOR);
    }
    Ok(SegmentManager::open(config, table, pack.bitmaps.sit.clone(), logs)?)
}

/// Blocks of the NAT that a loom model uses: each atomic that there is takes time there.
const NAT_BLOCKS_OF_MODELS: u32 = 16;

/// The NAT. Nothing of it is read but a block for each device of the volume.
fn open_nat(source: PlainArc<TableSource>, pack: &Pack, options: &VolumeOptions) -> Result<Nat, VolumeError> {
    let (device, checkpoint) = (source.device.clone(), &pack.checkpoint);
    let journal = pack.journal(LogType::HotData);
    let journal = journal.nat_entries().ok_or(Corruption::Range {
        what: "NAT journal entries",
        found: u64::from(journal.count.get()),
        min: 0,
        max: summary::NAT_JOURNAL_ENTRIES as u64,
    })?;
    let blocks = source.geometry.nat_blocks();
    let config = NatConfig::new(if cfg!(loom) { blocks.min(NAT_BLOCKS_OF_MODELS) } else { blocks })
        .next_free_nid(checkpoint.next_free_nid)
        .valid_nodes(checkpoint.valid_nodes.into())
        .policy(options.nid_policy);
    let nat = Nat::new(config, source, pack.bitmaps.nat.clone(), &journal)?;
    devices::check_nodes(&nat, &*device)?;
    Ok(nat)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
