//! Operations on a volume: the right to change it, or to read blocks by their addresses, and what becomes of an
//! operation that panics.
//!
//! # Locking
//!
//! An operation is inside the gate from its beginning to its end. A checkpoint closes the gate to freeze: it waits for
//! the operations inside, and keeps others out meanwhile.
//!
//! # Panics
//!
//! An operation that unwinds leaves memory in the middle of a change, whoever panicked: a device, a callback of the
//! embedder, or this library. Every [`Op`] carries an [`Unwinding`], which sees the panic when it is dropped and stops
//! the volume. It is dropped before the fields behind it: before the gate is left, so that no checkpoint begins in
//! between, and before the lock of a node's page, so that a sync that reads the page finds the volume stopped. Nothing
//! is recorded in the superblock then: the device may be what panicked, and a second panic would end the process.
//!
//! An operation that begins while its thread panics already (in a destructor) does not stop the volume if it completes.

use core::fmt;
use std::thread::panicking;

use f2fs_sync::{ClosedGate, GateGuard};

use crate::VolumeError;
use crate::stop_cause::StopCause;
use crate::volume::Volume;

/// The right to change a volume: as long as one is held, no checkpoint freezes. One that has frozen may be written
/// meanwhile.
///
/// Hold it for one operation, not longer, and never begin a second one on the same thread meanwhile: a checkpoint that
/// waits for the first would keep the second out for good.
///
/// A panic that unwinds an operation stops the volume ([`StopCause::Panic`]): the change may be half done. What the
/// last checkpoint holds is safe.
pub struct Op<'a> {
    pub(crate) volume: &'a Volume,
    /// In front of the gate, so that it is dropped first: no checkpoint begins before the volume was stopped.
    pub(crate) unwinding: Unwinding<'a>,
    /// It belongs to a checkpoint, whose runner closed the gate: what it writes is durable with that.
    pub(crate) is_checkpoint: bool,
    /// `None` if the caller closed the gate.
    pub(crate) _gate: Option<GateGuard<'a>>,
}

impl fmt::Debug for Op<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Op").finish_non_exhaustive()
    }
}

impl<'a> Op<'a> {
    pub(crate) fn within_checkpoint(volume: &'a Volume) -> Op<'a> {
        Op { volume, unwinding: Unwinding::new(volume), is_checkpoint: true, _gate: None }
    }

    /// An operation of the thread that closed the gate.
    pub(crate) fn with_gate_closed(volume: &'a Volume) -> Op<'a> {
        Op { volume, unwinding: Unwinding::new(volume), is_checkpoint: false, _gate: None }
    }

    /// That the caller has an operation on this very volume. One on another volume would keep the other's checkpoints
    /// away: a fault of the program, which a build with debug assertions tells by a panic.
    #[inline]
    pub(crate) fn expect_of(&self, volume: &Volume) {
        debug_assert!(core::ptr::eq(self.volume, volume), "an operation on another volume");
    }

    /// The volume that this operation changes.
    #[must_use]
    pub fn volume(&self) -> &'a Volume {
        self.volume
    }
}

/// Stops the volume if it is dropped by a panic that began in its life.
pub(crate) struct Unwinding<'a> {
    volume: &'a Volume,
    /// The thread unwound already when the operation began.
    before: bool,
}

impl<'a> Unwinding<'a> {
    pub(crate) fn new(volume: &'a Volume) -> Unwinding<'a> {
        Unwinding { volume, before: panicking() }
    }

    /// A second one of the same operation.
    pub(crate) fn again(&self) -> Unwinding<'a> {
        Unwinding { volume: self.volume, before: self.before }
    }
}

impl Drop for Unwinding<'_> {
    #[inline]
    fn drop(&mut self) {
        if panicking() && !self.before {
            self.volume.stop_for(StopCause::Panic);
        }
    }
}

/// Keeps checkpoints (and so the cleaner) away while blocks are read.
#[derive(Debug)]
pub struct ReadOp<'a> {
    _gate: GateGuard<'a>,
}

/// Keeps all operations away, those that only read as well.
#[derive(Debug)]
pub struct Alone<'a> {
    _closed: ClosedGate<'a>,
}

impl Volume {
    /// Waits until no operation is under way, and lets none begin while the guard lives. A thread in an operation of its
    /// own must not call it.
    #[must_use]
    pub fn alone(&self) -> Alone<'_> {
        Alone { _closed: self.gate.close() }
    }

    /// Begins an operation that changes the volume. Waits while a checkpoint freezes.
    ///
    /// # Errors
    /// [`VolumeError::ReadOnly`], [`VolumeError::Stopped`].
    pub fn begin(&self) -> Result<Op<'_>, VolumeError> {
        self.check_writable()?;
        let gate = self.gate.enter();
        // The checkpoint that was waited for may have failed.
        self.check_writable()?;
        Ok(Op { volume: self, unwinding: Unwinding::new(self), is_checkpoint: false, _gate: Some(gate) })
    }

    /// Begins an operation that reads blocks by their addresses.
    #[must_use]
    pub fn begin_read(&self) -> ReadOp<'_> {
        ReadOp { _gate: self.gate.enter() }
    }
}
