//! Queues one after the other on one thread, which uses its ring again.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;
use std::sync::Arc;

use f2fs_device::{AlignedBuf, BlockDevice, Request};
use f2fs_uring::{OpenOptions, UringDevice};

const BLOCKS: u64 = 256;

/// A device whose blocks hold their numbers and `mark`.
fn device(path: &Path, mark: u8) -> Arc<UringDevice> {
    let device = UringDevice::create(path, BLOCKS * 4096, OpenOptions::new()).unwrap();
    let batch = (0..BLOCKS).map(|block| Request::write(block, AlignedBuf::from_bytes(&[block as u8, mark]))).collect();
    device.submit(batch).wait().into_iter().for_each(|completion| completion.result.unwrap());
    device
}

fn read_all(device: &UringDevice, depth: usize, mark: u8) {
    let mut queue = device.queue(depth);
    let mut seen = 0;
    for block in 0..BLOCKS {
        queue.push(Request::read(block, AlignedBuf::new(1)).with_tag(block));
    }
    while let Some(completion) = queue.next_completion() {
        completion.result.unwrap();
        assert_eq!(completion.request.bufs[0].as_bytes()[..2], [completion.request.tag as u8, mark]);
        seen += 1;
    }
    assert_eq!(seen, BLOCKS);
}

#[test]
fn each_reads_its_own_device() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (device(&dir.path().join("one"), 1), device(&dir.path().join("two"), 2));
    for depth in [1, 32, 4, 128] {
        read_all(&one, depth, 1);
        read_all(&two, depth, 2);
        // Two at once: only one of them can have the ring of before.
        let held = one.queue(depth);
        read_all(&two, depth, 2);
        drop(held);
        let mut unfinished = two.queue(depth);
        (0..8).for_each(|block| unfinished.push(Request::read(block, AlignedBuf::new(1))));
    }
    read_all(&one, 8, 1);
}

/// With registered memory a ring is closed after its queue.
#[test]
fn registered_memory_does_not_go_on_to_the_next_queue() {
    let dir = tempfile::tempdir().unwrap();
    let device = device(&dir.path().join("image"), 3);
    for _ in 0..3 {
        let mut queue = device.queue(4);
        for (block, buf) in queue.buffers(4, 2).into_iter().enumerate() {
            queue.push(Request::read(2 * block as u64, buf));
        }
        while let Some(completion) = queue.next_completion() {
            completion.result.unwrap();
        }
    }
    read_all(&device, 4, 3);
}

/// The ring that stays behind holds no file.
#[test]
fn a_device_can_be_opened_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let first = device(&path, 4);
    read_all(&first, 16, 4);
    drop(first);
    let again = UringDevice::open(&path, OpenOptions::new()).unwrap();
    read_all(&again, 16, 4);
}
