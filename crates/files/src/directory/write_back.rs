//! Writing changed dentry blocks at the checkpoint, and ahead of it.

use f2fs_device::AlignedBuf;
use f2fs_format::LogType;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, protocol_never, protocol_step};
use f2fs_volume::tree::find_slot;
use f2fs_volume::{Flight, Op, Volume};

use super::{Directory, is_inline};
use crate::FsError;

/// Dentry blocks written together at most.
const CHUNK: usize = 512;
/// Dentry blocks written together while operations run, at most.
const AHEAD: usize = 128;
/// Clean pages that a directory keeps.
const KEEP: usize = 4096;

impl Directory {
    /// Writes the changed blocks to the hot data log, and depth and times to the inode. The gate is closed.
    pub(crate) fn write_back(&self, op: &Op<'_>) -> Result<(), FsError> {
        if self.node.is_removed() {
            drop(self.take_dirty(op.volume()));
            return Ok(());
        }
        let mut pages = self.take_dirty(op.volume());
        protocol_never!("directory_later_blocks_left_out", pages.truncate(1));
        for (index, chunk) in pages.chunks(CHUNK).enumerate() {
            if let Err(error) = self.write_chunk(op, chunk) {
                // Pages that were not written stay dirty.
                let rest = &pages[index * CHUNK..];
                op.volume().balance().add_dirty_dentries(rest.len() as u64);
                self.dirty.lock().extend(rest.iter().map(|page| (page.block, page.clone())));
                return Err(error);
            }
        }
        self.tell_inode(op);
        self.shrink(KEEP);
        self.shared.blocks_came(pages.len() as u64);
        Ok(())
    }

    /// Depth and times go to the inode.
    pub(crate) fn tell_inode(&self, op: &Op<'_>) {
        let stale = {
            let block = self.node.read();
            self.touched().is_some()
                || (!is_inline(block.inode()) && block.inode().i_current_depth.get() != self.depth())
        };
        if stale {
            let mut block = self.node.write(op);
            let raw = block.inode_mut();
            if !is_inline(raw) {
                protocol_step!("directory_depth_left_out", raw.i_current_depth = self.depth().into());
            }
            self.settle_touch(raw);
        }
    }

    /// Writes the changed blocks while operations run, ahead of a checkpoint. False: there is no room; blocks that were
    /// not written are dirty as before.
    pub(crate) fn write_ahead(&self, op: &Op<'_>) -> Result<bool, FsError> {
        if self.node.is_removed() {
            return Ok(true);
        }
        let pages = self.take_dirty(op.volume());
        for (index, chunk) in pages.chunks(AHEAD).enumerate() {
            let written = self.write_chunk_ahead(op, chunk);
            if !matches!(written, Ok(true)) {
                pages[index * AHEAD..].iter().for_each(|page| self.put_back(op.volume(), page));
                return written;
            }
        }
        self.tell_inode(op);
        self.shared.blocks_came(pages.len() as u64);
        Ok(true)
    }

    /// Whether there are blocks that differ from the device.
    pub(crate) fn has_changed_blocks(&self) -> bool {
        !self.dirty.lock().is_empty()
    }

    fn write_chunk_ahead(&self, op: &Op<'_>, pages: &[Arc<super::Page>]) -> Result<bool, FsError> {
        let (mut slots, mut from, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        for page in pages {
            // Nobody changes the block, or frees it, while it is copied.
            let data = page.data.read();
            if page.is_dead() {
                continue;
            }
            let Ok(Some(slot)) = find_slot(op.volume(), &self.node, page.block) else {
                // The directory is being removed, or its nodes cannot be read: the checkpoint sees which.
                drop(data);
                self.put_back(op.volume(), page);
                continue;
            };
            protocol_step!("directory_block_clean_before_its_copy", page.dirty.store(false, Ordering::Release));
            from.push(slot.get(op.volume()));
            slots.push(slot);
            copies.push(**data);
        }
        if copies.is_empty() {
            return Ok(true);
        }
        let mut data = AlignedBuf::new(copies.len());
        copies.iter().enumerate().for_each(|(index, copy)| data.block_mut(index).copy_from_slice(copy));
        let flight = match Flight::begin_blocks(op, LogType::HotData, slots.into_iter(), data, 0) {
            Err(error) if error.is_no_space() => return Ok(false),
            flight => flight?,
        };
        flight.land_unchanged(op, &from)?;
        protocol_never!("directory_block_clean_before_its_copy", {
            pages.iter().for_each(|page| page.dirty.store(false, Ordering::Release));
        });
        Ok(true)
    }

    /// A block that was taken and not written is dirty again, unless it was freed.
    fn put_back(&self, volume: &Volume, page: &Arc<super::Page>) {
        let _data = page.data.read();
        if page.is_dead() {
            return;
        }
        let mut dirty = self.dirty.lock();
        page.dirty.store(true, Ordering::Release);
        if dirty.insert(page.block, page.clone()).is_none() {
            volume.balance().add_dirty_dentries(1);
        }
    }

    fn write_chunk(&self, op: &Op<'_>, pages: &[Arc<super::Page>]) -> Result<(), FsError> {
        let mut slots = Vec::with_capacity(pages.len());
        let mut data = AlignedBuf::new(pages.len());
        for (index, page) in pages.iter().enumerate() {
            let slot = find_slot(op.volume(), &self.node, page.block)?
                .ok_or_else(|| FsError::corrupt("slot of a dentry block", page.block, 0, 0))?;
            data.block_mut(index).copy_from_slice(&**page.data.read());
            slots.push(slot);
        }
        // No hole among them: each block was reserved when its page was made.
        Flight::begin_blocks(op, LogType::HotData, slots.into_iter(), data, 0)?.land_slots(op, |_, _| {})?;
        pages.iter().for_each(|page| page.dirty.store(false, Ordering::Release));
        Ok(())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) mod tests;
