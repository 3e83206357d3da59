//! The zoned device against the naive model of `zone_model/mod.rs`, and what that leaves out.
#![cfg(not(loom))]

mod zone_model;

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, DeviceErrorKind, MemoryDevice, Operation, Request, ZoneError, ZoneLayout,
    ZoneState, ZonedDevice,
};
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_sync::Arc;
use proptest::{collection::vec, prelude::*};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn commands_agree_with_a_naive_model(bytes in vec(any::<u8>(), 0..400)) {
        zone_model::run(&bytes);
    }
}

#[test]
fn layouts_that_make_no_sense_are_refused_with_their_numbers() {
    let refused = |layout, blocks| ZonedDevice::new(MemoryDevice::new(blocks), layout).unwrap_err().to_string();
    assert_eq!(refused(ZoneLayout::new(0), 10), format!("blocks in a zone: 0 is not in the range 1 to {}", u64::MAX));
    assert_eq!(refused(ZoneLayout::new(4).with_capacity(5), 10), "capacity of a zone: 5 is not in the range 1 to 4");
    assert_eq!(refused(ZoneLayout::new(1), 1 << 22), "zones: 4194304 is not in the range 1 to 1048576");
    assert_eq!(refused(ZoneLayout::new(1), 0), "zones: 0 is not in the range 1 to 1048576");
    assert_eq!(
        refused(ZoneLayout::new(4).with_conventional(4), 10),
        "conventional zones: 4 is not in the range 0 to 3"
    );
    assert_eq!(refused(ZoneLayout::new(4).with_limits(3, 2), 10), "zones open at a time: 3 is not in the range 0 to 2");
}

#[test]
fn a_zone_larger_than_the_device_ends_with_it() {
    let device = ZonedDevice::new(MemoryDevice::new(10), ZoneLayout::new(u64::MAX)).unwrap();
    assert_eq!(device.append(0, AlignedBuf::new(10)).unwrap(), 0);
    assert_eq!(device.report().map(|zone| (zone.blocks, zone.state)).collect::<Vec<_>>(), [(10, ZoneState::Full)]);
    assert_eq!(device.read(0, 10).unwrap().blocks(), 10);
    assert_eq!(device.zone(1), Err(ZoneError::NoSuchZone { zone: 1, zones: 1 }));
    // However far behind.
    let device = ZonedDevice::new(MemoryDevice::new(10), ZoneLayout::new(5)).unwrap();
    for block in [10, 5 << 32, u64::MAX] {
        assert!(device.zone(device.zone_of(block)).is_err(), "{block}");
    }
}

#[test]
fn what_is_behind_a_pointer_reads_as_zeros_whatever_is_below() {
    let below = MemoryDevice::from_bytes(&[9; 12 * BLOCK_SIZE]);
    let device = ZonedDevice::new(below, ZoneLayout::new(4)).unwrap();
    device.write_slice(0, &[1; BLOCK_SIZE]).unwrap();
    device.write_slice(4, &[2; 3 * BLOCK_SIZE]).unwrap();
    let expected = [1, 0, 0, 0, 2, 2, 2, 0, 0, 0];
    let mut lent = AlignedBuf::new(10);
    device.read_into(0, &mut lent).unwrap();
    let submitted = device.submit(vec![Request::read(0, AlignedBuf::new(10))]).wait().remove(0).into_bufs().unwrap();
    for buf in [&lent, &submitted[0]] {
        assert_eq!((0..10).map(|block| buf.block(block)[0]).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_write_that_fails_below_leaves_the_pointer_behind_it() {
    let faults = FaultDevice::new(Arc::new(MemoryDevice::new(8)));
    let device = ZonedDevice::new(faults, ZoneLayout::new(4)).unwrap();
    device.inner().arm(FaultRule::on([Operation::Write]).fault(Fault::Error(5)));
    assert_eq!(device.write_slice(0, b"lost").unwrap_err().kind, DeviceErrorKind::from_errno(5));
    assert_eq!(device.zone(0).unwrap().write_pointer(), Some(1));
    device.write_slice(1, b"goes on").unwrap();
    assert!(device.read(1, 1).unwrap().as_bytes().starts_with(b"goes on"));
}

#[test]
fn threads_append_side_by_side() {
    const THREADS: u8 = 8;
    const EACH: usize = 500;
    let layout = ZoneLayout::new(64).with_capacity(60).with_limits(2, 3);
    let device = ZonedDevice::new(MemoryDevice::new(64 * 100), layout).unwrap();
    let all: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let append = |number: u8| {
            let device = &device;
            move || {
                let mut zone = u32::from(number) % 4;
                let mut places = Vec::new();
                while places.len() < EACH {
                    match device.append(zone, AlignedBuf::from_bytes(&[number; 4096])) {
                        Ok(at) => places.push(at),
                        Err(error) => {
                            assert!(matches!(
                                error.kind,
                                DeviceErrorKind::Zone(ZoneError::State { .. } | ZoneError::TooManyActive { .. })
                            ));
                            zone = (zone + 1) % 100;
                        }
                    }
                }
                places
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(append(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut blocks = Vec::new();
    for (number, places) in all.iter().enumerate() {
        for at in places {
            assert!(device.read(*at, 1).unwrap().as_bytes().iter().all(|byte| usize::from(*byte) == number));
            blocks.push(*at);
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), usize::from(THREADS) * EACH, "two appends went to one block");
    let open = device.report().filter(|zone| zone.state.is_open()).count();
    assert!(open <= 2, "{open} zones are open");
}

/// Sizes at the ends of what their types hold.
const SIZES: [u64; 9] = [0, 1, 7, 8, 9, u32::MAX as u64, u32::MAX as u64 + 1, i64::MAX as u64 + 1, u64::MAX];

#[test]
fn sizes() {
    for size in SIZES {
        for other in SIZES {
            let layout = ZoneLayout::new(size)
                .with_capacity(other)
                .with_conventional(other as u32)
                .with_limits(size as u32, other as u32);
            if let Ok(device) = ZonedDevice::new(MemoryDevice::new(8), layout) {
                for zone in SIZES.map(|zone| zone as u32) {
                    let _ = (device.zone(zone), device.open(zone), device.close(zone), device.finish(zone));
                    let _ = (device.reset(zone), device.append(zone, AlignedBuf::new(1)), device.wear_out(zone));
                    let _ = device.take_offline(zone);
                }
                for block in SIZES {
                    let _ = (device.zone_of(block), device.read(block, 1), device.write_slice(block, &[1; 4096]));
                }
                assert!(device.report().count() as u64 <= ZoneLayout::MAX_ZONES);
            }
        }
    }
}
