//! The gate under real threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use f2fs_sync::Gate;

#[test]
fn whoever_closes_is_alone() {
    let gate = Gate::new();
    let (inside, stop, alone) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let guard = gate.enter();
                    inside.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::Relaxed);
                    drop(guard);
                }
            });
        }
        let closers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let closed = gate.close();
                        assert!(!alone.swap(true, Ordering::Relaxed), "another one has closed it");
                        assert_eq!(inside.load(Ordering::Relaxed), 0);
                        thread::yield_now();
                        assert_eq!(inside.load(Ordering::Relaxed), 0);
                        alone.store(false, Ordering::Relaxed);
                        drop(closed);
                    }
                })
            })
            .collect();
        let results: Vec<_> = closers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok));
    });
}

#[test]
fn closers_take_turns_without_entrants() {
    let gate = Gate::new();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let closed = gate.close();
                    thread::yield_now();
                    drop(closed);
                }
            });
        }
    });
    assert!(gate.try_enter().is_some());
}

#[test]
fn closers_without_pause_starve_nobody() {
    let gate = Gate::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(gate.close());
                }
            });
        }
        // Returns at all only if entrants get in between.
        for _ in 0..200 {
            drop(gate.enter());
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_closer_waits_for_the_last_guard() {
    let gate = Gate::new();
    let guard = gate.enter();
    let closed = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let alone = gate.close();
            closed.store(true, Ordering::SeqCst);
            drop(alone);
        });
        while !gate.is_closed() {
            thread::yield_now();
        }
        assert!(gate.try_enter().is_none());
        let second = guard.again();
        drop(guard);
        thread::sleep(Duration::from_millis(20));
        assert!(!closed.load(Ordering::SeqCst), "a guard is still out");
        drop(second);
    });
    assert!(closed.load(Ordering::SeqCst));
    assert!(gate.try_enter().is_some());
}

#[test]
fn guards_leave_on_other_threads() {
    let gate = Gate::new();
    let guard = gate.enter().unbind();
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(10));
            drop(guard);
        });
        let alone = gate.close();
        scope.spawn(move || drop(alone));
    });
    drop(gate.enter());
}

#[test]
#[cfg(debug_assertions)]
fn nesting_that_would_deadlock_panics() {
    let gate = Gate::new();
    let guard = gate.enter();
    let closing = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(gate.close())));
    assert!(closing.is_err());
    thread::scope(|scope| {
        let closer = scope.spawn(|| drop(gate.close()));
        while !gate.is_closed() {
            thread::yield_now();
        }
        let entering = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(gate.enter())));
        assert!(entering.is_err());
        drop(guard);
        assert!(closer.join().is_ok(), "the failed entry left nothing behind");
    });
    let other = Gate::new();
    let _guard = gate.enter();
    drop(other.close());
}

#[test]
fn gates_and_guards_can_be_shared() {
    fn sync_and_send<T: Send + Sync>(_: &T) {}
    let gate = Gate::new();
    sync_and_send(&gate);
    sync_and_send(&gate.enter());
    sync_and_send(&gate.close());
    assert_eq!(format!("{gate:?}"), "Gate { closed: false, .. }");
}
