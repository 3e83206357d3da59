//! Every block, range and budget that a caller can hand in, at the ends of what its type holds: an answer, no panic,
//! and no memory by what was asked for.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::time::Duration;

use f2fs_extent::{
    AddressCache, Bits, BlockRange, CacheBudget, ExtentBits, ExtentTable, LockRequest, Mode, Wait, lock_many,
};

const BLOCKS: [u64; 14] = [
    0,
    1,
    63,
    64,
    65,
    4096,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    (1 << 52) - 1,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX - 64,
    u64::MAX - 1,
    u64::MAX,
];

/// Memory that a table or a cache may take for a few blocks, wherever they are.
const MEMORY: u64 = 4 << 20;

#[test]
fn ranges_to_lock() {
    for first in BLOCKS {
        for last in BLOCKS {
            let what = format!("{first}..={last}");
            let table = Arc::new(ExtentTable::new());
            let range = BlockRange::new(first, last);
            assert_eq!(range.is_some(), first <= last, "{what}");
            drop((table.shared(first..=last), table.shared(first..last)));
            drop(table.exclusive(first..=last));
            drop(table.exclusive(first..last));
            drop(table.exclusive_from(first));
            drop(table.shared(..last));
            let held = table.exclusive(first..=last);
            // A range without blocks is never in anybody's way.
            assert_eq!(table.try_shared(..).is_some(), range.is_none(), "{what}");
            assert_eq!(table.try_exclusive(first..=first).is_some(), range.is_none(), "{what}");
            assert_eq!(table.locked(first..=last).is_some(), range.is_some(), "{what}");
            assert!(table.try_shared(first..first).is_some() && table.locked(last..last).is_none(), "{what}");
            drop(held);
            let wait = Wait::up_to(Duration::MAX);
            drop(table.shared_with(first..=last, &wait).unwrap());
            drop(table.exclusive_with(first..=last, &Wait::up_to(Duration::ZERO)).unwrap());
            drop(table.lock_owned(first..=last, Mode::Exclusive, &wait).unwrap());
            let both = [LockRequest::shared(&table, first..=last), LockRequest::exclusive(&table, last..)];
            drop(lock_many(&both));
            assert!(table.bytes() as u64 <= MEMORY, "{what}: {} bytes", table.bytes());
            assert_eq!(table.locked(..), None, "{what}");
        }
    }
}

/// A long run goes on behind the part of it that a change of few blocks takes over.
#[test]
fn a_long_run_stays_beside_a_short_change() {
    let (long, some, other) = (1 << 24, Bits::from_raw(1), Bits::from_raw(2));
    let bits = ExtentBits::new();
    assert_eq!(bits.set(0..long, some), u128::from(long));
    assert_eq!(bits.set(5..=5, other), 1);
    let far = long / 2;
    assert!(bits.get(far) == some && bits.test_all(far..far + 3, some) && bits.test_any(far..=far, some));
    assert_eq!((bits.count(far..far + 9, some), bits.count(.., some)), (9, u128::from(long)));
    assert_eq!(bits.clear(far..=far, some), 1);
}

#[test]
fn ranges_of_bits() {
    for first in BLOCKS {
        for last in BLOCKS {
            let what = format!("{first}..={last}");
            let bits = ExtentBits::new();
            let blocks = BlockRange::new(first, last).map_or(0, BlockRange::blocks);
            for raw in [1, 0x80, 0xff] {
                let some = Bits::from_raw(raw);
                assert_eq!(bits.set(first..=last, some), blocks, "{what}");
                assert_eq!(bits.count(.., some), blocks, "{what}");
                assert_eq!(bits.test_any(first..=last, some), blocks > 0, "{what}");
                assert!(bits.test_all(first..=last, some), "{what}");
                assert_eq!(bits.get(first) == some, blocks > 0, "{what}");
                for from in BLOCKS {
                    let _ = (bits.run_at(from), bits.find_with(from, some), bits.find_without(from, some));
                    let _ = bits.find_contiguous(from, some);
                    for most in [0, 1, u64::MAX] {
                        let _ = bits.find_delalloc(BlockRange::one(from), most);
                        let _ = bits.find_delalloc(BlockRange::ALL, most);
                    }
                    let _ = bits.first_contiguous(BlockRange::one(from), some);
                }
                assert_eq!(bits.iter().count(), usize::from(blocks > 0), "{what}");
                assert_eq!(bits.convert(first..=last, Bits::NONE, some), blocks, "{what}");
                assert_eq!(bits.clear(first..=last, some), 0, "{what}");
            }
            assert!(bits.bytes() as u64 <= MEMORY, "{what}: {} bytes", bits.bytes());
        }
    }
}

#[test]
fn blocks_and_budgets_of_the_cache() {
    for bytes in BLOCKS {
        let budget = Arc::new(CacheBudget::new(bytes));
        let cache = AddressCache::new(Arc::clone(&budget));
        for first in BLOCKS {
            for last in BLOCKS {
                let what = format!("{bytes} bytes, {first}..={last}");
                assert!(cache.run(first, last).is_none_or(|run| run.len >= 1), "{what}");
                cache.fill(first, [0, 1, 2, u32::MAX, u32::MAX - 1, 0, 0].into_iter());
                assert!(cache.run(first, last).is_none_or(|run| run.len >= 1), "{what}");
                cache.store(last, u32::MAX);
                cache.store(first, u32::MAX - 1);
                assert!(cache.run(first, last).is_none_or(|run| run.len >= 1), "{what}");
                cache.refresh(first);
                assert!(cache.bytes() <= MEMORY, "{what}: {} bytes", cache.bytes());
            }
            cache.forget(first);
        }
        drop(cache);
        assert_eq!(budget.left(), bytes, "all of it came back");
    }
}

#[test]
fn runs_that_moved_into_chunks_take_no_room_in_the_map() {
    let (long, short) = (ExtentBits::new(), ExtentBits::new());
    // In the map of runs at first, and in two chunks since a block of each was changed; in chunks from the start.
    long.set(0..8192, Bits::DIRTY);
    for block in [5, 5000] {
        long.clear(block..=block, Bits::DIRTY);
        long.set(block..=block, Bits::DIRTY);
    }
    short.set(0..4096, Bits::DIRTY);
    short.set(4096..8192, Bits::DIRTY);
    assert_eq!(long.count(.., Bits::DIRTY), 8192);
    assert_eq!(long.bytes(), short.bytes());
}
