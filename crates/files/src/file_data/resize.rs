//! Changing the size of a file.

use f2fs_format::inode::Extent;
use f2fs_format::{BLOCK_BYTES, BLOCK_SIZE};
use f2fs_sync::{Arc, protocol_step, protocol_value};
use f2fs_volume::tree::find_slot;
use f2fs_volume::{Next, Op, Piece};

use crate::FsError;
use crate::content::Content;
use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::inode::Inode;
use crate::stat;
use crate::truncate::{Progress, STEP_BLOCKS, step, truncate_step};

impl FileData<'_> {
    /// Sets the size of a file: cut, or grown by a hole.
    pub(crate) fn truncate(&self, inode: &Arc<Inode>, size: u64) -> Result<(), FsError> {
        self.balance()?;
        let content = self.content(inode);
        let _range = content.lock_from(size);
        self.refill_nids();
        self.truncate_locked(inode, content, size)
    }

    /// The same, for a caller that holds everything from the new end on exclusively, or the whole file if it is inline.
    pub(crate) fn truncate_locked(&self, inode: &Arc<Inode>, content: &Content, size: u64) -> Result<(), FsError> {
        let limit = content.limit();
        if size > limit {
            return Err(FsError::FileTooLarge { size, limit });
        }
        if content.is_inline() {
            let room = inode.node.read().inode().layout(self.volume.features()).inline_data_size() as u64;
            if size <= room {
                return self.change(|op| {
                    let mut block = inode.node.write(op);
                    let raw = block.inode_mut();
                    let old = raw.i_size.get();
                    if size < old {
                        raw.inline_data_mut(self.volume.features())[size as usize..].fill(0);
                    }
                    content.set_size(raw, size);
                    let now = self.now();
                    stat::set_modified(raw, now);
                    stat::set_changed(raw, now);
                    Ok(())
                });
            }
            self.change(|op| self.convert_inline(op, inode, content))?;
        }
        let _past = self.past_cut(inode, size)?;
        let (old, keep) = (content.size(), size.div_ceil(BLOCK_BYTES));
        // Also at an equal size: blocks that were preallocated behind the end go. A file that grows keeps them.
        let shrinks = size <= old;
        let result = if shrinks { self.truncate_to_last_step(inode, content, keep) } else { Ok(()) };
        let cut = |op: &Op<'_>| {
            while shrinks && truncate_step(op, &inode.node, keep)? == Progress::More {}
            Ok(())
        };
        // A checkpoint has all of this or nothing. Blocks behind the end would come back when the file grows, and zeros
        // below the old end are a content that it never had.
        let result = result.and_then(|()| {
            self.change(|op| {
                if size < old && !size.is_multiple_of(BLOCK_BYTES) {
                    self.zero_tail(op, inode, content, size)?;
                }
                let mut block = inode.node.write(op);
                let raw = block.inode_mut();
                content.set_size(raw, size);
                // A file that grows keeps the blocks reserved behind its end: roll-forward must not take that for its
                // size.
                if shrinks {
                    raw.i_advise &= !f2fs_format::inode::advise::KEEP_SIZE;
                }
                raw.i_ext = Extent::NONE;
                let now = self.now();
                stat::set_modified(raw, now);
                stat::set_changed(raw, now);
                drop(block);
                if shrinks {
                    protocol_step!("cached_cut_leaves_dirty", WriteBack(self).discard_pages(op, inode, keep));
                }
                protocol_step!("truncate_in_two_operations", cut(op)?);
                Ok(())
            })
        });
        let result = protocol_value!("truncate_in_two_operations", result, result.and_then(|()| self.change(cut)));
        if shrinks {
            // Nobody looks there before the range is released. A look-up in the same node may have remembered a block
            // until its slot was cleared, not after that.
            content.cache.forget(keep);
        }
        result
    }

    /// Rewrites the block that holds the new end with zeros behind it.
    fn zero_tail(&self, op: &Op<'_>, inode: &Inode, content: &Content, size: u64) -> Result<(), FsError> {
        let Some(slot) = find_slot(&self.volume, &inode.node, size / BLOCK_BYTES)? else { return Ok(()) };
        if !slot.get(&self.volume).is_real() {
            return Ok(());
        }
        // The piece reads all of the block that stands in front of the new end.
        let zeros = [0; BLOCK_SIZE];
        let piece = Piece { offset: size, buf: &zeros[(size % BLOCK_BYTES) as usize..] };
        let flight = self.start_write(op, inode, content, &[piece], Next::Land)?;
        // With the page locked: see the rules of the cache.
        Ok(flight.land_slots(op, |block, addr| content.cache.store(block, addr.0))?)
    }

    /// Cuts off so much that one step is left to do until the first `keep` blocks remain. The caller has everything
    /// behind those exclusively.
    pub(crate) fn truncate_to_last_step(&self, inode: &Inode, content: &Content, keep: u64) -> Result<(), FsError> {
        let keep = keep.saturating_add(STEP_BLOCKS);
        let cut = |op: &Op<'_>| {
            let (end, progress) = step(op, &inode.node, keep);
            if end < u64::MAX {
                let mut block = inode.node.write(op);
                content.set_size(block.inode_mut(), content.size().min(end.saturating_mul(BLOCK_SIZE as u64)));
                block.inode_mut().i_ext = Extent::NONE;
            }
            progress
        };
        while !inode.is_small() && self.change(cut)? == Progress::More {}
        Ok(())
    }
}
