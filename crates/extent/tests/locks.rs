//! The promises of the lock table, with one thread or two at a time.
#![cfg(not(any(loom, shuttle)))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use f2fs_extent::{
    BlockRange, CancelToken, ExtentTable, LockError, LockRequest, Mode, Wait, lock_many, lock_many_with,
};

/// Long enough for a thread to get into the queue, if it is going to.
fn until_waiting(table: &ExtentTable, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !format!("{table:?}").contains(&format!("waiting: {count}")) {
        assert!(Instant::now() < deadline, "{count} should wait: {table:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

const FAR: u64 = 1 << 40;

/// Ranges of every kind: in a word, over words, over lines, over classes, covering, beyond the words.
const RANGES: [(u64, u64); 12] = [
    (0, 0),
    (3, 5),
    (7, 8),
    (0, 63),
    (60, 70),
    (100, 600),
    (4000, 4200),
    (0, 5000),
    (70, 1 << 30),
    (FAR, FAR),
    (FAR - 1, u64::MAX),
    (0, u64::MAX),
];

#[test]
fn every_pair_of_ranges_excludes_exactly_when_it_overlaps() {
    let table = ExtentTable::new();
    for (a, b) in RANGES {
        for (c, d) in RANGES {
            let overlap = a <= d && c <= b;
            let writer = table.try_exclusive(a..=b).expect("the table is free");
            assert_eq!(table.try_shared(c..=d).is_none(), overlap, "{a}..={b} written, {c}..={d} read");
            assert_eq!(table.try_exclusive(c..=d).is_none(), overlap, "{a}..={b} written, {c}..={d} written");
            let reader = writer.downgrade();
            assert!(table.try_shared(c..=d).is_some(), "{a}..={b} read, {c}..={d} read");
            assert_eq!(table.try_exclusive(c..=d).is_none(), overlap, "{a}..={b} read, {c}..={d} written");
            drop(reader);
            assert_eq!(table.locked(..), None);
        }
    }
    assert_eq!(table.wait_stats().waits, 0);
}

#[test]
fn an_empty_range_locks_nothing() {
    let table = ExtentTable::new();
    let all = table.exclusive_all();
    let nothing = table.exclusive(5..5);
    assert_eq!(nothing.range(), None);
    assert!(lock_many(&[LockRequest::exclusive(&table, 9..9)]).ranges().next().is_none());
    drop(all);
    drop(nothing);
    assert_eq!(table.locked(..), None);
}

#[test]
fn an_empty_table_is_small_and_a_small_file_needs_no_heap() {
    let table = ExtentTable::new();
    assert!(table.bytes() <= 256, "{} bytes", table.bytes());
    drop((table.shared(0..64), table.try_exclusive(5..6)));
    assert_eq!(table.bytes(), size_of::<ExtentTable>());
    drop(table.shared(0..4096));
    drop(table.exclusive(4000..4001));
    assert!(table.bytes() < 8192, "16 MiB of file take {} bytes", table.bytes());
}

#[test]
fn locked_tells_the_strongest_mode() {
    let table = ExtentTable::new();
    let _a = table.shared(10..20);
    let _b = table.exclusive(30..40);
    let _c = table.shared(10_000..20_000);
    assert_eq!(table.locked(0..10), None);
    assert_eq!(table.locked(0..11), Some(Mode::Shared));
    assert_eq!(table.locked(0..31), Some(Mode::Exclusive));
    assert_eq!(table.locked(20..30), None);
    assert_eq!(table.locked(15_000..), Some(Mode::Shared));
    assert_eq!(table.locked(20_000..), None);
}

#[test]
fn a_reader_does_not_overtake_a_queued_writer() {
    for (first, last) in [(5, 5), (6, 12), (0, 1 << 20)] {
        let table = Arc::new(ExtentTable::new());
        let order = Arc::new(AtomicUsize::new(0));
        let holder = table.shared(5..=9);
        let writer = thread::spawn({
            let (table, order) = (Arc::clone(&table), Arc::clone(&order));
            move || {
                let _guard = table.exclusive(first..=last);
                order.fetch_add(1, Ordering::SeqCst)
            }
        });
        until_waiting(&table, 1);
        assert!(table.try_shared(first..=first).is_none(), "a writer waits for {first}..={last}");
        let reader = thread::spawn({
            let (table, order) = (Arc::clone(&table), Arc::clone(&order));
            move || {
                let _guard = table.shared(first..=first);
                order.fetch_add(1, Ordering::SeqCst)
            }
        });
        until_waiting(&table, 2);
        drop(holder);
        assert_eq!(writer.join().expect("no panic"), 0);
        assert_eq!(reader.join().expect("no panic"), 1);
        assert_eq!(table.wait_stats().waits, 2);
    }
}

#[test]
fn a_queued_writer_does_not_hold_back_others() {
    let table = Arc::new(ExtentTable::new());
    let holder = table.exclusive(5..=5);
    let writer = thread::spawn({
        let table = Arc::clone(&table);
        move || drop(table.exclusive(4..=6))
    });
    until_waiting(&table, 1);
    // The same word, other blocks.
    assert!(table.try_exclusive(0..=3).is_some());
    assert!(table.try_shared(7..=7).is_some());
    assert!(table.try_shared(4..=4).is_none());
    drop(holder);
    writer.join().expect("no panic");
    assert!(table.try_exclusive(0..64).is_some(), "no queued bit is left behind");
}

#[test]
fn a_queued_reader_does_not_hold_back_readers() {
    let table = Arc::new(ExtentTable::new());
    let holder = table.exclusive(5..=5);
    let reader = thread::spawn({
        let table = Arc::clone(&table);
        move || drop(table.shared(4..=20))
    });
    until_waiting(&table, 1);
    assert!(table.try_shared(4..=4).is_some());
    assert!(table.try_shared(6..=30).is_some());
    assert!(table.try_exclusive(4..=4).is_none());
    drop(holder);
    reader.join().expect("no panic");
    assert!(table.try_exclusive(0..64).is_some(), "no queued bit is left behind");
}

#[test]
fn timed_waits_end() {
    for (first, last) in [(3, 3), (0, 100), (0, u64::MAX)] {
        let table = ExtentTable::new();
        let _held = table.exclusive(3..=3);
        let error = table.shared_with(first..=last, &Wait::up_to(Duration::from_millis(20))).expect_err("it is held");
        let LockError::TimedOut { range, waited } = error else { panic!("{error}") };
        assert_eq!(Some(range), BlockRange::new(first, last));
        assert!(waited >= Duration::from_millis(19), "{waited:?}");
        assert!(error.to_string().contains(&format!("{first}..={last}")), "{error}");
        assert!(matches!(table.exclusive_with(3..=3, &Wait::NOT), Err(LockError::Busy { .. })));
        assert_eq!(table.wait_stats().withdrawn, 1);
        assert!(
            matches!(table.exclusive_with(.., &Wait::NOT), Err(LockError::Busy { range }) if range == BlockRange::ALL)
        );
        assert!(table.try_exclusive(4..=50).is_some(), "the one who gave up left nothing behind");
    }
}

#[test]
fn withdrawal_lets_those_behind_in() {
    let table = Arc::new(ExtentTable::new());
    let holder = table.shared(3..=3);
    let token = CancelToken::new();
    let writer = thread::spawn({
        let (table, token) = (Arc::clone(&table), token.clone());
        move || table.exclusive_with(0..=9, &Wait::FOREVER.or_cancelled(&token)).map(drop)
    });
    until_waiting(&table, 1);
    let reader = thread::spawn({
        let table = Arc::clone(&table);
        move || drop(table.shared(5..=5))
    });
    until_waiting(&table, 2);
    token.cancel();
    reader.join().expect("the reader goes in beside the holder");
    assert!(matches!(writer.join().expect("no panic"), Err(LockError::Cancelled { .. })));
    assert!(token.is_cancelled());
    assert!(table.exclusive_with(3..=3, &Wait::FOREVER.or_cancelled(&token)).is_err(), "it stays cancelled");
    drop(holder);
    assert!(table.exclusive_with(3..=3, &Wait::FOREVER.or_cancelled(&token)).is_ok(), "nothing to wait for");
}

#[test]
fn guards_are_released_on_other_threads_and_outlive_their_maker() {
    let table = Arc::new(ExtentTable::new());
    let mut guard = table.lock_owned(0..10, Mode::Exclusive, &Wait::FOREVER).expect("the table is free");
    assert!(table.try_shared(9..10).is_none());
    guard.downgrade();
    assert!(table.try_shared(9..10).is_some());
    assert_eq!((guard.mode(), guard.range()), (Mode::Shared, BlockRange::of(0..10)));
    thread::spawn(move || drop(guard)).join().expect("no panic");
    assert!(table.try_exclusive(9..10).is_some());

    let guard = table.exclusive(..);
    thread::scope(|scope| {
        scope.spawn(move || drop(guard));
    });
    assert_eq!(table.locked(..), None);
}

#[test]
fn many_ranges_are_one_request() {
    let (a, b) = (ExtentTable::new(), ExtentTable::new());
    let held = lock_many(&[
        LockRequest::exclusive(&b, 7..=7),
        LockRequest::shared(&a, 0..10),
        LockRequest::exclusive(&a, 4..=4),
        LockRequest::shared(&a, 1 << 20..),
    ]);
    assert_eq!(held.ranges().count(), 5);
    assert_eq!(a.locked(4..=4), Some(Mode::Exclusive));
    assert_eq!(a.locked(5..100), Some(Mode::Shared));
    assert_eq!(a.locked(1 << 21..), Some(Mode::Shared));
    assert_eq!(b.locked(..), Some(Mode::Exclusive));
    let busy = lock_many_with(&[LockRequest::shared(&a, 5..6), LockRequest::shared(&b, 0..8)], &Wait::NOT);
    assert!(matches!(busy, Err(LockError::Busy { .. })));
    drop(held);
    assert_eq!((a.locked(..), b.locked(..)), (None, None));
}

#[test]
fn opposite_orders_do_not_deadlock() {
    let tables = Arc::new([ExtentTable::new(), ExtentTable::new()]);
    let threads: Vec<_> = (0..4)
        .map(|id| {
            let tables = Arc::clone(&tables);
            thread::spawn(move || {
                for round in 0..2000_u64 {
                    let (x, y) = if id % 2 == 0 { (0, 1) } else { (1, 0) };
                    let cover = if round % 16 == 0 { 10_000 } else { 3 };
                    let _guard = lock_many(&[
                        LockRequest::exclusive(&tables[x], 6..6 + cover),
                        LockRequest::exclusive(&tables[y], 0..=6),
                        LockRequest::shared(&tables[x], 100..=100),
                        LockRequest::exclusive(&tables[y], 100..=100),
                    ]);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert!(tables.iter().all(|table| table.locked(..).is_none()));
}

#[test]
fn shrink_gives_the_memory_back() {
    let mut table = ExtentTable::new();
    for block in (0..1 << 20).step_by(5000) {
        drop(table.shared(block..block + 1));
    }
    assert!(table.bytes() > 100_000);
    table.shrink();
    assert_eq!(table.bytes(), size_of::<ExtentTable>());
}

#[test]
fn tables_and_guards_cross_threads() {
    fn check<T: Send + Sync>() {}
    check::<ExtentTable>();
    check::<f2fs_extent::SharedGuard<'_>>();
    check::<f2fs_extent::ExclusiveGuard<'_>>();
    check::<f2fs_extent::OwnedGuard>();
    check::<f2fs_extent::ManyGuard<'_>>();
    check::<f2fs_extent::SharedFuture<'_>>();
    check::<CancelToken>();
}
