//! Shared by the models of the lock table.
#![allow(dead_code)] // each of them uses its part

use std::future::Future;
use std::task::{Context, Poll, Wake, Waker};

use f2fs_extent::ExtentTable;
use f2fs_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use f2fs_sync::{Arc, thread};

/// A table, and a number that only who holds the right lock may touch: it is read and written without any ordering of
/// its own, so that a lock that does not order its holders shows.
pub(crate) struct Guarded {
    pub(crate) table: Arc<ExtentTable>,
    pub(crate) value: AtomicUsize,
}

impl Guarded {
    pub(crate) fn new() -> Arc<Guarded> {
        Arc::new(Guarded { table: Arc::new(ExtentTable::new()), value: AtomicUsize::new(0) })
    }

    pub(crate) fn add_one(&self) {
        let value = self.value.load(Relaxed);
        self.value.store(value + 1, Relaxed);
    }

    pub(crate) fn value(&self) -> usize {
        self.value.load(Relaxed)
    }
}

/// Spawns a thread that does something with the table.
pub(crate) fn with(guarded: &Arc<Guarded>, body: impl FnOnce(&Guarded) + 'static) -> thread::JoinHandle<()> {
    let guarded = Arc::clone(guarded);
    thread::spawn(move || body(&guarded))
}

/// Wakes nobody.
struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

pub(crate) fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(&Waker::from(Arc::new(Nobody)))) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
