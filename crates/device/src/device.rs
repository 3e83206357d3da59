//! The trait `BlockDevice`, on which every engine stands.

use std::{fmt, mem, os::fd::BorrowedFd};

use f2fs_sync::PlainArc;

use crate::{
    AlignedBuf, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, IoQueue, Operation, Request, Ticket,
    TicketQueue, Zone, ZoneChange,
};

/// A block device: a flat array of 4096-byte blocks, used by any number of threads at once.
///
/// The crate documentation says what a device promises about ownership, order, durability and poison.
pub trait BlockDevice: fmt::Debug + Send + Sync + 'static {
    /// The device's description: size, alignment, abilities.
    fn info(&self) -> &DeviceInfo;

    /// The claims to the device in this process. It is the same object at every call; a wrapper returns that of the
    /// device which it wraps.
    fn claims(&self) -> &Claims;

    /// Starts a batch of requests, without waiting for them where the back end can. Requests of a batch may run in any
    /// order and at the same time.
    ///
    /// Errors come with each request's completion: out of range, read-only, poisoned, or what the device said.
    fn submit(&self, requests: Vec<Request>) -> Ticket;

    /// Makes every write that completed before this call durable.
    ///
    /// # Errors
    /// The error of the device. From then on the device is poisoned: writes, discards and flushes fail with
    /// [`Poisoned`](crate::DeviceErrorKind::Poisoned) until it is opened again.
    fn flush(&self) -> Result<(), DeviceError>;

    /// The zones from the one on that has block `start`, as they are now, in their order, so many at most. There are
    /// none behind the device, and none at all on a device without zones. Of a device that is made of several, those
    /// without zones are passed over.
    ///
    /// # Errors
    /// The error of the device.
    fn report_zones(&self, _start: u64, _count: usize) -> Result<Vec<Zone>, DeviceError> {
        Ok(Vec::new())
    }

    /// Changes the state of the zone that begins at block `start`.
    ///
    /// # Errors
    /// Refusals of the zone and whatever the device said; [`Unsupported`](crate::DeviceErrorKind::Unsupported) where
    /// there are no zones.
    fn change_zone(&self, start: u64, _change: ZoneChange) -> Result<(), DeviceError> {
        Err(DeviceError::new(Operation::ChangeZone, start, 0, DeviceErrorKind::Unsupported))
    }

    /// Runs one request and waits for it. A back end that breaks the promise of [`Ticket`] and completes nothing gives
    /// [`Lost`](DeviceErrorKind::Lost), and a request of no blocks; one that gives back other buffers,
    /// [`OtherBuffers`](DeviceErrorKind::OtherBuffers).
    fn execute(&self, request: Request) -> Completion {
        let (op, start, blocks) = (request.op, request.start, request.blocks());
        let lost = request.error(DeviceErrorKind::Lost);
        let nothing = || Completion { request: Request::vectored(op, start, Vec::new()), result: Err(lost) };
        self.submit(vec![request]).wait().into_iter().next().unwrap_or_else(nothing).checked(blocks)
    }

    /// Runs a batch and waits for all of it: the completions of the requests, in their order.
    ///
    /// # Errors
    /// [`Lost`](DeviceErrorKind::Lost), with the place of the first request, of a back end that breaks the promise of
    /// [`Ticket`] and does not answer each. How those went that it answers is in their completions; one that gives back
    /// other buffers is [`OtherBuffers`](DeviceErrorKind::OtherBuffers).
    fn execute_all(&self, requests: Vec<Request>) -> Result<Vec<Completion>, DeviceError> {
        let Some(lost) = requests.first().map(|first| first.error(DeviceErrorKind::Lost)) else {
            return Ok(Vec::new());
        };
        // How many blocks each has, until it is answered.
        let mut all: Vec<Result<Completion, u64>> = requests.iter().map(|request| Err(request.blocks())).collect();
        let answered = self.submit(requests).wait_each(all.len(), |index, completion| {
            if let Err(blocks) = all[index] {
                all[index] = Ok(completion.checked(blocks));
            }
        });
        if !answered {
            return Err(lost);
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// A queue for one thread that keeps up to `depth` requests in flight (at least 1).
    fn queue(&self, depth: usize) -> Box<dyn IoQueue + '_> {
        Box::new(TicketQueue::new(self, depth))
    }

    /// The file whose bytes are the device's, each at the same place. Whoever has a ring may read it there, or write it,
    /// in place of a request to the device. It is asked for before each transfer: a device that takes no more writes has
    /// no file for them. Durable writes, flushes and discards are the device's alone. If a transfer fails, the device
    /// is asked for the same, and its error says why.
    fn file(&self, _operation: Operation) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether each transfer is done by the thread that asks for it, as a copy in memory is, so that a queue gains
    /// nothing over [`read_into`](Self::read_into) and [`write_from`](Self::write_from).
    fn is_immediate(&self) -> bool {
        false
    }

    /// Whether a flush waits for nothing, as a fence between stores to memory does, so that threads gain nothing by
    /// sharing one.
    fn flushes_at_once(&self) -> bool {
        false
    }

    /// Reads `blocks` blocks from `start` into a new buffer.
    ///
    /// # Errors
    /// Errors of a read; an out-of-range read allocates nothing.
    fn read(&self, start: u64, blocks: usize) -> Result<AlignedBuf, DeviceError> {
        self.info().check_range(Operation::Read, start, blocks as u64)?;
        let mut buf = AlignedBuf::new(blocks);
        self.read_into(start, &mut buf)?;
        Ok(buf)
    }

    /// Reads `buf.blocks()` blocks from `start` into `buf`, whose memory is lent to the device meanwhile.
    ///
    /// # Errors
    /// Errors of a read; the content of `buf` is then undefined.
    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let mut completion = self.execute(Request::read(start, mem::take(buf)));
        *buf = completion.request.bufs.pop().unwrap_or_default();
        completion.result
    }

    /// Writes `buf` to `start`.
    ///
    /// # Errors
    /// Errors of a write.
    fn write(&self, start: u64, buf: AlignedBuf) -> Result<(), DeviceError> {
        self.execute(Request::write(start, buf)).result
    }

    /// Writes `buf` to `start` and leaves it with the caller; its memory is lent to the device meanwhile.
    ///
    /// # Errors
    /// Errors of a write.
    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let mut completion = self.execute(Request::write(start, mem::take(buf)));
        *buf = completion.request.bufs.pop().unwrap_or_default();
        completion.result
    }

    /// Writes a copy of `bytes`, zero padded to whole blocks, to `start`.
    ///
    /// # Errors
    /// Errors of a write.
    fn write_slice(&self, start: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.write(start, AlignedBuf::from_bytes(bytes))
    }

    /// Writes `buf` to `start`; it is durable on return. Other writes are not.
    ///
    /// # Errors
    /// Errors of a write. A durable write that failed in the device poisons it, as a failed flush does.
    fn write_fua(&self, start: u64, buf: AlignedBuf) -> Result<(), DeviceError> {
        self.execute(Request::write_fua(start, buf)).result
    }

    /// Gives `blocks` blocks from `start` back to the device.
    ///
    /// # Errors
    /// Errors of a discard; [`Unsupported`](crate::DeviceErrorKind::Unsupported) where
    /// [`supports_discard`](DeviceInfo::supports_discard) is false.
    fn discard(&self, start: u64, blocks: u64) -> Result<(), DeviceError> {
        self.execute(Request::discard(start, blocks)).result
    }
}

impl<D: BlockDevice + ?Sized> BlockDevice for PlainArc<D> {
    fn info(&self) -> &DeviceInfo {
        (**self).info()
    }

    fn claims(&self) -> &Claims {
        (**self).claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        (**self).submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        (**self).flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        (**self).report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        (**self).change_zone(start, change)
    }

    fn execute(&self, request: Request) -> Completion {
        (**self).execute(request)
    }

    fn queue(&self, depth: usize) -> Box<dyn IoQueue + '_> {
        (**self).queue(depth)
    }

    fn file(&self, operation: Operation) -> Option<BorrowedFd<'_>> {
        (**self).file(operation)
    }

    fn is_immediate(&self) -> bool {
        (**self).is_immediate()
    }

    fn flushes_at_once(&self) -> bool {
        (**self).flushes_at_once()
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        (**self).read_into(start, buf)
    }

    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        (**self).write_from(start, buf)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A back end that drops its requests.
    #[derive(Debug)]
    pub(crate) struct Forgetful(DeviceInfo, Claims);

    impl Forgetful {
        pub(crate) fn new() -> Forgetful {
            Forgetful(DeviceInfo::new(100, "forgetful"), Claims::new())
        }
    }

    impl BlockDevice for Forgetful {
        fn info(&self) -> &DeviceInfo {
            &self.0
        }

        fn claims(&self) -> &Claims {
            &self.1
        }

        fn submit(&self, _requests: Vec<Request>) -> Ticket {
            Ticket::ready(Vec::new())
        }

        fn flush(&self) -> Result<(), DeviceError> {
            Ok(())
        }
    }

    #[test]
    fn lost_requests_are_errors() {
        let device = Forgetful::new();
        let lost = DeviceError::new(Operation::Write, 7, 2, DeviceErrorKind::Lost);
        assert_eq!(device.write(7, AlignedBuf::new(2)).unwrap_err(), lost);
        assert_eq!(lost.to_string(), "write of 2 blocks at block 7: the device lost the request");
        assert_eq!(device.read(3, 1).unwrap_err().kind, DeviceErrorKind::Lost);
        let both = vec![Request::write(7, AlignedBuf::new(2)), Request::read(3, AlignedBuf::new(1))];
        assert_eq!(device.execute_all(both).unwrap_err(), lost);
        assert!(device.execute_all(Vec::new()).is_ok_and(|none| none.is_empty()));
    }
}
