use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::directory::Directory;
use crate::{LockRequest, lock_many};

fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn counts(table: &ExtentTable) -> (usize, usize) {
    table.queue.get().map_or((0, 0), |queue| queue.lock().counts())
}

/// Whether nothing of the past sends a lock of a few blocks to the queue.
fn is_as_new(table: &ExtentTable) -> bool {
    let words = (0..1000).filter_map(|number| table.word(number)).all(|word| word.load(SeqCst) == 0);
    let hull = table.hull.misses(BlockRange::one(0)) && table.hull.misses(BlockRange::one(1 << 20));
    words && hull && counts(table) == (0, 0)
}

/// In a word, over words, over lines, covering.
const RANGES: [(u64, u64); 5] = [(5, 5), (6, 7), (3, 20), (60, 200), (0, 1 << 20)];

#[test]
fn who_waited_leaves_nothing_behind() {
    for (first, last) in RANGES {
        for (other, end) in RANGES.into_iter().filter(|&(other, end)| other <= last && first <= end) {
            let table = ExtentTable::new();
            let holder = table.exclusive(first..=last);
            let mut reader = table.shared_async(other..=end);
            let mut writer = table.exclusive_async(other..=end);
            let mut gives_up = table.exclusive_async(other..=end);
            let mut last_reader = table.shared_async(other..=end);
            assert!(poll(&mut reader).is_none() && poll(&mut writer).is_none());
            assert!(poll(&mut gives_up).is_none() && poll(&mut last_reader).is_none());
            assert_eq!(counts(&table).0, 4);
            drop(gives_up);
            drop(holder);
            let reading = poll(&mut reader).expect("its turn");
            assert!(poll(&mut writer).is_none() && poll(&mut last_reader).is_none());
            drop(reading);
            drop(poll(&mut writer).expect("its turn"));
            drop(poll(&mut last_reader).expect("its turn"));
            assert!(is_as_new(&table), "{other}..={end} behind {first}..={last}");
        }
    }
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    for (first, last) in RANGES {
        let table = ExtentTable::new();
        let holder = table.shared(5..=6);
        let mut writer = table.exclusive_async(first.min(5)..=last.max(6));
        assert!(poll(&mut writer).is_none());
        drop(writer);
        drop(holder);
        assert!(is_as_new(&table), "{first}..={last}");
    }
}

#[test]
fn several_ranges_at_once_leave_nothing_behind() {
    let table = ExtentTable::new();
    let many = [
        LockRequest::exclusive(&table, 3..=9),
        LockRequest::shared(&table, 30_000..=30_001),
        LockRequest::exclusive(&table, 100_000..),
    ];
    let held = lock_many(&many);
    // The words of blocks that nobody had locked before are there for it.
    for block in [3, 9, 30_000, 30_001, 100_000] {
        assert!(table.try_exclusive(block..=block).is_none(), "{block}");
    }
    assert!(table.try_shared(30_000..=30_001).is_some() && table.try_exclusive(10..30_000).is_some());
    drop(held);
    assert!(is_as_new(&table));
    let down = table.exclusive(0..10_000).downgrade();
    assert!(table.try_shared(5..=5).is_some());
    drop(down);
    assert!(is_as_new(&table));
}

#[test]
fn readers_beyond_the_counter_share_an_entry_for_each_range() {
    let table = ExtentTable::new();
    let readers: Vec<_> = (0..126).map(|_| table.try_shared(5..=5).expect("the byte counts 126")).collect();
    let same = [(); 9].map(|()| table.try_shared(5..=5).expect("the list has room"));
    assert_eq!(counts(&table), (0, 1));
    let wider = table.try_shared(5..=6).expect("the list has room");
    assert_eq!(counts(&table), (0, 2), "another range is another entry");
    let mut writer = table.exclusive_async(5..=6);
    assert!(poll(&mut writer).is_none());
    assert_eq!(counts(&table), (1, 2));
    assert!(format!("{table:?}").contains("waiting: 1, listed: 2"), "{table:?}");
    drop(readers);
    drop(same);
    assert_eq!(table.locked(6..=6), Some(Mode::Shared));
    assert!(poll(&mut writer).is_none(), "one is left");
    drop(wider);
    drop(poll(&mut writer).expect("its turn"));
    assert!(is_as_new(&table));
}

#[test]
fn waits_are_counted_and_measured() {
    let table = ExtentTable::new();
    for waits in 1..=3 {
        let before = table.wait_stats();
        let holder = table.exclusive(5..=5);
        let mut reader = table.shared_async(5..=5);
        assert!(poll(&mut reader).is_none());
        drop(holder);
        let stats = table.wait_stats();
        assert_eq!((stats.waits, stats.withdrawn), (waits, 0));
        let waited = stats.waited - before.waited;
        assert!(!waited.is_zero());
        assert_eq!(stats.longest, before.longest.max(waited));
    }
    let queue = size_of::<Mutex<Queue>>();
    assert_eq!(table.bytes(), size_of::<ExtentTable>() + queue);
    drop(table.shared(64..=64));
    let directory = table.directory.get().map_or(0, |directory| directory.bytes());
    assert!(directory > size_of::<Directory>());
    assert_eq!(table.bytes(), size_of::<ExtentTable>() + queue + directory);
}

/// A line of which it had no block before it waited for one of another line.
#[test]
fn a_covering_request_sees_what_was_granted_in_turn() {
    let table = ExtentTable::new();
    let holder = table.exclusive(60..=60);
    let mut waits = table.exclusive_async(60..=200);
    assert!(poll(&mut waits).is_none());
    drop(holder);
    let granted = poll(&mut waits).expect("its turn");
    for first in [0, 61, 100, 190] {
        assert!(table.try_exclusive(first..).is_none() && table.try_shared(first..).is_none(), "{first}");
        assert_eq!(table.locked(first..), Some(Mode::Exclusive));
    }
    assert!(table.try_exclusive(201..).is_some());
    drop(granted);
    assert!(table.try_exclusive(..).is_some());
}

#[test]
fn a_block_may_be_written_by_who_has_it_alone() {
    let table = ExtentTable::new();
    let written = |blocks: [u64; 4]| blocks.map(|block| table.may_be_written(block));
    assert_eq!(written([0, 5, 1 << 20, u64::MAX]), [false; 4]);
    let reader = table.shared(3..=9);
    let writer = table.exclusive(12..=100);
    assert_eq!(written([3, 9, 10, 11]), [false; 4]);
    assert_eq!(written([12, 15, 64, 100]), [true; 4]);
    assert_eq!(written([101, 108, 36, 1 << 20]), [false, false, true, false]);
    let truncate = table.exclusive(1 << 20..);
    assert_eq!(written([(1 << 20) - 1, 1 << 20, u64::MAX, 9]), [false, true, true, false]);
    drop((reader, writer, truncate));
    assert_eq!(written([12, 100, 1 << 20, u64::MAX]), [false; 4]);
}
