//! Zoned devices, as a plan sees them.

use alloc::vec::Vec;

use super::{FormatOptions, SEGMENT_SIZE, power_of_two, within};
use crate::feature::Features;
use crate::{BLOCKS_PER_SEGMENT, FormatError};

/// The zones of one device, as far as a new volume depends on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceZones {
    /// Blocks from the start of a zone to the next one's.
    pub zone_blocks: u64,
    /// Zones at the front of the device that are written anywhere.
    pub conventional: u64,
    /// The blocks of each zone that can be written, from its start; all of a conventional one.
    pub capacities: Vec<u64>,
}

/// A new volume has up to two blocks in a log, of the root and of `lost+found`, and the log goes on behind them.
const LEAST_CAPACITY: u64 = 3;

impl DeviceZones {
    /// Segments in which a block can be written, of these zones.
    fn usable_segments(&self, zones: impl IntoIterator<Item = usize>) -> u64 {
        let segments =
            |zone| self.capacities.get(zone).map_or(0, |blocks: &u64| blocks.div_ceil(BLOCKS_PER_SEGMENT.into()));
        zones.into_iter().map(segments).sum()
    }

    /// All segments in which a block can be written.
    pub(super) fn usable(&self) -> u64 {
        self.usable_segments(0..self.capacities.len())
    }

    /// The number of segments in which a block can be written, of the `count` from `first` on. Both are counted from
    /// the start of the device; a zone is cut only at its end.
    pub(super) fn usable_among(&self, first: u64, count: u64) -> u64 {
        let per_zone = self.zone_blocks / u64::from(BLOCKS_PER_SEGMENT);
        let within = |zone: usize| {
            let start = zone as u64 * per_zone;
            let end = start + self.usable_segments([zone]);
            end.min(first + count).saturating_sub(start.max(first))
        };
        (0..self.capacities.len()).map(within).sum()
    }
}

/// The options with sections as long as the zones, if the volume is to be zoned.
///
/// # Errors
/// Devices have zones that a volume cannot be made of, or `blkzoned` is not asked for and a device has zones, or the
/// other way round.
pub(super) fn with_sections(options: &FormatOptions) -> Result<FormatOptions, FormatError> {
    let mut options = options.clone();
    let zoned: Vec<&DeviceZones> = options.zones.iter().flatten().collect();
    let asked = options.features.contains(Features::BLKZONED);
    let Some(first) = zoned.first() else {
        return if asked { Err(FormatError::NoZones) } else { Ok(options) };
    };
    if !asked {
        return Err(FormatError::ZonesUnasked { devices: zoned.len() as u64 });
    }
    let zone_blocks = first.zone_blocks;
    for zones in &zoned {
        within("blocks in a zone (the same on all devices)", zones.zone_blocks, zone_blocks, zone_blocks)?;
        // A zone that is worn out has none.
        let unfit = |blocks: &&u64| **blocks > zone_blocks || (1..LEAST_CAPACITY).contains(*blocks);
        if let Some(capacity) = zones.capacities.iter().find(unfit) {
            within("blocks of a zone that can be written", *capacity, LEAST_CAPACITY, zone_blocks)?;
        }
    }
    within("blocks in a zone", zone_blocks, BLOCKS_PER_SEGMENT.into(), u64::from(u32::MAX) / 4096)?;
    power_of_two("blocks in a zone", zone_blocks)?;
    // Superblocks and checkpoints are written in place.
    if let Some(Some(zones)) = options.zones.first() {
        within("conventional zones at the front of the first device", zones.conventional, 1, u64::MAX)?;
    }
    within("option: the node logs at the end", options.heap.into(), 0, 0)?;
    options.segs_per_sec = (zone_blocks / u64::from(BLOCKS_PER_SEGMENT)) as u32;
    options.secs_per_zone = 1;
    debug_assert!(u64::from(options.segs_per_sec) * SEGMENT_SIZE <= u64::from(u32::MAX));
    Ok(options)
}
