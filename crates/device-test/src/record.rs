//! A device that records every write, discard and flush.
//!
//! Locking rules: one lock, `log`, is held while a change is applied to the live device and written down, so the order
//! of the log is the order of the changes. Reads take no lock of the recorder. The lock is also taken when completions
//! are handed out.

mod part;

use std::collections::VecDeque;
use std::time::Duration;

use f2fs_device::{
    AlignedBuf, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, MemoryDevice, Op, Pending, Request, Ticket,
};
use f2fs_sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use crate::{CrashLog, Event};

pub use part::RecordedPart;

/// How often and how much a [`RecordingDevice`] was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Read requests that succeeded.
    pub reads: u64,
    /// Blocks that they read.
    pub blocks_read: u64,
    /// Write requests that succeeded, durable ones included.
    pub writes: u64,
    /// Blocks that they wrote.
    pub blocks_written: u64,
    /// Durable write requests that succeeded.
    pub durable_writes: u64,
    /// Discards that succeeded.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
}

/// A memory device that logs each write, discard and flush, so that a test can build every image that a power cut might
/// leave: see [`CrashLog`].
///
/// It is strict about completions: a flush makes durable only those writes whose completion the caller had *seen* when
/// the flush began. Code that flushes before it has waited for its tickets is found out.
#[derive(Debug)]
pub struct RecordingDevice {
    live: MemoryDevice,
    log: Arc<Mutex<Log>>,
    reads: AtomicU64,
    blocks_read: AtomicU64,
    /// How long each request takes.
    pause: Duration,
}

#[derive(Debug)]
struct Log {
    base: MemoryDevice,
    events: Vec<Event>,
    counts: IoCounts,
    /// Counts the logs begun, so that an acknowledgement for an older log is ignored.
    generation: u64,
}

impl Log {
    fn acknowledge(&mut self, mark: Mark) {
        let now = self.events.len();
        if mark.generation == self.generation
            && let Some(event) = self.events.get_mut(mark.event)
        {
            event.acknowledge(now);
        }
    }
}

/// Where a change stands in the log.
#[derive(Clone, Copy, Debug)]
struct Mark {
    generation: u64,
    event: usize,
}

impl RecordingDevice {
    /// Records what happens to `device` from now on; its present content is durable.
    #[must_use]
    pub fn new(device: MemoryDevice) -> Self {
        let log = Log { base: device.snapshot(), events: Vec::new(), counts: IoCounts::default(), generation: 0 };
        Self {
            live: device,
            log: Arc::new(Mutex::new(log)),
            reads: AtomicU64::new(0),
            blocks_read: AtomicU64::new(0),
            pause: Duration::ZERO,
        }
    }

    /// Lets each request, and each batch, take so long at least, so that those of several threads are in flight
    /// together.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The log so far. Data is shared, not copied.
    #[must_use]
    pub fn log(&self) -> CrashLog {
        let log = self.log.lock();
        CrashLog::new(log.base.snapshot(), log.events.clone())
    }

    /// How many events the log has: a position to cut at later.
    #[must_use]
    pub fn position(&self) -> usize {
        self.log.lock().events.len()
    }

    /// Starts a new log; all that is on the device now counts as durable.
    pub fn restart(&self) {
        let mut log = self.log.lock();
        log.base = self.live.snapshot();
        log.events.clear();
        log.generation += 1;
    }

    /// Counts of requests since the device was made.
    #[must_use]
    pub fn counts(&self) -> IoCounts {
        IoCounts {
            reads: self.reads.load(Ordering::Relaxed),
            blocks_read: self.blocks_read.load(Ordering::Relaxed),
            ..self.log.lock().counts
        }
    }

    /// A copy of the device's content now, durable or not.
    #[must_use]
    pub fn snapshot(&self) -> MemoryDevice {
        self.live.snapshot()
    }

    fn flushed(&self, flush: Event) {
        let mut log = self.log.lock();
        log.counts.flushes += 1;
        log.events.push(flush);
        drop(log);
        wait(self.pause);
    }

    /// Runs one request; a change that succeeded leaves a mark that still has to be acknowledged.
    fn run(&self, request: Request) -> (Completion, Option<Mark>) {
        if request.op == Op::Read {
            let completion = self.live.execute(request);
            if completion.result.is_ok() {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.blocks_read.fetch_add(completion.request.blocks(), Ordering::Relaxed);
            }
            return (completion, None);
        }
        let mut log = self.log.lock();
        let completion = self.live.execute(request);
        if completion.result.is_err() {
            return (completion, None);
        }
        let request = &completion.request;
        let blocks = request.blocks();
        let event = match request.op {
            Op::Discard { .. } => {
                log.counts.discards += 1;
                Event::discard(request.start, blocks)
            }
            Op::Read | Op::Write | Op::WriteFua => {
                let durable = request.op == Op::WriteFua;
                log.counts.writes += 1;
                log.counts.blocks_written += blocks;
                log.counts.durable_writes += u64::from(durable);
                let mut data = AlignedBuf::default();
                for buf in &request.bufs {
                    data.extend_from_bytes(buf.as_bytes());
                }
                Event::write(request.start, data, durable)
            }
        };
        log.events.push(event);
        let mark = Mark { generation: log.generation, event: log.events.len() - 1 };
        (completion, Some(mark))
    }
}

fn wait(pause: Duration) {
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

/// Completions that nobody has seen yet.
#[derive(Debug)]
struct Unseen {
    log: Arc<Mutex<Log>>,
    pause: Duration,
    completions: Vec<(usize, Completion, Option<Mark>)>,
}

impl Pending for Unseen {
    fn collect(&mut self, _block: bool, out: &mut VecDeque<(usize, Completion)>) {
        wait(std::mem::take(&mut self.pause));
        let mut log = self.log.lock();
        for (index, completion, mark) in self.completions.drain(..) {
            if let Some(mark) = mark {
                log.acknowledge(mark);
            }
            out.push_back((index, completion));
        }
    }
}

impl BlockDevice for RecordingDevice {
    fn info(&self) -> &DeviceInfo {
        self.live.info()
    }

    fn claims(&self) -> &Claims {
        self.live.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let total = requests.len();
        let completions = requests.into_iter().enumerate().map(|(index, request)| {
            let (completion, mark) = self.run(request);
            (index, completion, mark)
        });
        let unseen = Unseen { log: Arc::clone(&self.log), pause: self.pause, completions: completions.collect() };
        Ticket::pending(total, Vec::new(), Box::new(unseen))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushed(Event::Flush);
        Ok(())
    }

    fn execute(&self, request: Request) -> Completion {
        let (completion, mark) = self.run(request);
        wait(self.pause);
        if let Some(mark) = mark {
            self.log.lock().acknowledge(mark);
        }
        completion
    }
}
