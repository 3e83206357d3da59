//! Scenarios of eight threads and more, with the production geometry (8 words a line, 126 readers a block, covering
//! from 4096 blocks on). A lost wake-up leaves a deadlock behind, which shuttle reports.
//!
//! ```text
//! mutant: enqueue_sets_no_bit, killed by: ten_threads_on_neighbouring_blocks
//! mutant: attach_overlooks_a_grant, killed by: ten_threads_on_neighbouring_blocks
//! mutant: take_keeps_what_it_has, killed by: ten_threads_on_neighbouring_blocks
//! mutant: mark_not_set, killed by: covering_locks_among_eight_threads
//! mutant: mark_cleared_of_busy_line, killed by: a_busy_line_is_found_again
//! mutant: grant_ignores_the_crowd, killed by: nine_readers_where_four_have_room
//! mutant: take_ignores_the_crowd, killed by: nine_readers_where_four_have_room
//! mutant: overflow_release_wakes_nobody, killed by: nine_readers_where_four_have_room
//! mutant: overflow_goes_with_its_first_holder, killed by: nine_readers_where_four_have_room
//! mutant: overflow_tells_no_ticket, killed by: nine_readers_where_four_have_room
//! mutant: many_sorted, killed by: eight_threads_lock_two_files
//! mutant: withdraw_overlooks_a_grant, killed by: cancellations_among_eight_waiters
//! mutant: withdraw_wakes_next, killed by: a_withdrawn_writer_lets_eight_readers_in
//! mutant: grant_overtakes, killed by: the_queue_keeps_its_order
//! mutant: take_overtakes_the_queue, killed by: the_queue_keeps_its_order
//! mutant: downgrade_wakes_nobody, killed by: a_downgrade_lets_eight_readers_in
//! mutant: grant_wakes_no_future, killed by: futures_and_threads_take_turns
//! mutant: install_keeps_a_line_of_its_own, killed by: eight_threads_install_chunks
//! mutant: bits_change_version, killed by: bits_of_eight_threads
//! mutant: bits_read_unversioned, killed by: bits_of_eight_threads
//! mutant: convert_in_two_steps, killed by: a_conversion_among_seven_readers
//! ```
#![cfg(shuttle)]

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};

use f2fs_extent::{Bits, CancelToken, ExtentBits, ExtentTable, LockRequest, Mode, Wait, lock_many};
use f2fs_sync::atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst};
use f2fs_sync::scenario::{priorities, random};
use f2fs_sync::{Arc, Condvar, Mutex, thread};

const WRITER: i64 = 1 << 32;
/// Blocks whose holders are counted.
const COUNTED: usize = 40;

/// A table, and who is inside each of its first blocks: readers add one, a writer a large number.
struct Arena {
    table: Arc<ExtentTable>,
    inside: [AtomicI64; COUNTED],
}

impl Arena {
    fn new() -> Arc<Arena> {
        Arc::new(Arena { table: Arc::new(ExtentTable::new()), inside: std::array::from_fn(|_| AtomicI64::new(0)) })
    }

    /// Goes into the blocks and out again; the threads may be switched in between.
    fn visit(&self, first: u64, last: u64, mode: Mode) {
        let last = last.min(COUNTED as u64 - 1) as usize;
        let weight = if mode == Mode::Shared { 1 } else { WRITER };
        for block in &self.inside[first as usize..=last] {
            let others = block.fetch_add(weight, SeqCst);
            assert!(others == 0 || mode == Mode::Shared && others < WRITER, "a writer is not alone");
        }
        for block in &self.inside[first as usize..=last] {
            block.fetch_sub(weight, SeqCst);
        }
    }

    fn idle(&self) {
        assert_eq!(self.table.locked(..), None);
        assert!(self.table.try_exclusive(..).is_some(), "no queued bit is left");
    }
}

/// Runs `threads` threads over an arena and then looks whether they left anything behind.
fn crowd(threads: usize, body: impl Fn(&Arena, usize) + Send + Sync + 'static) {
    let (arena, body) = (Arena::new(), Arc::new(body));
    let all: Vec<_> = (0..threads)
        .map(|number| {
            let (arena, body) = (Arc::clone(&arena), Arc::clone(&body));
            thread::spawn(move || body(&arena, number))
        })
        .collect();
    for one in all {
        one.join().unwrap();
    }
    arena.idle();
}

/// A sleeping thread as a waker.
#[derive(Default)]
struct Sleeper {
    woken: Mutex<bool>,
    bell: Condvar,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        *self.woken.lock() = true;
        self.bell.notify_one();
    }
}

fn poll<F: Future>(future: Pin<&mut F>, sleeper: &Arc<Sleeper>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(sleeper)))) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let sleeper = Arc::new(Sleeper::default());
    let mut future = pin!(future);
    loop {
        if let Some(output) = poll(future.as_mut(), &sleeper) {
            return output;
        }
        let mut woken = sleeper.woken.lock();
        while !std::mem::take(&mut *woken) {
            sleeper.bell.wait(&mut woken);
        }
    }
}

#[test]
fn ten_threads_on_neighbouring_blocks() {
    // In a word, over two and over three words; each thread in its own order.
    const RANGES: [(u64, u64); 5] = [(3, 3), (3, 5), (6, 9), (4, 20), (7, 8)];
    let body = || {
        crowd(10, |arena, number| {
            for round in 0..3 {
                let (first, last) = RANGES[(number * 3 + round * 2) % RANGES.len()];
                if (number + round) % 3 == 0 {
                    let _alone = arena.table.exclusive(first..=last);
                    arena.visit(first, last, Mode::Exclusive);
                } else {
                    let _shared = arena.table.shared(first..=last);
                    arena.visit(first, last, Mode::Shared);
                }
            }
        });
    };
    random("ten_threads_on_neighbouring_blocks", 4_000, body);
    priorities("ten_threads_on_neighbouring_blocks", 2_000, 3, body);
}

#[test]
fn covering_locks_among_eight_threads() {
    let body = || {
        crowd(9, |arena, number| match number {
            0 | 1 => {
                for _ in 0..2 {
                    let _alone = arena.table.exclusive(number as u64..);
                    arena.visit(number as u64, u64::MAX, Mode::Exclusive);
                }
            }
            2 => {
                let _shared = arena.table.shared(..);
                arena.visit(0, u64::MAX, Mode::Shared);
            }
            _ => {
                for round in 0..2 {
                    // Lines of their own beyond the first have marks; who holds one stands for the block that is
                    // counted.
                    let (block, counted) = (64 * number as u64 + round, 2 + (number as u64) * 3);
                    let _line = arena.table.exclusive(block..=block);
                    arena.visit(counted, counted, Mode::Exclusive);
                }
            }
        });
    };
    random("covering_locks_among_eight_threads", 4_000, body);
    priorities("covering_locks_among_eight_threads", 3_000, 4, body);
}

#[test]
fn a_busy_line_is_found_again() {
    random("a_busy_line_is_found_again", 2_000, || {
        let arena = Arena::new();
        let held = arena.table.exclusive(80..=80);
        // Not in the way of this one, but in its line.
        drop(arena.table.exclusive(81..));
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let arena = Arc::clone(&arena);
                thread::spawn(move || {
                    let _alone = arena.table.exclusive(64 + number..);
                    arena.visit(7, 7, Mode::Exclusive);
                })
            })
            .collect();
        // Often, so that others would be met if they got in.
        (0..20).for_each(|_| arena.visit(7, 7, Mode::Exclusive));
        drop(held);
        for one in threads {
            one.join().unwrap();
        }
        arena.idle();
    });
}

#[test]
fn nine_readers_where_four_have_room() {
    random("nine_readers_where_four_have_room", 3_000, || {
        let arena = Arena::new();
        let many: Vec<_> = (0..122).map(|_| arena.table.try_shared(5..=6).unwrap()).collect();
        let inside = Arc::new((Mutex::new(0), Condvar::new()));
        let mut threads: Vec<_> = (0..9)
            .map(|number| {
                let (arena, inside) = (Arc::clone(&arena), Arc::clone(&inside));
                thread::spawn(move || {
                    let _shared = arena.table.shared(6 - number % 2..=6);
                    arena.inside[6].fetch_add(1, SeqCst);
                    // All nine are inside at once, and stay until the first 122 have left.
                    let (count, bell) = &*inside;
                    let mut count = count.lock();
                    *count += 1;
                    bell.notify_all();
                    while *count < 10 {
                        bell.wait(&mut count);
                    }
                    drop(count);
                    (0..number).for_each(|_| thread::yield_now());
                    arena.inside[6].fetch_sub(1, SeqCst);
                })
            })
            .collect();
        let (count, bell) = &*inside;
        let mut all = count.lock();
        while *all < 9 {
            bell.wait(&mut all);
        }
        drop(all);
        drop(many);
        threads.extend((0..6).map(|number| {
            let arena = Arc::clone(&arena);
            thread::spawn(move || {
                let mode = if number < 2 { Mode::Exclusive } else { Mode::Shared };
                let _guard = arena.table.lock_owned(4..=6, mode, &Wait::FOREVER).unwrap();
                arena.visit(4, 6, mode);
            })
        }));
        *count.lock() += 1;
        bell.notify_all();
        for one in threads {
            one.join().unwrap();
        }
        arena.idle();
    });
}

#[test]
fn eight_threads_lock_two_files() {
    let body = || {
        let arenas = [Arena::new(), Arena::new()];
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let arenas = arenas.clone();
                thread::spawn(move || {
                    let (x, y) = (&arenas[number % 2], &arenas[1 - number % 2]);
                    let _both = lock_many(&[
                        LockRequest::exclusive(&x.table, 6..=6 + number as u64),
                        LockRequest::shared(&y.table, 5..=7),
                        LockRequest::exclusive(&y.table, 20..=20),
                    ]);
                    x.visit(6, 6 + number as u64, Mode::Exclusive);
                    y.visit(5, 7, Mode::Shared);
                })
            })
            .collect();
        for one in threads {
            one.join().unwrap();
        }
        arenas.iter().for_each(|arena| arena.idle());
    };
    random("eight_threads_lock_two_files", 3_000, body);
}

#[test]
fn cancellations_among_eight_waiters() {
    random("cancellations_among_eight_waiters", 3_000, || {
        let token = CancelToken::new();
        let held = Arena::new();
        let guard = held.table.lock_owned(3..=3, Mode::Exclusive, &Wait::FOREVER).unwrap();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (arena, token) = (Arc::clone(&held), token.clone());
                thread::spawn(move || {
                    let wait = if number % 2 == 0 { Wait::FOREVER.or_cancelled(&token) } else { Wait::FOREVER };
                    if let Ok(_alone) = arena.table.exclusive_with(3..=3 + number % 3, &wait) {
                        arena.visit(3, 3 + number % 3, Mode::Exclusive);
                    }
                })
            })
            .collect();
        let canceller = thread::spawn(move || token.cancel());
        drop(guard);
        canceller.join().unwrap();
        for one in threads {
            one.join().unwrap();
        }
        held.idle();
    });
}

#[test]
fn a_withdrawn_writer_lets_eight_readers_in() {
    random("a_withdrawn_writer_lets_eight_readers_in", 2_000, || {
        let arena = Arena::new();
        let _reading = arena.table.shared(3..=3);
        let mut writer = Box::pin(arena.table.exclusive_async(3..=9));
        assert!(poll(writer.as_mut(), &Arc::default()).is_none());
        let readers: Vec<_> = (0..8)
            .map(|number| {
                let table = Arc::clone(&arena.table);
                thread::spawn(move || drop(table.shared(3..=3 + number)))
            })
            .collect();
        drop(writer);
        // Joined while block 3 is still being read.
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn the_queue_keeps_its_order() {
    random("the_queue_keeps_its_order", 3_000, || {
        let arena = Arena::new();
        let held: Vec<_> =
            (0..4).map(|_| arena.table.lock_owned(3..=9, Mode::Shared, &Wait::FOREVER).unwrap()).collect();
        let sleeper = Arc::<Sleeper>::default();
        let mut first = pin!(arena.table.exclusive_async(3..=4));
        assert!(poll(first.as_mut(), &sleeper).is_none());
        let releasing: Vec<_> = held.into_iter().map(|guard| thread::spawn(move || drop(guard))).collect();
        // Whoever comes now comes after the writer, whatever has been released meanwhile.
        let granted = Arc::new(AtomicUsize::new(0));
        let readers: Vec<_> = (0..4)
            .map(|number| {
                let (table, granted) = (Arc::clone(&arena.table), Arc::clone(&granted));
                thread::spawn(move || {
                    let _shared = table.shared(4 - number % 2..=5);
                    granted.fetch_add(1, SeqCst);
                })
            })
            .collect();
        let writing = block_on(first);
        assert_eq!(granted.load(SeqCst), 0, "a reader overtook the writer");
        drop(writing);
        for one in releasing.into_iter().chain(readers) {
            one.join().unwrap();
        }
        assert_eq!(granted.load(SeqCst), 4);
        arena.idle();
    });
}

#[test]
fn a_downgrade_lets_eight_readers_in() {
    random("a_downgrade_lets_eight_readers_in", 2_000, || {
        let arena = Arena::new();
        let writing = arena.table.exclusive(3..=12);
        let readers: Vec<_> = (0..8)
            .map(|number| {
                let arena = Arc::clone(&arena);
                thread::spawn(move || {
                    let _shared = arena.table.shared(2 + number..=12);
                    arena.visit(3, 12, Mode::Shared);
                })
            })
            .collect();
        arena.visit(3, 12, Mode::Exclusive);
        let _reading = writing.downgrade();
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn futures_and_threads_take_turns() {
    random("futures_and_threads_take_turns", 3_000, || {
        crowd(8, |arena, number| {
            let last = 3 + number as u64 % 3 * 4;
            match number % 4 {
                0 => {
                    let _alone = block_on(arena.table.exclusive_async(3..=last));
                    arena.visit(3, last, Mode::Exclusive);
                }
                1 => {
                    let _shared = block_on(arena.table.shared_async(3..=last));
                    arena.visit(3, last, Mode::Shared);
                }
                2 => {
                    let _alone = arena.table.exclusive(3..=last);
                    arena.visit(3, last, Mode::Exclusive);
                }
                _ => {
                    // Polled once, and dropped wherever it is then.
                    let mut future = Box::pin(arena.table.exclusive_async(3..=last));
                    if let Some(_alone) = poll(future.as_mut(), &Arc::default()) {
                        arena.visit(3, last, Mode::Exclusive);
                    }
                }
            }
        });
    });
}

#[test]
fn eight_threads_install_chunks() {
    random("eight_threads_install_chunks", 2_000, || {
        let arena = Arena::new();
        let threads: Vec<_> = (0..8_u64)
            .map(|number| {
                let table = Arc::clone(&arena.table);
                // Two in each chunk, in classes with one slot and with several.
                let block = [100, 5000, 20_000, 300_000][number as usize / 2] + number;
                thread::spawn(move || {
                    (block, table.lock_owned(block..=block, Mode::Exclusive, &Wait::FOREVER).unwrap())
                })
            })
            .collect();
        let held: Vec<_> = threads.into_iter().map(|one| one.join().unwrap()).collect();
        for (block, _guard) in &held {
            assert_eq!(arena.table.locked(*block..=*block), Some(Mode::Exclusive), "block {block}");
        }
        drop(held);
        arena.idle();
    });
}

#[test]
fn bits_of_eight_threads() {
    let body = || {
        let bits = Arc::new(ExtentBits::new());
        bits.set(0..16, Bits::USER_0);
        let threads: Vec<_> = (0..8_u8)
            .map(|number| {
                let bits = Arc::clone(&bits);
                thread::spawn(move || {
                    if number < 2 {
                        // Two words change together, there and back.
                        assert_eq!(bits.convert(0..16, Bits::from_raw(1 << number), Bits::NONE), 16);
                        assert_eq!(bits.clear(0..16, Bits::from_raw(1 << number)), 16);
                    } else {
                        for other in [Bits::DIRTY, Bits::DELALLOC] {
                            let count = bits.count(0..16, other);
                            assert!(count == 0 || count == 16, "{count} of 16 blocks are {other:?}");
                        }
                    }
                })
            })
            .collect();
        for one in threads {
            one.join().unwrap();
        }
        assert_eq!(bits.count(.., Bits::USER_0), 16);
        assert!(!bits.test_any(.., Bits::DIRTY | Bits::DELALLOC));
    };
    random("bits_of_eight_threads", 3_000, body);
}

#[test]
fn a_conversion_among_seven_readers() {
    random("a_conversion_among_seven_readers", 2_000, || {
        let bits = Arc::new(ExtentBits::new());
        bits.set(3..=4, Bits::DIRTY);
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let bits = Arc::clone(&bits);
                thread::spawn(move || {
                    if number == 0 {
                        assert_eq!(bits.convert(3..=4, Bits::WRITEBACK, Bits::DIRTY), 2);
                    } else {
                        let seen = bits.get(3);
                        assert!(seen == Bits::DIRTY || seen == Bits::WRITEBACK, "{seen:?}");
                    }
                })
            })
            .collect();
        for one in threads {
            one.join().unwrap();
        }
    });
}
