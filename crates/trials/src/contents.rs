//! The contents that were seen, of all workloads.

use std::collections::HashSet;

use f2fs_sync::Mutex;

/// 64 bits of a hash of each content (some 16 bytes of memory).
#[derive(Debug, Default)]
pub struct Contents(Mutex<HashSet<u64>>);

impl Contents {
    /// Whether a content is new.
    pub(crate) fn add(&self, print: u64) -> bool {
        self.0.lock().insert(print)
    }

    /// All hashes, in any order.
    pub(crate) fn prints(&self) -> Vec<u64> {
        self.0.lock().iter().copied().collect()
    }
}

impl FromIterator<u64> for Contents {
    fn from_iter<I: IntoIterator<Item = u64>>(prints: I) -> Contents {
        Contents(Mutex::new(prints.into_iter().collect()))
    }
}
