//! How a table is opened.

use f2fs_format::Nid;

use crate::policy::Policy;

/// The shape and the policy of a table. [`NatConfig::new`] gives sensible values for everything but the size.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NatConfig {
    /// Blocks in one copy of the table (`Geometry::nat_blocks`). The table has 455 NIDs for each.
    pub nat_blocks: u32,
    /// Where the search for free NIDs begins (`next_free_nid` of the checkpoint); out of range: at the beginning.
    pub next_free_nid: Nid,
    /// How free NIDs are found.
    pub policy: Policy,
    /// How many NAT blocks of entries to keep in memory, 4.1 KB each. Blocks that a checkpoint has to write stay in any
    /// case. Default: all.
    pub cached_blocks: usize,
    /// Valid nodes, inodes included (`valid_node_count` of the checkpoint). Where it is not known,
    /// [`Nat::free_nids`](crate::Nat::free_nids) has to read the whole table.
    pub valid_nodes: Option<u64>,
    /// How many NAT blocks are handed out from at once: processors are spread over so many lanes. Rounded up to a power
    /// of two, at most 128. Default: one a processor.
    pub lanes: usize,
    /// How many entries have to be in memory before [`Nat::balance`](crate::Nat::balance) does something (the kernel's
    /// `DEF_NAT_CACHE_THRESHOLD`): those that were looked up, changed or handed out. Default: 100,000.
    #[cfg(feature = "baselines")]
    pub balance_entries: usize,
}

impl NatConfig {
    /// A table of `nat_blocks` blocks, all cached, with the default policy.
    #[must_use]
    pub fn new(nat_blocks: u32) -> NatConfig {
        NatConfig {
            nat_blocks,
            next_free_nid: Nid(0),
            policy: Policy::default(),
            cached_blocks: usize::MAX,
            valid_nodes: None,
            lanes: f2fs_sync::processors(),
            #[cfg(feature = "baselines")]
            balance_entries: 100_000,
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

    /// Sets how many entries have to be in memory before balancing does something.
    #[cfg(feature = "baselines")]
    #[must_use]
    pub fn balance_entries(mut self, entries: usize) -> Self {
        self.balance_entries = entries;
        self
    }
}
