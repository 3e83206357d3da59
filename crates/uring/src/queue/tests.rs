use std::time::Duration;

use f2fs_device::{BLOCK_SIZE, DeviceErrorKind};

use super::*;
use crate::Polling;
use crate::rehearsal::{Pipe, refuse_after};

const PERM: i32 = 1;

fn queue(pipe: &Arc<Pipe>, depth: usize, polling: Polling) -> RingQueue<Pipe> {
    let ring = ThreadRing::new(&**pipe, depth as u32, polling).unwrap();
    RingQueue::new(ring, Arc::clone(pipe), depth, polling.submissions.is_some())
}

fn read(start: u64) -> Request {
    Request::read(start, AlignedBuf::new(1))
}

/// All completions, in the order of their places.
fn all(queue: &mut RingQueue<Pipe>) -> Vec<Completion> {
    let mut all: Vec<_> = std::iter::from_fn(|| queue.next_completion()).collect();
    all.sort_unstable_by_key(|done| done.request.start);
    all
}

fn starts(done: &[Completion]) -> Vec<u64> {
    done.iter().map(|done| done.request.start).collect()
}

/// Wherever the queue enters the ring: when a request is pushed, told of, waited for or looked for.
#[test]
fn what_the_kernel_has_not_taken_goes_by_system_calls() {
    let enters: [fn(&mut RingQueue<Pipe>); 4] = [
        |queue| (0..8).for_each(|start| queue.push(read(start))),
        |queue| {
            (0..8).for_each(|start| assert!(queue.table.start(read(start), None) < 8));
            queue.in_flight += 8;
            queue.submit();
        },
        |queue| {
            (0..2).for_each(|start| queue.push(read(start)));
            let first = queue.next_completion().unwrap();
            queue.finished.push_front(first);
            queue.in_flight += 1;
            (2..8).for_each(|start| queue.push(read(start)));
        },
        |queue| {
            (0..8).for_each(|start| queue.push(read(start)));
            let first = queue.try_completion().unwrap();
            queue.finished.push_front(first);
            queue.in_flight += 1;
        },
    ];
    for enter in enters {
        let pipe = Pipe::new();
        let mut queue = queue(&pipe, 8, Polling::default());
        refuse_after(0, PERM);
        enter(&mut queue);
        assert!(queue.table.is_refused());
        let done = all(&mut queue);
        assert!(done.iter().all(|done| done.result.is_ok()));
        assert_eq!((starts(&done), pipe.called()), ((0..8).collect(), (0..8).collect()));
        assert_eq!(queue.in_flight(), 0);
        // The ring is not entered again, even if the kernel would let in; nor is it kept.
        refuse_after(u32::MAX, PERM);
        queue.push(read(8));
        assert_eq!(pipe.called().last(), Some(&8), "at once");
        assert!(queue.next_completion().is_some());
        drop(queue);
        assert!(Pipe::spare().take().is_none());
    }
}

#[test]
fn a_look_for_completions_finds_the_refusal() {
    let pipe = Pipe::new();
    let mut queue = queue(&pipe, 8, Polling::default());
    queue.push(read(0));
    queue.submit();
    refuse_after(0, PERM);
    assert!(queue.try_completion().is_none());
    assert!(queue.table.is_refused());
    // The device is done with it by then, and only the ring does not say so.
    let done = all(&mut queue);
    assert_eq!((starts(&done), pipe.called()), (vec![0], vec![0]));
    assert!(done[0].result.is_ok());
}

#[test]
fn what_is_never_answered_is_given_up_with_its_memory() {
    let pipe = Pipe::new();
    let mut queue = queue(&pipe, 8, Polling::default());
    let memory: Vec<_> = queue.buffers(2, 1);
    let home = memory.iter().map(|buf| buf.as_bytes().as_ptr().addr()).collect::<Vec<_>>();
    let mut memory = memory.into_iter();
    queue.push(Request::read(0, memory.next().unwrap()));
    queue.push(Request::write(1, memory.next().unwrap()));
    queue.submit();
    refuse_after(0, PERM);
    let done = all(&mut queue);
    assert!(done[0].result.is_ok());
    let unanswered = DeviceErrorKind::Unanswered { errno: PERM };
    assert_eq!(done[1].result.as_ref().unwrap_err().kind, unanswered);
    assert_eq!(*pipe.failures.lock(), [(1, unanswered)]);
    for (done, home) in done.iter().zip(home) {
        assert_eq!(done.request.bufs[0].len(), BLOCK_SIZE);
        assert_ne!(done.request.bufs[0].as_bytes().as_ptr().addr(), home);
    }
    drop(done);
    // The lost memory does not come home.
    assert!(queue.pool.as_ref().is_none_or(|pool| pool.take(1).is_none()));
}

#[test]
fn a_deep_queue_goes_on_behind_its_depth() {
    let pipe = Pipe::new();
    let mut queue = queue(&pipe, 4, Polling::default());
    (0..4).for_each(|start| queue.push(read(start)));
    queue.submit();
    refuse_after(0, PERM);
    // There is no room: it waits for one of those that are never answered.
    queue.push(read(4));
    let done = all(&mut queue);
    assert_eq!((starts(&done), pipe.called()), ((0..5).collect(), (0..5).collect()));
}

#[test]
fn a_drop_does_not_wait_for_ever() {
    let pipe = Pipe::new();
    let mut queue = queue(&pipe, 4, Polling::default());
    (0..4).for_each(|start| queue.push(read(start)));
    queue.submit();
    refuse_after(0, PERM);
    drop(queue);
    assert_eq!(Arc::strong_count(&pipe), 1);
}

/// A thread of the kernel may take the entries at any time, though nobody wakes it.
#[test]
fn what_a_thread_of_the_kernel_may_take_is_not_carried() {
    let pipe = Pipe::new();
    let polling = Polling { submissions: Some(Duration::from_millis(1)), ..Polling::default() };
    let mut queue = queue(&pipe, 4, polling);
    thread::sleep(Duration::from_millis(100)); // until it sleeps
    refuse_after(0, PERM);
    queue.push(Request::write(0, AlignedBuf::new(1)));
    queue.submit();
    assert!(queue.table.is_refused(), "it was to be woken");
    queue.push(Request::write(1, AlignedBuf::new(1)));
    let done = all(&mut queue);
    assert_eq!(done[0].result.as_ref().unwrap_err().kind, DeviceErrorKind::Unanswered { errno: PERM });
    assert!(done[1].result.is_ok());
    assert_eq!(pipe.called(), [1]);
}
