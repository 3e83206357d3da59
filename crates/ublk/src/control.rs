//! Commands to the driver, through `/dev/ublk-control`.
//!
//! The driver takes commands as `io_uring` commands only, and has some of them done by a thread of the kernel. Each has
//! a time limit. At the limit the command is cancelled, which ends those that wait for something. One that does not end
//! even then leaves its memory to the kernel for good, and the control is not used again ([`UblkError::Stuck`]).
//!
//! No locks: a control belongs to one thread at a time.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use io_uring::{
    IoUring, cqueue, opcode,
    squeue::{Entry, Entry128},
    types::{Fd, SubmitArgs, Timespec},
};
use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use crate::{
    UblkError,
    abi::{ControlCommand, DeviceRecord, Parameters, control as command, feature},
};

const PATH: &str = "/dev/ublk-control";

/// How long a command may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);
/// How long a cancelled command may take to end.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);
/// How often it is looked whether a command still makes sense.
const TICK: Duration = Duration::from_millis(50);

/// The mark of a cancellation. Commands are numbered from 0.
const CANCELLATION: u64 = u64::MAX;

/// A command by its number and its name in errors.
#[derive(Clone, Copy)]
struct Command(u32, &'static str);

/// The device that a command is about. The driver asks by the path of its character device whether the process may do
/// it, if the device is an unprivileged one, and wants no path otherwise.
struct Target {
    number: u32,
    path: String,
}

impl Target {
    fn of(device: &DeviceRecord) -> Self {
        let unprivileged = device.flags & feature::UNPRIVILEGED_DEV != 0;
        Self { number: device.number, path: if unprivileged { path_of(device.number) } else { String::new() } }
    }
}

/// The character device.
pub(crate) fn path_of(number: u32) -> String {
    format!("/dev/ublkc{number}")
}

/// How a command ended.
enum End {
    /// The driver's answer, and the memory that it wrote to.
    Answered(i32, Vec<u8>),
    /// It was cancelled, by the limit or because it made no sense any more.
    Cancelled,
}

/// The way to the driver.
pub(crate) struct Control {
    ring: IoUring<Entry128, cqueue::Entry>,
    file: File,
    commands: u64,
    stuck: bool,
}

impl Control {
    /// Opens the way to the driver, and asks for its features first: a driver that cannot tell them is too old.
    pub(crate) fn open() -> Result<(Self, u64), UblkError> {
        let file = OpenOptions::new().read(true).write(true).open(PATH).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => UblkError::NoDriver,
            io::ErrorKind::PermissionDenied => UblkError::NoRights { what: PATH },
            // The node is there, and no driver behind it.
            _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => UblkError::NoDriver,
            _ => UblkError::File { path: PATH.into(), source: error },
        })?;
        let ring = IoUring::builder().dontfork().build(4).map_err(UblkError::NoRing)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(UblkError::TooOld { feature: "time limits of io_uring", since: "5.11" });
        }
        let mut control = Self { ring, file, commands: 0, stuck: false };
        let features = control.features()?;
        Ok((control, features))
    }

    fn features(&mut self) -> Result<u64, UblkError> {
        let request = ControlCommand { device: ControlCommand::ANY_DEVICE, ..ControlCommand::default() };
        let command = Command(command::GET_FEATURES, "GET_FEATURES");
        match self.run(command, request, String::new(), vec![0; 8], LIMIT, || true)? {
            End::Answered(0, bytes) => Ok(u64::read_from_bytes(&bytes).unwrap_or(0)),
            End::Answered(error, _) if -error == Errno::PERM.raw_os_error() => {
                Err(UblkError::NoRights { what: "GET_FEATURES" })
            }
            End::Answered(..) => Err(UblkError::TooOld { feature: "GET_FEATURES", since: "6.5" }),
            End::Cancelled => Err(UblkError::TimedOut { command: "GET_FEATURES", limit: LIMIT }),
        }
    }

    /// Makes the character device of a device that does nothing yet; the driver may correct the record.
    pub(crate) fn add(&mut self, record: &DeviceRecord) -> Result<DeviceRecord, UblkError> {
        let bytes = record.as_bytes().to_vec();
        // There is no path yet.
        let target = Target { number: record.number, path: String::new() };
        let bytes = self.call(Command(command::ADD_DEV, "ADD_DEV"), target, bytes)?;
        read(&bytes)
    }

    pub(crate) fn set_parameters(&mut self, device: &DeviceRecord, parameters: &Parameters) -> Result<(), UblkError> {
        let bytes = parameters.as_bytes().to_vec();
        self.call(Command(command::SET_PARAMS, "SET_PARAMS"), Target::of(device), bytes).map(drop)
    }

    pub(crate) fn parameters(&mut self, device: &DeviceRecord) -> Result<Parameters, UblkError> {
        let asked = Parameters { length: size_of::<Parameters>() as u32, ..Parameters::default() };
        let asked = asked.as_bytes().to_vec();
        read(&self.call(Command(command::GET_PARAMS, "GET_PARAMS"), Target::of(device), asked)?)
    }

    pub(crate) fn info(&mut self, number: u32) -> Result<DeviceRecord, UblkError> {
        let room = vec![0; size_of::<DeviceRecord>()];
        let target = Target { number, path: path_of(number) };
        read(&self.call(Command(command::GET_DEV_INFO2, "GET_DEV_INFO2"), target, room)?)
    }

    /// Makes the block device; ends when all queues are ready. `goes_on` says whether they may still become so.
    pub(crate) fn start(&mut self, device: &DeviceRecord, goes_on: impl FnMut() -> bool) -> Result<bool, UblkError> {
        self.call_while(Command(command::START_DEV, "START_DEV"), device, goes_on)
    }

    /// Removes the block device, when all its requests are over.
    pub(crate) fn stop(&mut self, device: &DeviceRecord) -> Result<(), UblkError> {
        self.call(Command(command::STOP_DEV, "STOP_DEV"), Target::of(device), Vec::new()).map(drop)
    }

    /// Removes the device; ends when nobody has its character device open.
    pub(crate) fn delete(&mut self, device: &DeviceRecord) -> Result<(), UblkError> {
        self.call(Command(command::DEL_DEV, "DEL_DEV"), Target::of(device), Vec::new()).map(drop)
    }

    /// The dead server's queues are forgotten.
    pub(crate) fn start_recovery(&mut self, device: &DeviceRecord) -> Result<(), UblkError> {
        self.call(Command(command::START_USER_RECOVERY, "START_USER_RECOVERY"), Target::of(device), Vec::new())
            .map(drop)
    }

    /// Requests go on; see [`start`](Self::start).
    pub(crate) fn end_recovery(
        &mut self,
        device: &DeviceRecord,
        goes_on: impl FnMut() -> bool,
    ) -> Result<bool, UblkError> {
        self.call_while(Command(command::END_USER_RECOVERY, "END_USER_RECOVERY"), device, goes_on)
    }

    fn call(&mut self, command: Command, target: Target, memory: Vec<u8>) -> Result<Vec<u8>, UblkError> {
        let Target { number, path } = target;
        let request = ControlCommand { device: number, ..ControlCommand::default() };
        match self.run(command, request, path, memory, LIMIT, || true)? {
            End::Answered(answer, memory) => judge(command, number, answer).map(|()| memory),
            End::Cancelled => Err(UblkError::TimedOut { command: command.1, limit: LIMIT }),
        }
    }

    /// A command that waits for the queues of this process; `false` if it was given up because `goes_on` said so.
    fn call_while(
        &mut self,
        command: Command,
        device: &DeviceRecord,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<bool, UblkError> {
        let Target { number, path } = Target::of(device);
        let data = std::process::id().into();
        let request = ControlCommand { device: number, data, ..ControlCommand::default() };
        match self.run(command, request, path, Vec::new(), LIMIT, &mut goes_on)? {
            End::Answered(answer, _) => judge(command, number, answer).map(|()| true),
            End::Cancelled if goes_on() => Err(UblkError::TimedOut { command: command.1, limit: LIMIT }),
            End::Cancelled => Ok(false),
        }
    }

    /// Runs a command with `path` and `memory` as its buffer.
    fn run(
        &mut self,
        Command(number, name): Command,
        mut request: ControlCommand,
        path: String,
        memory: Vec<u8>,
        limit: Duration,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<End, UblkError> {
        if self.stuck {
            return Err(UblkError::Stuck);
        }
        request.queue = ControlCommand::NO_QUEUE;
        request.path_length = path.len() as u16;
        let mut memory = [path.into_bytes(), memory].concat();
        request.length = memory.len() as u16;
        if !memory.is_empty() {
            request.address = memory.as_mut_ptr().expose_provenance() as u64;
        }
        let mark = self.commands;
        self.commands += 1;
        let mut bytes = [0; 80];
        bytes[..size_of::<ControlCommand>()].copy_from_slice(request.as_bytes());
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), number).cmd(bytes).build().user_data(mark);
        self.push(&entry)?;
        if let Some(answer) = self.wait(mark, limit, &mut goes_on)? {
            memory.drain(..usize::from(request.path_length));
            return Ok(End::Answered(answer, memory));
        }
        let cancel: Entry128 = opcode::AsyncCancel::new(mark).build().user_data(CANCELLATION).into();
        self.push(&cancel)?;
        match self.wait(mark, CANCEL_LIMIT, || true)? {
            None => {
                self.stuck = true;
                memory.leak();
                Err(UblkError::TimedOut { command: name, limit })
            }
            Some(answer) if was_cancelled(answer) => Ok(End::Cancelled),
            // It was refused before the cancellation came.
            Some(answer) => {
                memory.drain(..usize::from(request.path_length));
                Ok(End::Answered(answer, memory))
            }
        }
    }

    fn push(&mut self, entry: &Entry128) -> Result<(), UblkError> {
        // SAFETY: the file lives as long as the ring. The memory of a command is kept by `run` until the command has
        // ended, or leaked.
        unsafe { self.ring.submission().push(entry) }
            .map_err(|_| UblkError::NoRing(io::Error::other("the submission queue is full")))
    }

    /// Waits for the end of a command, as long as `goes_on` says.
    fn wait(
        &mut self,
        mark: u64,
        limit: Duration,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Option<i32>, UblkError> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let tick = Timespec::from(left.min(TICK));
            match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&tick)) {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                // The entry may be in the queue still: it must not be taken later.
                Err(error) => {
                    self.stuck = true;
                    return Err(UblkError::NoRing(error));
                }
            }
            let mut answer = None;
            for entry in self.ring.completion() {
                if entry.user_data() == mark {
                    answer = Some(entry.result());
                }
            }
            if answer.is_some() || left.is_zero() || !goes_on() {
                return Ok(answer);
            }
        }
    }
}

/// Whether a command ended because it was cancelled.
fn was_cancelled(answer: i32) -> bool {
    [Errno::INTR, Errno::CANCELED].iter().any(|errno| -answer == errno.raw_os_error())
}

/// Errors of an entry that say "later".
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::TIME, Errno::INTR, Errno::AGAIN, Errno::BUSY];
    passing.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn judge(Command(_, name): Command, number: u32, answer: i32) -> Result<(), UblkError> {
    if answer >= 0 {
        return Ok(());
    }
    Err(match Errno::from_raw_os_error(-answer) {
        Errno::PERM | Errno::ACCESS => UblkError::NoRights { what: name },
        Errno::NODEV => UblkError::NoSuchDevice { number },
        Errno::EXIST => UblkError::Exists { number },
        errno => UblkError::Refused { command: name, number, source: errno.into() },
    })
}

fn read<T: FromBytes>(bytes: &[u8]) -> Result<T, UblkError> {
    let short = || UblkError::NoRing(io::Error::other("a record of the driver is too short"));
    T::read_from_bytes(bytes).map_err(|_| short())
}

/// An entry of 64 bytes fits into one of 128.
const _: fn(Entry) -> Entry128 = Entry128::from;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unprivileged_devices_are_named_by_path() {
        let device = |flags| Target::of(&DeviceRecord { number: 3, flags, ..DeviceRecord::default() });
        assert_eq!(device(feature::ZONED).path, "");
        assert_eq!(device(feature::ZONED | feature::UNPRIVILEGED_DEV).path, "/dev/ublkc3");
    }

    #[test]
    fn answers_are_told_apart() {
        let judged = |answer| judge(Command(0, "ADD_DEV"), 7, answer);
        assert!(judged(0).is_ok() && judged(3).is_ok());
        assert!(matches!(judged(-1), Err(UblkError::NoRights { what: "ADD_DEV" })));
        assert!(matches!(judged(-19), Err(UblkError::NoSuchDevice { number: 7 })));
        assert!(matches!(judged(-17), Err(UblkError::Exists { number: 7 })));
        let refused = judged(-22).unwrap_err().to_string();
        assert!(refused.starts_with("ADD_DEV of ublk device 7: Invalid argument"), "{refused}");
        assert!(was_cancelled(-4) && was_cancelled(-125) && !was_cancelled(-22) && !was_cancelled(0));
    }
}
