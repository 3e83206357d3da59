//! A device that fails on command.
//!
//! Locking rules: `state` counts operations and picks faults; it is not held during I/O.

mod plan;

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, Claims, Completion, DeviceError, DeviceErrorKind, DeviceInfo, FlushGate, Op,
    Operation, Request, Ticket, Zone, ZoneChange,
};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Mutex, PlainArc};

pub use plan::ParseFaultError;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done and the operation fails with this error number.
    Error(i32),
    /// The first so many blocks of a write are written, then it fails with `EIO`. Other operations just fail.
    Torn(u64),
    /// Nothing is done and the operation claims success: a write or flush that the device forgot. A lost read leaves
    /// the buffer as it was.
    Lost,
    /// The first so many blocks are transferred, then the operation fails as a transfer that stopped early. Discards
    /// and flushes fail with `EIO`.
    Short(u64),
    /// A write goes so many blocks further (backwards, if negative; round and round the device) and claims success.
    /// Other operations are done as they should be.
    Misdirected(i64),
    /// A read succeeds with this bit of it flipped, taken modulo its bits. Other operations are done as they should be.
    Flipped(u64),
    /// Nothing is done and nobody answers: the batch has a completion less. A flush fails with
    /// [`DeviceErrorKind::Lost`].
    Unanswered,
    /// Nothing is done and the operation panics.
    Panic,
}

/// `EIO`, what a broken medium says.
const EIO: i32 = 5;

/// Which operations go wrong, and how.
///
/// ```
/// use f2fs_device::Operation;
/// use f2fs_device_test::{Fault, FaultRule};
///
/// // The fourth write, and only that, fails with ENOSPC.
/// let rule = FaultRule::on([Operation::Write]).after(3).fault(Fault::Error(28));
/// // Every operation from the hundredth on fails with EIO: the device was unplugged.
/// let unplugged = FaultRule::on_all().after(99).for_good();
/// ```
#[derive(Clone, Debug)]
pub struct FaultRule {
    operations: Vec<Operation>,
    after: u64,
    for_good: bool,
    fault: Fault,
}

impl FaultRule {
    /// The next one of `operations` fails with `EIO`, once.
    #[must_use]
    pub fn on(operations: impl IntoIterator<Item = Operation>) -> Self {
        Self { operations: operations.into_iter().collect(), after: 0, for_good: false, fault: Fault::Error(EIO) }
    }

    /// The next operation of any kind fails with `EIO`, once.
    #[must_use]
    pub fn on_all() -> Self {
        use Operation::{ChangeZone, Discard, Flush, Read, ReportZones, Write, WriteFua};
        Self::on([Read, Write, WriteFua, Discard, Flush, ReportZones, ChangeZone])
    }

    /// The next operation of any kind but a read fails with `EIO`, once.
    #[must_use]
    pub fn on_changes() -> Self {
        use Operation::{ChangeZone, Discard, Flush, Write, WriteFua};
        Self::on([Write, WriteFua, Discard, Flush, ChangeZone])
    }

    /// Lets `count` matching operations pass first.
    #[must_use]
    pub fn after(self, count: u64) -> Self {
        Self { after: count, ..self }
    }

    /// All matching operations from the first failing one on fail.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { for_good: true, ..self }
    }

    /// The fault, instead of `EIO`.
    #[must_use]
    pub fn fault(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }
}

/// A device that fails where its rules say, and keeps the promises of a device otherwise: a flush that fails poisons
/// it.
#[derive(Debug)]
pub struct FaultDevice {
    inner: PlainArc<dyn BlockDevice>,
    state: PlainArc<Mutex<State>>,
    own_faults: AtomicU64,
    gate: FlushGate,
}

#[derive(Debug, Default)]
struct State {
    operations: u64,
    changes: u64,
    faults: u64,
    rules: Vec<FaultRule>,
}

impl State {
    /// Counts an operation and returns its fault, if it has one.
    fn next(&mut self, operation: Operation) -> Option<Fault> {
        self.operations += 1;
        self.changes += u64::from(operation.changes());
        let mut fault = None;
        self.rules.retain_mut(|rule| {
            if !rule.operations.contains(&operation) {
                return true;
            }
            if rule.after > 0 {
                rule.after -= 1;
                return true;
            }
            if fault.is_some() {
                return true;
            }
            fault = Some(rule.fault);
            rule.for_good
        });
        self.faults += u64::from(fault.is_some());
        fault
    }
}

impl FaultDevice {
    /// Wraps `inner`; without rules nothing fails.
    #[must_use]
    pub fn new(inner: PlainArc<dyn BlockDevice>) -> Self {
        Self { inner, state: PlainArc::default(), own_faults: AtomicU64::new(0), gate: FlushGate::new() }
    }

    /// Another device that shares the rules and counts of this one: an operation on either is the next one. A rule that
    /// fails for good takes both away.
    #[must_use]
    pub fn beside(&self, inner: PlainArc<dyn BlockDevice>) -> Self {
        Self { inner, state: self.state.clone(), own_faults: AtomicU64::new(0), gate: FlushGate::new() }
    }

    /// Adds a rule; it counts operations from now on. Where several rules meet, the first added wins.
    pub fn arm(&self, rule: FaultRule) {
        self.state.lock().rules.push(rule);
    }

    /// Removes all rules. Poison stays.
    pub fn disarm(&self) {
        self.state.lock().rules.clear();
    }

    /// How many operations (requests and flushes) were begun so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// How many operations other than reads were begun so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// How many operations failed, were torn or were lost so far.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.state.lock().faults
    }

    /// The same of this device alone, without those [`beside`](Self::beside) it.
    #[must_use]
    pub fn own_faults(&self) -> u64 {
        self.own_faults.load(Ordering::Relaxed)
    }

    /// Counts an operation and returns its fault, if it has one.
    fn next(&self, operation: Operation) -> Option<Fault> {
        let fault = self.state.lock().next(operation);
        self.own_faults.fetch_add(fault.is_some().into(), Ordering::Relaxed);
        fault
    }

    fn fail(&self, request: &Request, fault: Fault) -> Result<(), DeviceError> {
        let kind = match fault {
            Fault::Lost => return Ok(()),
            Fault::Error(errno) => DeviceErrorKind::from_errno(errno),
            Fault::Torn(blocks) => {
                if matches!(request.op, Op::Write | Op::WriteFua) {
                    self.write_part(request, blocks)?;
                }
                DeviceErrorKind::from_errno(EIO)
            }
            Fault::Short(blocks) => match request.op {
                Op::Write | Op::WriteFua => {
                    self.write_part(request, blocks)?;
                    short(request, blocks)
                }
                Op::Read => short(request, blocks),
                Op::Discard { .. } => DeviceErrorKind::from_errno(EIO),
            },
            Fault::Misdirected(_) | Fault::Flipped(_) => return Ok(()),
            Fault::Unanswered => DeviceErrorKind::Lost,
            Fault::Panic => panics(request.op.operation()),
        };
        if request.op == Op::WriteFua {
            self.gate.poison(&kind);
        }
        Err(request.error(kind))
    }

    /// Does something about zones, unless it is to fail. A fault without an error is one of `EIO` here.
    fn zones<T>(
        &self,
        operation: Operation,
        start: u64,
        run: impl FnOnce() -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let fault = self.next(operation);
        let errno = match fault {
            None => return run(),
            Some(Fault::Error(errno)) => errno,
            Some(Fault::Panic) => panics(operation),
            Some(_) => EIO,
        };
        Err(DeviceError::new(operation, start, 0, DeviceErrorKind::from_errno(errno)))
    }

    /// Writes somewhere else.
    fn misdirect(&self, mut request: Request, offset: i64) -> Completion {
        if !matches!(request.op, Op::Write | Op::WriteFua) {
            return self.inner.execute(request);
        }
        let room = (self.info().blocks - request.blocks()).max(1) as i64;
        let start = request.start;
        request.start = (start as i64).wrapping_add(offset).rem_euclid(room) as u64;
        let mut completion = self.inner.execute(request);
        completion.request.start = start;
        completion
    }

    fn flip(&self, request: Request, bit: u64) -> Completion {
        let mut completion = self.inner.execute(request);
        if completion.request.op == Op::Read && completion.result.is_ok() {
            let bits = completion.request.blocks() * 8 * BLOCK_SIZE as u64;
            let mut byte = (bit % bits.max(1) / 8) as usize;
            for buf in &mut completion.request.bufs {
                let bytes = buf.as_bytes_mut();
                if let Some(byte) = bytes.get_mut(byte) {
                    *byte ^= 1 << (bit % 8);
                    break;
                }
                byte -= bytes.len();
            }
        }
        completion
    }

    fn write_part(&self, request: &Request, blocks: u64) -> Result<(), DeviceError> {
        let mut part = AlignedBuf::default();
        for buf in &request.bufs {
            for block in buf.as_blocks() {
                if (part.blocks() as u64) < blocks {
                    part.push(&block.0);
                }
            }
        }
        self.inner.write(request.start, part)
    }
}

fn panics(operation: Operation) -> ! {
    panic!("the device panics in a {operation}")
}

/// The error of a transfer that stopped after `blocks` blocks.
fn short(request: &Request, blocks: u64) -> DeviceErrorKind {
    let bytes = |blocks: u64| blocks * BLOCK_SIZE as u64;
    let transferred = bytes(blocks.min(request.blocks().saturating_sub(1)));
    DeviceErrorKind::ShortTransfer { transferred, expected: bytes(request.blocks()) }
}

impl BlockDevice for FaultDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let is_answered =
            |done: &Completion| !matches!(&done.result, Err(error) if error.kind == DeviceErrorKind::Lost);
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).filter(is_answered).collect())
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.zones(Operation::ReportZones, start, || self.inner.report_zones(start, count))
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        let refused = |kind| DeviceError::new(Operation::ChangeZone, start, 0, kind);
        self.gate.check().map_err(refused)?;
        self.zones(Operation::ChangeZone, start, || self.inner.change_zone(start, change))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.gate.flush(|| {
            let fault = self.next(Operation::Flush);
            match fault {
                None => self.inner.flush().map_err(|error| error.kind),
                Some(Fault::Lost) => Ok(()),
                Some(Fault::Error(errno)) => Err(DeviceErrorKind::from_errno(errno)),
                Some(Fault::Torn(_) | Fault::Short(_)) => Err(DeviceErrorKind::from_errno(EIO)),
                Some(Fault::Unanswered) => Err(DeviceErrorKind::Lost),
                Some(Fault::Panic) => panics(Operation::Flush),
                Some(Fault::Misdirected(_) | Fault::Flipped(_)) => self.inner.flush().map_err(|error| error.kind),
            }
        })
    }

    fn execute(&self, request: Request) -> Completion {
        let operation = request.op.operation();
        if let Err(error) = self.info().check(&request) {
            return Completion { request, result: Err(error) };
        }
        if operation.changes()
            && let Err(kind) = self.gate.check()
        {
            let result = Err(request.error(kind));
            return Completion { request, result };
        }
        let fault = self.next(operation);
        match fault {
            None => self.inner.execute(request),
            Some(Fault::Misdirected(offset)) => self.misdirect(request, offset),
            Some(Fault::Flipped(bit)) => self.flip(request, bit),
            Some(fault) => {
                let result = self.fail(&request, fault);
                Completion { request, result }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs_device::MemoryDevice;

    fn device() -> FaultDevice {
        FaultDevice::new(PlainArc::new(MemoryDevice::new(16)))
    }

    #[test]
    fn the_nth_write_fails_once() {
        let device = device();
        device.arm(FaultRule::on([Operation::Write]).after(2).fault(Fault::Error(28)));
        let results: Vec<bool> = (0..5).map(|i| device.write_slice(i, &[i as u8 + 1]).is_ok()).collect();
        assert_eq!(results, [true, true, false, true, true]);
        let first = |i| device.read(i, 1).unwrap().as_bytes()[0];
        assert_eq!([first(1), first(2), first(3)], [2, 0, 4]);
        assert_eq!((device.operations(), device.changes(), device.faults()), (8, 5, 1));
    }

    #[test]
    fn for_good_is_for_good() {
        let device = device();
        device.arm(FaultRule::on_all().after(1).for_good());
        device.write_slice(0, b"a").unwrap();
        for _ in 0..3 {
            assert_eq!(device.read(0, 1).unwrap_err().kind, DeviceErrorKind::from_errno(EIO));
        }
        device.disarm();
        device.read(0, 1).unwrap();
    }

    #[test]
    fn torn_and_lost_writes() {
        let device = device();
        device.arm(FaultRule::on([Operation::Write]).fault(Fault::Torn(2)));
        device.arm(FaultRule::on([Operation::Write]).after(1).fault(Fault::Lost));
        device.write(4, AlignedBuf::from_bytes(&[1; 4 * 4096])).unwrap_err();
        device.write(8, AlignedBuf::from_bytes(&[1; 4 * 4096])).unwrap();
        let bytes = device.read(0, 16).unwrap();
        assert_eq!((4..12).map(|i| bytes.block(i)[0]).collect::<Vec<_>>(), [1, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn transfers_stop_early_go_astray_and_flip_bits() {
        let device = device();
        let short = DeviceErrorKind::ShortTransfer { transferred: 4096, expected: 3 * 4096 };
        device.arm(FaultRule::on([Operation::Write]).fault(Fault::Short(1)));
        assert_eq!(device.write(4, AlignedBuf::from_bytes(&[1; 3 * 4096])).unwrap_err().kind, short);
        device.arm(FaultRule::on([Operation::Read]).fault(Fault::Short(1)));
        assert_eq!(device.read(4, 3).unwrap_err().kind, short);
        device.arm(FaultRule::on([Operation::Write]).fault(Fault::Misdirected(-5)));
        device.write_slice(3, &[9]).unwrap();
        assert_eq!([3, 13].map(|block| device.read(block, 1).unwrap().as_bytes()[0]), [0, 9]);
        device.arm(FaultRule::on([Operation::Read]).fault(Fault::Flipped(4096 * 8 + 11)));
        assert_eq!(device.read(4, 2).unwrap().block(1)[1], 8);
        assert_eq!(device.read(4, 2).unwrap().block(1)[1], 0);
    }

    #[test]
    fn a_failed_flush_poisons() {
        let device = device();
        device.arm(FaultRule::on([Operation::Flush]));
        assert_eq!(device.flush().unwrap_err().kind, DeviceErrorKind::from_errno(EIO));
        let poisoned = DeviceErrorKind::Poisoned { cause: Box::new(DeviceErrorKind::from_errno(EIO)) };
        assert_eq!(device.flush().unwrap_err().kind, poisoned);
        assert_eq!(device.write_slice(0, b"x").unwrap_err().kind, poisoned);
        device.read(0, 1).unwrap();
    }

    #[test]
    fn a_failed_durable_write_poisons() {
        let device = device();
        device.arm(FaultRule::on([Operation::WriteFua]));
        device.write_fua(0, AlignedBuf::new(1)).unwrap_err();
        assert!(matches!(device.flush().unwrap_err().kind, DeviceErrorKind::Poisoned { .. }));
    }
}
