//! The checksum of F2FS: CRC-32 (0xEDB88320) without the final inversion, seeded with the magic number.
//!
//! Source: `f2fs_crc32` in `fs/f2fs/f2fs.h`; `f2fs_cal_crc32` in f2fs-tools.

/// The seed of superblock, checkpoint and orphan checksums: the magic number.
pub const SEED: u32 = crate::superblock::MAGIC;

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
    #[test]
    fn known_vector() {
        assert_eq!(super::checksum(b"123456789"), 0x1657_a0c3);
        assert_eq!(super::update(super::checksum(b"12345"), b"6789"), 0x1657_a0c3);
    }
}
