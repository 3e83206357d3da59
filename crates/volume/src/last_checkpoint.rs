//! The last durable checkpoint, from which the next one starts.
//!
//! # Locking
//!
//! A mutex, held to read or replace it; nothing else is taken under it. The version that node footers carry is read
//! without it. Both are replaced by the writer of a checkpoint, which has the turn.

use std::hash::{BuildHasher, Hasher, RandomState};

use f2fs_format::checkpoint::Checkpoint;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicU64, Ordering};

use crate::pack::Pack;

/// The last durable checkpoint.
#[derive(Debug)]
pub(crate) struct LastCheckpoint {
    state: Mutex<Durable>,
    /// The version that node footers carry: its own, with its checksum above.
    footer_version: AtomicU64,
}

/// What the next checkpoint is made from.
#[derive(Clone, Debug)]
pub(crate) struct Durable {
    pub(crate) checkpoint: Checkpoint,
    /// Which of the two packs holds it.
    pub(crate) pack: u32,
    pub(crate) kbytes_written: u64,
}

impl LastCheckpoint {
    /// As it was found.
    pub(crate) fn new(pack: &Pack) -> LastCheckpoint {
        let durable = Durable {
            checkpoint: pack.checkpoint.clone(),
            pack: pack.index,
            kbytes_written: pack.node.as_ref().map_or(0, |node| node[0].journal.kbytes_written()),
        };
        LastCheckpoint { state: Mutex::new(durable), footer_version: AtomicU64::new(pack.block.footer_version()) }
    }

    pub(crate) fn get(&self) -> Durable {
        self.state.lock().clone()
    }

    pub(crate) fn footer_version(&self) -> u64 {
        self.footer_version.load(Ordering::Acquire)
    }

    /// From the next checkpoint on they tell this opening from any other, also of a copy of the volume.
    pub(crate) fn mark_opening(&self) {
        let random = RandomState::new().build_hasher().finish();
        self.state.lock().checkpoint.opening = random.max(1);
    }

    /// A new one is durable.
    pub(crate) fn replace(&self, durable: Durable, footer_version: u64) {
        self.footer_version.store(footer_version, Ordering::Release);
        *self.state.lock() = durable;
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use crate::samples::plain;

    #[test]
    fn openings_are_told_from_each_other() {
        let volume = plain(64);
        let opening = || volume.last_checkpoint.get().checkpoint.opening;
        volume.last_checkpoint.mark_opening();
        let first = opening();
        volume.last_checkpoint.mark_opening();
        assert!(first != 0 && opening() != 0 && opening() != first);
        let durable = volume.last_checkpoint.get();
        volume.last_checkpoint.replace(Durable { pack: 1 - durable.pack, ..durable.clone() }, 99);
        assert_eq!((volume.last_checkpoint.get().pack, volume.footer_version()), (1 - durable.pack, 99));
    }
}
