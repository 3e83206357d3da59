//! What a search for nodes found, where the NAT does not lead.

use std::collections::HashMap;

use f2fs_format::BlockAddr;

/// What was found, once somebody asked.
#[derive(Debug, Default)]
pub(super) struct FoundNodes {
    pub(super) valid: Option<ValidNodes>,
    /// The newest blocks of nodes that the SIT does not hold for valid, by NID.
    pub(super) dropped: Option<HashMap<u32, (u64, BlockAddr)>>,
}

/// The valid blocks of nodes.
#[derive(Debug, Default)]
pub(super) struct ValidNodes {
    /// By the NID in their footers.
    pub(super) by_footer: HashMap<u32, Vec<BlockAddr>>,
    /// Those of them whose summary names another NID than the footer, by that one.
    pub(super) by_summary: HashMap<u32, Vec<BlockAddr>>,
}
