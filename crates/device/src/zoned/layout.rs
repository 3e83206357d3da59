//! The layout of a device's zones.

use super::ZoneError;

/// Zones of equal size and what may be open at a time. Sizes are in blocks.
///
/// ```
/// use f2fs_device::ZoneLayout;
///
/// // Zones of 1 GiB of which 768 MiB can be written; the first two are conventional; 14 may be open, 28 active.
/// let layout = ZoneLayout::new(1 << 18).with_capacity(3 << 16).with_conventional(2).with_limits(14, 28);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneLayout {
    /// Blocks from the start of a zone to the next one's. The last zone of a device may be shorter.
    pub zone_blocks: u64,
    /// Blocks of a sequential zone that can be written, from its start. No more than `zone_blocks`.
    pub capacity: u64,
    /// Zones at the front of the device that have no write pointer.
    pub conventional: u32,
    /// Zones that may be open at a time; 0 is no limit.
    pub max_open: u32,
    /// Zones that may be active (open or closed) at a time; 0 is no limit.
    pub max_active: u32,
}

/// The limits of all zones of a device, as [`DeviceInfo::zones`](crate::DeviceInfo::zones) says them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ZoneLimits {
    /// Blocks from the start of a zone to the next one's. The last zone of a device may be shorter.
    pub zone_blocks: u64,
    /// Zones that may be open at a time; 0 is no limit.
    pub max_open: u32,
    /// Zones that may be active (open or closed) at a time; 0 is no limit.
    pub max_active: u32,
}

impl ZoneLimits {
    /// Zones of so many blocks, without limits.
    #[must_use]
    pub fn new(zone_blocks: u64) -> Self {
        Self { zone_blocks, max_open: 0, max_active: 0 }
    }

    /// At most so many zones open, and active, at a time; 0 is no limit.
    #[must_use]
    pub fn with_limits(self, max_open: u32, max_active: u32) -> Self {
        Self { max_open, max_active, ..self }
    }

    /// Zones that may be written to at a time; `None` if there is no limit.
    #[must_use]
    pub fn at_once(&self) -> Option<u32> {
        [self.max_open, self.max_active].into_iter().filter(|limit| *limit != 0).min()
    }

    /// The limits for the zones of two devices of one volume; `None` if they have not the same size. They are those of
    /// each device, so the smaller one is safe for both.
    pub(crate) fn beside(self, other: Self) -> Option<Self> {
        let least = |one: u32, other: u32| if one == 0 || other == 0 { one.max(other) } else { one.min(other) };
        (self.zone_blocks == other.zone_blocks).then(|| Self {
            zone_blocks: self.zone_blocks,
            max_open: least(self.max_open, other.max_open),
            max_active: least(self.max_active, other.max_active),
        })
    }
}

impl ZoneLayout {
    /// The most zones that a device may have: 256 TiB in zones of 256 MiB, and less than 200 MiB of memory.
    pub const MAX_ZONES: u64 = 1 << 20;

    /// Sequential zones of `zone_blocks` blocks, without limits.
    #[must_use]
    pub fn new(zone_blocks: u64) -> Self {
        Self { zone_blocks, capacity: zone_blocks, conventional: 0, max_open: 0, max_active: 0 }
    }

    /// Only the first `blocks` blocks of a sequential zone can be written.
    #[must_use]
    pub fn with_capacity(self, blocks: u64) -> Self {
        Self { capacity: blocks, ..self }
    }

    /// The first `zones` zones are conventional.
    #[must_use]
    pub fn with_conventional(self, zones: u32) -> Self {
        Self { conventional: zones, ..self }
    }

    /// Up to `open` zones are open and up to `active` zones active; 0 is no limit.
    #[must_use]
    pub fn with_limits(self, open: u32, active: u32) -> Self {
        Self { max_open: open, max_active: active, ..self }
    }

    /// How many zones a device of `blocks` blocks has.
    ///
    /// # Errors
    /// [`ZoneError::Layout`] with the value that makes no sense.
    pub fn zones(&self, blocks: u64) -> Result<u32, ZoneError> {
        let within = |what, value: u64, min: u64, max: u64| {
            let refused = ZoneError::Layout { what, value, min, max };
            if (min..=max).contains(&value) { Ok(value) } else { Err(refused) }
        };
        within("blocks in a zone", self.zone_blocks, 1, u64::MAX)?;
        within("capacity of a zone", self.capacity, 1, self.zone_blocks)?;
        let zones = within("zones", blocks.div_ceil(self.zone_blocks), 1, Self::MAX_ZONES)?;
        within("conventional zones", self.conventional.into(), 0, zones)?;
        if self.max_active > 0 {
            within("zones open at a time", self.max_open.into(), 0, self.max_active.into())?;
        }
        Ok(zones as u32)
    }
}
