//! Names: create, link, unlink, remove.

use core::ops::Deref;

use f2fs_format::{BLOCK_SIZE, Nid};
use f2fs_sync::{Arc, protocol_step, protocol_value};
use f2fs_volume::{FsyncMode, Op, OrphanRoom};

use crate::FsError;
use crate::core::Core;
use crate::directory::Located;
use crate::file_data::FileData;
use crate::free::AfterUnlink;
use crate::free::InodeEnds;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::create::NewFile;
use crate::namespace::rename::Place;
use crate::stat::FileKind;

pub(crate) mod create;
mod entries;
mod open;
pub(crate) mod path;
pub(crate) mod remove;
pub(crate) mod rename;
mod unnamed;

/// Longest target of a symbolic link in bytes.
pub(crate) const MAX_TARGET: usize = BLOCK_SIZE - 1;
/// Links that a file can have (`F2FS_LINK_MAX`).
const MAX_LINKS: u32 = u32::MAX;

/// Paths and names: looking up, making, removing and renaming.
#[derive(Clone, Copy)]
pub(crate) struct Namespace<'a>(pub(crate) &'a Core);

impl Deref for Namespace<'_> {
    type Target = Core;

    fn deref(&self) -> &Core {
        self.0
    }
}

impl Namespace<'_> {
    /// Makes a file of any kind under a name that is free. Its life begins with one handle, the caller's, which nobody
    /// can come before by removing the name.
    pub(crate) fn create(&self, parent: &Arc<Inode>, name: Name<'_>, new: &NewFile) -> Result<Arc<Inode>, FsError> {
        self.create_with(parent, name, new, None)
    }

    /// Makes a symbolic link, with one handle.
    pub(crate) fn symlink(
        &self,
        parent: &Arc<Inode>,
        name: Name<'_>,
        target: &[u8],
        new: &NewFile,
    ) -> Result<Arc<Inode>, FsError> {
        let why = match target {
            [] => "is empty",
            _ if target.len() > MAX_TARGET => "is too long",
            _ if target.contains(&0) => "holds a zero byte",
            _ => return self.create_with(parent, name, new, Some(target)),
        };
        Err(FsError::LinkTarget { why, len: target.len(), limit: MAX_TARGET })
    }

    fn create_with(
        &self,
        parent: &Arc<Inode>,
        name: Name<'_>,
        new: &NewFile,
        target: Option<&[u8]>,
    ) -> Result<Arc<Inode>, FsError> {
        let directory = parent.directory()?;
        self.balance()?;
        let stripe = directory.stripe(directory.stripe_of(name.hash()));
        let _stripe = protocol_value!("create_without_its_stripe", Some(stripe.write()), None);
        if protocol_value!("create_in_a_dead_directory", directory.is_dead(), false) {
            return Err(FsError::NotFound);
        }
        self.refill_nids();
        self.change(|op| {
            if directory.find(&self.volume, name)?.is_some() {
                return Err(FsError::Exists);
            }
            let node = self.new_inode(op, new, parent.ino, name.bytes())?;
            let ino = node.nid();
            let mut inode = Inode::new(node, new.kind, &self.directories);
            if let Some(directory) = &mut inode.directory {
                directory.begin();
            }
            let undo = |inode: &Inode, error: FsError| -> FsError {
                // Nobody has seen the inode yet. An error of the undoing is a contradiction in the tables, worse than
                // the first error.
                match self.discard_new(op, inode) {
                    Ok(()) => error,
                    Err(worse) => worse,
                }
            };
            if let Some(target) = target
                && let Err(error) = FileData(self).write_target(op, &inode, target)
            {
                return Err(undo(&inode, error));
            }
            if let Err(error) = self.add_entry(op, parent, name, ino, new.kind) {
                return Err(undo(&inode, error));
            }
            if new.kind == FileKind::Directory {
                self.add_links(op, parent, 1);
            }
            // The name cannot be looked up before its stripe is free.
            inode.life.lock().opens = 1;
            Ok(self.inodes.insert(inode))
        })
    }

    /// Changes the link count of a directory whose subdirectories come and go.
    pub(crate) fn add_links(&self, op: &Op<'_>, inode: &Inode, delta: i32) {
        let mut block = inode.node.write(op);
        let raw = block.inode_mut();
        raw.i_links = raw.i_links.get().saturating_add_signed(delta).into();
    }

    /// Gives a file another name.
    pub(crate) fn link(&self, inode: &Arc<Inode>, parent: &Arc<Inode>, name: Name<'_>) -> Result<(), FsError> {
        if inode.kind == FileKind::Directory {
            return Err(FsError::DirectoryLink);
        }
        let directory = parent.directory()?;
        self.balance()?;
        let _stripe = directory.stripe(directory.stripe_of(name.hash())).write();
        if protocol_value!("link_in_a_dead_directory", directory.is_dead(), false) {
            return Err(FsError::NotFound);
        }
        self.link_locked(inode, Place::new(parent, name))
    }

    /// The same, where the caller holds the stripe of the name.
    fn link_locked(&self, inode: &Arc<Inode>, place: Place<'_>) -> Result<(), FsError> {
        let Place { parent, name, .. } = place;
        self.refill_nids();
        self.change(|op| {
            if parent.directory()?.find(&self.volume, name)?.is_some() {
                return Err(FsError::Exists);
            }
            self.gain_link(op, inode, place, || self.add_entry(op, parent, name, inode.ino, inode.kind))
        })
    }

    /// Removes a name of a file that is not a directory.
    pub(crate) fn unlink(&self, parent: &Arc<Inode>, name: Name<'_>) -> Result<(), FsError> {
        let directory = parent.directory()?;
        self.balance()?;
        // Dropped last.
        let _forgotten;
        let stripe = directory.stripe(directory.stripe_of(name.hash())).write();
        let (located, inode) = self.located(parent, name)?;
        if inode.kind == FileKind::Directory {
            return Err(FsError::IsDirectory);
        }
        self.refill_nids();
        _forgotten = self.forget(Place::new(parent, name), &inode);
        let after = self.change(|op| {
            let room = self.volume.orphan_room()?;
            self.remove_entry(op, parent, name, Some(&located))?;
            self.note_removal(parent);
            Ok(self.take_name(op, room, Place::new(parent, name), &inode))
        })?;
        drop(stripe);
        InodeEnds(self).settle(&inode, after)
    }

    /// The inode of a name whose stripe the caller holds.
    pub(crate) fn named(&self, parent: &Inode, name: Name<'_>) -> Result<Arc<Inode>, FsError> {
        Ok(self.located(parent, name)?.1)
    }

    /// The same, with where the name stands.
    fn located(&self, parent: &Inode, name: Name<'_>) -> Result<(Located, Arc<Inode>), FsError> {
        let _gate = self.volume.begin_read();
        let located = parent.directory()?.locate(&self.volume, name)?.ok_or(FsError::NotFound)?;
        let inode = self.inode(located.ino)?;
        Ok((located, inode))
    }

    /// Takes one link of a file that is not a directory, whose name `place` went or leads elsewhere now.
    pub(crate) fn take_name(&self, op: &Op<'_>, room: OrphanRoom<'_>, place: Place<'_>, inode: &Inode) -> AfterUnlink {
        let after = InodeEnds(self).set_links(op, room, inode, |links| links.saturating_sub(1));
        // It lives on under another name, which may be one that no checkpoint has; or other names of it went that are
        // there after a crash, and lead to it.
        if self.volume.syncs().is_renamed(&inode.node) {
            protocol_step!("name_taken_of_several_not_noted", self.note_moved(place));
        }
        after
    }

    /// Removes an empty directory.
    pub(crate) fn rmdir(&self, parent: &Arc<Inode>, name: Name<'_>) -> Result<(), FsError> {
        let directory = parent.directory()?;
        self.balance()?;
        let stripe = directory.stripe(directory.stripe_of(name.hash())).write();
        let (located, inode) = self.located(parent, name)?;
        let removed = inode.directory()?;
        self.require_child(parent, &inode)?;
        let all = removed.lock_all();
        self.require_empty(&inode)?;
        self.refill_nids();
        protocol_step!("rmdir_moves_stamp", directory.moved.invalidate());
        let after = self.change(|op| {
            let room = self.volume.orphan_room()?;
            self.remove_entry(op, parent, name, Some(&located))?;
            self.add_links(op, parent, -1);
            self.note_moved(Place::new(parent, name));
            self.bury(op, room, &inode)
        })?;
        drop(all);
        drop(stripe);
        InodeEnds(self).settle(&inode, after)
    }

    /// Refuses a directory whose `..` is not the directory in which it has its name: that may be itself, or one below
    /// it. Its stripes come after its parent's, and to take them would be a deadlock. The caller holds the stripe of
    /// the name.
    pub(crate) fn require_child(&self, parent: &Inode, inode: &Inode) -> Result<(), FsError> {
        let above = self.exists(inode, Name::PARENT)?.unwrap_or(Nid(0));
        if above == parent.ino && inode.ino != parent.ino {
            return Ok(());
        }
        let expected = u64::from(parent.ino.0);
        Err(FsError::corrupt("'..' of a directory", u64::from(above.0), expected, expected))
    }

    pub(crate) fn require_empty(&self, inode: &Inode) -> Result<(), FsError> {
        let _gate = self.volume.begin_read();
        if inode.directory()?.is_empty(&self.volume)? { Ok(()) } else { Err(FsError::NotEmpty) }
    }

    /// Ends an empty directory whose name is gone. The caller holds all its stripes.
    pub(crate) fn bury(&self, op: &Op<'_>, room: OrphanRoom<'_>, inode: &Inode) -> Result<AfterUnlink, FsError> {
        inode.directory()?.set_dead(true);
        Ok(InodeEnds(self).set_links(op, room, inode, |_| 0))
    }

    /// Frees an inode that was just made and is in no directory. All its nodes are in memory.
    fn discard_new(&self, op: &Op<'_>, inode: &Inode) -> Result<(), FsError> {
        inode.life.lock().freed = true;
        InodeEnds(self).free_small(op, inode)
    }

    pub(crate) fn exists(&self, parent: &Inode, name: Name<'_>) -> Result<Option<Nid>, FsError> {
        let _gate = self.volume.begin_read();
        Ok(parent.directory()?.find(&self.volume, name)?.map(|found| found.ino))
    }

    /// Notes that the file of a name moved elsewhere, or was a directory.
    pub(crate) fn note_moved(&self, place: Place<'_>) {
        self.hazards.note(&self.volume, place.parent.ino, Some(place.name.hash()));
        self.note_removal(place.parent);
    }

    /// Notes that a directory lost a name, or that one moved into it: strict syncs bring it along.
    pub(crate) fn note_removal(&self, parent: &Inode) {
        if self.volume.syncs().fsync_mode() == FsyncMode::Strict {
            self.hazards.note(&self.volume, parent.ino, None);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
