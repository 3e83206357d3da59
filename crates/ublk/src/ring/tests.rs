//! Queues on files that are no driver's.

use super::*;
use crate::abi::DESCRIPTORS_STRIDE;

/// A driver that registers nothing: the movement fails, and nothing else does.
#[test]
fn without_registered_pages_a_movement_fails() {
    use rustix::fs::{MemfdFlags, memfd_create};
    let memory = || File::from(memfd_create("ublk", MemfdFlags::CLOEXEC).unwrap());
    let (driver, device) = (memory(), memory());
    driver.set_len(DESCRIPTORS_STRIDE).unwrap();
    device.set_len(1 << 20).unwrap();
    let flags = [feature::AUTO_BUF_REG, feature::SUPPORT_ZERO_COPY];
    for flags in flags.map(|flag| flag | feature::USER_COPY) {
        let record = DeviceRecord { depth: 4, max_io_bytes: 8192, flags, ..DeviceRecord::default() };
        let shape = QueueShape::of(&record, 0, 4096);
        assert!(shape.is_apart && shape.lending.lends(&Descriptor { count: 8, ..Descriptor::default() }));
        assert_eq!(shape.entries(), 8, "each tag may have two that the kernel has not taken");
        let (stays, _stay) = io::pipe().unwrap();
        let prepared = Prepared::new(shape, Some(device.as_fd()), &stays).unwrap();
        let mut channel = prepared.fetch(&driver).unwrap();
        // A file in memory takes no commands.
        let mut events = Vec::new();
        channel.arrive(Wish { requests: 1, micros: 0 }, &mut events).unwrap_err();
        assert!(channel.has_ended() && events.is_empty());
        for movement in [Movement::Fill { start: 1, blocks: 2 }, Movement::Drain { start: 1, blocks: 1 }] {
            channel.begin(movement, 3, AlignedBuf::default());
            while events.is_empty() {
                channel.enter(Wish { requests: 1, micros: 0 }).unwrap();
                let _ = channel.arrive(Wish::NOTHING, &mut events);
            }
            let Some(Event::Moved(moved)) = events.pop() else { panic!("{movement:?} did not end") };
            assert_eq!((moved.tag, moved.movement), (3, movement));
            assert!(moved.result.is_err() && moved.buf.is_empty(), "{:?}", moved.result);
            assert_eq!(channel.tags[3].is_registered, flags & feature::AUTO_BUF_REG == 0);
            // Of a commit that was linked to it nothing is told.
            let _ = channel.arrive(Wish::NOTHING, &mut events);
            assert!(events.is_empty() && channel.alive == 0);
        }
        // What an entry of ours has registered, one of ours ends, before the request is over.
        let told = channel.untold;
        channel.commit(3, 0, 0);
        assert_eq!(channel.untold - told, if flags & feature::AUTO_BUF_REG == 0 { 2 } else { 1 });
        assert!(!channel.tags[3].is_registered);
    }
}

#[test]
fn a_queue_hears_that_its_server_leaves() {
    let shape = QueueShape { number: 0, depth: 4, max_io_bytes: 4096, is_apart: false, lending: Lending::Never };
    let (stays, stay) = io::pipe().unwrap();
    let mut prepared = Prepared::new(shape, None, &stays).unwrap();
    prepared.ring.submit().unwrap();
    assert_eq!(prepared.ring.completion().len(), 0, "nothing has happened");
    drop(stay);
    prepared.ring.submit_and_wait(1).unwrap();
    assert_eq!(prepared.ring.completion().next().map(|entry| entry.user_data()), Some(LEAVE));
}
