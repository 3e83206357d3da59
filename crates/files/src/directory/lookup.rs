//! Finding and listing names.

use f2fs_format::dentry::{DentryView, Entry, FileType, SLOTS_PER_BLOCK};
use f2fs_format::hash::bucket_range;
use f2fs_format::{Corruption, Nid};
use f2fs_sync::Arc;
use f2fs_volume::Volume;
use f2fs_volume::tree::present_blocks;

use super::names::Place;
use super::{Directory, Found, Page, is_inline};
use crate::FsError;
use crate::entry::{BadEntry, Judge};
use crate::name::Name;

/// An entry as a listing hands it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) ino: Nid,
    pub(crate) file_type: Option<FileType>,
    /// Where a listing goes on behind this entry.
    pub(crate) next: u64,
}

/// A part of a listing.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) entries: Vec<RawEntry>,
    /// The entry behind them that has no name to hand out.
    pub(crate) bad: Option<BadEntry>,
}

impl Listed {
    fn is_full(&self, limit: usize) -> bool {
        self.entries.len() >= limit || self.bad.is_some()
    }
}

/// A name that was found, for as long as its stripe is held: nobody else moves it then.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) ino: Nid,
    /// Its page, which stays in memory while it is held, and its slot there; `None`: it stood in the inode.
    pub(super) at: Option<(Arc<Page>, usize)>,
}

impl Directory {
    /// Looks a name up. The caller holds its stripe.
    pub(crate) fn find(&self, volume: &Volume, name: Name<'_>) -> Result<Option<Found>, FsError> {
        if self.form.has_foreign_names() && !name.is_stored() {
            return self.find_foreign(volume, name.bytes());
        }
        if !self.is_hashed() {
            let block = self.node.read();
            if is_inline(block.inode()) {
                let view = DentryView::inline(block.inode().inline_data(volume.features()));
                return Ok(view.find(name.hash(), name.bytes()).map(found));
            }
        }
        self.find_page(volume, name).map(|place| place.map(|(_, _, found)| found))
    }

    /// The same, with the place of the name, for a caller that is about to [remove](Self::remove) it.
    pub(crate) fn locate(&self, volume: &Volume, name: Name<'_>) -> Result<Option<Located>, FsError> {
        let foreign = self.form.has_foreign_names() && !name.is_stored();
        if foreign || !self.is_hashed() {
            let found = self.find(volume, name)?;
            return Ok(found.map(|found| Located { ino: found.ino, at: None }));
        }
        let place = self.find_page(volume, name)?;
        Ok(place.map(|(page, slot, found)| Located { ino: found.ino, at: Some((page, slot)) }))
    }

    /// The page and slot of a name in a hashed directory.
    pub(super) fn find_page(
        &self,
        volume: &Volume,
        name: Name<'_>,
    ) -> Result<Option<(Arc<Page>, usize, Found)>, FsError> {
        // `..` belongs to no stripe.
        if !name.is_parent() {
            let known = || self.names(name.hash()).read().place(name.hash());
            let mut place = known();
            if place == Place::Unlearned && self.learns(volume, name.hash()) {
                place = known();
            }
            match place {
                Place::Absent => {
                    let checked = cfg!(debug_assertions) && !cfg!(f2fs_counting);
                    debug_assert!(!checked || matches!(self.search(volume, name), Ok(None) | Err(_)));
                    return Ok(None);
                }
                Place::Slot { block, slot } => {
                    if let Some(page) = self.page(volume, block)? {
                        let data = page.data.read();
                        let entry = DentryView::block(&data).entry(slot)?;
                        if let Some(entry) =
                            entry.filter(|entry| entry.hash == name.hash() && entry.name == name.bytes())
                            && !page.is_dead()
                        {
                            let found = found(entry);
                            drop(data);
                            return Ok(Some((page, slot, found)));
                        }
                    }
                }
                Place::Unknown | Place::Unlearned => {}
            }
        }
        self.search(volume, name)
    }

    /// Searches the blocks that a name can be in.
    fn search(&self, volume: &Volume, name: Name<'_>) -> Result<Option<(Arc<Page>, usize, Found)>, FsError> {
        for level in 0..self.depth() {
            for block in bucket_range(level, self.dir_level, name.hash()) {
                let Some(page) = self.page(volume, block)? else { continue };
                let data = page.data.read();
                if page.is_dead() {
                    continue;
                }
                if let Some(entry) = DentryView::block(&data).find(name.hash(), name.bytes()) {
                    let place = (entry.slot, found(entry));
                    drop(data);
                    return Ok(Some((page, place.0, place.1)));
                }
            }
        }
        Ok(None)
    }

    /// Entries from position `from` on, at most `limit`, `.` and `..` included. A position is the number of a slot,
    /// counted over all blocks: it stays good while other names come and go, and when an inline directory grows out of
    /// its inode. Ends in front of an entry whose name cannot be one, and says so.
    pub(crate) fn list(&self, volume: &Volume, from: u64, limit: usize) -> Result<Listed, FsError> {
        let mut listed = Listed::default();
        let size = {
            let block = self.node.read();
            if is_inline(block.inode()) {
                let view = DentryView::inline(block.inode().inline_data(volume.features()));
                self.collect(view, Judge::new(self.node.nid(), None, 0), from, limit, &mut listed);
                return Ok(listed);
            }
            block.inode().i_size.get()
        };
        let blocks = size.div_ceil(f2fs_format::BLOCK_SIZE as u64);
        let mut block = from / SLOTS_PER_BLOCK as u64;
        while block < blocks && !listed.is_full(limit) {
            let mut present = Vec::new();
            block = present_blocks(volume, &self.node, block, blocks, &mut present)?;
            for number in present {
                let Some(page) = self.page(volume, number)? else { continue };
                let data = page.data.read();
                if !page.is_dead() {
                    let view = DentryView::block(&data);
                    let mut judge = Judge::new(self.node.nid(), Some(number), number * SLOTS_PER_BLOCK as u64);
                    if number > 0 && view.entries().flatten().any(|entry| entry.is_dot()) {
                        self.note_first_dots(volume, &mut judge)?;
                    }
                    self.collect(view, judge, from, limit, &mut listed);
                }
                if listed.is_full(limit) {
                    break;
                }
            }
        }
        Ok(listed)
    }

    /// Tells the judge of another block of `.` and `..` in the first one, where they belong. The caller may hold
    /// another page: a thread that holds the page of the first block waits for no other page.
    fn note_first_dots(&self, volume: &Volume, judge: &mut Judge) -> Result<(), FsError> {
        if let Some(page) = self.page(volume, 0)? {
            for entry in DentryView::block(&page.data.read()).entries().flatten() {
                judge.look(&entry, b"");
            }
        }
        Ok(())
    }

    /// Whether the directory holds only `.` and `..`. The caller holds all stripes.
    pub(crate) fn is_empty(&self, volume: &Volume) -> Result<bool, FsError> {
        // A third entry is all that is looked for.
        let listed = self.list(volume, 0, 3)?;
        if listed.entries.iter().any(|entry| entry.name != b"." && entry.name != b"..") {
            return Ok(false);
        }
        // Nothing removes an entry that is in no listing, but a repair.
        listed.bad.map_or(Ok(true), |bad| Err(FsError::BadEntry(bad)))
    }

    fn collect(&self, view: DentryView<'_>, mut judge: Judge, from: u64, limit: usize, listed: &mut Listed) {
        for entry in view.entries() {
            let (slot, judged) = match &entry {
                Ok(entry) => {
                    let name = self.shown(entry);
                    (entry.slot, judge.look(entry, &name).map_or(Ok((entry, name)), Err))
                }
                Err(Corruption::Dentry { slot, .. }) => {
                    (*slot, Err(judge.corrupt(*slot, &view.raw(*slot).unwrap_or_default())))
                }
                Err(_) => continue,
            };
            if judge.base + (slot as u64) < from {
                continue;
            }
            if listed.is_full(limit) {
                return;
            }
            match judged {
                Ok((entry, name)) => listed.entries.push(RawEntry {
                    name,
                    ino: entry.ino,
                    file_type: FileType::from_number(entry.file_type),
                    next: judge.base + (entry.slot + entry.slots()) as u64,
                }),
                Err(bad) => listed.bad = Some(bad),
            }
        }
    }
}

pub(super) fn found(entry: Entry<'_>) -> Found {
    Found { ino: entry.ino, file_type: FileType::from_number(entry.file_type) }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
