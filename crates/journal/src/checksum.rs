//! Checksums that tell whether headers are those that were written: CRC-32.
//!
//! A record has two checksums: one over its payload ([`PayloadSum`](crate::payload_sum::PayloadSum)), and this one over
//! its header, the payload's checksum and its length included. The header's begins with a *seed* of the journal's
//! identity and the lane, so that a record of another journal or lane is none of this one.

use crc32fast::Hasher;

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
