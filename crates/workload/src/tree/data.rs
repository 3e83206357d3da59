//! File content that can be made again from a number.

use f2fs_device_test::Random;

/// Fills `buffer` with the bytes that stand `position` bytes after the start of the stream `seed`. Pieces of a stream
/// fit together whatever their sizes.
///
/// ```
/// use f2fs_workload::tree::fill;
/// let (mut whole, mut tail) = ([0; 40], [0; 27]);
/// fill(7, 0, &mut whole);
/// fill(7, 13, &mut tail);
/// assert_eq!(whole[13..], tail);
/// ```
pub fn fill(seed: u64, position: u64, buffer: &mut [u8]) {
    let stream = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = |index: u64| mix(stream.wrapping_add(index)).to_le_bytes();
    // Up to the first whole word, whole words, and what is left.
    let skipped = (position % 8) as usize;
    let head_len = ((8 - skipped) % 8).min(buffer.len());
    let (head, rest) = buffer.split_at_mut(head_len);
    head.copy_from_slice(&word(position / 8)[skipped..][..head_len]);
    let mut index = position.div_ceil(8);
    let mut words = rest.chunks_exact_mut(8);
    for bytes in &mut words {
        bytes.copy_from_slice(&word(index));
        index += 1;
    }
    let tail = words.into_remainder();
    tail.copy_from_slice(&word(index)[..tail.len()]);
}

/// Neighbouring numbers give unrelated words.
pub(crate) fn mix(number: u64) -> u64 {
    Random::new(number).next()
}
