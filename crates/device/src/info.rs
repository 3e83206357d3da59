//! A device's description: size, alignment, abilities.

use crate::{BLOCK_SIZE, DeviceError, DeviceErrorKind, Op, Operation, Request, ZoneLimits};

/// The facts of an open device; they do not change while it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Size in whole blocks of 4096 bytes. A tail shorter than a block does not count.
    pub blocks: u64,
    /// Bytes of a logical sector: the smallest unit that the medium itself can write (512 or 4096).
    pub logical_sector: u32,
    /// Bytes to which memory must be aligned for direct transfers. [`AlignedBuf`](crate::AlignedBuf) always satisfies
    /// it.
    pub dma_alignment: u32,
    /// Bytes of a transfer that the device likes best, a multiple of 4096.
    pub optimal_io: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether [`Op::Discard`] does something. Where it is false a discard fails with [`DeviceErrorKind::Unsupported`].
    pub supports_discard: bool,
    /// Of a device that is made of several: of each, the blocks that are used, and the blocks that it has. Empty for
    /// any other.
    pub parts: Vec<(u64, u64)>,
    /// The limits of all zones of a device that has some; see [`report_zones`](crate::BlockDevice::report_zones). For a
    /// device made of several: the limits of those of its devices that have zones.
    pub zones: Option<ZoneLimits>,
    /// For people: the back end, how it was opened, and the path.
    pub description: String,
}

impl DeviceInfo {
    /// A writable device of `blocks` blocks with 4096-byte sectors and no discard.
    #[must_use]
    pub fn new(blocks: u64, description: impl Into<String>) -> Self {
        Self {
            blocks,
            logical_sector: BLOCK_SIZE as u32,
            dma_alignment: BLOCK_SIZE as u32,
            optimal_io: BLOCK_SIZE as u32,
            read_only: false,
            supports_discard: false,
            parts: Vec::new(),
            zones: None,
            description: description.into(),
        }
    }

    /// The properties of this device and another one together; `None` if they have zones of different sizes. The size
    /// is this one's.
    pub(crate) fn beside(self, other: &Self) -> Option<Self> {
        let zones = match (self.zones, other.zones) {
            (Some(one), Some(other)) => Some(one.beside(other)?),
            (one, other) => one.or(other),
        };
        Some(Self {
            blocks: self.blocks,
            logical_sector: self.logical_sector.max(other.logical_sector),
            dma_alignment: self.dma_alignment.max(other.dma_alignment),
            optimal_io: self.optimal_io.max(other.optimal_io),
            read_only: self.read_only || other.read_only,
            supports_discard: self.supports_discard && other.supports_discard,
            parts: Vec::new(),
            zones,
            description: format!("{} + {}", self.description, other.description),
        })
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(BLOCK_SIZE as u64)
    }

    /// Checks a request against the size and the abilities of the device, which every back end does before any I/O.
    ///
    /// # Errors
    /// [`DeviceErrorKind::OutOfRange`], [`DeviceErrorKind::ReadOnly`], [`DeviceErrorKind::Unsupported`] or
    /// [`DeviceErrorKind::Malformed`].
    pub fn check(&self, request: &Request) -> Result<(), DeviceError> {
        let (operation, blocks) = (request.op.operation(), request.blocks());
        if matches!(request.op, Op::Discard { .. }) && !request.bufs.is_empty() {
            let kind = DeviceErrorKind::Malformed { reason: "a discard carries no buffers" };
            return Err(DeviceError::new(operation, request.start, blocks, kind));
        }
        self.check_operation(operation, request.start, blocks)
    }

    /// Checks that the device can do this with `blocks` blocks at `start`.
    ///
    /// # Errors
    /// [`DeviceErrorKind::OutOfRange`], [`DeviceErrorKind::ReadOnly`] or [`DeviceErrorKind::Unsupported`].
    #[inline]
    pub fn check_operation(&self, operation: Operation, start: u64, blocks: u64) -> Result<(), DeviceError> {
        let refuse = |kind| Err(DeviceError::new(operation, start, blocks, kind));
        self.check_range(operation, start, blocks)?;
        if self.read_only && operation.changes() {
            return refuse(DeviceErrorKind::ReadOnly);
        }
        if operation == Operation::Discard && !self.supports_discard {
            return refuse(DeviceErrorKind::Unsupported);
        }
        Ok(())
    }

    /// Checks that `blocks` blocks at `start` lie inside the device.
    ///
    /// # Errors
    /// [`DeviceErrorKind::OutOfRange`] with the size of the device.
    pub fn check_range(&self, operation: Operation, start: u64, blocks: u64) -> Result<(), DeviceError> {
        match start.checked_add(blocks) {
            Some(end) if end <= self.blocks => Ok(()),
            _ => Err(DeviceError::new(
                operation,
                start,
                blocks,
                DeviceErrorKind::OutOfRange { device_blocks: self.blocks },
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AlignedBuf;

    fn kind(info: &DeviceInfo, request: &Request) -> Option<DeviceErrorKind> {
        info.check(request).err().map(|e| e.kind)
    }

    #[test]
    fn ranges_are_checked_without_overflow() {
        let info = DeviceInfo::new(10, "test");
        let outside = Some(DeviceErrorKind::OutOfRange { device_blocks: 10 });
        for (start, blocks, expected) in [
            (0, 10, None),
            (9, 1, None),
            (10, 0, None),
            (9, 2, outside.clone()),
            (10, 1, outside.clone()),
            (u64::MAX, 1, outside.clone()),
            (u64::MAX, 0, outside),
        ] {
            assert_eq!(kind(&info, &Request::read(start, AlignedBuf::new(blocks))), expected, "{start}+{blocks}");
        }
        assert_eq!(info.bytes(), 40960);
    }

    #[test]
    fn abilities_are_checked() {
        let mut info = DeviceInfo::new(10, "test");
        assert_eq!(kind(&info, &Request::discard(0, 1)), Some(DeviceErrorKind::Unsupported));
        info.supports_discard = true;
        assert_eq!(kind(&info, &Request::discard(0, 1)), None);
        info.read_only = true;
        assert_eq!(kind(&info, &Request::discard(0, 1)), Some(DeviceErrorKind::ReadOnly));
        assert_eq!(kind(&info, &Request::write(0, AlignedBuf::new(1))), Some(DeviceErrorKind::ReadOnly));
        assert_eq!(kind(&info, &Request::read(0, AlignedBuf::new(1))), None);
    }
}
