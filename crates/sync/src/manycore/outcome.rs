//! The result of a run.

use crate::Site;

/// Where the time of all cores went, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Instructions and accesses to lines in the own cache.
    pub work: u64,
    /// Waiting for lines, outside of waiting for locks.
    pub lines: u64,
    /// Waiting for locks and condition variables, from the first attempt that failed to the one that did not.
    pub locks: u64,
    /// Waiting for the device, and sleep.
    pub device: u64,
}

impl Spent {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.work + self.lines + self.locks + self.device
    }

    /// A part of it, in percent.
    #[must_use]
    pub fn percent(&self, part: u64) -> f64 {
        100.0 * part as f64 / self.total().max(1) as f64
    }
}

/// A line, or all lines that one place in the source asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hot {
    /// The place; of a line, the last one.
    pub site: Site,
    /// Transfers.
    pub transfers: u64,
    /// Their cost for all cores together, with the waiting for the line, in picoseconds.
    pub cost: u64,
}

/// The outcome of a run, between the moment when all cores had done their warm-up and that when the first one ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Cores that ran.
    pub cores: usize,
    /// Operations.
    pub laps: u64,
    /// Picoseconds.
    pub time: u64,
    /// Where the time of the cores went.
    pub spent: Spent,
    /// The places that cost most, at most 40.
    pub places: Vec<Hot>,
    /// The places where locks are asked for that were waited for longest, at most 40: waits instead of transfers.
    pub waits: Vec<Hot>,
    /// The lines that cost most, at most 40.
    pub lines: Vec<Hot>,
    /// Accesses that write, outside of waiting for locks.
    pub writes: u64,
    /// Accesses, in the whole run.
    pub accesses: u64,
}

impl Outcome {
    /// Operations a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.laps as f64 * 1e12 / self.time.max(1) as f64
    }
}
