//! Checksums that tell whether bytes are those that were written: CRC-32.
//!
//! A record has two: one over its payload, and one over its header, the payload's checksum and its length included. The
//! header's begins with a *seed* of the journal's identity and the lane, so that a record of another journal or lane is
//! none of this one.

use crc32fast::Hasher;
use f2fs_sync::protocol_never;

use crate::geometry::Ring;
use crate::record::HEADER;

/// With which number the checksums of a lane's headers begin.
pub(crate) fn seed(journal: &[u8; 16], lane: usize) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(journal);
    hasher.update(&(lane as u64).to_le_bytes());
    hasher.finalize()
}

/// The checksum of all of `bytes` but the four from `at`, which hold it.
pub(crate) fn around(seed: u32, bytes: &[u8], at: usize) -> u32 {
    let mut hasher = Hasher::new_with_initial(seed);
    let (before, rest) = bytes.split_at(at.min(bytes.len()));
    hasher.update(before);
    hasher.update(rest.get(4..).unwrap_or_default());
    hasher.finalize()
}

/// The checksum of a payload, taken piece by piece.
#[derive(Debug)]
pub(crate) struct PayloadSum {
    hasher: Hasher,
    /// Bytes that are still to be covered.
    left: usize,
    bytes: usize,
}

/// The smallest grain: what the faults below go by.
const LINE: usize = crate::medium::SMALLEST_GRAIN;

impl PayloadSum {
    /// Of a payload of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut left = bytes;
        protocol_never!(
            "journal_last_grain_uncovered",
            left = ((bytes + HEADER - 1) / LINE * LINE).saturating_sub(HEADER)
        );
        PayloadSum { hasher: Hasher::new(), left, bytes }
    }

    pub(crate) fn update(&mut self, piece: &[u8]) {
        let piece = &piece[..piece.len().min(self.left)];
        self.left -= piece.len();
        self.hasher.update(piece);
    }

    pub(crate) fn value(mut self) -> u32 {
        // Not over whole grains, as they are on the medium: then only the header would say how long the payload is.
        protocol_never!("journal_length_uncovered", {
            let padding = (self.bytes + HEADER).next_multiple_of(LINE) - HEADER - self.bytes;
            self.hasher.update(&[0; LINE][..padding]);
        });
        self.hasher.finalize()
    }
}

/// How much of a ring so many bytes of payload take, with a header; `None` for more than there are.
pub(crate) fn footprint(ring: Ring, payload: u64) -> Option<u64> {
    payload.checked_add(HEADER as u64)?.checked_next_multiple_of(ring.grain)
}
