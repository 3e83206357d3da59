//! One queue's work: requests from a [`Channel`], through the device, and their results back. Safe code, which knows no
//! kernel: tests give it a channel of their own.
//!
//! ```text
//!  arrive (one kernel entry: results out, requests in)
//!     |                                                        device's queue
//!     +-- read, write, discard ---> push ... push, submit --------------+
//!     +-- flush, zones, zeros ----> done here ---> commit               |
//!     ^                                                                 |
//!     +------------------------- commit <--- completions ---------------+
//! ```
//!
//! A round takes all requests that have come, gives them to the device at once, and takes the finished ones. It sleeps
//! in the channel if the device has nothing, until enough have come for one entry (`gather.rs`), and in the device
//! otherwise: then a request that comes meanwhile waits for the next completion.
//!
//! No locks and no shared state: a worker belongs to its thread.

use std::io;

use f2fs_device::{AlignedBuf, Completion, DeviceErrorKind, IoQueue, Op, Request};
use zerocopy::IntoBytes;

use crate::{
    Backend, QueueCounts, ZonedBlockDevice,
    abi::{Descriptor, SECTORS, ZoneRecord, errno},
    backend::Shape,
    gather::{Gather, Wish},
    translate::{Work, error_number, translate, zone_error_number},
    zone_record::record,
};

/// Where requests come from and their results go. A tag is with the worker from [`arrive`](Self::arrive) to
/// [`commit`](Self::commit).
pub(crate) trait Channel {
    /// Hands over the committed answers, and appends the tags that have a request to `arrived`. Sleeps until there is what
    /// is wished for, or until the channel has ended, or for no reason.
    fn arrive(&mut self, wish: Wish, arrived: &mut Vec<u16>) -> io::Result<()>;
    /// Whether no more requests will come.
    fn has_ended(&self) -> bool;
    /// The request of a tag. It is read once: its memory is not ours.
    fn descriptor(&self, tag: u16) -> Descriptor;
    /// Memory of `blocks` blocks for a tag: the data of a write, or room for a read.
    fn take(&mut self, tag: u16, blocks: usize) -> AlignedBuf;
    /// Fills `buf` with the data of a write, where `take` has not done that.
    fn fetch(&mut self, tag: u16, buf: &mut AlignedBuf) -> io::Result<()>;
    /// Hands the data of a read over, where `commit` does not do that.
    fn deliver(&mut self, tag: u16, bytes: &[u8]) -> io::Result<()>;
    /// Takes the memory of a tag back.
    fn give_back(&mut self, tag: u16, buf: AlignedBuf);
    /// The tag's request is over: bytes, or a negative error number. `sector` is where an append went to.
    fn commit(&mut self, tag: u16, result: i32, sector: u64);
}

/// Zeros that are written at a time (blocks).
const ZEROS: u64 = 256;

/// The worker of one queue.
pub(crate) struct Worker<'a, C> {
    channel: C,
    backend: &'a Backend,
    queue: Box<dyn IoQueue + 'a>,
    shape: Shape,
    gather: Gather,
    counts: QueueCounts,
}

impl<'a, C: Channel> Worker<'a, C> {
    pub(crate) fn new(channel: C, backend: &'a Backend, depth: u16, max_io_bytes: u32) -> Self {
        let queue = backend.device().queue(depth.into());
        let (shape, gather) = (backend.shape(max_io_bytes), Gather::new(depth));
        Self { channel, backend, queue, shape, gather, counts: QueueCounts::default() }
    }

    /// Works until the channel ends.
    pub(crate) fn run(mut self) -> io::Result<QueueCounts> {
        let mut arrived = Vec::new();
        loop {
            arrived.clear();
            let wish = if self.queue.in_flight() == 0 { self.gather.wish() } else { Wish::NOTHING };
            self.channel.arrive(wish, &mut arrived)?;
            if wish != Wish::NOTHING {
                self.gather.came(wish.requests, arrived.len());
            }
            self.counts.entries += 1;
            let mut answered = false;
            for &tag in &arrived {
                self.counts.requests += 1;
                answered |= self.begin(tag);
            }
            self.queue.submit();
            if self.queue.in_flight() == 0 && arrived.is_empty() && self.channel.has_ended() {
                return Ok(self.counts);
            }
            // Requests that are answered already are handed over before anything is waited for.
            let first = if answered { self.queue.try_completion() } else { self.queue.next_completion() };
            let mut next = first;
            while let Some(completion) = next {
                self.finish(completion);
                next = self.queue.try_completion();
            }
        }
    }

    /// Begins a request; whether it is over already.
    fn begin(&mut self, tag: u16) -> bool {
        let descriptor = self.channel.descriptor(tag);
        let answer = match translate(&descriptor, &self.shape) {
            Ok(Work::Read { start, blocks }) => {
                let buf = self.channel.take(tag, blocks as usize);
                self.queue.push(Request::read(start, buf).with_tag(tag.into()));
                return false;
            }
            Ok(Work::Write { start, blocks, fua }) => match self.written(tag, blocks) {
                Ok(buf) => {
                    let op = if fua { Op::WriteFua } else { Op::Write };
                    self.queue.push(Request::vectored(op, start, vec![buf]).with_tag(tag.into()));
                    return false;
                }
                Err(error) => Err(error),
            },
            Ok(Work::Discard { start, blocks }) => {
                self.queue.push(Request::discard(start, blocks).with_tag(tag.into()));
                return false;
            }
            Ok(Work::Flush) => {
                self.backend.device().flush().map(|()| (0, 0)).map_err(|error| error_number(&error.kind))
            }
            Ok(Work::Zeroes { start, blocks }) => self.zeroes(start, blocks).map(|()| (0, 0)),
            Ok(other) => match self.backend.zoned() {
                Some(zoned) => self.zone(tag, zoned, other),
                None => Err(errno::EOPNOTSUPP),
            },
            Err(number) => Err(number),
        };
        match answer {
            Ok((bytes, sector)) => self.channel.commit(tag, bytes, sector),
            Err(number) => {
                self.counts.failed += 1;
                self.channel.commit(tag, -number, 0);
            }
        }
        true
    }

    /// The data of a write.
    fn written(&mut self, tag: u16, blocks: u64) -> Result<AlignedBuf, i32> {
        let mut buf = self.channel.take(tag, blocks as usize);
        match self.channel.fetch(tag, &mut buf) {
            Ok(()) => Ok(buf),
            Err(error) => {
                self.channel.give_back(tag, buf);
                Err(number_of(&error))
            }
        }
    }

    fn zeroes(&mut self, start: u64, blocks: u64) -> Result<(), i32> {
        let end = start + blocks;
        let mut zeros = AlignedBuf::new(blocks.min(ZEROS) as usize);
        let mut at = start;
        while at < end {
            let now = (end - at).min(ZEROS);
            zeros.resize(now as usize);
            self.backend.device().write_from(at, &mut zeros).map_err(|error| error_number(&error.kind))?;
            at += now;
        }
        Ok(())
    }

    /// Does the requests that only a zoned device has: bytes, and the sector of an append.
    fn zone(&mut self, tag: u16, zoned: &dyn ZonedBlockDevice, work: Work) -> Result<(i32, u64), i32> {
        match work {
            Work::Change { zone, change } => {
                zoned.change(zone, change).map(|()| (0, 0)).map_err(|error| zone_error_number(&error))
            }
            Work::ResetAll => {
                zoned.reset_all();
                Ok((0, 0))
            }
            Work::Append { zone, blocks } => {
                let buf = self.written(tag, blocks)?;
                let at = zoned.append(zone, buf).map_err(|error| error_number(&error.kind))?;
                Ok(((blocks * 4096) as i32, at * SECTORS))
            }
            Work::Report { first, zones } => {
                // A record of no length ends a report that is shorter than the kernel's memory, which holds zeros.
                let records: Result<Vec<ZoneRecord>, _> =
                    (first..first + zones).map(|zone| zoned.zone(zone).map(|zone| record(&zone))).collect();
                let records = records.map_err(|error| zone_error_number(&error))?;
                self.channel.deliver(tag, records.as_bytes()).map_err(|error| number_of(&error))?;
                // All of the kernel's memory, whose size it does not tell; it takes no more than that. With less, it
                // asks again.
                Ok(((self.shape.max_blocks * 4096) as i32, 0))
            }
            _ => Err(errno::EOPNOTSUPP),
        }
    }

    fn finish(&mut self, completion: Completion) {
        let Completion { mut request, result } = completion;
        let (tag, bytes) = (request.tag as u16, request.blocks() * 4096);
        let mut result = result.map_err(|error| error_number(&error.kind));
        let buf = request.bufs.pop();
        if let (Op::Read, Ok(()), Some(buf)) = (request.op, &result, &buf) {
            result = self.channel.deliver(tag, buf.as_bytes()).map_err(|error| number_of(&error));
        }
        if let Some(buf) = buf {
            self.channel.give_back(tag, buf);
        }
        let transferred = if matches!(request.op, Op::Discard { .. }) { 0 } else { bytes as i32 };
        match result {
            Ok(()) => self.channel.commit(tag, transferred, 0),
            Err(number) => {
                self.counts.failed += 1;
                self.channel.commit(tag, -number, 0);
            }
        }
    }
}

/// The error number of an error of a channel.
fn number_of(error: &io::Error) -> i32 {
    error_number(&DeviceErrorKind::from(error))
}

#[cfg(test)]
mod tests;
