//! Finding and listing names.

use f2fs_format::Nid;
use f2fs_format::dentry::{DentryView, Entry, FileType, SLOTS_PER_BLOCK};
use f2fs_format::hash::bucket_range;
use f2fs_sync::Arc;
use f2fs_sync::atomic::Ordering;

use super::names::Place;
use super::{Directory, Found, Page, is_inline};
use crate::FsError;
use crate::block_map::present_blocks;
use crate::filesystem::Core;
use crate::inode::Inode;
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

impl Directory {
    /// Looks a name up. The caller holds its stripe.
    pub(crate) fn find(&self, core: &Core, inode: &Inode, name: Name<'_>) -> Result<Option<Found>, FsError> {
        if self.form.has_foreign_names() && !name.is_stored() {
            return self.find_foreign(core, inode, name.bytes());
        }
        if !self.hashed.load(Ordering::Acquire) {
            let block = inode.node.read();
            if is_inline(block.inode()) {
                let view = DentryView::inline(block.inode().inline_data(core.volume.features()));
                return Ok(view.find(name.hash(), name.bytes())?.map(found));
            }
        }
        self.find_page(core, inode, name).map(|place| place.map(|(_, _, found)| found))
    }

    /// The page and slot of a name in a hashed directory.
    pub(super) fn find_page(
        &self,
        core: &Core,
        inode: &Inode,
        name: Name<'_>,
    ) -> Result<Option<(Arc<Page>, usize, Found)>, FsError> {
        // `..` belongs to no stripe.
        if !name.is_parent() {
            let place = self.names(name.hash()).read().place(name.hash());
            match place {
                Place::Absent => {
                    let checked = cfg!(debug_assertions) && !cfg!(f2fs_counting);
                    debug_assert!(!checked || matches!(self.search(core, inode, name), Ok(None) | Err(_)));
                    return Ok(None);
                }
                Place::Slot { block, slot } => {
                    if let Some(page) = self.page(core, inode, block)? {
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
                Place::Unknown => {}
            }
        }
        self.search(core, inode, name)
    }

    /// Searches the blocks that a name can be in.
    fn search(&self, core: &Core, inode: &Inode, name: Name<'_>) -> Result<Option<(Arc<Page>, usize, Found)>, FsError> {
        for level in 0..self.depth() {
            for block in bucket_range(level, self.dir_level, name.hash()) {
                let Some(page) = self.page(core, inode, block)? else { continue };
                let data = page.data.read();
                if page.is_dead() {
                    continue;
                }
                if let Some(entry) = DentryView::block(&data).find(name.hash(), name.bytes())? {
                    let place = (entry.slot, found(entry));
                    drop(data);
                    return Ok(Some((page, place.0, place.1)));
                }
            }
        }
        Ok(None)
    }

    /// Entries from position `from` on, at most `limit`, `.` and `..` included. A position is the number of a slot, counted
    /// over all blocks: it stays good while other names come and go, and when an inline directory grows out of its inode.
    pub(crate) fn list(&self, core: &Core, inode: &Inode, from: u64, limit: usize) -> Result<Vec<RawEntry>, FsError> {
        let mut entries = Vec::new();
        let size = {
            let block = inode.node.read();
            if is_inline(block.inode()) {
                let view = DentryView::inline(block.inode().inline_data(core.volume.features()));
                self.collect(view, 0, from, limit, &mut entries)?;
                return Ok(entries);
            }
            block.inode().i_size.get()
        };
        let blocks = size.div_ceil(f2fs_format::BLOCK_SIZE as u64);
        let mut block = from / SLOTS_PER_BLOCK as u64;
        while block < blocks && entries.len() < limit {
            let mut present = Vec::new();
            block = present_blocks(&core.volume, &inode.node, block, blocks, &mut present)?;
            for number in present {
                let Some(page) = self.page(core, inode, number)? else { continue };
                let data = page.data.read();
                if !page.is_dead() {
                    let base = number * SLOTS_PER_BLOCK as u64;
                    self.collect(DentryView::block(&data), base, from, limit, &mut entries)?;
                }
                if entries.len() >= limit {
                    break;
                }
            }
        }
        Ok(entries)
    }

    /// Whether the directory holds only `.` and `..`. The caller holds all stripes.
    pub(crate) fn is_empty(&self, core: &Core, inode: &Inode) -> Result<bool, FsError> {
        // A third entry is all that is looked for.
        Ok(self.list(core, inode, 0, 3)?.iter().all(|entry| entry.name == b"." || entry.name == b".."))
    }

    fn collect(
        &self,
        view: DentryView<'_>,
        base: u64,
        from: u64,
        limit: usize,
        entries: &mut Vec<RawEntry>,
    ) -> Result<(), FsError> {
        for entry in view.entries() {
            let entry = entry?;
            if base + entry.slot as u64 >= from {
                if entries.len() >= limit {
                    break;
                }
                entries.push(RawEntry {
                    name: self.shown(&entry),
                    ino: entry.ino,
                    file_type: FileType::from_number(entry.file_type),
                    next: base + (entry.slot + entry.slots()) as u64,
                });
            }
        }
        Ok(())
    }
}

pub(super) fn found(entry: Entry<'_>) -> Found {
    Found { ino: entry.ino, file_type: FileType::from_number(entry.file_type) }
}
