//! Changing the size of a file.

use f2fs_format::inode::{Extent, advise};
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
use crate::truncate::{Progress, STEP_BLOCKS, load_behind, step};

/// What a cut changes in an inode before it frees blocks.
pub(super) struct Before {
    size: u64,
    /// The size in the inode: less, if data in the page cache is ahead.
    i_size: u64,
    /// Whether blocks are reserved behind the end.
    keep_size: u8,
}

impl Before {
    pub(super) fn new(inode: &Inode, content: &Content) -> Before {
        let block = inode.node.read();
        let raw = block.inode();
        Before { size: content.size(), i_size: raw.i_size.get(), keep_size: raw.i_advise & advise::KEEP_SIZE }
    }
}

impl FileData<'_> {
    /// Sets the size of a file: cut, or grown by a hole.
    pub(crate) fn truncate(&self, inode: &Arc<Inode>, size: u64) -> Result<(), FsError> {
        self.balance()?;
        let content = self.content(inode);
        let _range = content.lock_from(protocol_value!("cut_without_its_lock", size, u64::MAX));
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
        let before = Before::new(inode, content);
        let cut = |op: &Op<'_>| if shrinks { self.cut_last(op, inode, content, keep, &before) } else { Ok(()) };
        // A checkpoint has all of this or nothing. Blocks behind the end would come back when the file grows, and zeros
        // below the old end are a content that it never had.
        let result = result.and_then(|()| {
            self.change(|op| {
                // What can fail comes first: of a device that does not read the file stays as it is.
                let _loaded = if shrinks { load_behind(op, &inode.node, keep)? } else { Vec::new() };
                if size < old && !size.is_multiple_of(BLOCK_BYTES) {
                    self.zero_tail(op, inode, content, size)?;
                }
                let mut block = inode.node.write(op);
                let raw = block.inode_mut();
                content.set_size(raw, size);
                // A file that grows keeps the blocks reserved behind its end: roll-forward must not take that for its
                // size.
                if shrinks {
                    raw.i_advise &= !advise::KEEP_SIZE;
                }
                raw.i_ext = Extent::NONE;
                let now = self.now();
                stat::set_modified(raw, now);
                stat::set_changed(raw, now);
                drop(block);
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

    /// Frees what is left behind the first `keep` blocks, of a file that has its new size. An error leaves it with the
    /// size that its blocks have.
    pub(super) fn cut_last(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        keep: u64,
        before: &Before,
    ) -> Result<(), FsError> {
        let mut first = u64::MAX;
        let result = loop {
            let (end, progress) = step(op, &inode.node, keep);
            first = first.min(end);
            if !matches!(progress, Ok(Progress::More)) {
                break progress.map(drop);
            }
        };
        if result.is_err() {
            let end = first.saturating_mul(BLOCK_BYTES);
            let mut block = inode.node.write(op);
            let raw = block.inode_mut();
            content.set_size(raw, before.i_size.min(end));
            content.raise_size(before.size.min(end));
            raw.i_advise |= before.keep_size;
        }
        let behind = if result.is_ok() { keep } else { first };
        protocol_step!("cached_cut_leaves_dirty", WriteBack(self).discard_pages(op, inode, behind));
        result
    }

    /// Rewrites the block that holds the new end with zeros behind it.
    pub(super) fn zero_tail(&self, op: &Op<'_>, inode: &Inode, content: &Content, size: u64) -> Result<(), FsError> {
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
                content.lower_size(block.inode_mut(), end.saturating_mul(BLOCK_BYTES));
                block.inode_mut().i_ext = Extent::NONE;
            }
            progress
        };
        while !inode.is_small() && self.change(cut)? == Progress::More {}
        Ok(())
    }
}
