//! Finding free NIDs without a list and without a global lock.
//!
//! The free NIDs of a NAT block are bits in the block's slot, and a thread takes one by clearing its bit. So that
//! threads do not meet, each lane (one a processor) has a block of its own, its *batch*, and goes on to another when
//! that runs dry:
//!
//! ```text
//!   lane 0 ----> block 17   (batch: what is free in it)
//!   lane 1 ----> block 18
//!                block 19   in `spare`: has free NIDs and is no lane's batch
//!                block 20   in `unread`: nobody knows yet
//! ```
//!
//! A refill looks, in this order, for a spare block near its last one; for an unread block, which it loads; at the
//! other lanes' batches, from which it steals single NIDs. NIDs never move to another place, so none can be lost on the
//! way: a free NID is its bit, wherever the hints point.
//!
//! # Locking rules
//!
//! - A NID belongs to the thread that clears its bit. The only global lines that this touches are those of `spare` and
//!   `unread`, once for a whole batch (up to 455 NIDs).
//! - A block becomes a batch by leaving `spare`: of several lanes one gets it. If the lane has found another batch
//!   meanwhile, the block goes back.
//! - NIDs are returned with `returns` held: first the bits, then the block's entry in `spare`. Returning is rare (a
//!   create that failed; once a checkpoint for all freed NIDs), so a lock is good enough, and it gives the answer "none
//!   is free" a moment at which it is true: with `returns` held and every block known, the free NIDs only get fewer, so
//!   a scan that finds none is right when it ends. `exhausted` remembers that answer until the next return.
//! - Order: a slot's lock, then `returns`; never the other way round.

use f2fs_format::Nid;
use f2fs_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use f2fs_sync::{Mutex, PerCore, protocol_never, protocol_step, protocol_value};

use crate::block_set::BlockSet;
use crate::config::NatConfig;
use crate::error::NatError;
use crate::frame::NONE;
use crate::size::{Bits, count, nid_at};
use crate::stats::ScanStats;
use crate::table::Table;

/// The policy's state.
#[derive(Debug)]
pub(crate) struct Sharded {
    /// The block that each lane hands out from.
    lanes: PerCore<AtomicU32>,
    /// Known blocks with free NIDs that are no lane's batch (a hint).
    spare: BlockSet,
    /// Blocks that were not looked at yet.
    unread: BlockSet,
    returns: Mutex<()>,
    exhausted: AtomicBool,
    first: u32,
}

impl Sharded {
    /// `first`: the block where the search begins.
    pub(crate) fn new(config: &NatConfig, table: &Table, first: u32) -> Sharded {
        let blocks = table.blocks();
        Sharded {
            lanes: PerCore::with_slots(config.lanes, |_| AtomicU32::new(NONE)),
            spare: BlockSet::new(blocks, false),
            unread: BlockSet::new(blocks, true),
            returns: Mutex::new(()),
            exhausted: AtomicBool::new(false),
            first,
        }
    }

    /// A free NID; `None`: there was a moment during the call when none was free.
    #[inline]
    pub(crate) fn allocate(&self, table: &Table, stats: &ScanStats) -> Result<Option<Nid>, NatError> {
        let own = || self.lanes.slot();
        let lane = protocol_value!("nat_one_lane", own(), self.lanes.get(0).unwrap_or_else(own));
        let batch = lane.load(Ordering::Relaxed);
        if batch != NONE
            && let Some(index) = table.slot(batch).take_first()
        {
            return Ok(Some(nid_at(batch, index)));
        }
        self.search(table, stats, lane, batch)
    }

    #[cold]
    fn search(&self, table: &Table, stats: &ScanStats, lane: &AtomicU32, batch: u32) -> Result<Option<Nid>, NatError> {
        let _scan = stats.scan();
        self.refill(table, stats, lane, batch)
    }

    fn refill(
        &self,
        table: &Table,
        stats: &ScanStats,
        lane: &AtomicU32,
        mut batch: u32,
    ) -> Result<Option<Nid>, NatError> {
        loop {
            // Another thread of this lane may have found a batch.
            let now = lane.load(Ordering::Relaxed);
            if now != batch
                && let Some(index) = table.slot(now).take_first()
            {
                return Ok(Some(nid_at(now, index)));
            }
            batch = now;
            if self.exhausted.load(Ordering::Acquire) {
                return Ok(None);
            }
            let near = if batch == NONE { self.first_of_lane(table) } else { self.behind_other_lanes(table, batch) };
            if let Some(block) = self.spare.next_around(near) {
                if self.spare.remove(block)
                    && let Some(index) = table.slot(block).take_first()
                {
                    if lane.compare_exchange(batch, block, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                        protocol_step!("nat_batch_dropped", self.spare.insert(block));
                    }
                    return Ok(Some(nid_at(block, index)));
                }
                continue;
            }
            let unreadable = match self.read_near(table, near) {
                Ok(true) => continue,
                Ok(false) => None,
                Err(error) => Some(error),
            };
            if let Some(nid) = self.steal(table) {
                return Ok(Some(nid));
            }
            if let Some(error) = unreadable {
                return Err(error);
            }
            if let Some(answer) = self.scan(table) {
                if answer.is_some() {
                    stats.missed();
                }
                return Ok(answer);
            }
        }
    }

    /// Where a lane that has no batch begins to look.
    fn first_of_lane(&self, table: &Table) -> u32 {
        (self.first + self.lanes.slot_index() as u32) % table.blocks()
    }

    /// Where a lane looks whose batch is used up: lanes that begin side by side and use up their batches at the same
    /// pace do not meet at one block, and read theirs at the same time.
    fn behind_other_lanes(&self, table: &Table, batch: u32) -> u32 {
        batch.saturating_add(self.lanes.slots() as u32) % table.blocks()
    }

    /// Reads an unread block, near if possible. Tells whether there was one. A block that cannot be read is passed
    /// over.
    fn read_near(&self, table: &Table, near: u32) -> Result<bool, NatError> {
        let mut failed = None;
        for range in [near..table.blocks(), 0..near] {
            let mut from = range.start;
            while let Some(block) = self.unread.next(from).filter(|block| *block < range.end) {
                match self.know(table, block) {
                    Ok(()) => return Ok(true),
                    Err(error) => failed = failed.or(Some(error)),
                }
                from = block + 1;
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// Makes a block's free NIDs known.
    pub(crate) fn know(&self, table: &Table, block: u32) -> Result<(), NatError> {
        table.know(block, |free| {
            if free.iter().any(|word| *word != 0) {
                protocol_step!("nat_know_keeps_no_hint", self.spare.insert(block));
            }
        })?;
        self.unread.remove(block);
        Ok(())
    }

    /// Takes a NID from another lane's batch.
    fn steal(&self, table: &Table) -> Option<Nid> {
        self.lanes.iter().find_map(|lane| {
            let batch = lane.load(Ordering::Relaxed);
            if batch == NONE {
                return None;
            }
            table.slot(batch).take_first().map(|index| nid_at(batch, index))
        })
    }

    /// Looks at every block. `None`: there is something to read after all.
    fn scan(&self, table: &Table) -> Option<Option<Nid>> {
        let _returns = self.returns.lock();
        for (block, slot) in table.slots.iter().enumerate() {
            // Nobody comes here while `unread` has a member, and it loses only blocks that are known: this is for sure,
            // not for a case that there is.
            if !slot.is_known() {
                return None;
            }
            if let Some(index) = slot.take_first() {
                return Some(Some(nid_at(block as u32, index)));
            }
        }
        self.exhausted.store(true, Ordering::Release);
        Some(None)
    }

    /// A node is being bound to a NID that had none; its block's lock is held. Tells whether the NID was taken before.
    #[inline]
    #[allow(clippy::unused_self, reason = "other policies keep a list of what is taken")]
    pub(crate) fn done(&self, table: &Table, block: u32, index: usize) -> bool {
        let slot = table.slot(block);
        slot.is_known() && !slot.is_free(index)
    }

    /// Takes this NID of a known block, if it is free.
    #[allow(clippy::unused_self, reason = "other policies keep a list of what is free")]
    pub(crate) fn reserve(&self, table: &Table, block: u32, index: usize) -> bool {
        table.slot(block).take(index)
    }

    /// Makes a NID free that was taken, and never bound. One that is free already stays so. Called with the block's
    /// lock held.
    pub(crate) fn put(&self, table: &Table, block: u32, index: usize) {
        if !self.done(table, block, index) {
            return;
        }
        let _returns = self.returns.lock();
        protocol_step!("nat_put_clears_exhausted", self.exhausted.store(false, Ordering::Release));
        protocol_never!("nat_put_hints_early", self.spare.insert(block));
        table.slot(block).put(index);
        protocol_step!("nat_put_hints_early", self.spare.insert(block));
    }

    /// Makes the NIDs free that a durable checkpoint has recorded as such. Called with the block's lock held.
    pub(crate) fn put_all(&self, table: &Table, block: u32, bits: &Bits) {
        if !table.slot(block).is_known() {
            // They are found with the others of the block when it is looked at.
            table.count_unknown(count(bits));
            return;
        }
        let _returns = self.returns.lock();
        self.exhausted.store(false, Ordering::Release);
        table.slot(block).put_all(bits);
        protocol_step!("nat_put_all_hint", self.spare.insert(block));
    }

    /// Where the next search should begin: in the first block that a lane hands out from.
    pub(crate) fn next_nid(&self) -> Nid {
        let batches = self.lanes.iter().map(|lane| lane.load(Ordering::Relaxed)).filter(|batch| *batch != NONE);
        nid_at(batches.min().unwrap_or(self.first), 0)
    }

    /// Whether the hints lead to every block that has free NIDs.
    #[cfg(all(loom, feature = "baselines"))]
    pub(crate) fn hints_are_complete(&self, table: &Table) -> bool {
        (0..table.blocks()).all(|block| {
            count(&table.slot(block).free_bits()) == 0
                || self.spare.next(block) == Some(block)
                || self.lanes.iter().any(|lane| lane.load(Ordering::Relaxed) == block)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
