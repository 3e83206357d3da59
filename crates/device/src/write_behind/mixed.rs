//! A batch of which memory answered a part.

use std::collections::VecDeque;

use crate::{Completion, Pending, Ticket};

/// The rest of the batch, on its way.
#[derive(Debug)]
pub(super) struct Mixed {
    pub(super) ticket: Ticket,
    /// The number in the batch of each of its requests.
    pub(super) places: Vec<usize>,
}

impl Pending for Mixed {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let mut next = if block { self.ticket.wait_any() } else { self.ticket.try_any() };
        while let Some((index, completion)) = next {
            // A device that answers what nobody asked is not listened to.
            out.extend(self.places.get(index).map(|place| (*place, completion)));
            next = self.ticket.try_any();
        }
    }
}
