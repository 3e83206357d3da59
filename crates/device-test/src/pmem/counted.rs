//! How many lines an operation stores and how often it waits: a region that counts.

use std::io;

use f2fs_pmem::{Durability, LINE, PersistentRegion, RegionError, lines, split_lines};
use f2fs_sync::atomic::{AtomicU64, Ordering};

/// Counts of the operations on a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines loaded, whole or in part.
    pub loaded: u64,
    /// Lines stored past the cache.
    pub stored_past_cache: u64,
    /// Lines stored through the cache, whole or in part.
    pub stored: u64,
    /// Lines written back.
    pub written_back: u64,
    /// Fences.
    pub fences: u64,
    /// Calls of [`PersistentRegion::sync`].
    pub syncs: u64,
}

impl LineCounts {
    /// The counts since `before`.
    #[must_use]
    pub fn since(self, before: LineCounts) -> LineCounts {
        LineCounts {
            loaded: self.loaded.wrapping_sub(before.loaded),
            stored_past_cache: self.stored_past_cache.wrapping_sub(before.stored_past_cache),
            stored: self.stored.wrapping_sub(before.stored),
            written_back: self.written_back.wrapping_sub(before.written_back),
            fences: self.fences.wrapping_sub(before.fences),
            syncs: self.syncs.wrapping_sub(before.syncs),
        }
    }
}

/// Counts what is done to the region below. All threads add to the same counters: it is for counting, not for speed.
#[derive(Debug)]
pub struct CountedRegion<R> {
    region: R,
    loaded: AtomicU64,
    stored_past_cache: AtomicU64,
    stored: AtomicU64,
    written_back: AtomicU64,
    fences: AtomicU64,
    syncs: AtomicU64,
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}

impl<R> CountedRegion<R> {
    /// Counts what is done to `region` from now on.
    #[must_use]
    pub fn new(region: R) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            region,
            loaded: zero(),
            stored_past_cache: zero(),
            stored: zero(),
            written_back: zero(),
            fences: zero(),
            syncs: zero(),
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> LineCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LineCounts {
            loaded: count(&self.loaded),
            stored_past_cache: count(&self.stored_past_cache),
            stored: count(&self.stored),
            written_back: count(&self.written_back),
            fences: count(&self.fences),
            syncs: count(&self.syncs),
        }
    }
}

impl<R: PersistentRegion> PersistentRegion for CountedRegion<R> {
    fn len(&self) -> usize {
        self.region.len()
    }

    fn read_only(&self) -> bool {
        self.region.read_only()
    }

    fn durability(&self) -> Durability {
        self.region.durability()
    }

    fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError> {
        self.region.load(offset, into)?;
        add(&self.loaded, lines(&(offset..offset + into.len())).len());
        Ok(())
    }

    fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.region.store(offset, bytes)?;
        add(&self.stored, lines(&(offset..offset + bytes.len())).len());
        Ok(())
    }

    fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.region.store_nontemporal(offset, bytes)?;
        let [before, whole, behind] = split_lines(&(offset..offset + bytes.len()));
        let partly = lines(&before).len() + lines(&behind).len();
        add(&self.stored_past_cache, whole.len() / LINE);
        add(&self.stored, partly);
        add(&self.written_back, partly);
        Ok(())
    }

    fn expect_store(&self, offset: usize) {
        self.region.expect_store(offset);
    }

    fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError> {
        self.region.write_back(offset, bytes)?;
        add(&self.written_back, lines(&(offset..offset + bytes)).len());
        Ok(())
    }

    fn fence(&self) {
        self.region.fence();
        add(&self.fences, 1);
    }

    fn sync(&self) -> io::Result<()> {
        add(&self.syncs, 1);
        self.region.sync()
    }
}
