//! Flights of the cleaner: copies of blocks whose slots may change meanwhile.

use f2fs_device::AlignedBuf;
use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, SegmentNo};
use f2fs_segment::{Change, Displaced, switch_slots};
use f2fs_sync::protocol_value;

use super::batch::Batch;
use super::requests::split_by_runs;
use super::{Flight, Place};
use crate::write_stat::Count;
use crate::{Node, Op, VolumeError, unflushed_moves};

/// The place for moved blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// In the cold log.
    ColdLog,
    /// Among blocks of about their age, as age-threshold cleaning wants it.
    SameAge,
}

/// The fate of blocks that were copied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    /// Their slots name the copies.
    pub(crate) moved: u64,
    /// Their slots name something else.
    pub(crate) lost: u64,
}

impl Flight {
    /// Begins to write copies of a segment's blocks, each with the node and the slot that name it.
    pub(crate) fn begin_move(
        op: &Op<'_>,
        (segment, destination): (SegmentNo, Destination),
        owners: impl ExactSizeIterator<Item = (Node, usize)>,
        summaries: &[Summary],
        data: AlignedBuf,
    ) -> Result<Flight, VolumeError> {
        let volume = op.volume;
        let mut flight = Flight::new(owners.len());
        flight.places.extend((0..).zip(owners).map(|(block, (node, first))| Place { node, first, len: 1, block }));
        flight.take_for_move(volume, segment, destination, summaries)?;
        let requests = split_by_runs(&volume.recycler, &flight.runs, data);
        volume.written.add(Count::MoveRequests, requests.len() as u64);
        flight.batches.push(Batch::send(&*volume.device, requests));
        Ok(flight)
    }

    /// Waits for the device, and moves each block whose slot still names the place that it was copied from. `from` has
    /// these places, in the order in which the flight began. Of each, the place that no slot names is free then.
    /// `cause` counts those that moved.
    ///
    /// Beside operations the copies are flushed before a sync writes nodes that name them, which may be before any
    /// checkpoint ([`crate::unflushed_moves`]): by the sync, or, where there is a journal, here.
    pub(crate) fn land_move(mut self, op: &Op<'_>, from: &[BlockAddr], cause: Count) -> Result<Moved, VolumeError> {
        let volume = op.volume;
        self.wait_or_take_back(op)?;
        // With the gate closed no sync comes before the checkpoint.
        let by_itself = !op.is_checkpoint && volume.attached_journal.get().is_some();
        if by_itself && let Err(error) = unflushed_moves::flush(&*volume.device) {
            let error = error.into();
            volume.stop(&error);
            return Err(error);
        }
        let _order = (!op.is_checkpoint && !by_itself).then(|| volume.unflushed_moves.land());
        let features = volume.features();
        let mut done = Moved::default();
        let mut displaced = Displaced::default();
        let faulty = match cause {
            Count::Precleaned => protocol_value!("preclean_slot_left_out", false, true),
            _ => protocol_value!("cleaner_slot_left_out", false, true),
        };
        for ((place, from), to) in self.places.iter().zip(from).zip(self.addresses()) {
            if faulty && place.block == 0 {
                displaced.add(*from);
                continue;
            }
            let change = |_, _| Change::Move { from: *from, to };
            switch_slots(
                || place.node.write(op),
                place.slots(),
                features,
                change,
                &mut displaced,
                |_, _| done.moved += 1,
            );
            volume.moves.add(place.node.ino());
        }
        done.lost = self.places.len() as u64 - done.moved;
        volume.slots().free_displaced(&mut displaced)?;
        volume.written.add(cause, done.moved);
        Ok(done)
    }
}
