//! The valid map of a segment: one bit a block.

use f2fs_format::BLOCKS_PER_SEGMENT;
use f2fs_format::sit::VALID_MAP_SIZE;

/// Words of a map.
const WORDS: usize = VALID_MAP_SIZE / 8;

/// 512 bits. On disk the first block is the top bit of the first byte, so each word is read big-endian and the first
/// block is its top bit; `leading_zeros` then finds blocks in their order.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockMap([u64; WORDS]);

impl core::fmt::Debug for BlockMap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.runs(true).map(|(start, len)| start..start + len)).finish()
    }
}

/// The bits `from..to` of one word, `from < to <= 64`.
const fn mask(from: u32, to: u32) -> u64 {
    (u64::MAX >> from) & !(if to == 64 { 0 } else { u64::MAX >> to })
}

impl BlockMap {
    /// No block.
    pub const EMPTY: BlockMap = BlockMap([0; WORDS]);

    /// The map from its on-disk bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; VALID_MAP_SIZE]) -> BlockMap {
        let mut map = BlockMap::EMPTY;
        for (word, chunk) in map.0.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut raw = [0; 8];
            raw.copy_from_slice(chunk);
            *word = u64::from_be_bytes(raw);
        }
        map
    }

    /// The map as it stands on disk.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; VALID_MAP_SIZE] {
        let mut bytes = [0; VALID_MAP_SIZE];
        for (word, chunk) in self.0.iter().zip(bytes.chunks_exact_mut(8)) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Whether a block is in the map; false behind the end.
    #[must_use]
    pub fn contains(&self, offset: u32) -> bool {
        self.0.get(offset as usize / 64).is_some_and(|word| word & (1 << (63 - offset % 64)) != 0)
    }

    /// Blocks in the map.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == BlockMap::EMPTY
    }

    /// The blocks of both maps.
    #[must_use]
    pub fn union(&self, other: &BlockMap) -> BlockMap {
        let mut map = *self;
        map.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        map
    }

    /// The blocks of this map that the other has not.
    #[must_use]
    pub fn without(&self, other: &BlockMap) -> BlockMap {
        let mut map = *self;
        map.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
        map
    }

    /// The blocks of both maps at once.
    #[must_use]
    pub fn intersection(&self, other: &BlockMap) -> BlockMap {
        let mut map = *self;
        map.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
        map
    }

    /// Adds the blocks `start .. start + len`, as far as they lie in the segment.
    pub fn insert(&mut self, start: u32, len: u32) {
        self.change(start, len, |word, mask| *word |= mask);
    }

    /// Removes the blocks `start .. start + len`, as far as they lie in the segment.
    pub fn remove(&mut self, start: u32, len: u32) {
        self.change(start, len, |word, mask| *word &= !mask);
    }

    fn change(&mut self, start: u32, len: u32, apply: impl Fn(&mut u64, u64)) {
        let end = start.saturating_add(len).min(BLOCKS_PER_SEGMENT);
        let mut at = start;
        while at < end {
            let stop = end.min((at / 64 + 1) * 64);
            apply(&mut self.0[at as usize / 64], mask(at % 64, stop - at / 64 * 64));
            at = stop;
        }
    }

    /// The first block at or behind `from` that is (`value`) or is not in the map.
    #[must_use]
    pub fn next(&self, from: u32, value: bool) -> Option<u32> {
        let mut index = from as usize / 64;
        let mut keep = u64::MAX >> (from % 64);
        while let Some(&word) = self.0.get(index) {
            let found = (if value { word } else { !word }) & keep;
            if found != 0 {
                return Some(index as u32 * 64 + found.leading_zeros());
            }
            (index, keep) = (index + 1, u64::MAX);
        }
        None
    }

    /// How many blocks are in the map at or behind `from`.
    #[must_use]
    pub fn count_from(&self, from: u32) -> u32 {
        let first = from as usize / 64;
        self.0
            .iter()
            .enumerate()
            .skip(first)
            .map(|(index, word)| if index == first { word & (u64::MAX >> (from % 64)) } else { *word })
            .map(u64::count_ones)
            .sum()
    }

    /// The maximal runs of blocks that are (`value`) or are not in the map, as start and length.
    pub fn runs(&self, value: bool) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = self.next(at, value)?;
            let end = self.next(start, !value).unwrap_or(BLOCKS_PER_SEGMENT);
            at = end;
            Some((start, end - start))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::BlockMap;
    use f2fs_format::bits::msb;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_on_disk_order(ops in prop::collection::vec((0u32..520, 0u32..130, any::<bool>()), 1..20), from in 0u32..512) {
            let (mut map, mut bytes) = (BlockMap::EMPTY, [0u8; 64]);
            for (start, len, set) in ops {
                for offset in start..(start + len).min(512) {
                    if set { msb::set(&mut bytes, offset as usize) } else { msb::clear(&mut bytes, offset as usize) };
                }
                if set { map.insert(start, len) } else { map.remove(start, len) }
            }
            prop_assert_eq!(map.to_bytes(), bytes);
            prop_assert_eq!(BlockMap::from_bytes(&bytes), map);
            prop_assert_eq!(map.count(), msb::count(&bytes));
            for value in [true, false] {
                prop_assert_eq!(map.next(from, value), msb::find(&bytes, from as usize, 512, value).map(|at| at as u32));
                let total: u32 = map.runs(value).map(|(_, len)| len).sum();
                prop_assert_eq!(total, if value { map.count() } else { 512 - map.count() });
            }
            let tail = (from..512).filter(|&offset| map.contains(offset)).count() as u32;
            prop_assert_eq!(map.count_from(from), tail);
        }
    }

    #[test]
    fn two_maps_are_put_together_block_by_block() {
        let (mut one, mut other) = (BlockMap::EMPTY, BlockMap::EMPTY);
        one.insert(60, 10);
        other.insert(65, 100);
        let runs = |map: BlockMap| map.runs(true).collect::<Vec<_>>();
        assert_eq!(runs(one.union(&other)), [(60, 105)]);
        assert_eq!(runs(one.without(&other)), [(60, 5)]);
        assert_eq!(runs(one.intersection(&other)), [(65, 5)]);
        assert_eq!((runs(one), one.is_empty(), one.without(&one).is_empty()), (vec![(60, 10)], false, true));
        one.insert(100, 1);
        assert_eq!(format!("{one:?}"), "[60..70, 100..101]");
        assert_eq!(BlockMap::EMPTY.runs(false).collect::<Vec<_>>(), [(0, 512)]);
        assert_eq!((one.contains(511), one.contains(512), one.count_from(65)), (false, false, 6));
    }
}
