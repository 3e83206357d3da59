//! Two threads of a fuzz target that meet where the input says: every lock is a point at which one may wait for the
//! other.
//!
//! On a busy machine two threads with operations of some microseconds take turns, and hardly ever are in two of them at
//! once. So a thread that takes part in a [`two`] passes a number of locks that the input gives, then waits until the
//! other one passed so many more, and so on. It never waits for one that waits, is blocked by a lock or a condition
//! variable, or is over; so nothing hangs that would not hang without it.
//!
//! Only the builds of the fuzz targets have it (`cfg(fuzzing)`, which `cargo xtask fuzz` and cargo-fuzz set). There the
//! locks are `parking_lot`'s with such a point in front. For a thread that takes no part, the point is a look at an
//! atomic that nobody writes.
//!
//! Locking rules: none. Each side has atomics that it alone writes, and the other side reads; the waiting side is
//! parked, and looks again when it is woken or [`LIMIT`] is over.

mod condvar;

pub use condvar::Condvar;

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long one side waits at most: it may be that the other one waits for something that is not a lock.
const LIMIT: Duration = Duration::from_millis(10);
/// Points that a side passes, or waits for, at most, in one go.
const MOST: u8 = 48;
/// Nobody is waited for.
const NOTHING: usize = usize::MAX;

/// How many meetings there are: without any, a point is no more than a look at this.
static MEETINGS: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// One of the two threads.
#[derive(Default)]
struct Side {
    thread: OnceLock<Thread>,
    /// Points that it has passed.
    passed: AtomicUsize,
    /// It waits until the other one has passed so many.
    waits_for: AtomicUsize,
    /// It waits for a lock or to be woken, or has ended.
    stands: AtomicBool,
}

/// The state of a meeting, as one of its threads holds it.
struct Place {
    sides: Arc<[Side; 2]>,
    which: usize,
    schedule: Vec<u8>,
    /// Where in the schedule it is.
    at: usize,
    /// Points to pass before it waits.
    left: usize,
}

impl Place {
    /// The next number of the schedule; it is followed once.
    fn next(&mut self) -> Option<usize> {
        let number = self.schedule.get(self.at).map(|number| usize::from(number % MOST));
        self.at += 1;
        number
    }

    fn pass(&mut self) {
        let (own, other) = (&self.sides[self.which], &self.sides[1 - self.which]);
        let passed = own.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if other.waits_for.load(Ordering::SeqCst) <= passed {
            wake(other);
        }
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return;
        }
        let Some(number) = self.next() else { return self.left = NOTHING };
        self.left = self.next().unwrap_or(NOTHING);
        self.wait(number + 1);
    }

    /// Waits until the other side has passed so many points.
    fn wait(&self, points: usize) {
        let (own, other) = (&self.sides[self.which], &self.sides[1 - self.which]);
        let target = other.passed.load(Ordering::SeqCst) + points;
        own.waits_for.store(target, Ordering::SeqCst);
        let start = Instant::now();
        while other.passed.load(Ordering::SeqCst) < target
            && !other.stands.load(Ordering::SeqCst)
            && other.waits_for.load(Ordering::SeqCst) == NOTHING
        {
            let Some(left) = LIMIT.checked_sub(start.elapsed()) else { break };
            thread::park_timeout(left);
        }
        own.waits_for.store(NOTHING, Ordering::SeqCst);
    }

    /// Says that it stands at a lock, or no longer.
    fn stand(&self, stands: bool) {
        self.sides[self.which].stands.store(stands, Ordering::SeqCst);
        if stands {
            wake(&self.sides[1 - self.which]);
        }
    }
}

fn wake(side: &Side) {
    if let Some(thread) = side.thread.get() {
        thread.unpark();
    }
}

/// The thread takes part until this is dropped.
struct TakesPart;

impl TakesPart {
    fn new(sides: &Arc<[Side; 2]>, which: usize, schedule: &[u8]) -> Self {
        let own = &sides[which];
        own.waits_for.store(NOTHING, Ordering::SeqCst);
        own.thread.get_or_init(thread::current);
        let mut place = Place { sides: Arc::clone(sides), which, schedule: schedule.to_vec(), at: 0, left: 0 };
        place.left = place.next().unwrap_or(NOTHING);
        PLACE.set(Some(place));
        MEETINGS.fetch_add(1, Ordering::Relaxed);
        TakesPart
    }
}

impl Drop for TakesPart {
    fn drop(&mut self) {
        MEETINGS.fetch_sub(1, Ordering::Relaxed);
        if let Some(place) = PLACE.take() {
            place.stand(true);
        }
    }
}

/// Runs both at once, in the caller's thread and in another one. Each follows its half of the schedule, the first one
/// the longer half: numbers of points to pass and of points to wait for, in turns.
///
/// # Panics
/// If one of them does.
pub fn two(schedule: &[u8], first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    let sides = Arc::new([Side::default(), Side::default()]);
    let (one, two) = schedule.split_at((schedule.len().div_ceil(4) * 2).min(schedule.len()));
    // To start a thread takes longer than most operations.
    let both = Barrier::new(2);
    let run = |which, schedule: &[u8], operations: &mut dyn FnMut()| {
        let _takes_part = TakesPart::new(&sides, which, schedule);
        both.wait();
        operations();
    };
    let (mut first, mut second) = (Some(first), Some(second));
    thread::scope(|scope| {
        scope.spawn(|| run(1, two, &mut || second.take().into_iter().for_each(|operations| operations())));
        run(0, one, &mut || first.take().into_iter().for_each(|operations| operations()));
    });
}

/// A point: the thread may wait here for the other one.
pub(crate) fn point() {
    if MEETINGS.load(Ordering::Relaxed) != 0 {
        with_place(Place::pass);
    }
}

fn with_place(act: impl FnOnce(&mut Place)) {
    // Threads that end may have lost theirs.
    let _ = PLACE.try_with(|place| {
        if let Ok(mut place) = place.try_borrow_mut()
            && let Some(place) = &mut *place
        {
            act(place);
        }
    });
}

/// Takes a lock: `now` if it is free, else by `wait`, and the other thread is told.
fn take<T>(now: impl FnOnce() -> Option<T>, wait: impl FnOnce() -> T) -> T {
    point();
    if let Some(taken) = now() {
        return taken;
    }
    standing(wait)
}

/// Waits for what another thread does, and the other one of the meeting is told.
fn standing<T>(wait: impl FnOnce() -> T) -> T {
    let takes_part = MEETINGS.load(Ordering::Relaxed) != 0;
    if takes_part {
        with_place(|place| place.stand(true));
    }
    let taken = wait();
    if takes_part {
        with_place(|place| place.stand(false));
    }
    taken
}

/// A mutual exclusion lock without poisoning: `parking_lot`'s with a point in front.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }

    /// The value, when nobody else can have the lock.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    pub fn lock(&self) -> parking_lot::MutexGuard<'_, T> {
        take(|| self.0.try_lock(), || self.0.lock())
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<parking_lot::MutexGuard<'_, T>> {
        point();
        self.0.try_lock()
    }

    /// Whether somebody has the lock: a hint, it may have changed on return.
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

/// A reader-writer lock without poisoning: `parking_lot`'s with a point in front.
#[derive(Default)]
pub struct RwLock<T: ?Sized>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        RwLock(parking_lot::RwLock::new(value))
    }

    /// The value, when nobody else can have the lock.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    pub fn read(&self) -> parking_lot::RwLockReadGuard<'_, T> {
        take(|| self.0.try_read(), || self.0.read())
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> parking_lot::RwLockWriteGuard<'_, T> {
        take(|| self.0.try_write(), || self.0.write())
    }

    /// Takes shared access if no writer is in.
    pub fn try_read(&self) -> Option<parking_lot::RwLockReadGuard<'_, T>> {
        point();
        self.0.try_read()
    }

    /// Takes exclusive access if nobody is in.
    pub fn try_write(&self) -> Option<parking_lot::RwLockWriteGuard<'_, T>> {
        point();
        self.0.try_write()
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_sees_the_other_pass_its_points() {
        // Before its first lock the first one waits until the second one has passed twenty points, if the machine lets
        // that one run at all.
        let met = || {
            let (lock, seen) = (Mutex::new(0), Mutex::new(0));
            let first = || *seen.lock() = *lock.lock();
            let second = || (0..40).for_each(|_| *lock.lock() += 1);
            two(&[0, 19], first, second);
            seen.into_inner() >= 20
        };
        assert!((0..100).any(|_| met()), "the other one had not passed");
    }

    #[test]
    fn nobody_waits_for_one_that_stands_at_a_lock() {
        let lock = Mutex::new(());
        let start = Instant::now();
        let hold = || {
            let held = lock.lock();
            (0..500).for_each(|_| point());
            drop(held);
        };
        // Both want the lock, and wait for each other at every point.
        two(&[0; 2000], hold, hold);
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}
