//! Data of synced files that waits in memory for the device's next flush.

use std::sync::Arc;
use std::thread;

use f2fs_device::{BlockDevice, Operation};
use f2fs_device_test::{HeldDevice, RecordingDevice};
use f2fs_files::{FileSystem, JournalMode, JournalOptions, Options, create_journal};
use f2fs_test_kit::synced::{content, read};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

use super::{Medium, copy, cut, medium, start_in, with, with_mode};

/// A volume whose requests can be held back, with its journal.
fn start_held() -> (Arc<RecordingDevice>, Arc<HeldDevice>, Medium, FileSystem) {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let held = Arc::new(HeldDevice::new(device.clone()));
    let fs = FileSystem::open(held.clone(), with_mode(&journal, JournalMode::Journal)).unwrap();
    fs.checkpoint().unwrap();
    (device, held, journal, fs)
}

/// The volume after a power cut, opened with its journal.
fn after_a_cut(device: &RecordingDevice, journal: &Medium) -> FileSystem {
    FileSystem::open(cut(device), with(&copy(journal))).unwrap()
}

#[test]
fn a_file_that_is_removed_before_a_checkpoint_is_never_written() {
    for cache in [0, 1 << 20] {
        let (device, journal, fs) = start_in(JournalMode::Journal);
        fs.close().unwrap();
        drop(fs);
        let fs = FileSystem::open(device.clone(), with_mode(&journal, JournalMode::Journal).page_cache(cache)).unwrap();
        fs.checkpoint().unwrap();
        let writes = device.counts().writes;
        let names: Vec<String> = (0..6).map(|number| format!("/{number}")).collect();
        for (number, name) in (0..).zip(&names) {
            let file = fs.create_file(name, 0o644).unwrap();
            file.write_at(&content(number, 16_000), 0).unwrap();
            file.sync_all().unwrap();
            file.write_at(&content(number + 1, 5000), 3000).unwrap();
            file.sync_all().unwrap();
        }
        let crashed = after_a_cut(&device, &journal);
        for (number, name) in (0..).zip(&names) {
            let mut expected = content(number, 16_000);
            expected[3000..8000].copy_from_slice(&content(number + 1, 5000));
            assert!(read(&fs, name) == expected && read(&crashed, name) == expected, "{name}");
        }
        names.iter().for_each(|name| fs.remove_file(name).unwrap());
        assert_eq!(device.counts().writes, writes, "nothing was written, with a cache of {cache} bytes");
        fs.checkpoint().unwrap();
        let (image, data) = (device.snapshot(), content(5, 16_000));
        let blocks = image.read(0, image.info().blocks as usize).unwrap();
        assert!(!blocks.as_blocks().iter().any(|block| block.0[..] == data[8192..12288]), "nor by the checkpoint");
        fs.close().unwrap();
    }
}

#[test]
fn no_data_waits_where_the_options_say_so() {
    let device = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    let journal = medium();
    create_journal(device.clone(), journal.clone(), false).unwrap();
    let options = JournalOptions::new(journal.clone(), JournalMode::Journal).write_behind(0);
    let fs = FileSystem::open(device.clone(), Options::new().journal(options)).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    let writes = device.counts().writes;
    file.write_at(&content(1, 16_000), 0).unwrap();
    assert_eq!(device.counts().writes, writes + 1);
}

#[test]
fn what_a_checkpoint_holds_is_written_though_it_is_displaced_meanwhile() {
    let (device, held, journal, fs) = start_held();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&content(1, 16_000), 0).unwrap();
    fs.checkpoint().unwrap();
    file.write_at(&content(3, 16_000), 0).unwrap();
    thread::scope(|scope| {
        // No name changed, so the first write of the checkpoint is that of its nodes, when operations run again.
        held.hold_next(Operation::Write);
        scope.spawn(|| fs.checkpoint().unwrap());
        held.wait_until_held();
        file.write_at(&content(7, 16_000), 0).unwrap();
        held.release();
    });
    assert!(read(&after_a_cut(&device, &journal), "/file") == content(3, 16_000));
    assert!(read(&fs, "/file") == content(7, 16_000));
    fs.close().unwrap();
}

#[test]
fn what_is_on_its_way_is_read_from_memory() {
    let (device, held, _, fs) = start_held();
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&content(4, 16_000), 0).unwrap();
    // More than a record takes: its sync flushes the device instead.
    let large = fs.create_file("/large", 0o644).unwrap();
    for at in 0..40 {
        large.write_at(&content(2, 8192), at * 8192).unwrap();
    }
    thread::scope(|scope| {
        held.hold_next(Operation::Write);
        scope.spawn(|| large.sync_all().unwrap());
        held.wait_until_held();
        let found = read(&fs, "/file");
        held.release();
        assert!(found == content(4, 16_000));
    });
    fs.close().unwrap();
    drop(fs);
    let image = Arc::new(device.snapshot());
    assert_clean(&image);
    assert!(read(&FileSystem::open(image, Options::new()).unwrap(), "/file") == content(4, 16_000));
}
