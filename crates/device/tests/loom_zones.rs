//! Models of the zones: a zone that two threads open at once, and two zones that take turns at the only place.
#![cfg(loom)]

// mutant: zones_check_again, killed by: two_appends_share_no_block
// mutant: zones_open_twice, killed by: two_zones_take_turns

use f2fs_device::{AlignedBuf, MemoryDevice, ZoneLayout, ZoneState, ZonedDevice};
use f2fs_sync::{Arc, model, thread};

fn device(layout: ZoneLayout) -> Arc<ZonedDevice<MemoryDevice>> {
    Arc::new(ZonedDevice::new(MemoryDevice::new(6), layout).expect("a layout"))
}

/// Appends a block to each of two zones and returns where they went.
fn append(device: &ZonedDevice<MemoryDevice>, zones: [u32; 2]) -> [u64; 2] {
    zones.map(|zone| device.append(zone, AlignedBuf::new(1)).expect("there is room"))
}

#[test]
fn two_appends_share_no_block() {
    model::exhaustive("two_appends_share_no_block", || {
        let device = device(ZoneLayout::new(3));
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || append(&device, [0, 0]))
        };
        let mine = device.append(0, AlignedBuf::new(1)).expect("there is room");
        let mut all = other.join().expect("the thread does not panic").to_vec();
        all.push(mine);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(device.zone(0).expect("it exists").state, ZoneState::Full);
    });
}

#[test]
fn two_zones_take_turns() {
    model::bounded("two_zones_take_turns", 2, || {
        let device = device(ZoneLayout::new(3).with_limits(1, 2));
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || append(&device, [0, 1]))
        };
        append(&device, [1, 0]);
        other.join().expect("the thread does not panic");
        let mut states: Vec<_> = device.report().map(|zone| (zone.state, zone.written)).collect();
        states.sort_by_key(|(state, _)| state.is_open());
        assert_eq!(states, [(ZoneState::Closed, Some(2)), (ZoneState::ImplicitlyOpen, Some(2))]);
    });
}
