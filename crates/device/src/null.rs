//! A device that moves nothing.
//!
//! No locks: what it has does not change.

use crate::{AlignedBuf, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Operation, Request, Ticket};

/// A device that keeps nothing. A write is over at once and its data are gone; a read is over at once and leaves the
/// buffer as it is.
///
/// It is the floor of a measurement: what a request costs that is carried to a device and back, without a device. Linux
/// has `null_blk` for that. No file system can live on it.
///
/// ```
/// use f2fs_device::{BlockDevice, NullDevice};
///
/// # fn main() -> Result<(), f2fs_device::DeviceError> {
/// let device = NullDevice::new(1 << 50); // no memory, whatever the size
/// device.write_slice(7, b"lost")?;
/// assert_eq!(device.read(7, 1)?.as_bytes()[..4], [0; 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NullDevice {
    info: DeviceInfo,
    claims: Claims,
}

impl NullDevice {
    /// A device of `blocks` blocks.
    #[must_use]
    pub fn new(blocks: u64) -> Self {
        let mut info = DeviceInfo::new(blocks, format!("nothing, {blocks} blocks"));
        info.supports_discard = true;
        info.logical_sector = 512;
        Self { info, claims: Claims::new() }
    }
}

impl BlockDevice for NullDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn execute(&self, request: Request) -> Completion {
        let result = self.info.check(&request);
        Completion { request, result }
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        self.info.check_range(Operation::Read, start, buf.blocks() as u64)
    }

    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        self.info.check_range(Operation::Write, start, buf.blocks() as u64)
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn flushes_at_once(&self) -> bool {
        true
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;

    #[test]
    fn transfers_are_over_at_once_and_move_nothing() {
        let device = NullDevice::new(u64::MAX >> 12);
        let mut buf = AlignedBuf::new(2);
        buf.as_bytes_mut().fill(7);
        device.write_from(5, &mut buf).unwrap();
        device.read_into(5, &mut buf).unwrap();
        assert!(buf.as_bytes().iter().all(|byte| *byte == 7), "as it was");
        let requests = vec![Request::write(1, buf), Request::discard(0, 9), Request::read(3, AlignedBuf::new(1))];
        assert!(device.submit(requests).wait().into_iter().all(|done| done.result.is_ok()));
        device.flush().unwrap();
    }

    #[test]
    fn what_lies_behind_the_end_is_an_error() {
        let device = NullDevice::new(8);
        let mut buf = AlignedBuf::new(2);
        assert!(device.read_into(7, &mut buf).is_err() && device.write_from(u64::MAX, &mut buf).is_err());
        for request in [Request::write(7, AlignedBuf::new(2)), Request::discard(8, 1), Request::read(9, buf)] {
            assert!(device.execute(request).result.is_err());
        }
    }
}
