//! A device that holds requests back until it is told to go on.
//!
//! Locking rules: one lock over what is held; it is not held during I/O.

use std::collections::VecDeque;
use std::thread::ThreadId;

use f2fs_device::{
    BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Operation, Pending, Request, Ticket, Zone, ZoneChange,
};
use f2fs_sync::{Condvar, Mutex, PlainArc};

#[derive(Debug, Default)]
struct State {
    /// The next request of this kind is held back.
    hold: Option<Operation>,
    held: bool,
    /// The thread whose submissions are on their way until then.
    deferred: Option<ThreadId>,
}

/// Who waits, and what for.
#[derive(Debug, Default)]
struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

/// A device that passes everything on, and holds one request back when a test says so: for looking at what others do
/// meanwhile.
#[derive(Debug)]
pub struct HeldDevice {
    inner: PlainArc<dyn BlockDevice>,
    control: PlainArc<Control>,
}

/// Requests on their way.
#[derive(Debug)]
struct Deferred {
    inner: PlainArc<dyn BlockDevice>,
    control: PlainArc<Control>,
    requests: Vec<Request>,
}

impl Pending for Deferred {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let mut state = self.control.state.lock();
        if block && state.deferred.is_some() {
            state.held = true;
            self.control.changed.notify_all();
            self.control.changed.wait_while(&mut state, |state| state.held);
        }
        if state.deferred.is_none() {
            let done = self.requests.drain(..).map(|request| self.inner.execute(request));
            out.extend(done.enumerate());
        }
    }
}

impl HeldDevice {
    /// Holds nothing back yet.
    #[must_use]
    pub fn new(inner: PlainArc<dyn BlockDevice>) -> HeldDevice {
        HeldDevice { inner, control: PlainArc::default() }
    }

    /// Holds the next request of this kind back.
    pub fn hold_next(&self, operation: Operation) {
        *self.control.state.lock() = State { hold: Some(operation), ..State::default() };
    }

    /// Submissions of this thread stay in flight from here on; a thread that waits for them is held back.
    pub fn defer_mine(&self) {
        let mine = Some(std::thread::current().id());
        *self.control.state.lock() = State { deferred: mine, ..State::default() };
    }

    /// Waits until a request is held back.
    pub fn wait_until_held(&self) {
        let mut state = self.control.state.lock();
        self.control.changed.wait_while(&mut state, |state| !state.held);
    }

    /// Lets it go on.
    pub fn release(&self) {
        *self.control.state.lock() = State::default();
        self.control.changed.notify_all();
    }

    fn wait_if_held(&self, operation: Operation) {
        let mut state = self.control.state.lock();
        if state.hold == Some(operation) {
            *state = State { held: true, ..State::default() };
            self.control.changed.notify_all();
            self.control.changed.wait_while(&mut state, |state| state.held);
        }
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
        if self.control.state.lock().deferred == Some(std::thread::current().id()) {
            let (inner, control) = (self.inner.clone(), self.control.clone());
            return Ticket::pending(requests.len(), Vec::new(), Box::new(Deferred { inner, control, requests }));
        }
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.wait_if_held(Operation::Flush);
        self.inner.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.inner.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.inner.change_zone(start, change)
    }

    fn execute(&self, request: Request) -> Completion {
        self.wait_if_held(request.op.operation());
        self.inner.execute(request)
    }
}
