//! Removing a tree.

use std::collections::HashMap;
use std::vec;

use f2fs_format::Nid;
use f2fs_sync::Arc;

use crate::FsError;
use crate::core::Core;
use crate::directory::RawEntry;
use crate::entry::BadEntry;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::Namespace;
use crate::stat::FileKind;

/// How often a directory may be met on the way because others move it. There is a limit, since damage may look like
/// that to [`Namespace::is_moved`].
const MOST_MOVES: u32 = 1000;
/// How often directories of a tree are gone through anew because names came meanwhile: others may go on making them for
/// ever. It is a number for the whole tree, since numbers of each directory multiply on the way down.
const MOST_ROUNDS: u32 = 32;
/// Entries of a directory that are listed together.
const PAGE: usize = 1024;

/// A directory that is being emptied.
struct Emptied {
    /// Where it has its name.
    parent: Arc<Inode>,
    name: Vec<u8>,
    inode: Arc<Inode>,
    /// Entries that were listed and not yet removed.
    listed: vec::IntoIter<RawEntry>,
    /// Where the listing goes on.
    position: u64,
    /// Something was removed since the listing began.
    progress: bool,
    /// The first entry, here or below, that cannot be removed since it has no name.
    bad: Option<BadEntry>,
}

impl Emptied {
    fn new(parent: Arc<Inode>, name: Vec<u8>, inode: Arc<Inode>) -> Emptied {
        Emptied { parent, name, inode, listed: Vec::new().into_iter(), position: 0, progress: false, bad: None }
    }

    /// Goes through it anew, if something was removed meanwhile, and takes that from the `rounds` which the tree has left.
    fn begin_anew(&mut self, rounds: &mut u32) -> bool {
        if !self.progress || *rounds == 0 {
            return false;
        }
        (self.position, self.progress) = (0, false);
        *rounds -= 1;
        true
    }

    /// The next entry below; `None` when all are gone by.
    fn next(&mut self, core: &Core) -> Result<Option<RawEntry>, FsError> {
        loop {
            if let Some(entry) = self.listed.next() {
                self.position = entry.next;
                if entry.name != b"." && entry.name != b".." {
                    return Ok(Some(entry));
                }
                continue;
            }
            let listed = {
                let _gate = core.volume.begin_read();
                self.inode.directory()?.list(&core.volume, self.position, PAGE)?
            };
            core.read_ahead(&listed.entries.iter().map(|entry| entry.ino).collect::<Vec<_>>());
            if listed.entries.is_empty() {
                let Some(bad) = listed.bad else { return Ok(None) };
                self.position = bad.next;
                self.bad.get_or_insert(bad);
            }
            self.listed = listed.entries.into_iter();
        }
    }
}

impl Namespace<'_> {
    /// Removes a name, and if it is a directory's all that is below it: depth first, without recursion, by inodes and
    /// names, so that a directory that is moved meanwhile takes nobody elsewhere. Where an entry has an invalid name,
    /// everything else is removed, and the entry is the error.
    pub(crate) fn remove_tree(&self, parent: &Arc<Inode>, name: Name<'_>) -> Result<(), FsError> {
        let top = self.child(parent, name.bytes())?;
        if top.kind != FileKind::Directory {
            return self.unlink(parent, name);
        }
        self.require_here(parent, name.bytes(), &top)?;
        // Those on the way, and how often they were met there, so that a directory that contains itself is found out.
        let mut known: HashMap<Nid, u32> = HashMap::from([(top.ino, 1)]);
        let mut pending = vec![Emptied::new(parent.clone(), name.bytes().to_vec(), top)];
        let mut rounds = MOST_ROUNDS;
        loop {
            let is_top = pending.len() == 1;
            let Some(here) = pending.last_mut() else { return Ok(()) };
            let Some(entry) = here.next(self)? else {
                if let Some(bad) = here.bad.take() {
                    // It stays, and so do the directories above.
                    pending.pop();
                    let Some(above) = pending.last_mut() else { return Err(bad.into()) };
                    above.bad.get_or_insert(bad);
                    continue;
                }
                match self.rmdir(&here.parent, Name::new(&here.name)?) {
                    // Names came meanwhile, or stand in front of where the listing was.
                    Err(FsError::NotEmpty) if here.begin_anew(&mut rounds) => continue,
                    // Somebody else moved or removed it.
                    Err(FsError::NotFound) if !is_top => {}
                    result => result?,
                }
                known.remove(&here.inode.ino);
                pending.pop();
                if let Some(above) = pending.last_mut() {
                    above.progress = true;
                }
                continue;
            };
            let (parent, name) = (here.inode.clone(), entry.name);
            let child = match self.child(&parent, &name) {
                // Somebody else removed it; or a damaged hash hides it, and the directory stays.
                Err(FsError::NotFound) => continue,
                child => child?,
            };
            if child.kind != FileKind::Directory {
                match self.unlink(&parent, Name::new(&name)?) {
                    Err(FsError::NotFound) => {}
                    result => {
                        result?;
                        here.progress = true;
                    }
                }
                continue;
            }
            let met = known.entry(child.ino).or_default();
            if *met > 0 && (*met > MOST_MOVES || !self.is_moved(&parent, &name, &child)?) {
                return Err(FsError::corrupt("names of a directory", 2, 1, 1));
            }
            *met += 1;
            self.require_here(&parent, &name, &child)?;
            pending.push(Emptied::new(parent, name, child));
        }
    }

    /// Fails if the name is damaged, and leads to a directory that lies elsewhere: what is below that is not of this tree.
    fn require_here(&self, parent: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> Result<(), FsError> {
        if self.other_parent(parent, child)?.is_none() {
            return Ok(());
        }
        // Or it was moved a moment ago.
        let _tree = self.rename.lock();
        match self.other_parent(parent, child)? {
            Some(above) if self.leads_to(parent, name, child)? => {
                let (found, here) = (above.0.into(), parent.ino.0.into());
                Err(FsError::corrupt("parent of a directory that is named here", found, here, here))
            }
            _ => Ok(()),
        }
    }

    /// Whether a name means this inode now.
    fn leads_to(&self, parent: &Inode, name: &[u8], child: &Inode) -> Result<bool, FsError> {
        match self.child(parent, name) {
            Ok(found) => Ok(found.ino == child.ino),
            Err(FsError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where the entry of a directory for its parent leads, if that is not `parent`. One that has none says nothing.
    fn other_parent(&self, parent: &Arc<Inode>, child: &Arc<Inode>) -> Result<Option<Nid>, FsError> {
        let _gate = self.volume.begin_read();
        let found = child.directory()?.find(&self.volume, Name::PARENT)?;
        Ok(found.map(|entry| entry.ino).filter(|above| *above != parent.ino))
    }

    /// Whether a directory that is met for the second time on the way has come here since: it is none of those that
    /// lead here, as they stand now.
    fn is_moved(&self, parent: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> Result<bool, FsError> {
        let _tree = self.rename.lock();
        if !self.leads_to(parent, name, child)? {
            return Ok(true);
        }
        match self.is_ancestor(child, parent) {
            Err(FsError::NotFound) => Ok(true),
            found => found.map(|leads_here| !leads_here),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
