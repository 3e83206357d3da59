//! Reading and writing file data.
//!
//! Data goes to the device at once, in requests that are as long as the log gives contiguous blocks; there is no page cache.
//! What is inline stands in the inode and becomes durable with it. A write never overwrites a block in place: the new block is
//! written first, then the address slot changes, then the old block is invalidated, all within one operation, so that a
//! checkpoint has either the old or the new.

use f2fs_device::AlignedBuf;
use f2fs_format::inode::inline;
use f2fs_format::summary::Summary;
use f2fs_format::{BLOCK_SIZE, BlockAddr, LogType};
use f2fs_sync::Arc;
use f2fs_volume::Op;

use crate::FsError;
use crate::block_map::{Mapping, ensure_slot, map_range};
use crate::filesystem::Core;
use crate::inode::Inode;
use crate::stat::{self, Time};
use crate::truncate::drop_extent;

const BLOCK: u64 = BLOCK_SIZE as u64;
/// Blocks written in one operation at most: 2 MiB, a segment.
const CHUNK: u64 = 512;

impl Core {
    /// The largest file of this inode's layout in bytes.
    pub(crate) fn size_limit(&self, inode: &Inode) -> u64 {
        let addresses = inode.node.read().inode().layout(self.volume.features()).address_count();
        f2fs_format::path::max_file_blocks(addresses) * BLOCK
    }

    /// Reads up to `buf.len()` bytes at `offset`; returns how many there were before the end of the file.
    pub(crate) fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, FsError> {
        let _data = inode.data.read();
        let _gate = self.volume.begin_read();
        let size = {
            let block = inode.node.read();
            let raw = block.inode();
            let size = raw.i_size.get();
            if raw.i_inline & inline::DATA != 0 {
                let Some(rest) = size.checked_sub(offset).filter(|rest| *rest > 0) else { return Ok(0) };
                let len = buf.len().min(rest as usize);
                let area = raw.inline_data(self.volume.features());
                let start = offset as usize;
                buf[..len].copy_from_slice(&area[start..start + len]);
                return Ok(len);
            }
            size
        };
        let Some(rest) = size.checked_sub(offset).filter(|rest| *rest > 0) else { return Ok(0) };
        let len = (buf.len() as u64).min(rest) as usize;
        if len == 0 {
            return Ok(0);
        }
        let buf = &mut buf[..len];
        let first = offset / BLOCK;
        let last = (offset + len as u64 - 1) / BLOCK;
        let mut block = first;
        let mut requests = Vec::new();
        map_range(&self.volume, &inode.node, first, last - first + 1, |mapping| {
            requests.push((block, mapping));
            block += mapping.len;
            Ok(())
        })?;
        self.read_mappings(inode, offset, buf, &requests)?;
        Ok(len)
    }

    /// Fills `buf`, which begins at byte `offset` of the file, from mappings with their first file blocks.
    fn read_mappings(
        &self,
        inode: &Inode,
        offset: u64,
        buf: &mut [u8],
        mappings: &[(u64, Mapping)],
    ) -> Result<(), FsError> {
        let end = offset + buf.len() as u64;
        let geometry = self.volume.geometry();
        let mut batch = Vec::new();
        let mut targets = Vec::new();
        for (block, mapping) in mappings {
            let from = (block * BLOCK).max(offset);
            let to = ((block + mapping.len) * BLOCK).min(end);
            let range = (from - offset) as usize..(to - offset) as usize;
            if !mapping.addr.is_real() {
                buf[range].fill(0);
                continue;
            }
            let last = mapping.addr.offset(mapping.len as u32 - 1);
            if !geometry.in_main(mapping.addr) || !geometry.in_main(last) {
                return Err(f2fs_format::Corruption::Address {
                    what: "data address",
                    nid: inode.ino,
                    addr: mapping.addr,
                }
                .into());
            }
            // Long runs are split, so that the device has several requests at a time to work on.
            let mut done = 0;
            while done < mapping.len {
                let len = (mapping.len - done).min(CHUNK / 4);
                let addr = mapping.addr.offset(done as u32);
                let target = self.volume.recycler().take_stale(len as usize);
                batch.push(f2fs_device::Request::read(u64::from(addr.0), target));
                targets.push((block + done, len));
                done += len;
            }
        }
        if let ([_], [(block, len)]) = (&*batch, &*targets) {
            // The common case of small reads: no ticket.
            let Some(request) = batch.pop() else { return Ok(()) };
            let data = self.volume.device().execute(request).into_buf()?;
            copy_out(buf, offset, *block, *len, &data);
            return Ok(());
        }
        // What has arrived is copied while the rest is on its way.
        let mut ticket = self.volume.device().submit(batch);
        while let Some((index, completion)) = ticket.wait_any() {
            let (block, len) = targets[index];
            copy_out(buf, offset, block, len, &completion.into_buf()?);
        }
        Ok(())
    }

    /// Writes all of `buf` at `offset`, growing the file as needed. On an error (no space, say) what was written until then
    /// stays, and the size says how much.
    pub(crate) fn write_at(&self, inode: &Arc<Inode>, offset: u64, buf: &[u8]) -> Result<usize, FsError> {
        self.balance(inode.ino)?;
        let _data = inode.data.write();
        self.write_locked(inode, offset, buf)
    }

    /// Writes all of `buf` at the end of the file, or nothing; returns where.
    pub(crate) fn append(&self, inode: &Arc<Inode>, buf: &[u8]) -> Result<u64, FsError> {
        self.balance(inode.ino)?;
        let _data = inode.data.write();
        let offset = inode.size();
        let written = self.write_locked(inode, offset, buf)?;
        if written < buf.len() {
            self.truncate_locked(inode, offset)?;
            let blocks = |bytes: usize| (bytes as u64).div_ceil(BLOCK);
            let (wanted, available) = (blocks(buf.len()), blocks(written).min(blocks(buf.len()) - 1));
            return Err(f2fs_volume::VolumeError::NoSpace { wanted, available }.into());
        }
        Ok(offset)
    }

    pub(crate) fn write_locked(&self, inode: &Inode, offset: u64, buf: &[u8]) -> Result<usize, FsError> {
        if buf.is_empty() {
            return Ok(0);
        }
        let end = offset.saturating_add(buf.len() as u64);
        if self.is_inline(inode) {
            let room = inode.node.read().inode().layout(self.volume.features()).inline_data_size() as u64;
            if end <= room {
                return self.change(|op| self.write_inline(op, inode, offset as usize, buf));
            }
            self.change(|op| self.convert_inline(op, inode))?;
        }
        let limit = self.size_limit(inode);
        if end > limit {
            return Err(FsError::FileTooLarge { size: end, limit });
        }
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let block = at / BLOCK;
            // Up to the end of a chunk, so that chunks of a long write are aligned to segments of the file.
            let chunk_end = (block / CHUNK + 1) * CHUNK * BLOCK;
            let len = ((chunk_end - at) as usize).min(buf.len() - done);
            let part = &buf[done..done + len];
            match self.change(|op| self.write_chunk(op, inode, at, part)) {
                Ok(()) => done += len,
                Err(error) if error.is_no_space() && done > 0 => return Ok(done),
                // What is left of the volume may take a part of the chunk.
                Err(error) if error.is_no_space() && len > BLOCK_SIZE => {
                    return self.write_block_by_block(inode, at, part, done, error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_block_by_block(
        &self,
        inode: &Inode,
        offset: u64,
        buf: &[u8],
        before: usize,
        error: FsError,
    ) -> Result<usize, FsError> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let len = ((BLOCK - at % BLOCK) as usize).min(buf.len() - done);
            match self.change(|op| self.write_chunk(op, inode, at, &buf[done..done + len])) {
                Ok(()) => done += len,
                Err(error) if error.is_no_space() => break,
                Err(error) => return Err(error),
            }
        }
        if before + done == 0 { Err(error) } else { Ok(before + done) }
    }

    pub(crate) fn is_inline(&self, inode: &Inode) -> bool {
        inode.node.read().inode().i_inline & inline::DATA != 0
    }

    fn write_inline(&self, op: &Op<'_>, inode: &Inode, offset: usize, buf: &[u8]) -> Result<usize, FsError> {
        let features = self.volume.features();
        let mut block = inode.node.write(op);
        let raw = block.inode_mut();
        raw.inline_data_mut(features)[offset..offset + buf.len()].copy_from_slice(buf);
        raw.i_inline |= inline::DATA_EXIST;
        let size = raw.i_size.get().max((offset + buf.len()) as u64);
        raw.i_size = size.into();
        let now = Time::now();
        stat::set_modified(raw, now);
        stat::set_changed(raw, now);
        Ok(buf.len())
    }

    /// Moves inline data to a block of its own (`f2fs_convert_inline_inode`).
    pub(crate) fn convert_inline(&self, op: &Op<'_>, inode: &Inode) -> Result<(), FsError> {
        let features = self.volume.features();
        let (data, exists) = {
            let block = inode.node.read();
            let raw = block.inode();
            if raw.i_inline & inline::DATA == 0 {
                return Ok(());
            }
            (AlignedBuf::from_bytes(raw.inline_data(features)), raw.i_size.get() > 0)
        };
        let addr = if exists {
            self.volume.reserve(op, 1)?;
            let summary = Summary::new(inode.ino, self.volume.node_version(inode.ino)?, 0);
            match self.volume.write_data(op, self.log_for(inode), &[summary], data) {
                Ok(runs) => runs.first().map_or(BlockAddr::NULL, |run| run.addr),
                Err(error) => {
                    self.volume.unreserve(op, 1);
                    return Err(error.into());
                }
            }
        } else {
            BlockAddr::NULL
        };
        let mut block = inode.node.write(op);
        let raw = block.inode_mut();
        raw.inline_data_mut(features).fill(0);
        raw.i_inline &= !(inline::DATA | inline::DATA_EXIST);
        if exists {
            raw.i_blocks = (raw.i_blocks.get() + 1).into();
            block.set_address(0, addr, features);
        }
        Ok(())
    }

    /// The data log of a file: cold by its advice bit, else warm.
    pub(crate) fn log_for(&self, inode: &Inode) -> LogType {
        use f2fs_format::inode::advise;
        let advice = inode.node.read().inode().i_advise;
        if advice & advise::COLD != 0 {
            LogType::ColdData
        } else if advice & advise::HOT != 0 {
            LogType::HotData
        } else {
            LogType::WarmData
        }
    }

    /// Writes one chunk: all of it or, on an error, nothing.
    fn write_chunk(&self, op: &Op<'_>, inode: &Inode, offset: u64, buf: &[u8]) -> Result<(), FsError> {
        let end = offset + buf.len() as u64;
        let (first, last) = (offset / BLOCK, (end - 1) / BLOCK);
        let count = (last - first + 1) as usize;

        // The slots, and what stands in them.
        let mut slots = Vec::with_capacity(2);
        let mut block = first;
        while block <= last {
            let slot = ensure_slot(op, &inode.node, block)?;
            let room = slot.node.read().address_count(self.volume.features()) - slot.index;
            let here = (room as u64).min(last - block + 1);
            slots.push((slot, here as usize));
            block += here;
        }
        let features = self.volume.features();
        let mut old = Vec::with_capacity(count);
        for (slot, len) in &slots {
            let node = slot.node.read();
            old.extend((0..*len).map(|i| node.address(slot.index + i, features).unwrap_or(BlockAddr::NULL)));
        }
        let new_blocks = old.iter().filter(|addr| addr.is_null()).count() as u64;
        self.volume.reserve(op, new_blocks)?;

        let write = || -> Result<Vec<f2fs_volume::Run>, FsError> {
            let data = self.assemble(inode, offset, buf, &old)?;
            let mut summaries = Vec::with_capacity(count);
            for (slot, len) in &slots {
                let version = self.volume.node_version(slot.node.nid())?;
                summaries.extend((0..*len).map(|i| Summary::new(slot.node.nid(), version, (slot.index + i) as u16)));
            }
            Ok(self.volume.write_data(op, self.log_for(inode), &summaries, data)?)
        };
        let runs = match write() {
            Ok(runs) => runs,
            Err(error) => {
                self.volume.unreserve(op, new_blocks);
                return Err(error);
            }
        };

        let mut fresh = runs.iter().flat_map(|run| (0..run.len).map(|i| run.addr.offset(i)));
        for (slot, len) in &slots {
            let mut node = slot.node.write(op);
            for index in 0..*len {
                let addr = fresh.next().unwrap_or(BlockAddr::NULL);
                node.set_address(slot.index + index, addr, features);
            }
        }
        for addr in old {
            self.volume.invalidate(op, addr)?;
        }
        let mut node = inode.node.write(op);
        let raw = node.inode_mut();
        raw.i_blocks = (raw.i_blocks.get() + new_blocks).into();
        if end > raw.i_size.get() {
            raw.i_size = end.into();
        }
        drop_extent(raw);
        let now = Time::now();
        stat::set_modified(raw, now);
        stat::set_changed(raw, now);
        Ok(())
    }

    /// The blocks to write: `buf`, and what stood around it in the first and last block.
    fn assemble(&self, inode: &Inode, offset: u64, buf: &[u8], old: &[BlockAddr]) -> Result<AlignedBuf, FsError> {
        let mut data = self.volume.recycler().take_stale(old.len());
        let head = (offset % BLOCK) as usize;
        let tail = head + buf.len();
        let ends =
            [(0, head != 0 || tail < BLOCK_SIZE), (old.len() - 1, old.len() > 1 && !tail.is_multiple_of(BLOCK_SIZE))];
        for (index, partial) in ends {
            if partial {
                let mut one = AlignedBuf::new(1);
                if old[index].is_real() {
                    self.volume.read_data(inode.ino, old[index], &mut one)?;
                }
                data.block_mut(index).copy_from_slice(one.block(0));
            }
        }
        data.as_bytes_mut()[head..tail].copy_from_slice(buf);
        // What stands behind the end of the file may be stale: it must read as zeros if the file grows over it.
        let size = inode.size();
        let start = offset - head as u64;
        let behind = (size.max(offset + buf.len() as u64) - start).min(data.len() as u64) as usize;
        data.as_bytes_mut()[behind..].fill(0);
        if size < offset && size > start {
            data.as_bytes_mut()[(size - start) as usize..head].fill(0);
        }
        Ok(data)
    }
}

pub(crate) fn copy_out(buf: &mut [u8], offset: u64, block: u64, len: u64, data: &AlignedBuf) {
    let from = (block * BLOCK).max(offset);
    let to = ((block + len) * BLOCK).min(offset + buf.len() as u64);
    let source = (from - block * BLOCK) as usize..(to - block * BLOCK) as usize;
    buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(&data.as_bytes()[source]);
}

impl Core {
    /// Writes the target of a symbolic link that was just made.
    pub(crate) fn write_target(&self, op: &Op<'_>, inode: &Inode, target: &[u8]) -> Result<(), FsError> {
        let room = inode.node.read().inode().layout(self.volume.features()).inline_data_size();
        if target.len() <= room {
            self.write_inline(op, inode, 0, target)?;
            return Ok(());
        }
        self.convert_inline(op, inode)?;
        self.write_chunk(op, inode, 0, target)
    }
}
