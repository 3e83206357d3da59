//! A repair of what a repair leaves.
//!
//! A round puts right what it can see. Of damage in several places one may be hidden behind another: a directory that
//! comes back in the first round has names of which nothing was known before. The next round sees them.

use std::collections::BTreeMap;

use f2fs_device::BlockDevice;

use super::{Repair, RepairError};
use crate::report::CheckReport;

impl Repair {
    /// Whether something is left, and another round can begin where this one ended. Zones cannot be shown as they will
    /// be.
    pub(super) fn may_go_on(&self) -> bool {
        let is_whole = self.after.is_consistent() && self.after.complete;
        !is_whole && !self.changes.is_empty() && self.moved.is_empty() && self.zones.is_empty()
    }

    /// Adds the next round, which was planned for the device as this one shows it.
    pub(super) fn go_on_with(&mut self, next: Repair, device: &dyn BlockDevice) -> Result<(), RepairError> {
        let rounds = std::mem::take(&mut self.changes).into_iter().chain(next.changes);
        let changes: BTreeMap<_, _> = rounds.collect();
        for (block, bytes) in changes {
            if *device.read(block, 1)?.block(0) != *bytes {
                self.changes.push((block, bytes));
            }
        }
        self.actions.extend(next.actions);
        (self.after, self.witnesses) = (next.after, next.witnesses);
        if !next.packs.is_empty() {
            self.packs = next.packs;
        }
        self.brings_back_checkpoint |= next.brings_back_checkpoint;
        self.gives_up_synced |= next.gives_up_synced;
        self.keeps_synced &= next.keeps_synced;
        self.keeps_journal &= next.keeps_journal;
        Ok(())
    }
}

impl CheckReport {
    /// What speaks against a volume: the less, the better.
    pub(super) fn doubt(&self) -> (bool, bool, u64) {
        (!self.complete, !self.is_consistent(), self.findings.len() as u64 + self.suppressed)
    }
}
