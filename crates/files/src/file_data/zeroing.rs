//! Ranges of a file that become zeros: by holes (`FALLOC_FL_PUNCH_HOLE`), or with blocks reserved
//! (`FALLOC_FL_ZERO_RANGE`).
//!
//! ```text
//!        offset                                          offset + len
//!   ─────|──┬────────┬────────┬────────┬────────┬────────┬──|─────
//!     front │  whole blocks: their slots become NULL_ADDR   │ tail     punch
//!           │                               or NEW_ADDR     │          zero
//!   a block of which a part becomes zeros is written again, as a write of zeros would
//! ```
//!
//! # Locking, and what a crash leaves
//!
//! The caller of the file has its blocks exclusively, as for a write. Parts of blocks, and as many nodes as [`STEP`],
//! change within one operation: a checkpoint has the old content or the new one. A longer range is done from its start
//! on, one operation after the other, and a checkpoint beside it may have a part of it.
//!
//! A hole in the middle keeps its nodes, as in Linux, also empty ones: a sync of the file puts them into its log, and
//! roll-forward takes the blocks away that they do not name any more. Only nodes that go would make the sync a
//! checkpoint.

use core::ops::Range;

use f2fs_format::inode::Extent;
use f2fs_format::{BLOCK_BYTES, BLOCK_SIZE, BlockAddr};
use f2fs_sync::Arc;
use f2fs_volume::tree::{Place, Slot, add_blocks, ensure_slot, place_of};
use f2fs_volume::{Change, Next, Op, Piece};

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::inode::Inode;
use crate::stat;

/// Nodes, or gaps where one is missing, that one operation goes through at most: bounds how long a checkpoint waits.
const STEP: u32 = 32;
static ZEROS: [u8; BLOCK_SIZE] = [0; BLOCK_SIZE];

/// The new state of the blocks of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Become {
    Hole,
    Reserved,
}

/// A range of bytes, by blocks.
#[derive(Debug)]
struct Parts {
    /// Parts of blocks, each in a block of its own: at most two.
    edges: [Range<u64>; 2],
    /// Blocks of which all becomes zeros.
    whole: Range<u64>,
}

impl Parts {
    fn of(offset: u64, end: u64) -> Parts {
        let (first, last) = (offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES);
        if first > last {
            // Within one block.
            return Parts { edges: [offset..end, 0..0], whole: first..first };
        }
        Parts { edges: [offset..first * BLOCK_BYTES, last * BLOCK_BYTES..end], whole: first..last }
    }
}

impl FileData<'_> {
    /// Makes a hole; the size stays.
    pub(crate) fn punch_hole(&self, inode: &Arc<Inode>, offset: u64, len: u64) -> Result<(), FsError> {
        let content = self.content(inode);
        let end = range_end(content, offset, len)?;
        self.balance()?;
        let _range = content.lock_to_write(offset, len);
        self.refill_nids();
        if content.is_inline() {
            return self.change(|op| self.zero_inline(op, inode, content, offset..end));
        }
        let _past = self.past_cache(inode, offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES)?;
        // As in Linux: what is reserved behind the end stays, unless the hole begins before the end.
        let end = if offset < content.size() { end } else { offset };
        self.zero(inode, content, offset..end, Become::Hole, |_| {})
    }

    /// Makes zeros that have blocks; the file grows to the end of the range, unless its size is to stay.
    pub(crate) fn zero_range(&self, inode: &Arc<Inode>, offset: u64, len: u64, keep_size: bool) -> Result<(), FsError> {
        let content = self.content(inode);
        let end = range_end(content, offset, len)?;
        self.balance()?;
        let tail = end > content.size();
        let _range = if tail { content.lock_from(offset) } else { content.lock_to_write(offset, len) };
        self.refill_nids();
        let _past = self.past_cache(inode, offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES)?;
        self.require_room(inode, content, offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES)?;
        if content.is_inline() {
            self.change(|op| self.convert_inline(op, inode, content))?;
        }
        let behind_end = self.begin_behind_end(inode, content, end, tail)?;
        self.zero(inode, content, offset..end, Become::Reserved, |raw| {
            if !keep_size {
                if end > content.size().min(raw.i_size.get()) {
                    content.grow(raw, end);
                }
                behind_end.end(raw);
            }
        })
    }

    /// Zeros in the inode. The caller has the whole file exclusively.
    fn zero_inline(&self, op: &Op<'_>, inode: &Inode, content: &Content, range: Range<u64>) -> Result<(), FsError> {
        let mut block = inode.node.write(op);
        let raw = block.inode_mut();
        let size = content.size();
        let (from, to) = (range.start.min(size) as usize, range.end.min(size) as usize);
        if let Some(bytes) = raw.inline_data_mut(self.volume.features()).get_mut(from..to) {
            bytes.fill(0);
        }
        self.touch(raw);
        Ok(())
    }

    fn touch(&self, raw: &mut f2fs_format::inode::Inode) {
        let now = self.now();
        stat::set_modified(raw, now);
        stat::set_changed(raw, now);
    }

    /// The caller has the range exclusively, and the file is not inline. `last` changes the inode with the last step.
    fn zero(
        &self,
        inode: &Inode,
        content: &Content,
        range: Range<u64>,
        to: Become,
        mut last: impl FnMut(&mut f2fs_format::inode::Inode),
    ) -> Result<(), FsError> {
        let parts = Parts::of(range.start, range.end);
        // With blocks reserved those of the edges are needed as well.
        let blocks = match to {
            Become::Hole => parts.whole.clone(),
            Become::Reserved => range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES),
        };
        let (mut next, mut edges) = (blocks.start, true);
        loop {
            let done = self.change(|op| {
                // These alone need space, so that nothing is done yet where it is missing.
                if edges {
                    self.zero_edges(op, inode, content, &parts)?;
                }
                edges = false;
                for _ in 0..STEP {
                    if next >= blocks.end {
                        break;
                    }
                    next += match to {
                        Become::Hole => self.punch_step(op, inode, content, next..blocks.end)?,
                        Become::Reserved => self.reserve_step(op, inode, content, next..blocks.end, &parts.whole)?,
                    };
                }
                let mut block = inode.node.write(op);
                let raw = block.inode_mut();
                raw.i_ext = Extent::NONE;
                let done = next >= blocks.end;
                if done {
                    last(raw);
                    self.touch(raw);
                }
                Ok(done)
            })?;
            if done {
                return Ok(());
            }
        }
    }

    /// Writes the blocks again of which a part becomes zeros. Where there is no block, there are zeros.
    fn zero_edges(&self, op: &Op<'_>, inode: &Inode, content: &Content, parts: &Parts) -> Result<(), FsError> {
        let mut pieces = Vec::with_capacity(2);
        for edge in &parts.edges {
            // Behind the end of the file there are zeros, and a write there would move it.
            let end = edge.end.min(content.size());
            if edge.start >= end {
                continue;
            }
            if let Place::Slot(slot) = place_of(&self.volume, &inode.node, edge.start / BLOCK_BYTES)?
                && slot.get(&self.volume).is_real()
                && let Some(buf) = ZEROS.get(..(end - edge.start) as usize)
            {
                pieces.push(Piece { offset: edge.start, buf });
            }
        }
        if pieces.is_empty() {
            return Ok(());
        }
        let flight = self.start_write(op, inode, content, &pieces, Next::Land)?;
        self.finish_write(op, inode, content, flight, true)
    }

    /// Frees the blocks below one node; returns how many blocks of the range that covers.
    fn punch_step(&self, op: &Op<'_>, inode: &Inode, content: &Content, range: Range<u64>) -> Result<u64, FsError> {
        let left = range.end - range.start;
        let slot = match place_of(&self.volume, &inode.node, range.start)? {
            Place::Hole(blocks) => return Ok(blocks.min(left)),
            Place::Slot(slot) => slot,
        };
        let (here, any) = self.look(&slot, left, |addr| !addr.is_null());
        if any == 0 {
            return Ok(here);
        }
        // With the page locked: see the rules of the cache.
        let named = |index, addr: BlockAddr| content.cache.store(range.start + (index - slot.index) as u64, addr.0);
        let freed = self.volume.slots().clear(op, &slot.node, slot.index..slot.index + here as usize, named)?;
        add_blocks(op, &inode.node, -(freed as i64));
        Ok(here)
    }

    /// Makes what is below one node reserved blocks; returns how many blocks of the range that covers. Blocks beside
    /// `whole` keep their content.
    fn reserve_step(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        range: Range<u64>,
        whole: &Range<u64>,
    ) -> Result<u64, FsError> {
        let slot = ensure_slot(op, &inode.node, range.start)?;
        let (here, holes) = self.look(&slot, range.end - range.start, BlockAddr::is_null);
        self.volume.data().reserve(op, holes)?;
        let block_of = |index| range.start + (index - slot.index) as u64;
        let change = |index, addr: BlockAddr| {
            let zero = addr.is_null() || (addr.is_real() && whole.contains(&block_of(index)));
            if zero { Change::To(BlockAddr::NEW) } else { Change::Keep }
        };
        let named = |index, _| content.cache.store(block_of(index), BlockAddr::NULL.0);
        self.volume.slots().change(op, &slot.node, slot.index..slot.index + here as usize, change, named)?;
        add_blocks(op, &inode.node, holes as i64);
        Ok(here)
    }

    /// How many of `left` blocks the slot's node has from there on, and how many of those are as asked for.
    fn look(&self, slot: &Slot, left: u64, is: impl Fn(BlockAddr) -> bool) -> (u64, u64) {
        let features = self.volume.features();
        let node = slot.node.read();
        let here = ((node.address_count(features) - slot.index) as u64).min(left);
        let found = (slot.index..slot.index + here as usize)
            .filter(|index| is(node.address(*index, features).unwrap_or(BlockAddr::NULL)))
            .count();
        (here, found as u64)
    }
}

/// Where a range of bytes (at least one) ends.
pub(crate) fn range_end(content: &Content, offset: u64, len: u64) -> Result<u64, FsError> {
    let (end, limit) = (offset.saturating_add(len), content.limit());
    if end > limit {
        return Err(FsError::FileTooLarge { size: end, limit });
    }
    Ok(end)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;
    use crate::samples::formatted;
    use crate::{AllocateFlags, FileSystem, Options};

    /// Linux keeps there where the longest piece of the file lies.
    #[test]
    fn the_extent_in_the_inode_is_forgotten() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let file = fs.create_file("/f", 0o644).unwrap();
        file.write_at(&[7; 100_000], 0).unwrap();
        for flags in [AllocateFlags::PUNCH_HOLE.keep_size(true), AllocateFlags::ZERO_RANGE] {
            {
                let op = fs.core.volume.begin().unwrap();
                file.inode().node.write(&op).inode_mut().i_ext.len = 5.into();
            }
            file.allocate(8192, 8192, flags).unwrap();
            assert_eq!(file.inode().node.read().inode().i_ext.len.get(), 0, "{flags:?}");
        }
    }

    #[test]
    fn a_range_is_parts_of_blocks_around_whole_ones() {
        let parts = |offset, end| {
            let Parts { edges: [front, tail], whole } = Parts::of(offset, end);
            (front, whole, tail)
        };
        assert_eq!(parts(0, 8192), (0..0, 0..2, 8192..8192));
        assert_eq!(parts(100, 200), (100..200, 1..1, 0..0));
        assert_eq!(parts(100, 4096), (100..4096, 1..1, 4096..4096));
        assert_eq!(parts(100, 9000), (100..4096, 1..2, 8192..9000));
        assert_eq!(parts(4096, 4097), (4096..4096, 1..1, 4096..4097));
    }
}
