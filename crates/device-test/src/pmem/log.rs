//! Every store, write-back and fence in order, and the power cuts between them.

use std::ops::Range;

use f2fs_device::MemoryDevice;
use f2fs_sync::PlainArc;

use super::cut::PowerCut;
use super::lines::Lines;

/// One thing that was done to a region. Threads are numbered in the order in which they came.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Bytes were stored.
    Store {
        /// By which thread.
        thread: u32,
        /// Where.
        offset: usize,
        /// What.
        bytes: PlainArc<[u8]>,
        /// Whether past the cache, as far as whole lines go.
        past_cache: bool,
    },
    /// Lines, by their numbers, were written back.
    WriteBack {
        /// By which thread.
        thread: u32,
        /// Which.
        lines: Range<usize>,
    },
    /// A thread waited for its stores past the cache and its write-backs.
    Fence {
        /// Which thread.
        thread: u32,
    },
}

impl Lines {
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Store { thread, offset, bytes, past_cache } => self.store(*thread, *offset, bytes, *past_cache),
            Event::WriteBack { thread, lines } => self.write_back(*thread, lines),
            Event::Fence { thread } => self.fence(*thread),
        }
    }
}

/// The operations on a [`SimulatedRegion`](super::SimulatedRegion), and its content before.
#[derive(Debug)]
pub struct LineLog {
    base: MemoryDevice,
    events: Vec<Event>,
}

impl LineLog {
    pub(super) fn new(base: MemoryDevice, events: Vec<Event>) -> LineLog {
        LineLog { base, events }
    }

    /// All events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Walks through the log from its beginning.
    #[must_use]
    pub fn replay(&self) -> Replay<'_> {
        Replay { events: &self.events, lines: Lines::new(self.base.snapshot()), position: 0 }
    }
}

/// A walk through a [`LineLog`].
#[derive(Debug)]
pub struct Replay<'a> {
    events: &'a [Event],
    lines: Lines,
    position: usize,
}

impl<'a> Replay<'a> {
    /// How many events have happened.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes the next event; `None` at the end of the log.
    pub fn advance(&mut self) -> Option<&'a Event> {
        let event = self.events.get(self.position)?;
        self.lines.apply(event);
        self.position += 1;
        Some(event)
    }

    /// A power cut here. After a store it may have happened in the middle of it.
    #[must_use]
    pub fn cut(&self) -> PowerCut {
        self.lines.cut()
    }
}
