//! How a flight of a file's data begins: slots, new addresses, requests.

use f2fs_device::{AlignedBuf, Request};
use f2fs_format::summary::Summary;
use f2fs_format::{BLOCK_BYTES, BlockAddr, LogType};
use f2fs_segment::Run;
use f2fs_sync::PlainArc;

use super::batch::Batch;
use super::requests::requests_for;
use super::source::{Edge, Piece, Source};
use super::{Flight, Keep, Place};
use crate::tree::{Slot, ensure_slot};
use crate::{Node, Op, Volume, VolumeError};

/// Blocks in one request at most: 512 KiB, so that the device has one while the next is copied.
const PIECE: u64 = 128;
/// The largest request, in blocks, that is better sent with those of other threads than at once: a request costs as
/// much as so many.
const SHORT: u64 = 16;

/// The target of a write.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The file.
    pub inode: &'a Node,
    /// Its size in bytes: what stands behind the end in the last block is not kept.
    pub size: u64,
    /// The log that its data goes to.
    pub log: LogType,
}

/// The caller's part while a flight is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Something else: the requests go off at once.
    Other,
    /// Nothing, it lands the flight: the only request is sent when it is waited for.
    Land,
    /// It hands the flight to a sync: the only request, if it is short, goes together with those of others.
    Sync,
}

impl Next {
    /// Whether the writes to these runs are one request that can wait.
    fn waits(self, runs: &[Run]) -> bool {
        let most = match self {
            Next::Other => 0,
            Next::Land => PIECE,
            Next::Sync => SHORT,
        };
        matches!(runs, [run] if u64::from(run.len) <= most)
    }
}

impl Flight {
    /// Begins to write pieces of a file that have no block in common. The caller has their blocks exclusively. Missing
    /// nodes are made, and blocks of which a piece has only a part are read.
    ///
    /// # Errors
    /// [`VolumeError::NoSpace`], [`VolumeError::NoNids`], [`VolumeError::Segment`] when no segment is free;
    /// [`VolumeError::Device`], [`VolumeError::Corrupt`]. Nothing is left behind but empty nodes.
    pub fn begin(op: &Op<'_>, target: Target<'_>, pieces: &[Piece<'_>], next: Next) -> Result<Flight, VolumeError> {
        let mut flight = Flight::new(pieces.len() + 1);
        let mut summaries = Vec::new();
        let mut edges = Vec::new();
        for piece in pieces {
            flight.find_places(op, target, *piece, &mut summaries, &mut edges)?;
        }
        let rewrites = flight.take(op, target.log, &summaries)?;
        flight.keep = keep(op, &rewrites);
        let mut source = Source::new(pieces, &edges);
        if rewrites.is_empty() {
            flight.send(op.volume, &mut source, next);
        } else {
            // The blocks between the runs are written once more, so that all of it is one request.
            let mut data = op.volume.recycler.take_stale(summaries.len());
            source.fill(&mut data);
            flight.send_all(op, &rewrites, data)?;
        }
        Ok(flight)
    }

    /// Begins to write `data` to one slot for each of its blocks; `new_blocks` of the slots were holes.
    ///
    /// # Errors
    /// As [`begin`](Self::begin); nothing is left behind.
    pub fn begin_blocks(
        op: &Op<'_>,
        log: LogType,
        slots: impl ExactSizeIterator<Item = Slot>,
        data: AlignedBuf,
        new_blocks: u64,
    ) -> Result<Flight, VolumeError> {
        let mut flight = Flight::new(1);
        flight.new_blocks = new_blocks;
        let mut summaries = Vec::with_capacity(slots.len());
        for (block, Slot { node, index }) in (0..).zip(slots) {
            summaries.push(Summary::new(node.nid(), op.volume.nodes().version(node.nid())?, index as u16));
            match flight.places.last_mut() {
                Some(place) if place.node.nid() == node.nid() && place.slots().end == index => place.len += 1,
                _ => flight.places.push(Place { node, first: index, len: 1, block }),
            }
        }
        let rewrites = flight.take(op, log, &summaries)?;
        flight.keep = keep(op, &rewrites);
        flight.send_all(op, &rewrites, data)?;
        Ok(flight)
    }

    /// Finds the slots of a piece, counts the holes among them, and reads the old content around its ends.
    fn find_places(
        &mut self,
        op: &Op<'_>,
        target: Target<'_>,
        piece: Piece<'_>,
        summaries: &mut Vec<Summary>,
        edges: &mut Vec<Edge>,
    ) -> Result<(), VolumeError> {
        let features = op.volume.features();
        let (first, last) = piece.blocks();
        let mut block = first;
        while block <= last {
            let Slot { node, index: slot } = ensure_slot(op, target.inode, block)?;
            let version = op.volume.nodes().version(node.nid())?;
            let page = node.read();
            let len = ((page.address_count(features) - slot) as u64).min(last - block + 1) as usize;
            for index in slot..slot + len {
                let old = page.address(index, features).unwrap_or(BlockAddr::NULL);
                self.new_blocks += u64::from(old.is_null());
                summaries.push(Summary::new(node.nid(), version, index as u16));
            }
            // The first and the last block of the piece are those that it may have in part.
            let mut partial = [None; 2];
            for (edge, at) in partial.iter_mut().zip([first, last]) {
                if (block..block + len as u64).contains(&at) && piece.is_partial(at) {
                    let old = page.address(slot + (at - block) as usize, features);
                    *edge = Some((at, old.unwrap_or(BlockAddr::NULL)));
                }
            }
            drop(page);
            if partial[1].is_some() && partial[0].map(|(at, _)| at) == partial[1].map(|(at, _)| at) {
                partial[1] = None;
            }
            for (at, old) in partial.into_iter().flatten() {
                edges.push(Edge { block: at, data: edge(op.volume, target, piece, at, old)? });
            }
            self.places.push(Place { node, first: slot, len, block });
            block += len as u64;
        }
        self.end = self.end.max(piece.end());
        Ok(())
    }

    /// Sends the blocks of the source, or keeps the only request of them. A full request goes off; the next part is
    /// copied meanwhile.
    fn send(&mut self, volume: &Volume, source: &mut Source<'_>, next: Next) {
        // Others' writes may wait for this one to be in front of them in its zone.
        let waits = !volume.zoning.is_zoned() && next.waits(&self.runs);
        for number in 0..self.runs.len() {
            let run = self.runs[number];
            for done in (0..u64::from(run.len)).step_by(PIECE as usize) {
                let len = (u64::from(run.len) - done).min(PIECE) as usize;
                let data = source.take(len, &volume.recycler);
                let request = Request::write(u64::from(run.addr.offset(done as u32).0), data);
                volume.written.user_request(request.blocks());
                let Some(request) = self.defer(volume, request) else { continue };
                if waits {
                    self.deferred = Some(request);
                } else {
                    self.batches.push(Batch::send(&*volume.device, vec![request]));
                }
            }
        }
    }

    /// Sends all blocks together, with what lies between them and is written once more.
    pub(super) fn send_all(&mut self, op: &Op<'_>, rewrites: &[Run], data: AlignedBuf) -> Result<(), VolumeError> {
        let requests = match requests_for(op.volume, &self.runs, rewrites, data) {
            Ok(requests) => requests,
            Err(error) => {
                self.take_back(op)?;
                return Err(error);
            }
        };
        requests.iter().for_each(|request| op.volume.written.user_request(request.blocks()));
        let requests: Vec<Request> =
            requests.into_iter().filter_map(|request| self.defer(op.volume, request)).collect();
        if !requests.is_empty() {
            self.batches.push(Batch::send(&*op.volume.device, requests));
        }
        Ok(())
    }

    /// Lets a request wait in front of the device, if it is one of a single file that a journal has the data of; gives it
    /// back if it has to be sent.
    fn defer(&mut self, volume: &Volume, request: Request) -> Option<Request> {
        let (mut files, keep) = (self.places.iter().map(|place| place.node.ino()), self.keep);
        let first = files.next();
        if keep != Keep::Data || files.any(|ino| Some(ino) != first) {
            return Some(request);
        }
        let request = PlainArc::new(request);
        if volume.attached_journal.defer(&request) {
            self.kept.push(request);
            return None;
        }
        Some(PlainArc::unwrap_or_clone(request))
    }
}

/// The data of a flight that a journal has to hold. A checkpoint makes its own blocks durable.
fn keep(op: &Op<'_>, rewrites: &[Run]) -> Keep {
    match op.volume.attached_journal.keeps_data() && !op.is_checkpoint {
        false => Keep::No,
        true if rewrites.is_empty() => Keep::Data,
        true => Keep::Mark,
    }
}

/// The block `at` as it is to be: the old content (at `old`), with the piece's part of it.
fn edge(
    volume: &Volume,
    target: Target<'_>,
    piece: Piece<'_>,
    at: u64,
    old: BlockAddr,
) -> Result<AlignedBuf, VolumeError> {
    let mut data = volume.recycler.take_stale(1);
    if old.is_real() {
        volume.data().read(target.inode.nid(), old, &mut data)?;
    } else {
        data.as_bytes_mut().fill(0);
    }
    let start = at * BLOCK_BYTES;
    let bytes = data.as_bytes_mut();
    // Bytes behind the end of the file may be stale: they must read as zeros if the file grows over them.
    let old_end = target.size.saturating_sub(start).min(BLOCK_BYTES) as usize;
    bytes[old_end..].fill(0);
    let (from, to) = (piece.offset.max(start), piece.end().min(start + BLOCK_BYTES));
    bytes[(from - start) as usize..(to - start) as usize]
        .copy_from_slice(&piece.buf[(from - piece.offset) as usize..(to - piece.offset) as usize]);
    Ok(data)
}
