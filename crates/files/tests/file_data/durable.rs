//! Writes that are durable by themselves, where they do not go as they should.

use std::sync::Arc;

use f2fs_device::Operation;
use f2fs_device_test::{FaultDevice, FaultRule};
use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

use crate::{BLOCK, content, open};

/// An error in front of the write is told: nothing was written, and nobody tries another way behind the caller's back.
#[test]
fn an_old_content_that_cannot_be_read_is_an_error() {
    let device = Arc::new(FaultDevice::new(formatted(64, &FormatOptions::default())));
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[1; 2 * BLOCK], 0).unwrap();
    file.sync_all().unwrap();
    device.arm(FaultRule::on([Operation::Read]));
    let error = file.write_durable(&[2; 10], 100).unwrap_err();
    assert!(device.faults() == 1 && error.device().is_some(), "{error}");
    assert!(content(&file) == [1; 2 * BLOCK]);
}

/// The file is durable, with what was written to the page cache before.
#[test]
fn it_takes_along_what_is_dirty() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new().page_cache(8 << 20));
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[1; BLOCK], 0).unwrap();
    file.sync_all().unwrap();
    for (round, len) in [(2, BLOCK), (3, 0)] {
        file.write_at(&[round; 2 * BLOCK + 10], 0).unwrap();
        file.write_durable(&vec![9; len], 4 * BLOCK as u64).unwrap();
        let again = open(&Arc::new(device.snapshot()), Options::new());
        let found = content(&again.open_file("/file").unwrap());
        let mut wanted = vec![round; 2 * BLOCK + 10];
        wanted.resize(4 * BLOCK, 0);
        wanted.resize(5 * BLOCK, 9);
        assert!(found == wanted, "round {round}");
    }
}
