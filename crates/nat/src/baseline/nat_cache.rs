//! The cost of the kernel's cache of NAT entries, for the policies with a list: its lock, and the count of its entries.
//!
//! Entries themselves are found without it, in the slots. It is there so that those policies wait where Linux waits:
//!
//! | | `nat_tree_lock` |
//! |---|---|
//! | a look-up ([`Nat::get`](crate::Nat::get)) | shared; the first one of a NID once more, exclusively, to enter it |
//! | a change ([`Nat::bind`](crate::Nat::bind), [`Nat::free`](crate::Nat::free)) | exclusive |
//! | a stage of a scan for free NIDs, to its end | shared |
//! | the two halves of a checkpoint | exclusive |
//!
//! # Locking rules
//!
//! Taken before any slot's lock and before `list`, after `build`, `bitmap` and `blocks`; never twice by one thread.

use f2fs_format::Nid;
use f2fs_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use f2fs_sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, protocol_value};

use crate::entry::NatEntry;
use crate::error::NatError;
use crate::policy::Policy;
use crate::size::{WORDS, bit, locate};
use crate::table::Table;

/// The lock of the kernel's cache, and which NIDs would be in it.
#[derive(Debug)]
pub(crate) struct NatCache {
    tree: RwLock<()>,
    /// NIDs whose entry was looked up, changed or handed out, by block.
    entered: Box<[[AtomicU64; WORDS]]>,
    count: AtomicUsize,
}

impl NatCache {
    pub(crate) fn new(blocks: u32) -> NatCache {
        NatCache {
            tree: RwLock::new(()),
            entered: (0..blocks).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect(),
            count: AtomicUsize::new(0),
        }
    }

    /// A look-up, or a stage of a scan.
    pub(crate) fn share(&self) -> RwLockReadGuard<'_, ()> {
        self.tree.read()
    }

    /// A change.
    pub(crate) fn change(&self) -> RwLockWriteGuard<'_, ()> {
        self.tree.write()
    }

    /// Whether the NID's entry is in the cache. It must lie in the table.
    pub(crate) fn has(&self, nid: Nid) -> bool {
        let (block, index) = locate(nid);
        let (word, mask) = bit(index);
        self.entered[block as usize][word].load(Ordering::Relaxed) & mask != 0
    }

    /// The NID's entry comes into the cache, if it is not there. It must lie in the table.
    pub(crate) fn enter(&self, nid: Nid) {
        let (block, index) = locate(nid);
        let (word, mask) = bit(index);
        if !self.has(nid) && self.entered[block as usize][word].fetch_or(mask, Ordering::Relaxed) & mask == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The entries of a block leave memory.
    pub(crate) fn forget(&self, block: u32) {
        for word in &self.entered[block as usize] {
            let entered = word.swap(0, Ordering::Relaxed);
            self.count.fetch_sub(entered.count_ones() as usize, Ordering::Relaxed);
        }
    }

    /// Entries in the cache.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

impl Table {
    /// With the lock of the kernel's cache, if the policy has it.
    pub(crate) fn with_cache_of(mut self, policy: Policy) -> Table {
        self.cache = (policy != Policy::Sharded).then(|| Box::new(NatCache::new(self.blocks())));
        self
    }

    /// A stage of a scan for free NIDs shares the lock of the kernel's cache, where the policy has that.
    pub(crate) fn share_cache(&self) -> Option<RwLockReadGuard<'_, ()>> {
        protocol_value!("nat_scan_beside_changes", self.cache.as_ref(), None).map(|cache| cache.share())
    }

    /// A change excludes look-ups and scans, where the policy has the lock of the kernel's cache.
    #[inline]
    pub(crate) fn change_cache(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.cache.as_ref().map(|cache| cache.change())
    }

    /// Looks an entry up through the lock of the kernel's cache, and enters it there.
    #[cold]
    pub(crate) fn read_through(&self, cache: &NatCache, nid: Nid) -> Result<NatEntry, NatError> {
        let (entry, known) = {
            let _shared = cache.share();
            let entry = self.read(nid)?;
            (entry, cache.has(nid))
        };
        if !known {
            let _exclusive = cache.change();
            cache.enter(nid);
        }
        Ok(entry)
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use std::sync::{Arc, Mutex, OnceLock, mpsc};
    use std::time::Duration;

    use f2fs_format::BlockAddr;
    use f2fs_format::nat::NatBlock;

    use super::*;
    use crate::size::ENTRIES;
    use crate::{Nat, NatConfig, NatSource, Policy, SourceError};

    #[test]
    fn each_nid_counts_once_until_its_block_leaves() {
        let cache = NatCache::new(2);
        let here = ENTRIES as u32;
        for nid in [3, 4, 3, here, here + 1, here] {
            cache.enter(Nid(nid));
        }
        assert_eq!((cache.len(), cache.has(Nid(4)), cache.has(Nid(5))), (4, true, false));
        cache.forget(0);
        assert_eq!((cache.len(), cache.has(Nid(4)), cache.has(Nid(here))), (2, false, true));
        cache.enter(Nid(4));
        assert_eq!(cache.len(), 3);
    }

    const LISTS: [Policy; 2] = [Policy::KernelScan, Policy::Clue { optimistic: true, heuristic: true, lazy: false }];

    /// Notes at each read whether a look-up, and whether a change, would have to wait; and how many blocks are read
    /// ahead.
    #[derive(Default)]
    struct Watched {
        ahead: Mutex<Vec<usize>>,
        nat: OnceLock<Arc<Nat>>,
        waits: Mutex<Vec<(bool, bool)>>,
    }

    impl NatSource for Watched {
        fn read_nat_block(&self, _index: u32, _second: bool) -> Result<Box<NatBlock>, SourceError> {
            if let Some(cache) = self.nat.get().and_then(|nat| nat.table.cache.as_ref()) {
                let look_up = cache.tree.try_read().is_none();
                let change = cache.tree.try_write().is_none();
                self.waits.lock().unwrap().push((look_up, change));
            }
            Ok(Box::new(NatBlock::ZERO))
        }

        fn read_nat_blocks(&self, blocks: &[(u32, bool)]) -> Result<Vec<Box<NatBlock>>, SourceError> {
            self.ahead.lock().unwrap().push(blocks.len());
            blocks.iter().map(|(index, second)| self.read_nat_block(*index, *second)).collect()
        }
    }

    fn open(policy: Policy) -> (Arc<Watched>, Arc<Nat>) {
        let source = Arc::new(Watched::default());
        let config = NatConfig::new(20).policy(policy).balance_entries(0).valid_nodes(0);
        let nat = Arc::new(Nat::new(config, source.clone(), vec![0; 3], &[]).unwrap());
        source.nat.set(nat.clone()).unwrap();
        (source, nat)
    }

    #[test]
    fn scans_share_the_lock_and_changes_have_it_alone() {
        for policy in LISTS {
            let (source, nat) = open(policy);
            nat.balance();
            assert_eq!(std::mem::take(&mut *source.waits.lock().unwrap()), [(false, false); 8], "read ahead, {policy}");
            assert_eq!(*source.ahead.lock().unwrap(), [8], "{policy}");
            // The checkpoint may have written the other copy since the read-ahead: it is read again, under the scan's
            // lock.
            let old = nat.table.read_ahead([9].into_iter());
            nat.begin_checkpoint(38).unwrap();
            nat.end_checkpoint();
            source.waits.lock().unwrap().clear();
            let scan = nat.table.share_cache();
            drop(nat.table.lock_with(9, old.get(&9)).unwrap());
            assert_eq!(std::mem::take(&mut *source.waits.lock().unwrap()), [(false, true)], "a scan, {policy}");
            let new = nat.table.read_ahead([9, 10].into_iter());
            assert_eq!(new.keys().collect::<Vec<_>>(), [&10], "{policy}");
            source.waits.lock().unwrap().clear();
            drop(nat.table.lock_with(10, new.get(&10)).unwrap());
            assert_eq!(*source.waits.lock().unwrap(), [], "read ahead, {policy}");
            drop(scan);
            nat.reserve(Nid(15 * ENTRIES as u32)).unwrap();
            assert_eq!(std::mem::take(&mut *source.waits.lock().unwrap()), [(false, false)], "no scan, {policy}");
            assert!(nat.free(Nid(16 * ENTRIES as u32)).is_err());
            assert_eq!(std::mem::take(&mut *source.waits.lock().unwrap()), [(true, true)], "a change, {policy}");
        }
        let (_, nat) = open(Policy::Sharded);
        assert!(nat.table.cache.is_none());
    }

    #[test]
    fn a_change_waits_for_a_scan() {
        for policy in LISTS {
            let (_, nat) = open(policy);
            let nid = nat.allocate().unwrap().unwrap();
            let scan = nat.table.share_cache();
            let (sender, bound) = mpsc::channel();
            let other = nat.clone();
            let thread = std::thread::spawn(move || {
                other.bind(nid, nid, BlockAddr::NEW).unwrap();
                sender.send(()).unwrap();
            });
            assert!(bound.recv_timeout(Duration::from_millis(50)).is_err(), "{policy}");
            drop(scan);
            thread.join().unwrap();
        }
    }
}
