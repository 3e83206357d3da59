//! Many reads of one file from one thread, with a bounded number of them on the device at a time.
//!
//! # Locking
//!
//! Each read locks its own range until its bytes are there. While it holds one, and the gate, the call asks for others
//! only without waiting; if that fails, it finishes the reads in flight, unlocks all, and waits with nothing locked.

use f2fs_device::{BlockDevice, IoQueue, Request};
use f2fs_format::BLOCK_BYTES;
use f2fs_sync::protocol_never;

use crate::FsError;
use crate::content::{Content, Readable, Unreadable};
use crate::core::Core;
use crate::file_data::FileData;
use crate::file_data::read::{blocks_of, copy_out, lost};
use crate::inode::Inode;
use crate::page_cache::FilePages;
use crate::ranges::RangeGuard;

/// Blocks in one request at most: 1 MiB.
const LONGEST: u64 = 256;

/// Requests on the device at a time at most, whatever was asked for: each may hold 1 MiB.
pub(crate) const MOST_DEPTH: usize = 1024;

/// One of the reads of [`File::read_many`](crate::File::read_many).
#[derive(Debug)]
#[non_exhaustive]
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
struct Wanted {
    read: usize,
    /// First block in the file.
    block: u64,
    addr: u64,
    blocks: u64,
    is_back: bool,
}

/// A read that has begun.
struct Begun<'a> {
    /// Let go when nothing is left.
    range: Option<RangeGuard<'a>>,
    /// Requests that are not back.
    left: usize,
}

/// One call's reads.
struct Reader<'c, 'r, 'b> {
    core: &'c Core,
    inode: &'c Inode,
    content: &'c Content,
    reads: &'r mut [ReadSlice<'b>],
    begun: Vec<Begun<'c>>,
    queue: Box<dyn IoQueue + 'c>,
    depth: usize,
    /// Requests of reads that have begun, in the order in which they are sent; `sent` are.
    wanted: Vec<Wanted>,
    sent: usize,
    /// Requests that are back, and whose bytes are still to be copied.
    back: Vec<Request>,
    /// Requests whose bytes are copied, for the next ones.
    spare: Vec<Request>,
    /// Reads that go through the page cache, and their ranges.
    cached: Vec<(usize, &'c FilePages, RangeGuard<'c>)>,
}

impl FileData<'_> {
    /// Checkpoints wait as long as the call holds the gate: until all is read, or a range has to be waited for.
    pub(crate) fn read_many(&self, inode: &Inode, depth: usize, reads: &mut [ReadSlice<'_>]) -> Result<(), FsError> {
        if let [read] = reads
            && read.offset % BLOCK_BYTES + read.buf.len() as u64 <= BLOCK_BYTES
        {
            // One block: to set a queue up for it costs more than to read it.
            read.read = self.read_at(inode, read.offset, read.buf)?;
            return Ok(());
        }
        let depth = depth.clamp(1, MOST_DEPTH);
        let mut reader = Reader {
            core: self,
            inode,
            content: self.content(inode),
            begun: Vec::with_capacity(reads.len()),
            reads,
            queue: self.volume.device().queue(depth),
            depth,
            wanted: Vec::with_capacity(2 * depth),
            sent: 0,
            back: Vec::with_capacity(depth),
            spare: Vec::with_capacity(depth),
            cached: Vec::new(),
        };
        while let Some(read) = reader.reads.get(reader.begun.len()) {
            let first = reader.content.lock_to_read(read.offset, read.buf.len());
            {
                let _gate = self.volume.begin_read();
                reader.content.cache.refresh(self.volume.moves(inode.ino));
                reader.begin(first)?;
                reader.run()?;
                protocol_never!("read_many_inside_two_gates", reader.read_cached()?);
            }
            reader.read_cached()?;
        }
        Ok(())
    }
}

impl<'c> Reader<'c, '_, '_> {
    /// Begins the next read: finds out what has to come from the device, and fills holes with zeros.
    fn begin(&mut self, readable: Option<Readable<'c>>) -> Result<(), FsError> {
        let index = self.begun.len();
        let read = &mut self.reads[index];
        let Some(readable) = readable else {
            read.read = 0;
            self.begun.push(Begun { range: None, left: 0 });
            return Ok(());
        };
        read.read = readable.len;
        let (offset, end) = (read.offset, read.offset + readable.len as u64);
        let buf = &mut read.buf[..readable.len];
        if self.content.is_inline() {
            self.begun.push(Begun { range: None, left: 0 });
            return FileData(self.core).read_inline(self.inode, offset, buf);
        }
        let (first, last) = blocks_of(offset, readable.len);
        if let Some(pages) = self.inode.pages().filter(|pages| pages.is_dirty_in(first, last)) {
            // Dirty pages are newer than the device.
            self.begun.push(Begun { range: None, left: 0 });
            self.cached.push((index, pages, readable._range));
            return Ok(());
        }
        let before = self.wanted.len();
        let wanted = &mut self.wanted;
        FileData(self.core).each_run(self.inode, self.content, first, last, |block, run| {
            if !run.addr.is_real() {
                let from = (block * BLOCK_BYTES).max(offset) - offset;
                let to = ((block + run.len) * BLOCK_BYTES).min(end) - offset;
                buf[from as usize..to as usize].fill(0);
                return Ok(());
            }
            for done in (0..run.len).step_by(LONGEST as usize) {
                let addr = u64::from(run.addr.offset(done as u32).0);
                wanted.push(Wanted {
                    read: index,
                    block: block + done,
                    addr,
                    blocks: (run.len - done).min(LONGEST),
                    is_back: false,
                });
            }
            Ok(())
        })?;
        let left = self.wanted.len() - before;
        self.begun.push(Begun { range: (left > 0).then_some(readable._range), left });
        Ok(())
    }

    /// Reads until all is read, or a range has to be waited for; then everything that has begun is read, and nothing is
    /// held.
    fn run(&mut self) -> Result<(), FsError> {
        let mut busy = false;
        loop {
            self.refill(&mut busy)?;
            // The device goes on while the bytes are copied.
            self.queue.submit();
            self.hand_out();
            if self.collect()? == 0 {
                if let Some(missing) = self.wanted.iter().find(|wanted| !wanted.is_back) {
                    return Err(lost(missing.addr, missing.blocks));
                }
                self.wanted.clear();
                self.sent = 0;
                return Ok(());
            }
        }
    }

    /// Reads what goes through the page cache. The gate is left.
    fn read_cached(&mut self) -> Result<(), FsError> {
        for (index, pages, _range) in self.cached.drain(..) {
            let read = &mut self.reads[index];
            let buf = &mut read.buf[..read.read];
            FileData(self.core).read_cached(self.inode, self.content, pages, read.offset, buf)?;
        }
        Ok(())
    }

    /// Puts as many requests on their way as may be, of reads that have begun, and of others while none is `busy`.
    fn refill(&mut self, busy: &mut bool) -> Result<(), FsError> {
        while self.queue.in_flight() < self.depth {
            if let Some(&Wanted { addr, blocks, .. }) = self.wanted.get(self.sent) {
                self.send(addr, blocks);
                continue;
            }
            let Some(read) = self.reads.get(self.begun.len()).filter(|_| !*busy) else { break };
            match self.content.try_lock_to_read(read.offset, read.buf.len()) {
                Ok(readable) => self.begin(Some(readable))?,
                Err(Unreadable::End) => self.begin(None)?,
                Err(Unreadable::Busy) => *busy = true,
            }
        }
        Ok(())
    }

    /// Waits for one request, and takes all that are back by then; how many.
    fn collect(&mut self) -> Result<usize, FsError> {
        while let Some(completion) = self.queue.next_completion() {
            // One that nobody waits for has no blocks: a device of somebody's own may hand it back twice.
            let piece = self.wanted.get_mut(completion.request.tag as usize).filter(|piece| !piece.is_back);
            let blocks = piece.map_or(0, |piece| {
                piece.is_back = true;
                piece.blocks
            });
            let completion = completion.checked(blocks);
            completion.result?;
            self.back.push(completion.request);
            if self.queue.ready() == 0 {
                break;
            }
        }
        Ok(self.back.len())
    }

    /// Copies the bytes of completed requests, and unlocks the ranges of reads that are complete.
    fn hand_out(&mut self) {
        for request in self.back.drain(..) {
            let piece = self.wanted[request.tag as usize];
            let read = &mut self.reads[piece.read];
            if let [data] = &*request.bufs {
                copy_out(&mut read.buf[..read.read], read.offset, piece.block, piece.blocks, data);
            }
            self.spare.push(request);
            let begun = &mut self.begun[piece.read];
            begun.left -= 1;
            if begun.left == 0 {
                begun.range = None;
            }
        }
    }

    fn send(&mut self, addr: u64, blocks: u64) {
        let spare = self.spare.pop().filter(|request| request.blocks() == blocks);
        let request = match spare {
            Some(request) => Request { start: addr, ..request },
            None => Request::read(addr, self.core.volume.recycler().take_stale(blocks as usize)),
        };
        self.queue.push(request.with_tag(self.sent as u64));
        self.sent += 1;
    }
}
