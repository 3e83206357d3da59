use std::sync::Arc;
use std::thread;

use super::*;
use crate::device::tests::Forgetful;
use crate::{DeviceErrorKind, MemoryDevice};

fn block(byte: u8) -> AlignedBuf {
    AlignedBuf::from_bytes(&[byte; BLOCK_SIZE])
}

fn write(start: u64, bytes: &[u8]) -> Arc<Request> {
    let mut data = AlignedBuf::default();
    bytes.iter().for_each(|byte| data.push(&[*byte; BLOCK_SIZE]));
    Arc::new(Request::write(start, data))
}

/// The first byte of each of these blocks.
fn bytes(device: &dyn BlockDevice, start: u64, blocks: usize) -> Vec<u8> {
    device.read(start, blocks).expect("a read").as_blocks().iter().map(|block| block.0[0]).collect()
}

fn pair(most: u64) -> (Arc<MemoryDevice>, WriteBehind) {
    let below = Arc::new(MemoryDevice::new(1000));
    (below.clone(), WriteBehind::new(below, most))
}

#[test]
fn what_waits_is_read_and_a_flush_writes_it() {
    let (below, device) = pair(100);
    device.write(62, block(9)).unwrap();
    assert!(device.defer(&write(63, &[1, 2, 3])));
    assert_eq!((bytes(&device, 63, 3), bytes(&*below, 63, 3)), (vec![1, 2, 3], vec![0, 0, 0]));
    // Newer data takes the place of older data, and its room.
    assert!(device.defer(&write(64, &[7])));
    assert_eq!(device.waiting(), 3);
    assert_eq!(bytes(&device, 63, 3), [1, 7, 3]);
    device.flush().unwrap();
    assert_eq!((bytes(&*below, 62, 4), device.waiting()), (vec![9, 1, 7, 3], 0));
    assert!(device.defer(&write(200, &[5; 100])), "all of the room is back");
}

#[test]
fn a_read_across_what_waits_finds_all_of_it() {
    let (below, device) = pair(100);
    device.write(10, block(1)).unwrap();
    assert!(device.defer(&write(11, &[2])));
    assert_eq!(bytes(&device, 10, 3), [1, 2, 0]);
    assert_eq!(bytes(&*below, 11, 1), [2]);
    // In one batch: from memory, from the device.
    assert!(device.defer(&write(12, &[3])));
    let batch = [10, 12, 13].map(|at| Request::read(at, AlignedBuf::new(1)).with_tag(at));
    let done = device.submit(batch.into()).wait();
    let read: Vec<_> = done.iter().map(|done| (done.request.tag, done.request.bufs[0].as_bytes()[0])).collect();
    assert_eq!(read, [(10, 1), (12, 3), (13, 0)]);
    let beyond = device.read(999, 2).unwrap_err();
    assert!(matches!(beyond.kind, DeviceErrorKind::OutOfRange { .. }), "{beyond}");
}

/// It is not taken for written, and waits on.
#[test]
fn what_the_device_loses_is_an_error() {
    let device = WriteBehind::new(Arc::new(Forgetful::new()), 10);
    assert!(device.defer(&write(3, &[1, 2])));
    for _ in 0..2 {
        let lost = device.flush().unwrap_err();
        assert_eq!((lost.kind, lost.start), (DeviceErrorKind::Lost, 3));
        assert_eq!(device.waiting(), 2);
    }
}

#[test]
fn what_is_forgotten_is_never_written_unless_it_was_sealed() {
    let (below, device) = pair(100);
    assert!(device.defer(&write(5, &[1, 2, 3])));
    device.forget(6, 1);
    device.seal();
    device.forget(5, 1);
    assert!(device.defer(&write(8, &[4])));
    device.forget(8, 1);
    assert_eq!(device.waiting(), 2);
    device.flush().unwrap();
    assert_eq!(bytes(&*below, 5, 4), [1, 0, 3, 0]);
}

#[test]
fn other_writes_and_discards_take_the_place_of_what_waits() {
    let (below, device) = pair(100);
    assert!(device.defer(&write(5, &[1, 2, 3])));
    device.write(6, block(9)).unwrap();
    device.discard(7, 1).unwrap();
    device.flush().unwrap();
    assert_eq!(bytes(&*below, 5, 3), [1, 9, 0]);
    assert!(!device.defer(&Arc::new(Request::write_fua(5, block(1)))), "only what may wait");
    assert!(!device.defer(&write(999, &[1, 2])), "within the device");
}

#[test]
fn without_room_all_is_sent_first() {
    let (below, device) = pair(8);
    for at in 0..20_u64 {
        assert!(device.defer(&write(at * 3, &[at as u8 + 1])));
        assert!(device.waiting() <= 8);
    }
    assert!(!device.defer(&write(100, &[1; 9])), "more than there will ever be room for");
    device.flush().unwrap();
    for at in 0..20_u64 {
        assert_eq!(bytes(&*below, at * 3, 1), [at as u8 + 1]);
    }
}

#[test]
fn the_memory_of_a_write_is_counted_while_one_of_its_blocks_waits() {
    let (below, device) = pair(100);
    assert!(device.defer(&write(0, &[1; 64])));
    device.forget(0, 63);
    assert_eq!(device.waiting(), 1);
    assert!(device.defer(&write(200, &[2; 36])));
    assert_eq!((device.waiting(), bytes(&*below, 63, 1)), (37, vec![0]));
    assert!(device.defer(&write(300, &[3])), "after all that waited was sent");
    assert_eq!((device.waiting(), bytes(&*below, 63, 1)), (1, vec![1]));
    device.forget(300, 1);
    assert!(device.defer(&write(400, &[4; 100])), "all of the room is back");
}

#[test]
fn threads_read_what_they_deferred_while_others_flush() {
    let (_, device) = pair(64);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let device = &device;
            scope.spawn(move || {
                for round in 0..400_u64 {
                    let (at, byte) = (thread * 200 + round % 190, (round % 250) as u8 + 1);
                    assert!(device.defer(&write(at, &[byte, byte])));
                    if round % 16 == thread {
                        device.flush().unwrap();
                    }
                    assert_eq!(bytes(device, at, 2), [byte; 2], "thread {thread}, round {round}");
                }
            });
        }
    });
}
