//! Counts and sizes of an open volume.

/// Counts and sizes of an open volume. Blocks are of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VolumeStat {
    /// Blocks that users can fill in all (`user_block_count`; less where zones have a capacity below their size, and the
    /// volume is open for writing).
    pub user_blocks: u64,
    /// Blocks in use: data, nodes, reservations.
    pub valid_blocks: u64,
    /// Nodes that the NAT has room for.
    pub max_nodes: u64,
    /// Nodes in use.
    pub valid_nodes: u64,
    /// Inodes in use.
    pub valid_inodes: u64,
    /// Segments that can be written now.
    pub free_segments: u32,
    /// Segments that become free with the next checkpoint.
    pub prefree_segments: u32,
    /// Nodes changed since the last checkpoint.
    pub dirty_nodes: u64,
    /// Nodes in memory.
    pub cached_nodes: u64,
    /// NIDs that can be handed out now.
    pub free_nids: u64,
    /// Data blocks written since the volume was opened.
    pub data_blocks_written: u64,
    /// Blocks written since then, by their causes.
    pub written: crate::WriteStat,
    /// Blocks that the checkpoint counted and no segment had, when the volume was opened for writing: reserved ones
    /// (`fallocate`), or such as a damaged SIT has lost. Without any, the SIT has lost none.
    pub unplaced_blocks: u64,
}
