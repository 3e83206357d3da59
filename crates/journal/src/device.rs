//! A journal on a block device.

use f2fs_device::{AlignedBuf, AlreadyOpen, BLOCK_SIZE, BlockDevice, Claim, Claims};

use crate::{Gather, Medium, MediumError};

/// A block device as a medium. Its grain is a block. A record that lies in one piece is one durable write; what lies in
/// several is written, and then flushed.
///
/// It claims the device as its only user. Each write takes a buffer from the allocator.
#[derive(Debug)]
pub struct DeviceMedium<D> {
    device: D,
    _claim: Claim,
    claims: Claims,
}

impl<D: BlockDevice> DeviceMedium<D> {
    /// The device as a medium.
    ///
    /// # Errors
    /// Somebody uses the device.
    pub fn new(device: D) -> Result<Self, AlreadyOpen> {
        let claim = device.claims().exclusive("journal")?;
        Ok(DeviceMedium { device, _claim: claim, claims: Claims::new() })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }
}

fn gathered(bytes: Gather<'_>) -> AlignedBuf {
    let mut buf = AlignedBuf::new(bytes.len().div_ceil(BLOCK_SIZE));
    let mut at = 0;
    for slice in bytes.slices() {
        buf.as_bytes_mut()[at..at + slice.len()].copy_from_slice(slice);
        at += slice.len();
    }
    buf
}

impl<D: BlockDevice> Medium for DeviceMedium<D> {
    fn grain(&self) -> usize {
        BLOCK_SIZE
    }

    fn bytes(&self) -> u64 {
        self.device.info().bytes()
    }

    fn read_only(&self) -> bool {
        self.device.info().read_only
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let buf = self.device.read(offset / BLOCK_SIZE as u64, into.len().div_ceil(BLOCK_SIZE))?;
        into.copy_from_slice(&buf.as_bytes()[..into.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        Ok(self.device.write(offset / BLOCK_SIZE as u64, gathered(bytes))?)
    }

    fn persist(&self) -> Result<(), MediumError> {
        Ok(self.device.flush()?)
    }

    fn write_durably(&self, offset: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        Ok(self.device.write_fua(offset / BLOCK_SIZE as u64, gathered(bytes))?)
    }
}
