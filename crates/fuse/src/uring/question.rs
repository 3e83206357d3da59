//! What a request asks for. Nothing that comes here makes it panic: what cannot be is an error.

use f2fs_files::Time;
use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;
use zerocopy::FromBytes;

use super::abi::{
    CreateIn, FallocateIn, GetXattrIn, IoctlIn, LinkIn, LseekIn, MkdirIn, MknodIn, ReadIn, Rename2In, RenameIn,
    SetAttrIn, SetXattrIn, WriteIn, operation, valid, write,
};
use crate::service::{Room, Write};
use crate::volume::{Change, now};

/// What is asked of an inode.
#[derive(Debug)]
pub(super) enum Question<'a> {
    Lookup(&'a [u8]),
    Attributes,
    Change(Change),
    ReadLink,
    Symlink {
        name: &'a [u8],
        target: &'a [u8],
    },
    MakeNode {
        name: &'a [u8],
        mode: u32,
        umask: u32,
        device: u32,
    },
    MakeDirectory {
        name: &'a [u8],
        mode: u32,
        umask: u32,
    },
    RemoveFile(&'a [u8]),
    RemoveDirectory(&'a [u8]),
    Rename {
        name: &'a [u8],
        to: u64,
        new_name: &'a [u8],
        flags: RenameFlags,
    },
    Link {
        number: u64,
        name: &'a [u8],
    },
    Open,
    Create {
        name: &'a [u8],
        mode: u32,
        umask: u32,
    },
    CreateUnnamed {
        mode: u32,
        umask: u32,
    },
    Read {
        offset: u64,
        size: u32,
    },
    Write(Write<'a>),
    Space,
    /// What is over needs nothing done.
    Over,
    Sync,
    SyncDirectory,
    SetXattr {
        name: &'a [u8],
        value: &'a [u8],
        flags: u32,
    },
    Xattr {
        name: &'a [u8],
        room: Room,
    },
    XattrNames(Room),
    RemoveXattr(&'a [u8]),
    List {
        offset: u64,
        size: u32,
    },
    ListWithAttributes {
        offset: u64,
        size: u32,
    },
    Control {
        command: u32,
        data: &'a [u8],
        room: Room,
    },
    Allocate {
        offset: u64,
        length: u64,
        mode: u32,
    },
    Seek {
        offset: i64,
        whence: u32,
    },
}

/// The structure that an operation begins with.
fn head<T: FromBytes>(argument: &[u8]) -> Result<T, Errno> {
    T::read_from_prefix(argument).map(|(head, _)| head).map_err(|_| Errno::INVAL)
}

/// A text with a zero behind it, and what follows.
fn text(payload: &[u8]) -> Result<(&[u8], &[u8]), Errno> {
    let end = payload.iter().position(|byte| *byte == 0).ok_or(Errno::INVAL)?;
    Ok((&payload[..end], &payload[end + 1..]))
}

fn name(payload: &[u8]) -> Result<&[u8], Errno> {
    Ok(text(payload)?.0)
}

/// The first bytes of a payload.
fn first(payload: &[u8], length: u32) -> Result<&[u8], Errno> {
    payload.get(..length as usize).ok_or(Errno::INVAL)
}

fn change(asked: &SetAttrIn) -> Change {
    let if_set = |bit: u32, value: u32| (asked.valid & bit != 0).then_some(value);
    let time = |bit: u32, is_now: u32, seconds, nanoseconds| match asked.valid & bit {
        0 => None,
        _ if asked.valid & is_now != 0 => Some(now()),
        _ => Some(Time { seconds, nanoseconds }),
    };
    let mut change = Change { size: (asked.valid & valid::SIZE != 0).then_some(asked.size), ..Change::default() };
    let attributes = &mut change.attributes;
    attributes.permissions = if_set(valid::MODE, asked.mode).map(|mode| mode as u16 & 0o7777);
    attributes.uid = if_set(valid::UID, asked.uid);
    attributes.gid = if_set(valid::GID, asked.gid);
    attributes.accessed = time(valid::ATIME, valid::ATIME_NOW, asked.atime, asked.atimensec);
    attributes.modified = time(valid::MTIME, valid::MTIME_NOW, asked.mtime, asked.mtimensec);
    attributes.changed = time(valid::CTIME, 0, asked.ctime, asked.ctimensec);
    change
}

impl<'a> Question<'a> {
    /// The question of a request with this operation. `argument` is the structure that the operation begins with, and
    /// `payload` what follows it.
    ///
    /// # Errors
    /// `ENOSYS` for an operation that there is not, from which on the kernel does without; `EINVAL`.
    pub(super) fn decode(number: u32, argument: &[u8], payload: &'a [u8]) -> Result<Question<'a>, Errno> {
        Ok(match number {
            operation::LOOKUP => Question::Lookup(name(payload)?),
            operation::GETATTR => Question::Attributes,
            operation::SETATTR => Question::Change(change(&head(argument)?)),
            operation::READLINK => Question::ReadLink,
            operation::SYMLINK => {
                let (name, rest) = text(payload)?;
                Question::Symlink { name, target: text(rest)?.0 }
            }
            operation::MKNOD => {
                let MknodIn { mode, rdev, umask, .. } = head(argument)?;
                Question::MakeNode { name: name(payload)?, mode, umask, device: rdev }
            }
            operation::MKDIR => {
                let MkdirIn { mode, umask } = head(argument)?;
                Question::MakeDirectory { name: name(payload)?, mode, umask }
            }
            operation::UNLINK => Question::RemoveFile(name(payload)?),
            operation::RMDIR => Question::RemoveDirectory(name(payload)?),
            operation::RENAME | operation::RENAME2 => {
                let (to, flags) = if number == operation::RENAME {
                    (head::<RenameIn>(argument)?.newdir, 0)
                } else {
                    let Rename2In { newdir, flags, .. } = head(argument)?;
                    (newdir, flags)
                };
                let (name, rest) = text(payload)?;
                let flags = RenameFlags::from_bits_retain(flags);
                Question::Rename { name, to, new_name: text(rest)?.0, flags }
            }
            operation::LINK => Question::Link { number: head::<LinkIn>(argument)?.oldnodeid, name: name(payload)? },
            operation::OPEN => Question::Open,
            operation::CREATE => {
                let CreateIn { mode, umask, .. } = head(argument)?;
                Question::Create { name: name(payload)?, mode, umask }
            }
            operation::TMPFILE => {
                let CreateIn { mode, umask, .. } = head(argument)?;
                Question::CreateUnnamed { mode, umask }
            }
            operation::READ | operation::READDIR | operation::READDIRPLUS => {
                let ReadIn { offset, size, .. } = head(argument)?;
                match number {
                    operation::READ => Question::Read { offset, size },
                    operation::READDIR => Question::List { offset, size },
                    _ => Question::ListWithAttributes { offset, size },
                }
            }
            operation::WRITE => {
                let WriteIn { offset, size, write_flags, flags, .. } = head(argument)?;
                Question::Write(Write {
                    data: first(payload, size)?,
                    offset,
                    kept: write_flags & write::CACHE != 0,
                    takes_privileges: write_flags & write::KILL_SUIDGID != 0,
                    open: OFlags::from_bits_retain(flags),
                })
            }
            operation::STATFS => Question::Space,
            operation::RELEASE | operation::RELEASEDIR | operation::DESTROY => Question::Over,
            operation::FSYNC => Question::Sync,
            operation::FSYNCDIR => Question::SyncDirectory,
            operation::SETXATTR => {
                let SetXattrIn { size, flags } = head(argument)?;
                let (name, rest) = text(payload)?;
                Question::SetXattr { name, value: first(rest, size)?, flags }
            }
            operation::GETXATTR => {
                Question::Xattr { name: name(payload)?, room: Room(head::<GetXattrIn>(argument)?.size) }
            }
            operation::LISTXATTR => Question::XattrNames(Room(head::<GetXattrIn>(argument)?.size)),
            operation::REMOVEXATTR => Question::RemoveXattr(name(payload)?),
            operation::IOCTL => {
                let IoctlIn { cmd, in_size, out_size, .. } = head(argument)?;
                Question::Control { command: cmd, data: first(payload, in_size)?, room: Room(out_size) }
            }
            operation::FALLOCATE => {
                let FallocateIn { offset, length, mode, .. } = head(argument)?;
                Question::Allocate { offset, length, mode }
            }
            operation::LSEEK => {
                let LseekIn { offset, whence, .. } = head(argument)?;
                Question::Seek { offset, whence }
            }
            _ => return Err(Errno::NOSYS),
        })
    }
}
