//! A device in memory.
//!
//! Locking rules: one reader-writer lock per group of 64 blocks, or of more on devices beyond 1 TiB, so that there are no
//! more locks than a device of 1 TiB has. A transfer takes the locks of its groups one after the other, never two at a time, so there is no order to keep; transfers that share no group share nothing. Two
//! overlapping transfers of several groups may interleave at their borders, as on real devices.
//!
//! ```text
//!   groups:  lock -> [ chunk, chunk, ... ]     64 blocks; one chunk, unless chunks are smaller or the device is large
//!                      '-> blocks
//! ```
//!
//! Groups and chunks are reference counted: a [`MemoryDevice::snapshot`] shares all groups, and the first write to a
//! shared group copies its list of chunks and the chunks that are written.

mod error;

use std::{
    fmt,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use f2fs_sync::{Arc, RwLock};
use zerocopy::IntoBytes;

pub use error::MemoryError;

use crate::{
    AlignedBuf, BLOCK_SIZE, Block, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Operation, Request,
    Ticket,
};

/// Blocks in a chunk, unless the device is made with another size (256 KiB), and in a group at least.
const CHUNK: u64 = 64;

/// The most groups of a device: one of 1 TiB has as many of 64 blocks. They take 64 MiB.
const MAX_GROUPS: u64 = 1 << 22;

/// `None` reads as zeros and takes no memory.
type Chunk = Option<Arc<Vec<Block>>>;

/// The chunks behind one lock. `None`: all of them read as zeros.
type Group = RwLock<Option<Arc<Vec<Chunk>>>>;

/// A sparse device in memory; 64 GiB cost 4 MiB until they are written, and no size costs more than 64 MiB. Its flush is
/// a no-op: nothing here survives the process.
///
/// A discard makes blocks read as zeros.
pub struct MemoryDevice {
    info: DeviceInfo,
    /// Blocks in a chunk.
    chunk: u64,
    /// Chunks in a group.
    group: u64,
    groups: Vec<Group>,
    claims: Claims,
}

impl fmt::Debug for MemoryDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDevice").field("info", &self.info).finish_non_exhaustive()
    }
}

impl MemoryDevice {
    /// The most blocks that a device can have (4 PiB).
    pub const MAX_BLOCKS: u64 = 1 << 40;

    /// A device of `blocks` blocks that reads as zeros. A block that was never written takes no memory.
    ///
    /// # Panics
    /// Where [`try_new`](Self::try_new) gives an error.
    #[must_use]
    pub fn new(blocks: u64) -> Self {
        Self::with_chunks(blocks, CHUNK)
    }

    /// The same for a size that somebody else chose.
    ///
    /// # Errors
    /// [`MemoryError`]
    pub fn try_new(blocks: u64) -> Result<Self, MemoryError> {
        Self::try_with_chunks(blocks, CHUNK)
    }

    /// A device of `blocks` blocks that reads as zeros, and shares and copies `chunk` blocks at a time: few (4) for
    /// devices of which many snapshots differ in a few blocks each, at the price of more locks for a long transfer. 0
    /// counts as 1.
    ///
    /// # Panics
    /// Where [`try_new`](Self::try_new) gives an error.
    #[must_use]
    pub fn with_chunks(blocks: u64, chunk: u64) -> Self {
        match Self::try_with_chunks(blocks, chunk) {
            Ok(device) => device,
            Err(error) => panic!("{error}"),
        }
    }

    fn try_with_chunks(blocks: u64, chunk: u64) -> Result<Self, MemoryError> {
        if blocks > Self::MAX_BLOCKS {
            return Err(MemoryError::TooLarge { blocks, max: Self::MAX_BLOCKS });
        }
        let chunk = chunk.clamp(1, blocks.max(1));
        let mut info = DeviceInfo::new(blocks, format!("memory, {blocks} blocks"));
        info.supports_discard = true;
        info.logical_sector = 512;
        let group = (CHUNK / chunk).max(blocks.div_ceil(chunk * MAX_GROUPS)).max(1);
        let count = blocks.div_ceil(chunk * group);
        let mut groups = Vec::new();
        groups.try_reserve_exact(count as usize).map_err(|_| MemoryError::NoMemory {
            blocks,
            groups: count,
            bytes: count * size_of::<Group>() as u64,
        })?;
        groups.extend((0..count).map(|_| RwLock::new(None)));
        Ok(Self { info, chunk, group, groups, claims: Claims::new() })
    }

    /// A device that holds a copy of `bytes`, zero padded to whole blocks.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let device = Self::new(bytes.len().div_ceil(BLOCK_SIZE) as u64);
        for (index, part) in bytes.chunks(CHUNK as usize * BLOCK_SIZE).enumerate() {
            device.put(index as u64 * CHUNK, part);
        }
        device
    }

    /// A copy of the present content on a device whose chunks have another size; see
    /// [`with_chunks`](Self::with_chunks).
    #[must_use]
    pub fn rechunked(&self, chunk: u64) -> Self {
        let device = Self { info: self.info.clone(), ..Self::with_chunks(self.info.blocks, chunk) };
        self.each_chunk(|start, count, blocks| {
            for (at, block) in (start..start + count).zip(blocks.iter().flat_map(|blocks| blocks.iter())) {
                if block.0 != Block::ZERO.0 {
                    device.set_block(at, block);
                }
            }
        });
        device
    }

    /// The same device, refusing writes.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.info.read_only = true;
        self
    }

    /// A copy of the present content, sharing memory with this device until either side writes. Writes that run
    /// meanwhile may be in it or not, group by group. The copy is a device of its own, which nobody has open.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self {
            info: self.info.clone(),
            chunk: self.chunk,
            group: self.group,
            groups: self.groups.iter().map(|group| RwLock::new(group.read().clone())).collect(),
            claims: Claims::new(),
        }
    }

    /// A copy of the content as one run of bytes; meant for small devices.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.info.bytes() as usize);
        self.each_chunk(|_, count, blocks| {
            let len = count as usize * BLOCK_SIZE;
            match blocks {
                Some(blocks) => bytes.extend_from_slice(&blocks.as_slice().as_bytes()[..len]),
                None => bytes.resize(bytes.len() + len, 0),
            }
        });
        bytes
    }

    /// Bytes of memory held by blocks (shared chunks count in full).
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        let mut chunks = 0;
        self.each_chunk(|_, _, blocks| chunks += u64::from(blocks.is_some()));
        chunks * self.chunk * BLOCK_SIZE as u64
    }

    /// Loads an image file; chunks of zeros take no memory, and a tail shorter than a block is left out.
    ///
    /// # Errors
    /// Errors of opening and reading the file, and one of the kind `FileTooLarge` if it has more than
    /// [`MAX_BLOCKS`](Self::MAX_BLOCKS).
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let bytes = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        let device = Self::try_new(bytes / BLOCK_SIZE as u64);
        let device = device.map_err(|error| io::Error::new(io::ErrorKind::FileTooLarge, error))?;
        let mut part = vec![0; CHUNK as usize * BLOCK_SIZE];
        let mut start = 0;
        while start < device.info.blocks {
            let count = CHUNK.min(device.info.blocks - start);
            let part = &mut part[..count as usize * BLOCK_SIZE];
            file.read_exact(part)?;
            device.put(start, part);
            start += count;
        }
        Ok(device)
    }

    /// Saves the content to a (sparse) image file, replacing what is there.
    ///
    /// # Errors
    /// Errors of creating and writing the file.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.set_len(self.info.bytes())?;
        let mut result = Ok(());
        self.each_chunk(|start, count, blocks| {
            if let (Ok(()), Some(blocks)) = (&result, blocks) {
                let bytes = &blocks.as_slice().as_bytes()[..count as usize * BLOCK_SIZE];
                let seek = file.seek(SeekFrom::Start(start * BLOCK_SIZE as u64));
                result = seek.and_then(|_| file.write_all(bytes));
            }
        });
        result?;
        file.sync_all()
    }

    /// Calls `each` with (first block, blocks inside the device, content) for every chunk, in order. No lock is held
    /// meanwhile.
    fn each_chunk(&self, mut each: impl FnMut(u64, u64, &Chunk)) {
        let mut start = 0;
        for group in &self.groups {
            let chunks = group.read().clone();
            for index in 0..self.group as usize {
                let count = self.chunk.min(self.info.blocks - start);
                each(start, count, chunks.as_deref().map_or(&None, |chunks| &chunks[index]));
                start += count;
                if start == self.info.blocks {
                    return;
                }
            }
        }
    }

    /// Calls `each` with (group, chunk in it, first block in that, first block of `blocks` done before, blocks) for the
    /// pieces of a range.
    fn pieces(&self, start: u64, blocks: u64, mut each: impl FnMut(&Group, usize, usize, usize, usize)) {
        let mut done = 0;
        while done < blocks {
            let at = start + done;
            let (chunk, within) = (at / self.chunk, at % self.chunk);
            let count = (self.chunk - within).min(blocks - done);
            let group = &self.groups[(chunk / self.group) as usize];
            each(group, (chunk % self.group) as usize, within as usize, done as usize, count as usize);
            done += count;
        }
    }

    /// Puts the bytes of one chunk of a new device to their place, if they are not all zeros.
    fn put(&self, start: u64, part: &[u8]) {
        if part.iter().any(|&byte| byte != 0) {
            self.pieces(start, 1, |group, chunk, _, _, _| {
                self.change(group, chunk, |to| to.as_mut_bytes()[..part.len()].copy_from_slice(part));
            });
        }
    }

    /// Changes a chunk, which has blocks from then on.
    fn change(&self, group: &Group, chunk: usize, change: impl FnOnce(&mut [Block])) {
        let mut group = group.write();
        let chunks = Arc::make_mut(group.get_or_insert_with(|| Arc::new(vec![None; self.group as usize])));
        let blocks: &mut Vec<Block> = Arc::make_mut(chunks[chunk].get_or_insert_with(|| empty_chunk(self.chunk)));
        change(blocks);
    }

    fn fill(&self, start: u64, buf: &mut AlignedBuf) {
        let blocks = buf.as_blocks_mut();
        self.pieces(start, blocks.len() as u64, |group, chunk, within, done, count| {
            let to = &mut blocks[done..done + count];
            match group.read().as_deref().and_then(|chunks| chunks[chunk].as_deref()) {
                Some(from) => copy(to, &from[within..within + count]),
                None => to.fill(Block::ZERO),
            }
        });
    }

    fn store(&self, start: u64, buf: &AlignedBuf) {
        let blocks = buf.as_blocks();
        self.pieces(start, blocks.len() as u64, |group, chunk, within, done, count| {
            self.change(group, chunk, |to| copy(&mut to[within..within + count], &blocks[done..done + count]));
        });
    }

    /// The content of a block, without a request and its buffer; zeros behind the end of the device.
    #[must_use]
    pub fn block(&self, at: u64) -> Block {
        let mut block = Block::ZERO;
        if at >= self.info.blocks {
            return block;
        }
        self.pieces(at, 1, |group, chunk, within, _, _| {
            if let Some(from) = group.read().as_deref().and_then(|chunks| chunks[chunk].as_deref()) {
                block = from[within];
            }
        });
        block
    }

    /// Sets the content of a block, without a request and its buffer. Nothing is done behind the end of the device.
    pub fn set_block(&self, at: u64, block: &Block) {
        if at >= self.info.blocks {
            return;
        }
        self.pieces(at, 1, |group, chunk, within, _, _| self.change(group, chunk, |to| to[within] = *block));
    }

    fn punch(&self, start: u64, blocks: u64) {
        self.pieces(start, blocks, |group, chunk, within, _, count| {
            let mut group = group.write();
            let Some(chunks) = &mut *group else { return };
            // Blocks that read as zeros already are left as they are, and shared.
            if chunks[chunk].is_none() {
                return;
            }
            let chunk = &mut Arc::make_mut(chunks)[chunk];
            if count as u64 == self.chunk {
                *chunk = None;
            } else if let Some(to) = chunk {
                Arc::make_mut(to)[within..within + count].fill(Block::ZERO);
            }
        });
    }

    fn run(&self, request: &mut Request) -> Result<(), DeviceError> {
        self.info.check(request)?;
        let mut at = request.start;
        for buf in &mut request.bufs {
            match request.op {
                Op::Read => self.fill(at, buf),
                Op::Write | Op::WriteFua => self.store(at, buf),
                Op::Discard { .. } => {}
            }
            at += buf.blocks() as u64;
        }
        if let Op::Discard { blocks } = request.op {
            self.punch(request.start, blocks);
        }
        Ok(())
    }
}

/// Copies blocks, one by one: the C library copies more than a block by an instruction that is as fast on a processor, and
/// that an emulated one does byte by byte.
fn copy(to: &mut [Block], from: &[Block]) {
    // The compiler would make one copy of all of them.
    #[inline(never)]
    fn one(to: &mut Block, from: &Block) {
        *to = *from;
    }
    to.iter_mut().zip(from).for_each(|(to, from)| one(to, from));
}

fn empty_chunk(blocks: u64) -> Arc<Vec<Block>> {
    Arc::new(AlignedBuf::new(blocks as usize).into())
}

impl BlockDevice for MemoryDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn execute(&self, mut request: Request) -> Completion {
        let result = self.run(&mut request);
        Completion { request, result }
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        self.info.check_range(Operation::Read, start, buf.blocks() as u64)?;
        self.fill(start, buf);
        Ok(())
    }

    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        self.info.check_operation(Operation::Write, start, buf.blocks() as u64)?;
        self.store(start, buf);
        Ok(())
    }

    fn is_immediate(&self) -> bool {
        true
    }

    fn flushes_at_once(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
