//! A device that holds requests back until it is told to go on.
#![allow(dead_code)] // each test uses a part of it

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;

use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Operation, Pending, Request, Ticket};

#[derive(Debug, Default)]
struct State {
    /// The next request of this kind is held back.
    hold: Option<Operation>,
    held: bool,
    /// What this thread submits is on its way until then.
    deferred: Option<ThreadId>,
}

/// Who waits, and what for.
#[derive(Debug, Default)]
struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

/// Passes everything on, and holds back what it was told to.
#[derive(Debug)]
pub(crate) struct HeldDevice {
    inner: Arc<dyn BlockDevice>,
    control: Arc<Control>,
}

/// Requests on their way.
#[derive(Debug)]
struct Deferred {
    inner: Arc<dyn BlockDevice>,
    control: Arc<Control>,
    requests: Vec<Request>,
}

impl Pending for Deferred {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let mut state = self.control.state.lock().unwrap();
        if block && state.deferred.is_some() {
            state.held = true;
            self.control.changed.notify_all();
            state = self.control.changed.wait_while(state, |state| state.held).unwrap();
        }
        if state.deferred.is_none() {
            let done = self.requests.drain(..).map(|request| self.inner.execute(request));
            out.extend(done.enumerate());
        }
    }
}

impl HeldDevice {
    pub(crate) fn new(inner: Arc<dyn BlockDevice>) -> HeldDevice {
        HeldDevice { inner, control: Arc::default() }
    }

    /// Holds the next request of this kind back.
    pub(crate) fn hold_next(&self, operation: Operation) {
        *self.control.state.lock().unwrap() = State { hold: Some(operation), ..State::default() };
    }

    /// What this thread submits from here on stays on its way; held back is who waits for it.
    pub(crate) fn defer_mine(&self) {
        let mine = Some(std::thread::current().id());
        *self.control.state.lock().unwrap() = State { deferred: mine, ..State::default() };
    }

    /// Waits until there is one.
    pub(crate) fn wait_until_held(&self) {
        let state = self.control.state.lock().unwrap();
        drop(self.control.changed.wait_while(state, |state| !state.held).unwrap());
    }

    /// Lets it go on.
    pub(crate) fn release(&self) {
        *self.control.state.lock().unwrap() = State::default();
        self.control.changed.notify_all();
    }
}

impl BlockDevice for HeldDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        if self.control.state.lock().unwrap().deferred == Some(std::thread::current().id()) {
            let (inner, control) = (self.inner.clone(), self.control.clone());
            return Ticket::pending(requests.len(), Vec::new(), Box::new(Deferred { inner, control, requests }));
        }
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()
    }

    fn execute(&self, request: Request) -> Completion {
        let mut state = self.control.state.lock().unwrap();
        if state.hold == Some(request.op.operation()) {
            *state = State { held: true, ..State::default() };
            self.control.changed.notify_all();
            drop(self.control.changed.wait_while(state, |state| state.held).unwrap());
        } else {
            drop(state);
        }
        self.inner.execute(request)
    }
}
