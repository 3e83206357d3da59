//! Where the parts of a journal lie on its medium.

use f2fs_sync::processors;

use crate::medium::{LARGEST_GRAIN, SMALLEST_GRAIN};
use crate::{Error, Gather, Medium, MediumError};

/// Bytes of a record's header.
pub const HEADER: usize = 40;
/// Bytes of each of the two copies of the journal's header.
pub(crate) const COPY: u64 = 4096;
/// Where the lanes begin.
pub(crate) const LANES_AT: u64 = 2 * COPY;
/// The most lanes.
pub const MOST_LANES: usize = 128;
/// Processors that have a lane each, however small that is.
const FEW_LANES: usize = 2;
/// Bytes of each lane at least, where there are more of them without being asked for.
const LANE: u64 = 1 << 20;
/// Positions stay below this, which no journal reaches by being written.
pub(crate) const MOST_POSITION: u64 = 1 << 62;

/// Sizes of a journal: checked, so that sums of them do not overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) grain: u32,
    /// A power of two.
    pub(crate) lanes: u32,
    /// Bytes of each lane, a multiple of the grain.
    pub(crate) lane_bytes: u64,
}

impl Geometry {
    /// Lanes of the same size that fill the medium.
    ///
    /// # Errors
    /// [`Error::BadGrain`], [`Error::TooSmall`].
    pub(crate) fn fill(medium: &impl Medium, lanes: Option<usize>) -> Result<Geometry, Error> {
        let grain = check_grain(medium)?;
        let room = medium.bytes().saturating_sub(LANES_AT).min(MOST_POSITION / 4);
        let lanes = lanes.unwrap_or_else(|| usual_lanes(processors(), room));
        let lanes = lanes.clamp(1, MOST_LANES).next_power_of_two() as u32;
        let lane_bytes = room / u64::from(lanes) / u64::from(grain) * u64::from(grain);
        if lane_bytes < u64::from(grain) {
            let needed = LANES_AT + u64::from(lanes) * u64::from(grain);
            return Err(Error::TooSmall { bytes: medium.bytes(), needed });
        }
        Ok(Geometry { grain, lanes, lane_bytes })
    }

    /// Whether a journal of these sizes can lie on this medium.
    ///
    /// # Errors
    /// [`Error::BadGrain`], [`Error::TooSmall`], [`Error::Impossible`].
    pub(crate) fn check(self, medium: &impl Medium) -> Result<(), Error> {
        let grain = check_grain(medium)?;
        // A journal that was written in small grains can be read in larger ones, and not be appended to.
        if self.grain != grain {
            return Err(Error::BadGrain { found: self.grain as usize });
        }
        let lanes_fit = self.lanes.is_power_of_two() && self.lanes as usize <= MOST_LANES;
        let bytes_fit = self.lane_bytes > 0
            && self.lane_bytes.is_multiple_of(u64::from(self.grain))
            && self.lane_bytes <= MOST_POSITION / 4;
        if !lanes_fit || !bytes_fit {
            return Err(Error::Impossible { lanes: self.lanes, lane_bytes: self.lane_bytes });
        }
        let needed = u64::from(self.lanes).saturating_mul(self.lane_bytes).saturating_add(LANES_AT);
        if needed > medium.bytes() {
            return Err(Error::TooSmall { bytes: medium.bytes(), needed });
        }
        Ok(())
    }

    pub(crate) fn ring(self, lane: usize) -> Ring {
        let (base, bytes) = (LANES_AT + lane as u64 * self.lane_bytes, self.lane_bytes);
        Ring { base, bytes, grain: u64::from(self.grain) }
    }
}

/// Lanes for so many processors on so much room: one each, unless that makes small ones. A record goes into one lane, so
/// a small journal that is cut into many takes short records only, and is full when one of its lanes is.
fn usual_lanes(processors: usize, room: u64) -> usize {
    let large = (room / LANE).checked_ilog2().map_or(1, |log| 1_usize << log.min(usize::BITS - 2));
    processors.min(large.max(FEW_LANES))
}

fn check_grain(medium: &impl Medium) -> Result<u32, Error> {
    let grain = medium.grain();
    if !grain.is_power_of_two() || !(SMALLEST_GRAIN..=LARGEST_GRAIN).contains(&grain) {
        return Err(Error::BadGrain { found: grain });
    }
    Ok(grain as u32)
}

/// The bytes of a lane, used round and round. A *position* counts all bytes that were ever given to records, so it only
/// grows; the same byte of the medium has a position in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) grain: u64,
}

impl Ring {
    /// How much of it so many bytes of payload take, with a header; `None` for more than there are.
    pub(crate) fn footprint(self, payload: u64) -> Option<u64> {
        payload.checked_add(HEADER as u64)?.checked_next_multiple_of(self.grain)
    }

    /// Where a position lies on the medium.
    pub(crate) fn offset(self, position: u64) -> u64 {
        self.base + position % self.bytes
    }

    /// Bytes from this position to where the ring begins again.
    fn straight(self, position: u64) -> usize {
        usize::try_from(self.bytes - position % self.bytes).unwrap_or(usize::MAX)
    }

    /// Whether so many bytes lie in one piece.
    pub(crate) fn in_one_piece(self, position: u64, bytes: usize) -> bool {
        bytes <= self.straight(position)
    }

    /// Reads from a position that begins a grain. `into` is no longer than the ring.
    pub(crate) fn read(self, medium: &impl Medium, position: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let (first, rest) = into.split_at_mut(into.len().min(self.straight(position)));
        medium.read(self.offset(position), first)?;
        if rest.is_empty() { Ok(()) } else { medium.read(self.base, rest) }
    }

    /// Writes to a position that begins a grain. `bytes` is no longer than the ring.
    pub(crate) fn write(self, medium: &impl Medium, position: u64, bytes: Gather<'_>) -> Result<(), MediumError> {
        let (first, rest) = bytes.split_at(self.straight(position));
        medium.write(self.offset(position), first)?;
        if rest.is_empty() { Ok(()) } else { medium.write(self.base, rest) }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_small_journal_is_not_cut_into_many_lanes() {
        const MIB: u64 = 1 << 20;
        for (processors, room, lanes) in [
            (1, 0, 1),
            (2, 4096, 2),
            (16, 4096, 2),
            (128, 3 * MIB, 2),
            (3, 4 * MIB, 3),
            (128, 4 * MIB, 4),
            (128, 63 * MIB, 32),
            (128, 128 * MIB, 128),
            (3, u64::MAX, 3),
            (256, u64::MAX, 256),
        ] {
            assert_eq!(usual_lanes(processors, room), lanes, "{processors} processors, {room} bytes");
        }
    }
}
