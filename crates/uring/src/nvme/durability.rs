//! What makes writes durable: the flush, the bit of a durable write, and what is done after either failed.
//!
//! Locking rules: none of its own; [`FlushGate`] serialises flushes.

use f2fs_device::{DeviceError, DeviceErrorKind, FlushGate, Op};
use f2fs_sync::{protocol_step, protocol_value};

use super::command::{Answer, FLUSH, FORCE_UNIT_ACCESS};

/// The durability of a namespace's writes.
#[derive(Debug)]
pub(super) struct Durability {
    gate: FlushGate,
    /// Whether the controller has a volatile cache. Without one a write that has ended is durable.
    volatile_cache: bool,
}

impl Durability {
    pub(super) fn new(volatile_cache: bool) -> Self {
        Self { gate: FlushGate::new(), volatile_cache }
    }

    /// Whether writes are still taken: none is after a flush or a durable write has failed.
    ///
    /// # Errors
    /// [`DeviceErrorKind::Poisoned`].
    pub(super) fn check(&self) -> Result<(), DeviceErrorKind> {
        self.gate.check()
    }

    /// Makes all writes that have ended durable; `run` sends a command of this opcode.
    ///
    /// # Errors
    /// That of the command, and [`DeviceErrorKind::Poisoned`] from then on. It is not tried again, whatever the answer:
    /// what a lost flush has made durable nobody knows.
    pub(super) fn flush(&self, mut run: impl FnMut(u8) -> Answer) -> Result<(), DeviceError> {
        self.gate.flush(|| {
            if !protocol_value!("nvme_flush_left_out", self.volatile_cache, false) {
                return Ok(());
            }
            let answer = run(FLUSH);
            let answer = protocol_value!(
                "nvme_flush_tried_again",
                answer,
                match answer {
                    Answer::Done => answer,
                    _ => run(FLUSH),
                }
            );
            protocol_value!("nvme_flush_status_ignored", answer.result(), Ok(()))
        })
    }

    /// The bits in the twelfth word of a write.
    pub(super) fn bits(&self, op: Op) -> u32 {
        match op {
            Op::WriteFua if self.volatile_cache => protocol_value!("nvme_fua_bit_left_out", FORCE_UNIT_ACCESS, 0),
            _ => 0,
        }
    }

    /// A request has failed. If durability was promised for it, nobody knows what is durable now.
    pub(super) fn failed(&self, op: Op, kind: &DeviceErrorKind) {
        if op == Op::WriteFua {
            protocol_step!("nvme_failed_durable_write_forgotten", self.gate.poison(kind));
        }
    }
}

#[cfg(test)]
mod tests;
