//! The directories whose changed blocks the next checkpoint writes.
//!
//! # Locking
//!
//! One list for each processor, with a mutex for a push or to take all; nothing else is locked under it. A directory
//! stands on one list at most: its flag `queued` says so. An operation that changes a directory puts it here before it
//! leaves the gate, so that the next checkpoint finds it. Blocks are also written ahead of a checkpoint, beside
//! operations. `queued` is cleared before the changes are taken, and looked at after a change was noted. So a change
//! that is not taken puts the directory back on a list.

use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, Mutex, PerCore, protocol_never, protocol_step};
use f2fs_volume::{Op, Volume};

use crate::FsError;
use crate::inode::Inode;

/// The directories with changed blocks.
pub(crate) struct DirtyDirectories(PerCore<Mutex<Vec<Arc<Inode>>>>);

impl DirtyDirectories {
    pub(crate) fn new() -> DirtyDirectories {
        DirtyDirectories(PerCore::new(|_| Mutex::new(Vec::new())))
    }

    /// A directory was changed. One whose names stand in its inode is written as a node.
    pub(crate) fn add(&self, inode: &Arc<Inode>) {
        if let Some(directory) = &inode.directory
            && directory.is_hashed()
            && !directory.queued.load(Ordering::SeqCst)
            && !directory.queued.swap(true, Ordering::AcqRel)
        {
            self.0.slot().lock().push(inode.clone());
        }
    }

    /// Takes all of them, by their numbers.
    fn take(&self) -> Vec<Arc<Inode>> {
        let mut all: Vec<Arc<Inode>> = self.0.iter().flat_map(|list| core::mem::take(&mut *list.lock())).collect();
        all.sort_unstable_by_key(|inode| inode.ino);
        all
    }

    /// Writes changed dentry blocks while operations run, ahead of a checkpoint. What changes again is written by the
    /// checkpoint.
    pub(crate) fn write_ahead(&self, volume: &Volume) -> Result<(), FsError> {
        let mut result = Ok(true);
        for inode in self.take() {
            let Some(directory) = &inode.directory else { continue };
            protocol_step!("directory_queued_until_written", directory.queued.store(false, Ordering::SeqCst));
            if let Ok(true) = result {
                result = volume.begin().map_err(FsError::from).and_then(|op| directory.write_ahead(&op));
            }
            let again = !matches!(result, Ok(true)) || directory.has_changed_blocks();
            protocol_never!("directory_queued_until_written", directory.queued.store(false, Ordering::SeqCst));
            if again {
                self.add(&inode);
            }
        }
        result.map(drop)
    }

    /// Writes all of them, by their numbers. The gate is closed. Those that could not be written stay.
    pub(crate) fn write(&self, op: &Op<'_>) -> Result<(), FsError> {
        let mut result = Ok(());
        for inode in self.take() {
            if let Some(directory) = &inode.directory {
                directory.queued.store(false, Ordering::Release);
                if result.is_ok() {
                    result = directory.write_back(op);
                }
                if result.is_err() {
                    self.add(&inode);
                }
            }
        }
        result
    }
}
