//! Sizes of the table's pieces, shrunk under `cfg(loom)` so that models stay small enough to explore.

use f2fs_format::Nid;

/// Entries of a NAT block.
#[cfg(not(loom))]
pub(crate) const ENTRIES: usize = f2fs_format::nat::ENTRIES_PER_BLOCK;
/// Bits used of each bitmap word.
#[cfg(not(loom))]
pub(crate) const WORD_BITS: usize = 64;

/// Entries of a NAT block.
#[cfg(loom)]
pub(crate) const ENTRIES: usize = 4;
/// Bits used of each bitmap word.
#[cfg(loom)]
pub(crate) const WORD_BITS: usize = 2;

/// Bitmap words of a NAT block.
pub(crate) const WORDS: usize = ENTRIES.div_ceil(WORD_BITS);

/// The first NID that may be handed out or bound: 0 is "none", 1 and 2 are the kernel's node and meta inodes.
pub(crate) const FIRST_NID: u32 = 3;

/// A plain bitmap over the entries of a NAT block.
pub(crate) type Bits = [u64; WORDS];

/// The NAT block of a NID, and the NID's place in it.
pub(crate) const fn locate(nid: Nid) -> (u32, usize) {
    (nid.0 / ENTRIES as u32, nid.0 as usize % ENTRIES)
}

/// The NID at a place of a NAT block.
pub(crate) const fn nid_at(block: u32, index: usize) -> Nid {
    Nid(block * ENTRIES as u32 + index as u32)
}

/// The word and the mask of an entry's bit.
pub(crate) const fn bit(index: usize) -> (usize, u64) {
    (index / WORD_BITS, 1 << (index % WORD_BITS))
}

/// Whether the entry's bit is set.
pub(crate) const fn test(bits: &Bits, index: usize) -> bool {
    let (word, mask) = bit(index);
    bits[word] & mask != 0
}

/// The entries whose bit is set, ascending.
pub(crate) fn members(bits: Bits) -> impl Iterator<Item = usize> {
    bits.into_iter().enumerate().flat_map(|(word, mut rest)| {
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let index = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                word * WORD_BITS + index
            })
        })
    })
}

/// How many bits are set.
pub(crate) fn count(bits: &Bits) -> u32 {
    bits.iter().map(|word| word.count_ones()).sum()
}
