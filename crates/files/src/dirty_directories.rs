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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_device::{MemoryDevice, Operation};
    use f2fs_device_test::{FaultDevice, FaultRule};
    use f2fs_format::hash::dentry_hash;
    use f2fs_sync::PlainArc;
    use f2fs_volume::format::{FormatOptions, format};

    use super::*;
    use crate::samples::formatted;
    use crate::{FileKind, FileSystem, InodeRef, NewFile, Options};

    /// A directory with blocks, none of them changed.
    fn hashed(fs: &FileSystem, name: &str) -> InodeRef {
        let directory = fs.root().unwrap().create(name, &NewFile::new(FileKind::Directory, 0o755)).unwrap();
        for name in 0..30 {
            directory.create(format!("{name:0>200}"), &NewFile::new(FileKind::Fifo, 0o644)).unwrap();
        }
        fs.checkpoint().unwrap();
        directory
    }

    /// Whoever's turn it was: they are written by their numbers, so that the same changes leave the same image.
    #[test]
    fn each_is_listed_once_and_taken_by_its_number() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let mut all = [hashed(&fs, "a"), hashed(&fs, "b"), hashed(&fs, "c")];
        all.sort_unstable_by_key(|directory| core::cmp::Reverse(directory.ino()));
        let inline = fs.root().unwrap().create("inline", &NewFile::new(FileKind::Directory, 0o755)).unwrap();
        let list = DirtyDirectories::new();
        for _ in 0..2 {
            all.iter().chain([&inline]).for_each(|directory| list.add(directory.inode()));
        }
        let mut numbers = all.each_ref().map(InodeRef::ino);
        numbers.reverse();
        let taken = list.take();
        assert!(taken.iter().map(|inode| inode.ino).eq(numbers));
        assert!(list.take().is_empty());
        // Nothing of them was written: who took them puts them back, or says that they are on no list.
        taken.iter().for_each(|inode| inode.directory.as_ref().unwrap().queued.store(false, Ordering::SeqCst));
        list.add(all[0].inode());
        assert_eq!(list.take().len(), 1);
        taken.iter().for_each(|inode| inode.directory.as_ref().unwrap().queued.store(false, Ordering::SeqCst));
    }

    /// What was written ahead is not dirty any more, and on no list.
    #[test]
    fn changed_blocks_are_written_ahead_of_a_checkpoint() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let directory = hashed(&fs, "d");
        directory.create("new", &NewFile::new(FileKind::Fifo, 0o644)).unwrap();
        let changed = || directory.inode().directory.as_ref().unwrap().has_changed_blocks();
        assert!(changed());
        fs.core.dirty_directories.write_ahead(&fs.core.volume).unwrap();
        assert!(!changed());
        assert!(fs.core.dirty_directories.take().is_empty());
    }

    /// A block that cannot be written ahead, since its node cannot be read, is written by the checkpoint.
    #[test]
    fn blocks_whose_nodes_cannot_be_read_are_left_to_the_checkpoint() {
        let device = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(32 * 1024))));
        format(&*device, &FormatOptions::default()).unwrap();
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let directory = hashed(&fs, "d");
        (0..30).for_each(|name| directory.remove_file(format!("{name:0>200}")).unwrap());
        // So many buckets that the last ones have their blocks below a node of their own.
        let buckets = 512;
        let change = fs.core.change(|op| {
            directory.inode().node.write(op).inode_mut().i_dir_level = 9;
            Ok(())
        });
        change.unwrap();
        drop(directory);
        let mut last = (0..)
            .map(|name: u32| format!("name {name}"))
            .filter(|name| dentry_hash(name.as_bytes()) % buckets == buckets - 1);
        let new = NewFile::new(FileKind::Fifo, 0o644);
        let again = |fs: FileSystem| {
            fs.close().unwrap();
            drop(fs);
            let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
            let directory = fs.root().unwrap().lookup("d").unwrap();
            (fs, directory)
        };
        let (fs, directory) = again(fs);
        directory.create(last.next().unwrap(), &new).unwrap();
        assert_ne!(directory.inode().node.read().inode().i_nid[0].get(), 0, "its block is below a node");
        drop(directory);
        let (fs, directory) = again(fs);
        let name = last.next().unwrap();
        directory.create(&name, &new).unwrap();
        (0..3).for_each(|_| fs.core.volume.nodes().drop_unused());
        device.arm(FaultRule::on([Operation::Read]).for_good());
        fs.core.dirty_directories.write_ahead(&fs.core.volume).unwrap();
        assert_ne!(device.faults(), 0, "the node was in memory: the test does not work");
        device.disarm();
        fs.checkpoint().unwrap();
        drop((directory, fs)); // a crash
        let fs = FileSystem::open(device, Options::new()).unwrap();
        assert!(fs.exists(format!("/d/{name}")).unwrap());
    }

    #[test]
    fn what_a_checkpoint_could_not_write_is_written_by_the_next_one() {
        let device = PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(32 * 1024))));
        format(&*device, &FormatOptions::default()).unwrap();
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let all = ["a", "b"].map(|name| hashed(&fs, name));
        for directory in &all {
            directory.create("new", &NewFile::new(FileKind::Fifo, 0o644)).unwrap();
        }
        device.arm(FaultRule::on([Operation::Write]).for_good());
        {
            let op = fs.core.volume.begin().unwrap();
            fs.core.dirty_directories.write(&op).unwrap_err();
        }
        device.disarm();
        let taken = fs.core.dirty_directories.take();
        assert!(taken.iter().map(|inode| inode.ino).eq(all.each_ref().map(InodeRef::ino)));
    }
}
