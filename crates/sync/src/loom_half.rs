//! The loom half: loom's locks behind `parking_lot`'s signatures.

/// loom's atomics.
pub mod atomic {
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Spin hints.
pub mod hint {
    pub use loom::hint::spin_loop;
}

/// Threads.
pub mod thread {
    pub use loom::thread::{JoinHandle, current, park, spawn, yield_now};
}

pub use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// A mutex without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("loom mutexes are not poisoned")
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().expect("loom mutexes are not poisoned")
    }
}

/// A reader-writer lock without poisoning.
#[derive(Debug, Default)]
pub struct RwLock<T>(loom::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        RwLock(loom::sync::RwLock::new(value))
    }

    /// Waits for shared access.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect("loom locks are not poisoned")
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect("loom locks are not poisoned")
    }

    /// Takes shared access if no writer is in.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read().ok()
    }

    /// Takes exclusive access if nobody is in.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write().ok()
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    /// A condition variable with no waiter.
    pub fn new() -> Self {
        Condvar(loom::sync::Condvar::new())
    }

    /// Releases the guard, waits for a notification, and takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        // loom's wait takes the guard by value; the signature of parking_lot takes it by reference.
        replace_with(guard, |guard| self.0.wait(guard).expect("loom mutexes are not poisoned"));
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
