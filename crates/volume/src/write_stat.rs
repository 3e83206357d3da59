//! Counts of blocks written, by reason: write amplification by its causes.
//!
//! Counts are kept per core, so that counting writes no line that another core writes; reading adds them up.

use f2fs_sync::PerCore;
use f2fs_sync::atomic::{AtomicU64, Ordering};

/// Buckets of the histogram of request sizes.
const SIZES: usize = 11;

/// The blocks of 4 KiB that an open volume has written since it was opened; other units are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteStat {
    /// Data written for users, directory blocks among it.
    pub user_blocks: u64,
    /// Data moved by cleaning whole sections.
    pub moved_data_blocks: u64,
    /// Of these, put into the holes of segments of about their age (`AT_SSR`).
    pub merged_data_blocks: u64,
    /// Nodes made dirty so that they move with the next checkpoint.
    pub moved_node_blocks: u64,
    /// Data moved out of the way of later writes (partial cleaning).
    pub precleaned_blocks: u64,
    /// Data rewritten in its place, within a larger request (self partial cleaning).
    pub rewritten_blocks: u64,
    /// Nodes written by checkpoints.
    pub node_blocks: u64,
    /// Nodes written by syncs of files, for roll-forward.
    pub synced_node_blocks: u64,
    /// SIT, NAT and SSA blocks.
    pub table_blocks: u64,
    /// Blocks of checkpoint packs.
    pub pack_blocks: u64,
    /// Sections emptied.
    pub victims: u64,
    /// Cleanings that kept operations out ([`Cleaning::clean_until`](crate::Cleaning::clean_until)).
    pub cleanings_alone: u64,
    /// Segments cleared for later writes.
    pub precleaned_segments: u64,
    /// Moves that were lost to an overwrite or a deletion at the same time.
    pub lost_moves: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Of these, written by syncs that neither the log nor a journal did for.
    pub sync_checkpoints: u64,
    /// Records of names in a journal, each for a group of syncs.
    pub name_records: u64,
    /// Requests that wrote user data, rewritten blocks among it.
    pub user_requests: u64,
    /// Requests that wrote moved data.
    pub move_requests: u64,
    /// Requests that wrote user data by size: index `i` counts those of more than `2^(i-1)` and at most `2^i` blocks;
    /// the last one also all larger.
    pub request_sizes: [u64; SIZES],
}

impl WriteStat {
    /// Blocks written in all.
    #[must_use]
    pub fn written_blocks(&self) -> u64 {
        self.user_blocks
            + self.moved_data_blocks
            + self.precleaned_blocks
            + self.rewritten_blocks
            + self.node_blocks
            + self.synced_node_blocks
            + self.table_blocks
            + self.pack_blocks
    }

    /// Blocks written for each block of user data; 1 if there was none.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        if self.user_blocks == 0 { 1.0 } else { self.written_blocks() as f64 / self.user_blocks as f64 }
    }

    /// The sums of both.
    #[must_use]
    pub fn plus(&self, other: &WriteStat) -> WriteStat {
        self.joined(other, u64::wrapping_add)
    }

    /// The counts since an earlier reading.
    #[must_use]
    pub fn minus(&self, earlier: &WriteStat) -> WriteStat {
        self.joined(earlier, u64::saturating_sub)
    }

    fn joined(&self, other: &WriteStat, join: impl Fn(u64, u64) -> u64) -> WriteStat {
        let (mut result, mut other) = (*self, *other);
        for (mine, theirs) in result.named().into_iter().zip(other.named()) {
            *mine = join(*mine, *theirs);
        }
        for (mine, theirs) in result.request_sizes.iter_mut().zip(other.request_sizes) {
            *mine = join(*mine, theirs);
        }
        result
    }

    fn named(&mut self) -> [&mut u64; NAMED] {
        [
            &mut self.user_blocks,
            &mut self.moved_data_blocks,
            &mut self.merged_data_blocks,
            &mut self.moved_node_blocks,
            &mut self.precleaned_blocks,
            &mut self.rewritten_blocks,
            &mut self.node_blocks,
            &mut self.synced_node_blocks,
            &mut self.table_blocks,
            &mut self.pack_blocks,
            &mut self.victims,
            &mut self.cleanings_alone,
            &mut self.precleaned_segments,
            &mut self.lost_moves,
            &mut self.checkpoints,
            &mut self.sync_checkpoints,
            &mut self.name_records,
            &mut self.user_requests,
            &mut self.move_requests,
        ]
    }
}

/// Which count. The order is that of [`WriteStat::named`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    UserBlocks,
    MovedData,
    MergedData,
    MovedNodes,
    Precleaned,
    Rewritten,
    Nodes,
    SyncedNodes,
    Tables,
    Pack,
    Victims,
    CleaningsAlone,
    PrecleanedSegments,
    LostMoves,
    Checkpoints,
    SyncCheckpoints,
    NameRecords,
    UserRequests,
    MoveRequests,
}

const NAMED: usize = 19;

#[derive(Debug)]
struct Slot {
    named: [AtomicU64; NAMED],
    sizes: [AtomicU64; SIZES],
}

/// The counts, per core.
#[derive(Debug)]
pub(crate) struct WriteCounters(PerCore<Slot>);

impl WriteCounters {
    pub(crate) fn new() -> WriteCounters {
        WriteCounters(PerCore::new(|_| Slot {
            named: core::array::from_fn(|_| AtomicU64::new(0)),
            sizes: core::array::from_fn(|_| AtomicU64::new(0)),
        }))
    }

    pub(crate) fn add(&self, count: Count, amount: u64) {
        self.0.slot().named[count as usize].fetch_add(amount, Ordering::Relaxed);
    }

    /// Counts a request that wrote user data.
    pub(crate) fn user_request(&self, blocks: u64) {
        let size = (blocks.max(1).next_power_of_two().trailing_zeros() as usize).min(SIZES - 1);
        let slot = self.0.slot();
        slot.named[Count::UserRequests as usize].fetch_add(1, Ordering::Relaxed);
        slot.sizes[size].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> WriteStat {
        let mut stat = WriteStat::default();
        for slot in self.0.iter() {
            for (sum, count) in stat.named().into_iter().zip(&slot.named) {
                *sum += count.load(Ordering::Relaxed);
            }
            for (sum, count) in stat.request_sizes.iter_mut().zip(&slot.sizes) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        stat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_back_under_their_names() {
        let counters = WriteCounters::new();
        counters.add(Count::UserBlocks, 100);
        counters.add(Count::Precleaned, 7);
        counters.add(Count::SyncedNodes, 2);
        counters.add(Count::Pack, 3);
        counters.add(Count::MoveRequests, 5);
        for blocks in [1, 2, 3, 512, 4096] {
            counters.user_request(blocks);
        }
        let stat = counters.read();
        assert_eq!((stat.user_blocks, stat.precleaned_blocks, stat.pack_blocks, stat.move_requests), (100, 7, 3, 5));
        assert_eq!(stat.user_requests, 5);
        assert_eq!(stat.request_sizes, [1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((stat.node_blocks, stat.synced_node_blocks), (0, 2));
        assert!((stat.amplification() - 1.12).abs() < 1e-9);
        for (count, blocks) in [(Count::MovedData, 11), (Count::Rewritten, 13), (Count::Nodes, 17), (Count::Tables, 19)]
        {
            counters.add(count, blocks);
        }
        assert_eq!(counters.read().written_blocks(), 112 + 11 + 13 + 17 + 19);
    }

    #[test]
    fn counts_are_added_and_taken_away_one_by_one() {
        let counters = WriteCounters::new();
        counters.add(Count::Nodes, 5);
        counters.add(Count::MoveRequests, 2);
        counters.user_request(3);
        let first = counters.read();
        counters.add(Count::Nodes, 4);
        counters.user_request(4);
        counters.user_request(0);
        let second = counters.read();
        let since = second.minus(&first);
        assert_eq!((since.node_blocks, since.move_requests, since.user_requests), (4, 0, 2));
        assert_eq!(since.request_sizes[..4], [1, 0, 1, 0]);
        assert_eq!((since.plus(&first), first.minus(&second).node_blocks), (second, 0));
        assert!((WriteStat::default().amplification() - 1.0).abs() < 1e-9);
    }
}
