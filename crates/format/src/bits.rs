//! The two bit orders of F2FS.
//!
//! SIT valid maps and the version bitmaps of the checkpoint count from the most significant bit of each byte
//! (`f2fs_test_bit`); dentry bitmaps and the NAT bits of the checkpoint pack count from the least significant one.

/// Whether no bit is set. Groups of bytes are looked at together, which is several at once for the processor, up to the
/// first one with a bit.
#[must_use]
pub fn is_zero(bytes: &[u8]) -> bool {
    const TOGETHER: usize = 256;
    let (groups, rest) = bytes.as_chunks::<TOGETHER>();
    groups.iter().all(|group| union(group) == 0) && union(rest) == 0
}

/// All bits that are set in one of the words.
fn union(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let word = words.iter().fold(0, |all, word| all | u64::from_ne_bytes(*word));
    rest.iter().fold(word, |all, byte| all | u64::from(*byte))
}

/// Bit order of SIT valid maps and version bitmaps: bit 0 is the top bit of byte 0.
pub mod msb {
    /// Whether bit `index` is set. Panics if the map is shorter.
    #[must_use]
    pub fn test(map: &[u8], index: usize) -> bool {
        map[index / 8] & (0x80 >> (index % 8)) != 0
    }

    /// Sets bit `index`; tells whether it was set before.
    pub fn set(map: &mut [u8], index: usize) -> bool {
        let mask = 0x80 >> (index % 8);
        let old = map[index / 8] & mask != 0;
        map[index / 8] |= mask;
        old
    }

    /// Clears bit `index`; tells whether it was set before.
    pub fn clear(map: &mut [u8], index: usize) -> bool {
        let mask = 0x80 >> (index % 8);
        let old = map[index / 8] & mask != 0;
        map[index / 8] &= !mask;
        old
    }

    /// Inverts bit `index`; tells its new value.
    pub fn flip(map: &mut [u8], index: usize) -> bool {
        map[index / 8] ^= 0x80 >> (index % 8);
        test(map, index)
    }

    /// How many bits are set.
    #[must_use]
    pub fn count(map: &[u8]) -> u32 {
        map.iter().map(|byte| byte.count_ones()).sum()
    }

    /// The first bit at or after `from`, below `len`, with the given value.
    #[must_use]
    pub fn find(map: &[u8], from: usize, len: usize, value: bool) -> Option<usize> {
        let flip = if value { 0x00 } else { 0xff };
        let mut index = from;
        while index < len {
            let bits: u8 = (map[index / 8] ^ flip) << (index % 8);
            if bits != 0 {
                return Some(index + bits.leading_zeros() as usize).filter(|found| *found < len);
            }
            index = index / 8 * 8 + 8;
        }
        None
    }
}

/// Bit order of dentry bitmaps and NAT bits: bit 0 is the bottom bit of byte 0.
pub mod lsb {
    /// Whether bit `index` is set. Panics if the map is shorter.
    #[must_use]
    pub fn test(map: &[u8], index: usize) -> bool {
        map[index / 8] & (1 << (index % 8)) != 0
    }

    /// Sets bit `index`.
    pub fn set(map: &mut [u8], index: usize) {
        map[index / 8] |= 1 << (index % 8);
    }

    /// Clears bit `index`.
    pub fn clear(map: &mut [u8], index: usize) {
        map[index / 8] &= !(1 << (index % 8));
    }

    /// The first bit at or after `from`, below `len`, with the given value.
    #[must_use]
    pub fn find(map: &[u8], from: usize, len: usize, value: bool) -> Option<usize> {
        let flip = if value { 0x00 } else { 0xff };
        let mut index = from;
        while index < len {
            let bits: u8 = (map[index / 8] ^ flip) >> (index % 8);
            if bits != 0 {
                return Some(index + bits.trailing_zeros() as usize).filter(|found| *found < len);
            }
            index = index / 8 * 8 + 8;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{is_zero, lsb, msb};

    #[test]
    fn a_single_bit_is_found_wherever_it_is() {
        for len in [0, 1, 7, 8, 40, 255, 256, 257, 800] {
            let mut bytes = [0; 800];
            assert!(is_zero(&bytes[..len]));
            for at in 0..len {
                bytes[at] = 1 << (at % 8);
                assert!(!is_zero(&bytes[..len]), "byte {at} of {len}");
                bytes[at] = 0;
            }
        }
    }

    #[test]
    fn the_orders_differ() {
        let mut map = [0u8; 2];
        assert!(!msb::set(&mut map, 1));
        assert_eq!(map, [0x40, 0]);
        lsb::set(&mut map, 9);
        assert_eq!(map, [0x40, 2]);
        assert!(msb::test(&map, 14));
        assert_eq!(msb::find(&map, 0, 16, true), Some(1));
        assert_eq!(msb::find(&map, 2, 16, true), Some(14));
        assert_eq!(lsb::find(&map, 7, 16, true), Some(9));
        assert_eq!(lsb::find(&[0xff, 0x01], 0, 9, false), None);
        assert_eq!(lsb::find(&[0xff, 0x03], 0, 9, false), None);
        assert_eq!(msb::find(&[0xff, 0xc0], 0, 10, false), None);
        assert_eq!(msb::find(&[0xff, 0xc0], 3, 16, false), Some(10));
        assert!(msb::clear(&mut map, 14));
        assert!(msb::flip(&mut map, 0));
    }
    #[test]
    fn found_is_the_first_of_its_value() {
        let map: [u8; 6] = [0x00, 0xa5, 0xff, 0x01, 0x80, 0x7e];
        for len in 0..=48 {
            for from in 0..=len {
                for value in [false, true] {
                    let first = |test: fn(&[u8], usize) -> bool| (from..len).find(|index| test(&map, *index) == value);
                    assert_eq!(lsb::find(&map, from, len, value), first(lsb::test), "lsb {from}..{len} {value}");
                    assert_eq!(msb::find(&map, from, len, value), first(msb::test), "msb {from}..{len} {value}");
                }
            }
        }
    }
}
