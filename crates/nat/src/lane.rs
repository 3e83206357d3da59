//! Spreads threads over lanes: each thread has a number, given in the order in which threads first ask.

use std::cell::Cell;

#[cfg(not(loom))]
mod next {
    use f2fs_sync::atomic::{AtomicUsize, Ordering};

    static NEXT: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn number() -> usize {
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(loom)]
mod next {
    /// A model's threads are numbered by loom, in the order of spawning.
    pub(super) fn number() -> usize {
        let shown = format!("{:?}", f2fs_sync::thread::current().id());
        shown.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    }
}

f2fs_sync::thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The running thread's number.
#[inline]
pub(crate) fn current() -> usize {
    NUMBER.with(|number| match number.get() {
        usize::MAX => {
            let new = next::number();
            number.set(new);
            new
        }
        known => known,
    })
}
