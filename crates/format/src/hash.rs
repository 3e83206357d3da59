//! The hash of a name, and the geometry of a directory's multi-level hash table.
//!
//! ```text
//! level 0:  1 bucket  of 2 blocks          (2^dir_level buckets)
//! level 1:  2 buckets of 2 blocks
//! ...
//! level 31: 2^30 buckets of 4 blocks, and so on up to level 62
//! ```
//!
//! A name with hash h belongs into bucket `h % buckets` of some level. Source: `fs/f2fs/hash.c`, `dir_buckets`,
//! `bucket_blocks` and `dir_block_index` in `fs/f2fs/dir.c`.

use crate::inode::NAME_LEN;

/// Levels of a directory.
pub const MAX_DEPTH: u32 = 63;
/// Buckets in a level, at most.
pub const MAX_BUCKETS: u32 = 1 << (MAX_DEPTH / 2 - 1);

/// The hash of a name as it stands in a directory entry: 0 for `.` and `..`, else TEA over the name in runs of 16
/// bytes.
///
/// The header's `F2FS_HASH_COL_BIT` is bit 63, so clearing it leaves all 32 bits that are stored: the top bit of the
/// stored word is part of the hash.
#[must_use]
pub fn dentry_hash(name: &[u8]) -> u32 {
    if name == b"." || name == b".." {
        return 0;
    }
    let mut state = [0x6745_2301, 0xefcd_ab89];
    let mut rest = name;
    loop {
        tea(&mut state, words(rest));
        if rest.len() <= 16 {
            return state[0];
        }
        rest = &rest[16..];
    }
}

/// The hash of an ASCII name in a casefolded directory, which is that of its folded form: for ASCII, of the name in
/// small letters. `None` for other names, which Unicode folds (`f2fs_init_casefolded_name` in `fs/f2fs/dir.c`).
#[must_use]
pub fn folded_ascii_hash(name: &[u8]) -> Option<u32> {
    if !name.is_ascii() || name.len() > NAME_LEN {
        return None;
    }
    let mut folded = [0; NAME_LEN];
    let folded = folded.get_mut(..name.len())?;
    folded.copy_from_slice(name);
    folded.make_ascii_lowercase();
    Some(dentry_hash(folded))
}

/// Sixteen rounds of the Tiny Encryption Algorithm, added to the state.
fn tea(state: &mut [u32; 2], key: [u32; 4]) {
    const DELTA: u32 = 0x9e37_79b9;
    let [mut left, mut right] = *state;
    let mut sum = 0u32;
    let mix = |value: u32, sum: u32, first: u32, second: u32| {
        (value << 4).wrapping_add(first) ^ value.wrapping_add(sum) ^ (value >> 5).wrapping_add(second)
    };
    for _ in 0..16 {
        sum = sum.wrapping_add(DELTA);
        left = left.wrapping_add(mix(right, sum, key[0], key[1]));
        right = right.wrapping_add(mix(left, sum, key[2], key[3]));
    }
    state[0] = state[0].wrapping_add(left);
    state[1] = state[1].wrapping_add(right);
}

/// The first 16 bytes of `rest` as four words. Each word starts out as the padding, which is made of the length of all
/// that is left, and is shifted left by every byte.
fn words(rest: &[u8]) -> [u32; 4] {
    let len = rest.len() as u32;
    let half = len | len << 8;
    let pad = half | half << 16;
    let mut words = [pad; 4];
    for (word, bytes) in words.iter_mut().zip(rest.chunks(4)) {
        *word = match <[u8; 4]>::try_from(bytes) {
            // All of the padding was shifted out.
            Ok(four) => u32::from_be_bytes(four),
            Err(_) => bytes.iter().fold(pad, |word, byte| (word << 8).wrapping_add(u32::from(*byte))),
        };
    }
    words
}

/// Buckets of a level. `dir_level` is the inode's `i_dir_level`.
#[must_use]
pub const fn buckets(level: u32, dir_level: u8) -> u32 {
    let shift = level + dir_level as u32;
    if shift < MAX_DEPTH / 2 { 1 << shift } else { MAX_BUCKETS }
}

/// Blocks in each bucket of a level.
#[must_use]
pub const fn bucket_blocks(level: u32) -> u32 {
    if level < MAX_DEPTH / 2 { 2 } else { 4 }
}

/// The first file block of a bucket. Levels above the first 31 lie beyond what a file can hold.
#[must_use]
pub fn block_index(level: u32, dir_level: u8, bucket: u32) -> u64 {
    let above: u64 =
        (0..level).map(|level| u64::from(buckets(level, dir_level)) * u64::from(bucket_blocks(level))).sum();
    above + u64::from(bucket) * u64::from(bucket_blocks(level))
}

/// The file blocks of the bucket in which a name with this hash belongs, on one level.
#[must_use]
pub fn bucket_range(level: u32, dir_level: u8, hash: u32) -> core::ops::Range<u64> {
    let start = block_index(level, dir_level, hash % buckets(level, dir_level));
    start..start + u64::from(bucket_blocks(level))
}

/// The level and bucket that file block `block` of a directory belongs to; `None` beyond the last level.
#[must_use]
pub fn locate_block(block: u64, dir_level: u8) -> Option<(u32, u32)> {
    let mut first = 0;
    for level in 0..MAX_DEPTH {
        let blocks = u64::from(bucket_blocks(level));
        let size = u64::from(buckets(level, dir_level)) * blocks;
        if block - first < size {
            return Some((level, ((block - first) / blocks) as u32));
        }
        first += size;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that sload.f2fs 1.15 wrote for these names.
    #[test]
    fn known_vectors() {
        for (name, hash) in [
            (&b"."[..], 0),
            (b"..", 0),
            (b"...", 0xd96d_c3e1),
            (b".hidden", 0x395f_c5b0),
            (b"1234567890123456", 0x183f_e387),
            (b"12345678901234567", 0x2b31_5881),
            (b"README.md", 0x0e23_01b1),
            (b"a", 0x6d0e_a4c1),
            (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0xada6_ad45),
            (b"ab", 0xd27d_8659),
            (b"file-0001", 0x48bc_c236),
            (b"hello", 0x6f5b_b1a8),
            (b"lost+found", 0x2dbf_9e80),
            (&[b'n'; 255], 0x0415_6e7c),
            (&[b'x'; 40], 0xb3f4_bbfc),
            (b"\xff\xfe\x80", 0x29c8_8e5d),
        ] {
            assert_eq!(dentry_hash(name), hash, "{}", name.escape_ascii());
        }
    }

    #[test]
    fn folded_names() {
        assert_eq!(folded_ascii_hash(b"README.md"), Some(dentry_hash(b"readme.md")));
        assert_eq!(folded_ascii_hash(b"ReadMe.MD"), Some(dentry_hash(b"readme.md")));
        assert_eq!(folded_ascii_hash(b".."), Some(0));
        assert_eq!((folded_ascii_hash("é".as_bytes()), folded_ascii_hash(&[b'a'; 256])), (None, None));
    }

    #[test]
    fn geometry() {
        assert_eq!([0, 1, 2, 30, 31, 62].map(|level| buckets(level, 0)), [1, 2, 4, 1 << 30, 1 << 30, 1 << 30]);
        assert_eq!([buckets(0, 3), buckets(28, 3), buckets(27, 3)], [8, 1 << 30, 1 << 30]);
        assert_eq!([0, 30, 31, 62].map(bucket_blocks), [2, 2, 4, 4]);
        assert_eq!([0, 1, 2, 3].map(|level| block_index(level, 0, 0)), [0, 2, 6, 14]);
        assert_eq!(block_index(3, 0, 5), 24);
        assert_eq!(block_index(1, 2, 7), 8 + 14);
        assert_eq!(bucket_range(3, 0, 0x1d), 24..26);
        assert_eq!(buckets(62, 255), MAX_BUCKETS);
    }

    #[test]
    fn blocks_find_their_bucket() {
        for dir_level in [0, 1, 7, 255] {
            for level in 0..MAX_DEPTH {
                for bucket in [0, buckets(level, dir_level) / 2, buckets(level, dir_level) - 1] {
                    let start = block_index(level, dir_level, bucket);
                    for block in start..start + u64::from(bucket_blocks(level)) {
                        assert_eq!(locate_block(block, dir_level), Some((level, bucket)));
                    }
                }
            }
            let end = block_index(MAX_DEPTH, dir_level, 0);
            assert_eq!(locate_block(end, dir_level), None);
            assert_eq!(locate_block(end - 1, dir_level), Some((62, MAX_BUCKETS - 1)));
        }
    }
}
