//! Blocks that are on their way to the device while the nodes that name them are written: a write that is durable by itself.
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
//! A short request is not sent before: the leader sends it with those of the group ([`Arrival::new`]).
//!
//! Who waits for the data first and for the node that names it afterwards waits twice. Here both are on their way at once, and
//! one flush follows: what a crash leaves of that is what it may leave of the two in turn, since no flush was between them.
//!
//! # Locking
//!
//! The writer holds an [`Op`] and the range of the file from before it sends the blocks until they are kept: no checkpoint
//! runs, and nobody reads or changes them. The cleaner holds no range: a page counts the arrivals that its slots name
//! ([`NodePage::awaits`]), under its lock when a slot changes, down again when the block has landed, and the cleaner leaves
//! such a page alone. Slots are changed by the leader of a group, which locks one page at a time: so no node that is written
//! for somebody else names a block that nobody waits for.
//!
//! [`NodePage::awaits`]: crate::node::NodePage::awaits

use core::fmt;

use f2fs_device::{BlockDevice, DeviceError, Request, Ticket};
use f2fs_format::BlockAddr;
use f2fs_format::inode::Inode;
use f2fs_segment::Run;
use f2fs_sync::atomic::Ordering;

use crate::node::Node;
use crate::{Op, VolumeError};

/// Consecutive slots of a node.
#[derive(Clone, Debug)]
pub struct Slots {
    /// The node.
    pub node: Node,
    /// The first slot.
    pub first: usize,
    /// How many.
    pub len: usize,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Sent,
    Named,
    Landed,
}

/// What the write does to the inode (true), and how it is undone (false). Called with the inode's page locked.
type Change = Box<dyn FnMut(&mut Inode, bool) + Send>;

/// Blocks of a file on their way, and the slots that are to name them.
#[must_use = "blocks that are on their way have to be waited for"]
pub struct Arrival {
    inode: Node,
    slots: Vec<Slots>,
    runs: Vec<Run>,
    tickets: Vec<Ticket>,
    /// A request that goes off with those of the group.
    late: Option<Request>,
    /// Slots that were holes: blocks that the file has more.
    new_blocks: u64,
    change: Change,
    /// What the slots named before.
    old: Vec<BlockAddr>,
    stage: Stage,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival").field("runs", &self.runs).field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl Arrival {
    /// Of the blocks of `runs`, which `tickets` and `late` are of, for as many `slots` of nodes of `inode`; `new_blocks` of them
    /// are reserved. `late` is not sent yet: the group sends it with its own requests.
    /// `change`: what the write does to the inode beside that (true), and how it is undone (false), with the inode's page locked.
    pub fn new(
        inode: &Node,
        (slots, runs): (Vec<Slots>, Vec<Run>),
        (tickets, late): (Vec<Ticket>, Option<Request>),
        new_blocks: u64,
        change: impl FnMut(&mut Inode, bool) + Send + 'static,
    ) -> Arrival {
        let change: Change = Box::new(change);
        Arrival {
            inode: inode.clone(),
            slots,
            runs,
            tickets,
            late,
            new_blocks,
            change,
            old: Vec::new(),
            stage: Stage::Sent,
        }
    }

    /// Puts the addresses into the slots.
    pub(crate) fn name(&mut self, op: &Op<'_>) {
        let features = op.volume.features();
        let mut fresh = self.runs.iter().flat_map(|run| (0..run.len).map(|at| run.addr.offset(at)));
        for slots in &self.slots {
            let mut block = slots.node.write(op);
            slots.node.page.awaits.fetch_add(1, Ordering::Relaxed);
            for (slot, addr) in (slots.first..slots.first + slots.len).zip(&mut fresh) {
                self.old.push(block.address(slot, features).unwrap_or(BlockAddr::NULL));
                block.set_address(slot, addr, features);
            }
        }
        let mut block = self.inode.write(op);
        let raw = block.inode_mut();
        raw.i_blocks = (raw.i_blocks.get() + self.new_blocks).into();
        (self.change)(raw, true);
        self.stage = Stage::Named;
    }

    /// The request that waited for the group, if there is one: the caller sends it before it calls [`land`](Self::land).
    pub(crate) fn take_late(&mut self) -> Option<Request> {
        self.late.take()
    }

    /// Sends what nobody sent yet, and waits for the device.
    pub(crate) fn land(&mut self, device: &dyn BlockDevice) -> Result<(), DeviceError> {
        let mut result = self.late.take().map_or(Ok(()), |request| device.execute(request).result);
        for mut ticket in self.tickets.drain(..) {
            while let Some((_, completion)) = ticket.wait_any() {
                result = result.and(completion.result);
            }
        }
        if result.is_ok() && self.stage == Stage::Named {
            self.stage = Stage::Landed;
        }
        result
    }

    /// The end of it, for the writer. `result`: of the sync; nothing was done yet if no group took it along. An error leaves the
    /// file as it was, unless it is one that concerns the sync alone.
    pub(crate) fn end<T>(&mut self, op: &Op<'_>, mut result: Result<T, VolumeError>) -> Result<T, VolumeError> {
        if self.stage == Stage::Sent && result.is_ok() {
            // An ordinary write.
            match self.land(&*op.volume.device) {
                Ok(()) => self.name(op),
                Err(error) => result = Err(error.into()),
            }
        }
        // What was written for a sync may be found by roll-forward: its blocks are not for others while the volume is in use.
        let lost = result.is_err() && (self.stage != Stage::Landed || op.volume.check_writable().is_err());
        if lost {
            self.withdraw(op);
        } else {
            self.keep(op)?;
        }
        result
    }

    /// What was overwritten is free.
    fn keep(&mut self, op: &Op<'_>) -> Result<(), VolumeError> {
        self.settle();
        let mut runs: Vec<Run> = Vec::new();
        for addr in self.old.drain(..).filter(|addr| addr.is_real()) {
            match runs.last_mut() {
                Some(run) if run.addr.offset(run.len) == addr => run.len += 1,
                _ => runs.push(Run { addr, len: 1 }),
            }
        }
        runs.into_iter().try_for_each(|run| op.volume.invalidate_run(op, run))
    }

    /// The slots name what they named before.
    fn withdraw(&mut self, op: &Op<'_>) {
        // Whatever the device says of blocks that nobody will read.
        self.late = None;
        let _ = self.land(&*op.volume.device);
        if self.stage != Stage::Sent {
            let features = op.volume.features();
            let mut old = self.old.drain(..);
            for slots in &self.slots {
                let mut block = slots.node.write(op);
                for (slot, addr) in (slots.first..slots.first + slots.len).zip(&mut old) {
                    block.set_address(slot, addr, features);
                }
            }
            drop(old);
            let mut block = self.inode.write(op);
            let raw = block.inode_mut();
            raw.i_blocks = raw.i_blocks.get().saturating_sub(self.new_blocks).into();
            (self.change)(raw, false);
            drop(block);
            self.settle();
        }
        op.volume.unreserve(op, self.new_blocks);
        // The blocks were taken for this: that they are not in use is no error that anybody could do something about.
        let _ = op.volume.return_data(op, &self.runs);
    }

    /// The slots name blocks that are on the device.
    fn settle(&self) {
        for slots in &self.slots {
            slots.node.page.awaits.fetch_sub(1, Ordering::Release);
        }
    }
}
