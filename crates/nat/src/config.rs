//! How a table is opened.

use std::fmt;
use std::str::FromStr;

use f2fs_format::Nid;

/// How free NIDs are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Policy {
    /// No list and no global lock: state lives with its NAT block, every lane of threads allocates from its own block.
    #[default]
    Sharded,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Sharded => f.write_str("sharded"),
        }
    }
}

/// A policy's name that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown NID policy {name:?}: sharded")]
pub struct UnknownPolicy {
    /// What was given.
    pub name: String,
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "sharded" => Ok(Policy::Sharded),
            _ => Err(UnknownPolicy { name: name.to_owned() }),
        }
    }
}

/// What a table is to be. [`NatConfig::new`] gives sensible values for everything but the size.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NatConfig {
    /// Blocks in one copy of the table (`Geometry::nat_blocks`). The table has 455 NIDs for each.
    pub nat_blocks: u32,
    /// Where the search for free NIDs begins (`next_free_nid` of the checkpoint); out of range: at the beginning.
    pub next_free_nid: Nid,
    /// How free NIDs are found.
    pub policy: Policy,
    /// How many NAT blocks of entries to keep in memory, 4.1 KB each. Blocks that a checkpoint has to write stay in any case.
    /// Default: all.
    pub cached_blocks: usize,
    /// Valid nodes, inodes included (`valid_node_count` of the checkpoint). Where it is not known,
    /// [`Nat::free_nids`](crate::Nat::free_nids) has to read the whole table.
    pub valid_nodes: Option<u64>,
    /// How many NAT blocks are handed out from at once: threads are spread over so many lanes. Rounded up to a power of two.
    /// Default: four a processor.
    pub lanes: usize,
}

impl NatConfig {
    /// A table of `nat_blocks` blocks, all cached, with the default policy.
    #[must_use]
    pub fn new(nat_blocks: u32) -> NatConfig {
        let processors = f2fs_sync::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        NatConfig {
            nat_blocks,
            next_free_nid: Nid(0),
            policy: Policy::default(),
            cached_blocks: usize::MAX,
            valid_nodes: None,
            lanes: 4 * processors,
        }
    }

    /// Sets where the search for free NIDs begins.
    #[must_use]
    pub fn next_free_nid(mut self, nid: Nid) -> Self {
        self.next_free_nid = nid;
        self
    }

    /// Sets how free NIDs are found.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how many NAT blocks of entries to keep in memory.
    #[must_use]
    pub fn cached_blocks(mut self, blocks: usize) -> Self {
        self.cached_blocks = blocks;
        self
    }

    /// Says how many nodes are valid.
    #[must_use]
    pub fn valid_nodes(mut self, nodes: u64) -> Self {
        self.valid_nodes = Some(nodes);
        self
    }

    /// Sets the number of lanes.
    #[must_use]
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }
}
