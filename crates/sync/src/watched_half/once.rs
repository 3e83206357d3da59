//! A cell that is written once, seen when it is.
//!
//! In the played half a core must not wait in the cell of the standard library, which knows threads only: it spins
//! instead.

use std::any::type_name;
#[cfg(f2fs_manycore)]
use std::sync::atomic::{AtomicBool, Ordering};

/// A cell that is written once and read many times.
#[derive(Debug)]
pub struct OnceLock<T> {
    cell: std::sync::OnceLock<T>,
    /// A core is at the value.
    #[cfg(f2fs_manycore)]
    making: AtomicBool,
}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        OnceLock {
            cell: std::sync::OnceLock::new(),
            #[cfg(f2fs_manycore)]
            making: AtomicBool::new(false),
        }
    }

    /// The value, if it is written.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        super::read(self, type_name::<Self>());
        self.cell.get()
    }

    /// The value, without synchronization.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.cell.get_mut()
    }

    /// Writes the value.
    ///
    /// # Errors
    ///
    /// Gives the value back if the cell is written already.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let set = self.cell.set(value);
        if set.is_ok() {
            super::written(self, type_name::<Self>());
        }
        set
    }

    /// The value; writes it first if the cell is empty. Others wait meanwhile.
    #[track_caller]
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        super::read(self, type_name::<Self>());
        #[cfg(f2fs_manycore)]
        if crate::manycore::core::running().is_some() {
            return self.get_or_play(init);
        }
        let mut first = false;
        let value = self.cell.get_or_init(|| {
            first = true;
            init()
        });
        if first {
            super::written(self, type_name::<Self>());
        }
        value
    }

    /// The same on a virtual core.
    #[cfg(f2fs_manycore)]
    #[track_caller]
    fn get_or_play(&self, init: impl FnOnce() -> T) -> &T {
        loop {
            if let Some(value) = self.cell.get() {
                return value;
            }
            if !self.making.swap(true, Ordering::AcqRel) {
                let value = init();
                super::written(self, type_name::<Self>());
                return self.cell.get_or_init(|| value);
            }
            super::hint::spin_loop();
            super::read(self, type_name::<Self>());
        }
    }

    /// The value, when nobody else can have the cell.
    pub fn into_inner(self) -> Option<T> {
        self.cell.into_inner()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        OnceLock {
            cell: value.into(),
            #[cfg(f2fs_manycore)]
            making: AtomicBool::new(false),
        }
    }
}
