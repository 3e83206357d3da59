//! The halves that watch: the production half, with every access to an atomic, a lock word, or a value behind a lock
//! seen.
//!
//! Each type is a new type around the one of the production half, and adds nothing. So values have the same size and
//! the same places as in production (a cell that is written once has a flag more in the played half). Guards carry
//! where they were taken. Each access is seen by the half, and the two halves do different things with it:
//!
//! - the counting half (`record.rs`) puts it on record. It counts as if on a machine of 16 processors, on which each
//!   thread has one of its own: results that depend on where the scheduler puts threads would not be the same twice,
//!   and two threads that happen to share a processor would seem to share its lines;
//! - the played half (`played.rs`) lets time pass for it on the virtual core that runs, see [`crate::manycore`].

mod arc;
mod atomics;
#[cfg(f2fs_counting)]
mod condvar;
mod mutex;
mod once;
#[cfg(f2fs_manycore)]
mod played;
#[cfg(f2fs_manycore)]
mod played_condvar;
#[cfg(f2fs_counting)]
mod record;
mod rwlock;
mod site;

pub use arc::{Arc, Weak};
#[cfg(f2fs_counting)]
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
pub use once::OnceLock;
#[cfg(f2fs_counting)]
pub use parking_lot::WaitTimeoutResult;
#[cfg(f2fs_manycore)]
pub use played_condvar::{Condvar, WaitTimeoutResult};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use site::Site;
pub use std::thread_local;

#[cfg(f2fs_manycore)]
pub(crate) use played::{
    Word, is_open, made, memory, processor, processors, read, read_at, value, written, written_at,
};
#[cfg(f2fs_counting)]
pub(crate) use record::{
    Lines, Word, is_open, on_processor, processor, processors, read, read_at, record, take, value, written, written_at,
};

/// How a lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By one.
    Exclusive,
    /// By readers.
    Shared,
}

/// The standard atomics, seen.
pub mod atomic {
    pub use super::atomics::{
        AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32,
        AtomicU64, AtomicUsize,
    };
    #[cfg(f2fs_manycore)]
    pub use super::played::fence;
    pub use std::sync::atomic::Ordering;
    #[cfg(f2fs_counting)]
    pub use std::sync::atomic::fence;
}

/// Spin hints.
pub mod hint {
    #[cfg(f2fs_manycore)]
    pub use super::played::spin_loop;
    #[cfg(f2fs_counting)]
    pub use std::hint::spin_loop;
}

/// Threads.
pub mod thread {
    #[cfg(f2fs_manycore)]
    pub use super::played::{sleep, yield_now};
    pub use std::thread::{Builder, JoinHandle, Thread, ThreadId, current, park, park_timeout, spawn};
    #[cfg(f2fs_counting)]
    pub use std::thread::{sleep, yield_now};
}
