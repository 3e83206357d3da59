//! The end of an inode: handles, orphans, freeing.

use core::ops::Deref;

use f2fs_format::Nid;
use f2fs_sync::{Arc, protocol_step};
use f2fs_volume::tree::add_blocks;
use f2fs_volume::{Op, OrphanRoom};

use crate::FsError;
use crate::core::Core;
use crate::core::write_back::WriteBack;
use crate::inode::{Inode, Life};
use crate::stat;
use crate::truncate::{Progress, truncate_step};

/// The work that is left after a link went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterUnlink {
    /// Nothing: there are other links.
    Linked,
    /// Nothing: it is freed, or an orphan with handles.
    Done,
    /// It is an orphan without handles: free it, in as many operations as it takes.
    FreeLater,
}

/// The ends of inodes: handles, links, orphans, and freeing.
#[derive(Clone, Copy)]
pub(crate) struct InodeEnds<'a>(pub(crate) &'a Core);

impl Deref for InodeEnds<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.0
    }
}

impl InodeEnds<'_> {
    /// Opens a handle. While there is one the inode is not freed. If it may be `shared`, and somebody else has one that
    /// is not, it is counted as one that the processor keeps: `true`.
    pub(crate) fn open_handle(&self, inode: &Inode, shared: bool) -> Result<bool, FsError> {
        let mut life = inode.life.lock();
        if life.freed {
            return Err(FsError::NotFound);
        }
        let keeps = shared && life.opens > life.kept;
        life.opens += 1;
        life.kept += u32::from(keeps);
        Ok(keeps)
    }

    /// Closes a handle, a shared one if it was `kept`; frees the inode if it was the last one of an orphan. An error
    /// leaves the orphan to the next open of the volume.
    pub(crate) fn close_handle(&self, inode: &Inode, kept: bool) -> Result<(), FsError> {
        if self.end_handle(inode, kept)? {
            self.rests(inode);
        }
        Ok(())
    }

    /// Ends a handle; `true` if it was the last one of a file that lives on.
    fn end_handle(&self, inode: &Inode, kept: bool) -> Result<bool, FsError> {
        let (free, last) = {
            let mut life = inode.life.lock();
            life.opens -= 1;
            life.kept -= u32::from(kept);
            let last = life.opens == 0;
            let unlinked = last && !life.freed && inode.node.read().inode().i_links.get() == 0;
            let orphan = unlinked && !self.volume.is_read_only();
            if orphan {
                protocol_step!("life_closed_and_not_ended", life.freed = true);
            }
            (orphan, last)
        };
        if free {
            self.free(inode)?;
        }
        Ok(last && !free)
    }

    /// Sets how many links an inode has left. With the last one a small inode is freed at once, any other becomes an
    /// orphan.
    ///
    /// Links go and handles close under the same lock, so that exactly one of the two sees the end of the inode and
    /// frees it: freed twice, the number might be another file's by then.
    ///
    /// `room` was taken before the name went: with it the inode can become an orphan, which must not be refused here.
    pub(crate) fn set_links(
        &self,
        op: &Op<'_>,
        room: OrphanRoom<'_>,
        inode: &Inode,
        left: impl FnOnce(u32) -> u32,
    ) -> AfterUnlink {
        let mut life = inode.life.lock();
        {
            let mut block = inode.node.write(op);
            let raw = block.inode_mut();
            let left = left(raw.i_links.get());
            raw.i_links = left.into();
            stat::set_changed(raw, self.now());
            if left != 0 {
                // The name that went may be the one that roll-forward would put back.
                self.volume.syncs().set_renamed(op, &inode.node);
                return AfterUnlink::Linked;
            }
        }
        self.free_or_orphan(op, room, inode, &mut life)
    }

    /// The last link went: frees the inode if nobody has it open and one operation is enough; else it becomes an
    /// orphan.
    fn free_or_orphan(&self, op: &Op<'_>, room: OrphanRoom<'_>, inode: &Inode, life: &mut Life) -> AfterUnlink {
        let mut busy = false;
        if life.opens == 0 {
            protocol_step!("life_unlinked_and_not_ended", life.freed = true);
            // A thread that writes its pages back holds it to the end.
            let alone = inode.pages().map(|pages| pages.writing.try_lock());
            busy = matches!(alone, Some(None));
            if !busy && inode.is_small() {
                match self.free_small(op, inode) {
                    Ok(()) => return AfterUnlink::Done,
                    Err(error) => not_freed(inode.ino, &error),
                }
            }
        }
        // An inode that could not be freed for an error of the device is left to the next open as well: its name is
        // gone.
        self.volume.add_orphan(op, room, inode.ino);
        inode.take_device(op, life);
        if life.freed && (!inode.is_small() || busy) { AfterUnlink::FreeLater } else { AfterUnlink::Done }
    }

    /// Finishes what [`set_links`](Self::set_links) left to do. An error of the device, or a lack of space, leaves the
    /// orphan as it is and is none of the caller's: the name went.
    ///
    /// # Errors
    /// Corruption; and any error once the volume stopped, since then the name is not gone for good.
    pub(crate) fn settle(&self, inode: &Inode, after: AfterUnlink) -> Result<(), FsError> {
        if after != AfterUnlink::FreeLater {
            return Ok(());
        }
        match self.free(inode) {
            Err(error) if self.volume.stopped().is_none() && (error.device().is_some() || error.is_no_space()) => {
                not_freed(inode.ino, &error);
                Ok(())
            }
            result => result,
        }
    }

    /// Frees an orphan, block by block.
    fn free(&self, inode: &Inode) -> Result<(), FsError> {
        let alone = inode.pages().map(|pages| pages.writing.lock());
        if alone.is_some() {
            self.change(|op| {
                WriteBack(self).discard_pages(op, inode, 0);
                Ok(())
            })?;
        }
        if inode.has_blocks() {
            while !inode.is_small() && self.change(|op| truncate_step(op, &inode.node, 0))? == Progress::More {}
        }
        self.change(|op| {
            self.free_small(op, inode)?;
            self.volume.remove_orphan(op, inode.ino);
            Ok(())
        })
    }

    /// Frees an inode that has no further nodes but an xattr node.
    pub(crate) fn free_small(&self, op: &Op<'_>, inode: &Inode) -> Result<(), FsError> {
        WriteBack(self).discard_pages(op, inode, 0);
        if inode.has_blocks() {
            truncate_step(op, &inode.node, 0)?;
        }
        // A thread that followed a symbolic link may still read it: it finds holes, and not the next content of its
        // blocks.
        inode.forget_addresses();
        let xattr: Nid = inode.node.read().inode().i_xattr_nid.into();
        if !xattr.is_null() {
            let node = self.volume.nodes().get(xattr)?;
            if node.ino() != inode.ino {
                return Err(FsError::corrupt(
                    "owner of an xattr node",
                    node.ino().0.into(),
                    inode.ino.0.into(),
                    inode.ino.0.into(),
                ));
            }
            self.volume.nodes().remove(op, &node)?;
            // If the inode cannot be freed, who tries again must not look for this node.
            inode.node.write(op).inode_mut().i_xattr_nid = Nid::NULL.into();
            add_blocks(op, &inode.node, -1);
        }
        self.inodes.remove(inode.ino);
        self.volume.nodes().remove(op, &inode.node)?;
        Ok(())
    }

    /// Frees an orphan that an earlier process left.
    pub(crate) fn free_orphan(&self, ino: Nid) -> Result<(), FsError> {
        let inode: Arc<Inode> = self.inode(ino)?;
        // Its links were taken before it was listed; if it says otherwise, that is damage, and goes with it.
        inode.life.lock().freed = true;
        self.free(&inode)
    }

    /// Nobody uses a file any more, but processors may keep it open.
    pub(crate) fn rests(&self, inode: &Inode) {
        let grown = inode.list_locks();
        if grown == 0 {
            return;
        }
        for ino in self.idle.list(inode.ino, grown) {
            if let Some(in_use) = self.inodes.drop_one(ino) {
                in_use.unlist_locks();
                if self.forget_resting(&in_use) {
                    drop(in_use);
                    self.inodes.drop_one(ino);
                }
            }
        }
    }

    /// Has processors forget a file that only they keep open; whether any did.
    fn forget_resting(&self, inode: &Inode) -> bool {
        let forgotten = self.open_files.forget_resting(inode);
        let any = !forgotten.is_empty();
        for known in forgotten {
            if known.value.leave() == 0
                && let Err(error) = self.end_handle(inode, true)
            {
                not_freed(inode.ino, &error);
            }
        }
        any
    }
}

/// The name went, or the handle was closed: so this is no error of the caller's. It is told to whoever watches; the inode
/// is on the checkpoint's list of orphans, and the next open of the volume tries again.
pub(crate) fn not_freed(ino: Nid, error: &FsError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(ino = ino.0, %error, "an unlinked inode could not be freed: it is an orphan until the next open");
    #[cfg(not(feature = "tracing"))]
    let _ = (ino, error);
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {

    use f2fs_sync::PlainArc;

    use super::InodeEnds;
    use crate::samples::formatted;
    use crate::{FileSystem, FsError, Options, RenameMode};

    #[test]
    fn a_file_that_was_freed_is_not_opened() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let file = fs.create_file("/a", 0o644).unwrap();
        let (inode, ends) = (&file.handle.inode, InodeEnds(&fs.core));
        inode.life.lock().freed = true;
        assert!(matches!(ends.open_handle(inode, false), Err(FsError::NotFound)));
        inode.life.lock().freed = false;
        assert!(!ends.open_handle(inode, false).unwrap());
        assert_eq!(inode.life.lock().opens, 2);
        ends.close_handle(inode, false).unwrap();
        assert_eq!(inode.life.lock().opens, 1);
    }

    fn used(fs: &FileSystem) -> (u64, u64, u64, usize) {
        let stat = fs.statfs();
        (stat.valid_blocks, stat.valid_nodes, stat.valid_inodes, fs.volume().orphans().len())
    }

    /// A file with more nodes than one operation frees, by an unlink, by the close of the last handle, and by the next
    /// open; its pages dirty or not.
    #[test]
    fn a_file_of_many_nodes_leaves_nothing() {
        for page_cache in [0, 4 << 20] {
            let device = formatted(32 * 1024);
            let options = Options::new().page_cache(page_cache);
            let fs = FileSystem::open(device.clone(), options.clone()).unwrap();
            fs.create_dir("/d", 0o755).unwrap();
            let nothing = used(&fs);
            let make = |name: &str| {
                let file = fs.create_file(name, 0o644).unwrap();
                for node in 0..100 {
                    file.write_at(&[1; 4096], node * 1018 * 4096).unwrap();
                }
                assert!(used(&fs).0 >= nothing.0 + 200, "{:?}", used(&fs));
                file
            };
            drop(make("/a"));
            fs.remove_file("/a").unwrap();
            assert_eq!(used(&fs), nothing, "by its unlink");
            let open = make("/b");
            fs.remove_file("/b").unwrap();
            assert_eq!(used(&fs).3, 1);
            drop(open);
            assert_eq!(used(&fs), nothing, "by its close");
            let open = make("/c");
            fs.remove_file("/c").unwrap();
            fs.checkpoint().unwrap();
            let crashed = PlainArc::new(device.snapshot());
            drop(open);
            let again = FileSystem::open(crashed, options).unwrap();
            assert_eq!(used(&again), nothing, "by the next open");
        }
    }

    /// What processors kept open under a name that went is counted no more: else nobody would keep the file open again.
    #[test]
    fn a_name_that_moves_leaves_no_handle_of_a_processor() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let own = fs.create_file("/a", 0o644).unwrap();
        let counts = || {
            let life = own.handle.inode.life.lock();
            (life.opens, life.kept)
        };
        for (name, next) in [("/a", "/b"), ("/b", "/a"), ("/a", "/b")] {
            let others: Vec<_> = (0..4).map(|_| fs.open_file(name).unwrap()).collect();
            let (opens, kept) = counts();
            assert!(kept > 0 && opens > kept, "{opens} {kept}");
            drop(others);
            fs.rename(name, next, RenameMode::Replace).unwrap();
            assert_eq!(counts(), (1, 0));
        }
    }

    /// Who has a file open by a handle of its own counts alone, when the processors have forgotten it for its locks.
    #[test]
    fn a_file_that_processors_forget_is_counted_without_them() {
        const FAR: u64 = 1 << 40;
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new().lock_memory(0)).unwrap();
        let own = fs.create_file("/a", 0o644).unwrap();
        let counts = || {
            let life = own.handle.inode.life.lock();
            (life.opens, life.kept)
        };
        own.set_len(FAR + 1).unwrap();
        fs.create_file("/b", 0o644).unwrap().set_len(FAR + 1).unwrap();
        let read = |path| assert_eq!(fs.open_file(path).unwrap().read_at(&mut [0], FAR).unwrap(), 1);
        read("/a");
        assert!(counts().1 > 0, "a processor keeps it open");
        read("/b");
        assert_eq!(counts(), (1, 0));
        assert_ne!(own.handle.inode.list_locks(), 0, "it is on no list");
        own.handle.inode.unlist_locks();
        fs.remove_file("/a").unwrap();
        drop(own);
        assert_eq!(fs.volume().orphans(), []);
    }

    /// A file that only the processors keep open leaves memory when its locks are too much.
    #[test]
    fn a_file_that_only_processors_keep_open_leaves_memory() {
        const FAR: u64 = 1 << 40;
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new().lock_memory(0)).unwrap();
        for path in ["/a", "/b"] {
            fs.create_file(path, 0o644).unwrap().set_len(FAR + 1).unwrap();
        }
        let own = fs.open_file("/a").unwrap();
        let ino = own.ino();
        let shared = fs.open_file("/a").unwrap();
        assert_eq!(shared.read_at(&mut [0], FAR).unwrap(), 1);
        drop((own, shared));
        assert!(fs.core.inodes.in_memory(ino).is_some(), "the last one stays");
        assert_eq!(fs.open_file("/b").unwrap().read_at(&mut [0], FAR).unwrap(), 1);
        assert!(fs.core.inodes.in_memory(ino).is_none());
    }

    /// Who writes its pages back has it to the end: it is an orphan until then.
    #[test]
    fn a_file_that_is_being_written_back_is_freed_behind_that() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new().page_cache(1 << 20)).unwrap();
        let nothing = used(&fs);
        let file = fs.create_file("/f", 0o644).unwrap();
        file.write_at(&[1; 8192], 0).unwrap();
        let inode = fs.core.inode(file.ino()).unwrap();
        drop(file);
        let writing = inode.pages().unwrap().writing.lock();
        std::thread::scope(|scope| {
            let remover = scope.spawn(|| fs.remove_file("/f"));
            let begin = std::time::Instant::now();
            while fs.volume().orphans() != [inode.ino] {
                assert!(begin.elapsed().as_secs() < 60, "it is freed, or never removed");
                std::thread::yield_now();
            }
            assert!(!inode.node.is_removed());
            drop(writing);
            remover.join().unwrap().unwrap();
        });
        assert!(inode.node.is_removed());
        assert_eq!(used(&fs), nothing);
    }
}
