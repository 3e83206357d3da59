//! Looks at states that do not end: they take far longer than any should.
//!
//! A thread that hangs cannot be ended, so that who watches has to report it and end the process. Time is counted by the
//! one who watches: if the process stands still, or hardly gets a turn, so does the count.
//!
//! # Locking
//!
//! One mutex for all that is on its way, a leaf.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::thread::Thread;
use std::time::Duration;

use f2fs_device_test::Cut;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How often what is on its way is counted.
const TICK: Duration = Duration::from_secs(1);
/// Ticks that it may take.
const MOST: u32 = 60;

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The workload.
    pub(crate) workload: String,
    /// The cuts of the state.
    pub(crate) cuts: Vec<String>,
}

/// The looks that are on their way, with the ticks that each was seen.
static UNDER_WAY: Mutex<BTreeMap<u64, (Look, u32)>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The workload that this thread explores.
    static WORKLOAD: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Takes a look off again.
struct Off(u64);

impl Drop for Off {
    fn drop(&mut self) {
        UNDER_WAY.lock().remove(&self.0);
    }
}

/// This thread explores a workload from now on.
pub(crate) fn explores(workload: &str) {
    WORKLOAD.set(workload.to_owned());
}

/// Does `work`, the look at a state, and has it watched.
pub(crate) fn watched<T>(cuts: &[Cut], work: impl FnOnce() -> T) -> T {
    let look = Look { workload: WORKLOAD.with_borrow(String::clone), cuts: cuts.iter().map(Cut::to_string).collect() };
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    UNDER_WAY.lock().insert(number, (look, 0));
    let _off = Off(number);
    work()
}

/// Does `work`, and watches meanwhile; tells `hangs` of each look that takes longer than it may, once.
pub(crate) fn during<T>(hangs: &(impl Fn(Look) + Sync), work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                std::thread::park_timeout(TICK);
                tick(hangs);
            }
        });
        // Also behind a panic.
        let _end = End(&ended, watcher.thread());
        work()
    })
}

/// Ends the watch.
struct End<'a>(&'a AtomicBool, &'a Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

fn tick(hangs: impl Fn(Look)) {
    let mut late = Vec::new();
    for (look, ticks) in UNDER_WAY.lock().values_mut() {
        *ticks += 1;
        if *ticks == MOST {
            late.push(look.clone());
        }
    }
    late.into_iter().for_each(hangs);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_late_once_and_only_while_it_is_on_its_way() {
        let late = Mutex::new(Vec::new());
        // Other tests have their own on their way.
        let count = |look: Look| {
            if look.workload.starts_with("of this test") {
                late.lock().push(look.workload);
            }
        };
        explores("of this test: short");
        watched(&[], || (1..MOST).for_each(|_| tick(count)));
        explores("of this test: long");
        watched(&[], || (0..3 * MOST).for_each(|_| tick(count)));
        explores("of this test: ended by a panic");
        let panicked = std::panic::catch_unwind(|| watched(&[], || panic!("on purpose")));
        assert!(panicked.is_err());
        (0..2 * MOST).for_each(|_| tick(count));
        assert_eq!(late.into_inner(), ["of this test: long"]);
    }

    #[test]
    fn the_watch_ends_with_the_work() {
        let begun = std::time::Instant::now();
        assert_eq!(during(&|_| {}, || 7), 7);
        assert!(std::panic::catch_unwind(|| during(&|_| {}, || panic!("on purpose"))).is_err());
        assert!(begun.elapsed() < TICK, "nobody waits for a tick");
    }
}
