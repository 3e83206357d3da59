//! Laying out a new volume.
//!
//! The contents are computed by [`f2fs_format::mkfs`], the same as mkfs.f2fs 1.15 gives for the same size and options.
//! Here it is written, in an order that leaves no mixture of an old volume and a new one behind, wherever it stops:
//!
//! ```text
//! old superblocks := 0 ─ flush ─ discard, zero and write everything else ─ flush ─ superblock 1, superblock 0 ─ flush
//!        └── until here: the old volume ──┴─────────── no volume ────────────┴── from here: the new volume ──┘
//! ```
//!
//! Where the device has zones, they are reset instead of discarded.
//!
//! While the old superblocks go, nothing else of the old volume has been touched; when the first new one arrives,
//! everything that it speaks of is durable.
//!
//! No locks: the device is claimed for writing meanwhile.

mod signature;
mod write;
mod zones;

use std::time::{SystemTime, UNIX_EPOCH};

use f2fs_device::{AlreadyOpen, BlockDevice, DeviceError, Zone};
use f2fs_format::checkpoint::flags;
use f2fs_format::mkfs::VolumePlan;
use f2fs_format::{BLOCK_SIZE, FormatError, Geometry, RawBlock};

pub use f2fs_format::mkfs::FormatOptions;
pub use signature::{Signature, recognise};

/// The numbers of a freshly formatted volume.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FormatReport {
    /// Its UUID.
    pub uuid: [u8; 16],
    /// Its areas.
    pub geometry: Geometry,
    /// Blocks that users can fill.
    pub user_blocks: u64,
    /// Percentage of the main area kept from users.
    pub overprovision: f64,
    /// Segments kept from users, the reserved ones included.
    pub overprovision_segments: u32,
    /// Segments kept for the cleaner.
    pub reserved_segments: u32,
    /// Set for a volume on zones of which so few are kept from users that it is slow once it is nearly full.
    pub few_zones: Option<FewZones>,
    /// Whether the device was discarded.
    pub discarded: bool,
    /// The contents that were overwritten.
    pub replaced: Option<Signature>,
}

/// Zones that are too few: once the volume is nearly full, operations cannot empty zones ahead of writes, and wait for one
/// of them that cleans alone, for tenths of a second and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FewZones {
    /// Zones of the main area.
    pub zones: u32,
    /// Those that are kept from users.
    pub kept: u32,
    /// As many would have to be.
    pub wanted: u32,
    /// The least overprovision in whole per cent that keeps as many, if one of at most 50 does. Smaller zones do as well.
    pub overprovision: Option<u32>,
}

/// Why a device was not formatted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatVolumeError {
    /// The device is open in this process; force does not help. Nothing was written.
    #[error(transparent)]
    AlreadyOpen(#[from] AlreadyOpen),
    /// The device holds something, and [`FormatOptions::force`] is not set. Nothing was written.
    #[error("the device holds {found}, which is overwritten only with force")]
    Exists {
        /// Its contents.
        found: Signature,
        /// Which device of several that is, from 0 on.
        device: usize,
    },
    /// The size or an option does not fit. Nothing was written.
    #[error(transparent)]
    Plan(#[from] FormatError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The devices do not follow each other as they do in a volume: each but the first has to end with a whole segment
    /// (2 MiB). Nothing was written.
    #[error(transparent)]
    Devices(Box<crate::VolumeError>),
    /// A zone is worn out or dead. Nothing was written.
    #[error("zone {zone}, at block {start}, is {state}")]
    Zone {
        /// Its number on its device.
        zone: u32,
        /// Its first block.
        start: u64,
        /// Its state.
        state: f2fs_device::ZoneState,
    },
    /// The zones of a device are not alike, as those of a volume have to be. Nothing was written.
    #[error("zone {zone}, at block {start}: {what} is {found}, not {expected}")]
    ZoneUnlike {
        /// Its number on its device.
        zone: u32,
        /// Its first block.
        start: u64,
        /// The quantity that is wrong.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The value that the others have.
        expected: u64,
    },
    /// The device lets fewer zones be written to at a time than a volume has logs. Nothing was written.
    #[error("the device lets {limit} zones be written to at a time, and the logs of a volume need {needed}")]
    ZoneLimit {
        /// Zones that the device allows.
        limit: u32,
        /// Zones that are needed.
        needed: u32,
    },
    /// All zones are needed for logs and for cleaning. Nothing was written.
    #[error(
        "the main area has {zones} zones, and it takes {needed} for one that users can fill; smaller zones are more"
    )]
    TooFewZones {
        /// Zones of the main area.
        zones: u32,
        /// Zones that are needed.
        needed: u32,
    },
    /// The system gave no random bytes for a UUID. Nothing was written.
    #[error("the system gave no random bytes: {0}")]
    Random(String),
    /// The caller of [`format_until`] wanted no more.
    #[error("{}", if *.touched { "stopped: the device holds no volume" } else { "stopped before anything was written" })]
    Stopped {
        /// True if the old contents are gone, and no new volume is there. Otherwise nothing was written.
        touched: bool,
    },
}

/// Makes a new, empty F2FS volume of the whole device.
///
/// The time, the UUID and the version of the first checkpoint are taken from the options, or else from the clock and
/// from the system's random numbers; the sector size from the options, or else from the device. A device that cannot
/// discard, or fails to, is formatted all the same.
///
/// ```
/// use f2fs_device::MemoryDevice;
/// use f2fs_volume::format::{FormatOptions, format};
///
/// let device = MemoryDevice::new(64 << 20 >> 12);
/// let report = format(&device, &FormatOptions::default().with_label("example"))?;
/// assert_eq!(report.geometry.main_segments, 24);
/// assert!(format(&device, &FormatOptions::default()).is_err(), "now it holds a volume");
/// # Ok::<(), f2fs_volume::format::FormatVolumeError>(())
/// ```
///
/// # Errors
/// [`FormatVolumeError`]. After [`FormatVolumeError::Device`] the device may hold no volume at all, but never parts of
/// two.
pub fn format(device: &dyn BlockDevice, options: &FormatOptions) -> Result<FormatReport, FormatVolumeError> {
    format_until(device, options, &|| false)
}

/// As [`format()`], unless `stop` says before the end that it is to stop: it is asked between writes, as long as no new
/// superblock was written.
///
/// # Errors
/// As [`format()`], and [`FormatVolumeError::Stopped`].
pub fn format_until(
    device: &dyn BlockDevice,
    options: &FormatOptions,
    stop: &dyn Fn() -> bool,
) -> Result<FormatReport, FormatVolumeError> {
    let _claim = device.claims().exclusive("a format")?;
    let info = device.info();
    let mut options = options.clone();
    complete(&mut options, info.logical_sector)?;
    let devices = crate::devices::sizes(info);
    let bytes: Vec<u64> = devices.iter().map(|(bytes, _)| *bytes).collect();
    zones::allow_all_logs(info)?;
    let zones = zones::of_each(device, &devices)?;
    options.zones = zones.iter().map(|zones| zones::planned(zones)).collect();
    if options.zones.iter().all(Option::is_none) {
        options.zones = Vec::new();
    }
    let mut plan = VolumePlan::on(&options, &bytes)?;
    let user_blocks = zones::user_blocks(&plan, &zones)?;
    let matching = crate::devices::check_parts(&plan.superblock, info);
    matching.map_err(|error| FormatVolumeError::Devices(Box::new(error)))?;
    let held = signature::on_each(device, &devices)?;
    let replaced = held.first().map(|(_, found)| found.clone());
    if let Some(found) = replaced.clone().filter(|_| !options.force) {
        let device = devices.iter().position(|(_, start)| held.first().is_some_and(|(at, _)| at == start));
        return Err(FormatVolumeError::Exists { found, device: device.unwrap_or(0) });
    }

    if stop() {
        return Err(FormatVolumeError::Stopped { touched: false });
    }
    let writer = write::Writer { device, stop };
    writer.zero(std::iter::once(0..2))?;
    device.flush()?;
    // Where zones are, the reset does it.
    let plain = held.iter().filter(|(start, _)| !zones.iter().flatten().any(|zone| zones::is_sequential(zone, *start)));
    writer.zero(plain.map(|(start, _)| (*start).max(2)..(start + signature::WIPED_BLOCKS).min(info.blocks)))?;
    zones::reset(&writer, zones.iter().flatten())?;
    // Not the superblocks: what a discarded block reads as is undefined, and the old ones must stay away. A device that
    // fails to discard still stores blocks; its next write says if it does not.
    let discarded = options.discard && discard(device, &devices, &zones);
    if !discarded {
        plan.checkpoint.flags &= !flags::TRIMMED;
    }
    writer.zero(plan.zeroed())?;
    writer.blocks(plan.blocks()?)?;
    device.flush()?;
    writer.go_on()?;
    let superblock = plan.superblock_block();
    for index in [1, 0] {
        device.write_slice(index, &superblock)?;
    }
    device.flush()?;

    Ok(FormatReport {
        uuid: plan.superblock.uuid,
        user_blocks,
        overprovision: plan.overprovision,
        overprovision_segments: plan.checkpoint.overprovision_segments,
        reserved_segments: plan.checkpoint.reserved_segments,
        few_zones: zones::are_few(&plan, &options, &bytes),
        geometry: plan.geometry,
        discarded,
        replaced,
    })
}

/// Gives back all blocks of the devices without zones but the superblocks; says whether that went well.
fn discard(device: &dyn BlockDevice, devices: &[(u64, u64)], zones: &[Vec<Zone>]) -> bool {
    let info = device.info();
    let ends = devices.iter().skip(1).map(|(_, start)| *start).chain([info.blocks]);
    let parts = devices.iter().zip(ends).zip(zones).filter(|(_, zones)| zones.is_empty());
    let mut ranges = parts.map(|(((_, start), end), _)| ((*start).max(2), end));
    ranges.all(|(start, end)| info.supports_discard && device.discard(start, end - start).is_ok())
}

/// Fills in what the options leave to chance, the clock and the device.
fn complete(options: &mut FormatOptions, logical_sector: u32) -> Result<(), FormatVolumeError> {
    let mut random = [0; 20];
    getrandom::fill(&mut random).map_err(|error| FormatVolumeError::Random(error.to_string()))?;
    let (uuid, version) = random.split_at(16);
    options.uuid.get_or_insert_with(|| {
        let mut uuid: [u8; 16] = core::array::from_fn(|index| uuid[index]);
        // Version 4 (random), variant 1 (RFC 4122).
        uuid[6] = uuid[6] & 0x0f | 0x40;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        uuid
    });
    options.checkpoint_version.get_or_insert_with(|| {
        // Odd, and in 31 bits, as mkfs.f2fs has it: room for the checkpoints of a lifetime.
        let bits = version.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        bits & 0x7fff_ffff | 1
    });
    options.time.get_or_insert_with(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()));
    let sector_is_legal = logical_sector.is_power_of_two() && (512..=BLOCK_SIZE as u32).contains(&logical_sector);
    if options.sector_size.is_none() && sector_is_legal {
        options.sector_size = Some(logical_sector);
    }
    Ok(())
}

/// One block of the device.
fn read_block(device: &dyn BlockDevice, index: u64) -> Result<RawBlock, DeviceError> {
    Ok(*device.read(index, 1)?.block(0))
}

#[cfg(test)]
mod tests;
