//! The states and write pointers of all zones: the state machine of a zoned device, without its data.
//!
//! ```text
//!            write                       open
//!   empty ----------> implicitly open ----------> explicitly open
//!                        |      ^                   |        ^
//!                  close |      | write       close |        | open
//!                        v      |                   v        |
//!                       closed -+                  closed ---+
//! ```
//!
//! | state | write | open | close | finish | reset |
//! |---|---|---|---|---|---|
//! | empty | implicitly open | explicitly open | refused | full | empty |
//! | implicitly open | stays; full at the end | explicitly open | closed, or empty if nothing is written | full | empty |
//! | explicitly open | stays; full at the end | stays | closed, or empty if nothing is written | full | empty |
//! | closed | implicitly open; full at the end | explicitly open | stays | full | empty |
//! | full | refused | refused | refused | stays | empty |
//! | read-only, offline | refused | refused | refused | refused | refused |
//!
//! At the limit of open zones, the zone that a write opened first is closed when another zone opens, or is finished
//! without being open. Every sequential zone can become read-only or offline, for good.
//!
//! Locking rules: `open` counts the zones that are open and closed, and is held whenever a zone changes its state; each
//! zone has a lock of its own for state and write pointer. `open` is taken before a zone. A thread that holds `open`
//! may lock two zones at once (one to open and one to close for it); everybody else locks one. A write into a zone that
//! is open and stays so, the hot path, locks that zone only, so writers of different zones meet nowhere.

use std::collections::BTreeMap;

use f2fs_sync::{CachePadded, Mutex, MutexGuard, protocol_value};

use super::{Zone, ZoneError, ZoneLayout, ZoneState};

/// The zones of a device.
#[derive(Debug)]
pub(super) struct Zones {
    layout: ZoneLayout,
    /// Blocks of the device.
    blocks: u64,
    zones: Box<[CachePadded<Mutex<Cell>>]>,
    open: Mutex<Open>,
}

/// The part of a zone's state that changes.
#[derive(Clone, Copy, Debug)]
struct Cell {
    state: ZoneState,
    /// Blocks from the start to the write pointer.
    written: u64,
    /// When a write opened it, if one did.
    turn: u64,
}

/// Zones by the limits of the device that they count against.
#[derive(Debug, Default)]
struct Open {
    /// Zones that a write opened, by their turns: at the limit the first one is closed.
    implicit: BTreeMap<u64, u32>,
    explicit: u32,
    closed: u32,
    /// Zones that writes have opened so far.
    turns: u64,
}

impl Zones {
    /// All sequential zones of a device of `blocks` blocks are empty.
    pub(super) fn new(layout: ZoneLayout, blocks: u64) -> Result<Self, ZoneError> {
        let zones = layout.zones(blocks)?;
        let state = |zone| if zone < layout.conventional { ZoneState::Conventional } else { ZoneState::Empty };
        let cell = |zone| CachePadded::new(Mutex::new(Cell { state: state(zone), written: 0, turn: 0 }));
        Ok(Self { layout, blocks, zones: (0..zones).map(cell).collect(), open: Mutex::new(Open::default()) })
    }

    pub(super) fn layout(&self) -> &ZoneLayout {
        &self.layout
    }

    pub(super) fn count(&self) -> u32 {
        self.zones.len() as u32
    }

    /// The zone that `block` belongs to; one that does not exist for blocks behind the device.
    pub(super) fn of(&self, block: u64) -> u32 {
        u32::try_from(block / self.layout.zone_blocks).unwrap_or(u32::MAX)
    }

    fn start(&self, zone: u32) -> u64 {
        u64::from(zone) * self.layout.zone_blocks
    }

    /// Blocks of a zone: fewer than usual in the last one.
    fn blocks(&self, zone: u32) -> u64 {
        self.layout.zone_blocks.min(self.blocks - self.start(zone))
    }

    fn capacity(&self, zone: u32) -> u64 {
        self.layout.capacity.min(self.blocks(zone))
    }

    fn lock(&self, zone: u32) -> Result<MutexGuard<'_, Cell>, ZoneError> {
        let zones = self.count();
        self.zones.get(zone as usize).map(|cell| cell.lock()).ok_or(ZoneError::NoSuchZone { zone, zones })
    }

    /// One zone as it is now.
    pub(super) fn zone(&self, number: u32) -> Result<Zone, ZoneError> {
        use ZoneState::{Conventional, Full, Offline};
        let cell = *self.lock(number)?;
        let written = (!matches!(cell.state, Conventional | Full | Offline)).then_some(cell.written);
        let blocks = self.blocks(number);
        let capacity = if cell.state == Conventional { blocks } else { self.capacity(number) };
        Ok(Zone { number, start: self.start(number), blocks, capacity, state: cell.state, written })
    }

    /// The state of a zone, and the number of blocks from its start that were written.
    pub(super) fn state(&self, zone: u32) -> Result<(ZoneState, u64), ZoneError> {
        let cell = *self.lock(zone)?;
        Ok((cell.state, cell.written))
    }

    /// Blocks from the start of a zone that a read finds something in, or the error of an offline zone.
    pub(super) fn readable(&self, zone: u32) -> Result<u64, ZoneError> {
        let cell = *self.lock(zone)?;
        match cell.state {
            ZoneState::Conventional => Ok(self.blocks(zone)),
            ZoneState::Offline => Err(ZoneError::State { zone, state: cell.state }),
            _ => Ok(cell.written),
        }
    }

    /// Takes `blocks` blocks of a zone for a write at its write pointer, and returns where they begin. If `at` is given
    /// (a block of the device), the pointer must be there. A conventional zone is left alone, and takes no append.
    pub(super) fn write(&self, zone: u32, at: Option<u64>, blocks: u64) -> Result<u64, ZoneError> {
        let mut cell = self.lock(zone)?;
        let (start, capacity) = (self.start(zone), self.capacity(zone));
        // How far the zone is written when this write is over.
        let check = |cell: &Cell| {
            let write_pointer = start + cell.written;
            match (cell.state, at) {
                (state @ (ZoneState::Full | ZoneState::ReadOnly | ZoneState::Offline), _) => {
                    Err(ZoneError::State { zone, state })
                }
                (_, Some(at)) if at != write_pointer => Err(ZoneError::WritePointer { zone, write_pointer }),
                _ if blocks > capacity - cell.written => Err(ZoneError::Capacity { zone, end: start + capacity }),
                _ => Ok(cell.written + blocks),
            }
        };
        if cell.state == ZoneState::Conventional {
            return self.write_conventional(zone, at, blocks);
        }
        let end = check(&cell)?;
        if blocks == 0 || (cell.state.is_open() && end < capacity) {
            let written = std::mem::replace(&mut cell.written, end);
            return Ok(start + written);
        }
        // The zone opens, or is full: the locks in their order, and another look.
        drop(cell);
        let mut open = self.open.lock();
        let mut cell = self.lock(zone)?;
        let end = protocol_value!("zones_check_again", check(&cell)?, end);
        if protocol_value!("zones_open_twice", !cell.state.is_open(), true) {
            self.make_room(&mut open, cell.state)?;
            self.change(&mut open, zone, &mut cell, ZoneState::ImplicitlyOpen);
        }
        let written = std::mem::replace(&mut cell.written, end);
        if end == capacity {
            self.change(&mut open, zone, &mut cell, ZoneState::Full);
        }
        Ok(start + written)
    }

    /// A write may go on from one conventional zone into the next.
    fn write_conventional(&self, zone: u32, at: Option<u64>, blocks: u64) -> Result<u64, ZoneError> {
        let at = at.ok_or(ZoneError::State { zone, state: ZoneState::Conventional })?;
        let end = self.start(self.layout.conventional).min(self.blocks);
        if at + blocks > end { Err(ZoneError::Capacity { zone, end }) } else { Ok(at) }
    }

    /// Opens a zone for good.
    pub(super) fn open(&self, zone: u32) -> Result<(), ZoneError> {
        use ZoneState::{Closed, Empty, ExplicitlyOpen, ImplicitlyOpen};
        self.command(zone, |open, cell| match cell.state {
            ExplicitlyOpen => Ok(ExplicitlyOpen),
            ImplicitlyOpen => Ok(ExplicitlyOpen),
            Empty | Closed => self.make_room(open, cell.state).map(|()| ExplicitlyOpen),
            state => Err(ZoneError::State { zone, state }),
        })
    }

    /// Closes an open zone.
    pub(super) fn close(&self, zone: u32) -> Result<(), ZoneError> {
        self.command(zone, |_, cell| match cell.state {
            ZoneState::Closed => Ok(ZoneState::Closed),
            state if state.is_open() => Ok(closed(cell)),
            state => Err(ZoneError::State { zone, state }),
        })
    }

    /// Makes a zone full.
    pub(super) fn finish(&self, zone: u32) -> Result<(), ZoneError> {
        use ZoneState::{Closed, Empty, Full};
        self.command(zone, |open, cell| match cell.state {
            Full => Ok(Full),
            // It is open for a moment.
            Empty | Closed => self.make_room(open, cell.state).map(|()| Full),
            state if state.is_open() => Ok(Full),
            state => Err(ZoneError::State { zone, state }),
        })
    }

    /// Makes a zone empty.
    pub(super) fn reset(&self, zone: u32) -> Result<(), ZoneError> {
        use ZoneState::{Conventional, Empty, Offline, ReadOnly};
        self.command(zone, |_, cell| match cell.state {
            state @ (Conventional | ReadOnly | Offline) => Err(ZoneError::State { zone, state }),
            _ => {
                cell.written = 0;
                Ok(Empty)
            }
        })
    }

    /// A sequential zone becomes read-only or offline; from read-only there is only offline.
    pub(super) fn retire(&self, zone: u32, to: ZoneState) -> Result<(), ZoneError> {
        use ZoneState::{Conventional, Offline, ReadOnly};
        self.command(zone, |_, cell| match (cell.state, to) {
            (state @ Conventional, _) | (state @ Offline, ReadOnly) => Err(ZoneError::State { zone, state }),
            _ => Ok(to),
        })
    }

    /// The zone is as it was before the device was opened.
    pub(super) fn restore(&self, zone: u32, state: ZoneState, written: u64) -> Result<(), ZoneError> {
        self.command(zone, |_, cell| {
            cell.written = written;
            Ok(state)
        })
    }

    /// Lets `decide` say the next state of a zone.
    fn command(
        &self,
        zone: u32,
        decide: impl FnOnce(&mut Open, &mut Cell) -> Result<ZoneState, ZoneError>,
    ) -> Result<(), ZoneError> {
        let mut open = self.open.lock();
        let mut cell = self.lock(zone)?;
        let next = decide(&mut open, &mut cell)?;
        self.change(&mut open, zone, &mut cell, next);
        Ok(())
    }

    /// Sees to it that a zone in state `from` (empty or closed) may be opened: at the limit, the zone that a write
    /// opened first is closed.
    fn make_room(&self, open: &mut Open, from: ZoneState) -> Result<(), ZoneError> {
        let ZoneLayout { max_open, max_active, .. } = self.layout;
        let is_open = open.explicit + open.implicit.len() as u32;
        if from == ZoneState::Empty && max_active > 0 && is_open + open.closed >= max_active {
            return Err(ZoneError::TooManyActive { limit: max_active });
        }
        if max_open > 0 && is_open >= max_open {
            let (_, &oldest) = open.implicit.first_key_value().ok_or(ZoneError::TooManyOpen { limit: max_open })?;
            // Not the zone to be opened, which is not open: no thread waits for a zone that it holds.
            let mut cell = self.lock(oldest)?;
            let next = closed(&cell);
            self.change(open, oldest, &mut cell, next);
        }
        Ok(())
    }

    /// A zone changes its state; the counts follow.
    fn change(&self, open: &mut Open, zone: u32, cell: &mut Cell, next: ZoneState) {
        if cell.state == next {
            return;
        }
        match cell.state {
            ZoneState::ImplicitlyOpen => drop(open.implicit.remove(&cell.turn)),
            ZoneState::ExplicitlyOpen => open.explicit -= 1,
            ZoneState::Closed => open.closed -= 1,
            _ => {}
        }
        match next {
            ZoneState::ImplicitlyOpen => {
                (open.turns, cell.turn) = (open.turns + 1, open.turns);
                open.implicit.insert(cell.turn, zone);
            }
            ZoneState::ExplicitlyOpen => open.explicit += 1,
            ZoneState::Closed => open.closed += 1,
            _ => {}
        }
        cell.state = next;
    }
}

/// The state of an open zone after it is closed.
fn closed(cell: &Cell) -> ZoneState {
    if cell.written == 0 { ZoneState::Empty } else { ZoneState::Closed }
}
