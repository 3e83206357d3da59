//! Holes, reserved ranges and copies, compared with what the host's own file system does with the same calls; and what
//! is there after a sync and a crash.
//!
//! `F2FS_STRESS=20` runs twenty times as many sequences. A host that does not zero ranges (tmpfs) is asked for a write
//! of zeros in their place.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use f2fs_device::MemoryDevice;
use f2fs_device_test::{Random, bytes};
use f2fs_files::{AllocateFlags, File, FileSystem, FsError, Options, SetTimes, Time};
use f2fs_test_kit::volumes::{assert_clean, formatted, scale};
use f2fs_volume::format::FormatOptions;
use rustix::fs::{FallocateFlags, SeekFrom, Timespec, Timestamps};
use rustix::io::Errno;

const BLOCK: u64 = 4096;
/// Behind this nobody writes.
const SPAN: u64 = 9 << 20;

#[derive(Clone, Debug)]
enum Step {
    Write(u64, usize),
    Append(usize),
    SetLen(u64),
    Allocate(u64, u64, u32),
    Copy(u64, u64, u64),
    CopyOther(u64, u64, u64),
    Sync,
    Checkpoint,
}

struct Pair {
    device: Arc<MemoryDevice>,
    fs: FileSystem,
    ours: [File; 2],
    theirs: [fs::File; 2],
    _dir: tempfile::TempDir,
}

fn number<T>(result: Result<T, FsError>) -> Result<T, i32> {
    result.map_err(|error| error.raw_os_error())
}

fn theirs<T>(result: rustix::io::Result<T>) -> Result<T, i32> {
    result.map_err(Errno::raw_os_error)
}

impl Pair {
    fn new() -> Pair {
        let device = formatted(96, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
        // So that the first sync of a test is no checkpoint.
        fs.create_file("/first", 0o644).unwrap().sync_all().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let ours = ["/a", "/b"].map(|path| fs.create_file(path, 0o644).unwrap());
        let open = |name| fs::OpenOptions::new().read(true).write(true).create_new(true).open(dir.path().join(name));
        let theirs = ["a", "b"].map(|name| open(name).unwrap());
        Pair { device, fs, ours, theirs, _dir: dir }
    }

    /// Sets old times, so that it shows who sets new ones.
    fn age(&self) {
        let old = Time { seconds: 1000, nanoseconds: 0 };
        self.fs.set_times("/a", SetTimes::new().modified(old)).unwrap();
        let old = Timespec { tv_sec: 1000, tv_nsec: 0 };
        rustix::fs::futimens(&self.theirs[0], &Timestamps { last_access: old, last_modification: old }).unwrap();
    }

    fn step(&self, step: &Step, seed: u64) {
        let (ours, host) = (&self.ours[0], &self.theirs[0]);
        let mut touched = true;
        self.age();
        match *step {
            Step::Write(offset, len) => {
                let data = bytes(len, seed);
                assert_eq!(ours.write_at(&data, offset).unwrap(), len);
                host.write_all_at(&data, offset).unwrap();
            }
            Step::Append(len) => {
                let data = bytes(len, seed);
                let end = host.metadata().unwrap().len();
                assert_eq!(ours.append(&data).unwrap(), end);
                host.write_all_at(&data, end).unwrap();
            }
            Step::SetLen(size) => {
                ours.set_len(size).unwrap();
                host.set_len(size).unwrap();
            }
            Step::Allocate(offset, len, flags) => {
                let end = ours.size();
                let mine = number(ours.allocate(offset, len, AllocateFlags::from_bits(flags)));
                let mut other =
                    theirs(rustix::fs::fallocate(host, FallocateFlags::from_bits_retain(flags), offset, len));
                if flags & !1 == 0x10 && other == Err(Errno::OPNOTSUPP.raw_os_error()) && mine.is_ok() {
                    let to = if flags & 1 == 0 { offset + len } else { (offset + len).min(end) };
                    if to > offset {
                        host.write_all_at(&vec![0; (to - offset) as usize], offset).unwrap();
                    }
                    other = Ok(());
                }
                assert_eq!(mine, other, "{step:?}");
                // Of a hole behind the end file systems think differently. F2FS counts it as a change.
                touched = mine.is_ok();
                if touched && flags & 2 != 0 && offset >= end {
                    assert_ne!(ours.metadata().unwrap().modified.seconds, 1000, "{step:?}");
                    self.age();
                    touched = false;
                }
            }
            Step::Copy(from, to, len) => touched = self.copy(0, from, to, len),
            Step::CopyOther(from, to, len) => touched = self.copy(1, from, to, len),
            Step::Sync => {
                ours.sync_all().unwrap();
                touched = false;
            }
            Step::Checkpoint => {
                self.fs.checkpoint().unwrap();
                touched = false;
            }
        }
        let modified = (ours.metadata().unwrap().modified.seconds, rustix::fs::fstat(host).unwrap().st_mtime);
        assert_eq!((modified.0 != 1000, modified.1 != 1000), (touched, touched), "times after {step:?}");
        assert_eq!(ours.size(), host.metadata().unwrap().len(), "size after {step:?}");
    }

    /// Copies from one of the files to the first one; returns whether anything was copied.
    fn copy(&self, source: usize, from: u64, to: u64, len: u64) -> bool {
        let mine = number(self.ours[source].copy_range(from, &self.ours[0], to, len));
        let (mut at, mut into, mut copied) = (from, to, Ok(0));
        // One call of the host may copy less than there is. Bytes that the copy itself adds to the file are not copied.
        let there = len.min(self.theirs[source].metadata().unwrap().len().saturating_sub(from)) as usize;
        while let Ok(done) = copied
            && (done == 0 || done < there)
        {
            let more = rustix::fs::copy_file_range(
                &self.theirs[source],
                Some(&mut at),
                &self.theirs[0],
                Some(&mut into),
                if done == 0 { len as usize } else { there - done },
            );
            match more {
                Ok(0) => break,
                Ok(more) => copied = Ok(done + more),
                // Said by the first call, for all of the range.
                Err(error) => copied = Err(error),
            }
        }
        assert_eq!(mine, theirs(copied).map(|copied| copied as u64), "copy of {len} from {from} to {to}");
        mine.is_ok_and(|copied| copied > 0)
    }

    fn compare(&self, what: &str) {
        for (ours, host) in self.ours.iter().zip(&self.theirs) {
            let (mine, other) = (content(ours), contents_of(host));
            assert_eq!(mine.len(), other.len(), "{what}");
            if let Some(at) = (0..mine.len()).find(|at| mine[*at] != other[*at]) {
                panic!("{what}: byte {at} is {:#x}, on the host {:#x}", mine[at], other[at]);
            }
            // The reported holes agree with each other and with the bytes.
            let mut at = 0;
            while at < ours.size() {
                let data = ours.seek_data(at).unwrap();
                let hole_end = data.unwrap_or(ours.size());
                assert!(mine[at as usize..hole_end as usize].iter().all(|byte| *byte == 0), "{what}: hole at {at}");
                if hole_end > at {
                    assert_eq!(ours.seek_hole(at).unwrap(), Some(at));
                }
                let Some(data) = data else { break };
                let hole = ours.seek_hole(data).unwrap().unwrap();
                assert!(hole > data, "{what}: data at {data} ends at {hole}");
                assert_eq!(ours.next_data(at).unwrap(), Some(data..hole), "{what}");
                at = hole;
            }
            assert_eq!(ours.seek_data(ours.size()).unwrap(), None);
            assert_eq!(ours.seek_hole(ours.size()).unwrap(), None);
        }
    }

    /// A crash now leaves of synced files the same as the host has.
    fn crash(&self) {
        self.ours.iter().for_each(|file| file.sync_all().unwrap());
        let copy = Arc::new(self.device.snapshot());
        let again = FileSystem::open(copy.clone(), Options::new()).unwrap();
        for (path, host) in ["/a", "/b"].into_iter().zip(&self.theirs) {
            assert!(content(&again.open_file(path).unwrap()) == contents_of(host), "{path} after a crash");
        }
        again.close().unwrap();
        assert_clean(&copy);
    }
}

fn content(file: &File) -> Vec<u8> {
    let mut all = vec![0xaa; file.size() as usize + 1];
    let len = file.read_at(&mut all, 0).unwrap();
    all.truncate(len);
    all
}

fn contents_of(file: &fs::File) -> Vec<u8> {
    let mut all = vec![0xaa; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut all, 0).unwrap();
    all
}

/// Places around the borders: within the inode, blocks, the last address of the inode, the border of two nodes.
fn place(random: &mut Random) -> u64 {
    let base = *random.one_of(&[0, 0, 0, BLOCK, 10 * BLOCK, 923 * BLOCK, 1941 * BLOCK]);
    let near = match random.below(4) {
        0 => random.below(20) as u64 * BLOCK,
        1 => random.below(5000) as u64,
        _ => random.below(100_000) as u64,
    };
    (base + near).saturating_sub(random.below(3) as u64 * BLOCK)
}

fn length(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => 0,
        1 | 2 => random.below(30) as u64 * BLOCK,
        3 => random.below(5 << 20) as u64,
        _ => random.below(60_000) as u64,
    }
}

fn step(random: &mut Random) -> Step {
    let (offset, len) = (place(random), length(random));
    match random.below(16) {
        0..3 => Step::Write(offset, (len as usize).clamp(1, 400_000)),
        3 => Step::Append((len as usize).clamp(1, 50_000)),
        4 => Step::SetLen(place(random)),
        5..8 => Step::Allocate(offset, len, 3),
        8 | 9 => Step::Allocate(offset, len.min(SPAN - offset), *random.one_of(&[0x10, 0x11])),
        10 => Step::Allocate(offset, len, *random.one_of(&[0, 1])),
        // Numbers that are too large, and flags that do not go together.
        11 => Step::Allocate(i64::MAX as u64 - 5000, 6000, *random.one_of(&[0, 1, 3, 0x10, 0x11])),
        12 => Step::Allocate(offset, len, *random.one_of(&[2, 0x12, 0x13, 0x40, 0x1000_0000])),
        13 => Step::Copy(offset, place(random), len),
        14 => Step::CopyOther(offset, place(random), len),
        _ => random.one_of(&[Step::Sync, Step::Checkpoint]).clone(),
    }
}

#[test]
fn ranges_become_what_the_host_makes_of_them() {
    for seed in 0..12 * scale("F2FS_STRESS") as u64 {
        let mut random = Random::new(seed);
        let pair = Pair::new();
        for (file, host) in pair.ours.iter().zip(&pair.theirs) {
            let data = bytes(random.below(300_000), seed);
            if !data.is_empty() && random.chance(2) {
                file.write_at(&data, 0).unwrap();
                host.write_all_at(&data, 0).unwrap();
            }
        }
        for round in 0..60 {
            let step = step(&mut random);
            pair.step(&step, seed ^ round);
            if round % 6 == 0 {
                pair.compare(&format!("seed {seed}, round {round}, {step:?}"));
            }
            if round == 30 {
                pair.crash();
            }
        }
        pair.compare(&format!("seed {seed}"));
        pair.crash();
    }
}

/// With whole blocks, and nothing reserved, holes are where the host has them.
#[test]
fn holes_are_where_the_host_has_them() {
    for seed in 0..8 * scale("F2FS_STRESS") as u64 {
        let mut random = Random::new(1000 + seed);
        let pair = Pair::new();
        pair.step(&Step::Write(0, 8192), seed);
        for round in 0..40 {
            let (offset, len) = (random.below(2100) as u64 * BLOCK, (1 + random.below(600)) as u64 * BLOCK);
            let step = match random.below(6) {
                0..3 => Step::Write(offset, (len as usize).min(40 * BLOCK as usize)),
                3 | 4 => Step::Allocate(offset, len, 3),
                _ => Step::SetLen(offset + BLOCK),
            };
            pair.step(&step, seed);
            for _ in 0..10 {
                let at = random.below(ours_end(&pair) as usize + 10_000) as u64;
                let seek = |from| match rustix::fs::seek(&pair.theirs[0], from) {
                    Ok(found) => Some(found),
                    Err(Errno::NXIO) => None,
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(pair.ours[0].seek_data(at).unwrap(), seek(SeekFrom::Data(at)), "data, {round}: {step:?}");
                assert_eq!(pair.ours[0].seek_hole(at).unwrap(), seek(SeekFrom::Hole(at)), "hole, {round}: {step:?}");
            }
        }
        pair.compare(&format!("seed {seed}"));
    }
}

fn ours_end(pair: &Pair) -> u64 {
    pair.ours[0].size()
}

/// The effects of a hole and a reserved range on the blocks of a file, which the host cannot tell for another block
/// map.
#[test]
fn holes_give_blocks_back_and_reserved_ranges_keep_them() {
    let pair = Pair::new();
    let (fs, file) = (&pair.fs, &pair.ours[0]);
    let blocks = |file: &File| file.metadata().unwrap().blocks;
    file.write_at(&bytes(64 << 10, 3), 0).unwrap();
    let (all, used) = (blocks(file), fs.statfs().valid_blocks);
    file.punch_hole(4096, 10 * 4096).unwrap();
    assert_eq!((blocks(file), fs.statfs().valid_blocks), (all - 10, used - 10));
    // Again, and where nothing is: nothing more.
    file.punch_hole(4096, 10 * 4096).unwrap();
    file.punch_hole(1 << 30, 1 << 30).unwrap();
    assert_eq!((blocks(file), fs.statfs().valid_blocks), (all - 10, used - 10));
    file.zero_range(0, 64 << 10).unwrap();
    assert_eq!((blocks(file), fs.statfs().valid_blocks), (all, used));
    assert_eq!(file.seek_data(0).unwrap(), None);
    assert_eq!(file.seek_hole(0).unwrap(), Some(0));
    // Reserved behind the end, and given back by a hole that reaches there from before it.
    file.allocate(64 << 10, 40_960, AllocateFlags::ZERO_RANGE | AllocateFlags::KEEP_SIZE).unwrap();
    assert_eq!((file.size(), blocks(file)), (64 << 10, all + 10));
    file.punch_hole(64 << 10, 40_960).unwrap();
    assert_eq!(blocks(file), all + 10, "a hole that begins at the end takes nothing");
    file.punch_hole(60 << 10, 40_960 + 4096).unwrap();
    assert_eq!((file.size(), blocks(file)), (64 << 10, all - 1));
    // A hole in a file of which the content stands in the inode.
    let small = &pair.ours[1];
    small.write_at(&[7; 100], 0).unwrap();
    small.punch_hole(10, 20).unwrap();
    assert_eq!(content(small), [[7; 10].as_slice(), &[0; 20], &[7; 70]].concat());
    pair.device.save(tempfile::NamedTempFile::new().unwrap().path()).unwrap();
    file.sync_all().unwrap();
    fs.checkpoint().unwrap();
    let copy = Arc::new(pair.device.snapshot());
    assert_clean(&copy);
}

/// Roll-forward lets a file reach over each block that it finds, unless that is reserved behind the end on purpose.
#[test]
fn what_is_reserved_behind_the_end_does_not_move_it_after_a_crash() {
    for offset in [3 * BLOCK, 1000 * BLOCK] {
        let pair = Pair::new();
        pair.step(&Step::Write(0, 5000), 1);
        pair.ours[0].sync_all().unwrap();
        pair.step(&Step::Allocate(offset, 20_000, 0x11), 1);
        pair.crash();
    }
}

/// A hole larger than one step, beside checkpoints, in a file that is larger than its first nodes.
#[test]
fn long_holes() {
    let device = formatted(1024, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let file = fs.create_file("/long", 0o644).unwrap();
    let page = vec![7; 1 << 20];
    for n in 0..300 {
        file.write_at(&page, n << 20).unwrap();
    }
    let used = fs.statfs().valid_blocks;
    file.punch_hole(1000, 299 << 20).unwrap();
    assert_eq!(fs.statfs().valid_blocks, used - 299 * 256 + 1);
    assert_eq!(file.seek_data(8192).unwrap(), Some(299 << 20));
    let mut block = [1; 4096];
    file.read_at(&mut block, (299 << 20) + 1000 - 2048).unwrap();
    assert_eq!(block, [[0; 2048], [7; 2048]].concat()[..]);
    // Holes are passed in few steps: two exabytes would take forever otherwise.
    file.set_len(3 << 40).unwrap();
    file.punch_hole(0, 3 << 40).unwrap();
    assert_eq!(file.seek_data(0).unwrap(), None);
    fs.close().unwrap();
    assert_clean(&device);
}
