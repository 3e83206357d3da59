//! Adding, removing and redirecting names.

use std::collections::BTreeMap;

use f2fs_format::dentry::{DentryView, DentryViewMut, FileType, slots_for};
use f2fs_format::hash::{MAX_DEPTH, bucket_range};
use f2fs_format::inode::inline;
use f2fs_format::{BlockAddr, Corruption, Nid, RawBlock};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, protocol_value};
use f2fs_volume::{Op, VolumeError};

use super::lookup::Located;
use super::{Directory, Page, is_inline};
use crate::FsError;
use crate::name::Name;
use crate::stat::{self, Time};

impl Directory {
    /// Adds a name that is not there. The caller holds its stripe exclusively. On an error nothing was added.
    pub(crate) fn add(
        &self,
        op: &Op<'_>,
        name: Name<'_>,
        ino: Nid,
        file_type: FileType,
        now: Time,
    ) -> Result<(), FsError> {
        let features = op.volume().features();
        if !self.is_hashed() {
            let mut block = self.node.write(op);
            // Another name may have turned the directory into a hashed one meanwhile.
            if is_inline(block.inode()) {
                let raw = block.inode_mut();
                let mut view = DentryViewMut::inline(raw.inline_data_mut(features));
                if let Some(slot) = view.as_view().room_for(slots_for(name.bytes().len())) {
                    insert(&mut view, slot, name.bytes(), name.hash(), ino, file_type)?;
                    self.note(name.hash(), None);
                    stat::set_modified(raw, now);
                    stat::set_changed(raw, now);
                    return Ok(());
                }
                drop(block);
                self.convert(op)?;
            }
        }
        self.add_hashed(op, name, ino, file_type)?;
        self.touch(name.hash(), now);
        Ok(())
    }

    fn add_hashed(&self, op: &Op<'_>, name: Name<'_>, ino: Nid, file_type: FileType) -> Result<(), FsError> {
        let wanted = slots_for(name.bytes().len());
        let mut level = self.names(name.hash()).read().first_level(wanted);
        let mut hinted = level > 0;
        while level < MAX_DEPTH {
            if level >= self.depth() && std::mem::take(&mut hinted) {
                // Levels that were crowded need not be any more: the directory grows only if all of them are.
                level = 0;
                continue;
            }
            for block in bucket_range(level, self.dir_level, name.hash()) {
                loop {
                    let page = match self.page_or_new(op, block) {
                        // Deeper levels are farther away still.
                        Err(FsError::FileTooLarge { .. }) => return Err(no_room()),
                        page => page?,
                    };
                    if level >= self.depth() {
                        self.depth.fetch_max(level + 1, Ordering::AcqRel);
                    }
                    let mut data = page.data.write();
                    if protocol_value!("page_dead_and_filled", page.is_dead(), false) {
                        continue;
                    }
                    let mut view = DentryViewMut::block(&mut data);
                    let Some(slot) = view.as_view().room_for(wanted) else { break };
                    insert(&mut view, slot, name.bytes(), name.hash(), ino, file_type)?;
                    {
                        let mut names = self.names(name.hash()).write();
                        names.note(name.hash(), Some((block, slot)), &self.shared.names);
                        names.room_at(wanted, level);
                    }
                    self.mark_dirty(op.volume(), &page);
                    return Ok(());
                }
            }
            level += 1;
        }
        Err(no_room())
    }

    /// Removes a name. The caller holds its stripe exclusively; `located` is where it was found since, if anybody
    /// looked. Returns the inode that it named.
    pub(crate) fn remove(
        &self,
        op: &Op<'_>,
        name: Name<'_>,
        located: Option<&Located>,
        now: Time,
    ) -> Result<Option<Nid>, FsError> {
        let at = located.and_then(|located| located.at.clone());
        #[allow(clippy::redundant_closure_for_method_calls)] // the method alone is not general enough in its lifetime
        let named = self.edit(op, name, at, now, |view, slot| view.remove(slot))?;
        let mut names = self.names(name.hash()).write();
        if let Some((_, Some(_))) = &named {
            names.gone(name.hash());
        }
        if let Some((Some(block), _)) = named {
            names.room_in(block, self.dir_level);
        }
        Ok(named.and_then(|(_, ino)| ino))
    }

    /// Lets a name, or `..`, name another inode. The caller holds the name's stripe exclusively; for `..` the page is
    /// enough. Tells whether the name is there.
    pub(crate) fn redirect(
        &self,
        op: &Op<'_>,
        name: Name<'_>,
        ino: Nid,
        file_type: FileType,
        now: Time,
    ) -> Result<bool, FsError> {
        let there = self.edit(op, name, None, now, |view, slot| view.set_target(slot, ino, file_type))?;
        Ok(there.is_some())
    }

    /// Finds a name and changes its slot, wherever it stands; tells the block, if it is not the inode. A dentry block
    /// that holds nothing afterwards is freed. `at`: the page and the slot, where they are known. `None`: the name is
    /// not there.
    fn edit<T>(
        &self,
        op: &Op<'_>,
        name: Name<'_>,
        at: Option<(Arc<Page>, usize)>,
        now: Time,
        change: impl FnOnce(&mut DentryViewMut<'_>, usize) -> Result<T, Corruption>,
    ) -> Result<Option<(Option<u64>, T)>, FsError> {
        let volume = op.volume();
        let features = volume.features();
        if !self.is_hashed() {
            let mut block = self.node.write(op);
            // Another name may have turned the directory into a hashed one meanwhile.
            if is_inline(block.inode()) {
                let raw = block.inode_mut();
                let mut view = DentryViewMut::inline(raw.inline_data_mut(features));
                let Some(slot) = view.as_view().find(name.hash(), name.bytes()).map(|entry| entry.slot) else {
                    return Ok(None);
                };
                let changed = change(&mut view, slot)?;
                stat::set_modified(raw, now);
                stat::set_changed(raw, now);
                return Ok(Some((None, changed)));
            }
        }
        let at = match at {
            Some(at) => Some(at),
            None => self.find_page(volume, name)?.map(|(page, slot, _)| (page, slot)),
        };
        let Some((page, slot)) = at else { return Ok(None) };
        let mut data = page.data.write();
        let dead = page.is_dead();
        let mut view = DentryViewMut::block(&mut data);
        // The stripe keeps the name where it was found, and the name keeps the page alive; a page that is held stays in
        // memory.
        if dead || view.as_view().entry(slot)?.is_none_or(|entry| entry.name != name.bytes()) {
            return Err(FsError::corrupt("slot of a name that nobody else changes", slot as u64, 0, 0));
        }
        let changed = change(&mut view, slot)?;
        if view.as_view().is_used_at_all() || !self.free_page(op, &page)? {
            self.mark_dirty(volume, &page);
        }
        drop(data);
        self.touch(name.hash(), now);
        Ok(Some((Some(page.block), changed)))
    }

    /// Moves inline entries to dentry blocks (`f2fs_convert_inline_dir`). Slots keep their numbers where the hash table
    /// begins with one bucket, which is always but for a raised `i_dir_level`; so positions of a listing stay good.
    fn convert(&self, op: &Op<'_>) -> Result<(), FsError> {
        let volume = op.volume();
        let features = volume.features();
        let mut node = self.node.write(op);
        if !is_inline(node.inode()) {
            return Ok(());
        }
        let mut blocks: BTreeMap<u64, Box<RawBlock>> = BTreeMap::new();
        for entry in DentryView::inline(node.inode().inline_data(features)).entries() {
            let entry = entry?;
            let file_type = FileType::from_number(entry.file_type)
                .ok_or_else(|| FsError::corrupt("file type of a directory entry", entry.file_type.into(), 1, 7))?;
            let mut placed = false;
            for number in bucket_range(0, self.dir_level, entry.hash) {
                let block = blocks.entry(number).or_insert_with(|| Box::new([0; 4096]));
                let mut view = DentryViewMut::block(block);
                let slot = if self.dir_level == 0 { Some(entry.slot) } else { view.as_view().room_for(entry.slots()) };
                if let Some(slot) = slot {
                    insert(&mut view, slot, entry.name, entry.hash, entry.ino, file_type)?;
                    placed = true;
                    break;
                }
            }
            if !placed {
                return Err(FsError::Unsupported {
                    ino: self.node.nid(),
                    what: "an inline directory that overflows its hash bucket",
                });
            }
        }
        let last = blocks.keys().last().copied().unwrap_or(0);
        if last >= node.inode().layout(features).address_count() as u64 {
            return Err(FsError::Unsupported {
                ino: self.node.nid(),
                what: "an inline directory with a large dir_level",
            });
        }
        volume.data().reserve(op, blocks.len() as u64)?;
        let raw = node.inode_mut();
        raw.inline_data_mut(features).fill(0);
        raw.i_inline &= !(inline::DENTRY | inline::DOTS);
        raw.i_current_depth = 1.into();
        raw.i_size = ((last + 1) * f2fs_format::BLOCK_SIZE as u64).into();
        raw.add_blocks(blocks.len() as u64);
        for number in blocks.keys() {
            node.set_address(*number as usize, BlockAddr::NEW, features);
        }
        self.depth.store(1, Ordering::Release);
        for (number, block) in blocks {
            self.insert_page(volume, number, block);
        }
        self.hashed.store(true, Ordering::Release);
        Ok(())
    }
}

/// No name more with this hash fits into the directory (`ENOSPC`, as in the kernel).
fn no_room() -> FsError {
    VolumeError::NoSpace { wanted: 1, available: 0 }.into()
}

/// Puts an entry into slots that were found free; that they are not is a contradiction in the block.
fn insert(
    view: &mut DentryViewMut<'_>,
    slot: usize,
    name: &[u8],
    hash: u32,
    ino: Nid,
    file_type: FileType,
) -> Result<(), FsError> {
    if view.insert(slot, name, hash, ino, file_type) {
        Ok(())
    } else {
        Err(FsError::corrupt("slots of a directory entry", slot as u64, 0, view.as_view().slots() as u64))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
