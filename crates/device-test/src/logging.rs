//! A device that logs its changes into a file.
//!
//! Locking rules: one lock, `log`, is held while an entry is written, and during a flush: a write that is not in the
//! log when a flush begins comes behind it. It is not held while a request runs.

use std::fmt;
use std::io::{self, Seek, SeekFrom, Write};

use f2fs_device::{
    AlignedBuf, BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, Op, Operation, Request,
    Ticket,
};
use f2fs_sync::Mutex;

use crate::Event;
use crate::write_log::{SECTOR, entry, superblock};

/// A device that logs each change as Linux's `log-writes` does, for
/// [`CrashLog::from_write_log`](crate::CrashLog::from_write_log) and for the tools of others. It serves one request of
/// a thread at a time.
///
/// A change that cannot be logged fails, after it was made. The log ends before it, and no change is made any more: each
/// fails with the same error. So the log never has a gap, nor a part of an entry that a reader takes for another, also if
/// its disk was full only for a while. An entry is in `out` when its change completes, so the
/// length of the log says what had happened ([`CrashLog::events_in`](crate::CrashLog::events_in)). The number of
/// entries in the log is brought up to date at each flush, and when the device is dropped: what a killed process leaves
/// is right up to its last flush.
///
/// ```
/// use std::fs::File;
///
/// use f2fs_device::{BlockDevice, MemoryDevice};
/// use f2fs_device_test::{CrashLog, LoggingDevice};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("log");
/// let device = LoggingDevice::new(MemoryDevice::new(64), File::create_new(&path)?)?;
/// device.write_slice(3, b"hello")?;
/// device.flush()?;
///
/// let log = CrashLog::from_write_log(File::open(&path)?, 64)?;
/// assert_eq!(log.events().len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct LoggingDevice<D, W: Write + Seek + Send + 'static> {
    inner: D,
    log: Mutex<Log<W>>,
}

impl<D: fmt::Debug, W: Write + Seek + Send + 'static> fmt::Debug for LoggingDevice<D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggingDevice").field("inner", &self.inner).finish_non_exhaustive()
    }
}

struct Log<W: Write + Seek> {
    out: W,
    /// Those that are whole.
    entries: u64,
    /// Why nothing is added any more: behind the last whole entry may be a part of another.
    closed: Option<DeviceErrorKind>,
}

impl<W: Write + Seek> Log<W> {
    /// Adds an entry. The first one that cannot be added is the end of the log.
    fn add(&mut self, event: &Event) -> Result<(), DeviceErrorKind> {
        self.expect_open()?;
        match self.append(event) {
            Ok(()) => Ok(()),
            Err(error) => {
                // What is whole is part of the log.
                let _ = self.publish();
                Err(self.close(&error))
            }
        }
    }

    fn expect_open(&self) -> Result<(), DeviceErrorKind> {
        self.closed.clone().map_or(Ok(()), Err)
    }

    /// Adds nothing any more.
    fn close(&mut self, error: &io::Error) -> DeviceErrorKind {
        let kind = DeviceErrorKind::from(error);
        self.closed = Some(kind.clone());
        kind
    }

    fn append(&mut self, event: &Event) -> io::Result<()> {
        self.out.write_all(&entry(event))?;
        if let Event::Write { data, .. } = event {
            self.out.write_all(data.as_bytes())?;
        }
        self.out.flush()?;
        self.entries += 1;
        Ok(())
    }

    /// Makes the entries so far part of the log, or else closes it: nobody knows where the next one would be written.
    fn publish_or_close(&mut self) -> Result<(), DeviceErrorKind> {
        self.publish().map_err(|error| self.close(&error))
    }

    /// Makes the entries so far part of the log.
    fn publish(&mut self) -> io::Result<()> {
        let end = self.out.stream_position()?;
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&superblock(self.entries))?;
        self.out.seek(SeekFrom::Start(end))?;
        self.out.flush()
    }
}

impl<W: Write + Seek> Drop for Log<W> {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.publish();
    }
}

impl<D: BlockDevice, W: Write + Seek + Send + 'static> LoggingDevice<D, W> {
    /// Logs the changes of `inner` into `out`, which is empty.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(inner: D, mut out: W) -> io::Result<LoggingDevice<D, W>> {
        out.write_all(&[0; SECTOR])?;
        let mut log = Log { out, entries: 0, closed: None };
        log.publish()?;
        Ok(LoggingDevice { inner, log: Mutex::new(log) })
    }

    fn add(&self, request: &Request) -> Result<(), DeviceErrorKind> {
        let event = match request.op {
            Op::Read => return Ok(()),
            Op::Discard { blocks } => Event::discard(request.start, blocks),
            op @ (Op::Write | Op::WriteFua) => {
                let mut data = AlignedBuf::default();
                for block in request.bufs.iter().flat_map(AlignedBuf::as_blocks) {
                    data.push(&block.0);
                }
                Event::write(request.start, data, op == Op::WriteFua)
            }
        };
        self.log.lock().add(&event)
    }
}

impl<D: BlockDevice, W: Write + Seek + Send + 'static> BlockDevice for LoggingDevice<D, W> {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn execute(&self, request: Request) -> Completion {
        if !matches!(request.op, Op::Read)
            && let Err(kind) = self.log.lock().expect_open()
        {
            let result = Err(request.error(kind));
            return Completion { request, result };
        }
        let mut completion = self.inner.execute(request);
        if completion.result.is_ok()
            && let Err(kind) = self.add(&completion.request)
        {
            completion.result = Err(completion.request.error(kind));
        }
        completion
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let failed = |kind| DeviceError::new(Operation::Flush, 0, 0, kind);
        let mut log = self.log.lock();
        log.expect_open().map_err(failed)?;
        self.inner.flush()?;
        log.add(&Event::Flush).and_then(|()| log.publish_or_close()).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::MemoryDevice;
    use f2fs_sync::PlainArc;
    use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::{CrashLog, FaultDevice, FaultRule, Random};

    #[test]
    fn a_log_replayed_is_the_device() {
        let mut file = tempfile::tempfile().unwrap();
        let live = PlainArc::new(MemoryDevice::new(64));
        let device = LoggingDevice::new(PlainArc::clone(&live), file.try_clone().unwrap()).unwrap();
        let mut random = Random::new(1);
        for n in 0..300_u64 {
            let start = random.below_u64(60);
            match random.below(10) {
                0 => device.flush().unwrap(),
                1 => device.discard(start, 2).unwrap(),
                2 => device.write_fua(start, AlignedBuf::from_bytes(&n.to_le_bytes())).unwrap(),
                _ => device.write_slice(start, &[n as u8; 8192]).unwrap(),
            }
        }
        drop(device);
        file.rewind().unwrap();
        let log = CrashLog::from_write_log(file, 64).unwrap();
        assert_eq!(log.events().len(), 300);
        let image = log.image_at(300, |_, _| true);
        assert_eq!(image.to_bytes(), live.to_bytes());
        // Behind a flush nothing can be lost.
        let flush = log.events().iter().rposition(|event| matches!(event, Event::Flush)).unwrap();
        let (lost, kept) = (log.image_at(flush + 1, |_, _| false), log.image_at(flush + 1, |_, _| true));
        assert_eq!(lost.to_bytes(), kept.to_bytes());
    }

    #[test]
    fn the_length_of_a_log_says_what_had_happened() {
        let mut file = tempfile::tempfile().unwrap();
        let base = MemoryDevice::new(64);
        base.write_slice(1, b"before").unwrap();
        let live = PlainArc::new(base.snapshot());
        let device = LoggingDevice::new(PlainArc::clone(&live), io::BufWriter::new(file.try_clone().unwrap())).unwrap();
        let length = || file.metadata().unwrap().len();
        let mut lengths = vec![length()];
        device.write_slice(3, &[7; 8192]).unwrap();
        lengths.push(length());
        device.discard(9, 2).unwrap();
        lengths.push(length());
        device.flush().unwrap();
        lengths.push(length());
        device.write_fua(5, AlignedBuf::from_bytes(b"x")).unwrap();
        lengths.push(length());
        drop(device);
        file.rewind().unwrap();
        let log = CrashLog::from_write_log_on(base, &file).unwrap();
        let events: Vec<usize> = lengths.iter().map(|bytes| log.events_in(*bytes)).collect();
        assert_eq!(events, [0, 1, 2, 3, 4]);
        assert_eq!((log.events_in(lengths[3] - 1), log.events_in(u64::MAX)), (2, 4));
        assert_eq!(log.image_at(4, |_, _| true).to_bytes(), live.to_bytes());
    }

    #[test]
    fn what_failed_is_not_in_the_log() {
        let mut file = tempfile::tempfile().unwrap();
        let faults = FaultDevice::new(PlainArc::new(MemoryDevice::new(64)));
        faults.arm("write,after=1".parse::<FaultRule>().unwrap());
        let device = LoggingDevice::new(faults, file.try_clone().unwrap()).unwrap();
        let results = [1, 2, 3].map(|block| device.write_slice(block, b"x").is_ok());
        assert_eq!(results, [true, false, true]);
        drop(device);
        file.rewind().unwrap();
        let log = CrashLog::from_write_log(file, 64).unwrap();
        assert_eq!(log.events().iter().map(Event::range).collect::<Vec<_>>(), [(1, 1), (3, 1)]);
    }

    /// A file on a file system that is full behind so many bytes. It takes a part of what does not fit, as Linux does.
    struct Full(std::fs::File, PlainArc<AtomicU64>);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.1.load(Relaxed).saturating_sub(self.0.stream_position()?);
            match bytes.len().min(room as usize) {
                0 if !bytes.is_empty() => Err(io::Error::from_raw_os_error(28)),
                fits => self.0.write(&bytes[..fits]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    /// The log has what came before, and no more once there is space again: a part of an entry stands there.
    #[test]
    fn a_change_that_cannot_be_logged_ends_the_log() {
        // Full in the middle of an entry's data, between the entry and its data, in the entry, and between two.
        for room in [6000, 5632, 5300, 5120] {
            for buffered in [false, true] {
                let mut file = tempfile::tempfile().unwrap();
                let limit = PlainArc::new(AtomicU64::new(room));
                let full = Full(file.try_clone().unwrap(), limit.clone());
                let live = PlainArc::new(MemoryDevice::new(64));
                let device: Box<dyn BlockDevice> = if buffered {
                    Box::new(LoggingDevice::new(live.clone(), io::BufWriter::new(full)).unwrap())
                } else {
                    Box::new(LoggingDevice::new(live.clone(), full).unwrap())
                };
                device.write_slice(1, b"logged").unwrap();
                let no_space = DeviceErrorKind::from_errno(28);
                assert_eq!(device.write_slice(2, &[0xee; 8192]).unwrap_err().kind, no_space);
                limit.store(u64::MAX, Relaxed);
                assert_eq!(device.write_slice(4, b"x").unwrap_err().kind, no_space);
                assert_eq!(device.discard(1, 1).unwrap_err().kind, no_space);
                assert_eq!(device.flush().unwrap_err().kind, no_space);
                // What was refused was not done, and reads go on.
                assert_eq!(device.read(4, 1).unwrap().as_bytes()[0], 0);
                assert_eq!(device.read(1, 1).unwrap().as_bytes()[..6], *b"logged");
                drop(device);
                file.rewind().unwrap();
                let log = CrashLog::from_write_log(&file, 64).unwrap();
                assert_eq!(log.events().iter().map(Event::range).collect::<Vec<_>>(), [(1, 1)], "{room}");
                assert_eq!(log.events_in(file.metadata().unwrap().len()), 1);
            }
        }
    }

    /// The number of entries could not be written: nothing is written over those that are there.
    #[test]
    fn a_log_whose_head_cannot_be_written_ends() {
        let file = tempfile::tempfile().unwrap();
        let limit = PlainArc::new(AtomicU64::new(u64::MAX));
        let full = Full(file.try_clone().unwrap(), limit.clone());
        let mut log = Log { out: full, entries: 0, closed: None };
        log.out.write_all(&[0; SECTOR]).unwrap();
        log.add(&Event::discard(1, 1)).unwrap();
        limit.store(0, Relaxed);
        let no_space = Err(DeviceErrorKind::from_errno(28));
        assert_eq!(log.publish_or_close(), no_space);
        limit.store(u64::MAX, Relaxed);
        assert_eq!(log.add(&Event::discard(2, 1)), no_space);
        drop(log);
        (&file).rewind().unwrap();
        let log = CrashLog::from_write_log(&file, 64).unwrap();
        assert_eq!(log.events().iter().map(Event::range).collect::<Vec<_>>(), [(1, 1)]);
    }
}
