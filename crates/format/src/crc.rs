//! The checksum of F2FS: CRC-32 (0xEDB88320) without the final inversion, seeded with the magic number.
//!
//! Source: `f2fs_crc32` in `fs/f2fs/f2fs.h`; `f2fs_cal_crc32` in f2fs-tools.

/// The seed of superblock, checkpoint and orphan checksums: the magic number.
pub const SEED: u32 = 0xF2F5_2010;

/// Continues a checksum over more bytes. `state` is the checksum so far (or a seed).
#[must_use]
pub fn update(state: u32, bytes: &[u8]) -> u32 {
    // crc32fast inverts before and after; F2FS does neither.
    let mut hasher = crc32fast::Hasher::new_with_initial(!state);
    hasher.update(bytes);
    !hasher.finalize()
}

/// The checksum of `bytes` with the usual [`SEED`].
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    update(SEED, bytes)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    #[test]
    fn known_vector() {
        assert_eq!(super::checksum(b"123456789"), 0x1657_a0c3);
        assert_eq!(super::update(super::checksum(b"12345"), b"6789"), 0x1657_a0c3);
    }

    /// Long inputs go through instructions of their own, where the processor has them.
    #[test]
    fn long_inputs_bit_by_bit() {
        let bytes: Vec<u8> = (0..4096u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for len in [0, 1, 15, 16, 127, 128, 129, 1000, 2048, 4091, 4096] {
            let mut state = super::SEED;
            for byte in &bytes[..len] {
                state ^= u32::from(*byte);
                for _ in 0..8 {
                    state = if state & 1 == 1 { state >> 1 ^ 0xedb8_8320 } else { state >> 1 };
                }
            }
            assert_eq!(super::checksum(&bytes[..len]), state, "{len} bytes");
        }
    }
}
