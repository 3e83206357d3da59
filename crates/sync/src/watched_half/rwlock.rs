//! A reader-writer lock whose word is on record: readers write it, too.

use std::any::type_name;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::{Kind, Word};

/// A reader-writer lock without poisoning.
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    // The lock word comes first: a value that may be unsized stays last.
    lock: parking_lot::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        RwLock { lock: parking_lot::RwLock::new(value) }
    }

    /// The value, when nobody else can have the lock.
    pub fn into_inner(self) -> T {
        self.lock.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let word = Word::written(self, type_name::<RwLock<T>>());
        let guard = word.acquire(Kind::Shared, || self.lock.try_read(), || self.lock.read());
        RwLockReadGuard { _word: word, guard }
    }

    /// Waits for exclusive access.
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let word = Word::written(self, type_name::<RwLock<T>>());
        let guard = word.acquire(Kind::Exclusive, || self.lock.try_write(), || self.lock.write());
        RwLockWriteGuard { word, guard }
    }

    /// Takes shared access if no writer is in.
    #[track_caller]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        let guard = self.lock.try_read()?;
        let word = Word::written(self, type_name::<RwLock<T>>());
        word.acquired(Kind::Shared);
        Some(RwLockReadGuard { _word: word, guard })
    }

    /// Takes exclusive access if nobody is in.
    #[track_caller]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        let guard = self.lock.try_write()?;
        Some(RwLockWriteGuard { word: Word::written(self, type_name::<RwLock<T>>()), guard })
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

/// Shared access to the value of an [`RwLock`]; dropping it unlocks.
#[must_use = "dropping the guard unlocks at once"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    // The word is on record before the lock is free: it is declared, and so dropped, first.
    _word: Word,
    guard: parking_lot::RwLockReadGuard<'a, T>,
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        super::value(&*self.guard, false, type_name::<T>());
        &self.guard
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
    // First, as above.
    word: Word,
    guard: parking_lot::RwLockWriteGuard<'a, T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on as a reader, with no writer in between.
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let RwLockWriteGuard { word, guard } = guard;
        word.acquired(Kind::Shared);
        RwLockReadGuard { _word: word, guard: parking_lot::RwLockWriteGuard::downgrade(guard) }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        super::value(&*self.guard, false, type_name::<T>());
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        super::value(&*self.guard, true, type_name::<T>());
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
