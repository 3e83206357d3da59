//! The promises of every device, asked of each back end: memory, persistent memory, `io_uring` and system calls, direct
//! and through the page cache.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beds;

use std::collections::{BTreeMap, VecDeque};
use std::fs::OpenOptions as FileOptions;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;

use f2fs_device::{AlignedBuf, BLOCK_SIZE, DeviceError, DeviceErrorKind, Op, Request};
use f2fs_device_test::Random;

use beds::{BLOCKS, Bed, syscalls_direct, syscalls_tmpfs, uring_buffered, uring_direct, uring_tmpfs, uring_watched};

/// Each promise for each back end.
macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        /// One after the other: `--ignored named:: --test-threads 1`.
        mod named {
            $(
                #[test]
                #[ignore = "needs a device of 8 MiB that F2FS_TEST_DEVICE names; the guest's tests have some"]
                fn $promise() {
                    super::$promise(&crate::beds::named());
                }
            )*
        }
        promises!(@beds [$($promise),*] memory wrapped uring_direct uring_tmpfs uring_buffered uring_watched
            syscalls_direct syscalls_tmpfs pmem_memory pmem_file pmem_simulated);
    };
    (@beds $promises:tt $($bed:ident)*) => { $( promises!(@bed $bed $promises); )* };
    (@bed $bed:ident [$($promise:ident),*]) => {
        mod $bed {
            $(
                #[test]
                fn $promise() {
                    super::$promise(&crate::beds::$bed());
                }
            )*
        }
    };
}

promises! {
    what_was_written_is_read,
    ranges_are_checked,
    vectors_are_contiguous_on_the_device,
    more_vectors_than_a_call_takes,
    a_batch_larger_than_a_ring,
    completions_one_by_one,
    a_queue_keeps_its_depth,
    buffers_of_a_queue_are_like_others,
    tickets_and_queues_may_be_dropped,
    tickets_move_between_threads,
    thirty_two_threads,
    discards_and_empty_requests,
    durable_writes_and_flushes,
}

/// A block whose every word depends on its address and `salt`.
fn fill(block: &mut [u8; BLOCK_SIZE], address: u64, salt: u64) {
    Random::new((address << 20) ^ salt).fill(block);
}

fn pattern(start: u64, blocks: usize, salt: u64) -> AlignedBuf {
    let mut buf = AlignedBuf::new(blocks);
    for i in 0..blocks {
        fill(buf.block_mut(i), start + i as u64, salt);
    }
    buf
}

#[track_caller]
fn assert_pattern(buf: &AlignedBuf, start: u64, salt: u64) {
    let expected = pattern(start, buf.blocks(), salt);
    for i in 0..buf.blocks() {
        assert!(
            buf.block(i) == expected.block(i),
            "block {} is not what was written with salt {salt}",
            start + i as u64
        );
    }
}

fn what_was_written_is_read(bed: &Bed) {
    let device = &bed.device;
    assert_eq!(device.info().blocks, BLOCKS);
    assert!(device.info().dma_alignment as usize <= BLOCK_SIZE && device.info().logical_sector as usize <= BLOCK_SIZE);
    assert!(
        device.read(BLOCKS - 1, 1).unwrap().as_bytes().iter().all(|&byte| byte == 0),
        "a new device reads as zeros"
    );
    for (start, blocks, salt) in [(0, 1, 1), (1, 512, 2), (BLOCKS - 3, 3, 3), (5, 7, 4)] {
        device.write(start, pattern(start, blocks, salt)).unwrap();
        assert_pattern(&device.read(start, blocks).unwrap(), start, salt);
    }
    let mut kept = pattern(9, 2, 5);
    device.write_from(9, &mut kept).unwrap();
    assert_pattern(&kept, 9, 5);
    device.read_into(5, &mut kept).unwrap();
    assert_pattern(&kept, 5, 4);
    device.write_slice(100, b"padded").unwrap();
    let read = device.read(100, 1).unwrap();
    assert!(read.as_bytes().starts_with(b"padded\0") && read.as_bytes()[6..].iter().all(|&byte| byte == 0));
    if let Some(path) = &bed.path {
        device.flush().unwrap();
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len() as u64, BLOCKS * BLOCK_SIZE as u64 + 100);
        assert_eq!(&bytes[..BLOCK_SIZE], pattern(0, 1, 1).as_bytes(), "the file holds what was written");
    }
}

fn ranges_are_checked(bed: &Bed) {
    let outside = |result: Result<(), DeviceError>, start, blocks| {
        let error = result.unwrap_err();
        assert_eq!(error.kind, DeviceErrorKind::OutOfRange { device_blocks: BLOCKS });
        assert_eq!((error.start, error.blocks), (start, blocks));
    };
    outside(bed.device.read(BLOCKS, 1).map(drop), BLOCKS, 1);
    outside(bed.device.read(BLOCKS - 1, 2).map(drop), BLOCKS - 1, 2);
    outside(bed.device.write(u64::MAX, AlignedBuf::new(2)), u64::MAX, 2);
    outside(bed.device.write_slice(BLOCKS, b"x"), BLOCKS, 1);
    // In a batch, the others are done.
    let batch = [0, BLOCKS, 1].map(|start| Request::write(start, pattern(start, 1, 7))).to_vec();
    let results = bed.device.submit(batch).wait().into_iter().map(|done| done.result.is_ok());
    assert_eq!(results.collect::<Vec<_>>(), [true, false, true]);
    assert_pattern(&bed.device.read(0, 2).unwrap(), 0, 7);
}

fn vectors_are_contiguous_on_the_device(bed: &Bed) {
    let bufs = |salt| {
        let mut start = 50;
        [1, 3, 0, 2, 64].map(|blocks| {
            let buf = pattern(start, blocks, salt);
            start += blocks as u64;
            buf
        })
    };
    let write = Request::vectored(Op::Write, 50, bufs(1).to_vec());
    bed.device.execute(write).result.unwrap();
    assert_pattern(&bed.device.read(50, 70).unwrap(), 50, 1);
    let bufs = [7, 60, 3].map(AlignedBuf::new).to_vec();
    let read = bed.device.execute(Request::vectored(Op::Read, 50, bufs)).into_bufs().unwrap();
    for (buf, start) in read.iter().zip([50, 57, 117]) {
        assert_pattern(buf, start, 1);
    }
}

fn more_vectors_than_a_call_takes(bed: &Bed) {
    let bufs = (0..1500).map(|i| pattern(100 + i, 1, 3)).collect();
    bed.device.execute(Request::vectored(Op::Write, 100, bufs)).result.unwrap();
    assert_pattern(&bed.device.read(100, 1500).unwrap(), 100, 3);
    let bufs = (0..1500).map(|_| AlignedBuf::new(1)).collect();
    let bufs = bed.device.execute(Request::vectored(Op::Read, 100, bufs)).into_bufs().unwrap();
    for (i, buf) in bufs.iter().enumerate() {
        assert_pattern(buf, 100 + i as u64, 3);
    }
}

fn a_batch_larger_than_a_ring(bed: &Bed) {
    let writes = (0..BLOCKS).map(|i| Request::write(i, pattern(i, 1, 11)).with_tag(i)).collect();
    for (i, done) in bed.device.submit(writes).wait().into_iter().enumerate() {
        assert_eq!(done.request.tag, i as u64, "completions come in request order");
        done.result.unwrap();
    }
    let reads = (0..BLOCKS).rev().map(|i| Request::read(i, AlignedBuf::new(1))).collect();
    for done in bed.device.submit(reads).wait() {
        let start = done.request.start;
        assert_pattern(&done.into_buf().unwrap(), start, 11);
    }
}

fn completions_one_by_one(bed: &Bed) {
    bed.device.write(0, pattern(0, 512, 1)).unwrap();
    let reads =
        (0..64).map(|i| Request::read(i * 8, AlignedBuf::new(8))).chain([Request::read(BLOCKS, AlignedBuf::new(1))]);
    let mut ticket = bed.device.submit(reads.collect());
    let mut seen = [false; 65];
    for round in 0..40 {
        let next = if round % 2 == 0 { ticket.wait_any() } else { ticket.try_any() };
        let Some((index, done)) = next else {
            assert_eq!(round % 2, 1, "waiting returned nothing though {} are left", ticket.remaining());
            continue;
        };
        assert!(!std::mem::replace(&mut seen[index], true), "handed out twice");
        let start = done.request.start;
        assert_eq!(done.result.is_err(), index == 64);
        if let Ok(buf) = done.into_buf() {
            assert_pattern(&buf, start, 1);
        }
    }
    let left = ticket.remaining();
    assert_eq!(left, seen.iter().filter(|&&seen| !seen).count());
    let rest: Vec<u64> = ticket.wait().into_iter().map(|done| done.request.start).collect();
    assert_eq!(rest.len(), left);
    assert!(rest.is_sorted(), "the rest comes in request order");
}

fn a_queue_keeps_its_depth(bed: &Bed) {
    bed.device.write(0, pattern(0, 2048, 1)).unwrap();
    for depth in [1, 5, 32, 300] {
        let mut queue = bed.device.queue(depth);
        assert_eq!(queue.depth(), depth);
        let mut starts: VecDeque<u64> = (0..1000).map(|i| i * 7919 % BLOCKS).collect();
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        let mut done = 0;
        // More pushes than the depth: the queue keeps what finishes meanwhile.
        for tag in 0..depth as u64 + 3 {
            let start = starts.pop_front().unwrap();
            expected.insert(tag, start);
            queue.push(Request::read(start, AlignedBuf::new(1)).with_tag(tag));
        }
        assert_eq!(queue.in_flight(), depth + 3);
        let mut tag = depth as u64 + 3;
        loop {
            let next = if done % 5 == 4 { queue.try_completion() } else { None };
            let Some(completion) = next.or_else(|| queue.next_completion()) else { break };
            done += 1;
            let start = expected.remove(&completion.request.tag).expect("each tag comes back once");
            assert_eq!(completion.request.start, start);
            completion.result.as_ref().unwrap();
            assert_pattern(&completion.request.bufs[0], start, 1);
            if let Some(start) = starts.pop_front() {
                expected.insert(tag, start);
                queue.push(Request { start, tag, ..completion.request });
                tag += 1;
            }
        }
        assert_eq!((done, queue.in_flight(), expected.len()), (1000, 0, 0));
        queue.push(Request::read(BLOCKS, AlignedBuf::new(1)));
        let refused = queue.next_completion().unwrap();
        assert!(matches!(refused.result.unwrap_err().kind, DeviceErrorKind::OutOfRange { .. }));
    }
}

fn buffers_of_a_queue_are_like_others(bed: &Bed) {
    let mut queue = bed.device.queue(4);
    let mut bufs = queue.buffers(4, 16);
    assert!(bufs.iter().all(|buf| buf.blocks() == 16 && buf.as_bytes().iter().all(|&byte| byte == 0)));
    for round in 0..3 {
        for (buf, start) in bufs.drain(..).zip((0..).step_by(16)) {
            let mut buf = buf;
            for i in 0..16 {
                fill(buf.block_mut(i), start + i as u64, round);
            }
            queue.push(Request::write(start, buf));
        }
        let mut back = Vec::new();
        while let Some(completion) = queue.next_completion() {
            back.push(completion.into_buf().unwrap());
        }
        assert_pattern(&bed.device.read(0, 64).unwrap(), 0, round);
        // A part of a buffer, one in a vector, one outside the queue, one that grows, one that is dropped.
        let mut buf = back.pop().unwrap();
        buf.resize(5);
        queue.push(Request::read(3, buf));
        let buf = queue.next_completion().unwrap().into_buf().unwrap();
        assert_pattern(&buf, 3, round);
        let pair = Request::vectored(Op::Read, 1, vec![buf, back.pop().unwrap()]);
        let mut pair = bed.device.execute(pair).into_bufs().unwrap();
        assert_pattern(&pair[1], 6, round);
        assert_pattern(&pair[0], 1, round);
        pair[1].resize(40);
        queue.push(Request::read(24, pair.pop().unwrap()));
        assert_pattern(&queue.next_completion().unwrap().into_buf().unwrap(), 24, round);
        drop((back, pair));
        bufs = queue.buffers(4, 16);
        assert_eq!(bufs.len(), 4);
    }
    drop(queue);
    bufs[0].block_mut(15)[4095] = 1; // the memory outlives the queue
    bed.device.write(0, bufs.remove(0)).unwrap();
    assert_eq!(bed.device.read(15, 1).unwrap().block(0)[4095], 1);
}

fn tickets_and_queues_may_be_dropped(bed: &Bed) {
    for round in 0..20 {
        let writes = (0..200).map(|i| Request::write(i, pattern(i, 1, round))).collect();
        let mut ticket = bed.device.submit(writes);
        if round % 2 == 0 {
            drop(ticket.wait_any());
        }
        drop(ticket);
        let reads = (0..600).map(|i| Request::read(i, AlignedBuf::new(3))).collect();
        drop(bed.device.submit(reads));
        let mut queue = bed.device.queue(8);
        for i in 0..20 {
            queue.push(Request::write(1000 + i, pattern(1000 + i, 1, round)));
        }
        queue.submit();
    }
    // Blocks of a dropped queue or ticket are written once the slots were used again, and nothing else was touched.
    let done = bed.device.submit((0..600).map(|i| Request::read(i, AlignedBuf::new(1))).collect()).wait();
    assert!(done.iter().all(|done| done.result.is_ok()));
    assert!(bed.device.read(300, 1).unwrap().as_bytes().iter().all(|&byte| byte == 0));
}

fn tickets_move_between_threads(bed: &Bed) {
    bed.device.write(0, pattern(0, 512, 1)).unwrap();
    for _ in 0..20 {
        let device = Arc::clone(&bed.device);
        // The thread that submits exits before anybody waits.
        let submitter = move || device.submit((0..128).map(|i| Request::read(i * 4, AlignedBuf::new(4))).collect());
        let ticket = thread::spawn(submitter).join().unwrap();
        for done in ticket.wait() {
            let start = done.request.start;
            assert_pattern(&done.into_buf().unwrap(), start, 1);
        }
    }
}

fn thirty_two_threads(bed: &Bed) {
    const THREADS: u64 = 32;
    const SHARE: u64 = BLOCKS / THREADS;
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, barrier) = (&bed.device, &barrier);
            scope.spawn(move || {
                barrier.wait();
                let first = thread * SHARE;
                for round in 0..12 {
                    let salt = thread * 100 + round;
                    let writes = (0..SHARE).map(|i| Request::write(first + i, pattern(first + i, 1, salt))).collect();
                    let ticket = device.submit(writes);
                    assert_eq!(ticket.wait().into_iter().filter(|done| done.result.is_ok()).count() as u64, SHARE);
                    for i in [0, round, SHARE - 1] {
                        assert_pattern(&device.read(first + i, 1).unwrap(), first + i, salt);
                    }
                    if round % 4 == 0 {
                        device.flush().unwrap();
                    }
                    assert_pattern(&device.read(first, SHARE as usize).unwrap(), first, salt);
                }
            });
        }
    });
}

fn discards_and_empty_requests(bed: &Bed) {
    let device = &bed.device;
    device.write(0, pattern(0, 64, 1)).unwrap();
    let discards = device.info().supports_discard;
    let pmem = device.info().description.starts_with("persistent memory");
    assert!(discards != pmem, "memory and every file system here take holes, and persistent memory has none");
    let done = if discards { Ok(()) } else { Err(DeviceErrorKind::Unsupported) };
    assert_eq!(device.discard(8, 16).map_err(|error| error.kind), done);
    // Here, discarded blocks read as zeros; in general what they hold is undefined.
    let discarded = device.read(8, 16).unwrap();
    if discards {
        assert!(discarded.as_bytes().iter().all(|&byte| byte == 0));
    } else {
        assert_pattern(&discarded, 8, 1);
    }
    assert_pattern(&device.read(0, 8).unwrap(), 0, 1);
    assert_pattern(&device.read(24, 40).unwrap(), 24, 1);
    let batch = vec![
        Request::discard(24, 1),
        Request::read(BLOCKS, AlignedBuf::default()),
        Request::discard(0, 0),
        Request::vectored(Op::Discard { blocks: 1 }, 0, vec![AlignedBuf::new(1)]),
        Request::discard(BLOCKS, 1),
        Request::vectored(Op::Write, 3, vec![]),
    ];
    let kinds: Vec<_> =
        device.submit(batch).wait().into_iter().map(|done| done.result.map_err(|error| error.kind)).collect();
    let malformed = Err(DeviceErrorKind::Malformed { reason: "a discard carries no buffers" });
    let outside = Err(DeviceErrorKind::OutOfRange { device_blocks: BLOCKS });
    assert_eq!(kinds, [done.clone(), Ok(()), done, malformed, outside, Ok(())]);
    assert!(device.submit(vec![]).wait().is_empty());
    assert_pattern(&device.read(0, 8).unwrap(), 0, 1);
}

fn durable_writes_and_flushes(bed: &Bed) {
    bed.device.write_fua(40, pattern(40, 3, 2)).unwrap();
    bed.device.flush().unwrap();
    let batch = (0..10).map(|i| Request::write_fua(i, pattern(i, 1, 2))).collect();
    assert!(bed.device.submit(batch).wait().iter().all(|done| done.result.is_ok()));
    let mut queue = bed.device.queue(4);
    queue.push(Request::write_fua(10, pattern(10, 1, 2)));
    queue.next_completion().unwrap().result.unwrap();
    drop(queue);
    assert_pattern(&bed.device.read(0, 11).unwrap(), 0, 2);
    assert_pattern(&bed.device.read(40, 3).unwrap(), 40, 2);
}

/// The file gets shorter below the open device: typed errors, no hang, and the rest still works.
fn truncated(bed: &Bed, path: &Path) {
    bed.device.write(0, pattern(0, 100, 1)).unwrap();
    bed.device.flush().unwrap();
    let file = FileOptions::new().write(true).open(path).unwrap();
    file.set_len(50 * BLOCK_SIZE as u64 + 1024).unwrap();
    let short = |start: u64, blocks: usize, transferred: u64| {
        let expected = (blocks * BLOCK_SIZE) as u64;
        let error = bed.device.read(start, blocks).unwrap_err();
        assert_eq!(error.kind, DeviceErrorKind::ShortTransfer { transferred, expected }, "{start} + {blocks}");
        let bufs = (0..blocks).map(|_| AlignedBuf::new(1)).collect();
        let error = bed.device.execute(Request::vectored(Op::Read, start, bufs)).result.unwrap_err();
        assert_eq!(
            error.kind,
            DeviceErrorKind::ShortTransfer { transferred, expected },
            "{start} + {blocks}, vectored"
        );
    };
    short(60, 4, 0);
    short(48, 4, 2 * BLOCK_SIZE as u64 + 1024);
    assert_pattern(&bed.device.read(0, 50).unwrap(), 0, 1);
    bed.device.write(60, pattern(60, 1, 2)).unwrap();
    assert_pattern(&bed.device.read(60, 1).unwrap(), 60, 2);
}

#[test]
fn a_file_truncated_underneath() {
    for bed in [uring_direct(), uring_tmpfs(), uring_buffered(), uring_watched(), syscalls_direct(), syscalls_tmpfs()] {
        let path = bed.path.clone().unwrap();
        truncated(&bed, &path);
    }
}
