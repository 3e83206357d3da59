//! Reading the whole table at once, on several threads.

#[cfg(not(loom))]
use crate::nat::Nat;

/// How far [`Nat::load_all`](crate::Nat::load_all) has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadProgress {
    /// NAT blocks read so far.
    pub blocks: u32,
    /// NAT blocks in all.
    pub of: u32,
}

#[cfg(not(loom))]
impl Nat {
    /// Reads every block of the table on `threads` threads, the caller's among them, so that no later operation has to
    /// wait for one (as long as [`cached_blocks`](crate::NatConfig::cached_blocks) are not fewer), and all free NIDs
    /// are known. The threads end before this returns. `progress` is called from all of them, about a hundred times.
    ///
    /// # Errors
    /// [`NatError::Source`](crate::NatError::Source) and [`NatError::Corrupt`](crate::NatError::Corrupt) of one of the
    /// blocks that could not be read; the others may be in memory.
    pub fn load_all(&self, threads: usize, progress: &(dyn Fn(LoadProgress) + Sync)) -> Result<(), crate::NatError> {
        use f2fs_sync::atomic::{AtomicU32, Ordering};

        let of = self.max_nid() / Nat::ENTRIES_PER_BLOCK as u32;
        let piece = of.div_ceil(100).clamp(8, 512);
        let done = AtomicU32::new(0);
        f2fs_sync::share_out(of.div_ceil(piece), threads, |number| {
            let range = number * piece..((number + 1) * piece).min(of);
            let count = range.len() as u32;
            for block in range {
                self.know(block)?;
            }
            progress(LoadProgress { blocks: done.fetch_add(count, Ordering::Relaxed) + count, of });
            Ok(())
        })
    }
}
