//! A mutex whose word is on record.

use std::any::type_name;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::Word;

/// A mutual exclusion lock without poisoning.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    // The lock word comes first: a value that may be unsized stays last.
    lock: parking_lot::Mutex<T>,
}

impl<T> Mutex<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Mutex { lock: parking_lot::Mutex::new(value) }
    }

    /// The value, when nobody else can have the lock.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let word = Word::written(self, type_name::<Mutex<T>>());
        MutexGuard { guard: self.lock.lock(), _word: word }
    }

    /// Takes the lock if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        super::read(self, type_name::<Mutex<T>>());
        let guard = self.lock.try_lock()?;
        Some(MutexGuard { guard, _word: Word::written(self, type_name::<Mutex<T>>()) })
    }

    /// Whether somebody has the lock: a hint, it may have changed on return.
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
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
    pub(super) guard: parking_lot::MutexGuard<'a, T>,
    _word: Word,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        super::value(&*self.guard, false, type_name::<T>());
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        super::value(&*self.guard, true, type_name::<T>());
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
