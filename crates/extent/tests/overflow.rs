//! More readers of a block than its byte can count: 126.
#![cfg(not(any(loom, shuttle)))]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use f2fs_extent::{ExtentTable, LockRequest, Mode, Wait, lock_many};

fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn a_full_block_lets_further_readers_in_and_no_writer() {
    let table = Arc::new(ExtentTable::new());
    let counted: Vec<_> = (0..126).map(|_| table.try_shared(5..=6).expect("the byte counts 126")).collect();
    let further = table.try_shared(6..=9).expect("the 127th is held elsewhere");
    let joined = table.try_shared(6..=9).expect("and the 128th beside it");
    assert!(table.try_shared(4..=9).is_some() && table.try_shared(9..=9).is_some());
    let both = lock_many(&[LockRequest::shared(&table, 5..=5), LockRequest::exclusive(&table, 20..=21)]);
    assert!(table.try_exclusive(21..=21).is_none() && table.try_shared(20..=20).is_none());
    drop(both);
    assert!(table.try_exclusive(20..=21).is_some());
    drop(counted);
    // Nobody is in the words any more.
    assert_eq!((table.locked(4..=5), table.locked(9..=9)), (None, Some(Mode::Shared)));
    assert!(table.try_exclusive(4..=5).is_some());
    for last in [6, 9, u64::MAX] {
        assert!(table.try_exclusive(6..=last).is_none() && table.try_exclusive(9..=last.max(9)).is_none());
    }
    drop(further);
    assert!(table.try_exclusive(7..=8).is_none(), "one of the two is left");
    drop(joined);
    assert_eq!(table.locked(..), None);
    assert!(table.try_exclusive(..).is_some());
}

#[test]
fn tasks_at_a_barrier_share_a_block() {
    for holders in [126, 127, 128, 1000] {
        let table = Arc::new(ExtentTable::new());
        let barrier = Arc::new(Barrier::new(holders + 1));
        let threads: Vec<_> = (0..holders as u64)
            .map(|number| {
                let (table, barrier) = (Arc::clone(&table), Arc::clone(&barrier));
                let body = move || {
                    // Every way to a shared lock; all of them have block 7.
                    match number % 5 {
                        0 => drop((table.shared(7..=7), barrier.wait())),
                        1 => drop((table.shared(number % 8..=7 + number % 90), barrier.wait())),
                        2 => drop((table.lock_owned(7..9, Mode::Shared, &Wait::FOREVER), barrier.wait())),
                        3 => drop((lock_many(&[LockRequest::shared(&table, 7..8)]), barrier.wait())),
                        _ => drop((table.shared_with(7.., &Wait::up_to(Duration::from_secs(60))), barrier.wait())),
                    }
                };
                thread::Builder::new().stack_size(64 << 10).spawn(body).expect("a small thread")
            })
            .collect();
        let (sender, receiver) = mpsc::channel();
        let waits = thread::spawn(move || {
            barrier.wait();
            sender.send(()).expect("the test waits");
        });
        receiver.recv_timeout(Duration::from_secs(60)).expect("all of them have the block at once");
        waits.join().expect("no panic");
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(table.locked(..), None);
        drop(table.exclusive(7..=7));
        assert!(table.try_exclusive(..).is_some(), "{holders} leave nothing behind");
    }
}

#[test]
fn futures_beyond_the_counter_leave_in_any_order() {
    for order in 0..3 {
        let table = ExtentTable::new();
        let read = |first| Box::pin(table.shared_async(first..=3));
        let mut held: Vec<_> = (0..300).map(|_| poll(&mut read(3)).expect("any number may share")).collect();
        let mut writer = Box::pin(table.exclusive_async(3..=3));
        assert!(poll(&mut writer).is_none());
        // From here on readers wait: the writer hands on to all of them.
        let mut readers: Vec<_> = (0..300).map(|_| read(2)).collect();
        assert!(readers.iter_mut().all(|reader| poll(reader).is_none()), "a reader stays behind the writer");
        while !held.is_empty() {
            assert!(poll(&mut writer).is_none(), "{} still read", held.len());
            match order {
                0 => drop(held.pop()),
                1 => drop(held.remove(0)),
                _ => drop(held.swap_remove(held.len() * 7 / 11)),
            }
        }
        drop(poll(&mut writer).expect("all readers have left"));
        assert_eq!(table.wait_stats().waits, 301, "all of them have their locks");
        // Each third one is dropped without having seen it.
        let taken: Vec<_> = readers.into_iter().enumerate().filter(|(at, _)| at % 3 != 0).collect();
        let taken: Vec<_> = taken.into_iter().map(|(_, mut reader)| poll(&mut reader).expect("granted")).collect();
        assert_eq!((taken.len(), table.locked(2..=2)), (200, Some(Mode::Shared)));
        assert!(table.try_exclusive(2..=2).is_none());
        drop(taken);
        assert_eq!(table.locked(..), None);
        assert!(table.try_exclusive(..).is_some());
    }
}
