//! The structures of requests and answers, as the kernel has them.
//!
//! Source: the kernel's `include/uapi/linux/fuse.h`. All integers are of the machine's own byte order, all structures
//! without gaps. Each is named as there, without `fuse_`.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The numbers of operations.
pub(super) mod operation {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const IOCTL: u32 = 39;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const TMPFILE: u32 = 51;
}

/// Bits of [`SetAttrIn::valid`].
pub(super) mod valid {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
    pub(crate) const CTIME: u32 = 1 << 10;
}

/// Bits of [`WriteIn::write_flags`].
pub(super) mod write {
    pub(crate) const CACHE: u32 = 1 << 0;
    pub(crate) const KILL_SUIDGID: u32 = 1 << 2;
}

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),+ $(,)? } $size:literal;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
        #[repr(C)]
        pub(super) struct $name { $(pub(super) $field: $kind),+ }
        const _: () = assert!(size_of::<$name>() == $size);
    )+ };
}

structures! {
    SetAttrIn {
        valid: u32, padding: u32, fh: u64, size: u64, lock_owner: u64, atime: i64, mtime: i64, ctime: i64,
        atimensec: u32, mtimensec: u32, ctimensec: u32, mode: u32, unused4: u32, uid: u32, gid: u32, unused5: u32,
    } 88;
    MknodIn { mode: u32, rdev: u32, umask: u32, padding: u32 } 16;
    MkdirIn { mode: u32, umask: u32 } 8;
    RenameIn { newdir: u64 } 8;
    Rename2In { newdir: u64, flags: u32, padding: u32 } 16;
    LinkIn { oldnodeid: u64 } 8;
    CreateIn { flags: u32, mode: u32, umask: u32, open_flags: u32 } 16;
    /// Of listings as well.
    ReadIn { fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32, padding: u32 } 40;
    WriteIn { fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32, padding: u32 } 40;
    /// The part that the kernel sends without `FUSE_SETXATTR_EXT`.
    SetXattrIn { size: u32, flags: u32 } 8;
    GetXattrIn { size: u32, padding: u32 } 8;
    IoctlIn { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 } 32;
    FallocateIn { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 } 32;
    LseekIn { fh: u64, offset: i64, whence: u32, padding: u32 } 24;

    Attr {
        ino: u64, size: u64, blocks: u64, atime: i64, mtime: i64, ctime: i64, atimensec: u32, mtimensec: u32,
        ctimensec: u32, mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32, blksize: u32, flags: u32,
    } 88;
    EntryOut {
        nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64, entry_valid_nsec: u32, attr_valid_nsec: u32,
        attr: Attr,
    } 128;
    AttrOut { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: Attr } 104;
    OpenOut { fh: u64, open_flags: u32, backing_id: i32 } 16;
    CreateOut { entry: EntryOut, open: OpenOut } 144;
    WriteOut { size: u32, padding: u32 } 8;
    StatfsOut {
        blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32, namelen: u32, frsize: u32,
        padding: u32, spare: [u32; 6],
    } 80;
    GetXattrOut { size: u32, padding: u32 } 8;
    IoctlOut { result: i32, flags: u32, in_iovs: u32, out_iovs: u32 } 16;
    LseekOut { offset: i64 } 8;
    /// The name follows, and zeros up to a multiple of 8.
    Dirent { ino: u64, off: u64, namelen: u32, kind: u32 } 24;
}
