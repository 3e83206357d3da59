//! A reader-writer lock that the backend schedules.
//!
//! It differs from `parking_lot`'s in two ways that a model has to know. loom and shuttle prefer readers, `parking_lot`
//! lets a waiting writer hold back new readers. One kind of program runs with the first and deadlocks with the second:
//! a thread that reads twice. That is reported as an error. And a guard that was downgraded still keeps other readers
//! out: they see the same value, later.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

use super::backend;
use super::thread::{self, ThreadId};

/// A reader-writer lock without poisoning.
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    model: backend::sync::RwLock<()>,
    // Who reads, for the check against reading twice. Not an object of the backend: it takes no part in the schedule.
    readers: std::sync::Mutex<Vec<ThreadId>>,
    data: std::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        RwLock {
            model: backend::sync::RwLock::new(()),
            readers: Default::default(),
            data: std::sync::RwLock::new(value),
        }
    }

    /// The value, when nobody else can have the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    ///
    /// # Panics
    ///
    /// If the thread already reads: with a writer between the two reads, `parking_lot` would deadlock.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        assert!(!self.readers().contains(&thread::current().id()), "a thread reads one lock twice");
        let model = self.model.read().unwrap_or_else(PoisonError::into_inner);
        self.shared(model)
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let model = self.model.write().unwrap_or_else(PoisonError::into_inner);
        self.exclusive(model)
    }

    /// Takes shared access if no writer is in.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        assert!(!self.readers().contains(&thread::current().id()), "a thread reads one lock twice");
        let model = self.model.try_read().ok()?;
        Some(self.shared(model))
    }

    /// Takes exclusive access if nobody is in.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        let model = self.model.try_write().ok()?;
        Some(self.exclusive(model))
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared<'a>(&'a self, model: backend::sync::RwLockReadGuard<'a, ()>) -> RwLockReadGuard<'a, T> {
        let data = match self.data.try_read() {
            Ok(data) => data,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("the backend let a reader in beside a writer"),
        };
        self.readers().push(thread::current().id());
        RwLockReadGuard { access: Some(Access::Shared(data, model)), lock: self }
    }

    fn exclusive<'a>(&'a self, model: backend::sync::RwLockWriteGuard<'a, ()>) -> RwLockWriteGuard<'a, T> {
        let data = match self.data.try_write() {
            Ok(data) => data,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("the backend let a writer in beside somebody else"),
        };
        RwLockWriteGuard { data, model, lock: self }
    }

    fn readers(&self) -> std::sync::MutexGuard<'_, Vec<ThreadId>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

/// In each variant the value's guard stands, and so is dropped, before the model's.
enum Access<'a, T: ?Sized> {
    Shared(std::sync::RwLockReadGuard<'a, T>, #[expect(dead_code)] backend::sync::RwLockReadGuard<'a, ()>),
    Downgraded(std::sync::RwLockWriteGuard<'a, T>, #[expect(dead_code)] backend::sync::RwLockWriteGuard<'a, ()>),
}

/// Shared access to the value of an [`RwLock`]; dropping it unlocks.
#[must_use = "dropping the guard unlocks at once"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    // There until the guard is dropped.
    access: Option<Access<'a, T>>,
    lock: &'a RwLock<T>,
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self.access.as_ref().expect("a guard is complete until it is dropped") {
            Access::Shared(data, _) => data,
            Access::Downgraded(data, _) => data,
        }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        if let Some(Access::Shared(..)) = self.access.take() {
            let this = thread::current().id();
            let mut readers = self.lock.readers();
            if let Some(at) = readers.iter().position(|reader| *reader == this) {
                readers.swap_remove(at);
            }
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Exclusive access to the value of an [`RwLock`]; dropping it unlocks.
#[must_use = "dropping the guard unlocks at once"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    data: std::sync::RwLockWriteGuard<'a, T>,
    model: backend::sync::RwLockWriteGuard<'a, ()>,
    lock: &'a RwLock<T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on as a reader, with no writer in between.
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard { access: Some(Access::Downgraded(guard.data, guard.model)), lock: guard.lock }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.data
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
