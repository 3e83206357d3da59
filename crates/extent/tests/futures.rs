//! Locks taken by futures, polled by hand.
#![cfg(not(any(loom, shuttle)))]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use f2fs_extent::ExtentTable;

/// Counts its wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, count: &Arc<Count>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(count)))) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn a_free_range_is_ready_at_once() {
    let table = ExtentTable::new();
    let count = Arc::new(Count::default());
    for (first, last) in [(0, 0), (5, 20), (0, 1 << 20)] {
        let guard = poll(pin!(table.exclusive_async(first..=last)), &count).expect("nobody has it");
        assert!(table.try_shared(first..=first).is_none());
        drop(guard);
        assert!(table.try_shared(first..=last).is_some());
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
}

#[test]
fn futures_and_threads_share_one_queue() {
    for last in [3, 40, 1 << 20] {
        let table = ExtentTable::new();
        let (first_count, second_count) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let holder = table.shared(0..=last);
        let mut writer = pin!(table.exclusive_async(2..=2));
        assert!(poll(writer.as_mut(), &first_count).is_none());
        let mut reader = pin!(table.shared_async(0..=last));
        assert!(poll(reader.as_mut(), &second_count).is_none(), "a writer is before it");
        assert!(table.try_shared(2..=2).is_none());
        drop(holder);
        assert_eq!((first_count.0.load(Ordering::SeqCst), second_count.0.load(Ordering::SeqCst)), (1, 0));
        let guard = poll(writer, &first_count).expect("its turn");
        assert!(poll(reader.as_mut(), &second_count).is_none());
        drop(guard);
        assert_eq!(second_count.0.load(Ordering::SeqCst), 1);
        drop(poll(reader, &second_count).expect("its turn"));
        assert_eq!(table.locked(..), None);
    }
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let table = ExtentTable::new();
    let (old, new) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let holder = table.exclusive(1..=1);
    let mut future = pin!(table.shared_async(1..=1));
    assert!(poll(future.as_mut(), &old).is_none());
    assert!(poll(future.as_mut(), &new).is_none());
    drop(holder);
    assert_eq!((old.0.load(Ordering::SeqCst), new.0.load(Ordering::SeqCst)), (0, 1));
    assert!(poll(future, &new).is_some());
}

#[test]
fn a_downgrade_lets_waiting_readers_in_and_no_writer() {
    const FAR: u64 = 1 << 20;
    // In a word; over words, where the reader waits for the first, some or the last of them; covering.
    let ranges: [((u64, u64), (u64, u64)); 8] = [
        ((1, 3), (2, 2)),
        ((1, 40), (1, 1)),
        ((1, 40), (17, 18)),
        ((1, 40), (40, 41)),
        ((1, 3), (0, FAR)),
        ((1, 40), (40, FAR)),
        ((0, FAR), (7, 7)),
        ((0, FAR), (FAR, u64::MAX)),
    ];
    for ((first, last), (other, end)) in ranges {
        let table = ExtentTable::new();
        let (reader_count, writer_count) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let woken = || [&reader_count, &writer_count].map(|count| count.0.load(Ordering::SeqCst));
        let holder = table.exclusive(first..=last);
        let mut reader = pin!(table.shared_async(other..=end));
        let mut writer = pin!(table.exclusive_async(other..=end));
        assert!(poll(reader.as_mut(), &reader_count).is_none());
        assert!(poll(writer.as_mut(), &writer_count).is_none());
        let holder = holder.downgrade();
        assert_eq!(woken(), [1, 0], "{other}..={end} beside {first}..={last}");
        let guard = poll(reader, &reader_count).expect("readers share");
        assert!(poll(writer.as_mut(), &writer_count).is_none());
        drop((holder, guard));
        drop(poll(writer, &writer_count).expect("its turn"));
        assert_eq!(table.locked(..), None);
    }
}

#[test]
fn dropping_a_future_gives_up_its_place_or_its_lock() {
    for last in [5, 1 << 20] {
        let table = ExtentTable::new();
        let count = Arc::new(Count::default());
        let holder = table.shared(5..=5);
        // Waiting: its place goes.
        let mut writer = Box::pin(table.exclusive_async(5..=last));
        assert!(poll(writer.as_mut(), &count).is_none());
        assert!(table.try_shared(5..=5).is_none());
        drop(writer);
        assert!(table.try_shared(5..=5).is_some());
        // Granted, but never polled again: its lock goes.
        let mut writer = Box::pin(table.exclusive_async(5..=last));
        assert!(poll(writer.as_mut(), &count).is_none());
        drop(holder);
        assert!(table.try_shared(5..=5).is_none());
        drop(writer);
        assert!(table.try_exclusive(5..=last).is_some());
        // Never polled: nothing.
        drop(table.exclusive_async(..));
        assert_eq!(table.locked(..), None);
    }
}
