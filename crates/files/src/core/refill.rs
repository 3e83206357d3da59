//! When free NIDs are looked for, under the policies that keep a list of them.
//!
//! Linux does it in `f2fs_balance_fs`. Its operations call that after their look-ups and before they change something,
//! and hold the locks of the VFS meanwhile. Here they call [`Core::refill_nids`] in the same place:
//!
//! | | Linux has locked | here |
//! |---|---|---|
//! | create, make a directory or a link, unlink, remove a directory, rename | the directory, or both | the stripes of the names; with `DirectoryLock::Whole` the directory, or both |
//! | set attributes, set the size, allocate, set and remove extended attributes | the file | the part that changes |
//! | write | the file; only if the write is the first to change a node | nothing is looked for |
//!
//! So with `Whole` all threads in one directory wait for a scan that one of them does, as they do in Linux.

use super::Core;

impl Core {
    /// Lets the policies that keep a list of free NIDs refill it; the default policy has nothing to do. The caller
    /// holds the locks of its operation, and is not inside the gate.
    #[inline]
    pub(crate) fn refill_nids(&self) {
        #[cfg(feature = "baselines")]
        self.volume.nids().balance();
    }
}

#[cfg(all(test, feature = "baselines", not(any(loom, shuttle))))]
mod tests;
