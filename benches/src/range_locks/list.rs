//! A range lock that is a list of ranges under one lock, in order of arrival: a range is held when no earlier one
//! conflicts. Shared, fair and correct, and everyone writes its one cache line.

use std::collections::VecDeque;
use std::sync::Arc;

use f2fs_sync::{Condvar, Mutex};

use super::RangeLock;

#[derive(Debug)]
struct Entry {
    ticket: u64,
    first: u64,
    last: u64,
    exclusive: bool,
    /// Where its owner sleeps; `None` once it holds the range.
    waits: Option<Arc<Condvar>>,
}

impl Entry {
    fn conflicts(&self, other: &Entry) -> bool {
        (self.exclusive || other.exclusive) && self.first <= other.last && other.first <= self.last
    }
}

/// A list of ranges.
#[derive(Debug, Default)]
pub struct ListLock {
    list: Mutex<(u64, VecDeque<Entry>)>,
}

impl ListLock {
    fn hold<R>(&self, first: u64, last: u64, exclusive: bool, hold: impl FnOnce() -> R) -> R {
        let ticket = {
            let mut list = self.list.lock();
            list.0 += 1;
            let ticket = list.0;
            let mut entry = Entry { ticket, first, last, exclusive, waits: None };
            if list.1.iter().any(|earlier| earlier.conflicts(&entry)) {
                let bell = Arc::new(Condvar::new());
                entry.waits = Some(Arc::clone(&bell));
                list.1.push_back(entry);
                while list.1.iter().any(|entry| entry.ticket == ticket && entry.waits.is_some()) {
                    bell.wait(&mut list);
                }
            } else {
                list.1.push_back(entry);
            }
            ticket
        };
        let result = hold();
        let mut list = self.list.lock();
        if let Some(at) = list.1.iter().position(|entry| entry.ticket == ticket) {
            list.1.remove(at);
        }
        for at in 0..list.1.len() {
            let free =
                list.1[at].waits.is_some() && !list.1.iter().take(at).any(|before| before.conflicts(&list.1[at]));
            if free && let Some(bell) = list.1[at].waits.take() {
                bell.notify_one();
            }
        }
        result
    }
}

impl RangeLock for ListLock {
    fn new(_blocks: u64) -> Self {
        ListLock::default()
    }

    fn shared<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        self.hold(first, last, false, hold)
    }

    fn exclusive<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        self.hold(first, last, true, hold)
    }
}
