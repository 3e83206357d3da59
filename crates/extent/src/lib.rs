//! A lock table over the blocks of a file: shared, exclusive, fair range locks on which readers do not serialise.
#![forbid(unsafe_code)]

mod bits;
mod claim;
mod directory;
mod future;
mod geometry;
mod guard;
mod hull;
mod many;
mod order;
mod present;
mod queue;
mod range;
mod scan;
mod table;
mod wait;
mod word;

pub use bits::{Bits, ExtentBits, Run};
pub use future::{ExclusiveFuture, SharedFuture};
pub use guard::{ExclusiveGuard, OwnedGuard, SharedGuard};
pub use many::{LockRequest, ManyGuard, lock_many, lock_many_with};
pub use range::BlockRange;
pub use table::ExtentTable;
pub use wait::{CancelToken, LockError, Wait, WaitStats};
pub use word::Mode;
