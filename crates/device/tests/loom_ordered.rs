//! Models of writes that are held back: in front of a gap, at the limit of active zones, and by an owner that gives up.
#![cfg(loom)]

// mutant: ordered_zone_waits_for_those_in_front, killed by: writes_arrive_in_order
// mutant: ordered_zone_sends_one_at_a_time, killed by: writes_arrive_in_order
// mutant: ordered_zone_wakes, killed by: writes_arrive_in_order
// mutant: ordered_zone_lets_the_next_one_in, killed by: a_zone_waits_for_its_place
// mutant: ordered_zone_wakes_when_given_up, killed by: nobody_waits_for_what_never_comes

use f2fs_device::{
    AlignedBuf, BlockDevice, DeviceErrorKind, MemoryDevice, OrderedZones, ZoneError, ZoneLayout, ZoneState, ZonedDevice,
};
use f2fs_device_test::LateDevice;
use f2fs_sync::{Arc, PlainArc, model, thread};

fn zoned(layout: ZoneLayout) -> ZonedDevice<MemoryDevice> {
    ZonedDevice::new(MemoryDevice::new(4), layout).expect("a layout")
}

/// Its requests happen when they are waited for.
fn late(layout: ZoneLayout) -> LateDevice {
    LateDevice::new(PlainArc::new(zoned(layout)))
}

fn ordered(device: impl BlockDevice) -> Arc<OrderedZones> {
    Arc::new(OrderedZones::new(PlainArc::new(device)).expect("a report"))
}

fn in_order(device: impl BlockDevice) {
    let device = ordered(device);
    let other = {
        let device = Arc::clone(&device);
        thread::spawn(move || device.write(1, AlignedBuf::new(1)))
    };
    device.write(0, AlignedBuf::new(1)).expect("it is the next one");
    other.join().expect("the thread does not panic").expect("it waits for the other one");
    assert_eq!(device.write_pointer(0), Some(2));
}

#[test]
fn writes_arrive_in_order() {
    model::exhaustive("writes_arrive_in_order", || in_order(zoned(ZoneLayout::new(4))));
}

#[test]
fn late_writes_arrive_in_order() {
    model::bounded("late_writes_arrive_in_order", 3, || in_order(late(ZoneLayout::new(4))));
}

#[test]
fn a_zone_waits_for_its_place() {
    model::bounded("a_zone_waits_for_its_place", 3, || {
        let device = ordered(late(ZoneLayout::new(2).with_limits(1, 1)));
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || device.write(2, AlignedBuf::new(2)))
        };
        for block in [0, 1] {
            device.write(block, AlignedBuf::new(1)).expect("its zone has the place, or gets it");
        }
        other.join().expect("the thread does not panic").expect("its zone gets the place");
        let states: Vec<_> = device.report_zones(0, 2).expect("a report").iter().map(|zone| zone.state).collect();
        assert_eq!(states, [ZoneState::Full; 2]);
        assert_eq!(device.active(), []);
    });
}

#[test]
fn nobody_waits_for_what_never_comes() {
    model::exhaustive("nobody_waits_for_what_never_comes", || {
        let device = ordered(zoned(ZoneLayout::new(4)));
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || device.write(1, AlignedBuf::new(1)))
        };
        device.give_up();
        let error = other.join().expect("the thread does not panic").expect_err("nothing is in front of it");
        assert!(
            matches!(error.kind, DeviceErrorKind::Zone(ZoneError::GivenUp { zone: 0, write_pointer: 0 })),
            "{error}"
        );
    });
}
