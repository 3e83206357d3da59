//! The times of a file that is written: once in a tick, unless somebody looks.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::cell::Cell;
use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_files::{AllocateFlags, File, FileSystem, FsError, Options, SetTimes, Time};
use f2fs_format::feature::Features;
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

const BLOCK: usize = 4096;
/// A block whose slot is in a node of its own.
const FAR: u64 = 2000;
const TICK: u64 = 4_000_000;

thread_local! {
    /// The time of files, in nanoseconds since a moment at which a tick begins. Each test has its own.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn clock() -> Time {
    let now = NOW.get();
    Time { seconds: 1_700_000_000 + (now / 1_000_000_000) as i64, nanoseconds: (now % 1_000_000_000) as u32 }
}

/// The nanosecond, of those of [`NOW`], at which the file was modified.
fn modified(file: &File) -> u64 {
    let Time { seconds, nanoseconds } = file.metadata().unwrap().modified;
    (seconds - 1_700_000_000) as u64 * 1_000_000_000 + u64::from(nanoseconds)
}

fn write_at(now: u64, file: &File) {
    NOW.set(now);
    assert_eq!(file.write_at(&[now as u8; BLOCK], FAR * BLOCK as u64).unwrap(), BLOCK);
}

#[test]
fn a_write_changes_the_times_once_in_a_tick_or_after_a_look() {
    let device: Arc<MemoryDevice> = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new().clock(clock)).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    write_at(10, &file);
    write_at(20, &file);
    assert_eq!(modified(&file), 10, "the second one is in the tick of the first");
    write_at(30, &file);
    write_at(40, &file);
    assert_eq!(modified(&file), 30);
    write_at(50, &file);
    assert_eq!(modified(&file), 50, "somebody has looked");
    write_at(60, &file);
    write_at(TICK + 1, &file);
    write_at(TICK + 2, &file);
    write_at(9 * TICK, &file);
    write_at(9 * TICK + 1, &file);
    assert_eq!(modified(&file), 9 * TICK, "of the last tick, however long ago the one before was");
    // Times that are set are no reason to leave them.
    write_at(9 * TICK + 2, &file);
    fs.set_times("/file", SetTimes::new().modified(Time { seconds: 7, nanoseconds: 0 })).unwrap();
    write_at(9 * TICK + 3, &file);
    assert_eq!(modified(&file), 9 * TICK + 3);
    // A write that makes the file larger changes its times anyway.
    write_at(9 * TICK + 4, &file);
    NOW.set(9 * TICK + 5);
    file.write_at(&[1; BLOCK], (FAR + 1) * BLOCK as u64).unwrap();
    assert_eq!((modified(&file), file.size()), (9 * TICK + 5, (FAR + 2) * BLOCK as u64));
    write_at(9 * TICK + 6, &file);
    drop(file);
    fs.close().unwrap();
    assert_clean(&device);
    let file = FileSystem::open(device, Options::new()).unwrap().open_file("/file").unwrap();
    assert_eq!(modified(&file), 9 * TICK + 6);
}

#[test]
fn what_is_allocated_changes_the_times_also_where_nothing_was_missing() {
    let device: Arc<MemoryDevice> = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device, Options::new().clock(clock)).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    for now in [100 * TICK, 200 * TICK] {
        NOW.set(now);
        file.allocate(0, 10 * BLOCK as u64, AllocateFlags::NONE).unwrap();
        let about = file.metadata().unwrap();
        assert_eq!((about.modified, about.changed), (clock(), clock()));
    }
}

/// Whoever looks for files that changed asks for the later of both times: each change of the content moves both.
#[test]
fn each_change_of_the_content_moves_both_times() {
    type Change = fn(&File) -> Result<(), FsError>;
    let changes: [(&str, Change); 8] = [
        ("a write that grows", |file| file.write_at(&[1; BLOCK], BLOCK as u64).map(drop)),
        ("a write over it", |file| file.write_at(&[2; BLOCK], BLOCK as u64).map(drop)),
        ("a write of a part", |file| file.write_at(&[3; 10], 5).map(drop)),
        ("an append", |file| file.append(&[4; 10]).map(drop)),
        ("a durable write", |file| file.write_durable(&[5; BLOCK], 0).map(drop)),
        ("zeros", |file| file.zero_range(0, 10)),
        ("a hole", |file| file.punch_hole(0, BLOCK as u64)),
        ("a cut", |file| file.set_len(100)),
    ];
    for page_cache in [0, 1 << 20] {
        let device: Arc<MemoryDevice> = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device, Options::new().clock(clock).page_cache(page_cache)).unwrap();
        // Inline, and not.
        for len in [20, 3 * BLOCK] {
            let file = fs.create_file(format!("/{len}"), 0o644).unwrap();
            file.write_at(&vec![9; len], 0).unwrap();
            for (what, change) in changes {
                NOW.set(NOW.get() + 100 * TICK);
                change(&file).unwrap();
                let about = file.metadata().unwrap();
                assert_eq!((about.modified, about.changed), (clock(), clock()), "{what}, of {len} bytes, {page_cache}");
            }
        }
    }
}

/// As in Linux: an inode with room for it has a time of creation only on a volume that keeps some.
#[test]
fn files_have_a_time_of_creation_where_the_volume_keeps_it() {
    for (features, kept) in [
        (Features(0), false),
        (Features::EXTRA_ATTR, false),
        (Features::EXTRA_ATTR.union(Features::INODE_CRTIME), true),
    ] {
        let mut format = FormatOptions::default();
        format.features = features;
        let device: Arc<MemoryDevice> = formatted(64, &format);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let made = fs.create_file("/f", 0o644).unwrap().metadata().unwrap();
        assert_eq!(made.created, kept.then_some(made.modified), "{features:?}");
    }
}
