//! The halves for models: the locks of loom or of shuttle, whichever is chosen, behind `parking_lot`'s signatures.
//!
//! The two crates (the *backend*) show the standard library's interface. Each lock here is two. The backend's lock has
//! no value: it decides who may enter, and the backend may switch threads there. A standard lock holds the value. It is
//! never contended, because the backend's lock has decided before. That way values may be unsized, and guards can be
//! waited on by reference, without unsafe code.

#[cfg(loom)]
use loom as backend;
#[cfg(not(loom))]
use shuttle as backend;

mod condvar;
mod mutex;
mod once;
mod rwlock;

pub use backend::thread_local;
pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use once::OnceLock;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The backend's atomics.
pub mod atomic {
    pub use super::backend::sync::atomic::{
        AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32,
        AtomicU64, AtomicUsize, Ordering,
    };

    #[cfg(not(loom))]
    pub use super::backend::sync::atomic::fence;

    /// A fence; nothing while a model explores nothing, since only one thread runs then: loom looks at every store of
    /// every atomic for each fence, which took most of the time of large models.
    #[cfg(loom)]
    pub fn fence(order: Ordering) {
        if crate::model::explores() {
            super::backend::sync::atomic::fence(order);
        }
    }
}

/// Spin hints.
pub mod hint {
    pub use super::backend::hint::spin_loop;
}

/// Threads.
pub mod thread {
    use std::time::Duration;

    pub use super::backend::thread::{Builder, JoinHandle, Thread, ThreadId, current, park, spawn, yield_now};

    /// Parks the thread. Time does not pass in a model: only [`Thread::unpark`] ends it.
    pub fn park_timeout(_timeout: Duration) {
        park();
    }

    /// Lets other threads run. Time does not pass in a model.
    pub fn sleep(_duration: Duration) {
        yield_now();
    }
}

/// The number that the backend gave the running thread: 0 for the model's own, then 1, 2, ... in the order of spawning.
#[cfg(not(loom))]
pub(crate) fn thread_number() -> usize {
    thread::current().id().into()
}

/// The number that loom gave the running thread: 0 for the model's own, then 1, 2, ... in the order of spawning.
///
/// loom shows it nowhere but in the `Debug` form of its thread identities.
#[cfg(loom)]
pub(crate) fn thread_number() -> usize {
    let shown = format!("{:?}", thread::current().id());
    let digits: String = shown.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("loom shows a thread's identity as ThreadId(number)")
}
