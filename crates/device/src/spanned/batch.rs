//! Requests of a batch on their way to several devices: the part of the batch that each device has, and how a request
//! that was split becomes one again.

use std::collections::VecDeque;

use f2fs_sync::Arc;

use super::{Part, SpannedDevice};
use crate::{AlignedBuf, BLOCK_SIZE, Completion, DeviceError, FlushGate, Op, Pending, Request, Ticket};

/// Where the completion of a device's request belongs.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// It is the request of this number in the batch.
    Whole(usize),
    /// It is a piece of this split request, begins at this block of it, and has so many.
    Piece { split: usize, at: u64, blocks: u64 },
}

/// A request that goes to more than one device.
#[derive(Debug)]
struct Split {
    /// Its number in the batch.
    index: usize,
    request: Request,
    /// Pieces that are on their way.
    left: usize,
    /// The first error of a piece.
    result: Result<(), DeviceError>,
}

/// One device's part of a batch.
#[derive(Debug)]
struct Share {
    ticket: Ticket,
    places: Vec<Place>,
    /// The number of the device's first block in the whole.
    start: u64,
    gate: Arc<FlushGate>,
}

/// A batch that is with the devices.
#[derive(Debug)]
struct Spread {
    shares: Vec<Share>,
    splits: Vec<Split>,
}

/// Sends a batch to the devices.
pub(super) fn submit(device: &SpannedDevice, requests: Vec<Request>) -> Ticket {
    let total = requests.len();
    let mut shares: Vec<(Vec<Request>, Vec<Place>)> = device.parts.iter().map(|_| Default::default()).collect();
    let (mut over, mut splits) = (Vec::new(), Vec::new());
    for (index, mut request) in requests.into_iter().enumerate() {
        if let Err(error) = device.admit(&request) {
            over.push((index, Completion { request, result: Err(error) }));
        } else if let Some(part) = device.only_part(&request) {
            request.start -= device.parts[part].start;
            shares[part].0.push(request);
            shares[part].1.push(Place::Whole(index));
        } else {
            let (end, mut at, mut left) = (request.start + request.blocks(), request.start, 0);
            while at < end {
                let part = device.part_of(at);
                let stop = device.parts[part].end.min(end);
                shares[part].0.push(piece(&request, at..stop, device.parts[part].start));
                shares[part].1.push(Place::Piece { split: splits.len(), at: at - request.start, blocks: stop - at });
                (at, left) = (stop, left + 1);
            }
            splits.push(Split { index, request, left, result: Ok(()) });
        }
    }
    let send = |(part, (requests, places)): (&Part, (Vec<Request>, Vec<Place>))| {
        let ticket = part.device.submit(requests);
        Share { ticket, places, start: part.start, gate: part.gate.clone() }
    };
    let used = device.parts.iter().zip(shares).filter(|(_, (requests, _))| !requests.is_empty());
    let shares = used.map(send).collect();
    Ticket::pending(total, over, Box::new(Spread { shares, splits }))
}

/// The piece of a request that goes to the device whose first block is `start` in the whole.
fn piece(request: &Request, blocks: std::ops::Range<u64>, start: u64) -> Request {
    let count = blocks.end - blocks.start;
    let (op, bufs) = match request.op {
        Op::Discard { .. } => (Op::Discard { blocks: count }, Vec::new()),
        op => (op, vec![AlignedBuf::new(count as usize)]),
    };
    let mut piece = Request::vectored(op, blocks.start - start, bufs);
    if matches!(op, Op::Write | Op::WriteFua)
        && let Some(buf) = piece.bufs.first_mut()
    {
        let mut rest = buf.as_bytes_mut();
        for from in overlap(request, blocks.start - request.start, count) {
            let (now, later) = rest.split_at_mut(from.len());
            now.copy_from_slice(from);
            rest = later;
        }
    }
    piece
}

/// The memory of `count` blocks of a request from its block `at` on, buffer by buffer.
fn overlap(request: &Request, at: u64, count: u64) -> impl Iterator<Item = &[u8]> {
    let (from, to) = (at as usize * BLOCK_SIZE, (at + count) as usize * BLOCK_SIZE);
    let mut first = 0;
    request.bufs.iter().filter_map(move |buf| {
        let bytes = buf.as_bytes();
        let (begin, end) = (from.max(first), to.min(first + bytes.len()));
        let base = first;
        first += bytes.len();
        (begin < end).then(|| &bytes[begin - base..end - base])
    })
}

/// Copies what was read for the blocks from `at` on into a request's memory.
fn fill(request: &mut Request, at: u64, mut read: &[u8]) {
    let (from, mut first) = (at as usize * BLOCK_SIZE, 0);
    for buf in &mut request.bufs {
        let bytes = buf.as_bytes_mut();
        let base = first;
        first += bytes.len();
        if first > from && !read.is_empty() {
            let begin = from.saturating_sub(base);
            let (now, later) = read.split_at(read.len().min(bytes.len() - begin));
            bytes[begin..begin + now.len()].copy_from_slice(now);
            read = later;
        }
    }
}

impl Spread {
    /// Takes one finished request of a device.
    fn take(&mut self, share: usize, at: usize, completion: Completion, out: &mut VecDeque<(usize, Completion)>) {
        let share = &self.shares[share];
        let completion = Part::restored(share.start, &share.gate, completion);
        match share.places[at] {
            Place::Whole(index) => out.push_back((index, completion)),
            Place::Piece { split, at, blocks } => {
                let split = &mut self.splits[split];
                // Who sent the whole cannot see what a piece comes back with.
                let completion = completion.checked(blocks);
                split.left -= 1;
                match completion.result {
                    Err(error) if split.result.is_ok() => split.result = Err(error),
                    Ok(()) if split.request.op == Op::Read => {
                        completion.request.bufs.iter().for_each(|buf| fill(&mut split.request, at, buf.as_bytes()));
                    }
                    _ => {}
                }
                if split.left == 0 {
                    let request = std::mem::replace(&mut split.request, Request::discard(0, 0));
                    let result = std::mem::replace(&mut split.result, Ok(()));
                    out.push_back((split.index, Completion { request, result }));
                }
            }
        }
    }
}

impl Pending for Spread {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        loop {
            for share in 0..self.shares.len() {
                while let Some((at, completion)) = self.shares[share].ticket.try_any() {
                    self.take(share, at, completion, out);
                }
            }
            if !block || !out.is_empty() {
                return;
            }
            // A piece alone completes nothing: wait until something does, or nothing is left.
            let Some(share) = self.shares.iter().position(|share| share.ticket.remaining() > 0) else { return };
            match self.shares[share].ticket.wait_any() {
                Some((at, completion)) => self.take(share, at, completion, out),
                // A back end that lost a request: there is nothing to wait for.
                None => return,
            }
        }
    }
}
