//! What each request does, for whichever transport brings it: flags are taken apart here, and defaults chosen, so that a
//! transport only takes requests apart and puts answers together.
//!
//! A panic below is answered with `EIO`, and the server goes on; the library refuses changes from then on where the panic
//! left one undone.
//!
//! Files are neither opened nor closed: *open* is answered with `ENOSYS`, and then the kernel does it by itself. The
//! exception is a mount without the kernel's cache, where each open has to say so. An inode is held by its look-ups,
//! and the kernel forgets none that is open.
//!
//! No locks of its own.

mod controls;
mod listing;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use f2fs_device::AlignedBuf;
use f2fs_files::{AllocateFlags, FileKind, FsError, Metadata, RenameMode, SetMode};
use f2fs_sync::Arc;
use fuser::FopenFlags;
use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

use crate::attributes::decode;
use crate::caller::Caller;
use crate::options::{Cache, MountOptions};
use crate::stream::Piece;
use crate::table::Known;
use crate::volume::{Mounted, Read};

pub(crate) use listing::{Listed, Named};

/// How long the kernel keeps names and attributes: nobody else changes the volume.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How a file is opened whose contents the kernel does not keep.
const UNCACHED: FopenFlags = FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
const SEEK_DATA: u32 = 3;
const SEEK_HOLE: u32 = 4;

thread_local! {
    /// The buffer of a thread's reads.
    static BUFFER: RefCell<AlignedBuf> = RefCell::new(AlignedBuf::default());
}

/// A mounted volume that is asked.
#[derive(Debug)]
pub(crate) struct Service(pub(crate) Mounted);

/// A value of unknown length, as far as who asks has room for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// How long it is; no room was offered.
    Length(u32),
    Whole(Vec<u8>),
}

impl Value {
    fn within(Room(room): Room, value: Vec<u8>) -> Result<Value, Errno> {
        match room {
            0 => Ok(Value::Length(value.len() as u32)),
            room if value.len() > room as usize => Err(Errno::RANGE),
            _ => Ok(Value::Whole(value)),
        }
    }
}

/// The bytes that a value may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room(pub(crate) u32);

/// What a volume has room for, in blocks of 4096 bytes, and files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) blocks: u64,
    pub(crate) free: u64,
    pub(crate) files: u64,
    pub(crate) free_files: u64,
}

/// A write, as the kernel flags it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) offset: u64,
    /// The kernel has kept these pages, and hands them over.
    pub(crate) kept: bool,
    /// Who writes may not do so to a file with privileges without taking them.
    pub(crate) takes_privileges: bool,
    /// How the file was opened.
    pub(crate) open: OFlags,
}

/// What to read for a file that is read in order, when the last answer is on its way.
#[derive(Debug)]
pub(crate) struct Ahead(Arc<Known>, Piece);

impl Service {
    /// Runs an operation; its result, or the number of its error.
    pub(crate) fn run<T>(&self, operation: impl FnOnce(&Mounted) -> Result<T, FsError>) -> Result<T, Errno> {
        match catch_unwind(AssertUnwindSafe(|| operation(&self.0))) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(Errno::from_raw_os_error(error.raw_os_error())),
            Err(_) => Err(Errno::IO),
        }
    }

    pub(crate) fn options(&self) -> &MountOptions {
        self.0.options()
    }

    /// The number of an inode in the mount.
    pub(crate) fn number(&self, data: &Metadata) -> u64 {
        self.0.number(data)
    }

    /// `None`: there is no file of this name, which the kernel keeps as well.
    pub(crate) fn lookup(&self, parent: u64, name: &[u8]) -> Result<Option<Metadata>, Errno> {
        match self.run(|volume| volume.lookup(parent, name)) {
            Ok(data) => Ok(Some(data)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn forget(&self, number: u64, count: u64) {
        let _ = self.run(|volume| {
            volume.forget(number, count);
            Ok(())
        });
    }

    /// Makes a file of the kind that `mode` says.
    pub(crate) fn make_node(
        &self,
        caller: Caller,
        (parent, name): (u64, &[u8]),
        mode: u32,
        umask: u32,
        device: u32,
    ) -> Result<Metadata, Errno> {
        let device = Some(decode(device));
        self.run(|volume| volume.create(caller, parent, name, mode, umask, device))
    }

    /// Makes a regular file or a directory.
    pub(crate) fn make(
        &self,
        caller: Caller,
        (parent, name): (u64, &[u8]),
        kind: FileKind,
        mode: u32,
        umask: u32,
    ) -> Result<Metadata, Errno> {
        let mode = mode & 0o7777 | u32::from(kind.to_mode());
        self.run(|volume| volume.create(caller, parent, name, mode, umask, None))
    }

    /// Makes a regular file without a name.
    pub(crate) fn make_unnamed(&self, caller: Caller, parent: u64, mode: u32, umask: u32) -> Result<Metadata, Errno> {
        let mode = mode & 0o7777 | u32::from(FileKind::Regular.to_mode());
        self.run(|volume| volume.create_unnamed(caller, parent, mode, umask))
    }

    pub(crate) fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), flags: RenameFlags) -> Result<(), Errno> {
        let mode = match flags {
            flags if flags.is_empty() => RenameMode::Replace,
            RenameFlags::NOREPLACE => RenameMode::NoReplace,
            RenameFlags::EXCHANGE => RenameMode::Exchange,
            _ => return Err(Errno::INVAL),
        };
        self.run(|volume| volume.rename(from, to, mode))
    }

    /// How a file is opened.
    pub(crate) fn open(&self) -> Result<FopenFlags, Errno> {
        match self.options().cache {
            Cache::None => Ok(UNCACHED),
            Cache::Through | Cache::WriteBack => Err(Errno::NOSYS),
        }
    }

    /// How a file is opened that was just made.
    pub(crate) fn open_new(&self) -> FopenFlags {
        match self.options().cache {
            Cache::None => UNCACHED,
            Cache::Through | Cache::WriteBack => FopenFlags::FOPEN_KEEP_CACHE,
        }
    }

    /// Reads, and has `answer` take what was read. What is [read ahead](Self::read_on) waits until the answer is on its
    /// way.
    pub(crate) fn read<T>(
        &self,
        number: u64,
        offset: u64,
        size: u32,
        answer: impl FnOnce(Result<&[u8], Errno>) -> T,
    ) -> (T, Option<Ahead>) {
        BUFFER.with_borrow_mut(|buffer| match self.run(|volume| volume.read(number, buffer, offset, size as usize)) {
            Ok(Read::Buffer(read)) => (answer(Ok(&buffer.as_bytes()[..read])), None),
            Ok(Read::Piece(known, piece)) => (answer(Ok(piece.as_bytes())), Some(Ahead(known, piece))),
            Err(error) => (answer(Err(error)), None),
        })
    }

    pub(crate) fn read_on(&self, Ahead(known, piece): &Ahead) {
        let _ = self.run(|volume| volume.read_on(known, piece));
    }

    pub(crate) fn write(&self, caller: Caller, number: u64, write: Write<'_>) -> Result<u32, Errno> {
        let by = write.takes_privileges.then_some(caller);
        // `O_SYNC` has this bit, too.
        let durable = write.open.contains(OFlags::DSYNC);
        self.run(|volume| {
            let written = volume.write(number, write.data, write.offset, write.kept, by)?;
            // Where the kernel caches, it asks for a sync itself.
            if durable && !write.kept && volume.options().cache == Cache::None {
                volume.sync(number)?;
            }
            Ok(written as u32)
        })
    }

    pub(crate) fn space(&self) -> Result<Space, Errno> {
        let stat = self.run(|volume| Ok(volume.fs().statfs()))?;
        let free = stat.user_blocks.saturating_sub(stat.valid_blocks);
        let free_files = stat.max_nodes.saturating_sub(stat.valid_nodes).min(free);
        Ok(Space { blocks: stat.user_blocks, free, files: stat.valid_inodes + free_files, free_files })
    }

    /// Sets an attribute; `flags` as in `setxattr`.
    pub(crate) fn set_xattr(
        &self,
        caller: Caller,
        number: u64,
        name: &[u8],
        value: &[u8],
        flags: u32,
    ) -> Result<(), Errno> {
        let mode = match flags {
            0 => SetMode::Any,
            1 => SetMode::Create,
            2 => SetMode::Replace,
            // Both at once can only fail; the library is asked how.
            3 => return self.run(|volume| volume.xattr(number, name)).and(Err(Errno::EXIST)),
            _ => return Err(Errno::INVAL),
        };
        self.run(|volume| volume.set_xattr(caller, number, name, value, mode))
    }

    pub(crate) fn xattr(&self, number: u64, name: &[u8], room: Room) -> Result<Value, Errno> {
        Value::within(room, self.run(|volume| volume.xattr(number, name))?)
    }

    pub(crate) fn xattr_names(&self, caller: Caller, number: u64, room: Room) -> Result<Value, Errno> {
        Value::within(room, self.run(|volume| volume.xattr_names(caller, number))?)
    }

    /// As `fallocate` does with this mode. Flags that the library does not know are refused by it.
    pub(crate) fn allocate(
        &self,
        caller: Caller,
        number: u64,
        offset: u64,
        length: u64,
        mode: u32,
    ) -> Result<(), Errno> {
        self.run(|volume| volume.allocate(caller, number, offset, length, AllocateFlags::from_bits(mode)))
    }

    /// As `lseek` does for data and holes.
    pub(crate) fn seek(&self, number: u64, offset: i64, whence: u32) -> Result<i64, Errno> {
        if self.options().cache == Cache::WriteBack {
            // What the kernel has kept is data, and not known here. Without an answer it takes the whole file for data,
            // and does not ask again.
            return Err(Errno::NOSYS);
        }
        let (Ok(from), SEEK_DATA | SEEK_HOLE) = (u64::try_from(offset), whence) else {
            return Err(if offset < 0 { Errno::NXIO } else { Errno::INVAL });
        };
        let found = self.run(|volume| volume.seek(number, from, whence == SEEK_HOLE))?;
        found.map(|found| found as i64).ok_or(Errno::NXIO)
    }
}
