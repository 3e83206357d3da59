//! A mutex that the backend schedules.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

use super::backend;

/// A mutual exclusion lock without poisoning.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    model: backend::sync::Mutex<()>,
    data: std::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Mutex { model: backend::sync::Mutex::new(()), data: std::sync::Mutex::new(value) }
    }

    /// The value, when nobody else can have the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { data: Some(self.data()), model: Some(model), mutex: self }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let model = self.model.try_lock().ok()?;
        Some(MutexGuard { data: Some(self.data()), model: Some(model), mutex: self })
    }

    /// Whether somebody has the lock: a hint, it may have changed on return.
    pub fn is_locked(&self) -> bool {
        self.try_lock().is_none()
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value's own lock, which is free because the caller has the model's.
    fn data(&self) -> std::sync::MutexGuard<'_, T> {
        match self.data.try_lock() {
            Ok(data) => data,
            // A thread of an execution that failed died with the lock; its panic is reported.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("the backend let two threads into one mutex"),
        }
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

/// Access to the value of a [`Mutex`]; dropping it unlocks.
#[must_use = "dropping the guard unlocks at once"]
pub struct MutexGuard<'a, T: ?Sized> {
    // Both are there except inside `wait`. The value's lock is declared, and so dropped, before the model's.
    data: Option<std::sync::MutexGuard<'a, T>>,
    model: Option<backend::sync::MutexGuard<'a, ()>>,
    mutex: &'a Mutex<T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Gives the lock up while `wait` runs with the model's guard, and has it again afterwards.
    pub(super) fn wait_with(
        &mut self,
        wait: impl FnOnce(backend::sync::MutexGuard<'a, ()>) -> backend::sync::MutexGuard<'a, ()>,
    ) {
        self.data = None;
        let model = self.model.take().expect("a guard is complete outside of a wait");
        self.model = Some(wait(model));
        self.data = Some(self.mutex.data());
    }

    /// Gives the lock up, lets other threads run, and has it again afterwards.
    pub(super) fn step_aside(&mut self) {
        let mutex = self.mutex;
        self.wait_with(|model| {
            drop(model);
            super::thread::yield_now();
            mutex.model.lock().unwrap_or_else(PoisonError::into_inner)
        });
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.data.as_ref().expect("a guard is complete outside of a wait")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.data.as_mut().expect("a guard is complete outside of a wait")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
