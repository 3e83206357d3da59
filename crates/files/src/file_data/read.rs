//! Reading file data.
//!
//! Without a page cache blocks come from the device, in requests as long as the blocks follow each other there. A read
//! of blocks whose addresses are known (`f2fs_extent::AddressCache`) locks its range, passes the gate, and reads: it
//! touches no node, allocates nothing if it is short, and writes no cache line that a reader of another part of the
//! file writes. If it is inside one block and nobody writes that, it locks no range either, and readers of the same
//! block write no common line.

use f2fs_device::{AlignedBuf, BlockDevice, DeviceError, DeviceErrorKind, Operation, Request};
use f2fs_format::{BLOCK_BYTES, BlockAddr, Corruption};
use f2fs_sync::{protocol_step, protocol_value};

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::file_data::block_map::Mapping;
use crate::inode::Inode;
use crate::requests;

/// Blocks in one request of a long read: 512 KiB, so that the device has several at a time and the first are copied
/// while the rest is on its way.
pub(crate) const PIECE: u64 = 128;

/// Blocks read without a copy in one request at most: 1 MiB.
const DIRECT: u64 = 256;

/// The first and the last block of `len` bytes (at least one) from `offset` on, wherever that is.
pub(crate) fn blocks_of(offset: u64, len: usize) -> (u64, u64) {
    (offset / BLOCK_BYTES, offset.saturating_add(len as u64 - 1) / BLOCK_BYTES)
}

impl FileData<'_> {
    /// Reads up to `buf.len()` bytes at `offset`; returns how many there were before the end of the file.
    pub(crate) fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, FsError> {
        let content = self.content(inode);
        if let Some(len) = self.read_unlocked(inode, content, offset, buf)? {
            return Ok(len);
        }
        let Some(readable) = content.lock_to_read(offset, buf.len()) else { return Ok(0) };
        let buf = &mut buf[..readable.len];
        // With the range locked data does not leave the inode.
        if self.0.pages.is_on()
            && !content.is_inline()
            && let Some(pages) = self.pages_of(inode, content)
        {
            self.read_cached(inode, content, pages, offset, buf)?;
            return Ok(buf.len());
        }
        let _gate = self.volume.begin_read();
        if content.is_inline() {
            self.read_inline(inode, offset, buf)?;
            return Ok(buf.len());
        }
        self.refresh(inode, content);
        let (first, last) = blocks_of(offset, buf.len());
        if last - first < requests::LONGEST
            && let Some(run) = self.single_run(inode, content, first, last)?
        {
            self.read_short(offset, buf, first, run)?;
            return Ok(buf.len());
        }
        self.read_long(inode, content, offset, buf)?;
        Ok(buf.len())
    }

    /// Reads a part of one block whose address is known, without locking it: readers of the same block write no common
    /// line. `None` if it has to be locked.
    ///
    /// Looked at are, in this order, the size, the address, whether somebody may be writing the block, and the address
    /// again. A writer that raised this size, or stored the address before its data was there, had the block when that
    /// was seen. Nobody has it afterwards, so that writer has ended, and the second look finds what it left: the same
    /// address, or the block is locked after all. What an address names does not change while the gate is held.
    fn read_unlocked(
        &self,
        inode: &Inode,
        content: &Content,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>, FsError> {
        let size = content.size();
        if buf.is_empty() || offset >= size || self.0.pages.is_on() || content.is_inline() {
            return Ok(None);
        }
        let len = buf.len().min(usize::try_from(size - offset).unwrap_or(usize::MAX));
        let (block, last) = blocks_of(offset, len);
        if block != last {
            return Ok(None);
        }
        let _gate = self.volume.begin_read();
        self.refresh(inode, content);
        let Some(run) = content.cache.run(block, block) else { return Ok(None) };
        let addr = BlockAddr(run.addr);
        if !addr.is_real() || !self.volume.geometry().in_main(addr) {
            return Ok(None);
        }
        if protocol_value!("unlocked_read_ignores_writers", content.ranges.may_be_written(block), false) {
            return Ok(None);
        }
        if protocol_value!("unlocked_read_looks_once", content.cache.run(block, block) != Some(run), false) {
            return Ok(None);
        }
        self.read_short(offset, &mut buf[..len], block, Mapping { addr, len: 1 })?;
        Ok(Some(len))
    }

    /// The same into memory that the device can transfer to: what lies in one piece there is not copied. Past the page
    /// cache, which takes no page, unless it has a newer one.
    pub(crate) fn read_into(&self, inode: &Inode, offset: u64, buf: &mut AlignedBuf) -> Result<usize, FsError> {
        if offset.is_multiple_of(BLOCK_BYTES) {
            let content = self.content(inode);
            let Some(readable) = content.lock_to_read(offset, buf.len()) else { return Ok(0) };
            let _gate = self.volume.begin_read();
            let (first, last) = blocks_of(offset, readable.len);
            // Dirty pages are newer than the device.
            let dirty = inode.pages().is_some_and(|pages| pages.is_dirty_in(first, last));
            if !dirty && !content.is_inline() {
                self.refresh(inode, content);
                if last - first < DIRECT
                    && last - first + 1 == buf.blocks() as u64
                    && let Some(run) = self.single_run(inode, content, first, last)?
                    && run.addr.is_real()
                {
                    self.volume.device().read_into(u64::from(run.addr.0), buf)?;
                    buf.as_bytes_mut()[readable.len..].fill(0);
                } else {
                    self.read_long(inode, content, offset, &mut buf.as_bytes_mut()[..readable.len])?;
                }
                return Ok(readable.len);
            }
        }
        self.read_at(inode, offset, buf.as_bytes_mut())
    }

    /// Forgets addresses of blocks that were moved. The caller holds the gate.
    #[inline]
    fn refresh(&self, inode: &Inode, content: &Content) {
        protocol_step!("cache_refreshed", content.cache.refresh(self.volume.moves(inode.ino)));
    }

    /// The run of all these blocks, if they follow each other on the device or are a hole.
    fn single_run(&self, inode: &Inode, content: &Content, first: u64, last: u64) -> Result<Option<Mapping>, FsError> {
        let mut run = self.find_run(inode, content, first, last)?;
        while run.len <= last - first {
            let next = self.find_run(inode, content, first + run.len, last)?;
            if !run.is_followed_by(next.addr) {
                return Ok(None);
            }
            run.len += next.len;
        }
        Ok(Some(run))
    }

    pub(crate) fn read_inline(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let block = inode.node.read();
        let area = block.inode().inline_data(self.volume.features());
        let end = offset + buf.len() as u64;
        let bytes = area
            .get(offset as usize..end as usize)
            .ok_or_else(|| FsError::corrupt("end of inline data", end, 0, area.len() as u64))?;
        buf.copy_from_slice(bytes);
        Ok(())
    }

    /// Reads what one run of a few blocks holds.
    fn read_short(&self, offset: u64, buf: &mut [u8], block: u64, run: Mapping) -> Result<(), FsError> {
        if !run.addr.is_real() {
            buf.fill(0);
            return Ok(());
        }
        let mut request = self.requests.read(u64::from(run.addr.0), run.len);
        if let [data] = &mut *request.bufs {
            // Without the request, which only brings the memory: a device reads one buffer with less work.
            self.volume.device().read_into(request.start, data)?;
            copy_out(buf, offset, block, run.len, data);
        }
        self.requests.put_back(request);
        Ok(())
    }

    fn read_long(&self, inode: &Inode, content: &Content, offset: u64, buf: &mut [u8]) -> Result<(), FsError> {
        let (first, last) = blocks_of(offset, buf.len());
        let end = offset + buf.len() as u64;
        self.read_runs(inode, content, first, last, |block, len, data| {
            match data {
                Some(data) => copy_out(buf, offset, block, len, data),
                None => {
                    let from = (block * BLOCK_BYTES).max(offset) - offset;
                    let to = ((block + len) * BLOCK_BYTES).min(end) - offset;
                    buf[from as usize..to as usize].fill(0);
                }
            }
            Ok(())
        })
    }

    /// Reads blocks `first ..= last`; `arrived` gets them as they come, in pieces: the first block, how many, and what
    /// they hold, or `None` for a hole. For callers as [`each_run`](Self::each_run) has them.
    pub(crate) fn read_runs(
        &self,
        inode: &Inode,
        content: &Content,
        first: u64,
        last: u64,
        mut arrived: impl FnMut(u64, u64, Option<&AlignedBuf>) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let mut batch = Vec::new();
        let mut targets = Vec::new();
        self.each_run(inode, content, first, last, |block, run| {
            if !run.addr.is_real() {
                return arrived(block, run.len, None);
            }
            for done in (0..run.len).step_by(PIECE as usize) {
                let len = (run.len - done).min(PIECE);
                let target = self.volume.recycler().take_stale(len as usize);
                let addr = u64::from(run.addr.offset(done as u32).0);
                batch.push(Request::read(addr, target));
                targets.push(Some((block + done, len, addr)));
            }
            Ok(())
        })?;
        // Blocks that have arrived are copied while the rest is on its way.
        let mut ticket = self.volume.device().submit(batch);
        while let Some((index, completion)) = ticket.wait_any() {
            let Some((block, len, _)) = targets.get_mut(index).and_then(Option::take) else { continue };
            arrived(block, len, Some(&completion.checked(len).into_buf()?))?;
        }
        match targets.into_iter().flatten().next() {
            Some((_, blocks, addr)) => Err(lost(addr, blocks)),
            None => Ok(()),
        }
    }

    /// Hands out the runs of blocks `first ..= last` with their first blocks, in order; neighbours come as one.
    ///
    /// The caller holds the range and the gate, and has refreshed the cache after entering it; here and in
    /// [`find_run`](Self::find_run).
    pub(crate) fn each_run(
        &self,
        inode: &Inode,
        content: &Content,
        first: u64,
        last: u64,
        mut visit: impl FnMut(u64, Mapping) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let mut pending: Option<(u64, Mapping)> = None;
        let mut block = first;
        while block <= last {
            let run = self.find_run(inode, content, block, last)?;
            match &mut pending {
                Some((_, before)) if before.is_followed_by(run.addr) => before.len += run.len,
                _ => {
                    if let Some((at, full)) = pending.replace((block, run)) {
                        visit(at, full)?;
                    }
                }
            }
            block += run.len;
        }
        pending.map_or(Ok(()), |(at, run)| visit(at, run))
    }

    /// The run that begins with block `first`, to block `last` at most, or a part of it. All its addresses are of the
    /// main area, or it is a hole.
    #[inline]
    pub(crate) fn find_run(&self, inode: &Inode, content: &Content, first: u64, last: u64) -> Result<Mapping, FsError> {
        let run = match content.cache.run(first, last) {
            Some(run) => Mapping { addr: BlockAddr(run.addr), len: run.len },
            None => self.look_up(inode, content, first, last)?,
        };
        if run.addr.is_real() {
            let end = run.addr.offset((run.len - 1) as u32);
            let geometry = self.volume.geometry();
            if !geometry.in_main(run.addr) || !geometry.in_main(end) {
                return Err(Corruption::Address { what: "data address", nid: inode.ino, addr: run.addr }.into());
            }
        }
        Ok(run)
    }
}

/// A device never said how a read went.
pub(crate) fn lost(addr: u64, blocks: u64) -> FsError {
    DeviceError::new(Operation::Read, addr, blocks, DeviceErrorKind::Lost).into()
}

pub(crate) fn copy_out(buf: &mut [u8], offset: u64, block: u64, len: u64, data: &AlignedBuf) {
    let from = (block * BLOCK_BYTES).max(offset);
    let to = ((block + len) * BLOCK_BYTES).min(offset + buf.len() as u64);
    let source = (from - block * BLOCK_BYTES) as usize..(to - block * BLOCK_BYTES) as usize;
    buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(&data.as_bytes()[source]);
}
