//! The protocol through rings (FUSE over `io_uring`): requests are taken apart here, done by the [`Service`], and answered
//! where they came. Negotiation, *forget* and *interrupt* stay on `/dev/fuse`, with the crate `fuser`.
//!
//! ```text
//!   f2fs-fuse-uring      question.rs          service.rs         reply.rs
//!   Exchange ──────────► Question ──────────► Mounted ─────────► bytes in the Exchange
//! ```
//!
//! Locking rules: none here; the threads' are in `workers.rs`.

mod abi;
mod ahead;
mod question;
mod reply;
mod workers;

use f2fs_files::{FileKind, Metadata};
use f2fs_fuse_uring::Exchange;
use rustix::io::Errno;
use zerocopy::{Immutable, IntoBytes};

use self::abi::{GetXattrOut, IoctlOut, LseekOut, WriteOut};
use self::question::Question;
use self::reply::Reply;
use crate::caller::Caller;
use crate::service::{Ahead, Service, Value};

pub(crate) use self::workers::Rings;

/// Does what is asked for, and leaves the answer in the memory of the request: its length, or the number of an error.
/// What is to be read next for a file that is read in order goes to `read_on`.
fn answer(service: &Service, exchange: &mut Exchange<'_>, read_on: impl FnOnce(Ahead)) -> Result<usize, i32> {
    done(service, exchange, read_on).map_err(Errno::raw_os_error)
}

fn done(service: &Service, exchange: &mut Exchange<'_>, read_on: impl FnOnce(Ahead)) -> Result<usize, Errno> {
    let header = exchange.header();
    let caller = Caller { uid: header.uid, gid: header.gid, pid: header.pid };
    let node = header.nodeid;
    let entry = |data: &Metadata| reply::entry(data, service.number(data));
    let created = |data: &Metadata| reply::created(data, service.number(data), service.open_new());
    let attributes = |data: &Metadata| reply::attributes(data, service.number(data));
    let nothing = |done: Result<(), Errno>| done.map(|()| 0);
    let question = Question::decode(header.opcode, exchange.argument(), exchange.payload())?;
    match question {
        Question::Lookup(name) => match service.lookup(node, name)? {
            Some(data) => put(exchange, &entry(&data)),
            None => put(exchange, &reply::nothing()),
        },
        Question::Attributes => {
            let data = service.run(|volume| volume.attributes(node))?;
            put(exchange, &attributes(&data))
        }
        Question::Change(change) => {
            let data = service.run(|volume| volume.change(caller, node, &change))?;
            put(exchange, &attributes(&data))
        }
        Question::ReadLink => {
            let target = service.run(|volume| volume.read_link(node))?;
            put(exchange, target.as_slice())
        }
        Question::Symlink { name, target } => {
            let data = service.run(|volume| volume.symlink(caller, node, name, target))?;
            put(exchange, &entry(&data))
        }
        Question::MakeNode { name, mode, umask, device } => {
            let data = service.make_node(caller, (node, name), mode, umask, device)?;
            put(exchange, &entry(&data))
        }
        Question::MakeDirectory { name, mode, umask } => {
            let data = service.make(caller, (node, name), FileKind::Directory, mode, umask)?;
            put(exchange, &entry(&data))
        }
        Question::Create { name, mode, umask } => {
            let data = service.make(caller, (node, name), FileKind::Regular, mode, umask)?;
            put(exchange, &created(&data))
        }
        Question::CreateUnnamed { mode, umask } => {
            let data = service.make_unnamed(caller, node, mode, umask)?;
            put(exchange, &created(&data))
        }
        Question::Link { number, name } => {
            let data = service.run(|volume| volume.link(number, node, name))?;
            put(exchange, &entry(&data))
        }
        Question::RemoveFile(name) => nothing(service.run(|volume| volume.remove_file(node, name))),
        Question::RemoveDirectory(name) => nothing(service.run(|volume| volume.remove_dir(node, name))),
        Question::Rename { name, to, new_name, flags } => nothing(service.rename((node, name), (to, new_name), flags)),
        Question::Open => {
            let flags = service.open()?;
            put(exchange, &reply::opened(flags))
        }
        Question::Read { offset, size } => {
            let mut reply = Reply::within(exchange.room(), size);
            let (read, ahead) = service.read(node, offset, size, |read| reply.bytes(read?));
            read?;
            ahead.map(read_on);
            Ok(reply.finish())
        }
        Question::Write(write) => {
            let size = service.write(caller, node, write)?;
            put(exchange, &WriteOut { size, padding: 0 })
        }
        Question::Space => {
            let space = service.space()?;
            put(exchange, &reply::space(&space))
        }
        Question::Over => Ok(0),
        Question::Sync => nothing(service.run(|volume| volume.sync(node))),
        Question::SyncDirectory => nothing(service.run(|volume| volume.sync_directory(node))),
        Question::SetXattr { name, value, flags } => nothing(service.set_xattr(caller, node, name, value, flags)),
        Question::Xattr { name, room } => {
            let found = service.xattr(node, name, room)?;
            put_value(exchange, &found)
        }
        Question::XattrNames(room) => put_value(exchange, &service.xattr_names(caller, node, room)?),
        Question::RemoveXattr(name) => nothing(service.run(|volume| volume.remove_xattr(node, name))),
        Question::List { offset, size } => {
            let mut reply = Reply::within(exchange.room(), size);
            service.list(node, offset, |entry| reply.dirent(&entry, None))?;
            Ok(reply.finish())
        }
        Question::ListWithAttributes { offset, size } => {
            let mut reply = Reply::within(exchange.room(), size);
            service.list_with_attributes(node, offset, |entry, listed| {
                reply.dirent(&entry, Some(&reply::listed(&entry, listed)))
            })?;
            Ok(reply.finish())
        }
        Question::Control { command, data, room } => {
            let done = service.control(caller, command, data)?;
            let mut reply = Reply::new(exchange.room());
            reply.bytes(IoctlOut { result: 0, flags: 0, in_iovs: 0, out_iovs: 0 }.as_bytes())?;
            reply.bytes(done.get(..room.0 as usize).unwrap_or(&done))?;
            Ok(reply.finish())
        }
        Question::Allocate { offset, length, mode } => nothing(service.allocate(caller, node, offset, length, mode)),
        Question::Seek { offset, whence } => {
            let offset = service.seek(node, offset, whence)?;
            put(exchange, &LseekOut { offset })
        }
    }
}

fn put(exchange: &mut Exchange<'_>, answer: &(impl IntoBytes + Immutable + ?Sized)) -> Result<usize, Errno> {
    let mut reply = Reply::new(exchange.room());
    reply.bytes(answer.as_bytes())?;
    Ok(reply.finish())
}

fn put_value(exchange: &mut Exchange<'_>, value: &Value) -> Result<usize, Errno> {
    match value {
        Value::Length(size) => put(exchange, &GetXattrOut { size: *size, padding: 0 }),
        Value::Whole(value) => put(exchange, value.as_slice()),
    }
}

#[cfg(test)]
mod tests;
