//! File content that can be made again from a number.

/// Fills `buffer` with the bytes that stand `position` bytes after the start of the stream `seed`. Pieces of a stream fit
/// together whatever their sizes.
///
/// ```
/// use f2fs_workload::tree::fill;
/// let (mut whole, mut tail) = ([0; 40], [0; 27]);
/// fill(7, 0, &mut whole);
/// fill(7, 13, &mut tail);
/// assert_eq!(whole[13..], tail);
/// ```
pub fn fill(seed: u64, position: u64, buffer: &mut [u8]) {
    let mut at = position;
    let mut rest = buffer;
    while !rest.is_empty() {
        let word = mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(at / 8)).to_le_bytes();
        let word = &word[(at % 8) as usize..];
        let step = word.len().min(rest.len());
        let (head, tail) = rest.split_at_mut(step);
        head.copy_from_slice(&word[..step]);
        at += step as u64;
        rest = tail;
    }
}

/// The finaliser of splitmix64: neighbouring numbers give unrelated words.
pub(super) fn mix(number: u64) -> u64 {
    let a = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    c ^ (c >> 31)
}
