//! Every size, count, offset and length that a caller can hand in, at the ends of what its type holds: a result or an
//! error, no panic, and no memory by what was asked for.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_files::{
    AllocateFlags, CleanerOptions, FileSystem, FsError, NewFile, Options, Pace, RangeLock, ReadSlice, SetTimes, Time,
    WriteSlice,
};
use f2fs_test_kit::volumes::{assert_clean, formatted, within};
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::FormatOptions;

/// The ends, and what lies next to them and to a block.
const SIZES: [u64; 15] = [
    0,
    1,
    4095,
    4096,
    4097,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    (1 << 41) - 1,
    1 << 43,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX - 4096,
    u64::MAX - 4095,
    u64::MAX - 1,
    u64::MAX,
];

/// Memory that a call may take.
const MEMORY: u64 = 64 << 20;

/// Runs a call, and judges the memory that it took.
#[track_caller]
fn modest<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let mut result = None;
    let taken = allocation_counter::measure(|| result = Some(call()));
    assert!(taken.bytes_max < MEMORY, "{what}: {} bytes", taken.bytes_max);
    result.unwrap()
}

/// The answer to a size that is too large.
#[track_caller]
fn tolerate<T>(what: &str, result: Result<T, FsError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(FsError::FileTooLarge { .. } | FsError::Invalid(_) | FsError::WrongKind { .. }) => None,
        Err(error) if error.is_no_space() => None,
        Err(other) => panic!("{what}: {other}"),
    }
}

fn open(device: &Arc<MemoryDevice>, options: Options) -> FileSystem {
    FileSystem::open(device.clone(), options).unwrap()
}

#[test]
fn offsets_lengths_and_depths_of_files() {
    within(Duration::from_secs(200), || {
        for lock in [RangeLock::Extent, RangeLock::Btree] {
            let device = formatted(64, &FormatOptions::default());
            let fs = open(&device, Options::new().range_lock(lock));
            for inline in [true, false] {
                for offset in SIZES {
                    let what = format!("{lock:?}, inline {inline}, {offset}");
                    let file = fs.create_file("/file", 0o644).unwrap();
                    let content: &[u8] = if inline { b"content" } else { &[7; 5000] };
                    file.write_at(content, 0).unwrap();
                    let unchanged = |file: &f2fs_files::File| {
                        let mut read = vec![0; 6000];
                        let len = file.read_at(&mut read, 0).unwrap();
                        assert_eq!((&read[..len], file.metadata().unwrap().inline), (content, inline), "{what}");
                    };
                    let mut buf = [0; 5000];
                    let left = content.len().saturating_sub(usize::try_from(offset).unwrap_or(usize::MAX)).min(5000);
                    modest(&what, || {
                        assert_eq!(file.read_at(&mut buf, offset).unwrap(), left, "{what}");
                        assert_eq!(file.read_into(&mut AlignedBuf::new(2), offset).unwrap(), left, "{what}");
                        for depth in SIZES.map(|depth| depth as usize) {
                            let mut reads = [ReadSlice::new(offset, &mut buf), ReadSlice::new(0, &mut [])];
                            file.read_many(depth, &mut reads).unwrap();
                            assert_eq!((reads[0].read, reads[1].read), (left, 0), "{what}, depth {depth}");
                            file.read_many(depth, &mut []).unwrap();
                            file.write_many(depth, &mut []).unwrap();
                            // Nothing is written to no bytes, wherever they are.
                            file.write_many(depth, &mut [WriteSlice::new(offset, &[])]).unwrap();
                        }
                        assert_eq!(file.write_at(&[], offset).unwrap(), 0, "{what}");
                        assert_eq!(file.write_durable(&[], offset).unwrap(), 0, "{what}");
                    });
                    unchanged(&file);
                    modest(&what, || {
                        let beyond = offset >= 1 << 43;
                        let written = tolerate(&what, file.write_at(b"xy", offset));
                        assert_eq!(written.is_none(), beyond, "{what}");
                        if beyond {
                            // A refused call changes nothing.
                            unchanged(&file);
                            for depth in [0, 1, 1 << 40, usize::MAX] {
                                let mut writes = [WriteSlice::new(offset, b"xy")];
                                assert!(tolerate(&what, file.write_many(depth, &mut writes)).is_none(), "{what}");
                                assert_eq!(writes[0].written, 0, "{what}");
                            }
                            assert!(tolerate(&what, file.write_durable(b"xy", offset)).is_none(), "{what}");
                            assert!(tolerate(&what, file.set_len(offset)).is_none(), "{what}");
                            unchanged(&file);
                        } else {
                            let mut writes = [WriteSlice::new(offset, b"xy"), WriteSlice::new(0, b"z")];
                            file.write_many(usize::MAX, &mut writes).unwrap();
                            assert_eq!((writes[0].written, writes[1].written), (2, 1), "{what}");
                            file.write_durable(b"uv", offset).unwrap();
                            file.set_len(offset).unwrap();
                            assert_eq!(file.size(), offset, "{what}");
                        }
                    });
                    for len in SIZES {
                        let what = format!("{what}, {len} bytes");
                        let keep_size = len % 2 == 0;
                        modest(&what, || {
                            tolerate(&what, file.allocate(offset, len, AllocateFlags::NONE.keep_size(keep_size)))
                        });
                    }
                    drop(file);
                    fs.remove_file("/file").unwrap();
                }
            }
            fs.close().unwrap();
            assert_clean(&device);
        }
    });
}

#[test]
fn appends_at_the_largest_size() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let file = fs.create_file("/file", 0o644).unwrap();
    let limit = match file.set_len(u64::MAX).unwrap_err() {
        FsError::FileTooLarge { size: u64::MAX, limit } => limit,
        other => panic!("{other}"),
    };
    file.set_len(limit).unwrap();
    assert!(matches!(file.append(b"x"), Err(FsError::FileTooLarge { .. })));
    assert!(matches!(file.write_at(b"x", limit), Err(FsError::FileTooLarge { .. })));
    assert!(matches!(file.write_at(b"xy", u64::MAX), Err(FsError::FileTooLarge { .. })));
    // The part in front of it is written.
    assert_eq!(file.write_at(b"xy", limit - 1).unwrap(), 1);
    let mut read = [0; 9];
    assert_eq!(file.read_at(&mut read, limit - 1).unwrap(), 1);
    assert_eq!(read[0], b'x');
    assert_eq!(file.write_at(&[b'y'; 8192], limit - 5000).unwrap(), 5000);
    assert_eq!(file.write_durable(&[b'z'; 8192], limit - 5000).unwrap(), 5000);
    file.append(&[]).unwrap();
    file.set_len(0).unwrap();
    drop(file);
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn positions_and_counts_of_listings() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    for (dir, count) in [("/inline", 5), ("/hashed", 300)] {
        fs.create_dir(dir, 0o755).unwrap();
        for name in 0..count {
            fs.create_file(format!("{dir}/{name}"), 0o644).unwrap();
        }
        let opened = fs.open_dir(dir).unwrap();
        for from in SIZES {
            for limit in SIZES.map(|limit| limit as usize) {
                let what = format!("{dir}, {limit} from {from}");
                let listed = modest(&what, || opened.read(from, limit)).unwrap();
                assert!(listed.len() <= limit.min(count + 2), "{what}");
                assert!(!listed.is_empty() || limit == 0 || from > 1, "{what}");
                assert!(listed.is_empty() || from <= 4097, "{what}");
            }
        }
    }
    fs.close().unwrap();
}

/// Caches without room and without end, lanes, intervals and marks.
#[test]
fn options() {
    within(Duration::from_secs(200), || {
        let device = formatted(64, &FormatOptions::default());
        for size in SIZES {
            let what = format!("{size}");
            let count = NonZeroUsize::new(size as usize).unwrap_or(NonZeroUsize::MIN);
            let volume = VolumeOptions::new().node_cache(count).dirty_nodes(size).lanes(size as usize);
            let options = Options::new()
                .volume(volume)
                .inode_cache(count)
                .address_cache(size)
                .lock_memory(size)
                .dentry_cache(count);
            modest(&what, || {
                let fs = open(&device, options.clone());
                for name in 0..5 {
                    let file = fs.create_file(format!("/{name}"), 0o644).unwrap();
                    file.write_at(&[7; 50_000], 0).unwrap();
                    file.read_at(&mut [0; 50_000], 4000).unwrap();
                }
                let time = Duration::from_nanos(size);
                for interval in [Duration::ZERO, time, Duration::from_secs(size), Duration::MAX] {
                    let cleaning = CleanerOptions::default().interval(interval).urgent_interval(interval);
                    drop(fs.start_cleaner(cleaning.low_mark(size as u32)).unwrap());
                }
                fs.clean_step(Pace::Urgent).unwrap();
                fs.remove_all("/3").unwrap();
                for name in [0, 1, 2, 4] {
                    fs.remove_file(format!("/{name}")).unwrap();
                }
                fs.close().unwrap();
            });
            assert_clean(&device);
        }
    });
}

/// As in Linux: whoever asks for blocks changes the file, whether its size changes or not.
#[test]
fn an_allocation_sets_the_times_of_change() {
    const NOW: Time = Time { seconds: 1_700_000_000, nanoseconds: 0 };
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new().clock(|| NOW));
    let file = fs.create_file("/file", 0o644).unwrap();
    let old = Time { seconds: 86_400, nanoseconds: 7 };
    for keep_size in [true, false] {
        fs.set_times("/file", SetTimes::new().accessed(old).modified(old)).unwrap();
        file.allocate(4096, 10_000, AllocateFlags::NONE.keep_size(keep_size)).unwrap();
        let stat = file.metadata().unwrap();
        assert_eq!((stat.accessed, stat.modified, stat.changed), (old, NOW, NOW), "keep_size {keep_size}");
    }
}

/// Numbers that become part of an inode.
#[test]
fn numbers_of_inodes() {
    let device = formatted(64, &FormatOptions::default());
    let fs = open(&device, Options::new());
    let far = Time { seconds: i64::MAX, nanoseconds: 999_999_999 };
    for number in SIZES.map(|size| size as u32) {
        let mut new = NewFile::new(f2fs_files::FileKind::Regular, number as u16).owner(number, number);
        new.permissions = number as u16 & 0o7777;
        let stat = fs.create("/file", &new).unwrap();
        assert_eq!((stat.uid, stat.gid), (number, number));
        fs.set_owner("/file", Some(number), None).unwrap();
        fs.remove_file("/file").unwrap();
    }
    fs.create_file("/file", 0o644).unwrap();
    for seconds in [i64::MIN, -1, 0, i64::MAX] {
        let time = Time { seconds, ..far };
        fs.set_times("/file", SetTimes::new().accessed(time).modified(time)).unwrap();
        let stat = fs.metadata("/file").unwrap();
        assert_eq!((stat.accessed, stat.modified), (time, time));
        // Whatever a time is, the system's clock can be asked for it.
        let _ = std::time::SystemTime::from(stat.modified);
    }
    fs.close().unwrap();
    assert_clean(&device);
}
