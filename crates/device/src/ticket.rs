//! A batch of requests on its way.
//!
//! ```text
//!             submit                 wait, wait_any, try_any             every completion handed out
//!  requests ---------> in flight -----------------------------> partly finished ----------------------> empty
//!                          |                                          |
//!                          +------------- drop: the device keeps buffers and file until the end -------+
//! ```
//!
//! A drop by a panic waits for the end: the program may catch the panic and open the volume again on the same device,
//! and a request that was still on its way would come between its writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{collections::VecDeque, fmt, mem, thread};

use smallvec::{SmallVec, smallvec};

use crate::Completion;

/// Requests of a batch that take no memory of their own while it is waited for.
const FEW: usize = 64;
/// Completions that room is made for before they are there: what a back end says of their number need not be true.
const MOST: usize = 4096;

/// The back end's half of a [`Ticket`]: requests that were in flight when [`submit`](crate::BlockDevice::submit)
/// returned.
///
/// Dropping it abandons the requests: the back end keeps their buffers until the transfers are over, then frees them.
pub trait Pending: Send + fmt::Debug {
    /// Appends finished requests to `out`, each with its index in the submitted batch and each just once. With `block`,
    /// waits until there is at least one, unless all have been handed out before.
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>);
}

/// A submitted batch of requests; wait for all of them or one by one.
///
/// Dropping a ticket is safe at any time: the requests still happen, and their results are lost. If it is dropped
/// because its thread panics, the drop waits for them.
#[must_use = "the results of the requests come through the ticket"]
#[derive(Debug)]
pub struct Ticket {
    total: usize,
    handed_out: usize,
    finished: VecDeque<(usize, Completion)>,
    pending: Option<Box<dyn Pending>>,
}

impl Ticket {
    /// A batch that is finished already, in request order.
    pub fn ready(completions: Vec<Completion>) -> Self {
        let finished: VecDeque<_> = completions.into_iter().enumerate().collect();
        Self { total: finished.len(), handed_out: 0, finished, pending: None }
    }

    /// A batch of `total` requests of which `finished` (with their indices in the batch) are over and `pending` holds
    /// the rest.
    pub fn pending(total: usize, finished: Vec<(usize, Completion)>, pending: Box<dyn Pending>) -> Self {
        Self { total, handed_out: 0, finished: finished.into(), pending: Some(pending) }
    }

    /// How many completions have not been handed out yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.total - self.handed_out
    }

    /// Waits for all requests; the completions come in request order (those that [`wait_any`](Self::wait_any) handed
    /// out are left out).
    #[must_use]
    pub fn wait(mut self) -> Vec<Completion> {
        let mut all = Vec::with_capacity(self.remaining().min(MOST));
        while let Some(one) = self.wait_any() {
            all.push(one);
        }
        all.sort_unstable_by_key(|&(index, _)| index);
        all.into_iter().map(|(_, completion)| completion).collect()
    }

    /// Waits for a batch of `requests`, and hands out the completion of each and its index, in the order in which they
    /// finish. Returns whether each had its own. What a back end that breaks its promise says of requests that nobody
    /// sent, or says again, is not handed out.
    #[must_use]
    pub fn wait_each(mut self, requests: usize, mut done: impl FnMut(usize, Completion)) -> bool {
        let mut waited_for: SmallVec<[bool; FEW]> = smallvec![true; requests];
        let mut left = requests;
        while let Some((index, completion)) = self.wait_any() {
            if waited_for.get_mut(index).is_some_and(mem::take) {
                left -= 1;
                done(index, completion);
            }
        }
        left == 0
    }

    /// Waits for one request that has not been handed out; returns it and its index in the batch, in the order in which
    /// they finish. `None` when there is none left.
    pub fn wait_any(&mut self) -> Option<(usize, Completion)> {
        self.next(true)
    }

    /// As [`wait_any`](Self::wait_any), but returns `None` also when nothing has finished yet.
    pub fn try_any(&mut self) -> Option<(usize, Completion)> {
        self.next(false)
    }

    fn next(&mut self, block: bool) -> Option<(usize, Completion)> {
        if self.remaining() == 0 {
            return None;
        }
        if self.finished.is_empty() {
            self.pending.as_mut()?.collect(block, &mut self.finished);
        }
        let one = self.finished.pop_front()?;
        self.handed_out += 1;
        Some(one)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.pending.is_some() && thread::panicking() {
            // A second panic would end the process.
            let _ = catch_unwind(AssertUnwindSafe(|| while self.next(true).is_some() {}));
        }
    }
}

#[cfg(test)]
mod tests {
    use f2fs_sync::Arc;
    use f2fs_sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{AlignedBuf, Request};

    /// Requests that finish one at a time, each when it is waited for.
    #[derive(Debug)]
    struct Slow {
        left: usize,
        waited_for: Arc<AtomicUsize>,
        panics: bool,
    }

    impl Pending for Slow {
        fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
            assert!(!self.panics, "a second panic");
            if block && self.left > 0 {
                self.left -= 1;
                self.waited_for.fetch_add(1, Ordering::Relaxed);
                let request = Request::read(0, AlignedBuf::new(1));
                out.push_back((self.left, Completion { request, result: Ok(()) }));
            }
        }
    }

    /// Requests that nobody answers.
    #[derive(Debug)]
    struct Nothing;

    impl Pending for Nothing {
        fn collect(&mut self, _block: bool, _out: &mut VecDeque<(usize, Completion)>) {}
    }

    fn ticket(waited_for: &Arc<AtomicUsize>, panics: bool) -> Ticket {
        let slow = Slow { left: 3, waited_for: waited_for.clone(), panics };
        Ticket::pending(3, Vec::new(), Box::new(slow))
    }

    #[test]
    fn requests_without_an_answer_of_their_own_are_missed() {
        let answer = |start| Completion { request: Request::read(start, AlignedBuf::new(1)), result: Ok(()) };
        let came = |starts: &[u64], requests| {
            let mut came = Vec::new();
            let all = Ticket::ready(starts.iter().map(|start| answer(*start)).collect());
            (all.wait_each(requests, |index, done| came.push((index, done.request.start))), came)
        };
        assert_eq!(came(&[7, 8], 2), (true, vec![(0, 7), (1, 8)]));
        assert_eq!(came(&[7], 2), (false, vec![(0, 7)]));
        assert_eq!(came(&[], 1), (false, vec![]));
        // What nobody asked for.
        assert_eq!(came(&[7, 8, 9], 2), (true, vec![(0, 7), (1, 8)]));
        // Twice the same, in place of the other one.
        let twice = Ticket::pending(2, vec![(1, answer(5)), (1, answer(6))], Box::new(Nothing));
        let mut came = Vec::new();
        assert!(!twice.wait_each(2, |index, done| came.push((index, done.request.start))));
        assert_eq!(came, [(1, 5)]);
    }

    #[test]
    fn a_number_of_requests_that_cannot_be_is_not_believed() {
        assert!(Ticket::pending(usize::MAX, Vec::new(), Box::new(Nothing)).wait().is_empty());
    }

    #[test]
    fn a_drop_by_a_panic_waits_and_any_other_does_not() {
        let waited_for = Arc::new(AtomicUsize::new(0));
        drop(ticket(&waited_for, false));
        assert_eq!(waited_for.load(Ordering::Relaxed), 0);
        let unwind = |panics| {
            catch_unwind(AssertUnwindSafe(|| {
                let mut ticket = ticket(&waited_for, panics);
                let _one = (!panics).then(|| ticket.wait_any());
                panic!("while it is on its way");
            }))
        };
        let first: Result<(), _> = unwind(false);
        assert!(first.is_err());
        assert_eq!(waited_for.load(Ordering::Relaxed), 3);
        // A back end that panics then ends no process.
        assert!(unwind(true).is_err());
    }
}
