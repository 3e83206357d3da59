//! The protocol on `/dev/fuse`, as the crate `fuser` speaks it: each callback takes a request apart, has the [`Service`]
//! do it, and replies. Where requests come through [rings](crate::uring), what the kernel negotiates and forgets comes
//! here all the same.

mod answers;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use f2fs_files::FileKind;
use f2fs_sync::Arc;
use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner,
    Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::OFlags;

use self::answers::{caller, number, time, told};
use crate::attributes::nothing;
use crate::options::{Cache, Transport};
use crate::service::{KEPT, Room, Service, Write};
use crate::volume::{Change, Kernel};

/// Bytes of a write at most.
pub(crate) const MAX_WRITE: u32 = 1 << 20;

/// The volume as `fuser` serves it.
#[derive(Debug)]
pub(crate) struct Device(pub(crate) Arc<Service>);

impl Kernel for Notifier {
    fn forget_attributes(&self, number: u64) {
        // A negative offset: attributes alone, and no contents, whose pages other threads may have locked. It fails if
        // the kernel has forgotten the inode.
        let _ = self.inval_inode(INodeNo(number), -1, 0);
    }
}

impl Filesystem for Device {
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
        if options.transport == Transport::Uring && config.add_capabilities(InitFlags::FUSE_OVER_IO_URING).is_err() {
            // It was there a moment ago.
            return Err(rustix::io::Errno::OPNOTSUPP.into());
        }
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
        match self.0.lookup(parent.0, name.as_bytes()).transpose() {
            Some(found) => self.entry(reply, found),
            None => reply.entry(&KEPT, &nothing(), Generation(0)),
        }
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        self.0.forget(ino.0, count);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.attributes(reply, self.0.run(|volume| volume.attributes(ino.0)));
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
        self.attributes(reply, self.0.run(|volume| volume.change(caller(request), ino.0, &change)));
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        match self.0.run(|volume| volume.read_link(ino.0)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(number(error)),
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
        let name = (parent.0, name.as_bytes());
        self.entry(reply, self.0.make_node(caller(request), name, mode, umask, rdev));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let name = (parent.0, name.as_bytes());
        self.entry(reply, self.0.make(caller(request), name, FileKind::Directory, mode, umask));
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        Self::empty(reply, self.0.run(|volume| volume.remove_file(parent.0, name.as_bytes())));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        Self::empty(reply, self.0.run(|volume| volume.remove_dir(parent.0, name.as_bytes())));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        self.entry(reply, self.0.run(|volume| volume.symlink(caller(request), parent.0, name.as_bytes(), target)));
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
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        Self::empty(reply, self.0.rename((parent.0, name.as_bytes()), (to.0, new_name.as_bytes()), flags));
    }

    fn link(&self, _request: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, self.0.run(|volume| volume.link(ino.0, parent.0, name.as_bytes())));
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.0.open() {
            Ok(flags) => reply.opened(FileHandle(0), flags),
            Err(error) => reply.error(number(error)),
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
        match self.0.make(caller(request), (parent.0, name.as_bytes()), FileKind::Regular, mode, umask) {
            Ok(data) => {
                let generation = Generation(data.generation.into());
                reply.created(&KEPT, &self.attr(&data), generation, FileHandle(0), self.0.open_new());
            }
            Err(error) => reply.error(number(error)),
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
        let ((), ahead) = self.0.read(ino.0, offset, size, |read| match read {
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(number(error)),
        });
        ahead.iter().for_each(|ahead| self.0.read_on(ahead));
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
        let write = Write {
            data,
            offset,
            kept: flags.contains(WriteFlags::FUSE_WRITE_CACHE),
            takes_privileges: flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID),
            open: OFlags::from_bits_retain(open.0 as u32),
        };
        match self.0.write(caller(request), ino.0, write) {
            Ok(written) => reply.written(written),
            Err(error) => reply.error(number(error)),
        }
    }

    fn flush(&self, _request: &Request, _ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        // Nothing is held back; the kernel does not ask again.
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        Self::empty(reply, self.0.run(|volume| volume.sync(ino.0)));
    }

    fn fsyncdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        Self::empty(reply, self.0.run(|volume| volume.sync_directory(ino.0)));
    }

    fn readdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.list(ino.0, offset, reply);
    }

    fn readdirplus(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        self.list_with_attributes(ino.0, offset, reply);
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.0.space() {
            Ok(space) => {
                let (free, files) = (space.free, space.files);
                reply.statfs(space.blocks, free, free, files, space.free_files, 4096, 255, 4096);
            }
            Err(error) => reply.error(number(error)),
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
        let (caller, flags) = (caller(request), flags.cast_unsigned());
        Self::empty(reply, self.0.set_xattr(caller, ino.0, name.as_bytes(), value, flags));
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        Self::value(reply, self.0.xattr(ino.0, name.as_bytes(), Room(size)));
    }

    fn listxattr(&self, request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        Self::value(reply, self.0.xattr_names(caller(request), ino.0, Room(size)));
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        Self::empty(reply, self.0.run(|volume| volume.remove_xattr(ino.0, name.as_bytes())));
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
        Self::empty(reply, self.0.allocate(caller(request), ino.0, offset, length, mode.cast_unsigned()));
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
        match self.0.control(caller(request), command, data) {
            Ok(done) => reply.ioctl(0, &done),
            Err(error) => reply.error(number(error)),
        }
    }

    fn lseek(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        match self.0.seek(ino.0, offset, whence.cast_unsigned()) {
            Ok(found) => reply.offset(found),
            Err(error) => reply.error(number(error)),
        }
    }
}
