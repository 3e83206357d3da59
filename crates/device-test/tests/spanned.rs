//! One of several devices fails: what the whole says, and what the others are still asked for.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::{
    AlignedBuf, BlockDevice, DeviceErrorKind, MemoryDevice, Operation, Request, SpanError, SpannedDevice,
};
use f2fs_device_test::{Fault, FaultDevice, FaultRule};
use f2fs_sync::PlainArc;

/// Blocks of each device.
const EACH: u64 = 8;
const EIO: i32 = 5;

type Three = [PlainArc<FaultDevice>; 3];

fn three() -> (SpannedDevice, Three) {
    let disks: Three = std::array::from_fn(|_| PlainArc::new(FaultDevice::new(PlainArc::new(MemoryDevice::new(EACH)))));
    let parts = disks.iter().map(|disk| (disk.clone() as PlainArc<dyn BlockDevice>, EACH));
    (SpannedDevice::new(parts.collect()).unwrap(), disks)
}

fn filled(blocks: usize, fill: u8) -> AlignedBuf {
    let mut buf = AlignedBuf::new(blocks);
    buf.as_bytes_mut().fill(fill);
    buf
}

/// Operations other than reads that each device was asked for.
fn changes(disks: &Three) -> [u64; 3] {
    std::array::from_fn(|index| disks[index].changes())
}

fn is_poisoned(kind: &DeviceErrorKind) -> bool {
    matches!(kind, DeviceErrorKind::Poisoned { cause } if **cause == DeviceErrorKind::from_errno(EIO))
}

/// Every change of the whole is refused as poisoned, and none of the devices hears of it.
fn is_closed_for_changes(whole: &SpannedDevice, disks: &Three) {
    let before = changes(disks);
    for start in [0, EACH, 2 * EACH, EACH - 1] {
        for result in [
            whole.write(start, filled(2, 9)),
            whole.write_fua(start, filled(2, 9)),
            whole.discard(start, 2),
            whole.submit(vec![Request::write(start, filled(2, 9))]).wait().remove(0).result,
            whole.flush(),
        ] {
            let kind = result.unwrap_err().kind;
            assert!(is_poisoned(&kind), "{kind}");
        }
    }
    assert_eq!(changes(disks), before, "a device was asked for a change after the poison");
}

#[test]
fn a_write_that_one_device_fails_is_an_error_of_that_write_alone() {
    for failing in 0..3 {
        let (whole, disks) = three();
        disks[failing].arm(FaultRule::on([Operation::Write]));
        // Over all three: the pieces on the others are written.
        let error = whole.write(0, filled(24, 1)).unwrap_err();
        assert_eq!((error.start, error.blocks), (failing as u64 * EACH, EACH), "{error}");
        assert_eq!(error.kind, DeviceErrorKind::from_errno(EIO));
        for (index, disk) in disks.iter().enumerate() {
            let bytes = disk.read(0, EACH as usize).unwrap();
            assert!(bytes.as_bytes().iter().all(|byte| *byte == u8::from(index != failing)), "device {index}");
        }
        // No promise was broken: it goes on.
        whole.write(0, filled(24, 2)).unwrap();
        whole.flush().unwrap();
    }
}

#[test]
fn a_batch_has_the_results_of_its_own_devices() {
    let (whole, disks) = three();
    disks[1].arm(FaultRule::on_all().for_good());
    let requests = vec![
        Request::write(0, filled(2, 1)),
        Request::write(EACH, filled(2, 1)),
        Request::write(EACH - 1, filled(1, 1)),
        Request::write(2 * EACH - 1, filled(2, 1)),
        Request::read(2 * EACH, AlignedBuf::new(1)),
        Request::read(2 * EACH - 1, AlignedBuf::new(2)),
    ];
    let results: Vec<bool> = whole.submit(requests).wait().iter().map(|done| done.result.is_ok()).collect();
    assert_eq!(results, [true, false, true, false, true, false]);
}

#[test]
fn a_flush_that_one_device_fails_closes_all_of_them() {
    for failing in 0..3 {
        let (whole, disks) = three();
        whole.write(0, filled(24, 1)).unwrap();
        disks[failing].arm(FaultRule::on([Operation::Flush]));
        assert_eq!(whole.flush().unwrap_err().kind, DeviceErrorKind::from_errno(EIO));
        is_closed_for_changes(&whole, &disks);
        assert_eq!(whole.read(0, 24).unwrap().as_bytes(), filled(24, 1).as_bytes(), "reads go on");
    }
}

#[test]
fn a_durable_write_that_one_device_fails_closes_all_of_them() {
    for failing in 0..3 {
        for split in [false, true] {
            let (whole, disks) = three();
            disks[failing].arm(FaultRule::on([Operation::WriteFua]).fault(Fault::Torn(1)));
            let (start, blocks) = if split { (0, 24) } else { (failing as u64 * EACH, 3) };
            whole.write_fua(start, filled(blocks, 1)).unwrap_err();
            is_closed_for_changes(&whole, &disks);
        }
    }
}

#[test]
fn a_device_that_goes_away_leaves_the_others_readable_and_unchanged() {
    for failing in 0..3 {
        let (whole, disks) = three();
        whole.write(0, filled(24, 1)).unwrap();
        whole.flush().unwrap();
        disks[failing].arm(FaultRule::on_all().for_good());
        assert!(whole.read(0, 24).is_err());
        assert!(whole.write(failing as u64 * EACH, filled(1, 2)).is_err());
        for other in (0..3).filter(|other| *other != failing) {
            whole.read(other as u64 * EACH, EACH as usize).unwrap();
        }
        assert!(whole.flush().is_err());
        is_closed_for_changes(&whole, &disks);
        // It comes back; what was not promised is not promised now.
        disks.iter().for_each(|disk| disk.disarm());
        is_closed_for_changes(&whole, &disks);
    }
}

#[test]
fn a_flush_reaches_every_device() {
    let (whole, disks) = three();
    whole.flush().unwrap();
    assert_eq!(changes(&disks), [1, 1, 1]);
    whole.write_fua(EACH - 1, filled(2, 1)).unwrap();
    assert_eq!(changes(&disks), [2, 2, 1]);
}

#[test]
fn devices_that_are_open_elsewhere_are_not_taken() {
    let (whole, disks) = three();
    let parts = disks[1..].iter().map(|disk| (disk.clone() as PlainArc<dyn BlockDevice>, EACH)).collect();
    let error = SpannedDevice::new(parts).unwrap_err();
    assert!(matches!(error, SpanError::AlreadyOpen { device: 1, .. }), "{error}");
    drop(whole);
}
