//! The records of the counting half.
#![cfg(f2fs_counting)]

use f2fs_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use f2fs_sync::counting::{Footprint, Site, lines_read, lines_written};
use f2fs_sync::{Arc, CachePadded, Condvar, Gate, Mutex, OnceLock, PerCore, RwLock, RwLockWriteGuard};

/// Lines that `operation` writes.
fn lines<R>(operation: impl FnOnce() -> R) -> usize {
    lines_written(operation).1.len()
}

#[test]
fn writes_are_on_record_and_reads_are_not() {
    let value = AtomicU64::new(1);
    assert_eq!(lines(|| value.load(Ordering::Relaxed)), 0);
    assert_eq!(lines(|| value.store(2, Ordering::Relaxed)), 1);
    assert_eq!(lines(|| value.fetch_add(2, Ordering::Relaxed)), 1);
    assert_eq!(lines(|| value.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed)), 1, "a failed one, too");
    assert_eq!(lines(|| value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |_| None)), 0);
    assert_eq!(lines(|| value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old + 1))), 1);

    // In lines of their own: a lock may else stand across the end of one.
    let (mutex, lock) = (CachePadded::new(Mutex::new(1)), CachePadded::new(RwLock::new(1)));
    assert_eq!(lines(|| *mutex.lock()), 1);
    let held = mutex.lock();
    assert_eq!(lines(|| mutex.try_lock().is_none()), 0);
    assert_eq!(lines(|| drop(held)), 1, "unlocking writes");
    assert_eq!((lines(|| *lock.read()), lines(|| *lock.write())), (1, 1));
    assert_eq!(lines(|| *RwLockWriteGuard::downgrade(lock.write())), 1);

    let condvar = Condvar::new();
    assert_eq!(lines(|| condvar.notify_all()), 0, "there is nobody to wake");
    let cell = OnceLock::new();
    assert_eq!((lines(|| *cell.get_or_init(|| 1)), lines(|| *cell.get_or_init(|| 2))), (1, 0));
}

#[test]
fn reads_are_told_apart_from_writes() {
    let value = CachePadded::new(AtomicU64::new(1));
    assert_eq!(lines_read(|| value.load(Ordering::Relaxed)).1.len(), 1);
    assert_eq!(lines_read(|| value.fetch_add(value.load(Ordering::Relaxed), Ordering::Relaxed)).1.len(), 0, "written");
    let cell = OnceLock::from(7);
    assert_eq!(lines_read(|| cell.get().copied()).1.len(), 1);
    let held = CachePadded::new(Mutex::new(1));
    let guard = held.lock();
    assert_eq!(lines_read(|| held.try_lock().is_none()).1.len(), 1, "a lock that is taken is looked at");
    drop(guard);
}

#[test]
fn values_behind_locks_are_on_record() {
    let large = CachePadded::new(Mutex::new([CachePadded::new(0_u8), CachePadded::new(1), CachePadded::new(2)]));
    // Four lines of the value, which begins on a line of its own behind the lock.
    let read = lines_read(|| *large.lock()[1]).1.len();
    assert_eq!(read, 4);
    assert_eq!(lines(|| *large.lock()[1]), 1);
    assert_eq!(lines(|| *large.lock()[1] = 2), 5, "the lock, and four of the value");
}

#[test]
fn lines_are_distinct_and_named() {
    let near = CachePadded::new((AtomicU32::new(0), AtomicU32::new(0)));
    let far = CachePadded::new(AtomicU32::new(0));
    let ((), lines) = lines_written(|| {
        near.0.store(1, Ordering::Relaxed);
        near.1.store(1, Ordering::Relaxed);
        near.0.store(2, Ordering::Relaxed);
        far.store(1, Ordering::Relaxed);
    });
    let mut writers: Vec<usize> = lines.iter().map(std::collections::BTreeSet::len).collect();
    writers.sort_unstable();
    assert_eq!(writers, [1, 3]);
    let site = lines[0].first().expect("somebody wrote it").to_string();
    assert!(site.starts_with("crates/sync/tests/counting.rs:") && site.ends_with(" AtomicU32"), "{site}");

    let lock = RwLock::new(std::collections::BTreeMap::<Site, Option<u8>>::new());
    let ((), lines) = lines_written(|| lock.write().clear());
    let sites: Vec<String> = lines.iter().flatten().map(ToString::to_string).collect();
    for what in [" RwLock<BTreeMap<Site, Option<u8>>>", " BTreeMap<Site, Option<u8>>"] {
        assert!(sites.iter().any(|site| site.starts_with("crates/sync/tests/") && site.ends_with(what)), "{sites:?}");
    }
}

#[test]
fn reference_counts_are_where_they_are_said_to_be() {
    // A value larger than a line, so that the counts are not in the line of its end.
    let value = Arc::new((AtomicU64::new(0), [0_u8; 200]));
    let ((), lines) = lines_written(|| drop(Arc::clone(&value)));
    assert_eq!(lines.len(), 1);
    let aligned = Arc::new(CachePadded::new(AtomicU64::new(0)));
    assert_eq!(self::lines(|| (Arc::clone(&aligned), aligned.store(1, Ordering::Relaxed))), 2);
    let counts = Arc::strong_count(&aligned);
    assert_eq!(counts, 1, "what was shared is dropped");
}

#[test]
fn references_that_end_are_on_record() {
    let value = Arc::new((AtomicU64::new(0), [0_u8; 200]));
    let what = |lines: &[std::collections::BTreeSet<Site>]| -> Vec<String> {
        lines.iter().flatten().map(|site| site.what.rsplit("::").next().unwrap_or_default().to_owned()).collect()
    };
    // Made before and dropped here, by its own end and by that of what holds it.
    let other = Arc::clone(&value);
    let ((), lines) = lines_written(|| drop(other));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines.iter().flatten().all(|site| site.what.contains("Arc<(")), "{:?}", what(&lines));
    let held = vec![Some(Arc::clone(&value)), None, Some(Arc::clone(&value))];
    assert_eq!(self::lines(|| drop(held)), 1);
    // A reference that is converted ends once, and one that does not keep the value writes where its upgrade does.
    let unsized_value = f2fs_sync::coerce!(Arc::clone(&value) => dyn std::any::Any + Send + Sync);
    assert_eq!(self::lines(|| drop(unsized_value)), 1);
    let weak = Arc::downgrade(&value);
    assert_eq!(self::lines(|| drop(weak.upgrade())), 1);
    assert_eq!(self::lines(|| drop(Arc::into_plain(Arc::new(1)))), 0);
    assert_eq!(Arc::strong_count(&value), 1);

    // Threads that only drop their clones of one value meet in its line.
    let clones: Vec<Arc<_>> = (0..2 * 50).map(|_| Arc::clone(&value)).collect();
    let clones = Mutex::new(clones);
    let take = |_: usize, _: usize| clones.lock().pop();
    let footprint = Footprint::measure_prepared(2, 50, take, |_, _, clone| drop(clone));
    assert_eq!((footprint.lines, footprint.shared, footprint.global().count()), (1.0, 1.0, 1), "{footprint:?}");
}

#[test]
fn what_threads_share_is_found_and_what_they_do_not_is_not() {
    for threads in [2, 8] {
        let own = [const { CachePadded::new(AtomicU64::new(0)) }; 8];
        let (all, seldom) = (CachePadded::new(AtomicU64::new(0)), CachePadded::new(AtomicU64::new(0)));
        let two = CachePadded::new(AtomicU64::new(0));
        let footprint = Footprint::measure(threads, 200, |thread, n| {
            own[thread].fetch_add(1, Ordering::Relaxed);
            all.fetch_add(1, Ordering::Relaxed);
            if n % 100 == 0 {
                seldom.fetch_add(1, Ordering::Relaxed);
            }
            if n == 0 && thread < 2 {
                two.fetch_add(1, Ordering::Relaxed);
            }
        });
        let twos = 2.0 / (200.0 * threads as f64);
        let near = |seen: f64, wanted: f64| (seen - wanted).abs() < 1e-9;
        assert!(near(footprint.lines, 2.01 + twos) && near(footprint.shared, 1.01 + twos), "{footprint:?}");
        assert_eq!(footprint.common.len(), 3);
        assert!(near(footprint.common[1].of_all(), 0.01));
        assert_eq!(
            footprint.global().count(),
            2,
            "one in a hundred is global, one in two hundred of two threads is not"
        );
        // The first touch of a line is no move: after it, each turn takes it from the thread before.
        let moves = 200.0 * threads as f64 - 1.0 + (2.0 * threads as f64 - 1.0) + 1.0;
        assert!(near(footprint.moved, moves / (200.0 * threads as f64)), "{footprint:?}");
    }
}

#[test]
fn what_is_read_moves_after_it_was_written() {
    let (read, written) = (CachePadded::new(AtomicU64::new(0)), CachePadded::new(AtomicU64::new(0)));
    let footprint = Footprint::measure(4, 100, |thread, n| {
        read.load(Ordering::Relaxed);
        if thread == 0 && n % 10 == 0 {
            written.store(1, Ordering::Relaxed);
        }
        written.load(Ordering::Relaxed);
    });
    // Nobody writes the one. The other one is taken from its readers nine times, and fetched by three of them ten
    // times.
    assert!((footprint.moved - 39.0 / 400.0).abs() < 1e-9, "{footprint:?}");
    assert_eq!((footprint.common.len(), footprint.shared), (0, 0.0), "only one thread writes");
}

#[test]
fn threads_are_on_processors_of_their_own() {
    let slots = PerCore::new(|_| AtomicU64::new(0));
    let footprint = Footprint::measure(8, 10, |_, _| {
        slots.slot().fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!((footprint.lines, footprint.moved, footprint.common.len()), (1.0, 0.0, 0));
}

#[test]
#[should_panic(expected = "the operation failed")]
fn a_failed_operation_is_not_waited_for() {
    Footprint::measure(2, 10, |thread, n| assert!(thread == 0 || n < 5, "the operation failed"));
}

#[test]
fn an_open_gate_writes_one_line_of_the_processor() {
    let gate = Gate::new();
    let footprint = Footprint::measure(8, 10, |_, _| drop(gate.enter()));
    assert_eq!((footprint.lines, footprint.common.len()), (1.0, 0));
}
