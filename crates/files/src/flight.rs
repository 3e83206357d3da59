//! Pieces of a file on their way to the device: what a write has begun, and how it ends.
//!
//! ```text
//!   start_write ──► in flight ──┬── finish_write ──► the file has the new blocks
//!   (nothing is left            │        └─ an error of the device ──► the file is as before, the blocks are free again
//!    behind if it fails)        ├── abandon_write ──► the file is as before, the blocks are free again
//!                               └── into_arrival ──► a sync waits for it (`f2fs_volume::Arrival`)
//! ```
//!
//! A flight that is dropped otherwise leaks its blocks until the volume is opened again; nobody does.

mod source;

use f2fs_device::{AlignedBuf, BlockDevice, DeviceError, Request, Ticket};
use f2fs_format::inode::Inode as RawInode;
use f2fs_format::summary::Summary;
use f2fs_format::{BLOCK_SIZE, BlockAddr};
use f2fs_sync::Arc;
use f2fs_volume::{Arrival, Op, Run, Slots};

use crate::FsError;
use crate::block_map::{Slot, ensure_slot};
use crate::content::Content;
use crate::filesystem::Core;
use crate::inode::Inode;
use crate::read::{PIECE, blocks_of};
use crate::stat::{self, Time};
use crate::truncate::drop_extent;

pub(crate) use source::Piece;
use source::{Edge, Source};

const BLOCK: u64 = BLOCK_SIZE as u64;
/// Blocks of a request that is better sent with those of others than at once, at most: a request costs as much as so many.
const SHORT: u64 = 16;

/// Slots of one node that follow each other.
#[derive(Debug)]
struct Place {
    slot: Slot,
    /// The file block of the first slot.
    block: u64,
    len: usize,
}

/// Pieces on their way. The range of each is the caller's alone until the end.
#[derive(Debug)]
#[must_use = "a flight has to be finished or abandoned"]
pub(crate) struct Flight {
    places: Vec<Place>,
    runs: Vec<Run>,
    /// Slots that were holes.
    new_blocks: u64,
    /// Bytes in all pieces.
    bytes: usize,
    /// Where the last of them ends in the file.
    end: u64,
    tickets: Vec<Ticket>,
    /// The only request, if it need not go off at once.
    late: Option<Request>,
}

impl Flight {
    /// Bytes that it writes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// On its way with a sync, which waits for it.
    pub(crate) fn into_arrival(self, inode: &Arc<Inode>, core: &Core) -> Arrival {
        let slots = self.places.into_iter().map(|Place { slot: Slot { node, index }, len, .. }| Slots {
            node,
            first: index,
            len,
        });
        let (end, now, mut before) = (self.end, core.now(), u64::MAX);
        let file = inode.clone();
        let requests = (self.tickets, self.late);
        Arrival::new(&inode.node, (slots.collect(), self.runs), requests, self.new_blocks, move |raw, done| {
            let size = raw.i_size.get();
            if done {
                before = size;
                wrote(&file, raw, end, now);
            } else if before < end && size == end {
                // Nobody wrote behind it meanwhile.
                file.set_size(raw, before);
            }
        })
    }

    /// Slots, with the block of the file that the first of them has, and how many there are.
    pub(crate) fn places(&self) -> Vec<(Slot, u64, usize)> {
        self.places.iter().map(|place| (place.slot.clone(), place.block, place.len)).collect()
    }

    /// Waits for the device.
    fn land(&mut self, device: &dyn BlockDevice) -> Result<(), DeviceError> {
        let mut result = self.late.take().map_or(Ok(()), |request| device.execute(request).result);
        for mut ticket in self.tickets.drain(..) {
            while let Some((_, completion)) = ticket.wait_any() {
                result = result.and(completion.result);
            }
        }
        result
    }
}

/// What the caller does while a flight is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Something else: the requests go off at once.
    Other,
    /// Nothing, it finishes the flight: the only request is sent when it is waited for.
    Finish,
    /// It hands the flight to a sync: the only request, if it is short, goes together with those of others.
    Sync,
}

impl Next {
    /// Whether what is written to these runs is one request that can wait.
    fn waits(self, runs: &[Run]) -> bool {
        let most = match self {
            Next::Other => 0,
            Next::Finish => PIECE,
            Next::Sync => SHORT,
        };
        matches!(runs, [run] if u64::from(run.len) <= most)
    }
}

impl Core {
    /// Begins to write pieces that have no block in common. The caller has their blocks exclusively. An error leaves nothing behind
    /// but empty nodes.
    pub(crate) fn start_write(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        pieces: &[Piece<'_>],
        next: Next,
    ) -> Result<Flight, FsError> {
        let features = self.volume.features();
        let mut flight = Flight {
            places: Vec::with_capacity(pieces.len() + 1),
            runs: Vec::new(),
            new_blocks: 0,
            bytes: 0,
            end: 0,
            tickets: Vec::new(),
            late: None,
        };
        let mut summaries = Vec::new();
        let mut edges = Vec::new();
        for piece in pieces {
            let (first, last) = blocks_of(piece.offset, piece.buf.len());
            let mut block = first;
            while block <= last {
                let slot = ensure_slot(op, &inode.node, block)?;
                let version = self.volume.node_version(slot.node.nid())?;
                let node = slot.node.read();
                let len = ((node.address_count(features) - slot.index) as u64).min(last - block + 1) as usize;
                for index in slot.index..slot.index + len {
                    let old = node.address(index, features).unwrap_or(BlockAddr::NULL);
                    flight.new_blocks += u64::from(old.is_null());
                    summaries.push(Summary::new(slot.node.nid(), version, index as u16));
                }
                // The first and the last block of the piece are those that it may have in part.
                let mut partial = [None; 2];
                for (edge, at) in partial.iter_mut().zip([first, last]) {
                    if (block..block + len as u64).contains(&at) && piece.is_partial(at) {
                        let old = node.address(slot.index + (at - block) as usize, features);
                        *edge = Some((at, old.unwrap_or(BlockAddr::NULL)));
                    }
                }
                drop(node);
                if partial[1].is_some() && partial[0].map(|(at, _)| at) == partial[1].map(|(at, _)| at) {
                    partial[1] = None;
                }
                for (at, old) in partial.into_iter().flatten() {
                    edges.push(Edge { block: at, data: self.edge(inode, content, *piece, at, old)? });
                }
                flight.places.push(Place { slot, block, len });
                block += len as u64;
            }
            flight.bytes += piece.buf.len();
            flight.end = flight.end.max(piece.offset + piece.buf.len() as u64);
        }
        self.volume.reserve(op, flight.new_blocks)?;
        let rewrites = match self.volume.allocate_data(op, self.log_for(inode), &summaries, &mut flight.runs) {
            Ok(rewrites) => rewrites,
            Err(error) => {
                self.volume.unreserve(op, flight.new_blocks);
                return Err(error.into());
            }
        };
        let mut source = Source::new(pieces, &edges);
        if !rewrites.is_empty() {
            // What lies between the runs is written once more, so that all of it is one request.
            let mut data = self.volume.recycler().take_stale(summaries.len());
            source.fill(&mut data);
            let requests = match self.volume.join_requests(op, &flight.runs, &rewrites, data) {
                Ok(requests) => requests,
                Err(error) => {
                    self.take_back(op, &flight)?;
                    return Err(error.into());
                }
            };
            requests.iter().for_each(|request| self.volume.count_request(request));
            flight.tickets.push(self.volume.device().submit(requests));
            return Ok(flight);
        }
        for run in &flight.runs {
            for done in (0..u64::from(run.len)).step_by(PIECE as usize) {
                let len = (u64::from(run.len) - done).min(PIECE) as usize;
                let mut data = self.volume.recycler().take_stale(len);
                source.fill(&mut data);
                let request = Request::write(u64::from(run.addr.offset(done as u32).0), data);
                self.volume.count_request(&request);
                if next.waits(&flight.runs) {
                    flight.late = Some(request);
                    continue;
                }
                // What is full goes off; the next part is copied meanwhile.
                flight.tickets.push(self.volume.device().submit(vec![request]));
            }
        }
        Ok(flight)
    }

    /// The block `at` as it is to be: what stands there (at `old`), with the piece's part of it.
    fn edge(
        &self,
        inode: &Inode,
        content: &Content,
        piece: Piece<'_>,
        at: u64,
        old: BlockAddr,
    ) -> Result<AlignedBuf, FsError> {
        let mut data = AlignedBuf::new(1);
        if old.is_real() {
            self.volume.read_data(inode.ino, old, &mut data)?;
        }
        let start = at * BLOCK;
        let bytes = data.as_bytes_mut();
        // What stands behind the end of the file may be stale: it must read as zeros if the file grows over it.
        let old_end = content.size().saturating_sub(start).min(BLOCK) as usize;
        bytes[old_end..].fill(0);
        let from = piece.offset.max(start);
        let to = (piece.offset + piece.buf.len() as u64).min(start + BLOCK);
        bytes[(from - start) as usize..(to - start) as usize]
            .copy_from_slice(&piece.buf[(from - piece.offset) as usize..(to - piece.offset) as usize]);
        Ok(data)
    }

    /// Waits for the device, and makes the new blocks those of the file.
    pub(crate) fn finish_write(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        content: &Content,
        mut flight: Flight,
    ) -> Result<(), FsError> {
        if let Err(error) = flight.land(self.volume.device()) {
            self.take_back(op, &flight)?;
            return Err(error.into());
        }
        let features = self.volume.features();
        let mut fresh = flight.runs.iter().flat_map(|run| (0..run.len).map(|i| run.addr.offset(i)));
        let mut old = Vec::new();
        for place in &flight.places {
            let mut node = place.slot.node.write(op);
            for at in 0..place.len {
                let index = place.slot.index + at;
                let addr = fresh.next().unwrap_or(BlockAddr::NULL);
                let before = node.address(index, features).unwrap_or(BlockAddr::NULL);
                node.set_address(index, addr, features);
                // With the page locked: see the rules of the cache.
                content.cache.store(place.block + at as u64, addr.0);
                if before.is_real() {
                    push_run(&mut old, before);
                }
            }
        }
        for run in old {
            self.volume.invalidate_run(op, run)?;
        }
        let mut node = inode.node.write(op);
        let raw = node.inode_mut();
        raw.i_blocks = (raw.i_blocks.get() + flight.new_blocks).into();
        wrote(inode, raw, flight.end, self.now());
        Ok(())
    }

    /// Waits for the device, and frees the blocks again.
    pub(crate) fn abandon_write(&self, op: &Op<'_>, mut flight: Flight) -> Result<(), FsError> {
        // Whatever the device says of blocks that nobody will read.
        let _ = flight.land(self.volume.device());
        self.take_back(op, &flight)
    }

    fn take_back(&self, op: &Op<'_>, flight: &Flight) -> Result<(), FsError> {
        self.volume.unreserve(op, flight.new_blocks);
        Ok(self.volume.return_data(op, &flight.runs)?)
    }
}

/// What a write that ended at byte `end` changes in the inode beside slots and `i_blocks`.
fn wrote(inode: &Inode, raw: &mut RawInode, end: u64, now: Time) {
    if end > raw.i_size.get() {
        inode.set_size(raw, end);
    }
    drop_extent(raw);
    stat::set_modified(raw, now);
    stat::set_changed(raw, now);
}

/// Adds a block to runs of consecutive ones.
fn push_run(runs: &mut Vec<Run>, addr: BlockAddr) {
    match runs.last_mut() {
        Some(run) if run.addr.offset(run.len) == addr => run.len += 1,
        _ => runs.push(Run { addr, len: 1 }),
    }
}
