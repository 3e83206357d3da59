//! The region.
//!
//! Locking rules: one lock, over lines and log, held for each call. It is for tests, not for scaling.

use std::{fmt, thread};

use f2fs_device::{BLOCK_SIZE, BlockDevice, MemoryDevice};
use f2fs_pmem::{Durability, PersistentRegion, RegionError, check_range};
use f2fs_sync::{Mutex, PlainArc};

use super::cut::PowerCut;
use super::lines::{self, Lines};
use super::log::{Event, LineLog};

/// Persistent memory in a test: it keeps the contents that each line may have on the media, and a log of all
/// operations.
///
/// Between threads it is stricter than real memory in that each call happens at one moment; that does not change when
/// lines reach the media.
pub struct SimulatedRegion {
    len: usize,
    state: Mutex<Content>,
}

struct Content {
    base: MemoryDevice,
    lines: Lines,
    events: Vec<Event>,
    threads: Vec<thread::ThreadId>,
}

impl SimulatedRegion {
    /// A region of `bytes` bytes that read as zeros, on the media too.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self::with(bytes, lines::memory(bytes))
    }

    /// A region with the content of `media`, which is on the media.
    #[must_use]
    pub fn on(media: &MemoryDevice) -> Self {
        let bytes = usize::try_from(media.info().bytes()).unwrap_or(usize::MAX / BLOCK_SIZE * BLOCK_SIZE);
        Self::with(bytes, media.snapshot())
    }

    fn with(len: usize, base: MemoryDevice) -> Self {
        let lines = Lines::new(base.snapshot());
        Self { len, state: Mutex::new(Content { base, lines, events: Vec::new(), threads: Vec::new() }) }
    }

    /// The contents that a power cut at this moment may leave.
    #[must_use]
    pub fn cut(&self) -> PowerCut {
        self.state.lock().lines.cut()
    }

    /// All that was done so far. Bytes are shared, not copied.
    #[must_use]
    pub fn log(&self) -> LineLog {
        let state = self.state.lock();
        LineLog::new(state.base.snapshot(), state.events.clone())
    }

    /// How many events the log has: a position to cut at later.
    #[must_use]
    pub fn position(&self) -> usize {
        self.state.lock().events.len()
    }

    fn record(&self, event: impl FnOnce(u32) -> Event) {
        let mut state = self.state.lock();
        let thread = state.thread();
        let event = event(thread);
        state.lines.apply(&event);
        state.events.push(event);
    }

    fn put(&self, offset: usize, bytes: &[u8], past_cache: bool) -> Result<(), RegionError> {
        check_range(self.len, offset, bytes.len())?;
        let bytes = PlainArc::from(bytes);
        self.record(|thread| Event::Store { thread, offset, bytes, past_cache });
        Ok(())
    }
}

impl Content {
    /// The number of this thread.
    fn thread(&mut self) -> u32 {
        let this = thread::current().id();
        let known = self.threads.iter().position(|thread| *thread == this);
        known.unwrap_or_else(|| {
            self.threads.push(this);
            self.threads.len() - 1
        }) as u32
    }
}

impl fmt::Debug for SimulatedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedRegion").field("len", &self.len).field("position", &self.position()).finish()
    }
}

impl PersistentRegion for SimulatedRegion {
    fn len(&self) -> usize {
        self.len
    }

    fn durability(&self) -> Durability {
        Durability::Fence
    }

    fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError> {
        check_range(self.len, offset, into.len())?;
        self.state.lock().lines.load(offset, into);
        Ok(())
    }

    fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.put(offset, bytes, false)
    }

    fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.put(offset, bytes, true)
    }

    fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError> {
        let lines = f2fs_pmem::lines(&check_range(self.len, offset, bytes)?);
        self.record(|thread| Event::WriteBack { thread, lines });
        Ok(())
    }

    fn fence(&self) {
        self.record(|thread| Event::Fence { thread });
    }
}
