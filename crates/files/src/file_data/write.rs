//! Writing file data.
//!
//! Data goes to the device at once, in requests that are as long as the log gives contiguous blocks. A write never
//! overwrites a block in place: the new block is written first, then the address slot changes, then the old block is
//! invalidated ([`Flight`]), all within one operation, so that a checkpoint has either the old or the new. Inline data
//! stands in the inode and becomes durable with it.
//!
//! ```text
//!   chunk n     slots, reserve, allocate ─ copy, submit, copy, submit ... ─────────────── wait ─ slots, old blocks, size
//!   chunk n+1                                                        slots ... copy, submit ...          wait ─ ...
//! ```
//!
//! A thread may still read the old block after another thread has overwritten it. It reads the old data: the block is
//! not handed out before the next checkpoint, and the checkpoint waits for the reader, since a thread that reads by an
//! address is inside the gate.

use f2fs_format::bits::is_zero;
use f2fs_format::inode::{Extent, Inode as RawInode, inline};
use f2fs_format::{BLOCK_BYTES, BLOCK_SIZE, BlockAddr};
use f2fs_sync::{Arc, protocol_value};
use f2fs_volume::tree::Slot;
use f2fs_volume::{Flight, Next, Op, Piece, Target};

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::file_data::read::blocks_of;
use crate::inode::Inode;
use crate::page_cache::Admitted;
use crate::stat::{self, Time};

/// Blocks written at a time at most: 2 MiB, a segment.
pub(crate) const CHUNK: u64 = 512;
/// Chunks written in one operation at most: bounds how long a checkpoint waits.
const CHUNKS: usize = 8;

/// How much of a write is done where there is no space for all of it, or where it ends behind the greatest size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// As much as there is space for.
    Part,
    /// All or nothing; no other thread sees a size in between, as far as one operation goes.
    All,
}

impl FileData<'_> {
    /// Writes `buf` at `offset`, growing the file as needed; returns how many bytes were written. On an error what was
    /// written until then stays, and the size says how much.
    pub(crate) fn write_at(&self, inode: &Arc<Inode>, offset: u64, buf: &[u8]) -> Result<usize, FsError> {
        self.balance()?;
        if buf.is_empty() {
            return Ok(0);
        }
        let content = self.content(inode);
        let room = self.admit(offset, buf.len());
        let _range = content.lock_to_write(offset, buf.len() as u64);
        self.write_locked(inode, content, offset, buf, Amount::Part, room)
    }

    /// The caller has the blocks exclusively, or, if the file is inline, all of it. With room in the page cache the
    /// data goes there.
    pub(crate) fn write_locked(
        &self,
        inode: &Arc<Inode>,
        content: &Content,
        offset: u64,
        buf: &[u8],
        amount: Amount,
        room: Option<Admitted<'_>>,
    ) -> Result<usize, FsError> {
        if buf.is_empty() {
            return Ok(0);
        }
        let limit = content.limit();
        let size = offset.saturating_add(buf.len() as u64);
        let buf = match amount {
            _ if size <= limit => buf,
            // As Linux does (`generic_write_checks`).
            Amount::Part if offset < limit => &buf[..(limit - offset) as usize],
            Amount::Part | Amount::All => return Err(FsError::FileTooLarge { size, limit }),
        };
        let end = offset + buf.len() as u64;
        if content.is_inline() {
            let room = inode.node.read().inode().layout(self.volume.features()).inline_data_size() as u64;
            if end <= room {
                return self.change(|op| self.write_inline(op, inode, content, offset as usize, buf));
            }
            self.change(|op| self.convert_inline(op, inode, content))?;
        }
        if let Some(room) = room
            && self.pages_of(inode, content).is_some()
        {
            return self.write_cached(inode, content, offset, buf, amount, room);
        }
        let (first, last) = blocks_of(offset, buf.len());
        let _past = self.past_cache(inode, first, last)?;
        let mut done = 0;
        while done < buf.len() {
            let result = self.change(|op| match amount {
                Amount::Part => self.write_some(op, inode, content, offset, buf, amount, &mut done),
                Amount::All => self.write_whole(op, inode, content, offset, buf, &mut done),
            });
            match result {
                Ok(()) => {}
                Err(error) if error.is_no_space() && done > 0 => return Ok(done),
                // The rest of the volume may have room for a part of the chunk.
                Err(error) if error.is_no_space() && buf.len() > BLOCK_SIZE && amount == Amount::Part => {
                    let part = &buf[..chunk_len(offset, buf.len())];
                    return self.write_block_by_block(inode, content, offset, part, error);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Writes chunks of `buf` from byte `done` of it on, and counts them there. One is assembled while the one before
    /// is on its way. An error leaves behind what is counted, and nothing else. Of what is written as a whole, only the
    /// last chunk raises the size of the file.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn write_some(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        offset: u64,
        buf: &[u8],
        amount: Amount,
        done: &mut usize,
    ) -> Result<(), FsError> {
        // A chunk on its way, and the bytes of it.
        let mut flying: Option<(Flight, usize)> = None;
        let mut next = *done;
        for _ in 0..CHUNKS {
            if next == buf.len() {
                break;
            }
            let at = offset + next as u64;
            let part = &buf[next..next + chunk_len(at, buf.len() - next)];
            next += part.len();
            let last = flying.is_none() && next == buf.len();
            let then = if last { Next::Land } else { Next::Other };
            let started = self.start_write(op, inode, content, &[Piece { offset: at, buf: part }], then);
            if let Some((before, bytes)) = flying.take() {
                let grows = amount == Amount::Part || protocol_value!("append_grows_by_chunks", false, true);
                if let Err(error) = self.finish_write(op, inode, content, before, grows) {
                    if let Ok(after) = started {
                        after.abandon(op)?;
                    }
                    return Err(error);
                }
                *done += bytes;
            }
            flying = Some((started?, part.len()));
        }
        if let Some((last, bytes)) = flying {
            self.finish_write(op, inode, content, last, true)?;
            *done += bytes;
        }
        Ok(())
    }

    /// Begins to write pieces that have no block in common. The caller has their blocks exclusively. An error leaves
    /// nothing behind but empty nodes.
    pub(crate) fn start_write(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        pieces: &[Piece<'_>],
        next: Next,
    ) -> Result<Flight, FsError> {
        let target = Target { inode: &inode.node, size: content.size(), log: inode.log() };
        Ok(Flight::begin(op, target, pieces, next)?)
    }

    /// Waits for the device, and makes the new blocks those of the file, which `grows` if they are behind its end.
    pub(crate) fn finish_write(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        flight: Flight,
        grows: bool,
    ) -> Result<(), FsError> {
        let (end, now) = (if grows { flight.end() } else { 0 }, self.now());
        // Both with the page locked: see the rules of the cache.
        let named = |block, addr: BlockAddr| content.cache.store(block, addr.0);
        // With pages in the cache the size may be ahead of that in the inode, which this write may have to raise.
        let changes = || end > content.size() || content.pages().is_some() || content.times.must_change(now);
        Ok(flight.land_if(op, &inode.node, named, changes, |raw| wrote(inode, raw, end, now))?)
    }

    fn write_block_by_block(
        &self,
        inode: &Inode,
        content: &Content,
        offset: u64,
        buf: &[u8],
        error: FsError,
    ) -> Result<usize, FsError> {
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u64;
            let len = ((BLOCK_BYTES - at % BLOCK_BYTES) as usize).min(buf.len() - done);
            let piece = Piece { offset: at, buf: &buf[done..done + len] };
            match self.change(|op| self.write_piece(op, inode, content, piece)) {
                Ok(()) => done += len,
                Err(error) if error.is_no_space() => break,
                Err(error) => return Err(error),
            }
        }
        if done == 0 { Err(error) } else { Ok(done) }
    }

    /// Writes one piece of at most a chunk: all of it or, on an error, nothing.
    fn write_piece(&self, op: &Op<'_>, inode: &Inode, content: &Content, piece: Piece<'_>) -> Result<(), FsError> {
        let flight = self.start_write(op, inode, content, &[piece], Next::Land)?;
        self.finish_write(op, inode, content, flight, true)
    }

    fn write_inline(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        offset: usize,
        buf: &[u8],
    ) -> Result<usize, FsError> {
        let features = self.volume.features();
        let mut block = inode.node.write(op);
        let raw = block.inode_mut();
        raw.inline_data_mut(features)[offset..offset + buf.len()].copy_from_slice(buf);
        raw.i_inline |= inline::DATA_EXIST;
        let size = raw.i_size.get().max((offset + buf.len()) as u64);
        content.set_size(raw, size);
        let now = self.now();
        stat::set_modified(raw, now);
        stat::set_changed(raw, now);
        Ok(buf.len())
    }

    /// Moves inline data to a block of its own (`f2fs_convert_inline_inode`). The caller has the whole file
    /// exclusively.
    pub(crate) fn convert_inline(&self, op: &Op<'_>, inode: &Inode, content: &Content) -> Result<(), FsError> {
        let features = self.volume.features();
        let data = {
            let block = inode.node.read();
            let raw = block.inode();
            if raw.i_inline & inline::DATA == 0 {
                return Ok(());
            }
            (raw.i_size.get() > 0).then(|| {
                let inline = raw.inline_data(features);
                let mut data = self.volume.recycler().take_stale(1);
                let (content, rest) = data.as_bytes_mut().split_at_mut(inline.len());
                content.copy_from_slice(inline);
                rest.fill(0);
                data
            })
        };
        let leave = |raw: &mut RawInode| {
            let inline = raw.inline_data_mut(features);
            // That of a new file is empty; looking is faster than clearing, and leaves the cache's lines as they are.
            if !is_zero(inline) {
                inline.fill(0);
            }
            raw.i_inline &= !(inline::DATA | inline::DATA_EXIST);
        };
        if let Some(data) = data {
            let slot = Slot { node: inode.node.clone(), index: 0 };
            let flight = Flight::begin_blocks(op, inode.log(), [slot].into_iter(), data, 1)?;
            let named = |block, addr: BlockAddr| content.cache.store(block, addr.0);
            flight.land(op, &inode.node, named, |raw| {
                leave(raw);
                // Synced data may stand in the inode alone: a sync that was cut off may leave the new node, and not the
                // block. Whether there is such an inode is asked under its lock, which a sync holds while it writes
                // one.
                if self.volume.nodes().is_on_device(inode.ino) {
                    self.volume.syncs().set_left_inline(op, &inode.node);
                }
            })?;
        } else {
            let mut block = inode.node.write(op);
            leave(block.inode_mut());
            content.cache.store(0, BlockAddr::NULL.0);
        }
        content.no_longer_inline();
        Ok(())
    }

    /// Writes the target of a symbolic link that was just made.
    pub(crate) fn write_target(&self, op: &Op<'_>, inode: &Inode, target: &[u8]) -> Result<(), FsError> {
        let content = self.content(inode);
        let room = inode.node.read().inode().layout(self.volume.features()).inline_data_size();
        if target.len() <= room {
            self.write_inline(op, inode, content, 0, target)?;
            return Ok(());
        }
        self.convert_inline(op, inode, content)?;
        self.write_piece(op, inode, content, Piece { offset: 0, buf: target })
    }
}

/// Changes the inode after a write that ended at byte `end`, beside slots and `i_blocks`.
pub(crate) fn wrote(inode: &Inode, raw: &mut RawInode, end: u64, now: Time) {
    if end > raw.i_size.get() {
        inode.grow(raw, end);
    }
    raw.i_ext = Extent::NONE;
    stat::set_modified(raw, now);
    stat::set_changed(raw, now);
    if let Some(content) = inode.content() {
        content.times.changed(now);
    }
}

/// Bytes from `offset` to the end of its chunk, at most `len`: chunks of a long write are aligned to segments of the
/// file.
fn chunk_len(offset: u64, len: usize) -> usize {
    let end = (offset / BLOCK_BYTES / CHUNK + 1) * CHUNK * BLOCK_BYTES;
    ((end - offset) as usize).min(len)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_with_segments_of_the_file() {
        let segment = CHUNK * BLOCK_BYTES;
        for (offset, len, chunk) in [
            (0, 10 << 20, segment),
            (5, 10 << 20, segment - 5),
            (segment - 1, 10 << 20, 1),
            (7 * segment, 10 << 20, segment),
            (7 * segment + 100, 200, 200),
        ] {
            assert_eq!(chunk_len(offset, len), chunk as usize, "{len} from {offset}");
        }
    }
}
