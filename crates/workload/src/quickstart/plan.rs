//! The files: name, size and content of each follow from its number.

use std::path::PathBuf;

use crate::tree::mix;

use super::Config;

/// Bytes of a large file that are written or read at once: a segment.
pub const LARGE_PIECE: u64 = 2 << 20;
/// Consecutive files that share a directory before it is the next one's turn.
const RUN: u64 = 64;
/// Bytes that fit into an inode with every layout.
const INLINE: u64 = 3400;
const BLOCK: u64 = 4096;
/// Keeps the seeds of large files apart from those of small ones.
const LARGE_SEED: u64 = 1 << 40;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// The seed from which [`fill`](crate::tree::fill) makes its content.
    pub seed: u64,
}

/// All files of a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    config: Config,
}

impl Plan {
    /// The plan of a configuration.
    #[must_use]
    pub fn new(config: Config) -> Plan {
        Plan { config }
    }

    /// The directory with this number.
    #[must_use]
    pub fn directory(&self, number: u64) -> PathBuf {
        PathBuf::from(format!("/d{number:03}"))
    }

    fn directory_of(&self, file: u64) -> u64 {
        file / RUN % self.config.directories.max(1)
    }

    /// The small file with this number.
    #[must_use]
    pub fn file(&self, number: u64) -> FileSpec {
        let random = mix(number);
        let size = match random % 16 {
            0..8 => 1 + (random >> 8) % INLINE,
            8..14 => BLOCK,
            _ => BLOCK + 1 + (random >> 8) % (4 * BLOCK),
        };
        let path = PathBuf::from(format!("/d{:03}/file-{number:07}", self.directory_of(number)));
        FileSpec { path, size, seed: number }
    }

    /// The large file with this number.
    #[must_use]
    pub fn large(&self, number: u64) -> FileSpec {
        FileSpec {
            path: PathBuf::from(format!("/large-{number:02}")),
            size: self.config.large_bytes,
            seed: LARGE_SEED + number,
        }
    }

    /// Whether the small file with this number is unlinked.
    #[must_use]
    pub fn is_unlinked(&self, number: u64) -> bool {
        number % 2 == 1
    }

    /// Files that are left in each directory in the end.
    #[must_use]
    pub fn left_by_directory(&self) -> Vec<u64> {
        let mut counts = vec![0; self.config.directories.max(1) as usize];
        for number in (0..self.config.files).filter(|number| !self.is_unlinked(*number)) {
            counts[self.directory_of(number) as usize] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_of_every_kind_and_all_differ() {
        let plan = Plan::new(Config { files: 1000, directories: 3, ..Config::default() });
        let files: Vec<_> = (0..1000).map(|number| plan.file(number)).collect();
        let inline = files.iter().filter(|file| file.size <= INLINE).count();
        let block = files.iter().filter(|file| file.size == BLOCK).count();
        let more = files.iter().filter(|file| file.size > BLOCK && !file.size.is_multiple_of(BLOCK)).count();
        assert!(inline > 400 && block > 300 && more > 80, "{inline} inline, {block} of one block, {more} longer");
        assert!(files.iter().all(|file| file.size >= 1 && file.size <= 5 * BLOCK));
        let mut paths: Vec<_> = files.iter().map(|file| &file.path).collect();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), 1000);
        assert_eq!(plan.left_by_directory(), [180, 160, 160]);
    }
}
