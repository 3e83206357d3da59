//! The policies that are there to be measured against: Linux's list of free NIDs, and CLUE's. The feature `baselines`
//! has them.
//!
//! | File | What it is |
//! |---|---|
//! | `listed.rs`, `free_list.rs` | the search for free NIDs, and the list |
//! | `nat_cache.rs` | the lock that these policies take where Linux takes that of its cache of entries |
//! | `ahead.rs` | blocks of the table that are read before they are locked |
//! | `allocator.rs` | the choice between these policies and [`Sharded`](crate::sharded::Sharded) |
//!
//! The rest of the crate knows of them in the lines that are marked with the feature: `Nat` asks the policies at the
//! end of a checkpoint and in operations. The table takes the cache's lock and counts the cached entries.

mod ahead;
mod allocator;
mod free_list;
mod listed;
mod nat_cache;

pub(crate) use allocator::Allocator;
pub(crate) use nat_cache::NatCache;
