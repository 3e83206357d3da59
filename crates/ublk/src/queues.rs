//! The threads of a server's queues.
//!
//! ```text
//!   prepare: thread, ring, memory ---> waiting ---- run(file) ----> serving ---- the driver ends them ----> (end)
//!                                         |                            |
//!                                         '-------- leave, drop -------'------> the device stays as the driver has it
//! ```
//! What a queue needs of the system it takes before it waits, so that little can fail once the driver was told.
//!
//! Locking rules: one lock, over what the threads were told and how many of them wait. It is held for no call of anything
//! else.

use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter},
    mem,
    thread::{self, JoinHandle},
};

use f2fs_device::Operation;
use f2fs_sync::{Condvar, Mutex, PlainArc};

use crate::{
    Backend, QueueCounts, UblkError,
    abi::DeviceRecord,
    ring::{Prepared, QueueShape},
    worker::Worker,
};

type Thread = JoinHandle<io::Result<QueueCounts>>;

/// All queues of a device.
pub(crate) struct Queues {
    threads: Vec<Thread>,
    start: PlainArc<Start>,
    /// Closed, it ends the rings, whatever the driver does.
    stay: Option<PipeWriter>,
}

/// What the threads are told when all of them wait.
enum Told {
    Nothing,
    Run(PlainArc<File>),
    GoAway,
}

struct State {
    told: Told,
    /// Threads that wait, or have ended before.
    arrived: usize,
    /// One of them has ended.
    has_failed: bool,
}

/// Where threads wait for the driver's file.
struct Start {
    state: Mutex<State>,
    changed: Condvar,
}

/// A thread on its way to the start. Dropped there, it has failed.
struct Way<'a>(&'a Start);

impl Way<'_> {
    /// Waits to be told; the file, or nothing if the thread is to end.
    fn wait(self) -> Option<PlainArc<File>> {
        let start = self.0;
        let _ = mem::ManuallyDrop::new(self);
        let mut state = start.state.lock();
        state.arrived += 1;
        start.changed.notify_all();
        loop {
            match &state.told {
                Told::Nothing => start.changed.wait(&mut state),
                Told::Run(file) => return Some(PlainArc::clone(file)),
                Told::GoAway => return None,
            }
        }
    }
}

impl Drop for Way<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.arrived += 1;
        state.has_failed = true;
        self.0.changed.notify_all();
    }
}

impl Queues {
    /// Starts the threads of a device, and waits until each has all that it needs but the driver's file. `border` is
    /// [that of a selective path](crate::Options::border).
    ///
    /// # Errors
    /// What one of them lacks. All have ended then.
    pub(crate) fn prepare(device: &DeviceRecord, backend: &Backend, border: u32) -> Result<Self, UblkError> {
        let lacks = |source| UblkError::Queue { queue: 0, source };
        let (stays, stay) = io::pipe().map_err(lacks)?;
        let state = Mutex::new(State { told: Told::Nothing, arrived: 0, has_failed: false });
        let start = PlainArc::new(Start { state, changed: Condvar::new() });
        let stays = PlainArc::new(stays);
        let mut queues = Self { threads: Vec::new(), start, stay: Some(stay) };
        for queue in 0..device.queues {
            match queues.thread(QueueShape::of(device, queue, border), device.number, backend, &stays) {
                Ok(thread) => queues.threads.push(thread),
                Err(source) => {
                    queues.leave();
                    return Err(UblkError::Queue { queue, source });
                }
            }
        }
        let mut state = queues.start.state.lock();
        while state.arrived < queues.threads.len() {
            queues.start.changed.wait(&mut state);
        }
        let has_failed = state.has_failed;
        drop(state);
        match has_failed.then(|| queues.leave()).flatten() {
            Some(fault) => Err(fault),
            None => Ok(queues),
        }
    }

    fn thread(
        &self,
        shape: QueueShape,
        device: u32,
        backend: &Backend,
        stays: &PlainArc<PipeReader>,
    ) -> io::Result<Thread> {
        let QueueShape { number, depth, max_io_bytes, .. } = shape;
        let (start, backend, stays) = (PlainArc::clone(&self.start), backend.clone(), PlainArc::clone(stays));
        thread::Builder::new().name(format!("ublk{device}q{number}")).spawn(move || {
            let way = Way(&start);
            let prepared = Prepared::new(shape, backend.device().file(Operation::Read), &*stays)?;
            let requests = backend.device().queue(depth.into());
            let Some(file) = way.wait() else { return Ok(QueueCounts::default()) };
            let channel = prepared.fetch(&file)?;
            Worker::with_queue(channel, &backend, requests, depth, max_io_bytes).run()
        })
    }

    /// All queues fetch their requests from here on.
    pub(crate) fn run(&self, file: PlainArc<File>) {
        self.tell(Told::Run(file));
    }

    fn tell(&self, told: Told) {
        let mut state = self.start.state.lock();
        if matches!(state.told, Told::Nothing) {
            state.told = told;
            self.start.changed.notify_all();
        }
    }

    /// Whether none of them has ended.
    pub(crate) fn all_run(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Waits for the queues, which the driver has ended if it `is_stopped`: their counts, and the first one's fault. One
    /// that the driver does not end keeps its thread: the process's end is its own.
    pub(crate) fn end(&mut self, is_stopped: bool) -> (QueueCounts, Option<UblkError>) {
        self.tell(Told::GoAway);
        let mut counts = QueueCounts::default();
        let mut fault = None;
        for (queue, thread) in (0..).zip(self.threads.drain(..)) {
            if !is_stopped && !thread.is_finished() {
                continue;
            }
            match thread.join() {
                Ok(Ok(more)) => {
                    counts.requests += more.requests;
                    counts.failed += more.failed;
                    counts.entries += more.entries;
                }
                Ok(Err(source)) => fault = fault.or(Some(UblkError::Queue { queue, source })),
                Err(_) => fault = fault.or(Some(UblkError::Panicked { queue })),
            }
        }
        (counts, fault)
    }

    /// Ends the queues without the driver, for which they have died then; the first one's fault.
    pub(crate) fn leave(&mut self) -> Option<UblkError> {
        self.stay = None;
        self.end(true).1
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.tell(Told::GoAway);
    }
}
