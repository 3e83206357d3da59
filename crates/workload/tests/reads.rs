//! The driver of reads: it measures as it was told, and its reads return the right bytes.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;

use f2fs::RangeLock;
use f2fs::device::{AlignedBuf, BlockDevice, MemoryDevice};
use f2fs_workload::reads::{Files, Measured, Pattern, ReadsError, Setting, Sharing, prepare};

fn device(mib: u64) -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(mib << 8))
}

#[test]
fn every_setting_reads_what_was_written() {
    let device = device(128);
    let files = Files { count: 3, bytes: 6 << 20 };
    let bytes = std::cell::Cell::new(0);
    prepare(device.clone(), files, &|more| bytes.set(bytes.get() + more)).unwrap();
    assert_eq!(bytes.get(), 6 << 20);
    for table in [RangeLock::Extent, RangeLock::Btree] {
        let volume = files.open(device.clone(), table).unwrap();
        for pattern in [Pattern::Random, Pattern::Sequential] {
            for sharing in [Sharing::Shared, Sharing::Private] {
                for (depth, threads) in [(1, 1), (1, 5), (4, 1), (16, 7)] {
                    let setting = Setting { pattern, sharing, depth, threads, table, reads: 1003 };
                    let measured = volume.measure(&setting).unwrap();
                    assert_eq!(measured.latencies.len(), 1003, "{setting:?}");
                    assert!(measured.iops() > 0.0 && measured.micros(50.0) <= measured.micros(99.0), "{setting:?}");
                    assert!((0.0..=1.0).contains(&measured.slowest_share), "{measured:?}");
                    assert!((0.0..=1.0).contains(&measured.lock_share), "{setting:?}: {}", measured.lock_share);
                    assert_eq!(measured.csv().split(',').count(), Measured::COLUMNS.split(',').count());
                }
            }
        }
        volume.close().unwrap();
    }
}

#[test]
fn a_wrong_block_is_found() {
    let device = device(64);
    let files = Files { count: 1, bytes: 1 << 20 };
    prepare(device.clone(), files, &|_| ()).unwrap();
    let volume = files.open(device.clone(), RangeLock::Extent).unwrap();
    // Block 9 begins with its stamp; only data blocks begin so.
    let mut first = AlignedBuf::new(1);
    let setting = Setting { pattern: Pattern::Sequential, reads: 256, ..Setting::default() };
    volume.measure(&setting).unwrap();
    let stamp = (9_u64 ^ 0x5bd1_e995_97f4_a7c1).to_le_bytes();
    let place = (0..device.info().blocks).find(|block| device.read(*block, 1).unwrap().block(0).starts_with(&stamp));
    first.block_mut(0)[0] = 1;
    device.write(place.unwrap(), first).unwrap();
    let error = volume.measure(&setting).unwrap_err();
    assert!(matches!(error, ReadsError::Content { file: 0, block: 9, .. }), "{error}");
    let batched = Setting { depth: 8, ..setting };
    assert!(matches!(volume.measure(&batched).unwrap_err(), ReadsError::Content { block: 9, .. }));
}

#[test]
fn settings_that_cannot_be_measured_are_refused() {
    let device = device(64);
    let files = Files { count: 1, bytes: 1 << 20 };
    prepare(device.clone(), files, &|_| ()).unwrap();
    let volume = files.open(device.clone(), RangeLock::Extent).unwrap();
    let plain = Setting { reads: 10, ..Setting::default() };
    for setting in [
        Setting { threads: 0, ..plain },
        Setting { threads: 5000, ..plain },
        Setting { depth: 0, ..plain },
        Setting { reads: 0, ..plain },
        Setting { table: RangeLock::Btree, ..plain },
    ] {
        assert!(matches!(volume.measure(&setting), Err(ReadsError::Setting(_))), "{setting:?}");
    }
    // More threads than reads.
    assert_eq!(volume.measure(&Setting { threads: 20, ..plain }).unwrap().latencies.len(), 10);
    volume.close().unwrap();

    let none = Files { count: 2, bytes: 1 << 20 };
    assert!(matches!(
        none.open(device.clone(), RangeLock::Extent),
        Err(ReadsError::Volume { what: "open a file", .. })
    ));
    let large = Files { count: 1, bytes: 1 << 30 };
    assert!(matches!(prepare(device, large, &|_| ()), Err(ReadsError::Full { .. })));
}
