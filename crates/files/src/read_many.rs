//! Many reads of one file from one thread, with a bounded number of them on the device at a time.

use std::ops::Range;

use f2fs_device::{AlignedBuf, Request};
use f2fs_format::inode::inline;
use f2fs_format::{BLOCK_SIZE, BlockAddr};

use crate::FsError;
use crate::block_map::map_range;
use crate::data::copy_out;
use crate::filesystem::Core;
use crate::inode::Inode;

const BLOCK: u64 = BLOCK_SIZE as u64;
/// Blocks in one request at most: 1 MiB.
const LONGEST: u64 = 256;

/// Reads that are mapped before the next ones are sent.
const MAPPED_AT_ONCE: usize = 16;

/// One of the reads of [`File::read_many`](crate::File::read_many).
#[derive(Debug)]
pub struct ReadSlice<'a> {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Where the bytes go.
    pub buf: &'a mut [u8],
    /// How many bytes there were before the end of the file; set by the call.
    pub read: usize,
}

impl<'a> ReadSlice<'a> {
    /// A read of up to `buf.len()` bytes from byte `offset` on.
    #[must_use]
    pub fn new(offset: u64, buf: &'a mut [u8]) -> Self {
        ReadSlice { offset, buf, read: 0 }
    }
}

/// A contiguous run on the device that one read wants.
#[derive(Clone, Copy)]
struct Piece {
    read: usize,
    /// First block in the file.
    block: u64,
    addr: BlockAddr,
    blocks: u64,
}

impl Core {
    /// The gate is held until the last read is done, so that no checkpoint runs meanwhile.
    pub(crate) fn read_many(&self, inode: &Inode, depth: usize, reads: &mut [ReadSlice<'_>]) -> Result<(), FsError> {
        let _data = inode.data.read();
        let _gate = self.volume.begin_read();
        {
            let node = inode.node.read();
            let raw = node.inode();
            let size = raw.i_size.get();
            for read in &mut *reads {
                read.read = (read.buf.len() as u64).min(size.saturating_sub(read.offset)) as usize;
            }
            if raw.i_inline & inline::DATA != 0 {
                let area = raw.inline_data(self.volume.features());
                for read in reads.iter_mut().filter(|read| read.read > 0) {
                    let start = read.offset as usize;
                    read.buf[..read.read].copy_from_slice(&area[start..start + read.read]);
                }
                return Ok(());
            }
        }
        let depth = depth.max(1);
        let mut queue = self.volume.device().queue(depth);
        let mut pieces = Vec::with_capacity(reads.len());
        let (mut mapped, mut pushed) = (0, 0);
        let mut spare: Option<AlignedBuf> = None;
        loop {
            while queue.in_flight() < depth {
                // A few at a time, so that the device need not wait until all are mapped.
                if pushed == pieces.len() && mapped < reads.len() {
                    let end = (mapped + MAPPED_AT_ONCE).min(reads.len());
                    self.map_reads(inode, reads, mapped..end, &mut pieces)?;
                    mapped = end;
                    continue;
                }
                let Some(Piece { addr, blocks, .. }) = pieces.get(pushed).copied() else { break };
                let buf = spare
                    .take()
                    .filter(|buf| buf.blocks() == blocks as usize)
                    .unwrap_or_else(|| self.volume.recycler().take_stale(blocks as usize));
                queue.push(Request::read(u64::from(addr.0), buf).with_tag(pushed as u64));
                pushed += 1;
            }
            let Some(completion) = queue.next_completion() else { return Ok(()) };
            let piece = pieces[completion.request.tag as usize];
            let buf = completion.into_buf()?;
            let read = &mut reads[piece.read];
            copy_out(&mut read.buf[..read.read], read.offset, piece.block, piece.blocks, &buf);
            spare = Some(buf);
        }
    }

    /// What has to come from the device; holes are filled with zeros at once.
    fn map_reads(
        &self,
        inode: &Inode,
        reads: &mut [ReadSlice<'_>],
        range: Range<usize>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), FsError> {
        let geometry = self.volume.geometry();
        for index in range {
            let read = &mut reads[index];
            if read.read == 0 {
                continue;
            }
            let (start, end) = (read.offset, read.offset + read.read as u64);
            let mut block = start / BLOCK;
            map_range(&self.volume, &inode.node, block, end.div_ceil(BLOCK) - block, |mapping| {
                if mapping.addr.is_real() {
                    let last = mapping.addr.offset(mapping.len as u32 - 1);
                    if !geometry.in_main(mapping.addr) || !geometry.in_main(last) {
                        let (what, nid, addr) = ("data address", inode.ino, mapping.addr);
                        return Err(f2fs_format::Corruption::Address { what, nid, addr }.into());
                    }
                    let mut done = 0;
                    while done < mapping.len {
                        let blocks = (mapping.len - done).min(LONGEST);
                        let addr = mapping.addr.offset(done as u32);
                        pieces.push(Piece { read: index, block: block + done, addr, blocks });
                        done += blocks;
                    }
                } else {
                    let from = (block * BLOCK).max(start) - start;
                    let to = ((block + mapping.len) * BLOCK).min(end) - start;
                    read.buf[from as usize..to as usize].fill(0);
                }
                block += mapping.len;
                Ok(())
            })?;
        }
        Ok(())
    }
}
