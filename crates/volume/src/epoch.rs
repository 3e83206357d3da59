//! Epochs: each change belongs to one, and each checkpoint holds the changes of one.
//!
//! ```text
//!   epoch 7                              | epoch 8                                      | epoch 9
//!   ─────────────────────────────────────┼──────────────────────────────────────────────┼─────────
//!   operations, nodes written ahead      | operations                                   |
//!                              gate closed                                    gate closed
//!                              frozen    | what was frozen is written ... durable       |
//!                                        |   syncs wait until here ───────────►         |
//! ```
//!
//! A checkpoint freezes with the gate closed, and that ends an epoch: all changes of its operations are in that
//! checkpoint, and no later ones. While the frozen state is written the gate is open again. The next checkpoint begins
//! when this one is durable, so at most one epoch is on its way.
//!
//! A sync goes to the chain of nodes behind the last durable checkpoint. Between freeze and durable there is no right
//! place for it: a crash may lead to either checkpoint, and its nodes would belong to one of them. So syncs wait for
//! the end, with the gate held: the rest of a checkpoint needs no closed gate.
//!
//! # Locking
//!
//! The thread that writes a checkpoint holds `turn`, from before the gate is closed until all of it is durable; no
//! thread inside the gate waits for it. `writing` is a lock for the moment of a look, under which nothing is taken. The
//! epoch changes with the gate closed, so an operation sees one epoch.

use f2fs_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use f2fs_sync::{Condvar, Mutex, MutexGuard, protocol_step};

/// The first epoch; 0 is the epoch of pages that were read from the device.
const FIRST: u64 = 1;

/// The epochs of a volume.
#[derive(Debug)]
pub(crate) struct Epochs {
    turn: Mutex<()>,
    /// Somebody has the turn: a hint.
    is_taken: AtomicBool,
    current: AtomicU64,
    /// A frozen checkpoint is being written. Set with the gate closed.
    is_writing: AtomicBool,
    writing: Mutex<()>,
    ended: Condvar,
}

/// The right to write a checkpoint.
#[derive(Debug)]
#[must_use = "dropping it lets others write checkpoints"]
pub(crate) struct Turn<'a> {
    epochs: &'a Epochs,
    _turn: MutexGuard<'a, ()>,
}

impl Epochs {
    pub(crate) fn new() -> Epochs {
        Epochs {
            turn: Mutex::new(()),
            is_taken: AtomicBool::new(false),
            current: AtomicU64::new(FIRST),
            is_writing: AtomicBool::new(false),
            writing: Mutex::new(()),
            ended: Condvar::new(),
        }
    }

    /// Waits for the turn to write a checkpoint.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let turn = self.turn.lock();
        self.is_taken.store(true, Ordering::Relaxed);
        Turn { epochs: self, _turn: turn }
    }

    /// Whether somebody writes a checkpoint: a hint.
    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }

    /// The epoch of changes that are made now. It stays while the caller is inside the gate.
    pub(crate) fn current(&self) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    /// Waits until no frozen checkpoint is being written. The caller is inside the gate, so that none begins
    /// afterwards.
    pub(crate) fn wait_until_durable(&self) {
        if self.is_writing.load(Ordering::Acquire) {
            let mut writing = self.writing.lock();
            while self.is_writing.load(Ordering::Acquire) {
                self.ended.wait(&mut writing);
            }
        }
    }
}

impl Turn<'_> {
    /// Ends the epoch, with the gate closed: what it changed is frozen. [`Writing`] lasts until it is durable, or
    /// failed.
    pub(crate) fn freeze(&self) -> Writing<'_> {
        protocol_step!("sync_waits_for_a_frozen_checkpoint", self.epochs.is_writing.store(true, Ordering::Release));
        self.epochs.current.fetch_add(1, Ordering::AcqRel);
        Writing(self.epochs)
    }
}

impl Turn<'_> {
    /// Keeps syncs out, with the gate closed, until [`Writing`] is dropped, as a freeze does; the epoch goes on.
    pub(crate) fn hold_syncs(&self) -> Writing<'_> {
        protocol_step!("journal_syncs_pass_names", self.epochs.is_writing.store(true, Ordering::Release));
        Writing(self.epochs)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.epochs.is_taken.store(false, Ordering::Relaxed);
    }
}

/// A frozen checkpoint that is being written. If its owner failed, it stops the volume before it drops this.
#[derive(Debug)]
#[must_use = "dropping it lets syncs go on"]
pub(crate) struct Writing<'a>(&'a Epochs);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let writing = self.0.writing.lock();
        self.0.is_writing.store(false, Ordering::Release);
        drop(writing);
        self.0.ended.notify_all();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn a_freeze_begins_an_epoch_and_a_record_of_names_does_not() {
        let epochs = Epochs::new();
        assert!(!epochs.is_taken());
        let turn = epochs.turn();
        assert!(epochs.is_taken());
        for (round, freezes) in [true, false, true, true].into_iter().enumerate() {
            let before = epochs.current();
            let writing = if freezes { turn.freeze() } else { turn.hold_syncs() };
            assert!(epochs.is_writing.load(Ordering::Relaxed));
            assert_eq!(epochs.current(), before + u64::from(freezes), "{round}");
            drop(writing);
            assert!(!epochs.is_writing.load(Ordering::Relaxed));
            epochs.wait_until_durable();
        }
        assert_eq!(epochs.current(), FIRST + 3);
        drop(turn);
        assert!(!epochs.is_taken());
    }
}
