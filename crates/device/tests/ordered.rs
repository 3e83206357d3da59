//! Writes in their order: when they wait, which of them become one request, and the state after a failure.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{
    AlignedBuf, BlockDevice, DeviceErrorKind, MemoryDevice, Operation, OrderedZones, Request, ZoneChange, ZoneError,
    ZoneLayout, ZoneState, ZonedDevice,
};
use f2fs_device_test::{Fault, FaultDevice, FaultRule, LateDevice, Random};
use f2fs_sync::PlainArc;

const ZONE: u64 = 64;

fn device(layout: ZoneLayout) -> (PlainArc<ZonedDevice<MemoryDevice>>, OrderedZones) {
    let zoned = PlainArc::new(ZonedDevice::new(MemoryDevice::new(16 * ZONE), layout).unwrap());
    (zoned.clone(), OrderedZones::new(zoned).unwrap())
}

fn block(number: u64) -> AlignedBuf {
    AlignedBuf::from_bytes(&number.to_le_bytes())
}

#[test]
fn threads_write_in_any_order() {
    let (zoned, ordered) = device(ZoneLayout::new(ZONE).with_capacity(48).with_conventional(1).with_limits(3, 3));
    write_in_any_order(&zoned, &ordered);
    let (zoned, _) = device(ZoneLayout::new(ZONE).with_capacity(48).with_conventional(1).with_limits(3, 3));
    // Requests that happen when somebody waits for them: whoever waits has to wait for those of others.
    let late = OrderedZones::new(PlainArc::new(LateDevice::new(zoned.clone()))).unwrap();
    write_in_any_order(&zoned, &late);
}

fn write_in_any_order(zoned: &ZonedDevice<MemoryDevice>, ordered: &OrderedZones) {
    // Each block of six zones, by four threads, each in an order of its own; a zone's rest lies behind its capacity.
    let blocks: Vec<u64> = (1..7).flat_map(|zone| zone * ZONE..zone * ZONE + 48).collect();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let blocks = &blocks;
            scope.spawn(move || {
                let mut random = Random::new(thread);
                // Far enough apart that the limit lets all of a window begin.
                for window in blocks.chunks(2 * 48) {
                    let mut own: Vec<u64> = window.iter().filter(|block| *block % 4 == thread).copied().collect();
                    (0..own.len()).for_each(|at| own.swap(at, random.below(at + 1)));
                    let tickets: Vec<_> =
                        own.iter().map(|at| ordered.submit(vec![Request::write(*at, block(*at))])).collect();
                    for (at, ticket) in own.iter().zip(tickets) {
                        let mut completions = ticket.wait();
                        let completion = completions.pop().unwrap();
                        assert_eq!(completion.request.start, *at);
                        assert_eq!(completion.into_buf().unwrap().as_bytes()[..8], at.to_le_bytes());
                    }
                }
            });
        }
    });
    for at in blocks {
        assert_eq!(ordered.read(at, 1).unwrap().as_bytes()[..8], at.to_le_bytes());
    }
    assert!((1..7).all(|zone| zoned.zone(zone).unwrap().state == ZoneState::Full));
    assert_eq!(ordered.active(), []);
}

#[test]
fn what_is_held_goes_as_one() {
    let (_, ordered) = device(ZoneLayout::new(ZONE));
    let held = ordered.submit((1..40).rev().map(|at| Request::write(at, block(at)).with_tag(at)).collect());
    assert_eq!(ordered.write_pointer(0), Some(0));
    ordered.write(0, block(0)).unwrap();
    assert_eq!(ordered.write_pointer(0), Some(40));
    let tags: Vec<u64> = held.wait().iter().map(|completion| completion.request.tag).collect();
    assert_eq!(tags, (1..40).rev().collect::<Vec<_>>());
    // Conventional blocks, reads and writes together.
    let mixed = vec![Request::read(0, AlignedBuf::new(1)), Request::write(40, block(40))];
    assert!(ordered.submit(mixed).wait().iter().all(|completion| completion.result.is_ok()));
}

#[test]
fn writes_that_can_never_be_written_are_refused() {
    let (_, ordered) = device(ZoneLayout::new(ZONE).with_capacity(48));
    let refused = |start: u64, blocks: usize| ordered.write(start, AlignedBuf::new(blocks)).unwrap_err().kind;
    assert_eq!(refused(40, 9), DeviceErrorKind::Zone(ZoneError::Capacity { zone: 0, end: 48 }));
    ordered.write(0, AlignedBuf::new(4)).unwrap();
    let passed = ZoneError::WritePointer { zone: 0, write_pointer: 4 };
    assert_eq!(refused(3, 1), DeviceErrorKind::Zone(passed));
    let waits = ordered.submit(vec![Request::write(8, AlignedBuf::new(4))]);
    assert_eq!(refused(6, 4), DeviceErrorKind::Zone(passed), "some of it waits already");
    assert_eq!(refused(10, 4), DeviceErrorKind::Zone(passed));
    assert!(matches!(refused(16 * ZONE - 1, 2), DeviceErrorKind::OutOfRange { .. }));
    ordered.give_up();
    let error = waits.wait().pop().unwrap().result.unwrap_err();
    assert!(error.to_string().contains("the write pointer of zone 0 is at block 4"), "{error}");
}

#[test]
fn a_failure_closes_its_zone_and_no_other() {
    let faulty = FaultDevice::new(PlainArc::new(MemoryDevice::new(16 * ZONE)));
    faulty.arm(FaultRule::on([Operation::Write]).after(1).fault(Fault::Error(5)));
    let zoned = ZonedDevice::new(faulty, ZoneLayout::new(ZONE).with_limits(1, 1)).unwrap();
    let ordered = OrderedZones::new(PlainArc::new(zoned)).unwrap();
    ordered.write(0, AlignedBuf::new(2)).unwrap();
    let behind = ordered.submit(vec![Request::write(4, AlignedBuf::new(2))]);
    let failed = ordered.write(2, AlignedBuf::new(2)).unwrap_err();
    assert_eq!(failed.kind, DeviceErrorKind::from_errno(5));
    assert_eq!(behind.wait().pop().unwrap().result.unwrap_err().kind, failed.kind);
    assert_eq!(ordered.write_pointer(0), None);
    // Its place is not kept from others for good; the device itself has it until the zone is finished.
    ordered.change_zone(0, ZoneChange::Finish).unwrap();
    ordered.write(ZONE, AlignedBuf::new(2)).unwrap();
    ordered.change_zone(0, ZoneChange::Reset).unwrap();
    assert_eq!(ordered.write_pointer(0), Some(0));
    assert_eq!(ordered.active(), [ZONE]);
}
