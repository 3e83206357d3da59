//! The names that a journal holds: the checkpoint's tree becomes that of the last record.
//!
//! ```text
//!   names that lead elsewhere now go ─> names come ─> links are counted, `..` and subdirectories with them ─> what has no link left is freed
//! ```
//!
//! All names go before any comes, so that two that changed places are no special case. In between, inodes have no
//! name; nobody sees that, and a recovery that ends there is done again.
//!
//! The records say of each inode how many links it had. That must be what was counted, else the records do not fit the
//! checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use f2fs_format::Nid;
use f2fs_format::inode::advise;
use f2fs_format::node::NodeBlock;
use f2fs_sync::{Arc, protocol_value};
use f2fs_volume::BoundName;

use crate::FsError;
use crate::free::InodeEnds;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::Namespace;
use crate::namespace::create::set_name;
use crate::recovery::{Passed, RollForward};
use crate::stat::FileKind;

/// The links of an inode that came and went.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    came: u32,
    went: u32,
    /// For a directory: where its name is now, if it has a new one.
    parent: Option<Nid>,
    /// And where it was.
    before: Option<Nid>,
}

impl RollForward<'_> {
    /// Brings the names to what the records say. `new`: inodes that the checkpoint does not have; they are adopted, and
    /// have no name yet. `inode`: the last inode block of the records, if one is there. Returns the inodes that are
    /// gone.
    pub(super) fn recover_names(
        &self,
        names: &[BoundName],
        new: &BTreeSet<Nid>,
        inode: impl Fn(Nid) -> Result<Option<Box<NodeBlock>>, FsError>,
        passed: &mut Passed,
    ) -> Result<BTreeSet<Nid>, FsError> {
        let mut links: BTreeMap<Nid, Links> = BTreeMap::new();
        let mut come = Vec::new();
        let stay = passed.staying(names);
        let (_, wanted): (Vec<_>, Vec<_>) = names.iter().partition(|name| passed.concerns(name));
        for name in wanted {
            match self.take_name(name, new, &inode, &stay, &mut links) {
                Ok(Some(parent)) => come.push((parent, name)),
                Ok(None) => {}
                Err(error) => passed.over(name.directory, error)?,
            }
        }
        for (parent, name) in come {
            let Some(ino) = name.ino else { continue };
            match self.give_name(&parent, name, ino, &inode) {
                Ok(()) => {
                    let links = links.entry(ino).or_default();
                    links.came += 1;
                    links.parent = Some(parent.ino);
                }
                Err(error) => passed.over(ino, error)?,
            }
        }
        let mut subdirectories: BTreeMap<Nid, i32> = BTreeMap::new();
        let mut gone = Vec::new();
        for (ino, links) in links {
            // One that is passed over lost its name to another file. It is not freed, and a repair gives it another one.
            if passed.has(ino) {
                continue;
            }
            match self.settle_links(ino, links, new, &mut subdirectories) {
                Ok(Some(found)) => gone.push(found),
                Ok(None) => {}
                Err(error) => passed.over(ino, error)?,
            }
        }
        for (ino, delta) in subdirectories.into_iter().filter(|(_, delta)| *delta != 0) {
            let added = self.inode(ino).and_then(|parent| {
                self.change(|op| {
                    Namespace(self).add_links(op, &parent, delta);
                    Ok(())
                })
            });
            added.or_else(|error| passed.over(ino, error))?;
        }
        let inos = gone.iter().map(|inode| inode.ino).collect();
        for inode in &gone {
            self.end(inode).or_else(|error| passed.over(inode.ino, error))?;
        }
        Ok(inos)
    }

    /// Takes a name away if it leads elsewhere now; returns its directory if it comes again.
    fn take_name(
        &self,
        name: &BoundName,
        new: &BTreeSet<Nid>,
        inode: &impl Fn(Nid) -> Result<Option<Box<NodeBlock>>, FsError>,
        stay: &BTreeSet<Nid>,
        links: &mut BTreeMap<Nid, Links>,
    ) -> Result<Option<Arc<Inode>>, FsError> {
        // A directory that is gone has no names left.
        let Some(parent) = self.directory(name.directory, new)? else { return Ok(None) };
        let bytes = self.stored(&parent, name, inode)?;
        let old = Namespace(self).exists(&parent, bytes)?;
        if old == name.ino || (name.ino.is_none() && old.is_some_and(|old| stay.contains(&old))) {
            return Ok(None);
        }
        if let Some(old) = old {
            if bytes.is_stored() {
                let what = "a synced name that another file has, in an encrypted or casefolded directory";
                return Err(FsError::Unsupported { ino: parent.ino, what });
            }
            self.change(|op| Namespace(self).remove_entry(op, &parent, bytes, None))?;
            let links = links.entry(old).or_default();
            links.went += 1;
            links.before = Some(parent.ino);
        }
        Ok(name.ino.is_some().then_some(parent))
    }

    /// Lets a name lead to an inode.
    fn give_name(
        &self,
        parent: &Arc<Inode>,
        name: &BoundName,
        ino: Nid,
        inode: &impl Fn(Nid) -> Result<Option<Box<NodeBlock>>, FsError>,
    ) -> Result<(), FsError> {
        let bytes = self.stored(parent, name, inode)?;
        let found = self.inode(ino)?;
        self.change(|op| {
            Namespace(self).add_entry(op, parent, bytes, ino, found.kind)?;
            let mut block = found.node.write(op);
            let raw = block.inode_mut();
            raw.i_pino = parent.ino.into();
            raw.i_advise &= !advise::LOST_PINO;
            set_name(raw, bytes.bytes());
            Ok(())
        })
    }

    /// Counts the links of an inode; returns it if none is left.
    fn settle_links(
        &self,
        ino: Nid,
        links: Links,
        new: &BTreeSet<Nid>,
        subdirectories: &mut BTreeMap<Nid, i32>,
    ) -> Result<Option<Arc<Inode>>, FsError> {
        let found = self.inode(ino)?;
        let is_gone = if found.kind == FileKind::Directory {
            self.move_directory(&found, links, subdirectories)?;
            links.came == 0
        } else {
            self.count_links(&found, links, new.contains(&ino))? == 0
        };
        Ok(is_gone.then_some(found))
    }

    fn directory(&self, ino: Nid, new: &BTreeSet<Nid>) -> Result<Option<Arc<Inode>>, FsError> {
        if !new.contains(&ino) && !self.volume.recovery().has_node(ino)? {
            return Ok(None);
        }
        self.inode(ino).map(Some)
    }

    /// A name as it stands in its directory. In one with encrypted or casefolded names, only that of a new file's inode
    /// can be.
    fn stored<'n>(
        &self,
        parent: &Inode,
        name: &'n BoundName,
        inode: &impl Fn(Nid) -> Result<Option<Box<NodeBlock>>, FsError>,
    ) -> Result<Name<'n>, FsError> {
        if !parent.form.has_foreign_names() {
            return Name::new(&name.name);
        }
        let block = name.ino.map(inode).transpose()?.flatten();
        let behind = block.as_ref().and_then(|block| block.inode().i_name.get(name.name.len()..)).unwrap_or_default();
        match parent.directory()?.recovered_hash(&name.name, behind) {
            Some(hash) => Ok(Name::stored(&name.name, hash)),
            None => Name::new(&name.name),
        }
    }

    /// Gives a file the links that it has now; returns how many.
    fn count_links(&self, inode: &Inode, links: Links, is_new: bool) -> Result<u32, FsError> {
        let before = if is_new { 0 } else { inode.node.read().inode().i_links.get() };
        let now = before.saturating_add(links.came).saturating_sub(links.went);
        let counted = protocol_value!("recovery_links_not_counted", now, before.max(1));
        if counted > 0 {
            self.change(|op| {
                inode.node.write(op).inode_mut().i_links = counted.into();
                Ok(())
            })?;
        }
        Ok(counted)
    }

    /// The way up of a directory that moved, and the links of its parents. Its own are those of the directories in it.
    fn move_directory(
        &self,
        inode: &Arc<Inode>,
        links: Links,
        subdirectories: &mut BTreeMap<Nid, i32>,
    ) -> Result<(), FsError> {
        if links.came > 1 || links.went > 1 {
            let names = u64::from(links.came.max(links.went));
            return Err(FsError::corrupt("names of a directory in a journal", names, 0, 1));
        }
        if links.before == links.parent {
            return Ok(());
        }
        if let Some(before) = links.before {
            *subdirectories.entry(before).or_default() -= 1;
        }
        let Some(parent) = links.parent else { return Ok(()) };
        *subdirectories.entry(parent).or_default() += 1;
        let there =
            self.change(|op| Namespace(self).redirect_entry(op, inode, Name::PARENT, parent, FileKind::Directory))?;
        if there { Ok(()) } else { Err(FsError::no_parent(inode.ino)) }
    }

    /// Frees an inode that no name leads to.
    fn end(&self, inode: &Arc<Inode>) -> Result<(), FsError> {
        if inode.kind == FileKind::Directory {
            Namespace(self).require_empty(inode)?;
        }
        let after = self.change(|op| {
            let room = self.volume.orphan_room()?;
            if inode.kind == FileKind::Directory {
                return Namespace(self).bury(op, room, inode);
            }
            Ok(InodeEnds(self).set_links(op, room, inode, |_| 0))
        })?;
        InodeEnds(self).settle(inode, after)
    }

    /// The links of an inode must be those that its last record has.
    pub(super) fn check_links(&self, inode: &Inode, block: &NodeBlock) -> Result<(), FsError> {
        let (counted, synced) = (inode.node.read().inode().i_links.get(), block.inode().i_links.get());
        if counted == synced {
            return Ok(());
        }
        Err(FsError::corrupt("links of a journaled inode", synced.into(), counted.into(), counted.into()))
    }
}
