//! Locks beside a naive model of every block and of the queue.
//!
//! One thread plays all holders and, with futures, all waiters. After every step the model says exactly which of the
//! waiters have their locks: that nobody overtakes a conflicting request that came before, and that nobody is left
//! waiting, is the same comparison.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{CELLS, Source, blocks};
use f2fs_extent::{
    ExclusiveFuture, ExclusiveGuard, ExtentTable, LockRequest, ManyGuard, Mode, SharedFuture, SharedGuard, Wait,
    lock_many_with,
};

/// The wish of a request for each cell: 0 nothing, 1 to share it, 2 to have it alone.
type Wants = [u8; CELLS];

fn wants(cells: (usize, usize), mode: Mode) -> Wants {
    let mut wants = [0; CELLS];
    wants[cells.0..=cells.1].fill(if mode == Mode::Shared { 1 } else { 2 });
    wants
}

fn conflict(a: &Wants, b: &Wants) -> bool {
    a.iter().zip(b).any(|(&a, &b)| a * b >= 2)
}

/// The bell of a waiter.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.swap(true, Ordering::SeqCst), "woken twice");
    }
}

/// A guard, kept to be dropped or downgraded.
#[expect(dead_code, reason = "only exclusive guards are looked at again")]
enum Guard<'a> {
    Shared(SharedGuard<'a>),
    Exclusive(ExclusiveGuard<'a>),
    Many(ManyGuard<'a>),
    /// Readers that leave the byte of each block little room or none.
    Crowd(Vec<SharedGuard<'a>>),
}

enum Waiting<'a> {
    Shared(Pin<Box<SharedFuture<'a>>>),
    Exclusive(Pin<Box<ExclusiveFuture<'a>>>),
}

impl<'a> Waiting<'a> {
    fn poll(&mut self, bell: &Arc<Bell>) -> Option<Guard<'a>> {
        let waker = Waker::from(Arc::clone(bell));
        let mut context = Context::from_waker(&waker);
        let ready = match self {
            Waiting::Shared(future) => future.as_mut().poll(&mut context).map(Guard::Shared),
            Waiting::Exclusive(future) => future.as_mut().poll(&mut context).map(Guard::Exclusive),
        };
        match ready {
            Poll::Ready(guard) => Some(guard),
            Poll::Pending => None,
        }
    }
}

/// The real guards and futures, each beside what the model knows of it.
#[derive(Default)]
struct World<'a> {
    held: Vec<(Wants, Guard<'a>)>,
    waiting: Vec<(Wants, Waiting<'a>, Arc<Bell>)>,
}

impl<'a> World<'a> {
    /// Whether the model would grant a request that comes now.
    fn free(&self, wants: &Wants) -> bool {
        let held = self.held.iter().map(|(held, _)| held);
        !held.chain(self.waiting.iter().map(|(waits, ..)| waits)).any(|other| conflict(other, wants))
    }

    /// After a release: who the model says has a lock now has been woken, and nobody else.
    fn settle(&mut self, step: &str) {
        let mut at = 0;
        while at < self.waiting.len() {
            let (wants, ..) = &self.waiting[at];
            let before = self.waiting[..at].iter().map(|(waits, ..)| waits);
            let granted = !before.chain(self.held.iter().map(|(held, _)| held)).any(|other| conflict(other, wants));
            let woken = self.waiting[at].2.0.load(Ordering::SeqCst);
            assert_eq!(woken, granted, "{step}: waiter {at} of {}", self.waiting.len());
            if granted {
                let (wants, mut future, bell) = self.waiting.remove(at);
                let guard = future.poll(&bell).expect("woken because it was granted");
                self.held.push((wants, guard));
            } else {
                at += 1;
            }
        }
    }
}

/// Plays so many steps with a table of its own.
pub(crate) fn epoch(random: &mut impl Source, steps: usize) {
    let table = ExtentTable::new();
    let mut world = World::default();
    for _ in 0..steps {
        let cells = random.cells();
        let mode = if random.below(2) == 0 { Mode::Shared } else { Mode::Exclusive };
        let range = blocks(cells.0, cells.1);
        let span = range.first()..=range.last();
        let kind = if world.held.len() > 24 || world.waiting.len() > 16 { 60 } else { random.below(100) };
        match kind {
            0..20 => {
                let wants = wants(cells, mode);
                let free = world.free(&wants);
                let guard = match mode {
                    Mode::Shared => table.try_shared(span).map(Guard::Shared),
                    Mode::Exclusive => table.try_exclusive(span).map(Guard::Exclusive),
                };
                assert_eq!(guard.is_some(), free, "try {mode:?} {range}");
                world.held.extend(guard.map(|guard| (wants, guard)));
            }
            20..28 => {
                let (other, other_mode) =
                    (random.cells(), if random.below(2) == 0 { Mode::Shared } else { Mode::Exclusive });
                let request = |cells: (usize, usize), mode| {
                    let range = blocks(cells.0, cells.1);
                    match mode {
                        Mode::Shared => LockRequest::shared(&table, range.first()..=range.last()),
                        Mode::Exclusive => LockRequest::exclusive(&table, range.first()..=range.last()),
                    }
                };
                let mut both = wants(cells, mode);
                both.iter_mut().zip(wants(other, other_mode)).for_each(|(a, b)| *a = b.max(*a));
                let free = world.free(&both);
                let guard = lock_many_with(&[request(cells, mode), request(other, other_mode)], &Wait::NOT);
                assert_eq!(
                    guard.is_ok(),
                    free,
                    "try {mode:?} {range} and {other_mode:?} {:?}",
                    blocks(other.0, other.1)
                );
                world.held.extend(guard.ok().map(|guard| (both, Guard::Many(guard))));
            }
            28..50 => {
                let wants = wants(cells, mode);
                let free = world.free(&wants);
                let mut future = match mode {
                    Mode::Shared => Waiting::Shared(Box::pin(table.shared_async(span))),
                    Mode::Exclusive => Waiting::Exclusive(Box::pin(table.exclusive_async(span))),
                };
                let bell = Arc::new(Bell::default());
                let guard = future.poll(&bell);
                assert_eq!(guard.is_some(), free, "await {mode:?} {range}");
                match guard {
                    Some(guard) => world.held.push((wants, guard)),
                    None => world.waiting.push((wants, future, bell)),
                }
            }
            50..85 if !world.held.is_empty() => {
                drop(world.held.swap_remove(random.below(world.held.len())));
                world.settle("release");
            }
            85..90 if !world.waiting.is_empty() => {
                drop(world.waiting.remove(random.below(world.waiting.len())));
                world.settle("withdrawal");
            }
            90 => {
                // Near 126, which the byte of a block counts, and beyond.
                let wants = wants(cells, Mode::Shared);
                let free = world.free(&wants);
                let crowd: Vec<_> = (0..120 + random.below(12)).map_while(|_| table.try_shared(span.clone())).collect();
                assert_eq!(crowd.is_empty(), !free, "crowd {range}");
                if free {
                    assert!(crowd.len() >= 120, "{} share {range}, and the next one may not", crowd.len());
                    world.held.push((wants, Guard::Crowd(crowd)));
                }
            }
            91..95 if !world.held.is_empty() => {
                let (mut wants, guard) = world.held.swap_remove(random.below(world.held.len()));
                let guard = match guard {
                    Guard::Exclusive(guard) => {
                        wants.iter_mut().for_each(|want| *want = (*want).min(1));
                        Guard::Shared(guard.downgrade())
                    }
                    other => other,
                };
                world.held.push((wants, guard));
                world.settle("downgrade");
            }
            _ => {
                let strongest = world.held.iter().flat_map(|(held, _)| &held[cells.0..=cells.1]).max().copied();
                let expected = match strongest.unwrap_or(0) {
                    0 => None,
                    1 => Some(Mode::Shared),
                    _ => Some(Mode::Exclusive),
                };
                assert_eq!(table.locked(span), expected, "locked {range}");
            }
        }
    }
    world.held.clear();
    world.settle("the end");
    while !world.held.is_empty() {
        world.held.clear();
        world.settle("the end");
    }
    assert!(world.waiting.is_empty(), "{} still wait", world.waiting.len());
    assert_eq!(table.locked(..), None);
    assert!(table.try_exclusive(..).is_some());
}
