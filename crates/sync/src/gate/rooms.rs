//! Where entrants wait for a closed gate to be opened.
//!
//! One condition variable for all of them would wake them one after the other: each goes on with the lock that it wakes
//! up with, and only then the next one is woken. So they wait in several rooms, and those of different rooms go on side
//! by side.
//!
//! # Locking rules
//!
//! A room's lock is held to look at its number or to change it. Nothing else is locked under it.

use crate::{Condvar, Mutex, PerCore, processors, protocol_step, protocol_value};

/// Processors that share a room.
const PROCESSORS: usize = 8;

/// Rooms to wait in; each has the number of the last opening that it was told of.
pub(super) struct Rooms(PerCore<Room>);

#[derive(Default)]
struct Room {
    opening: Mutex<u64>,
    opened: Condvar,
}

impl Rooms {
    pub(super) fn new() -> Rooms {
        // A model has two, so that it sees what a room is not told.
        let rooms = if cfg!(loom) { 2 } else { processors() / PROCESSORS };
        Rooms(PerCore::with_slots(rooms, |_| Room::default()))
    }

    /// Waits for the opening with this number. Everything that was done before it is visible on return.
    pub(super) fn wait_for(&self, opening: u64) {
        let room = self.0.slot();
        let mut last = room.opening.lock();
        while *last < opening {
            room.opened.wait(&mut last);
        }
    }

    /// Tells all rooms of the opening with this number. Of two callers the later number may come first.
    pub(super) fn tell(&self, opening: u64) {
        for (number, room) in self.0.iter().enumerate() {
            let told = || {
                let mut last = room.opening.lock();
                *last = protocol_value!("gate_later_opening_stays", opening.max(*last), opening);
                drop(last);
                room.opened.notify_all();
            };
            if number == 0 {
                told();
            } else {
                protocol_step!("gate_rooms_not_told", told());
            }
        }
    }
}
