//! Writes that are longer than one operation.

use std::sync::Arc;

use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule, bytes};
use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

use crate::{STRIDE, content, open};

const MIB: usize = 1 << 20;

/// As much as there is space for is written, and counted.
#[test]
fn a_write_goes_as_far_as_there_is_space() {
    let device = formatted(128, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    let stat = fs.statfs();
    let left = (stat.user_blocks - stat.valid_blocks) as usize * 4096;
    let data = bytes(left + MIB, 1);
    let written = file.write_at(&data, 0).unwrap();
    assert!(written > left - 3 * MIB && written < left, "{written} of {left}");
    assert!(content(&file) == data[..written]);
    drop(file);
    fs.close().unwrap();
    assert_clean(&device);
}

/// An error is told, though a part is written; the size says how much.
#[test]
fn an_error_behind_a_part_is_told() {
    let memory = formatted(128, &FormatOptions::default());
    let device = Arc::new(FaultDevice::new(memory));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let data = bytes(40 * MIB, 1);
    // The first sixteen are one operation; a request is half a megabyte at most.
    device.arm(FaultRule::on([Operation::Write]).after(50));
    let error = file.write_at(&data, 0).unwrap_err();
    assert!(device.faults() == 1 && error.device().is_some(), "{error}");
    let found = content(&file);
    assert!(found.len() >= 16 * MIB && found == data[..found.len()], "{}", found.len());
}

/// What can fail of a cut comes first: of a device that does not read, the file stays as it is.
#[test]
fn a_cut_that_cannot_read_changes_nothing() {
    const NODES: u64 = 6;
    let base = formatted(64, &FormatOptions::default());
    let fs = open(&base, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    for node in 0..NODES {
        file.write_at(&[7; 5000], node * STRIDE).unwrap();
    }
    let (wanted, blocks) = (content(&file), file.metadata().unwrap().blocks);
    drop(file);
    fs.close().unwrap();
    drop(fs);
    let mut failed = 0;
    for n in 0..12 {
        let device = Arc::new(FaultDevice::new(Arc::new(base.snapshot())));
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        let file = fs.open_file("/file").unwrap();
        device.arm(FaultRule::on([Operation::Read]).after(n));
        let result = file.set_len(100);
        device.disarm();
        if result.is_err() {
            failed += 1;
            assert!(file.metadata().unwrap().blocks == blocks && content(&file) == wanted, "read {n}");
            file.set_len(100).unwrap();
        }
        assert!(content(&file) == [7; 100]);
    }
    assert!(failed > 3, "{failed}");
}

/// What is remembered of where blocks lie goes with an append that failed: when the file grows, nothing of it comes back.
#[test]
fn addresses_of_an_append_that_failed_are_forgotten() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.append(&[7; 30_000]).unwrap();
    // They are known from here on.
    content(&file);
    let stat = fs.statfs();
    let left = (stat.user_blocks - stat.valid_blocks) as usize;
    assert!(left < 4096, "more than one operation writes");
    assert!(file.append(&vec![8; (left + 1) * 4096]).unwrap_err().is_no_space());
    assert_eq!(file.size(), 30_000);
    file.set_len(2 * MIB as u64).unwrap();
    for _ in 0..2 {
        let found = content(&file);
        assert!(found[..30_000] == [7; 30_000] && found[30_000..].iter().all(|byte| *byte == 0));
    }
}
