//! Opening a volume: superblock, checkpoint pack; for writing also SIT and logs. Of the NAT nothing is read before it is
//! needed.

use core::num::NonZeroUsize;

use f2fs_device::BlockDevice;
use f2fs_format::checkpoint::flags;
use f2fs_format::feature::Features;
use f2fs_format::nat::NatBlock;
use f2fs_format::node::NodeBlock;
use f2fs_format::summary::{self, Summary, SummaryBlock};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Corruption, Geometry, LogType, SegmentNo, inode, orphan};
use f2fs_nat::{Nat, NatConfig, NatSource};
use f2fs_segment::{LogState, SegmentConfig, SegmentManager, SegmentTable, SummarySource};
use f2fs_sync::{Gate, Mutex, OnceLock, PerCore, PlainArc};

use crate::blocks::{read_block, read_each};
use crate::clock::Clock;
use crate::data_count::DataCount;
use crate::epoch::Epochs;
use crate::last_checkpoint::LastCheckpoint;
use crate::node_store::NodeStore;
use crate::orphans::Orphans;
use crate::pack::Pack;
use crate::precleaner::Precleaner;
use crate::pressure::Pressure;
use crate::recovery::RollForward;
use crate::segments::{Segments, SitReader};
use crate::sit;
use crate::space::Space;
use crate::superblock::LoadedSuperblock;
use crate::write_stat::WriteCounters;
use crate::zones::Zones;
use crate::{Allocation, Damage, Volume, VolumeError};

/// How a volume is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Nothing is ever written.
    pub read_only: bool,
    /// Clean nodes (4 KiB each) kept in memory, about.
    pub node_cache: NonZeroUsize,
    /// Dirty nodes (4 KiB each) after which a checkpoint is due.
    pub dirty_nodes: u64,
    /// Dirty nodes up to which a checkpoint writes none of them before it keeps operations out.
    pub nodes_left_to_freeze: u64,
    /// How free NIDs are found.
    pub nid_policy: f2fs_nat::Policy,
    /// The treatment of valid blocks in a write's way when free segments are few.
    pub allocation: Allocation,
    /// Segments that each data log writes into at a time, on different processors. Only six are recorded by a checkpoint; the
    /// others are dirty segments to it.
    pub lanes: usize,
    /// Threads that read the SIT when the volume is opened for writing, the opener's among them. They end before the volume is
    /// open; small volumes need no second one. Nothing of the SIT is read when it is opened for reading.
    pub threads: usize,
    /// Whether what was synced since the last checkpoint is recovered. Without this the volume
    /// is opened at its last checkpoint.
    pub recovery: bool,
    /// The promise of a sync of a file.
    pub fsync: FsyncMode,
    /// Whether segments that a checkpoint frees are discarded, if the device can. On a file that is a device this gives their
    /// space back, which the next write there has to get again; the sync after it waits for the file system below to record
    /// that.
    pub discard: bool,
}

/// The promise of a sync of a file about the view of others after a crash (the kernel's `fsync_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FsyncMode {
    /// When the sync returns, the file is durable. A crash during the sync may leave some of its blocks new and some old.
    #[default]
    Posix,
    /// The same, and: a crash during the sync leaves no block that was not fully written; a new file in a directory from which
    /// names were removed or moved since the last checkpoint brings all of the directory along, by a checkpoint.
    Strict,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            read_only: false,
            node_cache: NonZeroUsize::MIN.saturating_add(65_535),
            dirty_nodes: 131_072,
            nodes_left_to_freeze: 512,
            nid_policy: f2fs_nat::Policy::default(),
            recovery: true,
            fsync: FsyncMode::default(),
            discard: true,
            allocation: Allocation::default(),
            lanes: PerCore::<()>::default().slots().min(MOST_LANES),
            threads: PerCore::<()>::default().slots().min(MOST_LANES),
        }
    }
}

impl OpenOptions {
    /// For reading and writing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For reading only, or not.
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Clean nodes kept in memory, about.
    #[must_use]
    pub fn node_cache(mut self, nodes: NonZeroUsize) -> Self {
        self.node_cache = nodes;
        self
    }

    /// Dirty nodes after which a checkpoint is due. While it is written operations go on: up to four times as many nodes, of 4 KiB each, are
    /// in memory then.
    #[must_use]
    pub fn dirty_nodes(mut self, nodes: u64) -> Self {
        self.dirty_nodes = nodes;
        self
    }

    /// Dirty nodes up to which a checkpoint writes none of them before it keeps operations out for a moment, 512 unless told. They wait about
    /// a microsecond for each; more nodes than that are written while operations run. With `u64::MAX`, all wait for all nodes to be copied. A
    /// dirty directory block counts as eight nodes.
    #[must_use]
    pub fn nodes_left_to_freeze(mut self, nodes: u64) -> Self {
        self.nodes_left_to_freeze = nodes;
        self
    }

    /// Whether what was synced since the last checkpoint is recovered.
    #[must_use]
    pub fn recovery(mut self, yes: bool) -> Self {
        self.recovery = yes;
        self
    }

    /// The promise of a sync of a file.
    #[must_use]
    pub fn fsync(mut self, mode: FsyncMode) -> Self {
        self.fsync = mode;
        self
    }

    /// Whether segments that a checkpoint frees are discarded (the kernel's `discard` and `nodiscard`).
    #[must_use]
    pub fn discard(mut self, yes: bool) -> Self {
        self.discard = yes;
        self
    }

    /// The treatment of valid blocks in a write's way when free segments are few.
    #[must_use]
    pub fn allocation(mut self, allocation: Allocation) -> Self {
        self.allocation = allocation;
        self
    }

    /// Segments that each data log writes into at a time; at least 1.
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes.max(1);
        self
    }

    /// Threads that read the SIT when the volume is opened for writing, the opener's among them; at least 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// How free NIDs are found.
    #[must_use]
    pub fn nid_policy(mut self, policy: f2fs_nat::Policy) -> Self {
        self.nid_policy = policy;
        self
    }
}

/// Lanes of a log, and threads of an opening, unless asked otherwise, on machines with as many processors.
const MOST_LANES: usize = 8;

type SourceError = Box<dyn core::error::Error + Send + Sync>;

/// Reads table blocks for the NAT and the segment manager.
struct Tables {
    device: PlainArc<dyn BlockDevice>,
    geometry: Geometry,
}

impl core::fmt::Debug for Tables {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl NatSource for Tables {
    fn read_nat_block(&self, index: u32, second: bool) -> Result<Box<NatBlock>, SourceError> {
        let buf = read_block(&*self.device, self.geometry.nat_block(index, second))?;
        Ok(Box::new(*NatBlock::read(buf.block(0))))
    }

    #[cfg(feature = "baselines")]
    fn read_nat_blocks(&self, blocks: &[(u32, bool)]) -> Result<Vec<Box<NatBlock>>, SourceError> {
        let addrs: Vec<_> = blocks.iter().map(|(index, second)| self.geometry.nat_block(*index, *second)).collect();
        let mut read = Vec::with_capacity(blocks.len());
        read_each(&*self.device, &addrs, |_, block| {
            read.push(Box::new(*NatBlock::read(block)));
            Ok::<(), f2fs_device::DeviceError>(())
        })?;
        Ok(read)
    }
}

impl SummarySource for Tables {
    fn read_summary(&self, segment: SegmentNo) -> Result<Box<SummaryBlock>, SourceError> {
        let buf = read_block(&*self.device, self.geometry.summary_block(segment))?;
        Ok(Box::new(*SummaryBlock::read(buf.block(0))))
    }
}

impl Volume {
    /// Opens the volume at its last checkpoint, and claims the device until the volume is closed or dropped.
    ///
    /// For reading, this reads the superblock and the checkpoint, whatever the size of the volume. For writing it reads one
    /// copy of the SIT as well, 4 KiB for 110 MiB of main area (38 MiB for a TiB), on [`OpenOptions::threads`] threads. The crate
    /// documentation says what a TiB takes.
    ///
    /// # Errors
    /// [`VolumeError`]: [`AlreadyOpen`](VolumeError::AlreadyOpen) for a device that somebody has open for writing, or at all if
    /// this is for writing; no valid superblock or checkpoint pack, an unsupported feature (by name), a truncated image, or a
    /// contradiction in the tables, each with its numbers. Nothing is written.
    pub fn open(device: PlainArc<dyn BlockDevice>, options: &OpenOptions) -> Result<Volume, VolumeError> {
        let claim = crate::volume::claim(&*device, options.read_only)?;
        let loaded = LoadedSuperblock::load(&*device)?;
        let geometry = loaded.geometry;
        geometry.features.require_within(Features::READ_ONLY)?;
        let unwritten = Features(geometry.features.0 & !Features::READ_WRITE.0);
        if unwritten != Features(0) && !options.read_only {
            return Err(VolumeError::OnlyForReading { bits: unwritten.0, names: unwritten.names().join(", ") });
        }
        if !options.read_only && device.info().read_only {
            return Err(VolumeError::ReadOnly);
        }
        let zoned = !options.read_only && geometry.features.contains(Features::BLKZONED);
        let zones = if zoned { Some(Zones::find(device.clone(), &geometry)?) } else { None };
        let device = zones.as_ref().map_or(device, Zones::device);
        let lanes = zones.as_ref().map_or(options.lanes, |zones| zones.lanes(options.lanes));
        let pack = Pack::load(&*device, &geometry)?;
        let checkpoint = &pack.checkpoint;
        if checkpoint.has(flags::DISABLED) && !options.read_only {
            return Err(VolumeError::CheckpointDisabled);
        }
        let tables = PlainArc::new(Tables { device: device.clone(), geometry: geometry.clone() });
        let segments = if options.read_only {
            let journal = sit::journal(&geometry, &pack)?;
            Segments::OnDemand(Box::new(SitReader::new(device.clone(), &geometry, &pack, journal)))
        } else {
            let table = sit::load(&*device, &geometry, &pack, options.threads)?;
            let logs = load_logs(&*device, &geometry, &pack, &table)?;
            let mut config =
                SegmentConfig::new(geometry.clone(), checkpoint.reserved_segments, checkpoint.overprovision_segments)
                    .summaries(tables.clone())
                    .lanes(lanes);
            if let Some((section, blocks)) = zones.as_ref().and_then(Zones::capacity) {
                config = config.section_capacity(section, blocks);
            }
            if let Some(zones) = &zones {
                config = config.aside(zones.aside(lanes));
                // A crash may make each log leave its zone when the volume is opened next, and cleaning needs room then.
                let logs = LogType::ALL.len() as u32;
                config = config.user_floor(2 * logs);
            }
            Segments::Managed(SegmentManager::open(config, table, pack.bitmaps.sit.clone(), logs)?)
        };
        let nat_journal = pack.journal(LogType::HotData).nat_entries().ok_or(Corruption::Range {
            what: "NAT journal entries",
            found: u64::from(pack.journal(LogType::HotData).count.get()),
            min: 0,
            max: summary::NAT_JOURNAL_ENTRIES as u64,
        })?;
        let nat_config = NatConfig::new(geometry.nat_blocks())
            .next_free_nid(checkpoint.next_free_nid)
            .valid_nodes(checkpoint.valid_nodes.into())
            .policy(options.nid_policy);
        let nat = Nat::new(nat_config, tables, pack.bitmaps.nat.clone(), &nat_journal)?;
        crate::devices::check_nodes(&nat, &*device)?;

        // Logs on zones never write into holes.
        let in_order = Allocation::ssr();
        let orphan_limit =
            (u64::from(BLOCKS_PER_SEGMENT) - 2 - 6 - u64::from(geometry.cp_payload)) * orphan::PER_BLOCK as u64;
        let space = Space::new(
            checkpoint.valid_blocks,
            checkpoint.user_blocks,
            checkpoint.valid_nodes.into(),
            // 0, 1 and 2 are not for nodes.
            u64::from(geometry.max_nid()) - 3,
            checkpoint.valid_inodes.into(),
        );
        Ok(Volume {
            checksum_seed: inode::checksum_seed(&loaded.raw),
            superblock: loaded.raw,
            read_only: options.read_only,
            gate: Gate::new(),
            nat,
            segments,
            store: NodeStore::new(options.node_cache.get()),
            space,
            orphans: Orphans::new(orphan_limit, &pack.orphans)?,
            moves: crate::moves::Moves::new(),
            roll_forward: RollForward::new(checkpoint, options.fsync),
            journal: OnceLock::new(),
            stopped: OnceLock::new(),
            clock: Clock::new(checkpoint.elapsed_time),
            discards: options.discard && device.info().supports_discard,
            blocks_written: DataCount::new(),
            pressure: Pressure::new(options.dirty_nodes, options.nodes_left_to_freeze),
            precleaner: Precleaner::new(if zones.is_some() { &in_order } else { &options.allocation }),
            epochs: Epochs::new(),
            last_checkpoint: LastCheckpoint::new(&pack),
            damage: Damage { superblock: loaded.other, pack: pack.other, superblock_copy: loaded.copy },
            recycler: f2fs_device::Recycler::new(),
            lanes: PerCore::with_slots(lanes, |_| ()),
            written: WriteCounters::new(),
            claim: Mutex::new(Some(claim)),
            zones,
            geometry,
            device,
        })
    }
}

/// The six logs. Without node summaries in the pack they are read off the node blocks themselves
/// (`f2fs_restore_node_summary`), as far as these are valid: nobody asks for the owner of another block.
fn load_logs(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    pack: &Pack,
    table: &SegmentTable,
) -> Result<[LogState; 6], VolumeError> {
    let mut logs = Vec::with_capacity(6);
    for log in LogType::ALL {
        let position = pack.checkpoint.log(log);
        if !geometry.has_log(log) {
            // Its summary may hold a journal nevertheless.
            let summary = if log.is_node() { SummaryBlock::new_box() } else { pack.data[log.index()].clone() };
            logs.push(LogState { segment: SegmentNo::NULL, next_offset: 0, alloc_type: 0, summary });
            continue;
        }
        let summary = match (&pack.node, log.is_node()) {
            (_, false) => pack.data[log.index()].clone(),
            (Some(node), true) => node[log.index() - 3].clone(),
            (None, true) => {
                let map = table.valid_map(position.segment)?;
                let valid: Vec<u32> = map.runs(true).flat_map(|(start, len)| start..start + len).collect();
                let addrs: Vec<BlockAddr> =
                    valid.iter().map(|offset| geometry.block_at(position.segment, *offset)).collect();
                let mut summary = SummaryBlock::new_box();
                read_each::<VolumeError>(device, &addrs, |index, block| {
                    let node = NodeBlock::read(block);
                    if node.nid().0 < geometry.max_nid() {
                        summary.entries[valid[index] as usize] = Summary::new(node.nid(), 0, 0);
                    }
                    Ok(())
                })?;
                summary
            }
        };
        let mut summary = summary;
        summary.entry_type = if log.is_node() { summary::TYPE_NODE } else { summary::TYPE_DATA };
        logs.push(LogState {
            segment: position.segment,
            next_offset: position.next_offset,
            alloc_type: position.alloc_type,
            summary,
        });
    }
    let Ok(logs) = <[LogState; 6]>::try_from(logs) else { unreachable!("one state a log") };
    Ok(logs)
}
