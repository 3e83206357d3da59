//! Models of the address cache alone: cells that are stored and found at the same time. What readers, writers and
//! movers of a file do with it is modelled where they are, in `f2fs-files`. Lines have 2 blocks.
//!
//! ```text
//! mutant: cache_fills_a_chunk_of_its_own, killed by: two_fills_meet_in_one_chunk
//! mutant: cache_filled_relaxed, killed by: who_finds_an_address_finds_its_block
//! mutant: cache_found_relaxed, killed by: who_finds_an_address_finds_its_block
//! mutant: cache_neighbour_relaxed, killed by: who_finds_an_address_finds_its_block
//! mutant: cache_changed_relaxed, killed by: who_finds_a_changed_address_finds_its_block
//! mutant: cache_version_seen_relaxed, killed by: who_need_not_renew_finds_nothing_old
//! mutant: cache_version_told_relaxed, killed by: who_need_not_renew_finds_nothing_old
//! ```
#![cfg(loom)]

use f2fs_extent::{AddressCache, CacheBudget, CachedRun};
use f2fs_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use f2fs_sync::model::bounded;
use f2fs_sync::{Arc, thread};

/// Whoever filled a cell can find it: the chunk is the one that everybody uses, and is paid for once.
#[test]
fn two_fills_meet_in_one_chunk() {
    bounded("two_fills_meet_in_one_chunk", 3, || {
        let budget = Arc::new(CacheBudget::new(1 << 20));
        let cache = Arc::new(AddressCache::new(budget.clone()));
        let other = Arc::clone(&cache);
        // One block each, of the first line.
        let one = thread::spawn(move || {
            other.fill(0, [40].into_iter());
            assert_eq!(other.run(0, 0), Some(CachedRun { addr: 40, len: 1 }));
        });
        cache.fill(1, [41].into_iter());
        assert_eq!(cache.run(1, 1), Some(CachedRun { addr: 41, len: 1 }));
        one.join().unwrap();
        assert_eq!(cache.run(0, 1), Some(CachedRun { addr: 40, len: 2 }));
        assert_eq!(budget.left() + cache.bytes(), 1 << 20);
        drop(cache);
        assert_eq!(budget.left(), 1 << 20);
    });
}

/// Who filled the cells had seen what was written to the blocks; who finds the addresses there sees it, too. The blocks
/// themselves order nothing, as memory of a device need not.
#[test]
fn who_finds_an_address_finds_its_block() {
    bounded("who_finds_an_address_finds_its_block", 3, || {
        let cache = Arc::new(AddressCache::new(Arc::new(CacheBudget::new(1 << 20))));
        // The chunk is there: only the cells hand anything on.
        cache.fill(1, [7].into_iter());
        let blocks = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let (other, device) = (Arc::clone(&cache), Arc::clone(&blocks));
        let filler = thread::spawn(move || {
            device[1].store(1, Ordering::Relaxed);
            other.fill(1, [41].into_iter());
            device[0].store(1, Ordering::Relaxed);
            other.fill(0, [40].into_iter());
        });
        let found = cache.run(0, 0).map_or(0, |run| run.len);
        assert!(found == 0 || blocks[0].load(Ordering::Relaxed) == 1, "the first block");
        if let Some(CachedRun { addr: 41, .. }) = cache.run(1, 1) {
            assert_eq!(blocks[1].load(Ordering::Relaxed), 1, "a block that was found first");
        }
        filler.join().unwrap();
    });
    bounded("who_finds_an_address_finds_its_block", 3, || {
        let cache = Arc::new(AddressCache::new(Arc::new(CacheBudget::new(1 << 20))));
        cache.fill(0, [40].into_iter());
        let block = Arc::new(AtomicU32::new(0));
        let (other, device) = (Arc::clone(&cache), Arc::clone(&block));
        let filler = thread::spawn(move || {
            device.store(1, Ordering::Relaxed);
            other.fill(1, [41].into_iter());
        });
        if cache.run(0, 1).is_some_and(|run| run.len == 2) {
            assert_eq!(block.load(Ordering::Relaxed), 1, "the block behind the first");
        }
        filler.join().unwrap();
    });
}

/// The same for an address that a writer changed.
#[test]
fn who_finds_a_changed_address_finds_its_block() {
    bounded("who_finds_a_changed_address_finds_its_block", 3, || {
        let cache = Arc::new(AddressCache::new(Arc::new(CacheBudget::new(1 << 20))));
        cache.fill(0, [40].into_iter());
        let block = Arc::new(AtomicU32::new(0));
        let (other, device) = (Arc::clone(&cache), Arc::clone(&block));
        let writer = thread::spawn(move || {
            device.store(1, Ordering::Relaxed);
            other.store(0, 41);
        });
        if let Some(CachedRun { addr: 41, .. }) = cache.run(0, 0) {
            assert_eq!(block.load(Ordering::Relaxed), 1, "the block in its new place");
        }
        writer.join().unwrap();
    });
}

/// Of two who begin with the same version one drops the cells. The other one need not, and finds them dropped.
#[test]
fn who_need_not_renew_finds_nothing_old() {
    bounded("who_need_not_renew_finds_nothing_old", 3, || {
        let cache = Arc::new(AddressCache::new(Arc::new(CacheBudget::new(1 << 20))));
        cache.fill(0, [40].into_iter());
        let renewed = Arc::new(AtomicBool::new(false));
        let (other, told) = (Arc::clone(&cache), Arc::clone(&renewed));
        let renewer = thread::spawn(move || {
            other.refresh(1);
            told.store(true, Ordering::Relaxed);
        });
        // The flag orders nothing. Without it loom would not try the order in which the version is there at the first
        // look: of the accesses to one variable it reverses only the last.
        if renewed.load(Ordering::Relaxed) {
            cache.refresh(1);
            assert_eq!(cache.run(0, 0), None, "where the block was before it was moved");
        }
        renewer.join().unwrap();
    });
}
