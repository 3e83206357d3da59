//! The images that a power cut may leave of a recorded device.
//!
//! ```text
//!            next: write, discard            next: flush, completion seen before it
//!  (nothing) --------------------> volatile ---------------------------------------> durable
//!                                     |
//!                                     +-- next: durable write whose completion was seen --> survives every image, flush or not
//! ```
//! A flush of one device out of several covers the blocks of that device only.
//! A volatile block survives a cut or not, each block for itself: 4096 bytes are written as a whole or not at all.

use std::collections::HashMap;

use f2fs_sync::Arc;

use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice};

/// One change in a [`CrashLog`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Blocks were written.
    Write {
        /// The first block.
        start: u64,
        /// The blocks that were written.
        data: Arc<AlignedBuf>,
        /// Whether the write was to be durable by itself (FUA).
        durable: bool,
        /// The length that the log had when the caller saw the completion, if it did.
        seen: Option<usize>,
    },
    /// Blocks were given back; they read as zeros if the discard survives.
    Discard {
        /// The first block.
        start: u64,
        /// How many.
        blocks: u64,
        /// The length that the log had when the caller saw the completion, if it did.
        seen: Option<usize>,
    },
    /// A flush.
    Flush,
    /// A flush of some blocks: of one device out of several (see [`RecordedPart`](crate::RecordedPart)).
    FlushPart {
        /// The first block.
        start: u64,
        /// How many.
        blocks: u64,
    },
}

impl Event {
    pub(crate) fn write(start: u64, data: AlignedBuf, durable: bool) -> Self {
        Self::Write { start, data: Arc::new(data), durable, seen: None }
    }

    pub(crate) fn discard(start: u64, blocks: u64) -> Self {
        Self::Discard { start, blocks, seen: None }
    }

    /// The length that the log had when the caller saw the completion, if it did.
    pub(crate) fn seen(&self) -> Option<usize> {
        match self {
            Self::Write { seen, .. } | Self::Discard { seen, .. } => *seen,
            Self::Flush | Self::FlushPart { .. } => None,
        }
    }

    pub(crate) fn acknowledge(&mut self, now: usize) {
        match self {
            Self::Write { seen, .. } | Self::Discard { seen, .. } => *seen = Some(now),
            Self::Flush | Self::FlushPart { .. } => {}
        }
    }

    /// Whether it changes nothing, and makes changes durable.
    #[must_use]
    pub fn is_flush(&self) -> bool {
        matches!(self, Self::Flush | Self::FlushPart { .. })
    }

    /// The blocks that a flush makes durable if their changes were seen to complete before it; none for any other
    /// event.
    #[must_use]
    pub fn flushed(&self) -> std::ops::Range<u64> {
        match self {
            Self::Flush => 0..u64::MAX,
            Self::FlushPart { start, blocks } => *start..start + blocks,
            Self::Write { .. } | Self::Discard { .. } => 0..0,
        }
    }

    /// The first block and the number of blocks; none for a flush.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        match self {
            Self::Write { start, data, .. } => (*start, data.blocks() as u64),
            Self::Discard { start, blocks, .. } => (*start, *blocks),
            Self::Flush | Self::FlushPart { .. } => (0, 0),
        }
    }

    /// Whether the caller had seen the completion when the log had `position` events.
    #[must_use]
    pub fn seen_at(&self, position: usize) -> bool {
        match self {
            Self::Write { seen, .. } | Self::Discard { seen, .. } => seen.is_some_and(|seen| seen <= position),
            Self::Flush | Self::FlushPart { .. } => true,
        }
    }

    /// Whether this needs no flush once its completion was seen.
    pub(crate) fn durable(&self) -> bool {
        matches!(self, Self::Write { durable: true, .. })
    }
}

/// The changes of a [`RecordingDevice`](crate::RecordingDevice) in order, and the content before the first.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice};
/// use f2fs_device_test::RecordingDevice;
///
/// let device = RecordingDevice::new(MemoryDevice::new(8));
/// device.write_slice(0, b"A").unwrap();
/// device.flush().unwrap();
/// device.write_slice(0, b"B").unwrap();
///
/// let log = device.log();
/// let mut replay = log.replay();
/// while replay.advance().is_some() {}
/// let lost = replay.image(0, |_, _| false);
/// let kept = replay.image(0, |_, _| true);
/// assert_eq!(lost.read(0, 1).unwrap().as_bytes()[0], b'A');
/// assert_eq!(kept.read(0, 1).unwrap().as_bytes()[0], b'B');
/// ```
#[derive(Debug)]
pub struct CrashLog {
    base: MemoryDevice,
    events: Vec<Event>,
}

impl CrashLog {
    pub(crate) fn new(base: MemoryDevice, events: Vec<Event>) -> Self {
        Self { base, events }
    }

    /// All events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The log of a device that does not flush, and says that it did: no write is ever certain. Judges are shown it.
    #[must_use]
    pub fn without_flushes(&self) -> CrashLog {
        // Positions in the log stay the same: a flush of no block stands in the place of each.
        let events = self.events.iter().cloned().map(|event| match event {
            Event::Flush | Event::FlushPart { .. } => Event::FlushPart { start: 0, blocks: 0 },
            Event::Write { start, data, seen, .. } => Event::Write { start, data, durable: false, seen },
            other => other,
        });
        CrashLog { base: self.base.snapshot(), events: events.collect() }
    }

    /// Walks through the log from its beginning.
    #[must_use]
    pub fn replay(&self) -> Replay<'_> {
        Replay {
            events: &self.events,
            durable: self.base.snapshot(),
            applied: HashMap::new(),
            volatile: Vec::new(),
            overtaken: self.overtaken(),
            position: 0,
        }
    }

    fn overtaken(&self) -> Vec<usize> {
        let overlap = |one: &Event, other: &Event| {
            let ((one, blocks), (other, others)) = (one.range(), other.range());
            one < other + others && other < one + blocks
        };
        let is_overtaken = |at: &usize| {
            let event = &self.events[*at];
            let end = event.seen().unwrap_or(self.events.len());
            self.events.get(at + 1..end).is_some_and(|later| later.iter().any(|other| overlap(event, other)))
        };
        (0..self.events.len()).filter(is_overtaken).collect()
    }

    /// The image of a cut at `position` (that many events had been begun), keeping the volatile blocks for which
    /// `survives` (event index, block address) says so. For many cuts, [`replay`](Self::replay) is cheaper.
    #[must_use]
    pub fn image_at(&self, position: usize, survives: impl FnMut(usize, u64) -> bool) -> MemoryDevice {
        let mut replay = self.replay();
        while replay.position < position && replay.advance().is_some() {}
        replay.image(0, survives)
    }
}

/// A walk through a [`CrashLog`] that knows at each step which writes are durable and which are volatile.
#[derive(Debug)]
pub struct Replay<'a> {
    pub(crate) events: &'a [Event],
    pub(crate) durable: MemoryDevice,
    /// The event that last reached each block of `durable`: an older one that becomes durable later must not undo it.
    pub(crate) applied: HashMap<u64, usize>,
    /// Indices of the events that no flush covers yet, in order.
    pub(crate) volatile: Vec<usize>,
    /// Indices of the events that a later one overlaps which was begun while they were in flight, in order.
    pub(crate) overtaken: Vec<usize>,
    pub(crate) position: usize,
}

impl<'a> Replay<'a> {
    /// How many events have been begun.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Indices of the events that a cut here may lose, wholly or in part; durable writes that have completed are among
    /// them until the next flush, though nothing loses them.
    #[must_use]
    pub fn volatile(&self) -> &[usize] {
        &self.volatile
    }

    /// Takes the next event; `None` at the end of the log.
    pub fn advance(&mut self) -> Option<&'a Event> {
        let event = self.events.get(self.position)?;
        if event.is_flush() {
            let (flush, flushed) = (self.position, event.flushed());
            let is_covered = |event: &Event| event.seen_at(flush) && flushed.contains(&event.range().0);
            let (covered, rest) = self.volatile.iter().partition(|&&index| is_covered(&self.events[index]));
            self.volatile = rest;
            let covered: Vec<usize> = covered;
            for index in covered {
                apply(&self.durable, &self.events[index], |block| {
                    let last = self.applied.entry(block).or_insert(index);
                    *last = index.max(*last);
                    *last == index
                });
            }
        } else {
            self.volatile.push(self.position);
        }
        self.position += 1;
        Some(event)
    }

    /// The image of a power cut here: everything durable, completed durable writes, and the volatile blocks for which
    /// `survives` (event index, block address) says so, in the order of the log.
    ///
    /// `in_flight` further events (up to the next flush) count as begun but not completed, so all their blocks, even
    /// those of durable writes, are volatile.
    #[must_use]
    pub fn image(&self, in_flight: usize, mut survives: impl FnMut(usize, u64) -> bool) -> MemoryDevice {
        let image = self.durable.snapshot();
        let begun = self.events[self.position..].iter().take(in_flight).take_while(|event| !event.is_flush()).count();
        for index in self.volatile.iter().copied().chain(self.position..self.position + begun) {
            let event = &self.events[index];
            let certain = event.durable() && event.seen_at(self.position);
            apply(&image, event, |block| {
                let newer = self.applied.get(&block).is_none_or(|&last| last < index);
                newer && (certain || survives(index, block))
            });
        }
        image
    }
}

/// Writes the chosen blocks of an event to `device`.
fn apply(device: &MemoryDevice, event: &Event, mut chosen: impl FnMut(u64) -> bool) {
    let (start, blocks) = event.range();
    for i in (0..blocks).filter(|i| chosen(start + i)) {
        match event {
            Event::Write { data, .. } => device.set_block(start + i, &data.as_blocks()[i as usize]),
            // The block is one of the device, and memory refuses nothing else.
            Event::Discard { .. } => drop(device.discard(start + i, 1)),
            Event::Flush | Event::FlushPart { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs_device::Request;

    use crate::RecordingDevice;

    fn recorder() -> RecordingDevice {
        let base = MemoryDevice::new(8);
        base.write_slice(0, b"0").unwrap();
        RecordingDevice::new(base)
    }

    fn text(device: &MemoryDevice) -> String {
        let bytes = device.to_bytes();
        bytes.chunks(4096).map(|block| if block[0] == 0 { '.' } else { char::from(block[0]) }).collect()
    }

    fn two_blocks(a: u8, b: u8) -> AlignedBuf {
        let mut buf = AlignedBuf::from_bytes(&[a]);
        buf.extend_from_bytes(&[b]);
        buf
    }

    #[test]
    fn only_flushed_writes_are_certain_and_each_block_is_on_its_own() {
        let device = recorder();
        device.write(1, two_blocks(b'a', b'b')).unwrap();
        device.flush().unwrap();
        device.write(2, two_blocks(b'c', b'd')).unwrap();
        device.discard(0, 1).unwrap();
        let log = device.log();
        assert_eq!(text(&log.image_at(0, |_, _| true)), "0.......");
        assert_eq!(text(&log.image_at(1, |_, _| false)), "0.......");
        assert_eq!(text(&log.image_at(1, |_, block| block == 2)), "0.b.....");
        assert_eq!(text(&log.image_at(2, |_, _| false)), "0ab.....");
        assert_eq!(text(&log.image_at(4, |_, block| block == 3)), "0abd....");
        assert_eq!(text(&log.image_at(4, |event, _| event == 3)), ".ab.....");
        assert_eq!(text(&log.image_at(4, |_, _| true)), text(&device.snapshot()));
    }

    #[test]
    fn a_device_that_does_not_flush_may_lose_everything() {
        let device = recorder();
        device.write_slice(1, b"a").unwrap();
        device.flush().unwrap();
        device.write_fua(2, AlignedBuf::from_bytes(b"f")).unwrap();
        let log = device.log().without_flushes();
        assert_eq!(log.events().len(), 3);
        assert_eq!(text(&log.image_at(3, |_, _| false)), "0.......");
        assert_eq!(text(&log.image_at(3, |_, _| true)), "0af.....");
    }

    #[test]
    fn a_durable_write_covers_itself_only() {
        let device = recorder();
        device.write_slice(1, b"a").unwrap();
        device.write_fua(2, AlignedBuf::from_bytes(b"f")).unwrap();
        device.write_slice(2, b"g").unwrap();
        let log = device.log();
        assert_eq!(text(&log.image_at(3, |_, _| false)), "0.f.....");
        assert_eq!(text(&log.image_at(3, |event, _| event == 2)), "0.g.....");
        let mut replay = log.replay();
        replay.advance();
        assert_eq!(text(&replay.image(1, |_, _| false)), "0.......", "in flight, a durable write is volatile too");
        assert_eq!(text(&replay.image(1, |event, _| event == 1)), "0.f.....");
    }

    #[test]
    fn a_flush_does_not_cover_a_write_that_nobody_waited_for() {
        let device = recorder();
        let ticket = device.submit(vec![Request::write(1, AlignedBuf::from_bytes(b"a"))]);
        device.flush().unwrap();
        assert_eq!(text(&device.log().image_at(2, |_, _| false)), "0.......");
        assert_eq!(ticket.wait().len(), 1);
        device.flush().unwrap();
        let log = device.log();
        assert_eq!(text(&log.image_at(2, |_, _| false)), "0.......");
        assert_eq!(text(&log.image_at(3, |_, _| false)), "0a......");
    }

    #[test]
    fn a_late_flush_does_not_undo_a_newer_write() {
        let device = recorder();
        let old = device.submit(vec![Request::write(1, AlignedBuf::from_bytes(b"a"))]);
        device.write_slice(1, b"b").unwrap();
        device.flush().unwrap();
        drop(old.wait());
        device.flush().unwrap();
        let log = device.log();
        for survives in [false, true] {
            assert_eq!(text(&log.image_at(3, |_, _| survives)), "0b......");
            assert_eq!(text(&log.image_at(4, |_, _| survives)), "0b......");
        }
    }

    #[test]
    fn restarting_makes_the_present_the_base() {
        let device = recorder();
        let unseen = device.submit(vec![Request::write(1, AlignedBuf::from_bytes(b"a"))]);
        device.restart();
        device.write_slice(2, b"b").unwrap();
        drop(unseen.wait());
        let log = device.log();
        assert_eq!(log.events().len(), 1);
        assert_eq!(text(&log.image_at(1, |_, _| false)), "0a......");
        let counts = device.counts();
        assert_eq!((counts.writes, counts.blocks_written, counts.flushes), (2, 2, 0));
    }
}
