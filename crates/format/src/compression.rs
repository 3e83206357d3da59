//! Compressed files: what their inodes say, and the shape of a cluster.
//!
//! ```text
//! slots of a cluster of 4 blocks:
//!   plain        | block | block | block | block |
//!   compressed   | COMPRESS | block | block | NEW or 0 |    the data of 4 blocks in 2; what was saved is reserved, or released
//! ```
//!
//! Source: `fs/f2fs/compress.c`, `F2FS_IOC_RELEASE_COMPRESS_BLOCKS` in `Documentation/filesystems/f2fs.rst`.

use core::fmt;

/// Least and greatest base-2 logarithm of a cluster's size in blocks (`MIN_COMPRESS_LOG_SIZE`,
/// `MAX_COMPRESS_LOG_SIZE`).
pub const LOG_CLUSTER_SIZES: core::ops::RangeInclusive<u8> = 2..=8;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The number of the algorithm; see [`algorithm_name`](Self::algorithm_name).
    pub algorithm: u8,
    /// Base-2 logarithm of the blocks in a cluster, as it stands on disk; see [`cluster_blocks`](Self::cluster_blocks).
    pub log_cluster_size: u8,
    /// Blocks that the compressed clusters save (`i_compr_blocks`); 0 once they were released.
    pub saved_blocks: u64,
    /// Saved blocks were given to the volume: they are not counted as the file's.
    pub released: bool,
}

impl Compression {
    /// Blocks of a cluster. A size out of range counts as the nearest in it: whoever relies on the inode has checked
    /// [`is_sound`](Self::is_sound).
    #[must_use]
    pub fn cluster_blocks(&self) -> usize {
        1 << self.log_cluster_size.clamp(*LOG_CLUSTER_SIZES.start(), *LOG_CLUSTER_SIZES.end())
    }

    /// Whether the algorithm and the cluster's size are ones that the format knows.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.name().is_some() && LOG_CLUSTER_SIZES.contains(&self.log_cluster_size)
    }

    fn name(&self) -> Option<&'static str> {
        ["lzo", "lz4", "zstd", "lzo-rle"].get(usize::from(self.algorithm)).copied()
    }

    /// The name of the algorithm, as the kernel's mount option `compress_algorithm` spells it.
    #[must_use]
    pub fn algorithm_name(&self) -> &'static str {
        self.name().unwrap_or("unknown")
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in clusters of {} blocks", self.algorithm_name(), self.cluster_blocks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_names() {
        let of =
            |algorithm, log_cluster_size| Compression { algorithm, log_cluster_size, saved_blocks: 0, released: false };
        assert_eq!([2, 8, 0, 255].map(|log| of(0, log).cluster_blocks()), [4, 256, 4, 256]);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|number| of(number, 2).algorithm_name()),
            ["lzo", "lz4", "zstd", "lzo-rle", "unknown"]
        );
        assert!(of(3, 8).is_sound() && !of(4, 8).is_sound() && !of(0, 9).is_sound() && !of(0, 1).is_sound());
    }
}
