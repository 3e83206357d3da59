//! Roll-forward, as far as it is the volume's business: taking into use what was synced after the last checkpoint.
//!
//! ```text
//! checkpoint | inode 5 | node of 5 (fsync) | inode 9 (fsync, dentry) | node of 5 | (not of this checkpoint)
//!            ^ where the warm-node log goes on                                     ^ the chain ends
//! ```
//!
//! Each node names the block that its log hands out next, also across the end of a segment; a node belongs to the chain
//! if it carries the version of the checkpoint (`fs/f2fs/recovery.c`). The layer above the volume reads the chain
//! ([`Recovery::synced_nodes`]), has its blocks kept ([`Recovery::begin`]), changes its files by ordinary
//! operations and the `adopt` functions, and ends with a checkpoint. Until that is durable nothing of the chain is
//! overwritten, so a crash meanwhile changes nothing.
//!
//! ```text
//!   open --begin--> recovering --end--> open
//!        (also when open for reading)  (what is in memory stays there if open for reading)
//! ```

mod adopt;
mod chain;

pub use chain::ChainNode;

use crate::Volume;

/// The recovery of synced files by the layer above: [`Volume::recovery`].
#[derive(Clone, Copy, Debug)]
pub struct Recovery<'a>(pub(crate) &'a Volume);
