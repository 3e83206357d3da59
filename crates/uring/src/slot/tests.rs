use std::sync::mpsc;
use std::time::{Duration, Instant};

use f2fs_device::{AlignedBuf, BLOCK_SIZE, DeviceErrorKind, Op};

use super::*;
use crate::Polling;
use crate::rehearsal::{Pipe, refuse_after};
use crate::ring::{SHARED_ENTRIES, Users};

const PERM: i32 = 1;

fn slot(pipe: &Arc<Pipe>) -> Arc<Slot<Pipe>> {
    let ring = ring::new(&**pipe, SHARED_ENTRIES, Users::Many, Polling::default()).unwrap();
    Arc::new(Slot::new(ring, Arc::clone(pipe)))
}

fn read(start: u64) -> Request {
    Request::read(start, AlignedBuf::new(1))
}

fn start(slot: &Arc<Slot<Pipe>>, requests: impl IntoIterator<Item = Request>) -> Box<dyn Pending> {
    Slot::start(slot, requests.into_iter().enumerate().collect())
}

/// Waits for all, in the order of their indices.
fn all(mut pending: Box<dyn Pending>, requests: usize) -> Vec<Completion> {
    let mut out = VecDeque::new();
    while out.len() < requests {
        pending.collect(true, &mut out);
    }
    out.make_contiguous().sort_unstable_by_key(|&(index, _)| index);
    out.into_iter().map(|(_, completion)| completion).collect()
}

fn unanswered(completion: &Completion) -> bool {
    let kind = completion.result.as_ref().map_err(|error| &error.kind);
    kind == Err(&DeviceErrorKind::Unanswered { errno: PERM })
}

/// More requests than the submission queue, and the completion queue, have room for.
#[test]
fn what_the_kernel_has_not_taken_goes_by_system_calls() {
    let pipe = Pipe::new();
    let slot = slot(&pipe);
    refuse_after(0, PERM);
    let many = 5 * u64::from(SHARED_ENTRIES);
    let done = all(start(&slot, (0..many).map(read)), many as usize);
    assert!(done.iter().zip(0..).all(|(done, start)| done.result.is_ok() && done.request.start == start));
    assert_eq!(*pipe.calls.lock(), (0..many).collect::<Vec<_>>(), "each once, in their order");
    assert!(slot.is_refused());
    // The ring is not entered again, even if the kernel would let in.
    refuse_after(u32::MAX, PERM);
    all(start(&slot, [read(many)]), 1);
    assert_eq!(pipe.calls.lock().last(), Some(&many));
}

#[test]
fn what_the_kernel_has_taken_completes_by_itself() {
    let pipe = Pipe::new();
    let slot = slot(&pipe);
    refuse_after(1, PERM);
    let mut taken = start(&slot, (0..3).map(read));
    let not_taken = start(&slot, (3..6).map(read));
    all(not_taken, 3);
    assert_eq!(pipe.called(), [3, 4, 5]);
    let mut out = VecDeque::new();
    taken.collect(false, &mut out);
    assert!(out.is_empty(), "they are not over");
    pipe.answer(3);
    let done = all(taken, 3);
    assert!(done.iter().all(|done| done.result.is_ok() && done.request.bufs[0].as_bytes() == [5; BLOCK_SIZE]));
    assert_eq!(pipe.called(), [3, 4, 5]);
}

#[test]
fn what_is_never_answered_is_given_up_with_its_memory() {
    let pipe = Pipe::new();
    let slot = slot(&pipe);
    refuse_after(1, PERM);
    let write = |op, start| Request::vectored(op, start, vec![AlignedBuf::from_bytes(&[7; BLOCK_SIZE])]);
    let taken = start(&slot, [read(0), read(1), write(Op::Write, 2), write(Op::WriteFua, 3)]);
    let dropped = start(&slot, [read(4), write(Op::Write, 5)]);
    drop(dropped);
    let done = all(taken, 4);
    assert_eq!(pipe.called(), [0, 1, 4, 5]);
    assert!(done[..2].iter().all(|read| read.result.is_ok()));
    assert!(done[2..].iter().all(unanswered), "{done:?}");
    assert!(done[2..].iter().all(|write| write.request.bufs[0].as_bytes() == [7; BLOCK_SIZE]));
    let kind = DeviceErrorKind::Unanswered { errno: PERM };
    assert_eq!(*pipe.failures.lock(), [(2, kind.clone()), (3, kind)], "the carrier hears of it, to be poisoned");
    // The kernel answers all the same, to memory that nobody else has, and names that others have now.
    pipe.answer(2);
    let later = all(start(&slot, (6..10).map(read)), 4);
    thread::sleep(Duration::from_millis(50));
    assert!(later.iter().all(|done| done.result.is_ok()));
    assert_eq!(pipe.called(), [0, 1, 4, 5, 6, 7, 8, 9]);
    for done in done[..2].iter().chain(&later) {
        assert_eq!(done.request.bufs[0].as_bytes(), [0; BLOCK_SIZE]);
    }
    // Nothing is late any more.
    let begin = Instant::now();
    drop(slot);
    assert!(begin.elapsed() < Duration::from_millis(200));
}

/// A filter of system calls may be one thread's only.
#[test]
fn a_thread_that_is_refused_waits_for_those_in_the_ring_and_all_come_back() {
    let pipe = Pipe::new();
    let slot = slot(&pipe);
    let (said, heard) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..4 {
            let (slot, said) = (&slot, said.clone());
            scope.spawn(move || {
                let pending = start(slot, [read(number)]);
                said.send(("started", number)).unwrap();
                assert!(all(pending, 1)[0].result.is_ok());
                said.send(("done", number)).unwrap();
            });
        }
        (0..4).for_each(|_| assert_eq!(heard.recv().unwrap().0, "started"));
        thread::sleep(Duration::from_millis(50));
        scope.spawn(|| {
            refuse_after(0, PERM);
            assert!(all(start(&slot, [read(4)]), 1)[0].result.is_ok());
            said.send(("done", 4)).unwrap();
        });
        let early = heard.recv_timeout(Duration::from_millis(100));
        // The reaper comes out; the next one, and the others, come back without the ring.
        pipe.answer(4);
        let mut done: Vec<_> = (0..5).filter_map(|_| heard.recv_timeout(Duration::from_secs(10)).ok()).collect();
        assert!(early.is_err(), "one sleeps in the ring: {early:?}");
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2, 3, 4].map(|number| ("done", number)));
    });
    assert_eq!(pipe.called(), [4]);
}

#[test]
fn a_drop_does_not_wait_for_ever() {
    let pipe = Pipe::new();
    let slot = slot(&pipe);
    refuse_after(1, PERM);
    drop(start(&slot, [read(0), Request::write(1, AlignedBuf::new(1))]));
    drop(slot);
    assert_eq!(pipe.failures.lock().len(), 1);
    assert_eq!(Arc::strong_count(&pipe), 1);
}
