//! The writes of one zone, on their way to the device: those that wait for others in front of them, and the one that is
//! with the device.
//!
//! ```text
//!   enter ──► held ──(it begins where the last one ended, and none is with the device)──► busy ──► left ──► done
//!               │                                                                          ▲        │
//!               │                                                     whoever waits for it │ ◄──────┘ nobody waits for it
//!               └──(the zone is closed: a write failed, or the rest never comes)──► done, with an error
//! ```

use std::collections::BTreeMap;
use std::mem;

use f2fs_sync::{Arc, Mutex, protocol_value};

use crate::{AlignedBuf, Completion, DeviceErrorKind, Op, Request, Ticket, Zone, ZoneError, ZoneState};

/// Blocks that are sent in one request at most.
const MOST: u64 = 512;

/// The place where the completion of a write is left for its waiter.
pub(super) type Slot = Mutex<Option<Completion>>;

/// The writes of one zone.
#[derive(Debug)]
pub(super) struct ZoneQueue {
    number: u32,
    /// The first block of the zone.
    start: u64,
    /// The first block behind those that can be written.
    end: u64,
    /// Where the next write to be sent begins.
    next: u64,
    held: BTreeMap<u64, Held>,
    pub(super) flying: Flying,
    /// Why no write is taken.
    closed: Option<DeviceErrorKind>,
    /// It counts against the limit of active zones.
    pub(super) counted: bool,
    /// It waits until it may count.
    pub(super) waits: bool,
}

/// A write that waits for those in front of it.
#[derive(Debug)]
struct Held {
    request: Request,
    slot: Arc<Slot>,
}

/// The request that is with the device.
#[derive(Debug)]
pub(super) enum Flying {
    /// None.
    Nothing,
    /// Somebody hands it to the device, or waits for it.
    Busy,
    /// It is with the device, and nobody waits for it.
    Left(Ticket, Vec<Part>),
}

/// A write within a request.
#[derive(Debug)]
pub(super) struct Part {
    op: Op,
    start: u64,
    tag: u64,
    bufs: usize,
    slot: Arc<Slot>,
}

impl Part {
    /// The write is over.
    fn done(self, bufs: Vec<AlignedBuf>, result: Result<(), DeviceErrorKind>) {
        let request = Request { op: self.op, start: self.start, bufs, tag: self.tag };
        let result = result.map_err(|kind| request.error(kind));
        *self.slot.lock() = Some(Completion { request, result });
    }
}

impl ZoneQueue {
    pub(super) fn new(zone: &Zone) -> ZoneQueue {
        let end = zone.start + zone.capacity;
        ZoneQueue {
            number: zone.number,
            start: zone.start,
            end,
            next: zone.write_pointer().unwrap_or(end),
            held: BTreeMap::new(),
            flying: Flying::Nothing,
            closed: match zone.state {
                ZoneState::ReadOnly | ZoneState::Offline => {
                    Some(ZoneError::State { zone: zone.number, state: zone.state }.into())
                }
                _ => None,
            },
            counted: zone.state.is_active(),
            waits: false,
        }
    }

    /// Where the next write begins, as far as the device was told; `None` if none is taken.
    pub(super) fn write_pointer(&self) -> Option<u64> {
        (self.closed.is_none() && self.next < self.end).then_some(self.next)
    }

    /// Whether it takes no write at all.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Takes a write in. Its completion will lie in the slot, or comes back at once if it can never be written.
    pub(super) fn enter(&mut self, request: Request) -> Result<Arc<Slot>, Box<Completion>> {
        let (zone, write_pointer) = (self.number, self.next);
        let refused = match &self.closed {
            Some(kind) => Some(kind.clone()),
            None if request.start < self.next || self.overlaps(&request) => {
                Some(ZoneError::WritePointer { zone, write_pointer }.into())
            }
            None if request.start + request.blocks() > self.end => {
                Some(ZoneError::Capacity { zone, end: self.end }.into())
            }
            None => None,
        };
        if let Some(kind) = refused {
            let result = Err(request.error(kind));
            return Err(Box::new(Completion { request, result }));
        }
        let slot = Arc::new(Mutex::new(None));
        self.held.insert(request.start, Held { request, slot: slot.clone() });
        Ok(slot)
    }

    /// Whether a held write has blocks of this one.
    fn overlaps(&self, request: &Request) -> bool {
        let end = request.start + request.blocks();
        let before = self.held.range(..end).next_back();
        before.is_some_and(|(start, held)| start + held.request.blocks() > request.start)
    }

    /// Whether a write is held that is the next one, and none is with the device.
    pub(super) fn is_ready(&self) -> bool {
        let first = self.held.first_key_value().map(|(start, _)| *start);
        let follows = first
            .is_some_and(|start| protocol_value!("ordered_zone_waits_for_those_in_front", start == self.next, true));
        follows && protocol_value!("ordered_zone_sends_one_at_a_time", matches!(self.flying, Flying::Nothing), true)
    }

    /// Whether the next write is the first one of the zone.
    pub(super) fn begins(&self) -> bool {
        self.next == self.start && !self.counted
    }

    /// Takes the next writes out, as one request.
    pub(super) fn take_next(&mut self) -> Option<(Request, Vec<Part>)> {
        let (_, first) = self.held.pop_first()?;
        let mut parts = Vec::new();
        let mut whole = Request::vectored(first.request.op, first.request.start, Vec::new());
        let (mut blocks, mut next) = (0, Some(first));
        while let Some(Held { request, slot }) = next.take() {
            blocks += request.blocks();
            let Request { op, start, bufs, tag } = request;
            parts.push(Part { op, start, tag, bufs: bufs.len(), slot });
            whole.bufs.extend(bufs);
            let fits = |held: &Held| {
                (whole.op, held.request.op) == (Op::Write, Op::Write)
                    && held.request.start == whole.start + blocks
                    && blocks + held.request.blocks() <= MOST
            };
            if self.held.first_key_value().is_some_and(|(_, held)| fits(held)) {
                next = self.held.pop_first().map(|(_, held)| held);
            }
        }
        self.next = whole.start + blocks;
        self.flying = Flying::Busy;
        Some((whole, parts))
    }

    /// The request is over. Tells whether the zone counts no more against the limit of active zones.
    pub(super) fn land(&mut self, parts: Vec<Part>, completion: Option<Completion>) -> bool {
        let was_counted = self.counted;
        self.flying = Flying::Nothing;
        let (bufs, result) = match completion {
            Some(Completion { request, result }) => (request.bufs, result.map_err(|error| error.kind)),
            None => (Vec::new(), Err(DeviceErrorKind::Lost)),
        };
        let mut bufs = bufs.into_iter();
        for part in parts {
            let own = bufs.by_ref().take(part.bufs).collect();
            part.done(own, result.clone());
        }
        if let Err(kind) = result {
            // Where the pointer stands now, nobody knows.
            self.close(&kind);
        }
        let counts = was_counted && self.next < self.end && self.closed.is_none();
        self.counted = counts;
        was_counted && !counts
    }

    /// No write is taken any more, and those that wait fail.
    pub(super) fn close(&mut self, kind: &DeviceErrorKind) {
        self.closed.get_or_insert_with(|| kind.clone());
        // It counts no more, unless its last request is still with the device: that tells.
        if matches!(self.flying, Flying::Nothing) {
            self.counted = false;
        }
        for (_, Held { request, slot }) in mem::take(&mut self.held) {
            let result = Err(request.error(kind.clone()));
            *slot.lock() = Some(Completion { request, result });
        }
    }

    /// The writes that are in front of those that wait never come.
    pub(super) fn give_up(&mut self) {
        let kind = ZoneError::GivenUp { zone: self.number, write_pointer: self.next }.into();
        self.close(&kind);
    }

    /// The zone was made empty, or full.
    pub(super) fn change(&mut self, full: bool) {
        self.next = if full { self.end } else { self.start };
        self.closed = None;
        self.counted = false;
    }
}
