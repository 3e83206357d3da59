//! Flights that go together with a sync: a write that is durable by itself.
//!
//! ```text
//!           leader of the group of syncs                            the writer
//!   sent ----------------------------> named ----> landed -----------------------------> kept
//!     |        slots changed             |  waits            old blocks freed
//!     |                                  |
//!     +------------- error --------------+-------------------------------------------> withdrawn
//!                                             slots as they were, new blocks freed
//! ```
//!
//! A short request is not sent before: the leader sends it with the others of the group
//! ([`Next::Sync`](super::Next::Sync)).
//!
//! Where each sync writes its own nodes, the writer is the leader of a group of its own, and has the lock of its file.
//!
//! A write that waits for its data, and then for the node that names the data, waits twice. Here both are on their way
//! at once, and one flush follows. A crash can leave no other states than if the two were sent in turn, since no flush
//! stood between them there either.
//!
//! # Locking
//!
//! The writer holds an [`Op`] and the range of the file from before it sends the blocks until they are kept: no
//! checkpoint freezes, and nobody reads or changes them. The cleaner holds no range: a page counts the flights that its
//! slots name ([`NodePage::awaits`]), under its lock when a slot changes, down again when the block has landed, and the
//! cleaner leaves such a page alone. Slots are changed by the leader of a group, which locks one page at a time. So no
//! group writes a node naming a block whose write it does not await.
//!
//! [`NodePage::awaits`]: crate::node_page::NodePage::awaits

use core::fmt;

use f2fs_device::{BlockDevice, DeviceError, Request};
use f2fs_format::BlockAddr;
use f2fs_format::inode::Inode;
use f2fs_segment::{Change, Displaced, switch_slots};
use f2fs_sync::atomic::Ordering;

use super::Flight;
use crate::node::Node;
use crate::{Op, VolumeError};

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Sent,
    Named,
    Landed,
}

/// Changes the inode for the write (true), or undoes that (false). Called with the inode's page locked.
type OfInode = Box<dyn FnMut(&mut Inode, bool) + Send>;

/// A flight that a sync waits for.
#[must_use = "blocks that are on their way have to be waited for"]
pub(crate) struct Joined {
    flight: Flight,
    inode: Node,
    of_inode: OfInode,
    /// Each slot's address before.
    old: Vec<BlockAddr>,
    /// The blocks of these.
    displaced: Displaced,
    stage: Stage,
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").field("flight", &self.flight).field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl Joined {
    /// A flight of data of `inode`. `of_inode`: makes the write's changes to the inode, other than the count of blocks
    /// (true), or undoes them (false), with the inode's page locked.
    pub(crate) fn new(flight: Flight, inode: &Node, of_inode: impl FnMut(&mut Inode, bool) + Send + 'static) -> Joined {
        Joined {
            flight,
            inode: inode.clone(),
            of_inode: Box::new(of_inode),
            old: Vec::new(),
            displaced: Displaced::default(),
            stage: Stage::Sent,
        }
    }

    /// Puts the addresses into the slots.
    pub(crate) fn name(&mut self, op: &Op<'_>) {
        self.flight.keep_for_journal(op.volume);
        let features = op.volume.features();
        let new_blocks = self.flight.new_blocks;
        let Joined { flight, old, displaced, .. } = self;
        let mut fresh = flight.addresses();
        for place in &flight.places {
            let lock = || {
                let page = place.node.write(op);
                place.node.page.awaits.fetch_add(1, Ordering::Relaxed);
                page
            };
            let change = |_, before| {
                old.push(before);
                fresh.next().map_or(Change::Keep, Change::To)
            };
            switch_slots(lock, place.slots(), features, change, displaced, |_, _| {});
        }
        let mut block = self.inode.write(op);
        let raw = block.inode_mut();
        raw.add_blocks(new_blocks);
        (self.of_inode)(raw, true);
        self.stage = Stage::Named;
    }

    /// The request that waited for the group, if there is one: the caller sends it before it calls
    /// [`land`](Self::land).
    pub(crate) fn take_deferred(&mut self) -> Option<Request> {
        self.flight.deferred.take()
    }

    /// Sends what nobody sent yet, and waits for the device.
    pub(crate) fn land(&mut self, device: &dyn BlockDevice) -> Result<(), DeviceError> {
        let result = self.flight.wait(device);
        if result.is_ok() && self.stage == Stage::Named {
            self.stage = Stage::Landed;
        }
        result
    }

    /// The end of it, for the writer. `result`: of the sync; nothing was done yet if no group took it along. An error
    /// leaves the file as it was, unless it is one that concerns the sync alone.
    pub(crate) fn end<T>(&mut self, op: &Op<'_>, mut result: Result<T, VolumeError>) -> Result<T, VolumeError> {
        if self.stage == Stage::Sent && result.is_ok() {
            // An ordinary write.
            match self.land(&*op.volume.device) {
                Ok(()) => self.name(op),
                Err(error) => result = Err(error.into()),
            }
        }
        // Blocks written for a sync may be found by roll-forward: they are not for others while the volume is in use.
        let lost = result.is_err() && (self.stage != Stage::Landed || op.volume.check_writable().is_err());
        if lost {
            self.withdraw(op);
        } else {
            self.settle();
            op.volume.attached_journal.forget(self.inode.ino(), &self.displaced);
            // The overwritten blocks are free.
            op.volume.slots().free_displaced(&mut self.displaced)?;
        }
        result
    }

    /// Tells what the slots name in the end, with their pages locked.
    pub(crate) fn tell(&self, op: &Op<'_>, mut named: impl FnMut(u64, BlockAddr)) {
        let features = op.volume.features();
        for place in &self.flight.places {
            let page = place.node.read();
            for (block, slot) in (place.block..).zip(place.slots()) {
                named(block, page.address(slot, features).unwrap_or(BlockAddr::NULL));
            }
        }
    }

    /// The slots name what they named before.
    fn withdraw(&mut self, op: &Op<'_>) {
        // The result does not matter: nobody will read these blocks.
        self.flight.deferred = None;
        let _ = self.land(&*op.volume.device);
        if self.stage != Stage::Sent {
            let features = op.volume.features();
            let mut old = self.old.drain(..);
            // The new blocks, which are given back below.
            let mut new = Displaced::default();
            for place in &self.flight.places {
                let change = |_, _| old.next().map_or(Change::Keep, Change::To);
                switch_slots(|| place.node.write(op), place.slots(), features, change, &mut new, |_, _| {});
            }
            drop(old);
            let mut block = self.inode.write(op);
            let raw = block.inode_mut();
            raw.i_blocks = raw.i_blocks.get().saturating_sub(self.flight.new_blocks).into();
            (self.of_inode)(raw, false);
            drop(block);
            self.settle();
        }
        // The blocks were taken for this: that they are not in use is no error that anybody could do something about.
        let _ = self.flight.take_back(op);
    }

    /// The slots name blocks that are on the device.
    fn settle(&self) {
        for place in &self.flight.places {
            place.node.page.awaits.fetch_sub(1, Ordering::Release);
        }
    }
}
