//! An open namespace: its facts, its claim, and its commands, one after the other or on a ring.
//!
//! Locking rules: none of its own; [`Durability`] serialises flushes.

use std::cell::Cell;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::thread::LocalKey;

use f2fs_device::{BLOCK_SIZE, DeviceError, DeviceErrorKind, DeviceInfo, Op, Operation, Request};
use io_uring::{cqueue, opcode, squeue, types};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::command::{self, Answer, Command};
use super::durability::Durability;
use super::identify::{Facts, Unfit, facts};
use super::place::Sibling;
use crate::carrier::Carrier;
use crate::flight::{Flight, Memory};
use crate::lock::until_free;
use crate::progress::Landing;
use crate::spare::Kept;
use crate::{OpenError, OpenOptions};

/// The first of the files that each ring has registered.
const FILE: types::Fixed = types::Fixed(0);

/// Bytes of a transfer if the kernel's limit is not known.
const CAUTIOUS: u64 = 128 << 10;

/// How often a command is sent that the device or the kernel gave back for a reason that passes.
const TRIES: u32 = 5;

thread_local! {
    /// The ring of the thread's last queue, idle and without a file.
    static SPARE: Kept<squeue::Entry128, cqueue::Entry32> = const { Cell::new(None) };
}

#[derive(Debug)]
pub(super) struct Namespace {
    fd: OwnedFd,
    /// The claimed block device of the namespace.
    block: Option<OwnedFd>,
    number: u32,
    facts: Facts,
    info: DeviceInfo,
    can_poll: bool,
    /// Milliseconds; 0 stands for the kernel's limit.
    timeout: u32,
    durability: Durability,
}

impl Namespace {
    pub(super) fn open(path: &Path, options: OpenOptions) -> Result<Self, OpenError> {
        let failed = |call| move |errno: Errno| OpenError::Io { path: path.into(), call, source: errno.into() };
        let access = if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let fd = rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty()).map_err(failed("open"))?;
        let stat = rustix::fs::fstat(&fd).map_err(failed("fstat"))?;
        if !FileType::from_raw_mode(stat.st_mode).is_char_device() {
            return Err(OpenError::NotADevice { path: path.into(), kind: "file of another kind" });
        }
        let lock = match options.read_only {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        until_free(path, ("flock", Errno::WOULDBLOCK), true, options.patience, || rustix::fs::flock(&fd, lock))?;
        let sibling = Sibling::of(stat.st_rdev);
        let block = sibling.as_ref().map(|sibling| sibling.claim(options)).transpose()?;

        let number = command::namespace_number(fd.as_fd()).map_err(failed("NVME_IOCTL_ID"))?;
        let refuse = |reason: String| OpenError::Namespace { path: path.into(), reason };
        let mut facts = facts(fd.as_fd(), number).map_err(|unfit| match unfit {
            Unfit::Failed(kind) => refuse(format!("the namespace was not identified: {kind}")),
            Unfit::Reason(reason) => refuse(reason),
        })?;
        if facts.write_protected && !options.read_only {
            return Err(refuse("the namespace is write-protected".into()));
        }
        let bytes = facts.size * u64::from(facts.sector);
        if bytes < BLOCK_SIZE as u64 {
            return Err(OpenError::TooSmall { path: path.into(), bytes });
        }
        let kernel = sibling.as_ref().and_then(Sibling::transfer).unwrap_or(CAUTIOUS);
        facts.transfer = (facts.transfer.min(kernel) / BLOCK_SIZE as u64).max(1) * BLOCK_SIZE as u64;

        let mut info = DeviceInfo::new(bytes / BLOCK_SIZE as u64, "");
        info.read_only = options.read_only;
        info.logical_sector = facts.sector;
        info.optimal_io = u32::try_from(facts.transfer).unwrap_or(u32::MAX / 2);
        info.supports_discard = !options.read_only && facts.deallocates.is_some();
        let claimed = if block.is_some() { "" } else { ", its block device not claimed" };
        let cache = if facts.volatile_cache { "a volatile cache" } else { "no volatile cache" };
        info.description = format!("{}, sectors of {} bytes, {cache}{claimed}", facts.model, facts.sector);
        let can_poll = sibling.is_some_and(|sibling| sibling.can_poll());
        let timeout = u32::try_from(options.command_timeout.as_millis()).unwrap_or(u32::MAX);
        let durability = Durability::new(facts.volatile_cache);
        Ok(Self { fd, block, number, facts, info, can_poll, timeout, durability })
    }

    /// Completes the description: how commands travel, the device, `path`.
    pub(super) fn describe(&mut self, engine: &str, path: &Path) {
        let device = &self.info.description;
        self.info.description = format!("NVMe commands by {engine}, {device}, {}", path.display());
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn can_poll(&self) -> bool {
        self.can_poll
    }

    fn command(&self, opcode: u8) -> Command {
        Command::new(opcode, self.number, self.timeout)
    }

    fn sectors(&self, blocks: u64) -> u64 {
        blocks * (BLOCK_SIZE as u64 / u64::from(self.facts.sector))
    }

    fn admit_change(&self, operation: Operation, start: u64, blocks: u64) -> Result<(), DeviceError> {
        self.info.check_operation(operation, start, blocks)?;
        self.durability.check().map_err(|kind| DeviceError::new(operation, start, blocks, kind))
    }

    pub(super) fn flush(&self) -> Result<(), DeviceError> {
        if self.info.read_only {
            return Ok(());
        }
        self.durability.flush(|opcode| command::run_without_data(self.fd.as_fd(), self.command(opcode)))
    }

    pub(super) fn write_zeroes(&self, start: u64, blocks: u64) -> Result<(), DeviceError> {
        self.admit_change(Operation::Write, start, blocks)?;
        let failed = |kind| DeviceError::new(Operation::Write, start, blocks, kind);
        let most = self.facts.zeroes.ok_or_else(|| failed(DeviceErrorKind::Unsupported))?;
        self.pieces(start, blocks, most, |first, sectors| {
            let command = self.command(command::WRITE_ZEROES).sectors(first, sectors, 0);
            command::run_without_data(self.fd.as_fd(), command)
        })
        .map_err(failed)
    }

    fn deallocate(&self, start: u64, blocks: u64) -> Result<(), DeviceErrorKind> {
        let most = self.facts.deallocates.ok_or(DeviceErrorKind::Unsupported)?.clamp(1, u32::MAX.into());
        self.pieces(start, blocks, most, |first, sectors| {
            let command = self.command(command::DATASET_MANAGEMENT);
            command::deallocate(self.fd.as_fd(), command, first, sectors as u32)
        })
    }

    /// Runs commands for all sectors of these blocks, so many a command at most.
    fn pieces(
        &self,
        start: u64,
        blocks: u64,
        most: u64,
        run: impl Fn(u64, u64) -> Answer,
    ) -> Result<(), DeviceErrorKind> {
        let (mut next, end) = (self.sectors(start), self.sectors(start + blocks));
        while next < end {
            let sectors = (end - next).min(most);
            again(|| run(next, sectors))?;
            next += sectors;
        }
        Ok(())
    }

    /// The command for the next transfer of a flight, without its memory, and that memory.
    fn transfer(&self, flight: &mut Flight) -> (Command, Memory) {
        let most = usize::try_from(self.facts.transfer).unwrap_or(usize::MAX);
        let memory = flight.memory(most);
        let first = self.sectors(flight.request().start) + flight.done() / u64::from(self.facts.sector);
        let sectors = memory.bytes() as u64 / u64::from(self.facts.sector);
        let op = flight.request().op;
        let opcode = if op == Op::Read { command::READ } else { command::WRITE };
        flight.ask(memory.bytes());
        (self.command(opcode).sectors(first, sectors, self.durability.bits(op)), memory)
    }
}

/// Runs a command again that was given back for a reason that passes, a few times.
fn again(run: impl Fn() -> Answer) -> Result<(), DeviceErrorKind> {
    let mut tries = 1;
    loop {
        match run() {
            answer if passes(answer) && tries < TRIES => tries += 1,
            answer => return answer.result(),
        }
    }
}

/// Whether a command was given back for a reason that passes. The kernel gives those back with `EINTR` that it gave up
/// when it reset the controller: to read or write the same again does no harm.
fn passes(answer: Answer) -> bool {
    const EINTR: i32 = 4;
    const EAGAIN: i32 = 11;
    // When a thread exits, the kernel cancels the requests of that thread that it has only queued.
    const ECANCELED: i32 = 125;
    match answer {
        Answer::Status(status) => status.passes(),
        Answer::Errno(errno) => matches!(errno, EINTR | EAGAIN | ECANCELED),
        Answer::Done => false,
    }
}

impl Carrier for Namespace {
    type Entry = squeue::Entry128;
    type Answer = cqueue::Entry32;
    const OPERATIONS: &'static [u8] = &[opcode::UringCmd80::CODE];

    /// The block device too, so that its claim lasts as long as the commands of a process that died.
    fn files(&self) -> Vec<RawFd> {
        std::iter::once(&self.fd).chain(&self.block).map(AsRawFd::as_raw_fd).collect()
    }

    fn admit(&self, request: &Request) -> Result<(), DeviceError> {
        self.info.check(request)?;
        match request.op {
            Op::Read => Ok(()),
            _ => self.durability.check().map_err(|kind| request.error(kind)),
        }
    }

    fn needs_call(&self, op: Op) -> bool {
        matches!(op, Op::Discard { .. })
    }

    fn run(&self, request: &mut Request) -> Result<(), DeviceError> {
        if let Op::Discard { blocks } = request.op {
            return self.deallocate(request.start, blocks).map_err(|kind| self.failed(request, kind));
        }
        let nothing = Request::vectored(request.op, request.start, Vec::new());
        let mut flight = Flight::new(mem::replace(request, nothing), None);
        let result = loop {
            let (command, memory) = self.transfer(&mut flight);
            // SAFETY: the memory belongs to the flight, which this function owns and leaves alone meanwhile.
            let answer = unsafe { command::run_transfer(self.fd.as_fd(), command, memory) };
            if let Landing::Finished(result) = landed(&mut flight, answer) {
                break result;
            }
        };
        *request = flight.into_request();
        result.map_err(|kind| self.failed(request, kind))
    }

    fn failed(&self, request: &Request, kind: DeviceErrorKind) -> DeviceError {
        self.durability.failed(request.op, &kind);
        request.error(kind)
    }

    fn entry(&self, flight: &mut Flight) -> squeue::Entry128 {
        let (command, memory) = self.transfer(flight);
        let (operation, command) = command::ring_transfer(command, memory);
        let registered = match memory {
            Memory::One { registered, .. } => registered,
            Memory::Many { .. } => None,
        };
        opcode::UringCmd80::new(FILE, operation).cmd(command.bytes()).buf_index(registered).build()
    }

    fn land(&self, flight: &mut Flight, result: i32) -> Landing {
        landed(flight, Answer::new(result))
    }

    fn spare() -> &'static LocalKey<Kept<squeue::Entry128, cqueue::Entry32>> {
        &SPARE
    }
}

fn landed(flight: &mut Flight, answer: Answer) -> Landing {
    match answer {
        Answer::Done => flight.land(Ok(flight.asked())),
        answer if passes(answer) && flight.try_again(TRIES) => Landing::Again,
        answer => Landing::Finished(answer.result()),
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The kernel may hold references to the files for a while after a ring is closed; the locks must not live as
        // long.
        for fd in std::iter::once(&self.fd).chain(&self.block) {
            let _ = rustix::fs::flock(fd, FlockOperation::Unlock);
        }
    }
}
