//! A zone as a report shows it, and why an operation on one is refused.

use std::fmt;

/// The state of a zone. The names are those of the ZBC, ZAC and NVMe ZNS standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneState {
    /// A conventional zone: written anywhere, always.
    Conventional,
    /// Nothing is written; the write pointer is at the start.
    Empty,
    /// Opened by a write; the device may close it when another zone needs its place.
    ImplicitlyOpen,
    /// Opened by [`open`](super::ZonedDevice::open); stays so until it is closed, finished, reset or full.
    ExplicitlyOpen,
    /// Partly written and not open. It is active still.
    Closed,
    /// Written to its capacity, or finished.
    Full,
    /// Worn out: it can be read up to the write pointer, and nothing else, for good.
    ReadOnly,
    /// Dead, for good.
    Offline,
}

impl ZoneState {
    /// Whether a zone in this state counts against the limit of open zones.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// Whether a zone in this state counts against the limit of active zones.
    #[must_use]
    pub fn is_active(self) -> bool {
        self.is_open() || self == Self::Closed
    }
}

impl fmt::Display for ZoneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conventional => "conventional",
            Self::Empty => "empty",
            Self::ImplicitlyOpen => "implicitly open",
            Self::ExplicitlyOpen => "explicitly open",
            Self::Closed => "closed",
            Self::Full => "full",
            Self::ReadOnly => "read-only",
            Self::Offline => "offline",
        })
    }
}

/// A command to one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneChange {
    /// Open it explicitly: it stays open until it is full, or closed, finished or reset.
    Open,
    /// Close it. It is empty if nothing was written.
    Close,
    /// Make it full: no more is written until it is reset.
    Finish,
    /// Make it empty; what was in it is gone.
    Reset,
}

/// One zone in a report. Addresses are blocks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Zone {
    /// Its number on its device, from 0.
    pub number: u32,
    /// Its first block.
    pub start: u64,
    /// The blocks that belong to it.
    pub blocks: u64,
    /// The blocks of these that can be written; all of a conventional zone.
    pub capacity: u64,
    /// Its state.
    pub state: ZoneState,
    /// Blocks from its start up to the write pointer; `None` where the pointer means nothing (conventional, full,
    /// offline).
    pub written: Option<u64>,
}

impl Zone {
    /// A zone of a report, with its fields in their order.
    #[must_use]
    pub fn new(number: u32, start: u64, blocks: u64, capacity: u64, state: ZoneState, written: Option<u64>) -> Zone {
        Zone { number, start, blocks, capacity, state, written }
    }

    /// The block that the next write must begin at, in a zone that can be written one after the other.
    #[must_use]
    pub fn write_pointer(&self) -> Option<u64> {
        self.written.map(|written| self.start + written)
    }
}

/// Why an operation on a zone was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneError {
    /// There is no such zone.
    #[error("there is no zone {zone}, the device has {zones}")]
    NoSuchZone {
        /// The number that was asked for.
        zone: u32,
        /// How many there are.
        zones: u32,
    },
    /// A zone in this state does not do that.
    #[error("zone {zone} is {state}")]
    State {
        /// The zone.
        zone: u32,
        /// Its state.
        state: ZoneState,
    },
    /// A write that begins elsewhere than at the write pointer.
    #[error("zone {zone} can only be written at its write pointer, block {write_pointer}")]
    WritePointer {
        /// The zone.
        zone: u32,
        /// Where its next write must begin (a block of the device).
        write_pointer: u64,
    },
    /// A write that goes on behind the blocks of a zone that can be written.
    #[error("zone {zone} can only be written up to its end, block {end}")]
    Capacity {
        /// The zone.
        zone: u32,
        /// The first block behind what can be written (a block of the device).
        end: u64,
    },
    /// No zone can be opened: all that are open were opened explicitly.
    #[error("{limit} zones are open explicitly, and the device allows no more")]
    TooManyOpen {
        /// Zones that may be open.
        limit: u32,
    },
    /// No zone can become active until another one is finished or reset.
    #[error("{limit} zones are active, and the device allows no more")]
    TooManyActive {
        /// Zones that may be active.
        limit: u32,
    },
    /// A write that waits for others in front of it, which never come.
    #[error(
        "a write that this one has to follow was given up: the write pointer of zone {zone} is at block {write_pointer}"
    )]
    GivenUp {
        /// The zone.
        zone: u32,
        /// Where its next write must begin (a block of the device).
        write_pointer: u64,
    },
    /// A command that names a block within a zone, not its start.
    #[error("the block is not the start of a zone: zone {zone} begins at block {start}")]
    NotAStart {
        /// The zone.
        zone: u32,
        /// Its first block (a block of the device).
        start: u64,
    },
    /// A layout that makes no sense.
    #[error("{what}: {value} is not in the range {min} to {max}")]
    Layout {
        /// The quantity that is wrong.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The least that is possible.
        min: u64,
        /// The most that is possible.
        max: u64,
    },
}
