//! What the played half cannot see by itself: memory that the value behind a lock leads to, and locks that stand for
//! spin locks.
//!
//! A lock shows its word and the bytes of its value. Nodes of a tree, entries of a table and slots of a queue stand
//! elsewhere, and move from cache to cache with the lock all the same. Code that is to be compared with something else
//! on a machine that is played says what it reads and writes there. Under `--cfg f2fs_manycore` each line of it then
//! costs what an access to an atomic on it would; in every other half these functions are empty.
//!
//! ```
//! use f2fs_sync::{Mutex, memory, spinning};
//!
//! let lock = Mutex::new(vec![Box::new([1_u64; 20])]);
//! let values = spinning(|| lock.lock());
//! memory::read(&values[0][..8]); // 64 bytes: one line or two
//! assert_eq!(values[0][7], 1);
//! ```

#[cfg(f2fs_manycore)]
use crate::manycore::core::{self, Access};

/// The memory of `object` is read. Only its own bytes count, not what they point to.
#[cfg(not(f2fs_manycore))]
#[inline(always)]
pub fn read<T: ?Sized>(_object: &T) {}

/// The memory of `object` is written, or is about to be.
#[cfg(not(f2fs_manycore))]
#[inline(always)]
pub fn written<T: ?Sized>(_object: &T) {}

/// The memory of `object` was made by the running processor, before it took the lock: it has the lines, and nobody else
/// has them. How long that took does not count.
#[cfg(not(f2fs_manycore))]
#[inline(always)]
pub fn made<T: ?Sized>(_object: &T) {}

/// Takes locks, and waits for them as a kernel's spin lock is waited for: in the order of arrival, each processor spins
/// on a line of its own. Only the played half does so. In the others it is a call of `take`: a thread that spins in user
/// space may keep the processor from the one that has the lock.
#[cfg(not(f2fs_manycore))]
#[inline(always)]
pub fn spinning<R>(take: impl FnOnce() -> R) -> R {
    take()
}

/// The memory of `object` is read. Only its own bytes count, not what they point to.
#[cfg(f2fs_manycore)]
#[track_caller]
pub fn read<T: ?Sized>(object: &T) {
    crate::watched_half::memory(object, Access::Read);
}

/// The memory of `object` is written, or is about to be.
#[cfg(f2fs_manycore)]
#[track_caller]
pub fn written<T: ?Sized>(object: &T) {
    crate::watched_half::memory(object, Access::Write);
}

/// The memory of `object` was made by the running processor, before it took the lock: it has the lines, and nobody else
/// has them. How long that took does not count.
#[cfg(f2fs_manycore)]
pub fn made<T: ?Sized>(object: &T) {
    crate::watched_half::made(object);
}

/// Takes locks, and waits for them as a kernel's spin lock is waited for: in the order of arrival, each processor spins
/// on a line of its own.
#[cfg(f2fs_manycore)]
pub fn spinning<R>(take: impl FnOnce() -> R) -> R {
    let before = core::spins(true);
    let result = take();
    core::spins(before);
    result
}
