//! Requests of a flight that went off together.

use f2fs_device::{BlockDevice, Completion, DeviceError, DeviceErrorKind, Operation, Request, Ticket};

/// Requests on their way.
#[derive(Debug)]
pub(super) struct Batch {
    ticket: Ticket,
    requests: usize,
    /// The first block of the first request, and the blocks of all.
    start: u64,
    blocks: u64,
}

impl Batch {
    /// Sends writes to the device.
    pub(super) fn send(device: &dyn BlockDevice, requests: Vec<Request>) -> Batch {
        Batch {
            requests: requests.len(),
            start: requests.first().map_or(0, |first| first.start),
            blocks: requests.iter().map(Request::blocks).sum(),
            ticket: device.submit(requests),
        }
    }

    /// Waits for all of them; gives each to `done`, and the first error. A device that does not answer each, or that gives
    /// back other buffers than those it was lent, is not believed.
    pub(super) fn wait(self, mut done: impl FnMut(Completion) -> Result<(), DeviceError>) -> Result<(), DeviceError> {
        let Batch { ticket, requests, start, blocks } = self;
        let (mut result, mut given_back) = (Ok(()), 0);
        let answered = ticket.wait_each(requests, |_, completion| {
            given_back += completion.request.blocks();
            let new = done(completion);
            if result.is_ok() {
                result = new;
            }
        });
        let failed = |kind| Err(DeviceError::new(Operation::Write, start, blocks, kind));
        match result {
            Ok(()) if !answered => failed(DeviceErrorKind::Lost),
            Ok(()) if given_back != blocks => failed(DeviceErrorKind::OtherBuffers),
            result => result,
        }
    }
}
