//! Every item that the halves share, used once: what compiles and passes here in production does so in a model.
//!
//! `tests/loom_halves.rs` includes this file, so that the loom half runs it too.

use f2fs_sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize, Ordering, fence,
};
use f2fs_sync::{
    Arc, CachePadded, Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    WaitTimeoutResult, hint, memory, mutant, spinning, thread, thread_local,
};
use std::time::{Duration, Instant};

#[cfg(not(any(loom, shuttle)))]
fn run(_name: &str, test: fn()) {
    test();
}

#[cfg(all(shuttle, not(loom)))]
fn run(name: &str, test: fn()) {
    f2fs_sync::scenario::random(name, 100, test);
}

#[cfg(loom)]
fn run(name: &str, test: fn()) {
    f2fs_sync::model::exhaustive(name, test);
}

fn sync_and_send<T: Send + Sync>() {}

#[test]
fn locks_can_be_shared() {
    sync_and_send::<Mutex<u32>>();
    sync_and_send::<Arc<Mutex<Vec<u32>>>>();
    sync_and_send::<RwLock<String>>();
    sync_and_send::<Condvar>();
    sync_and_send::<OnceLock<String>>();
    sync_and_send::<CachePadded<AtomicU64>>();
}

#[test]
fn memory_behind_a_lock() {
    run("memory_behind_a_lock", || {
        let mutex = Mutex::new(vec![1, 2]);
        let mut values = spinning(|| mutex.lock());
        memory::read(&values[..]);
        memory::written(&values[1]);
        values[1] += 1;
        assert_eq!(*values, [1, 3]);
    });
}

#[test]
fn mutexes() {
    run("mutexes", || {
        let mut mutex = Mutex::new(1);
        {
            let mut guard: MutexGuard<'_, u32> = mutex.lock();
            *guard += 1;
            assert_eq!(format!("{guard:?}"), "2");
        }
        {
            let mut guard = mutex.try_lock().expect("the mutex is free");
            *guard += 1;
            assert!(mutex.is_locked());
            assert!(mutex.try_lock().is_none());
        }
        assert!(!mutex.is_locked());
        *mutex.get_mut() += 1;
        assert!(format!("{mutex:?}").starts_with("Mutex"));
        assert_eq!(mutex.into_inner(), 4);
        assert_eq!(*Mutex::<u32>::default().lock() + *Mutex::from(2).lock(), 2);

        let unsized_value = f2fs_sync::coerce!(Arc::new(Mutex::new([1, 2, 3])) => Mutex<[u32]>);
        unsized_value.lock()[0] = 5;
        assert_eq!(unsized_value.lock().iter().sum::<u32>(), 10);
    });
}

#[test]
fn reader_writer_locks() {
    run("reader_writer_locks", || {
        let mut lock = RwLock::new(1);
        {
            let reader: RwLockReadGuard<'_, u32> = lock.read();
            assert_eq!((*reader, lock.try_write().is_none()), (1, true));
        }
        {
            let mut writer: RwLockWriteGuard<'_, u32> = lock.write();
            *writer += 1;
            assert!(lock.try_read().is_none());
            let reader = RwLockWriteGuard::downgrade(writer);
            assert_eq!((*reader, lock.try_write().is_none()), (2, true));
        }
        *lock.try_write().expect("the lock is free") += 1;
        assert_eq!(lock.try_read().map(|reader| *reader), Some(3));
        *lock.get_mut() += 1;
        assert!(format!("{lock:?}").starts_with("RwLock"));
        assert_eq!(lock.into_inner(), 4);
        assert_eq!(*RwLock::<u32>::default().read() + *RwLock::from(2).read(), 2);

        let unsized_value = f2fs_sync::coerce!(Arc::new(RwLock::new([1, 2, 3])) => RwLock<[u32]>);
        unsized_value.write()[0] = 5;
        assert_eq!(unsized_value.read().len(), 3);
    });
}

#[test]
fn waiting_for_another_thread() {
    run("waiting_for_another_thread", || {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let (mutex, condvar) = &*other;
            *mutex.lock() += 1;
            let _waiters: usize = condvar.notify_all();
            *mutex.lock() += 1;
            let _woken: bool = condvar.notify_one();
        });
        let (mutex, condvar) = &*shared;
        let mut guard = mutex.lock();
        condvar.wait_while(&mut guard, |value| *value < 1);
        while *guard < 2 {
            condvar.wait(&mut guard);
        }
        drop(guard);
        thread.join().expect("the thread does not panic");
    });
}

#[test]
fn waiting_with_a_deadline() {
    run("waiting_with_a_deadline", || {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            *other.0.lock() = true;
            other.1.notify_one();
        });
        let (mutex, condvar) = &*shared;
        let mut guard = mutex.lock();
        while !*guard {
            let result: WaitTimeoutResult = condvar.wait_for(&mut guard, Duration::from_secs(3600));
            assert!(!result.timed_out());
            if !*guard {
                let deadline = Instant::now() + Duration::from_secs(3600);
                assert!(!condvar.wait_until(&mut guard, deadline).timed_out());
            }
        }
        drop(guard);
        thread.join().expect("the thread does not panic");
    });
}

#[test]
fn values_written_once() {
    run("values_written_once", || {
        let cell = Arc::new(OnceLock::new());
        assert_eq!(cell.get(), None);
        let other = Arc::clone(&cell);
        let thread = thread::spawn(move || *other.get_or_init(|| 1));
        let here = *cell.get_or_init(|| 2);
        assert_eq!(thread.join().expect("the thread does not panic"), here);
        assert_eq!(cell.set(3), Err(3));
        let mut cell = OnceLock::from(4);
        if let Some(value) = cell.get_mut() {
            *value += 1;
        }
        assert_eq!(cell.into_inner(), Some(5));
        assert_eq!(OnceLock::<u32>::default().into_inner(), None);
    });
}

#[test]
fn threads() {
    // loom's macro does not take a `const` block.
    #![allow(clippy::missing_const_for_thread_local)]
    thread_local! {
        static HERE: std::cell::Cell<u32> = std::cell::Cell::new(1);
    }
    run("threads", || {
        HERE.with(|here| here.set(2));
        let builder: thread::Builder = thread::Builder::new().name("parked".to_owned());
        let handle: thread::JoinHandle<u32> = builder
            .spawn(|| {
                thread::park();
                thread::yield_now();
                hint::spin_loop();
                HERE.with(std::cell::Cell::get)
            })
            .expect("threads can be started");
        let thread: thread::Thread = handle.thread().clone();
        assert_ne!(thread.id(), thread::current().id());
        thread.unpark();
        thread::sleep(Duration::ZERO);
        assert_eq!(handle.join().expect("the thread does not panic"), 1);
        assert!(f2fs_sync::processors() >= 1);
        assert!(!mutant("no such fault"));
    });
}

#[test]
fn atomics() {
    macro_rules! integer {
        ($($atomic:ident: $integer:ty),*) => {$({
            let atomic = $atomic::new(1);
            atomic.store(2, Ordering::Release);
            assert_eq!(atomic.fetch_add(3, Ordering::AcqRel), 2);
            assert_eq!(atomic.fetch_sub(1, Ordering::AcqRel), 5);
            assert_eq!(atomic.fetch_or(8, Ordering::AcqRel), 4);
            assert_eq!(atomic.fetch_and(9, Ordering::AcqRel), 12);
            assert_eq!(atomic.fetch_xor(1, Ordering::AcqRel), 8);
            assert_eq!(atomic.fetch_max(10, Ordering::AcqRel), 9);
            assert_eq!(atomic.fetch_min(7, Ordering::AcqRel), 10);
            assert_eq!(atomic.swap(1, Ordering::AcqRel), 7);
            assert_eq!(atomic.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Acquire), Ok(1));
            assert_eq!(atomic.compare_exchange_weak(1, 2, Ordering::AcqRel, Ordering::Acquire), Err(2));
            let double = |value: $integer| value.checked_mul(2);
            assert_eq!(atomic.fetch_update(Ordering::AcqRel, Ordering::Acquire, double), Ok(2));
            fence(Ordering::SeqCst);
            assert_eq!(atomic.load(Ordering::Acquire), 4);
            assert_eq!(atomic.into_inner(), 4);
        })*};
    }
    run("atomics", || {
        integer!(AtomicI8: i8, AtomicI16: i16, AtomicI32: i32, AtomicI64: i64, AtomicIsize: isize);
        integer!(AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);
        let flag = AtomicBool::new(false);
        assert!(!flag.fetch_or(true, Ordering::AcqRel));
        assert!(flag.swap(false, Ordering::AcqRel));
        let mut value = 1;
        let pointer = AtomicPtr::new(&raw mut value);
        assert_eq!(pointer.load(Ordering::Acquire), &raw mut value);
    });
}
