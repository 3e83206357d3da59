//! A dentry block in memory.

use std::collections::hash_map::Entry;

use f2fs_device::AlignedBuf;
use f2fs_format::{BlockAddr, Corruption, RawBlock};
use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_sync::{Arc, RwLock, protocol_step, protocol_value};
use f2fs_volume::tree::{Slot, add_blocks, ensure_slot, find_slot};
use f2fs_volume::{Change, Op, Volume, VolumeError};

use super::Directory;
use crate::FsError;

/// A dentry block in memory.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) block: u64,
    pub(super) data: RwLock<Box<RawBlock>>,
    pub(super) dirty: AtomicBool,
    /// The block was freed; set under the lock of `data`. Look again.
    pub(super) dead: AtomicBool,
}

impl Page {
    fn new(block: u64, data: Box<RawBlock>) -> Page {
        Page { block, data: RwLock::new(data), dirty: AtomicBool::new(false), dead: AtomicBool::new(false) }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }
}

impl Directory {
    /// The page of a block, from memory or the device; `None` for a hole.
    pub(super) fn page(&self, volume: &Volume, block: u64) -> Result<Option<Arc<Page>>, FsError> {
        loop {
            if let Some(page) = self.shard(block).read().get(&block) {
                return Ok(Some(Arc::clone(page)));
            }
            let slot = match find_slot(volume, &self.node, block) {
                // A bucket behind all that an inode can address (a large `i_dir_level`): no name is there.
                Err(VolumeError::FileTooLarge { .. }) => return Ok(None),
                slot => slot?,
            };
            let Some(slot) = slot else { return Ok(None) };
            let addr = slot.get(volume);
            let data = if addr.is_real() {
                if volume.geometry().in_main(addr) && !volume.data().is_in_use(addr)? {
                    if slot.get(volume) != addr {
                        continue;
                    }
                    // A log may be about to write to it.
                    let (what, nid) = ("a dentry block that is not in use", slot.node.nid());
                    return Err(FsError::Volume(Corruption::Block { what, nid, addr }.into()));
                }
                let mut buf = AlignedBuf::new(1);
                volume.data().read(slot.node.nid(), addr, &mut buf)?;
                Box::new(*buf.block(0))
            } else if addr == BlockAddr::NEW {
                // Reserved a moment ago by another thread, which has not put its page here yet.
                Box::new([0; 4096])
            } else if addr.is_null() {
                return Ok(None);
            } else {
                // The mark of a compressed cluster, which no directory has. It is no hole that could be filled.
                let (what, nid) = ("a dentry block of a compressed cluster", slot.node.nid());
                return Err(FsError::Volume(Corruption::Address { what, nid, addr }.into()));
            };
            let mut shard = self.shard(block).write();
            match shard.entry(block) {
                Entry::Occupied(page) => return Ok(Some(page.get().clone())),
                // Others may have loaded the page meanwhile, taken the last name out of it and freed it: what was read
                // is no longer part of the directory.
                Entry::Vacant(_) if protocol_value!("page_taken_at_first_sight", slot.get(volume), addr) != addr => {}
                Entry::Vacant(place) => {
                    let page = Arc::clone(place.insert(Arc::new(Page::new(block, data))));
                    drop(shard);
                    if addr.is_real() {
                        self.shared.blocks_came(1);
                    }
                    return Ok(Some(page));
                }
            }
        }
    }

    /// The page of a block; a hole is filled with an empty one.
    pub(super) fn page_or_new(&self, op: &Op<'_>, block: u64) -> Result<Arc<Page>, FsError> {
        loop {
            if let Some(page) = self.page(op.volume(), block)? {
                return Ok(page);
            }
            // Others may fill the block before it is seen here, take the last name out of it, and free it: then it is
            // made again.
            if let Some(slot) = self.make_block(op, block)?
                && let Some(page) = self.show(op.volume(), &slot, block)
            {
                return Ok(page);
            }
        }
    }

    /// The empty page of a block that was just reserved; `None` if others have filled and freed the block since.
    fn show(&self, volume: &Volume, slot: &Slot, block: u64) -> Option<Arc<Page>> {
        let mut shard = self.shard(block).write();
        match shard.entry(block) {
            Entry::Occupied(page) => Some(page.get().clone()),
            Entry::Vacant(_) if slot.get(volume) != BlockAddr::NEW => None,
            Entry::Vacant(place) => Some(Arc::clone(place.insert(Arc::new(Page::new(block, Box::new([0; 4096])))))),
        }
    }

    /// Reserves a block of a directory, if it is a hole; gives its slot then. It holds no name yet: an operation that puts one in marks it
    /// dirty. Nobody has to before, since it is not left without one: a name fits into an empty block, and the gate is
    /// open until the end of the operation.
    fn make_block(&self, op: &Op<'_>, block: u64) -> Result<Option<Slot>, FsError> {
        let volume = op.volume();
        let slot = ensure_slot(op, &self.node, block)?;
        // Room is taken with the page locked: another thread may have made the block.
        let (mut made, mut room) = (false, Ok(()));
        let reserve = |_, addr: BlockAddr| {
            if addr.is_null() {
                room = volume.data().reserve(op, 1);
            }
            if addr.is_null() && room.is_ok() { Change::To(BlockAddr::NEW) } else { Change::Keep }
        };
        volume.slots().change(op, &slot.node, slot.index..slot.index + 1, reserve, |_, _| made = true)?;
        room?;
        if !made {
            return Ok(None);
        }
        let mut node = self.node.write(op);
        let raw = node.inode_mut();
        raw.add_blocks(1);
        let end = (block + 1) * f2fs_format::BLOCK_SIZE as u64;
        if raw.i_size.get() < end {
            raw.i_size = end.into();
        }
        Ok(Some(slot))
    }

    /// Notes that a page was changed. The caller holds its lock, or has just made it and shown it to nobody.
    pub(super) fn mark_dirty(&self, volume: &Volume, page: &Arc<Page>) {
        // Looked at first: most pages that are changed are dirty already.
        if page.dirty.load(Ordering::Relaxed) {
            return;
        }
        let mut dirty = self.dirty.lock();
        if !page.dirty.swap(true, Ordering::AcqRel) {
            dirty.insert(page.block, Arc::clone(page));
            volume.balance().add_dirty_dentries(1);
        }
    }

    /// Puts in a page whose block was just reserved.
    pub(super) fn insert_page(&self, volume: &Volume, block: u64, data: Box<RawBlock>) {
        let page = Arc::new(Page::new(block, data));
        self.shard(block).write().insert(block, page.clone());
        self.mark_dirty(volume, &page);
    }

    /// Frees the block of a page that holds no entry any more. The caller holds the page's lock exclusively. Tells
    /// whether it is freed: if its node cannot be read the block stays, empty, which does no harm.
    pub(super) fn free_page(&self, op: &Op<'_>, page: &Page) -> Result<bool, FsError> {
        let volume = op.volume();
        let Ok(Some(slot)) = find_slot(volume, &self.node, page.block) else { return Ok(false) };
        protocol_step!("page_freed_and_not_dead", page.dead.store(true, Ordering::Release));
        self.forget_dirty(volume, page);
        let freed = volume.slots().clear(op, &slot.node, slot.index..slot.index + 1, |_, _| {});
        self.shard(page.block).write().remove(&page.block);
        if freed? != 0 {
            add_blocks(op, &self.node, -1);
        }
        Ok(true)
    }

    /// Takes a freed page off the dirty ones, so that it neither stays in memory nor brings a checkpoint nearer. It
    /// must still be in the map: the next page of its block may be dirty as soon as it is not.
    fn forget_dirty(&self, volume: &Volume, page: &Page) {
        let mut dirty = self.dirty.lock();
        if page.dirty.load(Ordering::Relaxed) && dirty.remove(&page.block).is_some() {
            volume.balance().sub_dirty_dentries(1);
        }
    }

    /// Takes the dirty pages, in the order of their blocks.
    pub(super) fn take_dirty(&self, volume: &Volume) -> Vec<Arc<Page>> {
        let mut pages: Vec<_> = core::mem::take(&mut *self.dirty.lock()).into_values().collect();
        volume.balance().sub_dirty_dentries(pages.len() as u64);
        pages.sort_unstable_by_key(|page| page.block);
        pages
    }

    /// How many pages there are.
    pub(crate) fn blocks(&self) -> u64 {
        self.pages.iter().map(|shard| shard.0.read().len() as u64).sum()
    }

    /// Drops clean pages that nobody uses when there are more than `limit`. A thread that uses a page, or is about to
    /// change it, holds it.
    pub(crate) fn shrink(&self, limit: usize) {
        for shard in &self.pages {
            let mut map = shard.0.write();
            if map.len() > limit / self.pages.len() {
                // Found under this lock, and held until it was on the list of dirty ones if it was changed.
                let used = |page: &Arc<Page>| {
                    protocol_value!("directory_drops_pages_in_use", Arc::strong_count(page) > 1, false)
                };
                map.retain(|_, page| page.dirty.load(Ordering::Acquire) || used(page));
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
