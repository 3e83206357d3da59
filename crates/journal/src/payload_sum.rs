//! The checksum of a payload: products of its words, folded.
//!
//! ```text
//!   stripe of 64 bytes:  w0 w1 | w2 w3 | w4 w5 | w6 w7      two words for each of four lanes, little-endian
//!   lane := fold((w ^ key) * (w' ^ lane))                   fold: the upper half of 128 bits upon the lower half
//!   sum  := fold over the lanes, begun with the length, and once more upon 32 bits
//! ```
//!
//! The last stripe is filled up with zeros. It is what wyhash does in the middle of a long input. A plain multiplication
//! takes a pair of words, so it needs no instruction that only some processors, or no emulator, has fast, and four
//! lanes keep the multiplier busy: it takes 0.9 times what CRC-32 takes with carry-less multiplication, and a thirtieth of it
//! where that is emulated. A payload that differs in whatever words has the same sum once in 2^32, as with CRC-32. It
//! is no protection from somebody who chooses the words.

use f2fs_sync::protocol_never;

use crate::geometry::HEADER;
use crate::medium::SMALLEST_GRAIN;

/// Bytes of a stripe.
const STRIPE: usize = 64;
/// One for each lane: the first bits behind the point of the square roots of 2, 3, 5 and 7.
const KEYS: [u64; 4] = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];
/// The smallest grain: what the faults below go by.
const LINE: usize = SMALLEST_GRAIN;

/// The checksum of a payload, taken piece by piece; where one piece ends makes no difference.
#[derive(Debug)]
pub(crate) struct PayloadSum {
    lanes: [u64; 4],
    /// A stripe that was begun.
    stripe: [u8; STRIPE],
    filled: usize,
    /// Bytes that are still to be covered.
    left: usize,
    bytes: usize,
}

impl PayloadSum {
    /// Of a payload of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut left = bytes;
        protocol_never!(
            "journal_last_grain_uncovered",
            left = ((bytes + HEADER - 1) / LINE * LINE).saturating_sub(HEADER)
        );
        PayloadSum { lanes: KEYS, stripe: [0; STRIPE], filled: 0, left, bytes }
    }

    pub(crate) fn update(&mut self, piece: &[u8]) {
        let mut piece = &piece[..piece.len().min(self.left)];
        self.left -= piece.len();
        if self.filled > 0 {
            let (first, rest) = piece.split_at(piece.len().min(STRIPE - self.filled));
            self.stripe[self.filled..self.filled + first.len()].copy_from_slice(first);
            self.filled += first.len();
            if self.filled < STRIPE {
                return;
            }
            self.lanes = after(self.lanes, &[self.stripe]);
            piece = rest;
        }
        let (whole, rest) = piece.as_chunks();
        self.lanes = after(self.lanes, whole);
        self.stripe[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    pub(crate) fn value(mut self) -> u32 {
        let mut length = self.bytes;
        // Not over whole grains, as they are on the medium: then only the header would say how long the payload is.
        protocol_never!("journal_length_uncovered", {
            length = (self.bytes + HEADER).next_multiple_of(LINE) - HEADER;
            self.left = length - self.bytes;
            self.update(&[0; LINE][..length - self.bytes]);
        });
        if self.filled > 0 {
            self.stripe[self.filled..].fill(0);
            self.lanes = after(self.lanes, &[self.stripe]);
        }
        let sum = self.lanes.iter().zip(KEYS).fold(length as u64, |sum, (lane, key)| fold(sum ^ key, *lane));
        (sum ^ sum >> 32) as u32
    }
}

/// The product of two words, its halves one upon the other.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

/// The lanes behind these stripes.
fn after(lanes: [u64; 4], stripes: &[[u8; STRIPE]]) -> [u64; 4] {
    // In registers: an array would be written again and again.
    let [mut first, mut second, mut third, mut fourth] = lanes;
    for stripe in stripes {
        let (words, _) = stripe.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        first = fold(word(0) ^ KEYS[0], word(1) ^ first);
        second = fold(word(2) ^ KEYS[1], word(3) ^ second);
        third = fold(word(4) ^ KEYS[2], word(5) ^ third);
        fourth = fold(word(6) ^ KEYS[3], word(7) ^ fourth);
    }
    [first, second, third, fourth]
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn sum(pieces: &[&[u8]]) -> u32 {
        let mut sum = PayloadSum::new(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| sum.update(piece));
        sum.value()
    }

    /// The same by words, as the picture has it.
    fn by_the_picture(bytes: &[u8]) -> u32 {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(STRIPE), 0);
        let words: Vec<u64> = padded.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let mut lanes = KEYS;
        for (pair, two) in words.as_chunks::<2>().0.iter().enumerate() {
            let lane = pair % 4;
            let product = u128::from(two[0] ^ KEYS[lane]) * u128::from(two[1] ^ lanes[lane]);
            lanes[lane] = (product >> 64) as u64 ^ product as u64;
        }
        let mut sum = bytes.len() as u64;
        for lane in 0..4 {
            let product = u128::from(sum ^ KEYS[lane]) * u128::from(lanes[lane]);
            sum = (product >> 64) as u64 ^ product as u64;
        }
        (sum >> 32) as u32 ^ sum as u32
    }

    fn some(len: usize) -> Vec<u8> {
        (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    #[test]
    fn it_does_not_depend_on_the_pieces() {
        let bytes = some(300);
        for len in 0..bytes.len() {
            let bytes = &bytes[..len];
            assert_eq!(sum(&[bytes]), by_the_picture(bytes), "{len} bytes");
            for at in 0..=len {
                let (one, rest) = bytes.split_at(at);
                let (two, three) = rest.split_at(rest.len() / 3);
                assert_eq!(sum(&[one, two, &[], three]), sum(&[bytes]), "{len} bytes, {at} at first");
            }
        }
    }

    #[test]
    fn a_changed_bit_a_torn_word_and_another_length_change_it() {
        // Zeros as well: what was there before is often nothing.
        for bytes in [some(200), vec![0; 200]] {
            let whole = sum(&[&bytes]);
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(sum(&[&changed]), whole, "bit {bit}");
            }
            for (one, other) in (0..25).flat_map(|one| (0..one).map(move |other| (one, other))) {
                let mut torn = bytes.clone();
                [one, other].iter().for_each(|word| torn[word * 8..word * 8 + 8].fill(0xa5));
                assert_ne!(sum(&[&torn]), whole, "words {one} and {other}");
            }
            for len in 0..bytes.len() {
                assert_ne!(sum(&[&bytes[..len]]), whole, "{len} bytes");
            }
        }
    }
}
