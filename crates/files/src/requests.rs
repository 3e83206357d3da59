//! Requests for short reads, used again and again: a mapped read of a few blocks allocates nothing.
//!
//! # Locking
//!
//! One mutex a processor, held to take or put back one request, last in every order.

use f2fs_device::{AlignedBuf, Request};
use f2fs_sync::{Mutex, PerCore};

/// Blocks of a read that comes from here at most: 64 KiB.
pub(crate) const LONGEST: u64 = 16;
/// Requests that a processor keeps.
const KEPT: usize = 8;

/// The requests that wait for a use.
#[derive(Debug)]
pub(crate) struct Requests {
    waiting: PerCore<Mutex<Vec<Request>>>,
}

impl Requests {
    pub(crate) fn new() -> Requests {
        Requests { waiting: PerCore::new(|_| Mutex::new(Vec::with_capacity(KEPT))) }
    }

    /// A read of `blocks` (at most [`LONGEST`]) from `start`; its buffer holds whatever an earlier one left.
    pub(crate) fn read(&self, start: u64, blocks: u64) -> Request {
        let waiting = self.waiting.slot().lock().pop();
        let mut request = waiting.unwrap_or_else(|| Request::read(0, AlignedBuf::new(LONGEST as usize)));
        request.start = start;
        if let Some(buf) = request.bufs.first_mut() {
            buf.resize(blocks as usize);
        }
        request
    }

    /// Keeps a request for later.
    pub(crate) fn put_back(&self, request: Request) {
        let mut waiting = self.waiting.slot().lock();
        if waiting.len() < KEPT && request.bufs.len() == 1 {
            waiting.push(request);
        }
    }
}
