//! Blocks that are reserved ahead.
//!
//! All of a range is reserved, or nothing: where space may be short, missing blocks are counted before. If others take
//! the space meanwhile, blocks that were reserved until it ran out are given back. Ranges are long, so this takes
//! several operations, and checkpoints and syncs between them have a part of the range; what a crash leaves behind the end
//! of a file goes with the next change of its size.

use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_format::{BLOCK_BYTES, BlockAddr};
use f2fs_sync::Arc;
use f2fs_volume::tree::{add_blocks, ensure_slot, find_slot, missing};
use f2fs_volume::{Change, Op, VolumeError};

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::file_data::behind_end::BehindEnd;
use crate::file_data::zeroing::range_end;
use crate::inode::Inode;
use crate::stat;
use crate::truncate::{Progress, truncate_step};

/// Blocks of a file that were holes, and are reserved now.
#[derive(Debug, Default)]
struct Reserved(Vec<(u64, u64)>);

impl Reserved {
    fn add(&mut self, block: u64) {
        match self.0.last_mut() {
            Some((first, len)) if *first + *len == block => *len += 1,
            _ => self.0.push((block, 1)),
        }
    }
}

impl FileData<'_> {
    /// Reserves blocks for a range, so that writing it later does not fail for lack of space. A hole goes on to read as
    /// zeros as before.
    pub(crate) fn allocate(&self, inode: &Arc<Inode>, offset: u64, len: u64, keep_size: bool) -> Result<(), FsError> {
        let content = self.content(inode);
        let end = range_end(content, offset, len)?;
        self.balance()?;
        // A caller that holds everything from there on can give back the nodes as well.
        let tail = end > content.size();
        let _range = if tail { content.lock_from(offset) } else { content.lock_to_write(offset, len) };
        self.refill_nids();
        let (first, last) = (offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        // Dirty pages there have their blocks counted already.
        let _past = self.past_cache(inode, first, last)?;
        self.require_room(inode, content, first, last)?;
        if content.is_inline() {
            self.change(|op| self.convert_inline(op, inode, content))?;
        }
        let behind_end = self.begin_behind_end(inode, content, end, tail)?;
        let mut reserved = Reserved::default();
        let mut block = first;
        while block <= last {
            match self.change(|op| self.allocate_step(op, inode, block, last, &mut reserved)) {
                Ok(blocks) => block += blocks,
                Err(error) => {
                    let first_behind = content.size().div_ceil(BLOCK_BYTES).max(offset.div_ceil(BLOCK_BYTES));
                    let behind = (behind_end == BehindEnd::Ends).then_some(first_behind);
                    self.give_back(inode, content, &reserved, behind)?;
                    self.change(|op| {
                        behind_end.end(inode.node.write(op).inode_mut());
                        Ok(())
                    })?;
                    return Err(error);
                }
            }
        }
        self.change(|op| {
            let mut node = inode.node.write(op);
            let raw = node.inode_mut();
            if !keep_size {
                if end > raw.i_size.get() {
                    content.grow(raw, end);
                }
                behind_end.end(raw);
            }
            // As in Linux (`f2fs_fallocate`), also where nothing was missing.
            let now = self.now();
            stat::set_modified(raw, now);
            stat::set_changed(raw, now);
            Ok(())
        })
    }

    /// Refuses a range that does not fit, before anything is done for it. The count is exact, but others may take the
    /// blocks meanwhile.
    pub(crate) fn require_room(&self, inode: &Inode, content: &Content, first: u64, last: u64) -> Result<(), FsError> {
        let blocks = last - first + 1;
        let direct = blocks / ADDRS_PER_BLOCK as u64 + 2;
        if self.volume.data().has_room(blocks + direct + direct / ADDRS_PER_BLOCK as u64 + 4) {
            return Ok(());
        }
        let stat = self.volume.stat();
        let available = stat.user_blocks.saturating_sub(stat.valid_blocks);
        // The file may have some of them.
        let mut wanted = blocks.saturating_sub(inode.node.read().inode().i_blocks.get());
        if wanted <= available {
            wanted = missing(&self.volume, &inode.node, first, last, content.is_inline())?;
            wanted += u64::from(content.is_inline() && first > 0 && content.size() > 0);
        }
        if wanted > available {
            return Err(VolumeError::NoSpace { wanted, available }.into());
        }
        Ok(())
    }

    /// Reserves what is missing below one direct node; returns how many blocks of the range that covers.
    fn allocate_step(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        block: u64,
        last: u64,
        reserved: &mut Reserved,
    ) -> Result<u64, FsError> {
        let features = self.volume.features();
        let slot = ensure_slot(op, &inode.node, block)?;
        let (here, missing) = {
            let node = slot.node.read();
            let here = ((node.address_count(features) - slot.index) as u64).min(last - block + 1);
            let hole = |i: &u64| node.address(slot.index + *i as usize, features).is_some_and(BlockAddr::is_null);
            (here, (0..here).filter(hole).count() as u64)
        };
        if missing != 0 {
            self.volume.data().reserve(op, missing)?;
            let change = |_, addr: BlockAddr| if addr.is_null() { Change::To(BlockAddr::NEW) } else { Change::Keep };
            let slots = slot.index..slot.index + here as usize;
            let named = |index, _| reserved.add(block + (index - slot.index) as u64);
            self.volume.slots().change(op, &slot.node, slots, change, named)?;
            add_blocks(op, &inode.node, missing as i64);
        }
        Ok(here)
    }

    /// Turns reserved blocks back into holes; from block `behind` on, where nothing else is, with the nodes. Others
    /// stay: they may lead to blocks of writers beside the range.
    fn give_back(
        &self,
        inode: &Inode,
        content: &Content,
        reserved: &Reserved,
        behind: Option<u64>,
    ) -> Result<(), FsError> {
        if let Some(behind) = behind {
            while self.change(|op| truncate_step(op, &inode.node, behind))? == Progress::More {}
        }
        let features = self.volume.features();
        for (first, len) in &reserved.0 {
            let end = behind.map_or(first + len, |behind| behind.min(first + len));
            let mut block = *first;
            while block < end {
                block += self.change(|op| {
                    let Some(slot) = find_slot(&self.volume, &inode.node, block)? else { return Ok(1) };
                    let here = (slot.node.read().address_count(features) - slot.index) as u64;
                    let here = here.min(end - block);
                    let slots = slot.index..slot.index + here as usize;
                    let freed = self.volume.slots().clear(op, &slot.node, slots, |_, _| {})?;
                    add_blocks(op, &inode.node, -(freed as i64));
                    Ok(here)
                })?;
            }
        }
        content.cache.forget(reserved.0.first().map_or(u64::MAX, |(first, _)| *first));
        Ok(())
    }
}
