//! Many writes of one file from one thread: they go to the device in groups, and one group is assembled while the one
//! before is on its way. Blocks scattered over the file lie together in the log, so a group is mostly one request.
//!
//! # Locking
//!
//! Each write locks its own range until it is done. While the call holds one, and the gate, it asks for others only
//! without waiting; if that fails, it finishes the writes that it has begun, unlocks all, and waits with nothing
//! locked.

use f2fs_format::BLOCK_SIZE;
use f2fs_sync::Arc;
use f2fs_volume::{Flight, Next, Op, Piece};

use crate::FsError;
use crate::content::Content;
use crate::file_data::FileData;
use crate::file_data::cached::PastCache;
use crate::file_data::read::blocks_of;
use crate::file_data::read_many::MOST_DEPTH;
use crate::file_data::write::CHUNK;
use crate::inode::Inode;
use crate::ranges::RangeGuard;

/// Blocks written in one operation at most (16 MiB): bounds how long a checkpoint waits.
const MOST: u64 = 4096;

/// One of the writes of [`File::write_many`](crate::File::write_many).
#[derive(Debug)]
#[non_exhaustive]
pub struct WriteSlice<'a> {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// The bytes.
    pub buf: &'a [u8],
    /// How many of them were written; set by the call, also when it fails.
    pub written: usize,
}

impl<'a> WriteSlice<'a> {
    /// A write of `buf` at byte `offset`.
    #[must_use]
    pub fn new(offset: u64, buf: &'a [u8]) -> Self {
        WriteSlice { offset, buf, written: 0 }
    }

    /// Where it ends, in bytes.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.buf.len() as u64)
    }

    /// How many blocks it touches.
    fn blocks(&self) -> u64 {
        let (first, last) = blocks_of(self.offset, self.buf.len());
        last - first + 1
    }
}

/// A group of writes on its way, with their ranges.
struct Group<'c> {
    flight: Flight,
    ranges: Vec<Taken<'c>>,
}

/// The range of a write. No page of it is left when it is released.
struct Taken<'c> {
    _past: PastCache<'c>,
    range: RangeGuard<'c>,
}

impl<'a> FileData<'a> {
    /// Writes the pieces in their order; a later one of the same bytes wins.
    pub(crate) fn write_many(
        &self,
        inode: &Arc<Inode>,
        depth: usize,
        writes: &mut [WriteSlice<'_>],
    ) -> Result<(), FsError> {
        let content = self.content(inode);
        let limit = content.limit();
        writes.iter_mut().for_each(|write| write.written = 0);
        let mut rest = writes;
        while !rest.is_empty() {
            let ends = |write: &WriteSlice<'_>| !write.buf.is_empty() && write.end() > limit;
            let fitting = rest.iter().position(ends).unwrap_or(rest.len());
            let (group, behind) = rest.split_at_mut(fitting);
            self.write_fitting(inode, content, depth, group)?;
            rest = match behind {
                [cut, behind @ ..] => {
                    self.write_cut(inode, limit, cut)?;
                    behind
                }
                none => none,
            };
        }
        Ok(())
    }

    /// Writes pieces that end within the greatest size.
    fn write_fitting(
        &self,
        inode: &Arc<Inode>,
        content: &Content,
        depth: usize,
        writes: &mut [WriteSlice<'_>],
    ) -> Result<(), FsError> {
        let mut next = 0;
        while let Some(write) = writes.get(next) {
            // A write that is inline, long or empty goes by itself.
            if write.buf.is_empty() || content.is_inline() || write.blocks() > CHUNK {
                self.write_alone(inode, &mut writes[next])?;
                next += 1;
                continue;
            }
            self.balance()?;
            let (first, last) = blocks_of(write.offset, write.buf.len());
            let mut waited = Some(content.ranges.exclusive(first, last));
            let result = self.change(|op| self.write_groups(op, inode, content, depth, writes, &mut next, &mut waited));
            match result {
                Ok(()) => {}
                // The rest of the volume may have room for the next one, or a part of it.
                Err(error) if error.is_no_space() && next < writes.len() => {
                    drop(waited);
                    self.write_alone(inode, &mut writes[next])?;
                    next += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes what fits of a piece that ends behind the greatest size.
    fn write_cut(&self, inode: &Arc<Inode>, limit: u64, write: &mut WriteSlice<'_>) -> Result<(), FsError> {
        if write.offset >= limit {
            return Err(FsError::FileTooLarge { size: write.end(), limit });
        }
        let mut fits = WriteSlice::new(write.offset, &write.buf[..(limit - write.offset) as usize]);
        let result = self.write_alone(inode, &mut fits);
        write.written = fits.written;
        result
    }

    fn write_alone(&self, inode: &Arc<Inode>, write: &mut WriteSlice<'_>) -> Result<(), FsError> {
        write.written = self.write_at(inode, write.offset, write.buf)?;
        if write.written < write.buf.len() {
            let blocks = |bytes: usize| bytes.div_ceil(BLOCK_SIZE) as u64;
            let (wanted, available) = (blocks(write.buf.len()), blocks(write.written));
            return Err(f2fs_volume::VolumeError::NoSpace { wanted, available }.into());
        }
        Ok(())
    }

    /// Writes groups from write `next` on, until a range has to be waited for or the operation gets long. `waited` is
    /// the range of write `next`, if the caller has it. An error leaves behind what `next` has gone by, and nothing
    /// else.
    #[allow(clippy::too_many_arguments)]
    fn write_groups<'c>(
        &self,
        op: &Op<'_>,
        inode: &'c Arc<Inode>,
        content: &'c Content,
        depth: usize,
        writes: &mut [WriteSlice<'_>],
        next: &mut usize,
        waited: &mut Option<RangeGuard<'c>>,
    ) -> Result<(), FsError>
    where
        'a: 'c,
    {
        // Two groups at a time.
        let most = (depth.min(MOST_DEPTH) / 2).max(1);
        let mut flying: Option<Group<'c>> = None;
        let mut begun = *next;
        let mut blocks = 0;
        loop {
            let mut group = Vec::with_capacity(most);
            let mut ranges = Vec::with_capacity(most);
            let mut size = 0;
            while let Some(write) = writes.get(begun + group.len()).filter(|_| group.len() < most && blocks < MOST) {
                if write.buf.is_empty() || size + write.blocks() > CHUNK {
                    break;
                }
                let (first, last) = blocks_of(write.offset, write.buf.len());
                let Some(range) = waited.take().or_else(|| content.ranges.try_exclusive(first, last)) else { break };
                match self.past_cache_within(op, inode, first, last) {
                    Ok(_past) => ranges.push(Taken { _past, range }),
                    Err(error) if group.is_empty() && flying.is_none() => {
                        *waited = Some(range);
                        return Err(error);
                    }
                    // Once more when it is the first.
                    Err(_) => break,
                }
                size += write.blocks();
                group.push(Piece { offset: write.offset, buf: write.buf });
            }
            blocks += size;
            begun += group.len();
            if depth < 2
                && let Some(before) = flying.take()
            {
                self.finish_group(op, inode, content, before, writes, next)?;
            }
            let then = if depth < 2 { Next::Land } else { Next::Other };
            let started = (!group.is_empty()).then(|| self.start_write(op, inode, content, &group, then));
            if let Some(before) = flying.take()
                && let Err(error) = self.finish_group(op, inode, content, before, writes, next)
            {
                if let Some(Ok(after)) = started {
                    after.abandon(op)?;
                }
                return Err(error);
            }
            match started {
                None => return Ok(()),
                Some(Ok(flight)) => flying = Some(Group { flight, ranges }),
                Some(Err(error)) => {
                    // The range of the next write is kept for another try.
                    *waited = ranges.into_iter().next().map(|taken| taken.range);
                    return Err(error);
                }
            }
        }
    }

    fn finish_group(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        group: Group<'_>,
        writes: &mut [WriteSlice<'_>],
        next: &mut usize,
    ) -> Result<(), FsError> {
        let Group { flight, ranges } = group;
        self.finish_write(op, inode, content, flight, true)?;
        for write in &mut writes[*next..*next + ranges.len()] {
            write.written = write.buf.len();
        }
        *next += ranges.len();
        Ok(())
    }
}
