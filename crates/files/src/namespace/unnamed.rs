//! Files without a name, which get one when they are whole (`f2fs_tmpfile` and `f2fs_link` in Linux).
//!
//! Such a file is an orphan from the beginning: the checkpoint lists it, and the next open of the volume frees it. With its
//! first name it leaves that list, in the operation that makes the name.
//!
//! # Locking
//!
//! As for other names: the stripe of the name, then the inode's `life`, which is let go before that of a file that loses
//! the name is taken.

use f2fs_sync::{Arc, protocol_step, protocol_value};
use f2fs_volume::Op;

use super::{MAX_LINKS, Namespace};
use crate::FsError;
use crate::free::InodeEnds;
use crate::inode::Inode;
use crate::namespace::create::{NewFile, set_name};
use crate::namespace::rename::Place;
use crate::stat::{self, FileKind};

impl Namespace<'_> {
    /// Makes a file that is in no directory, with one handle. Its place on the volume is chosen as if it were in `parent`.
    pub(crate) fn create_unnamed(&self, parent: &Arc<Inode>, new: &NewFile) -> Result<Arc<Inode>, FsError> {
        let directory = parent.directory()?;
        if new.kind == FileKind::Directory {
            return Err(FsError::WrongKind { operation: "create without a name", kind: new.kind.name() });
        }
        self.balance()?;
        if directory.is_dead() {
            return Err(FsError::NotFound);
        }
        self.refill_nids();
        self.change(|op| {
            let room = self.volume.orphan_room()?;
            let node = self.new_inode(op, new, parent.ino, b"")?;
            node.write(op).inode_mut().i_links = 0.into();
            self.volume.add_orphan(op, room, node.nid());
            let inode = Inode::new(node, new.kind, &self.directories);
            let mut life = inode.life.lock();
            (life.opens, life.linkable) = (1, true);
            inode.take_device(op, &mut life);
            drop(life);
            Ok(self.inodes.insert(inode))
        })
    }

    /// Adds a link to a file for the name `place`, which `enter` makes.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if it has no name left, and was not made without one; [`FsError::TooManyLinks`].
    pub(super) fn gain_link(
        &self,
        op: &Op<'_>,
        inode: &Arc<Inode>,
        place: Place<'_>,
        enter: impl FnOnce() -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let mut life = protocol_value!("link_without_life", Some(inode.life.lock()), None);
        let links = inode.node.read().inode().i_links.get();
        let first = links == 0 && life.as_ref().is_some_and(|life| life.linkable);
        if life.as_ref().is_some_and(|life| life.freed) || (links == 0 && !first) {
            return Err(FsError::NotFound);
        }
        if links == MAX_LINKS {
            return Err(FsError::TooManyLinks { limit: MAX_LINKS });
        }
        enter()?;
        let mut block = inode.node.write(op);
        let raw = block.inode_mut();
        raw.i_links = (links + 1).into();
        stat::set_changed(raw, self.now());
        if first {
            raw.i_pino = place.parent.ino.into();
            set_name(raw, place.name.bytes());
        }
        drop(block);
        self.volume.syncs().set_renamed(op, &inode.node);
        if first {
            if let Some(life) = &mut life {
                life.linkable = false;
                inode.put_device(op, life);
            }
            protocol_step!("named_file_stays_an_orphan", {
                self.volume.remove_orphan(op, inode.ino);
            });
            if !self.volume.nodes().is_new(inode.ino) {
                // The next open would free it for the checkpoint's list, whatever a record says.
                protocol_step!("named_orphan_in_a_record", self.volume.syncs().note_foreign_name(op));
            }
        }
        Ok(())
    }

    /// Gives a file a name, which another one may have: this one loses it in the same operation.
    pub(crate) fn link_over(&self, inode: &Arc<Inode>, place: Place<'_>) -> Result<(), FsError> {
        let Place { parent, name, .. } = place;
        if inode.kind == FileKind::Directory {
            return Err(FsError::DirectoryLink);
        }
        let directory = parent.directory()?;
        self.balance()?;
        let stripe = directory.stripe(directory.stripe_of(name.hash())).write();
        if directory.is_dead() {
            return Err(FsError::NotFound);
        }
        let target = match self.exists(parent, name)? {
            Some(ino) => self.inode(ino)?,
            None => return self.link_locked(inode, place),
        };
        if target.kind == FileKind::Directory {
            return Err(FsError::IsDirectory);
        }
        if target.ino == inode.ino {
            return Ok(());
        }
        self.refill_nids();
        // Dropped when the stripe is free.
        let _forgotten = self.forget(place, &target);
        let after = self.change(|op| {
            directory.find(&self.volume, name)?.ok_or(FsError::NotFound)?;
            let room = self.volume.orphan_room()?;
            self.gain_link(op, inode, place, || {
                let there = self.redirect_entry(op, parent, name, inode.ino, inode.kind)?;
                if there { Ok(()) } else { Err(FsError::NotFound) }
            })?;
            self.note_removal(parent);
            Ok(self.take_name(op, room, place, &target))
        })?;
        drop(stripe);
        InodeEnds(self).settle(&target, after)
    }
}
