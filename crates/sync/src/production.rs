//! The production half: `parking_lot` locks and the standard atomics.

#[cfg(fuzzing)]
pub use crate::meeting::{Condvar, Mutex, RwLock};
#[cfg(not(fuzzing))]
pub use parking_lot::{Condvar, Mutex, RwLock};
pub use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult};
pub use std::sync::OnceLock;
pub use std::thread_local;

/// The standard atomics.
pub mod atomic {
    pub use std::sync::atomic::{
        AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32,
        AtomicU64, AtomicUsize, Ordering, fence,
    };
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
