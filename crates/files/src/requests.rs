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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn kept(requests: &Requests) -> usize {
        requests.waiting.iter().map(|waiting| waiting.lock().len()).sum()
    }

    #[test]
    fn few_are_kept_and_they_are_used_again() {
        // The thread may go to another processor in between.
        let used_again = || {
            let requests = Requests::new();
            for (start, blocks) in [(77, 3), (5, LONGEST), (0, 1)] {
                let read = requests.read(start, blocks);
                assert_eq!((read.start, read.bufs.len(), read.bufs[0].blocks() as u64), (start, 1, blocks));
                requests.put_back(read);
                assert_ne!(kept(&requests), 0);
            }
            kept(&requests) == 1
        };
        assert!((0..100).any(|_| used_again()));
        let requests = Requests::new();
        for _ in 0..(KEPT + 1) * requests.waiting.slots() {
            requests.put_back(Request::read(0, AlignedBuf::new(1)));
        }
        assert!(requests.waiting.iter().all(|waiting| waiting.lock().len() <= KEPT));
        assert!(requests.waiting.iter().any(|waiting| waiting.lock().len() == KEPT));
    }

    /// What comes back without its memory, or with other memory, is of no use.
    #[test]
    fn a_request_that_is_not_as_it_was_is_not_kept() {
        let requests = Requests::new();
        let mut read = requests.read(0, 1);
        read.bufs.push(AlignedBuf::new(1));
        requests.put_back(read);
        let mut read = requests.read(0, 1);
        read.bufs.clear();
        requests.put_back(read);
        assert_eq!(kept(&requests), 0);
    }
}
