//! What a request asks for, in the library's words, and how it is answered.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use f2fs_files::{Metadata, Time};
use fuser::{
    Errno, FileAttr, Generation, INodeNo, ReplyAttr, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyXattr, Request, TimeOrNow,
};
use rustix::io::Errno as Number;

use super::Device;
use crate::attributes::{attr, file_type, nothing};
use crate::caller::Caller;
use crate::service::{KEPT, Listed, Value};
use crate::volume::now;

impl Device {
    pub(super) fn empty(reply: ReplyEmpty, done: Result<(), Number>) {
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(number(error)),
        }
    }

    pub(super) fn entry(&self, reply: ReplyEntry, found: Result<Metadata, Number>) {
        match found {
            Ok(data) => reply.entry(&KEPT, &self.attr(&data), Generation(data.generation.into())),
            Err(error) => reply.error(number(error)),
        }
    }

    pub(super) fn attributes(&self, reply: ReplyAttr, found: Result<Metadata, Number>) {
        match found {
            Ok(data) => reply.attr(&KEPT, &self.attr(&data)),
            Err(error) => reply.error(number(error)),
        }
    }

    pub(super) fn value(reply: ReplyXattr, value: Result<Value, Number>) {
        match value {
            Ok(Value::Length(length)) => reply.size(length),
            Ok(Value::Whole(value)) => reply.data(&value),
            Err(error) => reply.error(number(error)),
        }
    }

    pub(super) fn attr(&self, data: &Metadata) -> FileAttr {
        attr(data, self.0.number(data))
    }

    pub(super) fn list(&self, directory: u64, offset: u64, mut reply: ReplyDirectory) {
        let listed = self.0.list(directory, offset, |entry| {
            reply.add(INodeNo(entry.number), entry.next, file_type(entry.kind), os(entry.name))
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(number(error)),
        }
    }

    pub(super) fn list_with_attributes(&self, directory: u64, offset: u64, mut reply: ReplyDirectoryPlus) {
        let listed = self.0.list_with_attributes(directory, offset, |entry, listed| {
            let (ttl, shown, generation) = match listed {
                Listed::Looked(data) => (KEPT, self.attr(data), Generation(data.generation.into())),
                Listed::Plain { kept } => {
                    let ttl = if *kept { KEPT } else { Duration::ZERO };
                    let shown = FileAttr { ino: INodeNo(entry.number), kind: file_type(entry.kind), ..nothing() };
                    (ttl, shown, Generation(0))
                }
            };
            reply.add(INodeNo(entry.number), entry.next, os(entry.name), &ttl, &shown, generation)
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(number(error)),
        }
    }
}

fn os(name: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name)
}

/// An error number as `fuser` has it.
pub(super) fn number(error: Number) -> Errno {
    Errno::from_i32(error.raw_os_error())
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
