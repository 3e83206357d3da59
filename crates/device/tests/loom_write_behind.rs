//! Models of writes that wait in front of a device.
#![cfg(loom)]

// mutant: write_behind_gone_before_sent, killed by: a_block_is_read_while_it_is_sent
// mutant: write_behind_passes_older, killed by: a_block_goes_to_the_device_while_an_older_one_is_sent
// mutant: write_behind_forgets_sealed, killed by: a_sealed_block_is_forgotten_while_it_is_sent
// mutant: write_behind_sends_before_flush, killed by: a_block_is_written_anew_while_it_is_sent

use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, Request, WriteBehind};
use f2fs_sync::{Arc, PlainArc, model};

const BLOCK: usize = f2fs_device::BLOCK_SIZE;
/// The block of all models.
const AT: u64 = 3;

fn byte(device: &dyn BlockDevice) -> u8 {
    let read = device.read(AT, 1).expect("memory does not fail");
    assert!(read.as_bytes().iter().all(|byte| *byte == read.as_bytes()[0]), "of two writes");
    read.as_bytes()[0]
}

fn defer(device: &WriteBehind, byte: u8) {
    let request = Request::write(AT, AlignedBuf::from_bytes(&[byte; BLOCK]));
    assert!(device.defer(&PlainArc::new(request)), "there is room");
}

/// A device in which the block waits.
fn waiting(most: u64) -> (PlainArc<MemoryDevice>, Arc<WriteBehind>) {
    let below = PlainArc::new(MemoryDevice::new(8));
    let device = Arc::new(WriteBehind::new(below.clone(), most));
    defer(&device, 1);
    (below, device)
}

/// With three preemptions, on threads that have room for some blocks on their stacks.
fn explore(name: &str, body: impl Fn() + Send + Sync + 'static) {
    model::large(name, 3, || (), move |()| body());
}

/// Flushes on a thread of its own beside `other`.
fn beside_a_flush(device: &Arc<WriteBehind>, other: impl FnOnce()) {
    let flushing = Arc::clone(device);
    let flush = model::spawn(move || flushing.flush().expect("memory does not fail"));
    other();
    flush.join().expect("the thread does not panic");
}

#[test]
fn a_block_is_read_while_it_is_sent() {
    explore("a_block_is_read_while_it_is_sent", || {
        let (below, device) = waiting(8);
        beside_a_flush(&device, || assert_eq!(byte(&*device), 1));
        assert_eq!((byte(&*below), device.waiting()), (1, 0));
    });
}

#[test]
fn a_block_is_written_anew_while_it_is_sent() {
    explore("a_block_is_written_anew_while_it_is_sent", || {
        // With room for one block, so that the room of the first write has to come back.
        for most in [1, 8] {
            let (below, device) = waiting(most);
            beside_a_flush(&device, || {
                defer(&device, 2);
                assert_eq!(byte(&*device), 2);
            });
            device.flush().expect("memory does not fail");
            assert_eq!((byte(&*below), device.waiting()), (2, 0));
        }
    });
}

#[test]
fn a_block_goes_to_the_device_while_an_older_one_is_sent() {
    explore("a_block_goes_to_the_device_while_an_older_one_is_sent", || {
        let (below, device) = waiting(8);
        beside_a_flush(&device, || {
            device.write(AT, AlignedBuf::from_bytes(&[2; BLOCK])).expect("memory does not fail");
            assert_eq!(byte(&*device), 2);
        });
        assert_eq!((byte(&*below), device.waiting()), (2, 0));
    });
}

#[test]
fn a_sealed_block_is_forgotten_while_it_is_sent() {
    explore("a_sealed_block_is_forgotten_while_it_is_sent", || {
        let (below, device) = waiting(8);
        device.seal();
        beside_a_flush(&device, || device.forget(AT, 1));
        assert_eq!((byte(&*below), device.waiting()), (1, 0));
    });
}
