//! A record: a header of 40 bytes and a payload, one behind the other, filled up to whole grains.
//!
//! ```text
//!  0        4        8        12      16         24      32      40
//!  +--------+--------+--------+-------+----------+-------+-------+----------------------+
//!  | header | payload| length | epoch | position | stamp | batch | payload, then zeros  |
//!  | CRC    | sum    |        |       |          |       |       | up to a whole grain  |
//!  +--------+--------+--------+-------+----------+-------+-------+----------------------+
//! ```
//! All numbers are little-endian. *Position* is that of the record itself: a record of an earlier round of the ring has
//! another one, so what was there before is never taken for new. *Epoch* counts how often the journal was opened to
//! append: bytes that a power cut left behind the end of a lane have an earlier epoch than all records that are
//! appended there. *Batch* is the position at which the batch of this record began: all before it was durable when this
//! record was written, which tells a damaged record from a torn one.

use f2fs_sync::protocol_never;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::geometry::HEADER;
use crate::payload_sum::PayloadSum;

/// The header of a record.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    header_crc: U32,
    pub(crate) payload_sum: U32,
    pub(crate) length: U32,
    pub(crate) epoch: U32,
    pub(crate) position: U64,
    pub(crate) stamp: U64,
    pub(crate) batch: U64,
}

const _: () = assert!(size_of::<Header>() == HEADER);

/// Where the length lies.
const LENGTH_AT: usize = 8;

impl Header {
    pub(crate) fn new(entry: &Entry<'_>, epoch: u32, position: u64, stamp: u64, batch: u64) -> Self {
        Header {
            header_crc: U32::ZERO,
            payload_sum: entry.sum.into(),
            length: entry.length.into(),
            epoch: epoch.into(),
            position: position.into(),
            stamp: stamp.into(),
            batch: batch.into(),
        }
    }

    /// With its checksum.
    pub(crate) fn sealed(mut self, seed: u32) -> Self {
        self.header_crc = self.sum(seed).into();
        self
    }

    /// Whether the header is as it was written, in this lane.
    pub(crate) fn is_sound(&self, seed: u32) -> bool {
        self.header_crc.get() == self.sum(seed)
    }

    /// Whether nothing was written here.
    pub(crate) fn is_zero(&self) -> bool {
        self.as_bytes().iter().all(|byte| *byte == 0)
    }

    fn sum(&self, seed: u32) -> u32 {
        let mut bytes = [0; HEADER];
        bytes.copy_from_slice(self.as_bytes());
        protocol_never!("journal_length_uncovered", bytes[LENGTH_AT..LENGTH_AT + 4].fill(0));
        checksum::around(seed, &bytes, 0)
    }
}

/// The parts of one record that is to be appended, with their length and checksum, which are computed here and not
/// while a lane is locked.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub(crate) parts: &'a [&'a [u8]],
    /// Bytes of all parts, or more than any lane has.
    pub(crate) bytes: u64,
    length: u32,
    sum: u32,
}

impl<'a> Entry<'a> {
    /// A record of these parts, one behind the other.
    #[must_use]
    pub fn new(parts: &'a [&'a [u8]]) -> Self {
        let bytes = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.len() as u64)).unwrap_or(u64::MAX);
        let Ok(length) = u32::try_from(bytes) else {
            return Entry { parts, bytes: u64::MAX, length: u32::MAX, sum: 0 };
        };
        let mut sum = PayloadSum::new(length as usize);
        parts.iter().for_each(|part| sum.update(part));
        Entry { parts, bytes, length, sum: sum.value() }
    }
}

/// A record, as it is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its stamp.
    pub stamp: u64,
    /// Its lane.
    pub lane: usize,
    /// Where in its lane it begins.
    pub position: u64,
    /// The bytes that were appended.
    pub payload: &'a [u8],
}

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The stamp of the first record.
    pub first: u64,
    /// The stamp of the last record, which is the same if there is one record: hand it in with a record that must
    /// follow this one.
    pub stamp: u64,
    /// Where they are.
    pub lane: usize,
    /// Where in the lane the first one begins.
    pub position: u64,
    /// Bytes that are left in the lane: whether it is time to take space back.
    pub free: u64,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_header_is_covered() {
        let parts: [&[u8]; 2] = [b"ab", b"c"];
        let header = Header::new(&Entry::new(&parts), 3, 64, 9, 0).sealed(7);
        assert!(header.is_sound(7) && !header.is_sound(8));
        for bit in 0..HEADER * 8 {
            let mut bytes = [0; HEADER];
            bytes.copy_from_slice(header.as_bytes());
            bytes[bit / 8] ^= 1 << (bit % 8);
            let changed = Header::read_from_bytes(&bytes).unwrap();
            assert!(!changed.is_sound(7), "bit {bit}");
        }
    }

    #[test]
    fn the_checksum_does_not_depend_on_the_parts_and_does_on_the_length() {
        let whole = Entry::new(&[b"abcdef"]);
        assert_eq!(whole.sum, Entry::new(&[b"ab", b"", b"cdef"]).sum);
        assert_ne!(whole.sum, Entry::new(&[b"abcdef\0"]).sum);
        assert_eq!((whole.bytes, whole.length), (6, 6));
    }
}
