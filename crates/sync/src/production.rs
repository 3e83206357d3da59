//! The production half: `parking_lot` locks and the standard atomics.

pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The standard atomics.
pub mod atomic {
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Spin hints.
pub mod hint {
    pub use std::hint::spin_loop;
}

/// Threads.
pub mod thread {
    pub use std::thread::{JoinHandle, current, park, spawn, yield_now};
}

pub use std::sync::OnceLock;
