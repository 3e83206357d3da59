//! The state that all handles of a file system share, and how an operation changes it.
//!
//! The operations stand with their nouns, each a view of the core, from the lowest up:
//!
//! | View | Its operations |
//! |---|---|
//! | [`WriteBack`] | dirty pages on their way to the device |
//! | [`InodeEnds`](crate::free::InodeEnds) | handles, links, orphans, freeing |
//! | [`FileData`](crate::file_data::FileData) | reading, writing, sizes, holes, syncs of one file |
//! | [`Attributes`](crate::xattr::Attributes) | extended attributes |
//! | [`Namespace`](crate::namespace::Namespace) | paths and names: look up, make, remove, rename |
//! | [`RollForward`](crate::recovery::RollForward) | synced files after a crash |
//!
//! # Locking
//!
//! `rename` comes before all locks of directories. The locks of each part are described in its own file.

use core::fmt;

use f2fs_extent::CacheBudget;
use f2fs_format::Nid;
use f2fs_sync::{Arc, CachePadded, Mutex, PerCore, protocol_step};
use f2fs_volume::{CheckpointReport, Need, Op, Reason, Volume};

use crate::content::Content;
use crate::dentry_cache::DentryCache;
use crate::directory::Directories;
use crate::dirty_directories::DirtyDirectories;
use crate::dirty_files::DirtyFiles;
use crate::hazard::Hazards;
use crate::idle::Idle;
use crate::inode::Inode;
use crate::inode_table::InodeTable;
use crate::open_files::OpenFiles;
use crate::options::Options;
use crate::page_cache::PageCache;
use crate::path_cache::PathCache;
use crate::requests::Requests;
use crate::{FsError, Time};

/// Inodes that are read together.
const BATCH: usize = 128;

mod clean;
mod refill;
pub(crate) mod write_back;

pub(crate) use clean::CLEANED_AT_ONCE;
use write_back::WriteBack;

/// A reference to the core that handles hold. It is counted in a line that threads on other processors do not write, as
/// a rule: opening and closing files would all write the one of the core's own count. The padding has each count begin
/// on a line of its own wherever the heap puts it: without it, those of two processors may be neighbours in one.
pub(crate) type CoreRef = Arc<CachePadded<Arc<Core>>>;

/// The state that all handles share.
pub(crate) struct Core {
    pub(crate) volume: Volume,
    pub(crate) inodes: InodeTable,
    pub(crate) path_cache: PathCache,
    pub(crate) open_files: OpenFiles,
    pub(crate) idle: Idle,
    /// The state that all directories share.
    pub(crate) directories: Arc<Directories>,
    pub(crate) dentries: DentryCache,
    /// Directories with changed blocks.
    pub(crate) dirty_directories: DirtyDirectories,
    pub(crate) pages: PageCache,
    /// Files with dirty pages.
    pub(crate) dirty_files: DirtyFiles,
    pub(crate) options: Options,
    /// For what is remembered of block addresses.
    pub(crate) addresses: PerCore<Arc<CacheBudget>>,
    pub(crate) requests: Requests,
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
    pub(crate) fn new(volume: Volume, options: Options) -> Core {
        let directories = Arc::new(Directories::new(options.directory_lock));
        let addresses = CacheBudget::new(options.address_cache);
        Core {
            volume,
            inodes: InodeTable::new(options.inode_cache.get()),
            addresses: PerCore::new(|_| Arc::new(addresses.another())),
            requests: Requests::new(),
            path_cache: PathCache::new(),
            open_files: OpenFiles::new(),
            idle: Idle::new(options.lock_memory),
            dentries: DentryCache::new(options.dentry_cache.get() as u64, directories.clone()),
            directories,
            dirty_directories: DirtyDirectories::new(),
            pages: PageCache::new(options.page_cache),
            dirty_files: DirtyFiles::new(),
            options,
            hazards: Hazards::new(),
            rename: Mutex::new(()),
        }
    }

    /// The present, for the times of files.
    pub(crate) fn now(&self) -> Time {
        (self.options.clock)().nearest()
    }

    /// The inode object of a number. The caller makes sure that the inode cannot be freed meanwhile.
    pub(crate) fn inode(&self, ino: Nid) -> Result<Arc<Inode>, FsError> {
        self.inodes.get(ino, || Inode::load(&self.volume, ino, &self.directories))
    }

    /// Reads inodes that are about to be asked for. Between two batches operations that need the volume for themselves
    /// have their turn.
    pub(crate) fn read_ahead(&self, inos: &[Nid]) {
        for batch in inos.chunks(BATCH) {
            let _gate = self.volume.begin_read();
            self.volume.nodes().prefetch(batch);
        }
    }

    /// The file's data in memory. A change of the size asks for this first, so that the copy in it is right.
    #[inline]
    pub(crate) fn content<'i>(&self, inode: &'i Inode) -> &'i Content {
        inode.content_or(|raw| {
            Content::new(raw, self.volume.features(), self.options.range_lock, self.addresses.slot().clone())
        })
    }

    /// Runs one operation on the volume. If it fails for lack of segments or NIDs although the volume is not full, the
    /// volume is cleaned, or a checkpoint written, and the operation tried again; so `change` must leave nothing behind
    /// when it fails like that.
    pub(crate) fn change<T>(&self, mut change: impl FnMut(&Op<'_>) -> Result<T, FsError>) -> Result<T, FsError> {
        let mut tries = 0;
        loop {
            let result = {
                let op = self.volume.begin()?;
                change(&op)
            };
            match result {
                Err(error) if error.is_lack_of_nids() => {
                    if tries == RETRIES || !self.volume.balance().checkpoint_frees_nids() {
                        return Err(error);
                    }
                    tries += 1;
                    self.checkpoint(Reason::Sync)?;
                }
                Err(error) if error.is_shortage() && tries < RETRIES && self.volume.balance().reclaim_may_help() => {
                    tries += 1;
                    self.clean()?;
                }
                result => return result,
            }
        }
    }

    /// Writes a checkpoint, or cleans, or makes room among dentry blocks, if that is due. Called before an operation,
    /// with no lock held.
    pub(crate) fn balance(&self) -> Result<(), FsError> {
        self.dentries.trim(&self.inodes);
        self.volume.balance().keep_pace();
        match self.volume.balance().need() {
            Need::Nothing => {}
            Need::Attendance => self.call_who_attends(),
            Need::Checkpoint => self.checkpoint_if_needed()?,
            Need::Preclean => self.preclean()?,
            Need::CleaningStep => drop(self.volume.cleaning().step_ahead()),
            Need::Cleaning => {
                self.clean()?;
            }
        }
        Ok(())
    }

    /// Does what operations left to the thread that attends.
    pub(crate) fn attend(&self) -> Result<(), FsError> {
        match self.volume.balance().needs_beside() {
            Need::Checkpoint => self.checkpoint_if_needed(),
            Need::Preclean => self.preclean(),
            _ => Ok(()),
        }
    }

    /// Wakes the thread that attends, if it was not called yet.
    pub(crate) fn call_who_attends(&self) {
        if self.volume.balance().call() {
            self.pages.alarm.ring();
        }
    }

    fn checkpoint_if_needed(&self) -> Result<(), FsError> {
        WriteBack(self).write_back_ahead();
        let ahead = || self.dirty_directories.write_ahead(&self.volume);
        if self.volume.checkpoints().write_if_needed(ahead, |op| self.write_above(op))?.is_some() {
            self.inodes.shrink();
        }
        Ok(())
    }

    pub(crate) fn checkpoint(&self, reason: Reason) -> Result<CheckpointReport, FsError> {
        let ahead = || self.dirty_directories.write_ahead(&self.volume);
        let report = self.volume.checkpoints().write_with(reason, ahead, |op| self.write_above(op))?;
        self.inodes.shrink();
        Ok(report)
    }

    /// Writes what a checkpoint has to have beside nodes, with the gate closed: data first, so that no size is durable
    /// before it.
    pub(crate) fn write_above(&self, op: &Op<'_>) -> Result<(), FsError> {
        if self.pages.is_on() {
            protocol_step!("cached_checkpoint_leaves_dirty", WriteBack(self).write_back_all(op)?);
        }
        self.dirty_directories.write(op)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
