//! Node IDs: the calls that the policies of their allocator need from outside, and their statistics.

use crate::{Volume, VolumeError};

impl Volume {
    /// Lets the NID policies that keep a list refill it, as the kernel does on its balance path: call it where Linux
    /// calls `f2fs_balance_fs`, with the lock of the directory held. The default policy has nothing to do.
    #[cfg(feature = "baselines")]
    #[inline]
    pub fn balance_nids(&self) {
        self.nat.balance();
    }

    /// Counts of the node address table's work so far, with the time that went into scans for free NIDs.
    #[must_use]
    pub fn nat_stats(&self) -> f2fs_nat::NatStats {
        self.nat.stats()
    }

    /// NIDs that can be allocated now, those [held](Volume::hold_nids) not among them. Exact while nobody allocates or
    /// frees.
    ///
    /// # Errors
    /// [`VolumeError::Nat`] if a block of the table has to be read and cannot be.
    pub fn allocatable_nids(&self) -> Result<u64, VolumeError> {
        Ok(self.nat.free_nids()?)
    }

    /// Takes NIDs until at most `leave` can be allocated, and returns how many it took: the allocator is then where it
    /// would be on a volume full of files, for tests and measurements. The volume itself does not change: the NIDs are
    /// free again when it is opened the next time, not before.
    ///
    /// # Errors
    /// [`VolumeError::ReadOnly`], [`VolumeError::Stopped`]; [`VolumeError::Nat`] if a block of the table cannot be
    /// read.
    pub fn hold_nids(&self, leave: u64) -> Result<u64, VolumeError> {
        self.check_writable()?;
        let mut held = 0;
        for _ in leave..self.nat.free_nids()? {
            if self.nat.allocate()?.is_none() {
                break;
            }
            held += 1;
        }
        Ok(held)
    }
}
