//! The played machine on structures whose behaviour is known: what is slower than what, and how it goes with the number
//! of cores.
#![cfg(f2fs_manycore)]

use f2fs_sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use f2fs_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use f2fs_sync::manycore::{self, Device, Machine, Outcome, Pace};
use f2fs_sync::{CachePadded, Condvar, Mutex, RwLock, hint, memory, spinning};
use std::time::Duration;

/// Operations of each core.
const LAPS: usize = 400;
const WARM_UP: u64 = 20;

fn epyc(cores: usize, operation: impl Fn(usize) + Sync) -> Outcome {
    on(&Machine::epyc(), cores, LAPS, operation)
}

fn on(machine: &Machine, cores: usize, laps: usize, operation: impl Fn(usize) + Sync) -> Outcome {
    manycore::run(machine, &Pace::default(), cores, WARM_UP, |core| {
        for _ in 0..laps {
            operation(core);
            manycore::lap();
        }
    })
}

/// Many of something, each on a line of its own.
fn padded<T>(make: impl Fn() -> T) -> Vec<CachePadded<T>> {
    (0..128).map(|_| CachePadded::new(make())).collect()
}

#[test]
fn one_counter_gives_no_more_than_one_core_and_padded_ones_give_all() {
    let one = CachePadded::new(AtomicU64::new(0));
    let many = padded(|| AtomicU64::new(0));
    let shared = |cores| epyc(cores, |_| _ = one.fetch_add(1, Relaxed)).rate();
    let alone = shared(1);
    let curve = [2, 8, 16, 64, 128].map(shared);
    assert!(curve.iter().all(|rate| *rate < alone), "{alone}: {curve:?}");
    // Within a chiplet, within a socket, over both.
    assert!(curve[1] > 2.0 * curve[3] && curve[3] > 1.3 * curve[4], "{curve:?}");
    let private = |cores| epyc(cores, |core| _ = many[core].fetch_add(1, Relaxed)).rate();
    let ratio = private(128) / private(1);
    assert!((127.0..=129.0).contains(&ratio), "{ratio}");
    assert_eq!(one.load(Relaxed), (1 + 2 + 8 + 16 + 64 + 128) * LAPS as u64, "nothing is lost");
}

/// Counters that share lines by mistake behave like one, not like many.
#[test]
fn false_sharing_is_seen() {
    let many: Vec<AtomicU64> = (0..128).map(|_| AtomicU64::new(0)).collect();
    let rate = |cores| epyc(cores, |core| _ = many[core].fetch_add(1, Relaxed)).rate();
    // Eight counters to a line.
    assert!(rate(8) < rate(1) * 1.5, "{} {}", rate(8), rate(1));
}

/// A lock in the order of arrival, on which all spin on one word.
#[derive(Default)]
struct Ticket {
    next: CachePadded<AtomicUsize>,
    serving: CachePadded<AtomicUsize>,
}

impl Ticket {
    fn with(&self, work: impl FnOnce()) {
        let mine = self.next.fetch_add(1, Relaxed);
        while self.serving.load(Acquire) != mine {
            hint::spin_loop();
        }
        work();
        self.serving.store(mine + 1, Release);
    }
}

/// A lock on which each spins on a word of its own (Mellor-Crummey and Scott).
struct Mcs {
    tail: CachePadded<AtomicPtr<Waiter>>,
    waiters: Vec<CachePadded<Waiter>>,
}

#[derive(Default)]
struct Waiter {
    core: usize,
    must_wait: AtomicBool,
    next: AtomicUsize,
}

impl Mcs {
    fn new() -> Mcs {
        let waiter = |core| CachePadded::new(Waiter { core, ..Waiter::default() });
        Mcs { tail: CachePadded::default(), waiters: (0..128).map(waiter).collect() }
    }

    fn with(&self, core: usize, work: impl FnOnce()) {
        let mine = &self.waiters[core];
        let pointer = std::ptr::from_ref::<Waiter>(mine).cast_mut();
        mine.next.store(0, Relaxed);
        mine.must_wait.store(true, Relaxed);
        let before = self.tail.swap(pointer, AcqRel);
        if let Some(before) = self.waiters.iter().find(|waiter| std::ptr::eq(&raw const ***waiter, before)) {
            before.next.store(1 + core, Release);
            while mine.must_wait.load(Acquire) {
                hint::spin_loop();
            }
        }
        work();
        if self.tail.compare_exchange(pointer, std::ptr::null_mut(), AcqRel, Relaxed).is_err() {
            let next = loop {
                match mine.next.load(Acquire) {
                    0 => hint::spin_loop(),
                    next => break next - 1,
                }
            };
            assert_eq!(self.waiters[next].core, next);
            self.waiters[next].must_wait.store(false, Release);
        }
    }
}

#[test]
fn a_queue_of_spinners_holds_where_spinners_on_one_word_collapse() {
    let inside = CachePadded::new(AtomicU64::new(0));
    let work = || _ = inside.fetch_add(1, Relaxed);
    let (ticket, mcs) = (Ticket::default(), Mcs::new());
    // Each waiting core spins: few operations are enough.
    let by_ticket = |cores| on(&Machine::epyc(), cores, 2 * WARM_UP as usize, |_| ticket.with(work)).rate();
    let by_mcs = |cores| on(&Machine::epyc(), cores, 2 * WARM_UP as usize, |core| mcs.with(core, work)).rate();
    let (ticket, mcs) = ([2, 16, 64].map(by_ticket), [2, 16, 64].map(by_mcs));
    // All spinners fetch the line at each release: the more there are, the longer the next one waits.
    assert!(ticket[2] < ticket[1] * 0.7, "{ticket:?}");
    assert!(mcs[2] > mcs[1] * 0.6, "{mcs:?}");
    assert!(mcs[2] > 1.5 * ticket[2], "{mcs:?} {ticket:?}");
}

/// Eight lines, so that they share none with anything else.
#[repr(align(64))]
struct Lines([u8; 512]);

#[test]
fn memory_behind_a_lock_moves_line_by_line() {
    let (lock, times) = (CachePadded::new(Mutex::new(Box::new(Lines([0; 512])))), Mutex::new(Vec::new()));
    let timed = |access: &dyn Fn(&[u8])| {
        let guard = lock.lock();
        let bytes = &guard.0;
        let before = manycore::now();
        access(bytes);
        let time = manycore::now() - before;
        times.lock().push(time);
    };
    let (whole, part) = (|bytes: &[u8]| memory::read(bytes), |bytes: &[u8]| memory::read(&bytes[60..130]));
    let write = |bytes: &[u8]| memory::written(&bytes[..64]);
    manycore::run(&Machine::epyc(), &Pace::default(), 9, 1, |core| {
        manycore::work(core as u64 * 100_000_000);
        match core {
            0 => [&whole as &dyn Fn(&[u8]), &whole, &write].into_iter().for_each(timed),
            1 => [&part as &dyn Fn(&[u8]), &whole].into_iter().for_each(timed),
            8 => [&write as &dyn Fn(&[u8]), &whole].into_iter().for_each(timed),
            _ => {}
        }
    });
    // A hit takes 1.2 ns, a line from memory 100, from the same chiplet 22, from another one of the socket 95.
    let expected = [8.0 * 101.2, 8.0 * 1.2, 1.2]
        .into_iter()
        .chain([3.0 * 23.2, 5.0 * 23.2 + 3.0 * 1.2])
        .chain([96.2, 1.2 + 7.0 * 96.2]);
    let times = std::mem::take(&mut *times.lock());
    let near = |(time, expected): (&u64, f64)| (*time as f64 - expected).abs() <= 1.0;
    assert!(times.iter().zip(expected).all(near), "{times:?}");
    assert_eq!(times.len(), 7);
}

#[test]
fn memory_that_is_named_outside_of_a_run_costs_nothing() {
    memory::written(&[0_u64; 100]);
    memory::read("text");
    memory::read::<[u64]>(&[]);
    assert_eq!(spinning(|| 5), 5);
}

#[test]
fn a_spin_lock_excludes_and_is_taken_in_the_order_of_arrival() {
    let (lock, order) = (CachePadded::new(Mutex::new(0_u64)), Mutex::new(Vec::new()));
    let outcome = manycore::run(&Machine::epyc(), &Pace::default(), 16, 1, |core| {
        // One after the other, while the first has the lock for longer.
        manycore::work(core as u64 * 1_000_000);
        manycore::lap();
        let mut value = spinning(|| lock.lock());
        order.lock().push(core);
        let before = *value;
        manycore::work(if core == 0 { 50_000_000 } else { 1_000_000 });
        *value = before + 1;
        drop(value);
        // Waits count until the first core ends.
        manycore::work(100_000_000);
    });
    assert_eq!(*lock.lock(), 16);
    assert_eq!(*order.lock(), (0..16).collect::<Vec<_>>());
    assert!(outcome.waits.iter().any(|hot| hot.site.what.contains("Mutex<u64>")), "{:?}", outcome.waits);
}

#[test]
fn a_spin_lock_that_cores_wait_for_is_not_overtaken() {
    let (lock, taken) = (CachePadded::new(Mutex::new(())), CachePadded::new(AtomicU64::new(0)));
    manycore::run(&Machine::epyc(), &Pace::default(), 3, 1, |core| {
        match core {
            0 => {
                let _guard = spinning(|| lock.lock());
                manycore::work(50_000_000);
            }
            1 => {
                manycore::work(10_000_000);
                let _guard = spinning(|| lock.lock());
                taken.store(1, Relaxed);
                manycore::work(10_000_000);
            }
            _ => {
                while lock.try_lock().is_some() || manycore::now() < 20_000 {}
                let guard = loop {
                    if let Some(guard) = lock.try_lock() {
                        break guard;
                    }
                    hint::spin_loop();
                };
                assert_eq!(taken.load(Relaxed), 1, "it was waited for");
                drop(guard);
            }
        }
        manycore::lap();
    });
}

/// The same as for the queue of spinners above, which is written out.
#[test]
fn a_spin_lock_costs_what_a_queue_of_spinners_does() {
    let lock = CachePadded::new(Mutex::new(0_u64));
    let mcs = Mcs::new();
    let inside = CachePadded::new(AtomicU64::new(0));
    let by_lock = |cores| on(&Machine::epyc(), cores, 60, |_| *spinning(|| lock.lock()) += 1).rate();
    let by_mcs = |cores| {
        on(&Machine::epyc(), cores, 2 * WARM_UP as usize, |core| mcs.with(core, || _ = inside.fetch_add(1, Relaxed)))
            .rate()
    };
    for cores in [16, 64] {
        let ratio = by_lock(cores) / by_mcs(cores);
        assert!((0.5..=2.0).contains(&ratio), "{cores} cores: {ratio}");
    }
}

#[test]
fn readers_of_one_lock_move_its_word() {
    let lock = CachePadded::new(RwLock::new(5));
    let read = |cores| epyc(cores, |_| assert_eq!(*lock.read(), 5)).rate();
    let curve = [1, 2, 16, 128].map(read);
    assert!(curve[1..].iter().all(|rate| *rate < curve[0]), "readers do not scale on one word: {curve:?}");
    let plain = padded(|| AtomicU64::new(1));
    let load = |cores| {
        let operation = |_| {
            assert_eq!(plain[0].load(Acquire), 1);
            manycore::work(100_000);
        };
        epyc(cores, operation).rate()
    };
    let ratio = load(128) / load(1);
    assert!(ratio > 120.0, "readers of a word that nobody writes do: {ratio}");
}

#[test]
fn a_mutex_excludes_parks_and_wakes() {
    let mutex = Mutex::new(0_u64);
    let outcome = epyc(64, |_| {
        let mut value = mutex.lock();
        let before = *value;
        manycore::work(2_000_000);
        *value = before + 1;
    });
    assert_eq!(*mutex.lock(), 64 * LAPS as u64);
    // One after the other, for two microseconds each and what the lock costs.
    assert!((100_000.0..=500_000.0).contains(&outcome.rate()), "{}", outcome.rate());
    assert!(outcome.spent.percent(outcome.spent.locks) > 90.0, "{:?}", outcome.spent);
    assert!(outcome.places.iter().any(|hot| hot.site.file.ends_with("tests/manycore.rs")), "{:?}", outcome.places);
}

/// Writers keep new readers out, but a reader that was woken gets in before the next writer: nobody waits forever.
#[test]
fn readers_and_writers_of_one_lock_all_get_on() {
    let lock = RwLock::new(0_u64);
    epyc(64, |core| {
        if core % 4 == 0 {
            let mut value = lock.write();
            manycore::work(300_000);
            *value += 1;
        } else {
            let value = lock.read();
            let before = *value;
            manycore::work(500_000);
            assert_eq!(*value, before);
        }
    });
    assert_eq!(*lock.read(), 16 * LAPS as u64);
}

#[test]
fn condition_variables_pass_a_token_around() {
    let (turn, changed) = (Mutex::new(0), Condvar::new());
    let outcome = epyc(4, |core| {
        let mut turn = turn.lock();
        changed.wait_while(&mut turn, |turn| *turn % 4 != core);
        *turn += 1;
        changed.notify_all();
    });
    assert_eq!(*turn.lock(), 4 * LAPS);
    assert!(outcome.rate() > 0.0);
    let timed_out = manycore::run(&Machine::this(), &Pace::default(), 1, 1, |_| {
        let before = manycore::now();
        let mut guard = turn.lock();
        assert!(changed.wait_for(&mut guard, Duration::from_micros(50)).timed_out());
        assert!((50_000..100_000).contains(&(manycore::now() - before)));
    });
    assert_eq!(timed_out.cores, 1);
}

#[test]
fn a_device_has_a_rate_and_a_latency() {
    let run = |cores| {
        let device = Device::new(440_000, Duration::from_micros(90));
        epyc(cores, |_| device.request()).rate()
    };
    let (one, all) = (run(1), run(128));
    assert!((10_900.0..11_200.0).contains(&one), "{one}");
    assert!((430_000.0..445_000.0).contains(&all), "{all}");
}

#[test]
fn the_same_run_twice_is_the_same() {
    let run = || {
        let (counter, lock) = (CachePadded::new(AtomicU64::new(0)), CachePadded::new(Mutex::new(0)));
        epyc(32, |core| {
            if counter.fetch_add(1, Relaxed) % 3 == core as u64 % 3 {
                *lock.lock() += 1;
            }
        })
    };
    assert_eq!(run(), run());
}

#[test]
fn some_cores_of_a_machine_run() {
    let machine = Machine::paper();
    assert_eq!(machine.spread(10), [0, 15, 30, 45, 60, 75, 90, 105, 1, 16]);
    let mut all = machine.spread(1000);
    all.sort_unstable();
    assert_eq!(all, (0..120).collect::<Vec<_>>());
    let counter = CachePadded::new(AtomicU64::new(0));
    let rate = |cores: &[usize]| {
        let outcome = manycore::run_on(&machine, &Pace::default(), cores, WARM_UP, |core| {
            assert!(cores.contains(&core) && manycore::running() == Some(core));
            for _ in 0..LAPS {
                counter.fetch_add(1, Relaxed);
                manycore::lap();
            }
        });
        assert_eq!(outcome.cores, 2);
        outcome.rate()
    };
    let (near, far) = (rate(&[3, 4]), rate(&[3, 119, 4000]));
    // A line takes 51 ns from a neighbour, 188 from the last socket.
    assert!((2.5..4.0).contains(&(near / far)), "{near} {far}");
    assert_eq!(counter.load(Relaxed), 4 * LAPS as u64);
}

#[test]
#[should_panic(expected = "cores that wait for each other")]
fn a_deadlock_is_reported() {
    let locks = [Mutex::new(()), Mutex::new(())];
    epyc(2, |core| {
        let _first = locks[core].lock();
        manycore::work(10_000_000);
        let _second = locks[1 - core].lock();
    });
}
