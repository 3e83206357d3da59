//! Waiting for a batch of which some writes may be held back.

use std::collections::VecDeque;

use f2fs_sync::Arc;

use super::{Shared, Slot};
use crate::{Completion, Pending, Ticket};

/// A write of the batch, in the queue of its zone.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its number in the batch.
    pub(super) index: usize,
    pub(super) zone: usize,
    pub(super) slot: Arc<Slot>,
}

/// A batch.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) shared: Arc<Shared>,
    /// Writes that are not handed out yet.
    pub(super) pieces: Vec<Piece>,
    /// The other requests.
    pub(super) direct: Option<Ticket>,
    /// The number in the batch of each of these.
    pub(super) places: Vec<usize>,
}

impl Waiter {
    /// Hands out what is over.
    fn gather(&mut self, out: &mut VecDeque<(usize, Completion)>) {
        self.pieces.retain(|piece| match piece.slot.lock().take() {
            Some(completion) => {
                out.push_back((piece.index, completion));
                false
            }
            None => true,
        });
    }

    fn gather_direct(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let Some(ticket) = &mut self.direct else { return };
        let mut next = if block { ticket.wait_any() } else { ticket.try_any() };
        while let Some((at, completion)) = next {
            out.push_back((self.places[at], completion));
            next = ticket.try_any();
        }
        if ticket.remaining() == 0 {
            self.direct = None;
        }
    }
}

impl Pending for Waiter {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        loop {
            self.gather(out);
            self.gather_direct(false, out);
            if !out.is_empty() || (self.pieces.is_empty() && self.direct.is_none()) {
                return;
            }
            if !block {
                match self.shared.somewhere_to_wait(&self.pieces) {
                    Some(zone) => self.shared.reap(zone, false),
                    None => return,
                }
                self.gather(out);
                return;
            }
            match self.shared.somewhere_to_wait(&self.pieces) {
                Some(zone) => self.shared.reap(zone, true),
                None if self.direct.is_some() => self.gather_direct(true, out),
                None => self.shared.sleepers.sleep(|| self.shared.has_work(&self.pieces)),
            }
        }
    }
}
