//! Models of the address cache alone: cells that are stored and found at the same time. What readers, writers and
//! movers of a file do with it is modelled where they are, in `f2fs-files`. Lines have 2 blocks.
//!
//! ```text
//! mutant: cache_fills_a_chunk_of_its_own, killed by: two_fills_meet_in_one_chunk
//! ```
#![cfg(loom)]

use f2fs_extent::{AddressCache, CacheBudget, CachedRun};
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
