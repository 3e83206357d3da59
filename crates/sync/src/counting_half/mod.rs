//! The counting half: the production half, with every access to an atomic, a lock word, or a value behind a lock on record.
//!
//! Each type is a new type around the one of the production half and nothing else, so that values have the same size and
//! lie where they lie in production. Guards carry where they were taken.
//!
//! It counts as if on a machine of [`PROCESSORS`] processors, on which each thread has one of its own: what depends on where
//! the scheduler puts threads would not be the same twice, and two threads that happen to share a processor would seem to
//! share its lines.

mod arc;
mod atomics;
mod condvar;
mod mutex;
mod once;
mod record;
mod rwlock;

pub use arc::{Arc, Weak};
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
pub use once::OnceLock;
pub use parking_lot::WaitTimeoutResult;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::thread_local;

pub use record::Site;
pub(crate) use record::{Lines, Word, on_processor, processor, read, read_at, record, take, value};

/// Processors of the machine that is played.
pub(crate) const PROCESSORS: usize = 16;

/// The standard atomics, on record.
pub mod atomic {
    pub use super::atomics::{
        AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32,
        AtomicU64, AtomicUsize,
    };
    pub use std::sync::atomic::{Ordering, fence};
}

/// Spin hints.
pub mod hint {
    pub use std::hint::spin_loop;
}

/// Threads.
pub mod thread {
    pub use std::thread::{
        Builder, JoinHandle, Thread, ThreadId, current, park, park_timeout, sleep, spawn, yield_now,
    };
}
