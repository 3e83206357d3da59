//! A cell that is written once.

use super::backend::sync::atomic::{AtomicBool, Ordering};

use super::Mutex;

/// A cell that is written once and read many times.
#[derive(Debug)]
pub struct OnceLock<T> {
    // The value is written with `writing` held and read only after `written` was seen.
    writing: Mutex<()>,
    written: AtomicBool,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub fn new() -> Self {
        OnceLock { writing: Mutex::new(()), written: AtomicBool::new(false), value: std::sync::OnceLock::new() }
    }

    /// The value, if it is written.
    pub fn get(&self) -> Option<&T> {
        if self.written.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    /// The value, without synchronization.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Writes the value.
    ///
    /// # Errors
    ///
    /// Gives the value back if the cell is written already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("initializers run once"));
        match value {
            None => Ok(()),
            Some(value) => Err(value),
        }
    }

    /// The value; writes it first if the cell is empty. Others wait meanwhile.
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let _writing = self.writing.lock();
        let value = self.value.get_or_init(init);
        self.written.store(true, Ordering::Release);
        value
    }

    /// The value, when nobody else can have the cell.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> Self {
        let cell = OnceLock::new();
        let _ = cell.set(value);
        cell
    }
}
