//! Debug builds: which gates a thread is inside of.

use super::Gate;

/// A guard's entry in the record of its thread. Empty in release builds and in models (loom and shuttle find the
/// deadlock themselves).
#[cfg(all(debug_assertions, not(any(loom, shuttle, f2fs_manycore))))]
#[derive(Debug)]
pub(super) struct Held {
    /// The thread that has the entry, until it is taken out.
    thread: Option<std::thread::ThreadId>,
}

#[cfg(all(debug_assertions, not(any(loom, shuttle, f2fs_manycore))))]
mod record {
    use std::cell::RefCell;

    thread_local! {
        /// The addresses of the gates that this thread is inside of, once for each guard.
        static GATES: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    /// Works on the record, unless the thread is so near its end that it has none.
    pub(super) fn with<R>(f: impl FnOnce(&mut Vec<usize>) -> R) -> Option<R> {
        GATES.try_with(|gates| f(&mut gates.borrow_mut())).ok()
    }
}

#[cfg(all(debug_assertions, not(any(loom, shuttle, f2fs_manycore))))]
impl Held {
    /// Enters the gate into this thread's record.
    pub(super) fn new(gate: &Gate) -> Self {
        record::with(|gates| gates.push(std::ptr::from_ref(gate).addr()));
        Held { thread: Some(std::thread::current().id()) }
    }

    /// Takes the entry out, on the thread that has it; elsewhere it stays.
    pub(super) fn forget(&mut self, gate: &Gate) {
        if self.thread.take() == Some(std::thread::current().id()) {
            let address = std::ptr::from_ref(gate).addr();
            record::with(|gates| {
                if let Some(at) = gates.iter().rposition(|held| *held == address) {
                    gates.swap_remove(at);
                }
            });
        }
    }

    /// Panics if this thread is inside the gate.
    pub(super) fn assert_none(gate: &Gate, what: &str) {
        let address = std::ptr::from_ref(gate).addr();
        let inside = record::with(|gates| gates.contains(&address)).unwrap_or(false);
        assert!(
            !inside,
            "deadlock: a thread must not {what} that it is inside of (or a guard went to another thread without `unbind`)"
        );
    }
}

/// Nothing is recorded.
#[cfg(any(not(debug_assertions), loom, shuttle, f2fs_manycore))]
#[derive(Debug)]
pub(super) struct Held;

#[cfg(any(not(debug_assertions), loom, shuttle, f2fs_manycore))]
impl Held {
    pub(super) fn new(_gate: &Gate) -> Self {
        Held
    }

    pub(super) fn forget(&mut self, _gate: &Gate) {}

    pub(super) fn assert_none(_gate: &Gate, _what: &str) {}
}
