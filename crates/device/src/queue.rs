//! A queue of requests from one thread, with a bounded number in flight.

use std::{collections::VecDeque, fmt, mem};

use crate::{AlignedBuf, BlockDevice, Completion, Request, Ticket};

/// A stream of requests from one thread, with a bounded number in flight.
///
/// It belongs to the thread that made it (it is not `Send`), so that a back end needs no lock for it. Completions come
/// in the order in which the requests finish and bring the buffers back for the next request: a steady stream allocates
/// nothing.
///
/// ```
/// use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, Request};
///
/// let device = MemoryDevice::new(1024);
/// let mut queue = device.queue(32);
/// let mut next = 0..1024;
/// for start in next.by_ref().take(32) {
///     queue.push(Request::read(start, AlignedBuf::new(1)));
/// }
/// let mut done = 0;
/// while let Some(completion) = queue.next_completion() {
///     completion.result.unwrap();
///     done += 1;
///     if let Some(start) = next.next() {
///         queue.push(Request { start, ..completion.request });
///     }
/// }
/// assert_eq!(done, 1024);
/// ```
///
/// Dropping a queue is safe at any time; a back end may wait for the requests in flight.
pub trait IoQueue: fmt::Debug {
    /// How many requests may be in flight.
    fn depth(&self) -> usize;

    /// How many requests were pushed whose completions have not been taken.
    fn in_flight(&self) -> usize;

    /// `count` zeroed buffers of `blocks` blocks in memory that the queue transfers to and from with the least effort.
    /// They are like any others, here and elsewhere; large ones gain most. Best asked for once, before the first
    /// request.
    fn buffers(&mut self, count: usize, blocks: usize) -> Vec<AlignedBuf> {
        (0..count).map(|_| AlignedBuf::new(blocks)).collect()
    }

    /// How many completions can be taken at once, without asking the device.
    fn ready(&self) -> usize;

    /// Adds a request. It reaches the device at the latest with the next [`submit`](Self::submit), or when
    /// [`next_completion`](Self::next_completion) has to wait. When the queue is full this waits for a completion,
    /// which is kept.
    fn push(&mut self, request: Request);

    /// Sends everything pushed to the device, without waiting.
    fn submit(&mut self);

    /// Takes one completion and waits for it if need be; `None` when nothing is in flight.
    fn next_completion(&mut self) -> Option<Completion>;

    /// Takes one completion if there is one already.
    fn try_completion(&mut self) -> Option<Completion>;
}

/// An [`IoQueue`] made of tickets: what a device without queues of its own offers.
#[derive(Debug)]
pub struct TicketQueue<'a, D: BlockDevice + ?Sized> {
    device: &'a D,
    depth: usize,
    in_flight: usize,
    pushed: Vec<Request>,
    /// Batches, each with the number of its requests.
    tickets: VecDeque<(Ticket, usize)>,
    finished: VecDeque<Completion>,
}

impl<'a, D: BlockDevice + ?Sized> TicketQueue<'a, D> {
    /// A queue of `depth` (at least 1) on `device`.
    #[must_use]
    pub fn new(device: &'a D, depth: usize) -> Self {
        Self {
            device,
            depth: depth.max(1),
            in_flight: 0,
            pushed: Vec::new(),
            tickets: VecDeque::new(),
            finished: VecDeque::new(),
        }
    }

    /// Moves what is over to `finished`; with `block`, waits for one more.
    fn collect(&mut self, block: bool) {
        let before = self.finished.len();
        self.tickets.retain_mut(|(ticket, requests)| {
            while let Some((index, completion)) = ticket.try_any() {
                // A device that answers what nobody asked is not listened to.
                if index < *requests {
                    self.finished.push_back(completion);
                }
            }
            ticket.remaining() > 0
        });
        if block
            && self.finished.len() == before
            && let Some((ticket, requests)) = self.tickets.front_mut()
            && let Some((_, completion)) = ticket.wait_any().filter(|(index, _)| index < requests)
        {
            self.finished.push_back(completion);
        }
    }
}

impl<D: BlockDevice + ?Sized> IoQueue for TicketQueue<'_, D> {
    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn ready(&self) -> usize {
        self.finished.len()
    }

    fn push(&mut self, request: Request) {
        while self.in_flight - self.finished.len() >= self.depth {
            self.submit();
            let finished = self.finished.len();
            self.collect(true);
            if self.finished.len() == finished {
                // The device lost what is missing.
                break;
            }
        }
        self.pushed.push(request);
        self.in_flight += 1;
    }

    fn submit(&mut self) {
        if !self.pushed.is_empty() {
            let requests = self.pushed.len();
            self.tickets.push_back((self.device.submit(mem::take(&mut self.pushed)), requests));
        }
    }

    fn next_completion(&mut self) -> Option<Completion> {
        self.submit();
        if self.finished.is_empty() {
            self.collect(true);
        }
        let completion = self.finished.pop_front()?;
        self.in_flight -= 1;
        Some(completion)
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.submit();
        if self.finished.is_empty() {
            self.collect(false);
        }
        let completion = self.finished.pop_front()?;
        self.in_flight -= 1;
        Some(completion)
    }
}
