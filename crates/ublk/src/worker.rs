//! One queue's work: requests from a [`Channel`], through the device, and their results back. Safe code, which knows no
//! kernel: tests give it a channel of their own.
//!
//! ```text
//!  arrive (one kernel entry: results and movements out, requests and what is moved in)
//!     |                                                        device's queue
//!     +-- read, write, discard ---> push ... push, submit --------------+
//!     +-- flush, zones, zeros ----> done here ---> commit               |
//!     +-- read, write of a file --> begin ---> moved, commit            |
//!     ^                                                                 |
//!     +------------------------- commit <--- completions ---------------+
//! ```
//!
//! A round takes all requests that have come, gives them to the device at once, and takes the finished ones. It sleeps
//! in the channel if the device has nothing, until enough have come for one entry (`gather.rs`), and in the device
//! otherwise: then a request that comes meanwhile waits for the next completion.
//!
//! A device that copies at once, as memory does, needs no queue. One that is a file is read and written by the channel
//! itself, with the entries into the kernel that it makes anyway. What does not go well there is done once more by the
//! device, which knows why. Where data are apart from the memory of a request, the channel fetches them before the
//! device writes, and delivers them after it has read. A request that lends its pages needs neither and no memory of ours:
//! the channel moves its data between them and the file, and may commit it then by itself; what fails goes the other way.
//!
//! No locks and no shared state: a worker belongs to its thread.

use std::io;

use f2fs_device::{AlignedBuf, Completion, DeviceError, DeviceErrorKind, IoQueue, Op, Operation, Request};
use zerocopy::IntoBytes;

use crate::{
    Backend, QueueCounts, ZonedBlockDevice,
    abi::{SECTORS, ZoneRecord, errno},
    backend::Shape,
    channel::{Channel, Event, Moved, Movement},
    gather::{Gather, Wish},
    translate::{Work, error_number, translate, zone_error_number},
    zone_record::record,
};

/// Zeros that are written at a time (blocks).
const ZEROS: u64 = 256;

/// The worker of one queue.
pub(crate) struct Worker<'a, C> {
    channel: C,
    backend: &'a Backend,
    queue: Box<dyn IoQueue + 'a>,
    /// The device does transfers at once, without the queue.
    is_immediate: bool,
    shape: Shape,
    gather: Gather,
    /// Of each tag whose data are fetched, the request.
    fetching: Vec<Option<Work>>,
    counts: QueueCounts,
}

/// An answer to a request: bytes, and the sector of an append; or an error number.
type Answer = Result<(i32, u64), i32>;

impl<'a, C: Channel> Worker<'a, C> {
    pub(crate) fn new(channel: C, backend: &'a Backend, depth: u16, max_io_bytes: u32) -> Self {
        let queue = backend.device().queue(depth.into());
        Self::with_queue(channel, backend, queue, depth, max_io_bytes)
    }

    /// The same with a queue of the device that was made before.
    pub(crate) fn with_queue(
        channel: C,
        backend: &'a Backend,
        queue: Box<dyn IoQueue + 'a>,
        depth: u16,
        max_io_bytes: u32,
    ) -> Self {
        let (shape, gather) = (backend.shape(max_io_bytes), Gather::new(depth, channel.tells_twice()));
        let (is_immediate, fetching) = (backend.device().is_immediate(), vec![None; depth.into()]);
        Self { channel, backend, queue, is_immediate, shape, gather, fetching, counts: QueueCounts::default() }
    }

    /// Works until the channel ends.
    pub(crate) fn run(mut self) -> io::Result<QueueCounts> {
        let mut events = Vec::new();
        loop {
            let wish = if self.queue.in_flight() == 0 { self.gather.wish() } else { Wish::NOTHING };
            self.channel.arrive(wish, &mut events)?;
            let came = events.len();
            if wish != Wish::NOTHING {
                self.gather.came(wish.requests, came);
            }
            self.counts.entries += 1;
            let pushed = self.queue.in_flight();
            for event in events.drain(..) {
                match event {
                    Event::Arrived(tag) => self.arrived(tag),
                    Event::Moved(moved) => self.moved(moved),
                }
            }
            self.queue.submit();
            if self.queue.in_flight() == 0 && came == 0 && self.channel.has_ended() {
                return Ok(self.counts);
            }
            // What the channel has to hand over is handed over before anything is waited for.
            let hands_over = came > self.queue.in_flight() - pushed;
            let first = if hands_over { self.queue.try_completion() } else { self.queue.next_completion() };
            let mut next = first;
            while let Some(completion) = next {
                self.finish(completion);
                next = self.queue.try_completion();
            }
        }
    }

    /// Begins a request.
    fn arrived(&mut self, tag: u16) {
        self.counts.requests += 1;
        let request = self.channel.descriptor(tag);
        let work = match translate(&request, &self.shape) {
            Ok(work) => work,
            Err(number) => return self.answer(tag, Err(number)),
        };
        match work {
            Work::Read { start, blocks } if self.has_file(Operation::Read) && self.channel.lends(&request) => {
                self.channel.begin(Movement::Fill { start, blocks }, tag, AlignedBuf::default());
            }
            Work::Write { start, blocks, fua: false }
                if self.has_file(Operation::Write) && self.channel.lends(&request) =>
            {
                self.channel.begin(Movement::Drain { start, blocks }, tag, AlignedBuf::default());
            }
            Work::Read { start, blocks } => {
                let buf = self.channel.take(tag, blocks as usize);
                self.read(tag, start, buf);
            }
            Work::Write { blocks, .. } | Work::Append { blocks, .. } => {
                if self.channel.is_apart() {
                    return self.fetch(tag, work, blocks);
                }
                let buf = self.channel.take(tag, blocks as usize);
                self.write(tag, work, buf);
            }
            Work::Discard { start, blocks } => {
                self.queue.push(Request::discard(start, blocks).with_tag(tag.into()));
            }
            Work::Flush => {
                let flushed = self.backend.device().flush();
                self.answer(tag, flushed.map(|()| (0, 0)).map_err(|error| error_number(&error.kind)));
            }
            Work::Zeroes { start, blocks } => {
                let written = self.zeroes(start, blocks);
                self.answer(tag, written.map(|()| (0, 0)));
            }
            other => {
                let answer = self.backend.zoned().ok_or(errno::EOPNOTSUPP);
                let answer = answer.and_then(|zoned| self.zone(tag, zoned, other));
                self.answer(tag, answer);
            }
        }
    }

    /// Fetches the data of a write that are apart.
    fn fetch(&mut self, tag: u16, work: Work, blocks: u64) {
        self.fetching[usize::from(tag)] = Some(work);
        let buf = self.channel.take(tag, blocks as usize);
        self.channel.begin(Movement::Fetch, tag, buf);
    }

    fn read(&mut self, tag: u16, start: u64, mut buf: AlignedBuf) {
        if self.has_file(Operation::Read) {
            return self.channel.begin(Movement::Read { start }, tag, buf);
        }
        if self.is_immediate {
            let result = self.backend.device().read_into(start, &mut buf);
            return self.transferred(tag, Op::Read, buf, result);
        }
        self.queue.push(Request::read(start, buf).with_tag(tag.into()));
    }

    /// Writes data that are here.
    fn write(&mut self, tag: u16, work: Work, mut buf: AlignedBuf) {
        match work {
            Work::Write { start, fua: false, .. } if self.has_file(Operation::Write) => {
                self.channel.begin(Movement::Write { start }, tag, buf);
            }
            Work::Write { start, fua: false, .. } if self.is_immediate => {
                let result = self.backend.device().write_from(start, &mut buf);
                self.transferred(tag, Op::Write, buf, result);
            }
            Work::Write { start, fua, .. } => {
                let op = if fua { Op::WriteFua } else { Op::Write };
                self.queue.push(Request::vectored(op, start, vec![buf]).with_tag(tag.into()));
            }
            Work::Append { zone, .. } => {
                let bytes = buf.len() as i32;
                let answer = self.backend.zoned().ok_or(errno::EOPNOTSUPP).and_then(|zoned| {
                    let at = zoned.append(zone, buf).map_err(|error| error_number(&error.kind))?;
                    Ok((bytes, at * SECTORS))
                });
                self.answer(tag, answer);
            }
            _ => self.answer(tag, Err(errno::EOPNOTSUPP)),
        }
    }

    /// Goes on where data have been moved.
    fn moved(&mut self, moved: Moved) {
        let Moved { tag, movement, buf, result } = moved;
        match (movement, result) {
            (Movement::Fetch, Ok(())) => match self.fetching[usize::from(tag)].take() {
                Some(work) => self.write(tag, work, buf),
                None => self.answer(tag, Err(errno::EIO)),
            },
            (Movement::Read { .. }, Ok(())) => self.transferred(tag, Op::Read, buf, Ok(())),
            (Movement::Fill { blocks, .. } | Movement::Drain { blocks, .. }, Ok(())) => {
                self.answer(tag, Ok(((blocks * 4096) as i32, 0)));
            }
            // Once more by memory of ours: the file may want it aligned otherwise, and the device knows why it fails.
            (Movement::Fill { start, blocks }, Err(_)) => {
                let buf = self.channel.take(tag, blocks as usize);
                self.queue.push(Request::read(start, buf).with_tag(tag.into()));
            }
            (Movement::Drain { start, blocks }, Err(_)) => {
                self.fetch(tag, Work::Write { start, blocks, fua: false }, blocks);
            }
            (Movement::Read { start }, Err(_)) => self.queue.push(Request::read(start, buf).with_tag(tag.into())),
            (Movement::Write { start }, Err(_)) => self.queue.push(Request::write(start, buf).with_tag(tag.into())),
            (_, result) => {
                let bytes = buf.len() as i32;
                self.channel.give_back(tag, buf);
                self.answer(tag, result.map(|()| (bytes, 0)));
            }
        }
    }

    /// Whether such a transfer can be one of the channel.
    fn has_file(&self, operation: Operation) -> bool {
        self.channel.has_file() && self.backend.device().file(operation).is_some()
    }

    fn answer(&mut self, tag: u16, answer: Answer) {
        let (result, sector) = answer.unwrap_or_else(|number| {
            self.counts.failed += 1;
            (-number, 0)
        });
        self.channel.commit(tag, result, sector);
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
    fn zone(&mut self, tag: u16, zoned: &dyn ZonedBlockDevice, work: Work) -> Answer {
        match work {
            Work::Change { zone, change } => {
                zoned.change(zone, change).map(|()| (0, 0)).map_err(|error| zone_error_number(&error))
            }
            Work::ResetAll => {
                zoned.reset_all();
                Ok((0, 0))
            }
            Work::Report { first, zones } => {
                // A record of no length ends a report that is shorter than the kernel's memory, which holds zeros.
                let records: Result<Vec<ZoneRecord>, _> =
                    (first..first + zones).map(|zone| zoned.zone(zone).map(|zone| record(&zone))).collect();
                let records = records.map_err(|error| zone_error_number(&error))?;
                self.channel.tell(tag, records.as_bytes()).map_err(|error| number_of(&error))?;
                // All of the kernel's memory, whose size it does not tell; it takes no more than that. With less, it
                // asks again.
                Ok(((self.shape.max_blocks * 4096) as i32, 0))
            }
            _ => Err(errno::EOPNOTSUPP),
        }
    }

    fn finish(&mut self, completion: Completion) {
        let Completion { mut request, result } = completion;
        let tag = request.tag as u16;
        match request.bufs.pop() {
            Some(buf) => self.transferred(tag, request.op, buf, result),
            None => self.answer(tag, result.map(|()| (0, 0)).map_err(|error| error_number(&error.kind))),
        }
    }

    /// The device has read or written the memory.
    fn transferred(&mut self, tag: u16, op: Op, buf: AlignedBuf, result: Result<(), DeviceError>) {
        let has_data = op == Op::Read && result.is_ok();
        if has_data && self.channel.is_apart() {
            return self.channel.begin(Movement::Deliver, tag, buf);
        }
        let bytes = buf.len() as i32;
        let is_its_own = self.channel.give_back(tag, buf);
        let result = result.map(|()| (bytes, 0)).map_err(|error| error_number(&error.kind));
        self.answer(tag, if has_data && !is_its_own { Err(errno::EIO) } else { result });
    }
}

/// The error number of an error of a channel.
fn number_of(error: &io::Error) -> i32 {
    error_number(&DeviceErrorKind::from(error))
}

#[cfg(test)]
mod tests;
