//! Writes that are durable by themselves: they are there after a power cut, an error leaves the file as it was, and
//! nobody touches a block that is on its way.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::Arc;
use std::time::Duration;

use f2fs_device::{MemoryDevice, Operation};
use f2fs_device_test::HeldDevice;
use f2fs_device_test::bytes;
use f2fs_device_test::{FaultDevice, FaultRule, RecordingDevice};
use f2fs_files::{AllocateFlags, File, FileSystem, Options, Pace};
use f2fs_test_kit::synced::read;
use f2fs_test_kit::volumes::{assert_clean, assert_consistent, formatted, within};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{FsyncMode, VolumeOptions};

const BLOCK: usize = 4096;
const SEGMENT: usize = 512 * BLOCK;
const LIMIT: Duration = Duration::from_secs(120);

fn options() -> Options {
    Options::new().volume(VolumeOptions::new().lanes(1))
}

/// The file system after all writes that were not flushed are gone.
fn after_power_cut(device: &RecordingDevice) -> FileSystem {
    let log = device.log();
    let image = Arc::new(log.image_at(log.events().len(), |_, _| false));
    assert_consistent(&*image);
    FileSystem::open(image, options()).unwrap()
}

fn write(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    content.resize(content.len().max(offset + bytes.len()), 0);
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

#[test]
fn what_was_written_outlives_a_power_cut() {
    for mode in [FsyncMode::Posix, FsyncMode::Strict] {
        let base = formatted(128, &FormatOptions::default());
        let device = Arc::new(RecordingDevice::new(base.snapshot()));
        let with = options().volume(VolumeOptions::new().lanes(1).fsync(mode));
        let fs = FileSystem::open(device.clone(), with).unwrap();
        fs.checkpoint().unwrap();
        let file = fs.create_file("/file", 0o644).unwrap();
        let mut expected = Vec::new();
        let places = [
            (0, 100),                      // in the inode
            (50, 9000),                    // out of it
            (4096, 4096),                  // a block
            (5000, 10),                    // a part of one
            (100_000, 20_000),             // behind the end
            (5_000_000, 1),                // another node
            (4096, 2 * SEGMENT + 4096),    // more than goes at once
            (3 * SEGMENT - 8192, SEGMENT), // a segment, over the end of one of the file
            (0, 0),                        // nothing
        ];
        for (round, (offset, len)) in places.into_iter().enumerate() {
            let data = bytes(len, round as u64);
            assert_eq!(file.write_durable(&data, offset as u64).unwrap(), len);
            write(&mut expected, offset, &data);
            assert!(read(&fs, "/file") == expected, "{mode:?}, round {round}");
            let found = after_power_cut(&device);
            assert!(read(&found, "/file") == expected, "{mode:?}, round {round}, after a power cut");
        }
        // A checkpoint makes durable what a sync of nodes cannot.
        fs.link("/file", "/other").unwrap();
        let version = fs.volume().last_checkpoint().version;
        file.write_durable(&[7; BLOCK], BLOCK as u64).unwrap();
        write(&mut expected, BLOCK, &[7; BLOCK]);
        assert!(fs.volume().last_checkpoint().version > version);
        assert!(read(&after_power_cut(&device), "/other") == expected);
        drop(file);
        fs.close().unwrap();
        drop(fs);
        assert_clean(&device.snapshot());
    }
}

#[test]
fn an_error_leaves_the_old_content_and_is_not_hidden() {
    let start = |count: u64, operation: Operation| {
        let inner = formatted(64, &FormatOptions::default());
        let faulty = Arc::new(FaultDevice::new(inner.clone()));
        let fs = FileSystem::open(faulty.clone(), options()).unwrap();
        let file = fs.create_file("/file", 0o644).unwrap();
        file.write_at(&[1; 4 * BLOCK], 0).unwrap();
        fs.checkpoint().unwrap();
        let before = fs.metadata("/file").unwrap();
        faulty.arm(FaultRule::on([operation]).after(count));
        let result = file.write_durable(&[2; 4 * BLOCK], 2 * BLOCK as u64);
        let hit = faulty.faults() > 0;
        faulty.disarm();
        let stat = fs.metadata("/file").unwrap();
        let more = if hit { 0 } else { 2 };
        assert_eq!((stat.size, stat.blocks), (before.size + more * BLOCK as u64, before.blocks + more));
        (inner, fs, result, hit)
    };
    let (old, mut new) = (vec![1; 4 * BLOCK], vec![1; 2 * BLOCK]);
    new.resize(6 * BLOCK, 2);
    // The first write is the data, the second the node.
    for (operation, requests) in [(Operation::Write, 2), (Operation::Flush, 1)] {
        for count in 0..=requests {
            let (inner, fs, result, hit) = start(count, operation);
            assert_eq!(hit, count < requests, "{operation:?} {count}");
            assert_eq!(result.is_err(), hit, "{operation:?} {count}: {result:?}");
            let expected = if hit { &old } else { &new };
            assert!(read(&fs, "/file") == *expected, "{operation:?} {count}");
            assert_eq!(fs.volume().stopped().is_some(), hit);
            drop(fs);
            assert_consistent(&*inner);
            let fs = FileSystem::open(inner.clone(), options()).unwrap();
            let found = read(&fs, "/file");
            // The node that names data whose write failed is not found, where the device goes on. A device whose flush
            // fails may keep either.
            let expected = if hit && operation == Operation::Flush { &found } else { expected };
            assert!(found == *expected && (found == old || found == new), "{operation:?} {count}");
            fs.close().unwrap();
            drop(fs);
            assert_clean(&inner);
        }
    }
}

#[test]
fn threads_that_write_and_sync_at_once_lose_nothing() {
    const THREADS: usize = 6;
    const ROUNDS: usize = 60;
    let device = Arc::new(RecordingDevice::new(formatted(128, &FormatOptions::default()).snapshot()));
    let fs = Arc::new(FileSystem::open(device.clone(), Options::new()).unwrap());
    let shared = Arc::new(fs.create_file("/shared", 0o644).unwrap());
    shared.allocate(0, (THREADS * ROUNDS * BLOCK) as u64, AllocateFlags::NONE).unwrap();
    fs.checkpoint().unwrap();
    let image = within(LIMIT, move || {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (fs, shared) = (&fs, &shared);
                scope.spawn(move || {
                    let own: File = fs.create_file(format!("/{thread}"), 0o644).unwrap();
                    for round in 0..ROUNDS {
                        let block = [(thread * ROUNDS + round) as u8 | 1; BLOCK];
                        shared.write_durable(&block, ((round * THREADS + thread) * BLOCK) as u64).unwrap();
                        own.write_durable(&block[..3000], (round * 3000) as u64).unwrap();
                    }
                });
            }
        });
        drop((shared, fs));
        let log = device.log();
        log.image_at(log.events().len(), |_, _| false)
    });
    assert_consistent(&image);
    let image = Arc::new(image);
    let fs = FileSystem::open(image.clone(), Options::new()).unwrap();
    let found = read(&fs, "/shared");
    for thread in 0..THREADS {
        let own = read(&fs, &format!("/{thread}"));
        assert_eq!(own.len(), ROUNDS * 3000);
        for round in 0..ROUNDS {
            let byte = (thread * ROUNDS + round) as u8 | 1;
            assert!(own[round * 3000..(round + 1) * 3000].iter().all(|found| *found == byte));
            let at = (round * THREADS + thread) * BLOCK;
            assert!(found[at..at + BLOCK].iter().all(|found| *found == byte), "thread {thread}, round {round}");
        }
    }
    fs.close().unwrap();
    drop(fs);
    assert_clean(&image);
}

/// The slots of a file name blocks that the device does not have yet, in a segment that the cleaner would empty first:
/// what else was in it is gone.
#[test]
fn the_cleaner_leaves_alone_what_is_on_its_way() {
    // Where in a segment the log stands is not known: in one of these cases it is nearly full.
    for filled in (32..512).step_by(96) {
        let inner: Arc<MemoryDevice> = formatted(64, &FormatOptions::default());
        let device = Arc::new(HeldDevice::new(inner.clone()));
        let fs = Arc::new(FileSystem::open(device.clone(), options()).unwrap());
        let file = fs.create_file("/file", 0o644).unwrap();
        file.write_at(&[1; SEGMENT], 0).unwrap();
        fs.create_file("/filler", 0o644).unwrap().write_at(&vec![9; filled * BLOCK], 0).unwrap();
        fs.checkpoint().unwrap();
        fs.remove_file("/filler").unwrap();
        let data = bytes(SEGMENT, 3);
        let found = within(LIMIT, {
            let (fs, data) = (fs.clone(), data.clone());
            move || {
                let writer = std::thread::spawn({
                    let device = device.clone();
                    move || {
                        device.defer_mine();
                        file.write_durable(&data, 0).unwrap();
                        file
                    }
                });
                device.wait_until_held();
                while fs.clean_step(Pace::Urgent).unwrap().is_some_and(|step| step.segments > 0) {}
                device.release();
                let mut found = vec![0; SEGMENT];
                writer.join().unwrap().read_at(&mut found, 0).unwrap();
                found
            }
        });
        assert!(found == data, "{filled} blocks in front of it");
        fs.close().unwrap();
        drop(fs);
        assert_clean(&inner);
        assert!(read(&FileSystem::open(inner, options()).unwrap(), "/file") == data);
    }
}
