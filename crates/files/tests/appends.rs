//! An append is there as a whole or not at all, also where the volume is full.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::synced::content;
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

/// A chunk but for 64 KiB: from the second one on, each is written in two chunks.
const RECORD: usize = (2 << 20) - (64 << 10);

fn records(cache: u64) {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new().page_cache(cache)).unwrap();
    // Then there is room for the first chunk of the record that does not fit, and not for the second.
    fs.create_file("/filler", 0o644).unwrap().append(&content(1, 1 << 20)).unwrap();
    let log = fs.create_file("/log", 0o644).unwrap();
    let record = content(7, RECORD);
    let (done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let whole = |size: u64| assert!(size.is_multiple_of(RECORD as u64), "{size} bytes are no whole records");
    // Ends both, also if one fails.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let before = thread::scope(|scope| {
        scope.spawn(|| {
            let _end = End(&done);
            while !done.load(Ordering::Relaxed) {
                looks.fetch_add(1, Ordering::Relaxed);
                whole(log.size());
                fs.checkpoint().unwrap();
                let image = std::sync::Arc::new(device.snapshot());
                let seen = FileSystem::open(image, Options::new()).unwrap();
                let Ok(log) = seen.open_file("/log") else { continue };
                whole(log.size());
                // Nothing stands behind the end, to come back when the file grows.
                let (end, mut behind) = (log.size(), vec![1; RECORD]);
                log.set_len(end + RECORD as u64).unwrap();
                assert_eq!(log.read_at(&mut behind, end).unwrap(), RECORD);
                assert!(behind.iter().all(|byte| *byte == 0), "not whole: bytes behind the end {end}");
            }
        });
        let _end = End(&done);
        let mut records = 0;
        while log.append(&record).map_err(|error| assert!(error.is_no_space(), "{error}")).is_ok() {
            records += 1;
        }
        let before = fs.statfs().valid_blocks;
        let begun = looks.load(Ordering::Relaxed);
        while !done.load(Ordering::Relaxed) && looks.load(Ordering::Relaxed) < begun + 40 {
            assert!(log.append(&record).unwrap_err().is_no_space());
            whole(log.size());
        }
        assert!(records > 3, "{records}");
        before
    });
    // Nothing is kept of what did not fit, and smaller ones fit.
    fs.checkpoint().unwrap();
    assert!(fs.statfs().valid_blocks <= before, "{} of {before}", fs.statfs().valid_blocks);
    let end = log.size();
    assert_eq!(log.append(b"short").unwrap(), end);
    let mut read = vec![0; RECORD];
    for at in (0..end).step_by(RECORD) {
        assert_eq!(log.read_at(&mut read, at).unwrap(), RECORD);
        assert!(read == record, "the record at {at}");
    }
    drop(log);
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn records_are_whole_without_a_page_cache() {
    records(0);
}

#[test]
fn records_are_whole_in_a_page_cache() {
    records(16 << 20);
}

/// Behind the end of a file nothing is left of an append that failed: what it grows by are zeros.
#[test]
fn bytes_of_an_append_that_failed_do_not_come_back() {
    for cache in [0, 16 << 20] {
        let device = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), Options::new().page_cache(cache)).unwrap();
        let file = fs.create_file("/file", 0o644).unwrap();
        file.append(&[1; 5000]).unwrap();
        assert!(file.append(&content(1, 40 << 20)).unwrap_err().is_no_space());
        assert!(file.append(&content(1, 12 << 20)).is_ok());
        assert!(file.append(&content(1, 12 << 20)).unwrap_err().is_no_space());
        let end = file.size();
        assert_eq!(end, 5000 + (12 << 20));
        file.set_len(end + 100_000).unwrap();
        let mut read = vec![9; 100_000];
        assert_eq!(file.read_at(&mut read, end).unwrap(), 100_000);
        assert!(read.iter().all(|byte| *byte == 0));
        drop(file);
        fs.close().unwrap();
        assert_clean(&device);
    }
}

#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let test = "records_are_whole_without_a_page_cache";
    f2fs_sync::assert_found(test, &["append_leaves_its_first_chunks"], "bytes behind the end");
    f2fs_sync::assert_found(test, &["append_grows_by_chunks"], "no whole records");
}
