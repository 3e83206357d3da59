//! Reading and writing through the page cache ([`page_cache`](crate::page_cache)).
//!
//! # Locking
//!
//! Callers hold the range, as for the device: shared to read, exclusively to write. A hit takes no gate. A write is one
//! operation, so that a checkpoint has all of it or nothing.

use f2fs_device::AlignedBuf;
use f2fs_format::inode::Extent;
use f2fs_format::{BLOCK_BYTES, BlockAddr};
use f2fs_sync::{Arc, protocol_step, protocol_value};
use f2fs_volume::tree::ensure_slot;
use f2fs_volume::{Op, VolumeError};

use crate::FsError;
use crate::content::Content;
use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::file_data::read::blocks_of;
use crate::file_data::write::Amount;
use crate::inode::Inode;
use crate::page_cache::{Admitted, FilePages};
use crate::stat::{self, FileKind};
use crate::truncate::STEP_BLOCKS;

/// The old content of a block that a write covers in part.
struct Edge {
    block: u64,
    data: AlignedBuf,
}

/// A range that is written past the cache: dirty pages there are on the device, and when it is dropped, no page is
/// left.
pub(crate) struct PastCache<'a> {
    data: FileData<'a>,
    pages: Option<&'a FilePages>,
    first: u64,
    last: u64,
}

impl Drop for PastCache<'_> {
    fn drop(&mut self) {
        if let Some(pages) = self.pages {
            protocol_step!("cached_page_outlives_a_write", self.data.0.pages.drop_clean(pages, self.first, self.last));
        }
    }
}

impl<'a> FileData<'a> {
    /// The file's part of the page cache, if the file goes through it. The caller knows that there is a cache.
    #[inline]
    pub(crate) fn pages_of<'i>(&self, inode: &'i Inode, content: &'i Content) -> Option<&'i FilePages> {
        if inode.kind != FileKind::Regular || inode.form.cluster().is_some() {
            return None;
        }
        Some(content.pages_or(|| self.0.pages.new_file()))
    }

    /// Goes past the cache with blocks `first ..= last`, which the caller has exclusively until this is dropped.
    pub(crate) fn past_cache<'p>(&self, inode: &'p Arc<Inode>, first: u64, last: u64) -> Result<PastCache<'p>, FsError>
    where
        'a: 'p,
    {
        let pages = inode.pages();
        if pages.is_some_and(|pages| pages.is_dirty_in(first, last)) {
            WriteBack(self).write_back_range(inode, first, last)?;
        }
        Ok(PastCache { data: *self, pages, first, last })
    }

    /// The same with all that a cut to `size` bytes concerns. Dirty pages that its last step cuts off are not written:
    /// [`WriteBack::discard_pages`] drops them within that step.
    pub(crate) fn past_cut<'p>(&self, inode: &'p Arc<Inode>, size: u64) -> Result<PastCache<'p>, FsError>
    where
        'a: 'p,
    {
        let (first, behind) = (size / BLOCK_BYTES, size.div_ceil(BLOCK_BYTES));
        if let Some(pages) = inode.pages().filter(|pages| pages.is_dirty_in(first, u64::MAX)) {
            if pages.is_dirty_in(behind.saturating_add(STEP_BLOCKS), u64::MAX) {
                WriteBack(self).write_back_range(inode, first, u64::MAX)?;
            } else if first < behind {
                // The block with the new end.
                WriteBack(self).write_back_range(inode, first, first)?;
            }
        }
        Ok(PastCache { data: *self, pages: inode.pages(), first, last: u64::MAX })
    }

    /// [`past_cache`](Self::past_cache) within an operation.
    pub(crate) fn past_cache_within<'p>(
        &self,
        op: &Op<'_>,
        inode: &'p Arc<Inode>,
        first: u64,
        last: u64,
    ) -> Result<PastCache<'p>, FsError>
    where
        'a: 'p,
    {
        WriteBack(self).write_back_within(op, inode, first, last)?;
        Ok(PastCache { data: *self, pages: inode.pages(), first, last })
    }

    /// Reads through the cache. The caller holds the range, and knows that the file reaches to its end.
    pub(crate) fn read_cached(
        &self,
        inode: &Inode,
        content: &Content,
        pages: &FilePages,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), FsError> {
        let (first, last) = blocks_of(offset, buf.len());
        let end = offset + buf.len() as u64;
        let table = self.0.pages.table();
        let mut block = first;
        while block <= last {
            let (from, to) = ((block * BLOCK_BYTES).max(offset), ((block + 1) * BLOCK_BYTES).min(end));
            let out = &mut buf[(from - offset) as usize..(to - offset) as usize];
            if table.read(pages.key(block), (from % BLOCK_BYTES) as usize, out) {
                block += 1;
                continue;
            }
            let mut behind = block + 1;
            while behind <= last && !table.contains(pages.key(behind)) {
                behind += 1;
            }
            self.fetch(inode, content, pages, block, behind, behind > last, offset, buf)?;
            block = behind;
        }
        Ok(())
    }

    /// Reads blocks `first .. end`, none of which is in the cache, into `buf`, whose first byte is byte `offset` of the
    /// file, and into the cache; if they are the `last` ones of a read, perhaps more.
    #[allow(clippy::too_many_arguments)]
    fn fetch(
        &self,
        inode: &Inode,
        content: &Content,
        pages: &FilePages,
        first: u64,
        end: u64,
        last: bool,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), FsError> {
        let cache = &self.0.pages;
        let mut ahead = if last { pages.read_ahead.window(first) } else { 0 };
        ahead = ahead.min(content.size().div_ceil(BLOCK_BYTES).saturating_sub(end));
        // Without waiting: the caller holds a range already.
        let range = (ahead > 0).then(|| content.ranges.try_shared(end, end + ahead - 1)).flatten();
        if range.is_none() {
            ahead = 0;
        }
        ahead = (0..ahead).take_while(|at| !cache.table().contains(pages.key(end + at))).count() as u64;
        // With all that is read locked: nobody writes the block with the end meanwhile.
        let size = content.size();
        let buf_end = offset + buf.len() as u64;
        let _gate = self.volume.begin_read();
        content.cache.refresh(self.volume.moves(inode.ino));
        loop {
            let result = self.read_runs(inode, content, first, end + ahead - 1, |block, len, data| {
                let from = (block * BLOCK_BYTES).max(offset);
                let to = ((block + len) * BLOCK_BYTES).min(buf_end).max(from);
                // Of what is read ahead nothing goes there.
                if to > from {
                    let out = &mut buf[(from - offset) as usize..(to - offset) as usize];
                    match data {
                        Some(data) => {
                            let at = (from - block * BLOCK_BYTES) as usize;
                            out.copy_from_slice(&data.as_bytes()[at..at + out.len()]);
                        }
                        None => out.fill(0),
                    }
                }
                // Holes take no page: the address cache says what they are.
                if let Some(data) = data {
                    for number in 0..len {
                        cache.keep(pages, block + number, data.block(number as usize), size);
                    }
                }
                Ok(())
            });
            match result {
                // What nobody asked for is left out: who asks for it is told.
                Err(_) if ahead > 0 => ahead = 0,
                result => break result?,
            }
        }
        if last {
            pages.read_ahead.read_to(end + ahead);
        }
        Ok(())
    }

    /// Writes into the cache; returns how many bytes there was space for on the volume. The caller has the range
    /// exclusively, and the file is not inline.
    pub(crate) fn write_cached(
        &self,
        inode: &Arc<Inode>,
        content: &Content,
        offset: u64,
        buf: &[u8],
        amount: Amount,
        mut room: Admitted<'_>,
    ) -> Result<usize, FsError> {
        let Some(pages) = self.pages_of(inode, content) else { return Ok(0) };
        self.change(|op| {
            let (first, last) = blocks_of(offset, buf.len());
            let holes = self.reserve_holes(op, inode, pages, first, last)?;
            let end = (offset + buf.len() as u64).min((first + holes.blocks) * BLOCK_BYTES);
            let len = (end - offset) as usize;
            if amount == Amount::All && len < buf.len() {
                self.volume.data().unreserve(op, holes.reserved);
                return Err(VolumeError::NoSpace { wanted: last - first + 1, available: holes.blocks }.into());
            }
            let edges = self.edges(inode, content, pages, offset, &buf[..len]);
            let edges = edges.inspect_err(|_| self.volume.data().unreserve(op, holes.reserved))?;
            let mut dirtied = 0;
            for block in first..first + holes.blocks {
                let from = (block * BLOCK_BYTES).max(offset);
                let to = ((block + 1) * BLOCK_BYTES).min(end);
                let bytes = &buf[(from - offset) as usize..(to - offset) as usize];
                let base = edges.iter().find(|edge| edge.block == block).map(|edge| &edge.data.block(0)[..]);
                let (key, hole) = (pages.key(block), holes.has(block));
                dirtied +=
                    u64::from(self.0.pages.write(key, (from % BLOCK_BYTES) as usize, bytes, hole, base, &mut room));
            }
            self.volume.balance().add_dirty_dentries(dirtied);
            let now = self.now();
            if pages.dirtied(first, holes.blocks, holes.reserved) {
                self.dirty_files.add(inode, now);
            }
            let mut block = inode.node.write(op);
            let raw = block.inode_mut();
            protocol_value!("cached_size_ahead_of_data", content.raise_size(end), content.grow(raw, end));
            raw.i_ext = Extent::NONE;
            stat::set_modified(raw, now);
            stat::set_changed(raw, now);
            Ok(len)
        })
    }

    /// Makes the nodes that lead to blocks `first ..= last`, and counts those that are holes and not dirty. Without
    /// space for all of them, the first ones; an error if there is none for the first.
    fn reserve_holes(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        pages: &FilePages,
        first: u64,
        last: u64,
    ) -> Result<Holes, FsError> {
        let features = self.volume.features();
        let mut holes = Holes { blocks: 0, reserved: 0, list: Vec::new() };
        let mut block = first;
        while block <= last {
            if let Some(len) = pages.dirty_run(block) {
                let len = len.min(last - block + 1);
                holes.blocks += len;
                block += len;
                continue;
            }
            let found = ensure_slot(op, &inode.node, block);
            let slot = match found {
                Ok(slot) => slot,
                Err(error) => return holes.or(self, op, error.into()),
            };
            let page = slot.node.read();
            let count = ((page.address_count(features) - slot.index) as u64).min(last - block + 1);
            let is_hole = |at: u64| {
                page.address(slot.index + at as usize, features).is_none_or(BlockAddr::is_null)
                    && pages.dirty_run(block + at).is_none()
            };
            let missing: Vec<u64> = (0..count).filter(|at| is_hole(*at)).map(|at| block + at).collect();
            drop(page);
            if self.volume.data().reserve_delayed(op, missing.len() as u64).is_ok() {
                holes.take(&missing);
                holes.blocks += count;
            } else {
                for at in block..block + count {
                    if missing.binary_search(&at).is_ok() {
                        if let Err(error) = self.volume.data().reserve_delayed(op, 1) {
                            return holes.or(self, op, error.into());
                        }
                        holes.take(&[at]);
                    }
                    holes.blocks += 1;
                }
            }
            block += count;
        }
        Ok(holes)
    }

    /// The content of the blocks that a write covers in part, where no dirty page has it.
    fn edges(
        &self,
        inode: &Inode,
        content: &Content,
        pages: &FilePages,
        offset: u64,
        buf: &[u8],
    ) -> Result<Vec<Edge>, FsError> {
        let end = offset + buf.len() as u64;
        let (first, last) = blocks_of(offset, buf.len());
        let mut edges = Vec::new();
        for block in [first, last] {
            let whole = offset <= block * BLOCK_BYTES && end >= (block + 1) * BLOCK_BYTES;
            let have = edges.iter().any(|edge: &Edge| edge.block == block);
            // A dirty page stays. A clean one may be evicted before the write comes to it.
            if whole || have || pages.dirty_run(block).is_some() {
                continue;
            }
            let mut data = self.volume.recycler().take_stale(1);
            if self.0.pages.table().read(pages.key(block), 0, data.as_bytes_mut()) {
                protocol_step!("cached_edge_left_to_a_clean_page", edges.push(Edge { block, data }));
                continue;
            }
            let size = content.size();
            // Nothing stands behind the end.
            if block * BLOCK_BYTES >= size {
                continue;
            }
            content.cache.refresh(self.volume.moves(inode.ino));
            let run = self.find_run(inode, content, block, block)?;
            if run.addr.is_real() {
                self.volume.data().read(inode.ino, run.addr, &mut data)?;
                let left = (size - block * BLOCK_BYTES).min(BLOCK_BYTES) as usize;
                data.as_bytes_mut()[left..].fill(0);
            } else {
                data.as_bytes_mut().fill(0);
            }
            edges.push(Edge { block, data });
        }
        Ok(edges)
    }
}

/// Blocks that a write found to be holes.
struct Holes {
    /// Blocks from the first one on that can be written.
    blocks: u64,
    reserved: u64,
    /// The holes among them, as runs.
    list: Vec<(u64, u64)>,
}

impl Holes {
    fn take(&mut self, blocks: &[u64]) {
        self.reserved += blocks.len() as u64;
        for block in blocks {
            match self.list.last_mut() {
                Some((first, len)) if *first + *len == *block => *len += 1,
                _ => self.list.push((*block, 1)),
            }
        }
    }

    fn has(&self, block: u64) -> bool {
        let behind = self.list.partition_point(|(first, _)| *first <= block);
        behind > 0 && self.list.get(behind - 1).is_some_and(|(first, len)| block < first + len)
    }

    /// The part that there was space for, if there was any.
    fn or(self, data: &FileData<'_>, op: &Op<'_>, error: FsError) -> Result<Holes, FsError> {
        if error.is_no_space() && !error.is_shortage() && self.blocks > 0 {
            return Ok(self);
        }
        data.volume.data().unreserve(op, self.reserved);
        Err(error)
    }
}
