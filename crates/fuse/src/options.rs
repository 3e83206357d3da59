//! How a volume is mounted.

use std::time::Duration;

/// The kernel's way of caching the contents of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cache {
    /// It caches reads; each write reaches the volume before it returns.
    #[default]
    Through,
    /// It caches reads and writes. Writes are handed on when a file is synced or closed, or after some seconds. It notes
    /// their times itself, by the clock of [`Time::now_coarse`](f2fs_files::Time::now_coarse): a file system that is
    /// [opened with that clock](f2fs_files::Options::clock) has its times in one order with these, and is asked less
    /// often to change them.
    WriteBack,
    /// Nothing: each read and write reaches the volume, as with `O_DIRECT`. Shared mappings need Linux 6.6.
    None,
}

/// The way in which requests come from the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// They are read from `/dev/fuse`.
    #[default]
    Device,
    /// Through rings, from Linux 6.14 on and where the kernel's parameter allows it. Files without a name (`O_TMPFILE`)
    /// can be made then.
    Uring,
}

/// How a volume is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountOptions {
    /// The source in the list of mounts; if this is empty, `f2fs`.
    pub source: String,
    /// For reading only. The file system must be opened so as well.
    pub read_only: bool,
    /// All users may use the mount, not only the one who made it.
    pub allow_other: bool,
    /// Device nodes work. Only root can mount so.
    pub devices: bool,
    /// Set-id bits work. Only root can mount so.
    pub set_id: bool,
    /// Programs on the mount cannot be run.
    pub no_exec: bool,
    /// A write is durable when it returns, as with `O_DSYNC`. Changes of names are durable after a sync, as ever.
    pub synchronous: bool,
    /// All files are shown as this user's.
    pub uid: Option<u32>,
    /// All files are shown as this group's.
    pub gid: Option<u32>,
    /// All files are shown with the permissions 777 without these.
    pub umask: Option<u16>,
    /// The kernel's way of caching the contents of files.
    pub cache: Cache,
    /// The time between checkpoints that the server writes by itself, if something has changed. 60 seconds by default,
    /// as in the kernel's F2FS (`cp_interval`); `None`: never. An unchanged volume is not written to.
    pub commit: Option<Duration>,
    /// Inodes that stay in memory, with 6 KiB each, as long as the kernel knows them, though they have not been used for
    /// long: 65,536 by default. The kernel may know millions. Those whose last name has gone stay until it forgets them.
    pub inodes: usize,
    /// Threads that answer requests; 0: by the processors. A number above [`MOST_THREADS`](Self::MOST_THREADS) counts
    /// as that.
    pub threads: usize,
    /// The way in which requests come from the kernel.
    pub transport: Transport,
}

impl MountOptions {
    /// The greatest number of threads that answer requests.
    pub const MOST_THREADS: usize = 256;
}

impl Default for MountOptions {
    fn default() -> MountOptions {
        MountOptions {
            source: String::new(),
            read_only: false,
            allow_other: false,
            devices: false,
            set_id: false,
            no_exec: false,
            synchronous: false,
            uid: None,
            gid: None,
            umask: None,
            cache: Cache::Through,
            commit: Some(Duration::from_secs(60)),
            inodes: 65_536,
            threads: 0,
            transport: Transport::Device,
        }
    }
}
