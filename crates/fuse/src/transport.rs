//! The protocol, as the crate `fuser` speaks it: each callback takes a request apart, has [`Mounted`] do it, and
//! replies.
//!
//! A panic below is answered with `EIO`, and the session goes on; the library refuses changes from then on where the
//! panic left one undone.
//!
//! Files are neither opened nor closed: *open* is answered with `ENOSYS`, and then the kernel does it by itself. The
//! exception is a mount without the kernel's cache, where each open has to say so. An inode is held by its look-ups,
//! and the kernel forgets none that is open.

mod answers;
mod controls;
mod listing;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use f2fs_device::AlignedBuf;
use f2fs_files::{AllocateFlags, FileKind, RenameMode, SetMode};
use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig,
    LockOwner, Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::OFlags;

use self::answers::{KEPT, caller, time, told};
use crate::attributes::{decode, nothing};
use crate::options::Cache;
use crate::volume::{Change, Kernel, Mounted, Read};

/// Bytes of a write at most.
const MAX_WRITE: u32 = 1 << 20;
/// How a file is opened whose contents the kernel does not keep.
const UNCACHED: FopenFlags = FopenFlags::FOPEN_DIRECT_IO.union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

thread_local! {
    /// The buffer of a thread's reads.
    static BUFFER: RefCell<AlignedBuf> = RefCell::new(AlignedBuf::default());
}

/// The volume as `fuser` serves it.
#[derive(Debug)]
pub(crate) struct Transport(pub(crate) Mounted);

impl Kernel for Notifier {
    fn forget_attributes(&self, number: u64) {
        // A negative offset: attributes alone, and no contents, whose pages other threads may have locked. It fails if
        // the kernel has forgotten the inode.
        let _ = self.inval_inode(INodeNo(number), -1, 0);
    }
}

impl Filesystem for Transport {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let options = self.0.options();
        let mut wanted = InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_CACHE_SYMLINKS
            | InitFlags::FUSE_EXPORT_SUPPORT
            | InitFlags::FUSE_NO_OPENDIR_SUPPORT
            | InitFlags::FUSE_EXPLICIT_INVAL_DATA
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2
            | InitFlags::FUSE_DONT_MASK;
        if options.uid.is_none() && options.gid.is_none() && options.umask.is_none() {
            wanted |= InitFlags::FUSE_POSIX_ACL;
        }
        wanted |= match options.cache {
            Cache::Through => InitFlags::FUSE_NO_OPEN_SUPPORT,
            Cache::WriteBack => InitFlags::FUSE_NO_OPEN_SUPPORT | InitFlags::FUSE_WRITEBACK_CACHE,
            // Where the kernel caches, it would leave what it has read in front of the end of an asynchronous direct
            // write in its cache (`fuse_aio_complete`), for good.
            Cache::None => InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP | InitFlags::FUSE_ASYNC_DIO,
        };
        if let Err(missing) = config.add_capabilities(wanted) {
            // An older kernel does without.
            let _ = config.add_capabilities(wanted - missing);
        }
        let _ = config.set_max_write(MAX_WRITE);
        let _ = config.set_max_readahead(MAX_WRITE);
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.run(|volume| volume.lookup(parent.0, name.as_bytes())) {
            Ok(data) => reply.entry(&KEPT, &self.attr(&data), Generation(data.generation.into())),
            Err(error) if error.code() == Errno::ENOENT.code() => reply.entry(&KEPT, &nothing(), Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        let _ = self.run(|volume| {
            volume.forget(ino.0, count);
            Ok(())
        });
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.attributes(reply, |volume| volume.attributes(ino.0));
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut change = Change { size, ..Change::default() };
        change.attributes.permissions = mode.map(|mode| mode as u16 & 0o7777);
        change.attributes.uid = uid;
        change.attributes.gid = gid;
        change.attributes.accessed = time(atime);
        change.attributes.modified = time(mtime);
        change.attributes.changed = ctime.map(|ctime| told(ctime).into());
        self.attributes(reply, |volume| volume.change(caller(request), ino.0, &change));
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        match self.run(|volume| volume.read_link(ino.0)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let device = Some(decode(rdev));
        self.entry(reply, |volume| volume.create(caller(request), parent.0, name.as_bytes(), mode, umask, device));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let mode = mode & 0o7777 | u32::from(FileKind::Directory.to_mode());
        self.entry(reply, |volume| volume.create(caller(request), parent.0, name.as_bytes(), mode, umask, None));
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(reply, |volume| volume.remove_file(parent.0, name.as_bytes()));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(reply, |volume| volume.remove_dir(parent.0, name.as_bytes()));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        self.entry(reply, |volume| volume.symlink(caller(request), parent.0, name.as_bytes(), target));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            flags if flags.is_empty() => RenameMode::Replace,
            RenameFlags::RENAME_NOREPLACE => RenameMode::NoReplace,
            RenameFlags::RENAME_EXCHANGE => RenameMode::Exchange,
            _ => return reply.error(Errno::EINVAL),
        };
        self.empty(reply, |volume| volume.rename((parent.0, name.as_bytes()), (to.0, new_name.as_bytes()), mode));
    }

    fn link(&self, _request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, |volume| volume.link(ino.0, parent.0, name.as_bytes()));
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.0.options().cache {
            Cache::None => reply.opened(FileHandle(0), UNCACHED),
            Cache::Through | Cache::WriteBack => reply.error(Errno::ENOSYS),
        }
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mode = mode & 0o7777 | u32::from(FileKind::Regular.to_mode());
        match self.run(|volume| volume.create(caller(request), parent.0, name.as_bytes(), mode, umask, None)) {
            Ok(data) => {
                let generation = Generation(data.generation.into());
                let flags = match self.0.options().cache {
                    Cache::None => UNCACHED,
                    Cache::Through | Cache::WriteBack => FopenFlags::FOPEN_KEEP_CACHE,
                };
                reply.created(&KEPT, &self.attr(&data), generation, FileHandle(0), flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| match self.run(|volume| volume.read(ino.0, buffer, offset, size as usize)) {
            Ok(Read::Buffer(read)) => reply.data(&buffer.as_bytes()[..read]),
            Ok(Read::Piece(known, piece)) => {
                reply.data(piece.as_bytes());
                // The answer is on its way.
                let _ = self.run(|volume| volume.read_on(&known, &piece));
            }
            Err(error) => reply.error(error),
        });
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
        open: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let by = flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID).then(|| caller(request));
        let kept = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        // `O_SYNC` has this bit, too.
        let durable = OFlags::from_bits_retain(open.0 as u32).contains(OFlags::DSYNC);
        match self.run(|volume| {
            let written = volume.write(ino.0, data, offset, kept, by)?;
            // Where the kernel caches, it asks for a sync itself.
            if durable && !kept && volume.options().cache == Cache::None {
                volume.sync(ino.0)?;
            }
            Ok(written)
        }) {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _request: &Request, _ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        // Nothing is held back; the kernel does not ask again.
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.empty(reply, |volume| volume.sync(ino.0));
    }

    fn fsyncdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        self.empty(reply, |volume| volume.sync_directory(ino.0));
    }

    fn readdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.list(ino, offset, reply);
    }

    fn readdirplus(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        self.list_with_attributes(ino, offset, reply);
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.run(|volume| Ok(volume.fs().statfs())) {
            Ok(stat) => {
                let free = stat.user_blocks.saturating_sub(stat.valid_blocks);
                let nodes = stat.max_nodes.saturating_sub(stat.valid_nodes).min(free);
                reply.statfs(stat.user_blocks, free, free, stat.valid_inodes + nodes, nodes, 4096, 255, 4096);
            }
            Err(error) => reply.error(error),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            0 => SetMode::Any,
            1 => SetMode::Create,
            2 => SetMode::Replace,
            // Both at once can only fail; the library is asked how.
            3 => match self.run(|volume| volume.xattr(ino.0, name.as_bytes())) {
                Ok(_) => return reply.error(Errno::EEXIST),
                Err(error) => return reply.error(error),
            },
            _ => return reply.error(Errno::EINVAL),
        };
        self.empty(reply, |volume| volume.set_xattr(caller(request), ino.0, name.as_bytes(), value, mode));
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        Self::bytes(reply, size, self.run(|volume| volume.xattr(ino.0, name.as_bytes())));
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        Self::bytes(reply, size, self.run(|volume| volume.xattr_names(caller(request), ino.0)));
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.empty(reply, |volume| volume.remove_xattr(ino.0, name.as_bytes()));
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        // Flags that the library does not know are refused by it.
        let flags = AllocateFlags::from_bits(mode.cast_unsigned());
        self.empty(reply, |volume| volume.allocate(caller(request), ino.0, offset, length, flags));
    }

    fn ioctl(
        &self,
        request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _flags: IoctlFlags,
        command: u32,
        data: &[u8],
        _room: u32,
        reply: ReplyIoctl,
    ) {
        self.control(caller(request), command, data, reply);
    }

    fn lseek(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        if self.0.options().cache == Cache::WriteBack {
            // What the kernel has kept is data, and not known here. Without an answer it takes the whole file for data,
            // and does not ask again.
            return reply.error(Errno::ENOSYS);
        }
        let (Ok(from), SEEK_DATA | SEEK_HOLE) = (u64::try_from(offset), whence) else {
            return reply.error(if offset < 0 { Errno::ENXIO } else { Errno::EINVAL });
        };
        match self.run(|volume| volume.seek(ino.0, from, whence == SEEK_HOLE)) {
            Ok(Some(found)) => reply.offset(found as i64),
            Ok(None) => reply.error(Errno::ENXIO),
            Err(error) => reply.error(error),
        }
    }
}
