//! The two bit orders of F2FS.
//!
//! SIT valid maps and the version bitmaps of the checkpoint count from the most significant bit of each byte
//! (`f2fs_test_bit`); dentry bitmaps and the NAT bits of the checkpoint pack count from the least significant one.

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
        let skip = if value { 0x00 } else { 0xff };
        let mut index = from;
        while index < len {
            if index.is_multiple_of(8) && map[index / 8] == skip {
                index += 8;
            } else if test(map, index) == value {
                return Some(index);
            } else {
                index += 1;
            }
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
        let skip = if value { 0x00 } else { 0xff };
        let mut index = from;
        while index < len {
            if index.is_multiple_of(8) && map[index / 8] == skip {
                index += 8;
            } else if test(map, index) == value {
                return Some(index);
            } else {
                index += 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{lsb, msb};

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
        assert!(msb::clear(&mut map, 14));
        assert!(msb::flip(&mut map, 0));
    }
}
