//! The settings of a measurement.

use std::fmt;

use f2fs::RangeLock;

use crate::tree::mix;

/// Bytes of a read.
pub(super) const BLOCK: u64 = 4096;

/// Calls of `read_many` have so many times the depth.
const ROUNDS: u64 = 64;

/// Where the reads go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// All over the file.
    #[default]
    Random,
    /// In order, each thread from a place of its own.
    Sequential,
}

/// Whose the file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One file for all threads.
    #[default]
    Shared,
    /// A file for each thread; with fewer files than threads, some share one.
    Private,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where the reads go.
    pub pattern: Pattern,
    /// Whose the file is.
    pub sharing: Sharing,
    /// Reads that a thread has on the device at a time.
    pub depth: usize,
    /// Threads.
    pub threads: usize,
    /// The locks of ranges of a file; those of the open volume.
    pub table: RangeLock,
    /// Reads of all threads together.
    pub reads: u64,
}

impl Default for Setting {
    /// Random reads of a shared file, one at a time by one thread.
    fn default() -> Setting {
        Setting {
            pattern: Pattern::Random,
            sharing: Sharing::Shared,
            depth: 1,
            threads: 1,
            table: RangeLock::Extent,
            reads: 100_000,
        }
    }
}

impl Setting {
    /// The table's name: `extent` or `btree`.
    #[must_use]
    pub fn table_name(&self) -> &'static str {
        match self.table {
            RangeLock::Btree => "btree",
            _ => "extent",
        }
    }

    /// Memory for the blocks that all threads read.
    #[must_use]
    pub fn buffer_bytes(&self) -> u64 {
        (0..self.threads).fold(0, |sum, worker| sum.saturating_add(self.buffer_bytes_of(worker)))
    }

    /// The same of one worker.
    pub(super) fn buffer_bytes_of(&self, worker: usize) -> u64 {
        let blocks = if self.depth <= 1 { 1 } else { (self.depth as u64).saturating_mul(ROUNDS) };
        blocks.min(self.share(worker)).max(1).saturating_mul(BLOCK)
    }

    /// The reads of a worker.
    pub(super) fn share(&self, worker: usize) -> u64 {
        let (threads, worker) = (self.threads as u64, worker as u64);
        self.reads / threads + u64::from(worker < self.reads % threads)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
        })
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sharing::Shared => "shared",
            Sharing::Private => "private",
        })
    }
}

/// The blocks that a worker reads, one after the other.
#[derive(Debug)]
pub(super) struct Places {
    pattern: Pattern,
    next: u64,
    blocks: u64,
}

impl Places {
    /// The blocks of a worker in a file of so many blocks, which is not empty.
    pub(super) fn new(setting: &Setting, worker: usize, blocks: u64) -> Places {
        let worker = worker as u64;
        let next = match setting.pattern {
            // Far from the numbers of the other workers.
            Pattern::Random => worker << 40,
            Pattern::Sequential => blocks / setting.threads as u64 * worker,
        };
        Places { pattern: setting.pattern, next, blocks }
    }

    pub(super) fn next(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        let place = if self.pattern == Pattern::Random { mix(number) } else { number };
        place % self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_add_up() {
        for threads in [1, 3, 7, 128] {
            let setting = Setting { threads, reads: 1000, ..Setting::default() };
            assert_eq!((0..threads).map(|worker| setting.share(worker)).sum::<u64>(), 1000);
        }
    }

    #[test]
    fn threads_have_room_for_what_they_read_at_once() {
        let setting = Setting { threads: 4, depth: 8, reads: 10_000, ..Setting::default() };
        assert_eq!(setting.buffer_bytes(), 4 * 8 * 64 * 4096);
        assert_eq!(Setting { reads: 10, ..setting }.buffer_bytes(), 10 * 4096, "no more than there are reads");
        assert_eq!(Setting { depth: 1, ..setting }.buffer_bytes(), 4 * 4096);
    }

    #[test]
    fn random_places_cover_the_file_and_workers_differ() {
        let setting = Setting { threads: 2, ..Setting::default() };
        let mut seen = [[0_u32; 64]; 2];
        for (worker, seen) in seen.iter_mut().enumerate() {
            let mut places = Places::new(&setting, worker, 64);
            (0..6400).for_each(|_| seen[places.next() as usize] += 1);
            assert!(seen.iter().all(|count| (50..150).contains(count)), "{seen:?}");
        }
        assert_ne!(seen[0], seen[1]);
    }

    #[test]
    fn sequential_workers_begin_apart_and_wrap() {
        let setting = Setting { threads: 4, pattern: Pattern::Sequential, ..Setting::default() };
        let mut places = Places::new(&setting, 3, 10);
        assert_eq!((0..6).map(|_| places.next()).collect::<Vec<_>>(), [6, 7, 8, 9, 0, 1]);
    }
}
