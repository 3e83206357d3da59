//! A mutex whose word is on record.

use std::any::type_name;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::{Kind, Word};

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
        let guard = word.acquire(Kind::Exclusive, || self.lock.try_lock(), || self.lock.lock());
        MutexGuard { _word: Some(word), guard: Some(guard) }
    }

    /// Takes the lock if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        super::read(self, type_name::<Mutex<T>>());
        let guard = super::is_open(self).then(|| self.lock.try_lock()).flatten()?;
        Some(MutexGuard { _word: Some(Word::written(self, type_name::<Mutex<T>>())), guard: Some(guard) })
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
    // Both are there except inside of a wait. The word is on record before the lock is free: it is declared, and so
    // dropped, first.
    _word: Option<Word>,
    guard: Option<parking_lot::MutexGuard<'a, T>>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    fn guard(&self) -> &parking_lot::MutexGuard<'a, T> {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("waiting"),
        }
    }

    pub(super) fn guard_mut(&mut self) -> &mut parking_lot::MutexGuard<'a, T> {
        match &mut self.guard {
            Some(guard) => guard,
            None => unreachable!("waiting"),
        }
    }

    /// Gives the lock up, runs `wait`, and has the lock again.
    #[cfg(f2fs_manycore)]
    #[track_caller]
    pub(super) fn without<R>(&mut self, wait: impl FnOnce() -> R) -> R {
        let lock = parking_lot::MutexGuard::mutex(self.guard());
        self._word = None;
        self.guard = None;
        let result = wait();
        let word = Word::written(lock, type_name::<Mutex<T>>());
        self.guard = Some(word.acquire(Kind::Exclusive, || lock.try_lock(), || lock.lock()));
        self._word = Some(word);
        result
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        super::value(&**self.guard(), false, type_name::<T>());
        self.guard()
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        super::value(&**self.guard(), true, type_name::<T>());
        self.guard_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
