//! Power cuts in a workload that syncs: any part of the unflushed writes may survive, and each name leads to the file
//! that it had when it was last made durable, or to one that it had later; also if the recovery is cut itself. A device
//! that does not flush for syncs, and syncs that leave the mark out, are found.
//!
//! `F2FS_STRESS=20` makes the workload longer and takes more images.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use f2fs_device::{BlockDevice, Claims, DeviceError, DeviceInfo, MemoryDevice, Op, Request, Ticket};
use f2fs_device_test::{CrashLog, RecordingDevice};
use f2fs_device_test::{Random, bytes};
use f2fs_files::{FileSystem, FsError, Options, RenameMode};
use f2fs_format::feature::Features;
use f2fs_format::node::{NodeBlock, mark};
use f2fs_sync::atomic::{AtomicBool, Ordering};
use f2fs_test_kit::volumes::{assert_clean, assert_consistent, formatted, saved, scale};
use f2fs_volume::format::FormatOptions;
use f2fs_volume::{FsyncMode, VolumeOptions};

/// The fault of a device or a sync, made on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A sync does not flush.
    NoFlush,
    /// A sync leaves the fsync mark out.
    NoMark,
}

/// The recorder, with a fault during syncs.
#[derive(Debug)]
struct Faulty {
    inner: RecordingDevice,
    fault: Fault,
    syncing: AtomicBool,
}

impl Faulty {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault && self.syncing.load(Ordering::Relaxed)
    }
}

impl BlockDevice for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, mut requests: Vec<Request>) -> Ticket {
        if self.has(Fault::NoMark) {
            for buf in
                requests.iter_mut().filter(|request| request.op == Op::Write).flat_map(|request| &mut request.bufs)
            {
                for block in 0..buf.blocks() {
                    let mut node = *NodeBlock::read(buf.block(block));
                    // Data of this test never looks like a node of a file.
                    if node.footer.has_mark(mark::FSYNC) && node.footer.has_mark(mark::COLD) && node.ino().0 < 1000 {
                        node.footer.set_mark(mark::FSYNC, false);
                        buf.block_mut(block).copy_from_slice(node.as_block());
                    }
                }
            }
        }
        self.inner.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        if self.has(Fault::NoFlush) { Ok(()) } else { self.inner.flush() }
    }
}

/// The file under a name: none, or one with this content.
type State = Option<Vec<u8>>;

/// A name through time.
#[derive(Debug)]
struct Line {
    /// Each state, with the number of events when it began to be made.
    states: Vec<(usize, State)>,
    /// From so many events on, this state or a later one is there.
    durable: Vec<(usize, usize)>,
    /// Syncs, from when to when.
    syncs: Vec<(usize, usize)>,
}

impl Line {
    fn now(&self) -> &State {
        &self.states.last().unwrap().1
    }

    fn promise(&mut self, position: usize) {
        self.durable.push((position, self.states.len() - 1));
    }
}

const NAMES: [&str; 10] =
    ["/a/0", "/a/1", "/a/2", "/a/3", "/b/0", "/b/1", "/b/2", "/b/3", "/b/4", "/a/long-name-of-a-file"];

struct Workload {
    device: Arc<Faulty>,
    fs: FileSystem,
    random: Random,
    lines: BTreeMap<&'static str, Line>,
    made: u64,
}

fn options(mode: FsyncMode) -> Options {
    let small = VolumeOptions::new().node_cache(NonZeroUsize::new(256).unwrap()).fsync(mode);
    Options::new().volume(small).inode_cache(NonZeroUsize::new(256).unwrap())
}

impl Workload {
    fn new(seed: u64, features: Features, mode: FsyncMode, fault: Fault) -> Workload {
        let base = formatted(64, &FormatOptions::default().with_features(features));
        {
            let fs = FileSystem::open(base.clone(), options(mode)).unwrap();
            fs.create_dir("/a", 0o755).unwrap();
            fs.create_dir("/b", 0o755).unwrap();
            fs.close().unwrap();
        }
        let inner = RecordingDevice::new(base.snapshot());
        let device = Arc::new(Faulty { inner, fault, syncing: AtomicBool::new(false) });
        let fs = FileSystem::open(device.clone(), options(mode)).unwrap();
        let line = || Line { states: vec![(0, None)], durable: vec![(0, 0)], syncs: Vec::new() };
        let lines = NAMES.iter().map(|name| (*name, line())).collect();
        Workload { device, fs, random: Random::new(seed), lines, made: 0 }
    }

    fn position(&self) -> usize {
        self.device.inner.position()
    }

    fn becomes(&mut self, name: &'static str, from: usize, state: State) {
        self.lines.get_mut(name).unwrap().states.push((from, state));
    }

    fn all_durable(&mut self) {
        let position = self.position();
        self.lines.values_mut().for_each(|line| line.promise(position));
    }

    fn sync(&mut self, name: &'static str) {
        let (from, version) = (self.position(), self.fs.volume().footer_version());
        let file = self.fs.open_file(name).unwrap();
        self.device.syncing.store(true, Ordering::Relaxed);
        file.sync_all().unwrap();
        self.device.syncing.store(false, Ordering::Relaxed);
        let to = self.position();
        if self.fs.volume().footer_version() != version {
            self.all_durable();
        }
        let line = self.lines.get_mut(name).unwrap();
        line.promise(to);
        line.syncs.push((from, to));
    }

    fn step(&mut self) {
        let name = *self.random.one_of(&NAMES);
        let from = self.position();
        let Some(mut data) = self.lines[name].now().clone() else {
            drop(self.fs.create_file(name, 0o644).unwrap());
            return self.becomes(name, from, Some(Vec::new()));
        };
        match self.random.below(24) {
            0..8 => {
                let most = if self.random.chance(12) { 5 << 20 } else { 40_000 };
                let at = if self.random.chance(2) { data.len() } else { self.random.below(most) };
                let len = self.random.below(20_000) + 1;
                self.made += 1;
                let new = bytes(len, self.made);
                if data.len() < at + len {
                    data.resize(at + len, 0);
                }
                data[at..at + len].copy_from_slice(&new);
                assert_eq!(self.fs.open_file(name).unwrap().write_at(&new, at as u64).unwrap(), len);
                self.becomes(name, from, Some(data));
            }
            8..10 => {
                let size = self.random.below(data.len() + 9000);
                data.resize(size, 0);
                self.fs.open_file(name).unwrap().set_len(size as u64).unwrap();
                self.becomes(name, from, Some(data));
            }
            10..12 => {
                self.fs.remove_file(name).unwrap();
                self.becomes(name, from, None);
            }
            12 => {
                let to = *self.random.one_of(&NAMES);
                if to != name {
                    self.fs.rename(name, to, RenameMode::Replace).unwrap();
                    self.becomes(name, from, None);
                    self.becomes(to, from, Some(data));
                }
            }
            13 if self.random.chance(4) => {
                self.fs.checkpoint().unwrap();
                self.all_durable();
            }
            _ => self.sync(name),
        }
    }

    /// Whether a file system has what a cut at this position must leave.
    fn holds(&self, fs: &FileSystem, position: usize, torn_syncs: bool) -> Result<(), String> {
        for (name, line) in &self.lines {
            let found = match fs.open_file(name) {
                Ok(file) => {
                    let mut data = vec![0; file.size() as usize];
                    file.read_at(&mut data, 0).map_err(|error| format!("{name}: {error}"))?;
                    Some(data)
                }
                Err(FsError::NotFound) => None,
                Err(error) => return Err(format!("{name}: {error}")),
            };
            let durable = line.durable.iter().filter(|(at, _)| *at <= position).map(|(_, state)| *state).max().unwrap();
            let mut allowed = line.states[durable..].iter().take_while(|(from, _)| *from <= position);
            if allowed.clone().any(|(_, state)| *state == found) {
                continue;
            }
            // During a sync that is not strict a node may be there before its data.
            let during = line.syncs.iter().any(|(from, to)| *from <= position && position < *to);
            let sizes = |(_, state): &(usize, State)| state.as_ref().map(Vec::len) == found.as_ref().map(Vec::len);
            if torn_syncs && during && allowed.any(sizes) {
                continue;
            }
            let what = |state: &State| state.as_ref().map_or(-1, |data| data.len() as i64);
            let sizes: Vec<_> = line.states[durable..].iter().map(|(at, state)| (*at, what(state))).collect();
            return Err(format!("{name} at {position}: found {}, of {sizes:?} one would be right", what(&found)));
        }
        Ok(())
    }
}

fn images(log: &CrashLog, random: &mut Random, mut judge: impl FnMut(usize, MemoryDevice)) {
    let mut replay = log.replay();
    loop {
        let (position, mut subset) = (replay.position(), random.clone());
        random.next();
        let chance = random.below(4) + 2;
        match random.below(3) {
            0 => judge(position, replay.image(0, |_, _| false)),
            1 => judge(position, replay.image(0, |_, _| true)),
            _ => judge(position, replay.image(0, |_, _| subset.chance(chance))),
        }
        if replay.advance().is_none() {
            break;
        }
    }
}

/// Runs a workload and cuts it everywhere; returns what was wrong.
fn run(seed: u64, features: Features, mode: FsyncMode, fault: Fault) -> Vec<String> {
    let mut work = Workload::new(seed, features, mode, fault);
    for _ in 0..160 * scale("F2FS_STRESS") {
        work.step();
    }
    let mut random = Random::new(seed);
    let mut again = Random::new(seed + 1);
    let (mut wrong, mut count, mut rolled) = (Vec::new(), 0, 0);
    let log = work.device.inner.log();
    let torn = mode == FsyncMode::Posix;
    images(&log, &mut random, |position, image| {
        count += 1;
        let image = Arc::new(image);
        let read_only = match FileSystem::open(image.clone(), options(mode).read_only(true)) {
            Ok(fs) => fs,
            Err(error) => return wrong.push(error.to_string()),
        };
        rolled += usize::from(read_only.recovered().files > 0);
        wrong.extend(work.holds(&read_only, position, torn).err());
        if fault != Fault::None || count % 10 != 0 {
            return;
        }
        assert_consistent(&image);
        if count % 80 == 0 {
            f2fs_oracle::assert_accepted(f2fs_test_kit::volumes::TempPathExt::path(&saved(&image)));
        }
        // The recovery is cut as well.
        let second = Arc::new(RecordingDevice::new(image.snapshot()));
        let fs = FileSystem::open(second.clone(), options(mode)).unwrap();
        wrong.extend(work.holds(&fs, position, torn).err());
        fs.create_file("/after", 0o644).unwrap().write_at(&[1; 10_000], 0).unwrap();
        fs.close().unwrap();
        images(&second.log(), &mut again, |_, image| {
            let fs = FileSystem::open(Arc::new(image), options(mode).read_only(true)).unwrap();
            wrong.extend(work.holds(&fs, position, torn).err());
        });
        if count % 40 == 0 {
            assert_clean(&second.snapshot());
        }
    });
    let syncs: usize = work.lines.values().map(|line| line.syncs.len()).sum();
    println!("{count} images, {rolled} of them rolled forward, {syncs} syncs, {} events", log.events().len());
    assert!(syncs > 40 && (rolled > 20 || fault == Fault::NoMark));
    wrong
}

fn checksums() -> Features {
    Features::EXTRA_ATTR.union(Features::INODE_CHECKSUM).union(Features::SB_CHECKSUM)
}

#[test]
fn what_was_synced_is_there() {
    for seed in 0..2 {
        let wrong = run(seed, checksums(), FsyncMode::Posix, Fault::None);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    }
}

#[test]
fn strict_syncs_leave_no_mixture() {
    for seed in 10..12 {
        let wrong = run(seed, Features(0), FsyncMode::Strict, Fault::None);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    }
}

#[test]
fn a_flush_left_out_is_found() {
    assert!(!run(20, Features(0), FsyncMode::Posix, Fault::NoFlush).is_empty());
}

#[test]
fn a_mark_left_out_is_found() {
    assert!(!run(30, Features(0), FsyncMode::Posix, Fault::NoMark).is_empty());
}
