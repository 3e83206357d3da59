//! What an operation costs, noted step by step while it is played, to be put on the time axis afterwards.

use std::time::Duration;

use f2fs_sync::{Mutex, PlainArc};

/// The number of a device in its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(pub(super) usize);

/// A part of an operation's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The device is busy for one operation at a time; `after` passes behind that for the operation alone.
    Busy {
        /// The device.
        at: Place,
        /// How long it is busy.
        time: Duration,
        /// What passes afterwards.
        after: Duration,
    },
    /// A flush that the file system shares by a [`GroupCommit`](f2fs_sync::GroupCommit), outside of checkpoints.
    Flush {
        /// The device.
        at: Place,
        /// How long it takes.
        time: Duration,
    },
    /// The flush of a write that is durable by itself: it begins at once, or behind the one that runs, with all that
    /// came meanwhile.
    Durable {
        /// The device.
        at: Place,
        /// How long it takes.
        time: Duration,
    },
    /// Time of this operation alone.
    Alone(Duration),
}

/// The charges of the operation that is played. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Ledger(PlainArc<Mutex<Book>>);

#[derive(Debug, Default)]
struct Book {
    devices: usize,
    charges: Vec<Charge>,
}

impl Ledger {
    /// A device that notes its charges here.
    pub(super) fn add_device(&self) -> Place {
        let mut book = self.0.lock();
        book.devices += 1;
        Place(book.devices - 1)
    }

    pub(super) fn note(&self, charge: Charge) {
        self.0.lock().charges.push(charge);
    }

    /// How many devices there are.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.0.lock().devices
    }

    /// What was noted since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Charge> {
        std::mem::take(&mut self.0.lock().charges)
    }
}
