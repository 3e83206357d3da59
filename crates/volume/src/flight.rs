//! Data on its way to the device: how every out-of-place write of data begins, and how it ends.
//!
//! ```text
//!   begin ────────► in flight ──┬── land ──────────► slots name the new blocks, what they named before is free
//!   begin_blocks                │     └─ an error of the device: everything is as before, the new blocks are free again
//!   begin_move                  ├── land_slots ────► the same, and the inode is left as it is
//!   (nothing is left            ├── abandon ───────► everything is as before, the new blocks are free again
//!    behind if one fails)       ├── land_move ─────► the same as landing, for blocks whose slots still name the old places
//!                               └── Syncs::flight: a sync waits for it (`flight/joined.rs`)
//! ```
//!
//! | Who | begins with | ends with |
//! |---|---|---|
//! | writes of files, one or many at a time | `begin` | `land_if`, `abandon` |
//! | writes that are durable by themselves | `begin` | `Syncs::flight` |
//! | truncation, which rewrites the block with the new end | `begin` | `land_slots` |
//! | data that leaves its inode | `begin_blocks` | `land` |
//! | pages of a page cache, written back | `begin_blocks` | `land_slots` |
//! | dentry blocks, in a checkpoint | `begin_blocks` | `land_slots` |
//! | dentry blocks, ahead of a checkpoint | `begin_blocks` | `land_unchanged` |
//! | the cleaner | `begin_move` | `land_move` |
//!
//! Slots change by [`switch_slots`] alone, and when their blocks are on the device. Those of a joined flight change
//! before: its sync waits for the blocks in front of its flush. A flight that is dropped without an end leaves blocks in
//! use that nobody has. That is a fault of the program, which a build with debug assertions tells by a panic.
//!
//! # Locking
//!
//! The owner of a flight holds an [`Op`] from its beginning to its end, so that a checkpoint has all of it or nothing.
//! Writes of files also hold the range of the file, and so does write-back beside operations. The cleaner, dentry
//! blocks ahead of a checkpoint, and all that is written with the gate closed hold none. No page is locked while the
//! device is waited for. Pages are locked one at a time.

mod allocate;
mod batch;
mod begin;
pub(crate) mod joined;
mod moved;
mod requests;
mod source;

use core::ops::Range;
use std::thread::panicking;

use f2fs_device::{BlockDevice, Completion, DeviceError, Request};
use f2fs_format::inode::Inode;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid};
use f2fs_segment::{Change, Displaced, Run, switch_slots};
use f2fs_sync::{PlainArc, protocol_step};
use rustc_hash::FxHashSet;

use crate::{Node, Op, Volume, VolumeError};
use batch::Batch;

pub use begin::{Next, Target};
pub(crate) use moved::Destination;
pub use source::Piece;

/// Slots of one node that follow each other.
#[derive(Debug)]
struct Place {
    node: Node,
    first: usize,
    len: usize,
    /// The caller's number of the first slot: the file's block, or the number of the block in the flight.
    block: u64,
}

/// Data on its way, and the slots that are to name it.
#[derive(Debug)]
#[must_use = "a flight has to land or to be abandoned"]
pub struct Flight {
    places: Vec<Place>,
    /// Where the blocks go, in the order of the slots.
    runs: Vec<Run>,
    /// Slots that were holes: blocks that the file has more. They are reserved.
    new_blocks: u64,
    /// Where the last piece ends in the file.
    end: u64,
    batches: Vec<Batch>,
    /// The only request, if it need not go off at once.
    deferred: Option<Request>,
    /// Whether requests that are done are kept for the journal, and those that are.
    keep: Keep,
    kept: Vec<PlainArc<Request>>,
    /// It has blocks, and came to none of its ends yet.
    is_open: bool,
}

/// Whether a journal is to have the data ([`UnflushedData`](crate::journal::data::UnflushedData)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    No,
    /// The requests write what slots are to name, and nothing else.
    Data,
    /// Record only that unflushed data exists; the sync must flush.
    Mark,
}

impl Flight {
    fn new(places: usize) -> Flight {
        Flight {
            places: Vec::with_capacity(places),
            runs: Vec::new(),
            new_blocks: 0,
            end: 0,
            batches: Vec::new(),
            deferred: None,
            keep: Keep::No,
            kept: Vec::new(),
            is_open: false,
        }
    }

    /// The byte of the file at which the last of its pieces ends.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Waits for the device, gives the slots their new addresses, and frees the blocks that they named before. The
    /// inode gets the new blocks, and the changes that `change` makes; `named` is told the new address of each block of
    /// the file. Both are called with the page locked that changes.
    ///
    /// # Errors
    /// [`VolumeError::Device`]: everything is as it was. [`VolumeError::Segment`] if the SIT says that an old block was not in use.
    pub fn land(
        self,
        op: &Op<'_>,
        inode: &Node,
        named: impl FnMut(u64, BlockAddr),
        change: impl FnOnce(&mut Inode),
    ) -> Result<(), VolumeError> {
        self.land_if(op, inode, named, || true, change)
    }

    /// [`land`](Self::land) of data after which the inode may stay as it is, untouched. `changes` says whether it has to
    /// change; it is asked when all slots name the new blocks. If the file has more blocks, or its inode some of the
    /// slots, it changes anyway.
    ///
    /// # Errors
    /// As there.
    pub fn land_if(
        mut self,
        op: &Op<'_>,
        inode: &Node,
        named: impl FnMut(u64, BlockAddr),
        changes: impl FnOnce() -> bool,
        change: impl FnOnce(&mut Inode),
    ) -> Result<(), VolumeError> {
        self.wait_or_take_back(op)?;
        self.keep_for_journal(op.volume);
        let new_blocks = self.new_blocks;
        let mut change = Some(|raw: &mut Inode| {
            raw.add_blocks(new_blocks);
            change(raw);
        });
        // The inode changes last, together with its own slots: inline data gives way to addresses.
        let last = self.places.len().saturating_sub(1);
        let mut displaced = self.switch(op, named, |number, page| {
            if number == last
                && page.nid() == inode.nid()
                && let Some(change) = change.take()
            {
                change(page.inode_mut());
            }
        });
        if let Some(change) = change
            && (new_blocks > 0 || changes())
        {
            change(inode.write(op).inode_mut());
        }
        op.volume.attached_journal.forget(inode.ino(), &displaced);
        op.volume.slots().free_displaced(&mut displaced)
    }

    /// [`land`](Self::land) of data whose inode does not change: blocks of it that are written again.
    ///
    /// # Errors
    /// As there.
    pub fn land_slots(mut self, op: &Op<'_>, named: impl FnMut(u64, BlockAddr)) -> Result<(), VolumeError> {
        self.wait_or_take_back(op)?;
        self.keep_for_journal(op.volume);
        let mut displaced = self.switch(op, named, |_, _| {});
        if let Some(place) = self.places.first() {
            op.volume.attached_journal.forget(place.node.ino(), &displaced);
        }
        op.volume.slots().free_displaced(&mut displaced)
    }

    /// [`land_slots`](Self::land_slots) of copies of blocks, for slots that may change meanwhile. `from` has the
    /// address of each slot when its block was copied, in the order in which the flight began. A slot that still has
    /// this address gets that of the copy. Other slots stay as they are, and their copies are free again.
    ///
    /// # Errors
    /// As there.
    pub fn land_unchanged(mut self, op: &Op<'_>, from: &[BlockAddr]) -> Result<(), VolumeError> {
        self.wait_or_take_back(op)?;
        let features = op.volume.features();
        let mut displaced = Displaced::default();
        let mut moves = from.iter().zip(self.addresses());
        for place in &self.places {
            let change = |_, _| moves.next().map_or(Change::Keep, |(from, to)| Change::Move { from: *from, to });
            switch_slots(|| place.node.write(op), place.slots(), features, change, &mut displaced, |_, _| {});
        }
        op.volume.slots().free_displaced(&mut displaced)
    }

    /// Waits for the device, and frees the new blocks again.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if the SIT says that they were not in use.
    pub fn abandon(mut self, op: &Op<'_>) -> Result<(), VolumeError> {
        // The result does not matter: nobody will read these blocks.
        let _ = self.wait(&*op.volume.device);
        self.take_back(op)
    }

    /// Puts the new addresses into the slots; gives what they named before. `locked` gets each page, by the number of
    /// its place, before its slots change.
    fn switch(
        &self,
        op: &Op<'_>,
        mut named: impl FnMut(u64, BlockAddr),
        mut locked: impl FnMut(usize, &mut NodeBlock),
    ) -> Displaced {
        let features = op.volume.features();
        let mut displaced = Displaced::default();
        let mut fresh = self.addresses();
        for (number, place) in self.places.iter().enumerate() {
            let lock = || {
                let mut page = place.node.write(op);
                locked(number, &mut page);
                page
            };
            let change = |_, _| fresh.next().map_or(Change::Keep, Change::To);
            let named = |slot, addr| named(place.block + (slot - place.first) as u64, addr);
            switch_slots(lock, place.slots(), features, change, &mut displaced, named);
        }
        displaced
    }

    /// The new blocks, in the order of the slots.
    fn addresses(&self) -> impl Iterator<Item = BlockAddr> + '_ {
        self.runs.iter().flat_map(|run| (0..run.len).map(|at| run.addr.offset(at)))
    }

    /// Waits for the device: what follows is the end.
    fn wait(&mut self, device: &dyn BlockDevice) -> Result<(), DeviceError> {
        self.is_open = false;
        let Flight { deferred, batches, keep, kept, .. } = self;
        let mut done = |completion: Completion| {
            if *keep == Keep::Data {
                kept.push(PlainArc::new(completion.request));
            }
            completion.result
        };
        let mut result = deferred.take().map_or(Ok(()), |request| done(device.execute(request)));
        for batch in batches.drain(..) {
            let new = batch.wait(&mut done);
            if result.is_ok() {
                result = new;
            }
        }
        result
    }

    /// The data is on the device, and no slot names it yet: a sync that does not flush the device needs it. Where data
    /// of several files lies in the same requests, none is kept, and the next sync of each file flushes the device.
    fn keep_for_journal(&mut self, volume: &Volume) {
        let Some(first) = self.places.first().filter(|_| self.keep != Keep::No) else { return };
        let ino = first.node.ino();
        let others: FxHashSet<Nid> = self.places.iter().map(|place| place.node.ino()).filter(|it| *it != ino).collect();
        let is_whole = self.keep == Keep::Data && others.is_empty();
        volume.attached_journal.keep(ino, self.kept.drain(..), is_whole);
        for other in others {
            protocol_step!(
                "journal_flight_of_several_files",
                volume.attached_journal.keep(other, core::iter::empty(), false)
            );
        }
    }

    fn wait_or_take_back(&mut self, op: &Op<'_>) -> Result<(), VolumeError> {
        if let Err(error) = self.wait(&*op.volume.device) {
            self.take_back(op)?;
            return Err(error.into());
        }
        Ok(())
    }

    /// Frees the new blocks, which no slot names.
    fn take_back(&mut self, op: &Op<'_>) -> Result<(), VolumeError> {
        self.is_open = false;
        op.volume.space.give_blocks(self.new_blocks);
        let now = op.volume.clock.now();
        self.runs.iter().try_for_each(|run| op.volume.segments.invalidate_run(*run, now))?;
        op.volume.zoning.leave_failed(&op.volume.segments);
        Ok(())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        debug_assert!(!self.is_open || panicking(), "a flight neither landed nor was abandoned");
    }
}

impl Place {
    fn slots(&self) -> Range<usize> {
        self.first..self.first + self.len
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
