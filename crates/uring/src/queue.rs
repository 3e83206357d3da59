//! A ring for one thread, which keeps a queue depth busy.
//!
//! No locks: the ring belongs to the queue, and the queue to the thread that made it.

use std::{collections::VecDeque, fmt, marker::PhantomData, thread};

use f2fs_device::{AlignedBuf, Completion, IoQueue, Request};
use f2fs_sync::Arc;

use crate::carrier::Carrier;
use crate::{
    pool::Pool,
    ring::{self, Refused},
    table::Table,
    thread_ring::ThreadRing,
};

/// Entries of the ring of a queue at most; a deeper queue holds the rest back.
pub(crate) const MAX_ENTRIES: u32 = 4096;

/// A deep queue is told to the kernel in so many shares,
const SHARES: usize = 8;
/// but not in smaller ones: each costs a system call.
const LEAST_SHARE: usize = 4;

/// An [`IoQueue`] with a ring of its own.
pub(crate) struct RingQueue<C: Carrier> {
    ring: ThreadRing<C>,
    table: Table,
    /// After the ring, so that it is dropped after it.
    pool: Option<Pool>,
    carrier: Arc<C>,
    depth: usize,
    /// Requests pushed and not yet handed out.
    in_flight: usize,
    /// Requests pushed since the kernel was last told.
    untold: usize,
    /// How many of them the kernel is told of at once: preparing them takes as long as a fast device takes to serve
    /// some.
    share: usize,
    /// Whether a thread of the kernel takes them by itself.
    watched: bool,
    finished: VecDeque<Completion>,
    /// The ring was set up for one thread: not `Send`.
    this_thread: PhantomData<*const ()>,
}

impl<C: Carrier> fmt::Debug for RingQueue<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingQueue")
            .field("depth", &self.depth)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl<C: Carrier> RingQueue<C> {
    /// A queue with `ring`, which has the files of `carrier` registered and nothing in its queues; whether it is
    /// `watched` by a thread of the kernel.
    pub(crate) fn new(ring: ThreadRing<C>, carrier: Arc<C>, depth: usize, watched: bool) -> Self {
        let table = Table::new(ring.params());
        Self {
            ring,
            table,
            pool: None,
            carrier,
            depth: depth.max(1),
            in_flight: 0,
            untold: 0,
            // That thread sees each one at once.
            share: if watched { 1 } else { (depth / SHARES).max(LEAST_SHARE) },
            watched,
            finished: VecDeque::new(),
            this_thread: PhantomData,
        }
    }

    fn drain(&mut self) {
        self.table.drain(&self.ring, &*self.carrier, Some(&mut self.finished));
    }

    /// Sleeps until at least one more request is finished, if any is not.
    fn reap(&mut self) {
        let before = self.finished.len();
        while self.finished.len() == before && !self.table.is_idle() {
            if self.table.is_refused() {
                thread::sleep(ring::PAUSE);
            } else {
                self.table.fill(&self.ring, &*self.carrier);
                self.untold = 0;
                let entered = ring::submit_and_sleep(&self.ring);
                self.unless_refused(entered);
            }
            self.drain();
        }
    }

    /// Leaves the ring for good if the kernel has refused it.
    fn unless_refused(&mut self, entered: Result<(), Refused>) {
        if let Err(refused) = entered {
            self.ring.close_afterwards();
            self.table.refuse(&self.ring, &*self.carrier, refused, Some(&mut self.finished));
        }
    }

    fn hand_out(&mut self) -> Option<Completion> {
        let completion = self.finished.pop_front()?;
        self.in_flight -= 1;
        Some(completion)
    }
}

impl<C: Carrier> IoQueue for RingQueue<C> {
    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn buffers(&mut self, count: usize, blocks: usize) -> Vec<AlignedBuf> {
        if self.pool.is_none() {
            // Without the right to pin so much, plain buffers do as well.
            self.pool = Pool::register(&self.ring, count, blocks).ok();
            self.ring.close_afterwards();
        }
        let registered = || self.pool.as_ref().and_then(|pool| pool.take(blocks));
        (0..count).map(|_| registered().unwrap_or_else(|| AlignedBuf::new(blocks))).collect()
    }

    fn ready(&self) -> usize {
        self.finished.len()
    }

    fn push(&mut self, mut request: Request) {
        self.in_flight += 1;
        if let Err(error) = self.carrier.admit(&request) {
            self.finished.push_back(Completion { request, result: Err(error) });
            return;
        }
        if request.blocks() == 0 || self.carrier.needs_call(request.op) || self.table.is_refused() {
            let result = self.carrier.run(&mut request);
            self.finished.push_back(Completion { request, result });
            return;
        }
        while self.in_flight - self.finished.len() > self.depth {
            self.reap();
        }
        let registered = match (&self.pool, &request.bufs[..]) {
            (Some(pool), [buf]) => pool.index(buf),
            _ => None,
        };
        self.table.start(request, registered);
        if self.table.is_refused() {
            // By the `reap` above.
            return self.drain();
        }
        self.untold += 1;
        if self.untold >= self.share && self.share < self.depth {
            self.submit();
        }
    }

    fn submit(&mut self) {
        self.untold = 0;
        let mut pushed = self.table.fill(&self.ring, &*self.carrier);
        if self.watched {
            // The thread takes them when it gets a processor, which may be the one that would look for that here.
            if pushed > 0 {
                let entered = ring::wake(&self.ring);
                self.unless_refused(entered);
            }
            return;
        }
        while pushed > 0 {
            let entered = ring::submit(&self.ring, pushed);
            self.unless_refused(entered);
            pushed = self.table.fill(&self.ring, &*self.carrier);
        }
    }

    fn next_completion(&mut self) -> Option<Completion> {
        if self.finished.is_empty() {
            self.reap();
        } else if self.untold * 2 >= self.depth {
            // Many are finished; do not let the device run dry while the caller looks at them.
            self.submit();
        }
        self.hand_out()
    }

    fn try_completion(&mut self) -> Option<Completion> {
        self.submit();
        if self.finished.is_empty() && !self.table.is_idle() {
            if !self.watched && !self.table.is_refused() {
                let entered = ring::run_completions(&self.ring);
                self.unless_refused(entered);
            }
            self.drain();
        }
        self.hand_out()
    }
}

impl<C: Carrier> Drop for RingQueue<C> {
    fn drop(&mut self) {
        // The memory of a request is the kernel's until it is over or given up.
        while !self.table.is_idle() {
            self.reap();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests;
