//! Syncs in mode `Strict` beside other threads that write to the same file.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::{Arc, Mutex};
use std::thread;

use f2fs_device_test::{FlushedDevice, RecordingDevice};
use f2fs_files::{FileSystem, Options};
use f2fs_test_kit::volumes::{assert_clean, assert_consistent, formatted};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{FsyncMode, VolumeOptions};

const BLOCK: usize = 4096;

type Then = Box<dyn FnOnce() + Send>;

/// Another thread overwrites a synced block right behind the first flush of a sync: a node of that sync does not name a
/// block that no flush was behind. A cut in front of the second flush leaves the node without what is not durable.
#[test]
fn a_block_of_another_thread_is_old_or_new() {
    let inner = Arc::new(RecordingDevice::new(formatted(64, &FormatOptions::default()).snapshot()));
    // Something that is done once, behind the next flush.
    let then: Arc<Mutex<Option<Then>>> = Arc::default();
    let device = {
        let then = then.clone();
        Arc::new(FlushedDevice::new(inner.clone(), move || {
            let then = then.lock().unwrap().take();
            then.into_iter().for_each(|then| then());
        }))
    };
    let options = || Options::new().volume(VolumeOptions::new().lanes(1).fsync(FsyncMode::Strict));
    let fs = Arc::new(FileSystem::open(device, options()).unwrap());
    let file = fs.create_file("/file", 0o644).unwrap();
    file.write_at(&[1; 2 * BLOCK], 0).unwrap();
    fs.checkpoint().unwrap();
    inner.restart();
    file.write_at(&[2; BLOCK], 0).unwrap();
    let beside = fs.clone();
    *then.lock().unwrap() = Some(Box::new(move || {
        let write = || beside.open_file("/file").unwrap().write_at(&[3; BLOCK], BLOCK as u64).unwrap();
        thread::scope(|scope| scope.spawn(write).join().unwrap());
    }));
    file.sync_all().unwrap();
    assert!(then.lock().unwrap().is_none(), "there was no flush");
    let (log, mut cuts) = (inner.log(), 0);
    let mut replay = log.replay();
    while replay.advance().is_some() {
        let Some(&last) = replay.volatile().last() else { continue };
        // The last write alone survives: of all others nobody was told anything.
        let image = Arc::new(replay.image(0, |event, _| event == last));
        assert_consistent(&*image);
        let mut found = [0; 2 * BLOCK];
        let fs = FileSystem::open(image, options()).unwrap();
        fs.open_file("/file").unwrap().read_at(&mut found, 0).unwrap();
        let (first, second) = found.split_at(BLOCK);
        assert!([[1; BLOCK], [2; BLOCK]].iter().any(|block| block == first), "not whole: the first block");
        assert!([[1; BLOCK], [3; BLOCK]].iter().any(|block| block == second), "not whole: the second block");
        cuts += 1;
    }
    assert!(cuts >= 3, "{cuts}");
    let mut found = [0; 2 * BLOCK];
    file.read_at(&mut found, 0).unwrap();
    assert!(found[..BLOCK] == [2; BLOCK] && found[BLOCK..] == [3; BLOCK]);
    drop(file);
    fs.close().unwrap();
    assert_clean(&inner.snapshot());
}

#[cfg(feature = "mutants")]
#[test]
fn mutants_are_found() {
    let test = "a_block_of_another_thread_is_old_or_new";
    f2fs_sync::assert_found(test, &["strict_flush_before_nodes"], "the second block");
}
