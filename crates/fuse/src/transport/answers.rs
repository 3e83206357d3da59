//! What a request asks for, in the library's words, and how it is answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use f2fs_files::{FsError, Metadata, Time};
use fuser::{Errno, FileAttr, Generation, ReplyAttr, ReplyEmpty, ReplyEntry, ReplyXattr, Request, TimeOrNow};

use super::Transport;
use crate::attributes::attr;
use crate::caller::Caller;
use crate::volume::{Mounted, now};

/// How long the kernel keeps names and attributes: nobody else changes the volume.
pub(super) const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
impl Transport {
    /// Runs an operation; its result, or the number of its error.
    pub(super) fn run<T>(&self, operation: impl FnOnce(&Mounted) -> Result<T, FsError>) -> Result<T, Errno> {
        match catch_unwind(AssertUnwindSafe(|| operation(&self.0))) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(Errno::from_i32(error.raw_os_error())),
            Err(_) => Err(Errno::EIO),
        }
    }

    pub(super) fn empty(&self, reply: ReplyEmpty, operation: impl FnOnce(&Mounted) -> Result<(), FsError>) {
        match self.run(operation) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    pub(super) fn entry(&self, reply: ReplyEntry, operation: impl FnOnce(&Mounted) -> Result<Metadata, FsError>) {
        match self.run(operation) {
            Ok(data) => reply.entry(&KEPT, &self.attr(&data), Generation(data.generation.into())),
            Err(error) => reply.error(error),
        }
    }

    pub(super) fn attributes(&self, reply: ReplyAttr, operation: impl FnOnce(&Mounted) -> Result<Metadata, FsError>) {
        match self.run(operation) {
            Ok(data) => reply.attr(&KEPT, &self.attr(&data)),
            Err(error) => reply.error(error),
        }
    }

    pub(super) fn bytes(reply: ReplyXattr, size: u32, value: Result<Vec<u8>, Errno>) {
        match value {
            Ok(value) if size == 0 => reply.size(value.len() as u32),
            Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
            Ok(value) => reply.data(&value),
            Err(error) => reply.error(error),
        }
    }

    pub(super) fn attr(&self, data: &Metadata) -> FileAttr {
        attr(data, self.0.number(data))
    }
}

pub(super) fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), pid: request.pid() }
}

/// A time that the kernel told. Of one before 1970 `fuser` takes the nanoseconds off, though they count forward from the
/// second before.
pub(super) fn told(time: SystemTime) -> SystemTime {
    match time.duration_since(UNIX_EPOCH) {
        Ok(_) => time,
        Err(before) => {
            let nanoseconds = Duration::from_nanos(before.duration().subsec_nanos().into());
            time + 2 * nanoseconds
        }
    }
}

pub(super) fn time(asked: Option<TimeOrNow>) -> Option<Time> {
    asked.map(|asked| match asked {
        TimeOrNow::SpecificTime(time) => told(time).into(),
        TimeOrNow::Now => now(),
    })
}
