//! The layout of a new volume: the same areas, reserve and first checkpoint as mkfs.f2fs 1.15 gives for the same size
//! and options. Computed without any I/O; `f2fs-volume` writes it.
//!
//! ```
//! use f2fs_format::mkfs::{FormatOptions, VolumePlan};
//!
//! let plan = VolumePlan::new(&FormatOptions::default(), 1 << 30)?;
//! assert_eq!(plan.geometry.main_segments, 502);
//! assert_eq!((plan.checkpoint.reserved_segments, plan.checkpoint.overprovision_segments), (39, 68));
//! # Ok::<(), f2fs_format::FormatError>(())
//! ```
//!
//! Source of the arithmetic: `f2fs_prepare_super_block` and `f2fs_write_check_point_pack` in f2fs-tools
//! (`mkfs/f2fs_format.c`), `get_best_overprovision` (`include/f2fs_fs.h`).
//!
//! # Where this differs from mkfs.f2fs
//!
//! * A device that is not a whole number of zones: mkfs.f2fs counts the segments behind the last zone as usable, so
//!   that it states too many free segments (which its own fsck.f2fs rejects) and user blocks. Reserve and overprovision
//!   are the same here; free segments and user blocks are counted over the main area only.
//! * A zoned device that comes first: mkfs.f2fs counts the segments of the zone with the superblocks as usable, so that
//!   it states too many free segments and user blocks.
//! * `project_quota` does not switch on `quota`: no quota files are made.
//! * A device of exactly 16 TiB is refused, because its last two blocks would have the addresses that mean "reserved"
//!   and "compressed"; zones of 4 GiB and more and extension lists that do not fit are refused where mkfs.f2fs
//!   overflows.

mod areas;
mod blocks;
mod extensions;
mod reserve;
mod zones;

use alloc::string::String;
use alloc::vec::Vec;

use crate::checkpoint::{Checkpoint, LogPosition, alloc_type, flags};
use crate::feature::Features;
use crate::superblock::{Device, MAX_DEVICES, MAX_PATH, SuperBlock};
use crate::{BLOCK_SIZE, BLOCKS_PER_SEGMENT, FormatError, Geometry, LogType, Nid, SegmentNo, nat_bits};

pub use zones::DeviceZones;

/// Bytes of a segment.
pub const SEGMENT_SIZE: u64 = BLOCKS_PER_SEGMENT as u64 * BLOCK_SIZE as u64;
/// A volume must be smaller than this many bytes (16 TiB).
pub const MAX_SIZE: u64 = 1 << 44;

/// How to format. The defaults are those of mkfs.f2fs. The letters are its options.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FormatOptions {
    /// Volume label, at most 512 bytes of UTF-8 (`-l`).
    pub label: String,
    /// Segments in a section: the unit of cleaning (`-s`).
    pub segs_per_sec: u32,
    /// Sections in a zone (`-z`). A zone must be smaller than 4 GiB.
    pub secs_per_zone: u32,
    /// Percentage of the main area kept from users; `None`: the one that leaves them most (`-o`).
    pub overprovision: Option<f64>,
    /// File name extensions that mark cold files, besides the usual ones (`-e`); each shorter than 8 bytes.
    pub cold_extensions: Vec<String>,
    /// File name extensions that mark hot files, besides the usual ones (`-E`).
    pub hot_extensions: Vec<String>,
    /// Whether the node logs begin at the end of the main area (`-a 1`).
    pub heap: bool,
    /// Whether the NAT is made for many nodes, a fifth of all blocks (`-i`).
    pub large_nat_bitmap: bool,
    /// Features, out of [`Features::READ_WRITE`] (`-O`), and `blkzoned` (`-m`), for devices with
    /// [`zones`](Self::zones).
    pub features: Features,
    /// The UUID (`-U`). `None` stands for a random one, which `f2fs-volume` draws.
    pub uuid: Option<[u8; 16]>,
    /// Time stamps of the root directory, in seconds since 1970 (`-T`). `None` stands for now, which `f2fs-volume`
    /// fills in.
    pub time: Option<u64>,
    /// Owner and group of the root directory (`-R`).
    pub root_owner: (u32, u32),
    /// Bytes of a sector as the superblock states it: 512 to 4096. `None`: 512, as mkfs.f2fs does for files.
    pub sector_size: Option<u32>,
    /// Version of the first checkpoint. `None` stands for a random odd number, which `f2fs-volume` draws, so that nodes
    /// of an older volume on the device do not look recoverable.
    pub checkpoint_version: Option<u64>,
    /// For a volume on several devices: the path of each, first that of the main one, as the superblock is to name them
    /// (`-c`). The kernel looks for the devices there. At most 8, of 1 to 63 bytes each, without zeros. Empty for a
    /// volume on one device.
    pub device_paths: Vec<Vec<u8>>,
    /// The zones of each device, in the order of the devices; `f2fs-volume` asks the devices. Empty where none has any.
    /// Sections are zones then, whatever `segs_per_sec` says.
    pub zones: Vec<Option<DeviceZones>>,
    /// Whether the whole device is discarded first (`-t`).
    pub discard: bool,
    /// Whether an existing file system is overwritten (`-f`).
    pub force: bool,
}

impl Default for FormatOptions {
    fn default() -> FormatOptions {
        FormatOptions {
            label: String::new(),
            segs_per_sec: 1,
            secs_per_zone: 1,
            overprovision: None,
            cold_extensions: Vec::new(),
            hot_extensions: Vec::new(),
            heap: false,
            large_nat_bitmap: false,
            features: Features(0),
            uuid: None,
            time: None,
            root_owner: (0, 0),
            sector_size: None,
            checkpoint_version: None,
            device_paths: Vec::new(),
            zones: Vec::new(),
            discard: true,
            force: false,
        }
    }
}

impl FormatOptions {
    /// The same with a label.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// The same with features.
    #[must_use]
    pub fn with_features(self, features: Features) -> Self {
        Self { features, ..self }
    }

    /// The same with sections of `segs_per_sec` segments and zones of `secs_per_zone` sections.
    #[must_use]
    pub fn with_sections(self, segs_per_sec: u32, secs_per_zone: u32) -> Self {
        Self { segs_per_sec, secs_per_zone, ..self }
    }

    /// The same for a volume on several devices, which the superblock names so; the main one comes first.
    #[must_use]
    pub fn with_device_paths(self, paths: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Self { device_paths: paths.into_iter().map(Into::into).collect(), ..self }
    }

    /// The same with `force` set: an existing file system is overwritten.
    #[must_use]
    pub fn forced(self) -> Self {
        Self { force: true, ..self }
    }

    fn check(&self) -> Result<(), FormatError> {
        self.features.require_within(Features::READ_WRITE)?;
        let on_extra_attr = [
            (Features::PROJECT_QUOTA, "project_quota"),
            (Features::INODE_CHECKSUM, "inode_checksum"),
            (Features::FLEXIBLE_INLINE_XATTR, "flexible_inline_xattr"),
            (Features::INODE_CRTIME, "inode_crtime"),
        ];
        for (bit, feature) in on_extra_attr {
            if self.features.contains(bit) && !self.features.contains(Features::EXTRA_ATTR) {
                return Err(FormatError::Dependency { feature, needs: "extra_attr" });
            }
        }
        within("bytes of the label", self.label.len() as u64, 0, 512)?;
        within("zero bytes in the label", self.label.bytes().filter(|byte| *byte == 0).count() as u64, 0, 0)?;
        // It grows with each checkpoint, and the pack with the greater one counts.
        within("version of the first checkpoint", self.checkpoint_version.unwrap_or(1), 0, i64::MAX as u64)?;
        within("time stamp", self.time.unwrap_or(0), 0, i64::MAX as u64)?;
        // Larger zones overflow the 32-bit arithmetic of mkfs.f2fs.
        let most = u64::from(u32::MAX) / SEGMENT_SIZE;
        within("segments in a section", self.segs_per_sec.into(), 1, most)?;
        within("sections in a zone", self.secs_per_zone.into(), 1, most)?;
        within("segments in a zone", u64::from(self.segs_per_sec) * u64::from(self.secs_per_zone), 1, most)?;
        within("devices", self.device_paths.len() as u64, 0, MAX_DEVICES as u64)?;
        for path in &self.device_paths {
            within("bytes of a device's path", path.len() as u64, 1, MAX_PATH as u64)?;
            within("zero bytes in a device's path", path.iter().filter(|byte| **byte == 0).count() as u64, 0, 0)?;
        }
        let sector = self.sector_size();
        within("bytes of a sector", sector.into(), 512, BLOCK_SIZE as u64)?;
        power_of_two("bytes of a sector", sector.into())?;
        if let Some(percent) = self.overprovision
            && !(percent > 0.0 && percent < 100.0)
        {
            let found = percent as u64; // what does not fit becomes the nearest that does
            return Err(FormatError::Layout { what: "percentage of overprovision", found, min: 1, max: 99 });
        }
        Ok(())
    }

    fn sector_size(&self) -> u32 {
        self.sector_size.unwrap_or(512)
    }
}

fn within(what: &'static str, found: u64, min: u64, max: u64) -> Result<(), FormatError> {
    if (min..=max).contains(&found) { Ok(()) } else { Err(FormatError::Layout { what, found, min, max }) }
}

fn power_of_two(what: &'static str, found: u64) -> Result<(), FormatError> {
    if found.is_power_of_two() { Ok(()) } else { Err(FormatError::NotAPowerOfTwo { what, found }) }
}

/// A new volume, ready to be written.
#[derive(Clone, Debug)]
pub struct VolumePlan {
    /// Both superblocks.
    pub superblock: SuperBlock,
    /// The areas.
    pub geometry: Geometry,
    /// The first checkpoint.
    pub checkpoint: Checkpoint,
    /// Percentage of the main area kept from users.
    pub overprovision: f64,
    /// The directory `lost+found`, if that feature is on.
    pub lost_found: Option<Nid>,
    /// Whether zones are written: what has to read as zeros there does after a reset.
    zoned: bool,
    /// Time stamps of the root directory.
    pub time: u64,
    /// Owner and group of the root directory.
    pub root_owner: (u32, u32),
}

impl VolumePlan {
    /// Plans a volume on a device of `bytes` bytes. A missing UUID, time or checkpoint version in the options becomes
    /// zero, zero and one.
    ///
    /// # Errors
    /// [`FormatError::Layout`] if the size or an option does not fit, with the smallest size that would for a device
    /// that is too small; [`FormatError::Unsupported`] and [`FormatError::Dependency`] for features.
    pub fn new(options: &FormatOptions, bytes: u64) -> Result<VolumePlan, FormatError> {
        VolumePlan::on(options, &[bytes])
    }

    /// Plans a volume on devices of so many bytes, one behind the other. The options name as many
    /// [paths](FormatOptions::device_paths), or none for a single device.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`FormatError::Layout`] also if the number of paths is another one, or if a device behind
    /// the first has no room for a segment.
    pub fn on(options: &FormatOptions, devices: &[u64]) -> Result<VolumePlan, FormatError> {
        let options = &zones::with_sections(options)?;
        options.check()?;
        if devices.len() > 1 || !options.device_paths.is_empty() {
            let count = devices.len() as u64;
            within("paths of devices", options.device_paths.len() as u64, count, count)?;
        }
        for bytes in devices.iter().skip(1) {
            within("bytes of a device behind the first", *bytes, SEGMENT_SIZE, MAX_SIZE)?;
        }
        let bytes = devices.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let extensions = extensions::lists(&options.cold_extensions, &options.hot_extensions)?;
        let max = MAX_SIZE - BLOCK_SIZE as u64;
        let measures = if bytes < MAX_SIZE { Measures::new(options, devices) } else { None };
        if let Some(measures) = &measures {
            measures.areas.check_zones()?;
        }
        let Some(measures) = measures else {
            let min = Measures::next_size(options, devices).unwrap_or(max);
            return Err(FormatError::Layout { what: "bytes of the device", found: bytes, min, max });
        };

        let mut superblock = measures.areas.superblock(options.sector_size());
        superblock.uuid = options.uuid.unwrap_or_default();
        for (unit, stored) in options.label.encode_utf16().zip(&mut superblock.volume_name) {
            *stored = unit.into();
        }
        extensions.store(&mut superblock);
        for field in [&mut superblock.version, &mut superblock.init_version] {
            let version = concat!("f2fs ", env!("CARGO_PKG_VERSION"));
            field[..version.len()].copy_from_slice(version.as_bytes());
        }
        superblock.feature = options.features.0.into();
        for ((entry, path), segments) in
            superblock.devs.iter_mut().zip(&options.device_paths).zip(measures.areas.on_each_device())
        {
            *entry = Device::new(path, *segments as u32);
        }
        if options.features.contains(Features::SB_CHECKSUM) {
            superblock.checksum_offset = (crate::superblock::CHECKSUM_OFFSET as u32).into();
            superblock.crc = superblock.compute_crc().into();
        }
        let geometry = Geometry::from_superblock(&superblock)?;
        let lost_found = options.features.contains(Features::LOST_FOUND).then_some(Nid(4));
        let checkpoint = first_checkpoint(options, &geometry, &measures, lost_found);
        checkpoint.check(&geometry)?;
        Ok(VolumePlan {
            superblock,
            geometry,
            checkpoint,
            overprovision: measures.reserve.percent,
            lost_found,
            zoned: options.features.contains(Features::BLKZONED),
            time: options.time.unwrap_or(0),
            root_owner: options.root_owner,
        })
    }
}

/// Areas and reserve of a device that is large enough.
struct Measures {
    areas: areas::Areas,
    reserve: reserve::Reserve,
}

impl Measures {
    /// `None` if the device is too small (or the reserve asked for too large) for any volume.
    fn new(options: &FormatOptions, devices: &[u64]) -> Option<Measures> {
        let areas = areas::Areas::new(options, devices)?;
        let reserve = reserve::Reserve::new(&areas, options.overprovision)?;
        Some(Measures { areas, reserve })
    }

    /// The next larger size of all devices together that holds a volume, found by trying one after the other for the
    /// first device. That need not be the smallest one of all: with large sections, a size may be enough for a volume
    /// and one above it not.
    fn next_size(options: &FormatOptions, devices: &[u64]) -> Option<u64> {
        let zone = u64::from(options.segs_per_sec * options.secs_per_zone) * SEGMENT_SIZE;
        let first = devices.first()? / zone;
        let mut devices = devices.to_vec();
        // Zones that are not there have no capacity: as if all of them could be written.
        let options = &FormatOptions { zones: Vec::new(), ..options.clone() };
        let zones = first.max(1) + 1..first + 2000;
        let sizes = zones.map(|zones| zones.saturating_mul(zone)).take_while(|bytes| *bytes < MAX_SIZE);
        sizes.into_iter().find_map(|bytes| {
            *devices.first_mut()? = bytes;
            Measures::new(options, &devices).map(|_| devices.iter().sum())
        })
    }
}

/// The checkpoint of a volume that holds the root directory, and `lost+found` if asked for.
fn first_checkpoint(
    options: &FormatOptions,
    geometry: &Geometry,
    measures: &Measures,
    lost_found: Option<Nid>,
) -> Checkpoint {
    let directories = 1 + u32::from(lost_found.is_some());
    let logs = measures.areas.logs(options.heap);
    let logs = LogType::ALL.map(|log| LogPosition {
        segment: SegmentNo(logs[log.index()]),
        next_offset: match log {
            // One inode and one dentry block for each directory.
            LogType::HotData | LogType::HotNode => directories as u16,
            LogType::WarmData | LogType::ColdData | LogType::WarmNode | LogType::ColdNode => 0,
        },
        alloc_type: alloc_type::LFS,
    });
    // Checkpoint, payload, one compact summary, three node summaries, checkpoint.
    let pack_blocks = 6 + geometry.cp_payload;
    let mut set = flags::UMOUNT | flags::COMPACT_SUM;
    if nat_bits::first_block(geometry, pack_blocks).is_some() {
        set |= flags::NAT_BITS;
    }
    if options.discard {
        set |= flags::TRIMMED;
    }
    if options.large_nat_bitmap {
        set |= flags::LARGE_NAT_BITMAP;
    }
    let main = measures.areas.writable_main() as u32;
    Checkpoint {
        version: options.checkpoint_version.unwrap_or(1),
        flags: set,
        user_blocks: u64::from(main - measures.reserve.overprovision) * u64::from(BLOCKS_PER_SEGMENT),
        valid_blocks: 2 * u64::from(directories),
        reserved_segments: measures.reserve.reserved,
        overprovision_segments: measures.reserve.overprovision,
        free_segments: main - 6,
        logs,
        pack_blocks,
        start_sum: 1 + geometry.cp_payload,
        valid_nodes: directories,
        valid_inodes: directories,
        next_free_nid: Nid(3 + directories),
        elapsed_time: 0,
        opening: 0,
    }
}

#[cfg(test)]
mod tests;
