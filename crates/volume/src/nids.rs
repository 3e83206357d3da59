//! Node IDs: the calls that the policies of their allocator need from outside, and their statistics.

use crate::{Volume, VolumeError};

/// The node IDs of a volume: [`Volume::nids`].
#[derive(Clone, Copy, Debug)]
pub struct Nids<'a>(pub(crate) &'a Volume);

impl Nids<'_> {
    /// Lets the NID policies that keep a list refill it, as the kernel does on its balance path: call it where Linux
    /// calls `f2fs_balance_fs`, with the lock of the directory held. The default policy has nothing to do.
    #[cfg(feature = "baselines")]
    #[inline]
    pub fn balance(self) {
        self.0.nat.balance();
    }

    /// Counts of the node address table's work so far, with the time that went into scans for free NIDs.
    #[must_use]
    pub fn stats(self) -> f2fs_nat::NatStats {
        self.0.nat.stats()
    }

    /// NIDs that can be allocated now, those [held](Nids::hold) not among them. Exact while nobody allocates or
    /// frees.
    ///
    /// # Errors
    /// [`VolumeError::Nat`] if a block of the table has to be read and cannot be.
    pub fn allocatable(self) -> Result<u64, VolumeError> {
        Ok(self.0.nat.free_nids()?)
    }

    /// Takes NIDs until at most `leave` can be allocated, and returns how many it took: the allocator is then where it
    /// would be on a volume full of files, for tests and measurements. The volume itself does not change: the NIDs are
    /// free again when it is opened the next time, not before.
    ///
    /// # Errors
    /// [`VolumeError::ReadOnly`], [`VolumeError::Stopped`]; [`VolumeError::Nat`] if a block of the table cannot be
    /// read.
    pub fn hold(self, leave: u64) -> Result<u64, VolumeError> {
        self.0.check_writable()?;
        let mut held = 0;
        for _ in leave..self.0.nat.free_nids()? {
            if self.0.nat.allocate()?.is_none() {
                break;
            }
            held += 1;
        }
        Ok(held)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use crate::samples::{inode, plain};

    #[test]
    fn held_numbers_are_nobodys() {
        let volume = plain(64);
        let all = volume.nids().allocatable().unwrap();
        assert_eq!(all, volume.stat().free_nids);
        assert_eq!(volume.nids().hold(all).unwrap(), 0);
        assert_eq!((volume.nids().hold(2).unwrap(), volume.nids().allocatable().unwrap()), (all - 2, 2));
        (0..2).for_each(|_| drop(inode(&volume)));
        assert_eq!((volume.nids().hold(0).unwrap(), volume.nids().allocatable().unwrap()), (0, 0));
        let op = volume.begin().unwrap();
        assert!(matches!(volume.nodes().create(&op, crate::samples::INODE), Err(VolumeError::NoNids { .. })));
        drop(op);
        volume.stop_after_panic();
        assert!(matches!(volume.nids().hold(0), Err(VolumeError::Stopped { .. })));
    }
}
