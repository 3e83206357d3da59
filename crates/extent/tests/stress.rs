//! Many threads at once: what they do to blocks that they have locked shows whether others had them too.
#![cfg(not(any(loom, shuttle)))]

#[allow(dead_code)] // the models are the oracle tests'
mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{CELLS, Random, Source, blocks};
use f2fs_extent::{Bits, CancelToken, ExtentBits, ExtentTable, LockRequest, Mode, Wait, lock_many};

const WRITER: i64 = i64::MIN / 2;

/// A table, and for each cell who is in it: readers add one, a writer a large negative number.
struct Arena {
    table: Arc<ExtentTable>,
    inside: [AtomicI64; CELLS],
}

impl Arena {
    fn new() -> Arena {
        Arena { table: Arc::new(ExtentTable::new()), inside: std::array::from_fn(|_| AtomicI64::new(0)) }
    }

    fn enter(&self, cells: (usize, usize), mode: Mode) {
        for cell in &self.inside[cells.0..=cells.1] {
            match mode {
                Mode::Shared => assert!(cell.fetch_add(1, SeqCst) >= 0, "a writer beside a reader"),
                Mode::Exclusive => assert_eq!(cell.fetch_add(WRITER, SeqCst), 0, "a writer beside others"),
            }
        }
    }

    fn leave(&self, cells: (usize, usize), mode: Mode) {
        for cell in &self.inside[cells.0..=cells.1] {
            cell.fetch_sub(if mode == Mode::Shared { 1 } else { WRITER }, SeqCst);
        }
    }
}

/// Wakes a thread.
struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn every_kind_of_lock_at_once() {
    const THREADS: u64 = 12;
    const ROUNDS: usize = 4000;
    let arena = Arc::new(Arena::new());
    // Guards travel to a thread that releases them.
    let (sender, receiver) = mpsc::channel::<((usize, usize), Mode, f2fs_extent::OwnedGuard)>();
    let releaser = thread::spawn({
        let arena = Arc::clone(&arena);
        move || {
            for (cells, mode, guard) in receiver {
                arena.leave(cells, mode);
                drop(guard);
            }
        }
    });
    let threads: Vec<_> = (1..=THREADS)
        .map(|id| {
            let (arena, sender) = (Arc::clone(&arena), sender.clone());
            thread::spawn(move || {
                let mut random = Random::new(id * 0x9e37_79b9);
                for _ in 0..ROUNDS {
                    one_lock(&arena, &mut random, &sender);
                }
            })
        })
        .collect();
    drop(sender);
    for thread in threads {
        thread.join().expect("no panic");
    }
    releaser.join().expect("no panic");
    assert_eq!(arena.table.locked(..), None);
    assert!(arena.table.try_exclusive(..).is_some(), "nothing is left behind");
    let stats = arena.table.wait_stats();
    assert!(stats.waits > 0, "there was no contention: {stats:?}");
}

fn one_lock(
    arena: &Arena,
    random: &mut Random,
    sender: &mpsc::Sender<((usize, usize), Mode, f2fs_extent::OwnedGuard)>,
) {
    let table = &arena.table;
    let cells = random.cells();
    let range = blocks(cells.0, cells.1);
    let span = range.first()..=range.last();
    let mode = if random.below(3) == 0 { Mode::Exclusive } else { Mode::Shared };
    let inside = |mode| {
        arena.enter(cells, mode);
        arena.leave(cells, mode);
    };
    match (random.below(8), mode) {
        (0 | 1, Mode::Shared) => {
            let _guard = table.shared(span);
            inside(mode);
        }
        (0, Mode::Exclusive) => {
            let _guard = table.exclusive(span);
            inside(mode);
        }
        (1, Mode::Exclusive) => {
            let guard = table.exclusive(span);
            inside(Mode::Exclusive);
            let _guard = guard.downgrade();
            inside(Mode::Shared);
        }
        (2, _) => {
            let _guard = match mode {
                Mode::Shared => (table.try_shared(span), None),
                Mode::Exclusive => (None, table.try_exclusive(span)),
            };
            if _guard.0.is_some() || _guard.1.is_some() {
                inside(mode);
            }
        }
        (3, Mode::Shared) => {
            let _guard = block_on(table.shared_async(span));
            inside(mode);
        }
        (3, Mode::Exclusive) => {
            let _guard = block_on(table.exclusive_async(span));
            inside(mode);
        }
        (4, _) => {
            let wait = Wait::up_to(Duration::from_micros(random.below(300) as u64));
            if let Ok(_guard) = table.exclusive_with(span, &wait) {
                inside(Mode::Exclusive);
            }
        }
        (5, _) => {
            let token = CancelToken::new();
            thread::scope(|scope| {
                scope.spawn(|| token.cancel());
                if let Ok(_guard) = table.shared_with(span, &Wait::FOREVER.or_cancelled(&token)) {
                    inside(Mode::Shared);
                }
            });
        }
        (6, _) => {
            let guard = table.lock_owned(span, mode, &Wait::FOREVER).expect("a wait without limit");
            arena.enter(cells, mode);
            sender.send((cells, mode, guard)).expect("the releaser runs");
        }
        _ => {
            let other = random.cells();
            let other_range = blocks(other.0, other.1);
            let both = [
                LockRequest::shared(table, span),
                LockRequest::shared(table, other_range.first()..=other_range.last()),
                LockRequest::exclusive(table, range.first()..=range.first()),
            ];
            let _guard = lock_many(&both);
            arena.enter((cells.0, cells.0), Mode::Exclusive);
            arena.leave((cells.0, cells.0), Mode::Exclusive);
        }
    }
}

#[test]
fn readers_of_one_block_beyond_its_counter() {
    // 160 threads share one block that has room for 126, with a writer among them now and then.
    let arena = Arc::new(Arena::new());
    let threads: Vec<_> = (0..160)
        .map(|id| {
            let arena = Arc::clone(&arena);
            thread::spawn(move || {
                for round in 0..4 {
                    if id % 40 == round {
                        let _guard = arena.table.exclusive(5..8);
                        arena.enter((4, 4), Mode::Exclusive);
                        arena.leave((4, 4), Mode::Exclusive);
                    } else {
                        let _guard = arena.table.shared(5..7);
                        arena.enter((4, 4), Mode::Shared);
                        thread::sleep(Duration::from_millis(2));
                        arena.leave((4, 4), Mode::Shared);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert!(arena.table.try_exclusive(..).is_some(), "nothing is left behind");
}

#[test]
fn a_writer_among_readers_gets_in() {
    // Readers that come and go without a break; a writer of the same block waits no longer than its turn.
    let table = Arc::new(ExtentTable::new());
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..8)
        .map(|_| {
            let (table, stop) = (Arc::clone(&table), Arc::clone(&stop));
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    let _guard = table.shared(3..=3);
                    thread::yield_now();
                }
            })
        })
        .collect();
    let start = Instant::now();
    for _ in 0..50 {
        drop(table.exclusive(2..=4));
        drop(table.exclusive(..));
    }
    stop.store(true, SeqCst);
    for reader in readers {
        reader.join().expect("no panic");
    }
    assert!(start.elapsed() < Duration::from_secs(15), "starved: {:?}", start.elapsed());
}

#[test]
fn bits_of_neighbours_are_not_lost() {
    // Threads set and clear their own bit of the same blocks: what one does, no other undoes.
    let bits = Arc::new(ExtentBits::new());
    let threads: Vec<_> = (0..8_u8)
        .map(|bit| {
            let bits = Arc::clone(&bits);
            thread::spawn(move || {
                let mine = Bits::from_raw(1 << bit);
                for round in 0..300_u64 {
                    let range = (round * 7) % 50..(round * 7) % 50 + [1, 40, 9000][round as usize % 3];
                    let blocks = u128::from(range.end - range.start);
                    assert_eq!(bits.set(range.clone(), mine), blocks);
                    assert!(bits.test_all(range.clone(), mine));
                    assert_eq!(bits.count(range.clone(), mine), blocks);
                    assert_eq!(bits.find_with(0, mine).map(|run| run.bits.has_all(mine)), Some(true));
                    assert_eq!(bits.clear(range, mine), blocks);
                    assert!(!bits.test_any(.., mine));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(bits.iter().count(), 0);
}
