//! Renaming.
//!
//! # Locking
//!
//! A rename between two directories holds the rename lock of the file system. Every rename holds the stripes of its two
//! names, and all stripes of a directory that it replaces. `lock_places` has the order of the stripes;
//! `docs/DESIGN.md`, "Why a rename cannot deadlock", has the argument.

use f2fs_sync::{Arc, RwLock, RwLockWriteGuard, protocol_never, protocol_step, protocol_value};

use crate::FsError;
use crate::free::AfterUnlink;
use crate::free::InodeEnds;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::Namespace;
use crate::namespace::create::set_name;
use crate::stat::{self, FileKind};

/// The treatment of a name that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RenameMode {
    /// It is replaced: the inode that it named loses a link.
    #[default]
    Replace,
    /// The rename fails (`RENAME_NOREPLACE`).
    NoReplace,
    /// Both names change places (`RENAME_EXCHANGE`).
    Exchange,
}

/// A name in a directory.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) parent: &'a Arc<Inode>,
    pub(crate) name: Name<'a>,
    /// The path says, by a slash at its end, that a directory is meant.
    pub(crate) directory: bool,
}

impl<'a> Place<'a> {
    pub(crate) fn new(parent: &'a Arc<Inode>, name: Name<'a>) -> Place<'a> {
        Place { parent, name, directory: false }
    }
}

/// Directories on the way to the root from which on a loop is suspected.
const DEEP: u64 = 256;

/// What the names of a rename mean.
struct Named {
    source: Arc<Inode>,
    target: Option<Arc<Inode>>,
}

impl Named {
    fn has_directory(&self) -> bool {
        [Some(&self.source), self.target.as_ref()].into_iter().flatten().any(|inode| inode.kind == FileKind::Directory)
    }
}

impl Namespace<'_> {
    pub(crate) fn rename(&self, from: Place<'_>, to: Place<'_>, mode: RenameMode) -> Result<(), FsError> {
        self.balance()?;
        let crossing = from.parent.ino != to.parent.ino;
        if crossing {
            let stripes = self.lock_apart(from, to)?;
            let named = self.source_and_target(from, to)?;
            if !protocol_value!("rename_moves_directories_as_files", named.has_directory(), false) {
                return self.rename_locked(from, to, mode, named, stripes);
            }
            // The tree changes, or may. Whatever was found is looked up again.
            drop((named, stripes));
        }
        let _tree = crossing.then(|| self.rename.lock());
        let stripes = self.lock_places(from, to)?;
        let named = self.source_and_target(from, to)?;
        self.rename_locked(from, to, mode, named, stripes)
    }

    /// What both names mean. Their stripes are locked.
    fn source_and_target(&self, from: Place<'_>, to: Place<'_>) -> Result<Named, FsError> {
        if protocol_value!("rename_into_a_dead_directory", to.parent.directory()?.is_dead(), false) {
            return Err(FsError::NotFound);
        }
        let source = self.named(from.parent, from.name)?;
        let target = match self.exists(to.parent, to.name)? {
            Some(ino) => Some(self.inode(ino)?),
            None => None,
        };
        Ok(Named { source, target })
    }

    /// Renames, with the stripes of both names locked, and the rename lock if a directory may get another parent.
    fn rename_locked(
        &self,
        from: Place<'_>,
        to: Place<'_>,
        mode: RenameMode,
        named: Named,
        stripes: Vec<RwLockWriteGuard<'_, ()>>,
    ) -> Result<(), FsError> {
        let Named { source, target } = named;
        let crossing = from.parent.ino != to.parent.ino;
        let is_directory = |inode: &Arc<Inode>| inode.kind == FileKind::Directory;
        match (mode, &target) {
            (RenameMode::NoReplace, Some(_)) => return Err(FsError::Exists),
            (RenameMode::Exchange, None) => return Err(FsError::NotFound),
            (RenameMode::Exchange, Some(target)) if to.directory && !is_directory(target) => {
                return Err(FsError::NotDirectory);
            }
            _ => {}
        }
        let slash = from.directory || (to.directory && mode != RenameMode::Exchange);
        if slash && !is_directory(&source) {
            return Err(FsError::NotDirectory);
        }
        if crossing {
            self.refuse_cycle(&source, to.parent)?;
            if let (RenameMode::Exchange, Some(target)) = (mode, &target) {
                self.refuse_cycle(target, from.parent)?;
            }
        }
        if let (RenameMode::Replace, Some(target)) = (mode, &target)
            && crossing
            && target.kind == FileKind::Directory
            && self.is_ancestor(target, from.parent)?
        {
            // It holds the way to the source. To lock it now would be out of order, and with the source's stripe a
            // deadlock.
            return Err(FsError::NotEmpty);
        }
        self.refill_nids();
        if is_directory(&source) || target.as_ref().is_some_and(is_directory) {
            for parent in [from.parent, to.parent] {
                protocol_step!("rename_moves_stamp", parent.directory()?.moved.invalidate());
            }
        }
        let _forgotten = (self.forget(from, &source), target.as_ref().map(|target| self.forget(to, target)));
        // A parameter would outlive it: files are closed without stripes.
        let stripes = stripes;
        let (inode, after) = match target {
            Some(target) if target.ino == source.ino => return Ok(()),
            Some(target) if mode == RenameMode::Exchange => return self.exchange(from, to, &source, &target),
            Some(target) => {
                let after = self.replace(from, to, &source, &target)?;
                (target, after)
            }
            None => return self.move_name(from, to, &source),
        };
        drop(stripes);
        InodeEnds(self).settle(&inode, after)
    }

    /// The stripes of both names, in different directories, for a rename of files. Nobody waits here with a stripe held,
    /// so no order is needed, and no tree that stays as it is.
    fn lock_apart<'a>(&self, from: Place<'a>, to: Place<'a>) -> Result<Vec<RwLockWriteGuard<'a, ()>>, FsError> {
        let stripe = |place: Place<'a>| -> Result<&'a RwLock<()>, FsError> {
            let directory = place.parent.directory()?;
            Ok(directory.stripe(directory.stripe_of(place.name.hash())))
        };
        let (mut first, mut second) = (stripe(from)?, stripe(to)?);
        loop {
            let held = first.write();
            protocol_never!("rename_waits_with_a_stripe", {
                (0..64).for_each(|_| f2fs_sync::thread::yield_now());
                return Ok(vec![held, second.write()]);
            });
            if let Some(other) = second.try_write() {
                return Ok(vec![held, other]);
            }
            drop(held);
            // Waited for next is the one that was not free.
            core::mem::swap(&mut first, &mut second);
        }
    }

    /// The stripes of both names, in the order that excludes a deadlock: an ancestor's before its descendants', else by
    /// inode number, within one directory by stripe number.
    fn lock_places<'a>(&self, from: Place<'a>, to: Place<'a>) -> Result<Vec<RwLockWriteGuard<'a, ()>>, FsError> {
        let mut places = [from, to].map(|place| (place.parent, place.name.hash()));
        let same = from.parent.ino == to.parent.ino;
        let mut numbers = Vec::with_capacity(2);
        if !same {
            let from_first = if self.is_ancestor(from.parent, to.parent)? {
                true
            } else if self.is_ancestor(to.parent, from.parent)? {
                false
            } else {
                from.parent.ino < to.parent.ino
            };
            if !from_first {
                places.reverse();
            }
        }
        for (parent, hash) in places {
            let directory = parent.directory()?;
            numbers.push((directory, directory.stripe_of(hash)));
        }
        if same {
            numbers.sort_by_key(|(_, stripe)| *stripe);
            numbers.dedup_by_key(|(_, stripe)| *stripe);
        }
        Ok(numbers.into_iter().map(|(directory, stripe)| directory.stripe(stripe).write()).collect())
    }

    /// Whether `above` is an ancestor of `below`, or the same. The caller holds the rename lock, so that no directory
    /// moves; but it does not keep them from being removed.
    pub(super) fn is_ancestor(&self, above: &Inode, below: &Inode) -> Result<bool, FsError> {
        let root = self.volume.geometry().root_ino;
        let mut climbed: Option<Arc<Inode>> = None;
        // A tree deeper than there are inodes is a loop; they are counted only for one that is deep.
        let mut most = DEEP;
        let mut depth = 0;
        while depth <= most {
            depth += 1;
            if depth == DEEP {
                most = self.volume.stat().valid_inodes;
            }
            let here = climbed.as_deref().unwrap_or(below);
            if here.ino == above.ino {
                return Ok(true);
            }
            if here.ino == root {
                return Ok(false);
            }
            let directory = here.directory()?;
            let parent = {
                let _gate = self.volume.begin_read();
                let found = directory.find(&self.volume, Name::PARENT)?;
                self.inode(found.ok_or_else(|| FsError::no_parent(here.ino))?.ino)
            };
            if directory.is_dead() {
                // The parent in its '..' may be gone as well, and its number in other use.
                return Err(FsError::NotFound);
            }
            climbed = Some(parent?);
        }
        Err(FsError::corrupt_inode(below.ino, "the entries `..` above this directory lead round in a circle"))
    }

    fn refuse_cycle(&self, moved: &Inode, into: &Inode) -> Result<(), FsError> {
        if moved.kind == FileKind::Directory && self.is_ancestor(moved, into)? {
            return Err(FsError::IntoItself);
        }
        Ok(())
    }

    /// Moves a name to a free one.
    fn move_name(&self, from: Place<'_>, to: Place<'_>, source: &Arc<Inode>) -> Result<(), FsError> {
        self.change(|op| {
            self.load_names(from, to, &[source])?;
            self.add_entry(op, to.parent, to.name, source.ino, source.kind)?;
            self.whole(|| {
                self.remove_entry(op, from.parent, from.name, None)?;
                self.moved(op, source, from, to)
            })
        })
    }

    /// Moves a name over another one.
    fn replace(
        &self,
        from: Place<'_>,
        to: Place<'_>,
        source: &Arc<Inode>,
        target: &Arc<Inode>,
    ) -> Result<AfterUnlink, FsError> {
        match (source.kind == FileKind::Directory, target.kind == FileKind::Directory) {
            (true, false) => return Err(FsError::NotDirectory),
            (false, true) => return Err(FsError::IsDirectory),
            _ => {}
        }
        let _all = match &target.directory {
            Some(directory) => {
                self.require_child(to.parent, target)?;
                let all = directory.lock_all();
                self.require_empty(target)?;
                Some(all)
            }
            None => None,
        };
        self.change(|op| {
            self.load_names(from, to, &[source])?;
            self.load_name(to)?;
            let room = self.volume.orphan_room()?;
            if !self.redirect_entry(op, to.parent, to.name, source.ino, source.kind)? {
                return Err(FsError::NotFound);
            }
            self.whole(|| {
                self.remove_entry(op, from.parent, from.name, None)?;
                self.moved(op, source, from, to)?;
                if target.kind == FileKind::Directory {
                    self.add_links(op, to.parent, -1);
                    self.bury(op, room, target)
                } else {
                    Ok(self.take_name(op, room, to, target))
                }
            })
        })
    }

    /// Brings into memory what a rename is about to change: from then on a read error is unlikely. In a damaged volume a
    /// directory may lack the entry that leads to its parent, which is to be another one.
    fn load_names(&self, from: Place<'_>, to: Place<'_>, moved: &[&Arc<Inode>]) -> Result<(), FsError> {
        self.load_name(from)?;
        for inode in moved {
            let Some(directory) = &inode.directory else { continue };
            if directory.find(&self.volume, Name::PARENT)?.is_none() && from.parent.ino != to.parent.ino {
                return Err(FsError::no_parent(inode.ino));
            }
        }
        Ok(())
    }

    fn load_name(&self, place: Place<'_>) -> Result<(), FsError> {
        place.parent.directory()?.find(&self.volume, place.name)?.ok_or(FsError::NotFound)?;
        Ok(())
    }

    /// Runs what must not stop half-way. If it does, the state in memory must not become a checkpoint.
    fn whole<T>(&self, change: impl FnOnce() -> Result<T, FsError>) -> Result<T, FsError> {
        change().inspect_err(|error| match error {
            FsError::Volume(error) => self.volume.stop(error),
            other => self.volume.stop(other),
        })
    }

    fn exchange(
        &self,
        from: Place<'_>,
        to: Place<'_>,
        source: &Arc<Inode>,
        target: &Arc<Inode>,
    ) -> Result<(), FsError> {
        self.change(|op| {
            self.load_names(from, to, &[source, target])?;
            self.load_name(to)?;
            self.whole(|| {
                for (place, inode) in [(to, source), (from, target)] {
                    if !self.redirect_entry(op, place.parent, place.name, inode.ino, inode.kind)? {
                        return Err(FsError::NotFound);
                    }
                }
                self.moved(op, source, from, to)?;
                self.moved(op, target, to, from)
            })
        })
    }

    /// Changes an inode whose name moved: its parent, its own name, `..`, and the parents' link counts.
    fn moved(
        &self,
        op: &f2fs_volume::Op<'_>,
        inode: &Arc<Inode>,
        from: Place<'_>,
        to: Place<'_>,
    ) -> Result<(), FsError> {
        {
            let mut block = inode.node.write(op);
            let raw = block.inode_mut();
            raw.i_pino = to.parent.ino.into();
            set_name(raw, to.name.bytes());
            raw.i_advise &= !f2fs_format::inode::advise::LOST_PINO;
            stat::set_changed(raw, self.now());
        }
        self.volume.syncs().set_renamed(op, &inode.node);
        self.note_moved(from);
        self.note_removal(to.parent);
        if inode.kind == FileKind::Directory {
            self.note_removal(inode);
        }
        if inode.kind == FileKind::Directory && from.parent.ino != to.parent.ino {
            if !self.redirect_entry(op, inode, Name::PARENT, to.parent.ino, FileKind::Directory)? {
                return Err(FsError::no_parent(inode.ino));
            }
            self.add_links(op, from.parent, -1);
            self.add_links(op, to.parent, 1);
        }
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
