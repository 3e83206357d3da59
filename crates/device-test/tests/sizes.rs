//! Every size, count and offset that a caller can hand in, at the ends of what its type holds: a result or an error, no
//! panic, and no memory by what was asked for. Memory itself (`AlignedBuf`, `MemoryDevice`) takes what it is asked for,
//! as a vector does.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::time::Duration;

use f2fs_device::{
    AlignedBuf, BlockDevice, DeviceErrorKind, MemoryDevice, Op, Operation, Request, ZoneLayout, ZonedDevice,
};
use f2fs_device_test::{CutPlan, FaultDevice, FaultRule, RecordingDevice, TimingDevice};

const SIZES: [u64; 13] = [
    0,
    1,
    7,
    8,
    9,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    (1 << 52) - 1,
    1 << 52,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX - 1,
    u64::MAX,
];

fn memory() -> MemoryDevice {
    MemoryDevice::new(8)
}

fn devices() -> Vec<(&'static str, Box<dyn BlockDevice>)> {
    let cost = |blocks| blocks as f64 * 1e-6;
    vec![
        ("memory", Box::new(memory())),
        ("small chunks", Box::new(MemoryDevice::with_chunks(8, 1))),
        ("one chunk", Box::new(MemoryDevice::with_chunks(8, u64::MAX))),
        ("faults", Box::new(FaultDevice::new(Arc::new(memory())))),
        ("timing", Box::new(TimingDevice::new(memory(), cost).charge_reads(cost).charge_flushes(Duration::MAX))),
        ("recording", Box::new(RecordingDevice::new(memory()))),
        ("zones", Box::new(ZonedDevice::new(memory(), ZoneLayout::new(4).with_conventional(2)).unwrap())),
    ]
}

#[test]
fn starts_and_lengths() {
    for (name, device) in devices() {
        for start in SIZES {
            let what = format!("{name}, {start}");
            for blocks in SIZES {
                let what = format!("{what}, {blocks}");
                let inside = start.checked_add(blocks).is_some_and(|end| end <= 8);
                let refused = |kind: &DeviceErrorKind| matches!(kind, DeviceErrorKind::OutOfRange { device_blocks: 8 });
                if let Ok(blocks) = usize::try_from(blocks) {
                    match device.read(start, blocks) {
                        Ok(read) => assert!(inside && read.blocks() == blocks, "{what}"),
                        Err(error) => assert!(!inside && refused(&error.kind), "{what}: {error}"),
                    }
                }
                match device.discard(start, blocks) {
                    Ok(()) => assert!(inside, "{what}"),
                    Err(error) => {
                        let zoned = matches!(error.kind, DeviceErrorKind::Zone(_) | DeviceErrorKind::Unsupported);
                        assert!(zoned || !inside && refused(&error.kind), "{what}: {error}");
                    }
                }
                assert_eq!(device.info().check_range(Operation::Write, start, blocks).is_ok(), inside, "{what}");
            }
            for blocks in [0, 1, 8, 9] {
                let inside = start.checked_add(blocks).is_some_and(|end| end <= 8);
                let buf = || AlignedBuf::new(blocks as usize);
                for result in [
                    device.read_into(start, &mut buf()),
                    device.write(start, buf()),
                    device.write_from(start, &mut buf()),
                    device.write_fua(start, buf()),
                    device.write_slice(start, &vec![7; blocks as usize * 4096]),
                    device
                        .execute(Request::vectored(Op::Write, start, vec![buf(), AlignedBuf::new(0)]).with_tag(start))
                        .result,
                ] {
                    assert_eq!(result.is_ok(), inside, "{what}, {blocks}: {result:?}");
                }
            }
        }
        device.flush().unwrap();
    }
}

#[test]
fn depths_of_queues() {
    for (name, device) in devices() {
        for depth in SIZES.map(|depth| depth as usize) {
            let mut queue = device.queue(depth);
            assert!(queue.depth() >= 1, "{name}, {depth}");
            for start in SIZES {
                queue.push(Request::read(start, AlignedBuf::new(1)));
            }
            let mut completions = 0;
            while queue.next_completion().is_some() {
                completions += 1;
            }
            assert_eq!(completions, SIZES.len(), "{name}, {depth}");
            drop(queue);
        }
    }
}

#[test]
fn faults_costs_and_cuts() {
    for size in SIZES {
        let device = FaultDevice::new(Arc::new(memory()));
        device.arm(FaultRule::on_all().after(size));
        assert_eq!(device.read(0, 1).is_err(), size == 0);
    }
    for cost in [0.0, -1.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NAN] {
        let device = TimingDevice::new(memory(), move |_| cost).charge_flushes(Duration::MAX);
        for _ in 0..3 {
            device.write_slice(0, &[7; 20_000]).unwrap();
            device.flush().unwrap();
        }
        let _ = device.stat().time();
        let _ = device.stat().since(&device.stat()).time();
    }

    let device = RecordingDevice::new(memory());
    device.write_slice(0, &[7; 20_000]).unwrap();
    device.flush().unwrap();
    device.write_slice(3, &[8; 5000]).unwrap();
    let log = device.log();
    for size in SIZES.map(|size| size as usize) {
        let _ = log.image_at(size, |_, _| true);
        let mut replay = log.replay();
        let _ = (replay.image(size, |_, _| true), replay.outstanding(size));
        for plan in [
            CutPlan { exhaustive: size, sampled: 3, tears: size.min(100) },
            CutPlan { exhaustive: 0, sampled: 3, tears: 0 },
        ] {
            for cut in plan.cuts(&replay, size, || u64::MAX) {
                let _ = replay.cut(&cut, size as u64);
            }
        }
        let _ = replay.advanced_to(size, u64::MAX);
        replay.advance_to(size);
        assert!(log.events().iter().all(|event| event.seen_at(usize::MAX) || !event.seen_at(size)));
    }
}
