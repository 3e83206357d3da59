//! Versions of the names: which changes of names are durable, by a checkpoint or by a record of a journal.
//!
//! ```text
//!   version 7            | version 8                    | version 9
//!   ─────────────────────┼──────────────────────────────┼───────────
//!   names change         |                              |
//!              gate closed: taken                 gate closed: taken
//!                        | version 7 written .. durable |
//! ```
//!
//! What changes of names is stamped with the version of that moment. A change is durable if its version is. A
//! checkpoint ends a version, and so does a record of names (`journaling/names.rs`).
//!
//! # Locking
//!
//! A version ends with the gate closed, so an operation sees one version. Syncs wait from then on until it is durable,
//! or known not to be.

use f2fs_sync::atomic::{AtomicU64, Ordering};

/// The versions of a volume's names.
#[derive(Debug)]
pub(crate) struct NameVersions {
    now: AtomicU64,
    durable: AtomicU64,
}

impl NameVersions {
    /// Version 0 is that of what the device has.
    pub(crate) fn new() -> NameVersions {
        NameVersions { now: AtomicU64::new(1), durable: AtomicU64::new(0) }
    }

    /// The version of changes that are made now. It stays while the caller is inside the gate.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    /// Whether changes of this version are durable.
    pub(crate) fn is_durable(&self, version: u64) -> bool {
        version <= self.durable.load(Ordering::Acquire)
    }

    /// Ends the version, with the gate closed; gives it.
    pub(crate) fn end(&self) -> u64 {
        self.now.fetch_add(1, Ordering::AcqRel)
    }

    /// What changed up to this version is durable, or will be before a sync goes on.
    pub(crate) fn settle(&self, version: u64) {
        self.durable.fetch_max(version, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn a_version_is_durable_when_it_or_a_later_one_is() {
        let versions = NameVersions::new();
        assert!(versions.is_durable(0) && !versions.is_durable(versions.now()));
        let (first, second) = (versions.end(), versions.end());
        assert_eq!((first, second, versions.now()), (1, 2, 3));
        versions.settle(second);
        versions.settle(first);
        assert!(versions.is_durable(first) && versions.is_durable(second) && !versions.is_durable(3));
    }
}
