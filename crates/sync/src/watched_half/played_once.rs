//! A cell that is written once, on which virtual cores wait for each other.

use std::any::type_name;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cell that is written once and read many times.
#[derive(Debug)]
pub struct OnceLock<T> {
    cell: std::sync::OnceLock<T>,
    /// A core is at the value: another one must not wait in the cell, which knows threads only.
    making: AtomicBool,
}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        OnceLock { cell: std::sync::OnceLock::new(), making: AtomicBool::new(false) }
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
        super::written(self, type_name::<Self>());
        self.cell.set(value)
    }

    /// The value; writes it first if the cell is empty. Others wait meanwhile.
    #[track_caller]
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        super::read(self, type_name::<Self>());
        if crate::manycore::core::running().is_none() {
            return self.cell.get_or_init(init);
        }
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
        OnceLock { cell: value.into(), making: AtomicBool::new(false) }
    }
}
