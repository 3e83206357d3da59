//! Counts and sizes of an open file system, for embedders who export them.

use crate::filesystem::FileSystem;

/// Whether a number only grows, or goes up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatKind {
    /// Counts what happened since the file system was opened.
    Counter,
    /// A present amount.
    Gauge,
}

macro_rules! stats {
    ($($(#[doc = $text:literal])+ $kind:ident $name:ident,)+) => {
        /// Counts and sizes of an open file system at one moment ([`FileSystem::stats`]). A block has 4096 bytes, a
        /// segment 512 blocks (2 MiB). A count since the opening only grows.
        ///
        /// While others change the volume, numbers that belong together may be of moments next to each other.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $text])+ pub $name: u64,)+
        }

        impl Stats {
            /// All of them with their names and kinds, in the order of the fields, for exporters.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, StatKind, u64)> {
                [$((stringify!($name), StatKind::$kind, self.$name),)+].into_iter()
            }
        }
    };
}

stats! {
    /// Blocks that users can fill in all.
    Gauge user_blocks,
    /// Blocks in use: data, nodes, reservations.
    Gauge valid_blocks,
    /// Nodes that the node address table has room for.
    Gauge max_nodes,
    /// Nodes in use.
    Gauge valid_nodes,
    /// Inodes in use.
    Gauge valid_inodes,
    /// Inodes that are open and have no name.
    Gauge orphans,
    /// Segments that can be written now.
    Gauge free_segments,
    /// Segments that become free with the next checkpoint.
    Gauge prefree_segments,
    /// Nodes changed since the last checkpoint.
    Gauge dirty_nodes,
    /// Nodes in memory.
    Gauge cached_nodes,
    /// Blocks of the node address table in memory.
    Gauge cached_nat_blocks,
    /// Blocks of files in the page cache.
    Gauge cached_pages,
    /// Blocks of the page cache that are not on the device yet.
    Gauge dirty_pages,
    /// The version of the last checkpoint.
    Gauge checkpoint_version,
    /// 1 if the volume takes no more changes after an error or a panic, else 0.
    Gauge stopped,
    /// Checkpoints written.
    Counter checkpoints,
    /// Blocks of data written for users, directory blocks among them.
    Counter user_blocks_written,
    /// Blocks of data moved by the cleaner.
    Counter moved_data_blocks,
    /// Nodes that the cleaner made dirty, so that they move with the next checkpoint.
    Counter moved_node_blocks,
    /// Blocks of data moved out of the way of later writes.
    Counter precleaned_blocks,
    /// Blocks of data rewritten in their place, within a larger request.
    Counter rewritten_blocks,
    /// Nodes written by checkpoints.
    Counter node_blocks,
    /// Nodes written by syncs of files.
    Counter synced_node_blocks,
    /// Blocks of tables (SIT, NAT, SSA) written.
    Counter table_blocks,
    /// Blocks of checkpoint packs written.
    Counter pack_blocks,
    /// Sections emptied by the cleaner.
    Counter victims,
    /// Cleanings that kept operations out.
    Counter cleanings_alone,
    /// Requests that wrote data of users.
    Counter user_requests,
    /// Requests that wrote moved data.
    Counter move_requests,
    /// Searches for free node identifiers.
    Counter nid_scans,
    /// Nanoseconds that threads spent in these searches, or waiting for one, added up over the threads.
    Counter nid_scan_nanoseconds,
}

impl Stats {
    /// All blocks written.
    #[must_use]
    pub fn blocks_written(&self) -> u64 {
        self.user_blocks_written
            + self.moved_data_blocks
            + self.precleaned_blocks
            + self.rewritten_blocks
            + self.node_blocks
            + self.synced_node_blocks
            + self.table_blocks
            + self.pack_blocks
    }
}

impl FileSystem {
    /// Counts and sizes at this moment. Adds up the counts of all processors and copies the last checkpoint: some
    /// microseconds, for exporting every second rather than for asking in each operation.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let device = std::sync::Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
    /// # f2fs_volume::format::format(&*device, &Default::default())?;
    /// # let fs = f2fs_files::FileSystem::open(device, f2fs_files::Options::new())?;
    /// let before = fs.stats();
    /// fs.create_file("/f", 0o644)?.write_at(&[7; 40_960], 0)?;
    /// fs.checkpoint()?;
    /// let after = fs.stats();
    /// assert!(after.user_blocks_written - before.user_blocks_written >= 10);
    /// assert_eq!(after.checkpoints - before.checkpoints, 1);
    /// for (name, _, value) in after.named() {
    ///     println!("f2fs_{name} {value}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let volume = &self.core.volume;
        let (stat, nat) = (volume.stat(), volume.nids().stats());
        let written = stat.written;
        Stats {
            user_blocks: stat.user_blocks,
            valid_blocks: stat.valid_blocks,
            max_nodes: stat.max_nodes,
            valid_nodes: stat.valid_nodes,
            valid_inodes: stat.valid_inodes,
            orphans: volume.orphans().len() as u64,
            free_segments: stat.free_segments.into(),
            prefree_segments: stat.prefree_segments.into(),
            dirty_nodes: stat.dirty_nodes,
            cached_nodes: stat.cached_nodes,
            cached_nat_blocks: nat.cached_blocks as u64,
            cached_pages: self.core.pages.table().len(),
            dirty_pages: self.core.pages.dirty_pages(),
            checkpoint_version: volume.last_checkpoint().version,
            stopped: volume.stopped().is_some().into(),
            checkpoints: written.checkpoints,
            user_blocks_written: written.user_blocks,
            moved_data_blocks: written.moved_data_blocks,
            moved_node_blocks: written.moved_node_blocks,
            precleaned_blocks: written.precleaned_blocks,
            rewritten_blocks: written.rewritten_blocks,
            node_blocks: written.node_blocks,
            synced_node_blocks: written.synced_node_blocks,
            table_blocks: written.table_blocks,
            pack_blocks: written.pack_blocks,
            victims: written.victims,
            cleanings_alone: written.cleanings_alone,
            user_requests: written.user_requests,
            move_requests: written.move_requests,
            nid_scans: nat.scans,
            nid_scan_nanoseconds: u64::try_from(nat.scan_time.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_written_is_added_up() {
        let stats = Stats {
            user_blocks_written: 1,
            moved_data_blocks: 10,
            precleaned_blocks: 100,
            rewritten_blocks: 1000,
            node_blocks: 10_000,
            synced_node_blocks: 100_000,
            table_blocks: 1_000_000,
            pack_blocks: 10_000_000,
            // Written as nodes by the next checkpoint.
            moved_node_blocks: 1 << 40,
            ..Stats::default()
        };
        assert_eq!(stats.blocks_written(), 11_111_111);
    }
}
