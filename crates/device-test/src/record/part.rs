//! One of several devices that are recorded together, so that the order of events on all of them is known.
//!
//! No locks of its own.

use std::collections::VecDeque;
use std::ops::Range;

use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Pending, Request, Ticket};
use f2fs_sync::Arc;

use super::RecordingDevice;
use crate::Event;

/// Some blocks of a [`RecordingDevice`], as a device with its own cache: its flush covers its own blocks only. The log
/// of the whole has the changes and the flushes of all parts in their order.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice};
/// use f2fs_device_test::{RecordedPart, RecordingDevice};
/// use f2fs_sync::Arc;
///
/// let whole = Arc::new(RecordingDevice::new(MemoryDevice::new(8)));
/// let [first, second] = [0..4, 4..8].map(|blocks| RecordedPart::new(whole.clone(), blocks));
/// first.write_slice(0, b"A").unwrap();
/// second.write_slice(0, b"B").unwrap();
/// second.flush().unwrap();
/// let cut = whole.log().image_at(3, |_, _| false);
/// assert_eq!((cut.block(0).0[0], cut.block(4).0[0]), (0, b'B'));
/// ```
#[derive(Debug)]
pub struct RecordedPart {
    whole: Arc<RecordingDevice>,
    start: u64,
    info: DeviceInfo,
    claims: Claims,
}

impl RecordedPart {
    /// These blocks of `whole`; those that it does not have are left out.
    #[must_use]
    pub fn new(whole: Arc<RecordingDevice>, blocks: Range<u64>) -> Self {
        let end = blocks.end.min(whole.info().blocks);
        let mut info = whole.info().clone();
        info.description = format!("blocks {} to {end} of {}", blocks.start, info.description);
        info.blocks = end.saturating_sub(blocks.start);
        Self { whole, start: blocks.start, info, claims: Claims::new() }
    }

    /// A completion of the whole as one of this device.
    fn back(start: u64, mut completion: Completion) -> Completion {
        completion.request.start -= start;
        if let Err(error) = &mut completion.result {
            error.start -= start;
        }
        completion
    }
}

impl BlockDevice for RecordedPart {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let total = requests.len();
        let (mut passed, mut places, mut over) = (Vec::new(), Vec::new(), Vec::new());
        for (index, mut request) in requests.into_iter().enumerate() {
            if let Err(error) = self.info.check(&request) {
                over.push((index, Completion { request, result: Err(error) }));
                continue;
            }
            request.start += self.start;
            passed.push(request);
            places.push(index);
        }
        let passed = Passed { ticket: self.whole.submit(passed), places, start: self.start };
        Ticket::pending(total, over, Box::new(passed))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.whole.flushed(Event::FlushPart { start: self.start, blocks: self.info.blocks });
        Ok(())
    }

    fn execute(&self, mut request: Request) -> Completion {
        if let Err(error) = self.info.check(&request) {
            return Completion { request, result: Err(error) };
        }
        request.start += self.start;
        Self::back(self.start, self.whole.execute(request))
    }
}

/// Requests that the whole has.
#[derive(Debug)]
struct Passed {
    ticket: Ticket,
    /// The place of each in the batch.
    places: Vec<usize>,
    start: u64,
}

impl Pending for Passed {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let mut next = if block { self.ticket.wait_any() } else { self.ticket.try_any() };
        while let Some((at, completion)) = next {
            out.push_back((self.places[at], RecordedPart::back(self.start, completion)));
            next = self.ticket.try_any();
        }
    }
}
