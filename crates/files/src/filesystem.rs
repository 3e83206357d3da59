//! A file system: a volume with a namespace on top.

use core::fmt;
use core::num::NonZeroUsize;
use std::path::PathBuf;

use f2fs_device::BlockDevice;
use f2fs_extent::CacheBudget;
use f2fs_format::Nid;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, Budget, CachePadded, Mutex, PerCore, PlainArc};
use f2fs_volume::{CheckpointReport, CleanReport, Need, Op, OpenOptions, Reason, Volume, VolumeStat};

use crate::dentry_cache::DentryCache;
use crate::directory::{DirectoryLock, NAMES};
use crate::hazard::Hazards;
use crate::idle::Idle;
use crate::inode::Inode;
use crate::inode_table::InodeTable;
use crate::path_cache::PathCache;
use crate::ranges::RangeLock;
use crate::recovery::RecoveryReport;
use crate::requests::Requests;
use crate::{FsError, Time};

/// How a file system is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How the volume is opened.
    pub volume: OpenOptions,
    /// The extent of the lock that a change of a name takes.
    pub directory_lock: DirectoryLock,
    /// Inodes kept in memory that nobody uses, about.
    pub inode_cache: NonZeroUsize,
    /// The kind of lock on ranges of a file's blocks.
    pub range_lock: RangeLock,
    /// Bytes that may remember where blocks of files lie: 4 for each block that was read. Addresses beyond that are looked up
    /// in the nodes every time. An inode gives its part back when it leaves memory.
    pub address_cache: u64,
    /// Bytes that the range locks of files which nobody has open may take, about; what is more leaves memory. A file that is open
    /// takes a byte for each block that was read or written, and up to 60 KiB for one far behind the others.
    pub lock_memory: u64,
    /// Dentry blocks kept in memory, about (4 KiB each), beside those that wait for a checkpoint.
    pub dentry_cache: NonZeroUsize,
    /// The other devices of a volume that lies on several, in their order, for [`FileSystem::open_path`].
    pub devices: Vec<PathBuf>,
    /// The clock for the times of files; the system's by default. A clock that stands still makes the same
    /// operations leave the same images.
    pub clock: fn() -> Time,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            volume: OpenOptions::default(),
            directory_lock: DirectoryLock::default(),
            inode_cache: NonZeroUsize::MIN.saturating_add(65_535),
            range_lock: RangeLock::default(),
            address_cache: 64 << 20,
            lock_memory: 64 << 20,
            dentry_cache: NonZeroUsize::MIN.saturating_add(65_535),
            devices: Vec::new(),
            clock: Time::now,
        }
    }
}

impl Options {
    /// For reading and writing, with the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For reading only, or not.
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.volume.read_only = yes;
        self
    }

    /// How the volume is opened.
    #[must_use]
    pub fn volume(mut self, options: OpenOptions) -> Self {
        self.volume = options;
        self
    }

    /// The extent of the lock that a change of a name takes.
    #[must_use]
    pub fn directory_lock(mut self, lock: DirectoryLock) -> Self {
        self.directory_lock = lock;
        self
    }

    /// Inodes kept in memory that nobody uses, about.
    #[must_use]
    pub fn inode_cache(mut self, inodes: NonZeroUsize) -> Self {
        self.inode_cache = inodes;
        self
    }

    /// The kind of lock on ranges of a file's blocks.
    #[must_use]
    pub fn range_lock(mut self, lock: RangeLock) -> Self {
        self.range_lock = lock;
        self
    }

    /// Bytes that may remember where blocks of files lie, 4 for each; 64 MiB, for 64 GiB of files, by default.
    #[must_use]
    pub fn address_cache(mut self, bytes: u64) -> Self {
        self.address_cache = bytes;
        self
    }

    /// Bytes that the range locks of files which nobody has open may take, about; 64 MiB by default.
    #[must_use]
    pub fn lock_memory(mut self, bytes: u64) -> Self {
        self.lock_memory = bytes;
        self
    }

    /// Dentry blocks kept in memory, about; 65,536 (256 MiB) by default.
    #[must_use]
    pub fn dentry_cache(mut self, blocks: NonZeroUsize) -> Self {
        self.dentry_cache = blocks;
        self
    }

    /// The other devices of a volume that lies on several, in their order, for [`FileSystem::open_path`].
    #[must_use]
    pub fn devices(mut self, others: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.devices = others.into_iter().map(Into::into).collect();
        self
    }

    /// The clock for the times of files.
    ///
    /// ```
    /// # use f2fs_files::{Options, Time};
    /// let options = Options::new().clock(|| Time { seconds: 1_000_000_000, nanoseconds: 0 });
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: fn() -> Time) -> Self {
        self.clock = clock;
        self
    }
}

/// An open file system. Cheap to clone; all clones are the same file system. `Send + Sync`: use it from any number of
/// threads.
///
/// A change is durable after [`checkpoint`](Self::checkpoint), [`File::sync_all`](crate::File::sync_all) or
/// [`close`](Self::close). Dropping the last clone without closing is what a crash would be: the next open finds the last
/// checkpoint, and the files that were synced since.
#[derive(Clone, Debug)]
pub struct FileSystem {
    pub(crate) core: Arc<Core>,
    recovered: RecoveryReport,
    /// References to the core, whose counts each belong to one processor.
    cores: Arc<PerCore<CoreRef>>,
}

/// A reference to the core that handles hold. It is counted in a line that threads on other processors do not write, as a
/// rule: opening and closing files would all write the one of the core's own count. The padding has each count begin on a
/// line of its own wherever the heap puts it: without it, those of two processors may be neighbours in one.
pub(crate) type CoreRef = Arc<CachePadded<Arc<Core>>>;

/// The state that all handles share.
pub(crate) struct Core {
    pub(crate) volume: Volume,
    pub(crate) inodes: InodeTable,
    pub(crate) path_cache: PathCache,
    pub(crate) idle: Idle,
    pub(crate) dentries: DentryCache,
    pub(crate) options: Options,
    /// For what is remembered of block addresses.
    pub(crate) addresses: Arc<CacheBudget>,
    pub(crate) requests: Requests,
    /// The budget of names that directories know.
    pub(crate) names: Arc<Budget>,
    /// Directories with changed blocks.
    queue: PerCore<Mutex<Vec<Arc<Inode>>>>,
    /// Names that a sync of a new file must not rely on.
    pub(crate) hazards: Hazards,
    /// Held by every rename between two directories: the tree's shape does not change meanwhile.
    pub(crate) rename: Mutex<()>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("volume", &self.volume).finish_non_exhaustive()
    }
}

/// Times that an operation is tried again after segments were freed.
const RETRIES: u32 = 3;

impl Core {
    /// The present, for the times of files.
    pub(crate) fn now(&self) -> Time {
        (self.options.clock)().nearest()
    }

    /// The inode object of a number. The caller makes sure that the inode cannot be freed meanwhile.
    pub(crate) fn inode(&self, ino: Nid) -> Result<Arc<Inode>, FsError> {
        self.inodes.get(ino, || Inode::load(&self.volume, ino, &self.options))
    }

    /// Runs one operation on the volume. If it fails for lack of segments or NIDs although the volume is not full, the volume
    /// is cleaned and the operation tried again; so `change` must leave nothing behind when it fails like that.
    pub(crate) fn change<T>(&self, mut change: impl FnMut(&Op<'_>) -> Result<T, FsError>) -> Result<T, FsError> {
        let mut tries = 0;
        loop {
            let result = {
                let op = self.volume.begin()?;
                change(&op)
            };
            match result {
                Err(error) if error.is_shortage() && tries < RETRIES && self.volume.reclaim_may_help() => {
                    tries += 1;
                    self.clean()?;
                }
                result => return result,
            }
        }
    }

    /// Writes a checkpoint, or cleans, if that is due. Called before an operation, with no lock held.
    pub(crate) fn balance(&self, hint: Nid) -> Result<(), FsError> {
        match self.volume.need(hint) {
            Need::Nothing => {}
            Need::Checkpoint => {
                self.checkpoint(Reason::Sync)?;
            }
            Need::Preclean => self.preclean()?,
            Need::Cleaning => {
                self.clean()?;
            }
        }
        Ok(())
    }

    pub(crate) fn checkpoint(&self, reason: Reason) -> Result<CheckpointReport, FsError> {
        let report = self.volume.checkpoint_with(reason, |op| self.write_directories(op))?;
        self.inodes.shrink();
        Ok(report)
    }

    /// Puts a directory on the list of those to write back.
    pub(crate) fn queue_directory(&self, inode: &Arc<Inode>) {
        if let Some(directory) = &inode.directory
            && !directory.queued.load(Ordering::Relaxed)
            && !directory.queued.swap(true, Ordering::AcqRel)
        {
            self.queue.slot().lock().push(inode.clone());
        }
    }

    pub(crate) fn write_directories(&self, op: &Op<'_>) -> Result<(), FsError> {
        let mut all: Vec<Arc<Inode>> = self.queue.iter().flat_map(|list| core::mem::take(&mut *list.lock())).collect();
        all.sort_unstable_by_key(|inode| inode.ino);
        let mut result = Ok(());
        for inode in all {
            if let Some(directory) = &inode.directory {
                if result.is_ok() {
                    result = directory.write_back(op, self, &inode);
                } else {
                    // Keep it queued for the next try.
                    directory.queued.store(false, Ordering::Release);
                    self.queue_directory(&inode);
                }
            }
        }
        result
    }
}

impl FileSystem {
    /// Opens the file system on a device, at its last checkpoint, with what was synced since. The device is claimed until the
    /// file system is closed, or dropped with all its clones and handles: nobody else in this process opens it meanwhile, beside
    /// those who read what was opened for reading. Orphans that an earlier process
    /// left are freed, unless the file system is opened for reading: then nothing is written, and what was synced since the
    /// checkpoint is brought back in memory.
    ///
    /// # Errors
    /// Those of [`Volume::open`], and corruption found in the root directory, in an orphan, or in the chain of synced nodes; for
    /// the last, [`OpenOptions::recovery`] gives the state of the checkpoint.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "open", skip_all, fields(read_only = options.volume.read_only), err))]
    pub fn open(device: PlainArc<dyn BlockDevice>, options: Options) -> Result<FileSystem, FsError> {
        let volume = Volume::open(device, &options.volume)?;
        let core = Arc::new(Core {
            volume,
            inodes: InodeTable::new(options.inode_cache.get()),
            addresses: Arc::new(CacheBudget::new(options.address_cache)),
            requests: Requests::new(),
            path_cache: PathCache::new(),
            idle: Idle::new(options.lock_memory),
            dentries: DentryCache::new(options.dentry_cache.get() as u64),
            options,
            names: Arc::new(Budget::new(NAMES)),
            queue: PerCore::new(|_| Mutex::new(Vec::new())),
            hazards: Hazards::new(),
            rename: Mutex::new(()),
        });
        let root = core.inode(core.volume.geometry().root_ino)?;
        root.directory()?;
        let recovered = if core.options.volume.recovery { core.roll_forward()? } else { RecoveryReport::default() };
        if !core.volume.is_read_only() {
            if recovered.files != 0 {
                // Before anything else is changed: from here on the recovered files do not hang on the chain.
                core.checkpoint(Reason::Sync)?;
            }
            for ino in core.volume.orphans() {
                core.free_orphan(ino)?;
            }
        }
        let cores = Arc::new(PerCore::new(|_| Arc::new(CachePadded::new(core.clone()))));
        Ok(FileSystem { core, recovered, cores })
    }

    /// A reference to the core for a handle.
    pub(crate) fn core_ref(&self) -> CoreRef {
        Arc::clone(self.cores.slot())
    }

    /// The files that were synced after the last checkpoint and brought back when the file system was opened.
    #[must_use]
    pub fn recovered(&self) -> RecoveryReport {
        self.recovered
    }

    /// Counts and sizes.
    #[must_use]
    pub fn statfs(&self) -> VolumeStat {
        self.core.volume.stat()
    }

    /// Moves blocks together until segments are free that nothing waits for: what an operation does by itself when they run
    /// short. If any were freed, everything that was done so far is durable afterwards.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn clean(&self) -> Result<CleanReport, FsError> {
        self.core.clean()
    }

    /// Makes everything that was done so far durable.
    ///
    /// # Errors
    /// [`FsError::Volume`]; see [`Volume::checkpoint_with`] for what an error means.
    pub fn checkpoint(&self) -> Result<CheckpointReport, FsError> {
        self.core.checkpoint(Reason::Sync)
    }

    /// Writes the last checkpoint and marks the volume as cleanly closed. Handles that are still open fail from here on if
    /// they change something; a file that was opened and has no name is freed by the next open. The device can be opened again,
    /// and what is read through a handle from then on may be what the next one wrote: close when nobody reads any more.
    ///
    /// # Errors
    /// [`FsError::Volume`]: the volume stays at its last good checkpoint.
    pub fn close(&self) -> Result<(), FsError> {
        self.core.volume.close_with(|op| self.core.write_directories(op))
    }
}
