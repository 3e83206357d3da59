//! The devices that can be exported: a block device, or a zoned one.

pub use f2fs_device::ZoneChange;
use f2fs_device::{AlignedBuf, BlockDevice, DeviceError, Zone, ZoneError, ZoneLayout, ZonedDevice};
use f2fs_sync::PlainArc;

use crate::{
    UblkError,
    abi::{Parameters, SECTORS, attribute, part},
};

/// A block device with zones: the interface of [`ZonedDevice`], whatever is below it.
pub trait ZonedBlockDevice: BlockDevice {
    /// Sizes and limits.
    fn layout(&self) -> &ZoneLayout;
    /// How many zones there are.
    fn zones(&self) -> u32;
    /// One zone as it is now.
    ///
    /// # Errors
    /// [`ZoneError::NoSuchZone`].
    fn zone(&self, zone: u32) -> Result<Zone, ZoneError>;
    /// Changes the state of a zone.
    ///
    /// # Errors
    /// Refusals of the zone.
    fn change(&self, zone: u32, change: ZoneChange) -> Result<(), ZoneError>;
    /// Makes all zones empty that can be.
    fn reset_all(&self);
    /// Writes at the write pointer of a zone, and returns the first block that it went to.
    ///
    /// # Errors
    /// Refusals of the zone, and those of a write.
    fn append(&self, zone: u32, buf: AlignedBuf) -> Result<u64, DeviceError>;
}

impl<D: BlockDevice> ZonedBlockDevice for ZonedDevice<D> {
    fn layout(&self) -> &ZoneLayout {
        self.layout()
    }

    fn zones(&self) -> u32 {
        self.zones()
    }

    fn zone(&self, zone: u32) -> Result<Zone, ZoneError> {
        self.zone(zone)
    }

    fn change(&self, zone: u32, change: ZoneChange) -> Result<(), ZoneError> {
        self.change(zone, change)
    }

    fn reset_all(&self) {
        self.reset_all();
    }

    fn append(&self, zone: u32, buf: AlignedBuf) -> Result<u64, DeviceError> {
        self.append(zone, buf)
    }
}

/// The device that a server exports.
#[derive(Clone, Debug)]
pub enum Backend {
    /// A conventional device.
    Plain(PlainArc<dyn BlockDevice>),
    /// A zoned device.
    Zoned(PlainArc<dyn ZonedBlockDevice>),
}

/// The numbers of a device against which its requests are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) blocks: u64,
    /// The longest transfer.
    pub(crate) max_blocks: u64,
    /// Blocks of a zone, and how many there are.
    pub(crate) zones: Option<(u64, u32)>,
}

/// Sectors that one discard, and one write of zeros, may have.
const MAX_DISCARD_SECTORS: u32 = 1 << 21;
const MAX_ZEROES_SECTORS: u32 = 1 << 14;

impl Backend {
    /// The device, whichever it is.
    #[must_use]
    pub fn device(&self) -> &dyn BlockDevice {
        match self {
            Self::Plain(device) => &**device,
            Self::Zoned(device) => &**device,
        }
    }

    /// The zones, if there are any.
    pub(crate) fn zoned(&self) -> Option<&dyn ZonedBlockDevice> {
        match self {
            Self::Plain(_) => None,
            Self::Zoned(device) => Some(&**device),
        }
    }

    pub(crate) fn shape(&self, max_io_bytes: u32) -> Shape {
        let zones = self.zoned().map(|zoned| (zoned.layout().zone_blocks, zoned.zones()));
        Shape { blocks: self.device().info().blocks, max_blocks: u64::from(max_io_bytes) / 4096, zones }
    }

    /// Sizes that the kernel would refuse, or make a wrong device of.
    pub(crate) fn check(&self) -> Result<(), UblkError> {
        let blocks = self.device().info().blocks;
        let max = i64::MAX as u64 / 4096;
        if blocks == 0 || blocks > max {
            return Err(UblkError::Limit { what: "blocks of the device", value: blocks, min: 1, max });
        }
        let Some(zoned) = self.zoned() else { return Ok(()) };
        let ZoneLayout { zone_blocks, conventional, .. } = *zoned.layout();
        let whole = zone_blocks.is_power_of_two() && blocks.is_multiple_of(zone_blocks);
        if !whole || zone_blocks > u64::from(u32::MAX) / SECTORS {
            return Err(UblkError::Zones { zone_blocks, blocks });
        }
        if conventional >= zoned.zones() {
            return Err(UblkError::AllConventional { zones: zoned.zones() });
        }
        Ok(())
    }

    /// The limits that the driver is told.
    pub(crate) fn parameters(&self, max_io_bytes: u32) -> Parameters {
        let info = self.device().info();
        let max_sectors = max_io_bytes / 512;
        let optimal = info.optimal_io.max(4096).min(max_io_bytes).ilog2() as u8;
        let mut parameters = Parameters {
            length: size_of::<Parameters>() as u32,
            types: part::BASIC,
            attributes: attribute::VOLATILE_CACHE | attribute::FUA,
            logical_shift: 12,
            physical_shift: 12,
            optimal_shift: optimal,
            minimal_shift: 12,
            max_sectors,
            sectors: info.blocks * SECTORS,
            ..Parameters::default()
        };
        if info.read_only {
            parameters.attributes |= attribute::READ_ONLY;
        }
        if let Some(zoned) = self.zoned() {
            let layout = zoned.layout();
            parameters.types |= part::ZONED;
            parameters.chunk_sectors = (layout.zone_blocks * SECTORS) as u32;
            // More zones than there are, as a limit, is none.
            let limit = |limit: u32| if limit > zoned.zones() { 0 } else { limit };
            parameters.max_open_zones = limit(layout.max_open);
            parameters.max_active_zones = limit(layout.max_active);
            parameters.max_append_sectors = max_sectors.min(parameters.chunk_sectors);
        } else {
            parameters.types |= part::DISCARD;
            parameters.discard_granularity = 4096;
            parameters.max_zeroes_sectors = MAX_ZEROES_SECTORS;
            parameters.max_discard_segments = 1;
            if info.supports_discard {
                parameters.max_discard_sectors = MAX_DISCARD_SECTORS;
            }
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::MemoryDevice;

    use super::*;

    fn zoned(blocks: u64, layout: ZoneLayout) -> Backend {
        Backend::Zoned(PlainArc::new(ZonedDevice::new(MemoryDevice::new(blocks), layout).unwrap()))
    }

    #[test]
    fn limits_of_a_conventional_device() {
        let backend = Backend::Plain(PlainArc::new(MemoryDevice::new(1000)));
        backend.check().unwrap();
        let parameters = backend.parameters(512 << 10);
        assert_eq!(parameters.sectors, 8000);
        assert_eq!(parameters.types, part::BASIC | part::DISCARD);
        assert_eq!((parameters.max_sectors, parameters.max_discard_sectors), (1024, MAX_DISCARD_SECTORS));
        let backend = Backend::Plain(PlainArc::new(MemoryDevice::new(1000).read_only()));
        assert!(backend.parameters(4096).attributes & attribute::READ_ONLY != 0);
    }

    #[test]
    fn limits_of_a_zoned_device() {
        let backend = zoned(1024, ZoneLayout::new(256).with_limits(2, 3));
        backend.check().unwrap();
        let parameters = backend.parameters(512 << 10);
        assert_eq!((parameters.types, parameters.chunk_sectors), (part::BASIC | part::ZONED, 2048));
        assert_eq!(
            (parameters.max_open_zones, parameters.max_active_zones, parameters.max_append_sectors),
            (2, 3, 1024)
        );
        let loose = zoned(1024, ZoneLayout::new(256).with_limits(9, 0));
        assert_eq!(loose.parameters(4096).max_open_zones, 0);
        for (blocks, zone) in [(1024, 255), (1000, 256)] {
            let error = zoned(blocks, ZoneLayout::new(zone)).check().unwrap_err();
            assert!(matches!(error, UblkError::Zones { .. }), "{error}");
        }
        // Linux 6.12 says "Invalid number of conventional zones".
        let error = zoned(1024, ZoneLayout::new(256).with_conventional(4)).check().unwrap_err();
        assert!(matches!(error, UblkError::AllConventional { zones: 4 }), "{error}");
        zoned(1024, ZoneLayout::new(256).with_conventional(3)).check().unwrap();
    }
}
