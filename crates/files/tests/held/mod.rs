//! A device that holds a request back until it is told to go on.

use std::sync::{Arc, Condvar, Mutex};

use f2fs_device::{BlockDevice, Completion, DeviceError, DeviceInfo, Operation, Request, Ticket};

#[derive(Debug, Default)]
struct State {
    /// The next request of this kind is held back.
    hold: Option<Operation>,
    held: bool,
}

/// Passes everything on, and holds back what it was told to.
#[derive(Debug)]
pub(crate) struct HeldDevice {
    inner: Arc<dyn BlockDevice>,
    state: Mutex<State>,
    changed: Condvar,
}

impl HeldDevice {
    pub(crate) fn new(inner: Arc<dyn BlockDevice>) -> HeldDevice {
        HeldDevice { inner, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Holds the next request of this kind back.
    pub(crate) fn hold_next(&self, operation: Operation) {
        *self.state.lock().unwrap() = State { hold: Some(operation), held: false };
    }

    /// Waits until there is one.
    pub(crate) fn wait_until_held(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !state.held).unwrap());
    }

    /// Lets it go on.
    pub(crate) fn release(&self) {
        *self.state.lock().unwrap() = State::default();
        self.changed.notify_all();
    }
}

impl BlockDevice for HeldDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn execute(&self, request: Request) -> Completion {
        let mut state = self.state.lock().unwrap();
        if state.hold == Some(request.op.operation()) {
            *state = State { hold: None, held: true };
            self.changed.notify_all();
            drop(self.changed.wait_while(state, |state| state.held).unwrap());
        } else {
            drop(state);
        }
        self.inner.execute(request)
    }
}
