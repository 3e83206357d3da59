//! One file under random operations, beside the same bytes in memory: what fsx does on a mount, without a mount.
//!
//! `F2FS_FSX_OPERATIONS=1000000` does more than the usual number in each row; `F2FS_FSX_SEED` begins elsewhere.
//! `cargo xtask mount fsx` runs it so.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::VecDeque;
use std::env;
use std::ops::Range;
use std::sync::Arc;

use f2fs_device::{AlignedBuf, MemoryDevice};
use f2fs_device_test::Random;
use f2fs_files::{AllocateFlags, File, FileSystem, Options, ReadSlice, WriteSlice};
use f2fs_test_kit::volumes::{assert_clean, formatted};
use f2fs_volume::format::FormatOptions;

/// Bytes of the part of the file that is used.
const WINDOW: usize = 256 << 10;
/// Bytes of an operation at most.
const LONGEST: usize = 64 << 10;
const BLOCK: u64 = 4096;
/// Operations that a failure shows.
const SHOWN: usize = 12;

const PATH: &str = "/f";
const SOURCE: &str = "/source";

/// Where the window begins: at the content in the inode, at the last address of the inode, between two direct nodes,
/// and at the first indirect node.
const STARTS: [u64; 4] = [0, 3_600_000, 7_750_000, 11_920_000];

#[derive(Clone, Copy, Debug)]
enum Operation {
    Write,
    Append,
    WriteDurable,
    WriteMany,
    Read,
    ReadInto,
    ReadMany,
    Cut,
    Grow,
    Empty,
    Reserve,
    Punch,
    Zero,
    CopyWithin,
    CopyFrom,
    Seek,
    SyncAll,
    SyncData,
    Checkpoint,
    Clean,
    OpenAnew,
    MountAnew,
}

use Operation::*;

/// Each as often as it stands here.
const WEIGHTS: [(Operation, u32); 22] = [
    (Write, 20),
    (Append, 4),
    (WriteDurable, 2),
    (WriteMany, 4),
    (Read, 16),
    (ReadInto, 3),
    (ReadMany, 3),
    (Cut, 5),
    (Grow, 4),
    (Empty, 1),
    (Reserve, 3),
    (Punch, 6),
    (Zero, 5),
    (CopyWithin, 4),
    (CopyFrom, 4),
    (Seek, 5),
    (SyncAll, 2),
    (SyncData, 2),
    (Checkpoint, 1),
    (Clean, 1),
    (OpenAnew, 2),
    (MountAnew, 1),
];

/// The file, and what it has to be.
struct Fsx {
    device: Arc<MemoryDevice>,
    options: Options,
    fs: FileSystem,
    file: File,
    /// Its first byte in the window. Before it there is a hole.
    start: u64,
    /// The bytes from `start` to the end of the file.
    model: Vec<u8>,
    /// The content of the file that is copied from.
    source: Vec<u8>,
    random: Random,
    last: VecDeque<String>,
}

impl Fsx {
    fn new(options: Options, start: u64, seed: u64) -> Fsx {
        let device = formatted(64, &FormatOptions::default());
        let fs = FileSystem::open(device.clone(), options.clone()).unwrap();
        let file = fs.create_file(PATH, 0o644).unwrap();
        file.set_len(start).unwrap();
        let mut random = Random::new(seed);
        let mut source = vec![0; LONGEST];
        random.fill(&mut source);
        // A hole and a torn last block.
        source[10_000..30_000].fill(0);
        source.truncate(LONGEST - 1000);
        let from = fs.create_file(SOURCE, 0o644).unwrap();
        from.write_at(&source, 0).unwrap();
        from.punch_hole(10_000, 20_000).unwrap();
        Fsx { device, options, fs, file, start, model: Vec::new(), source, random, last: VecDeque::new() }
    }

    /// A range in the window that is not empty; small ones, and ends at blocks, are as likely as others.
    fn range(&mut self) -> Range<usize> {
        let edge = |at: usize, random: &mut Random| if random.chance(4) { at / 4096 * 4096 } else { at };
        let longest = *self.random.one_of(&[200, 5000, LONGEST]);
        let from = self.random.below(WINDOW - 1);
        let from = edge(from, &mut self.random);
        let to = (from + 1 + self.random.below(longest)).min(WINDOW);
        let to = edge(to, &mut self.random).max(from + 1);
        from..to
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.random.fill(&mut bytes);
        bytes
    }

    fn at(&self, at: usize) -> u64 {
        self.start + at as u64
    }

    /// The model takes a write.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[at..end].copy_from_slice(bytes);
    }

    /// What a read of the range has to return.
    fn expected(&self, range: &Range<usize>) -> &[u8] {
        let end = range.end.min(self.model.len());
        &self.model[range.start.min(end)..end]
    }

    fn compare(&self, found: &[u8], range: &Range<usize>, what: &str) {
        let expected = self.expected(range);
        if found == expected {
            return;
        }
        let at = found.iter().zip(expected).position(|(found, expected)| found != expected);
        self.fail(&format!(
            "{what} of {range:?}: {} bytes instead of {}; the first that differs: {at:?}",
            found.len(),
            expected.len()
        ));
    }

    fn fail(&self, what: &str) -> ! {
        let last = self.last.iter().map(String::as_str).collect::<Vec<_>>().join("\n  ");
        panic!("{what}\nthe size is {}, the window begins at {}; the last:\n  {last}", self.model.len(), self.start);
    }

    fn read(&self, range: &Range<usize>) {
        let mut bytes = vec![0xEE; range.len()];
        let read = self.file.read_at(&mut bytes, self.at(range.start)).unwrap();
        self.compare(&bytes[..read], range, "a read");
    }

    /// All of the file, and what is told of it.
    fn whole(&self) {
        let size = self.start + self.model.len() as u64;
        let told = (self.file.size(), self.file.metadata().unwrap().size);
        if told != (size, size) {
            self.fail(&format!("the size is said to be {told:?}, and is {size}"));
        }
        self.read(&(0..WINDOW));
        let before = self.start.min(8192);
        let mut bytes = vec![0xEE; before as usize];
        self.file.read_at(&mut bytes, self.start - before).unwrap();
        if bytes.iter().any(|byte| *byte != 0) {
            self.fail("the hole before the window has data");
        }
    }

    fn step(&mut self, operation: Operation) {
        let range = self.range();
        let (at, len) = (self.at(range.start), range.len() as u64);
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(format!("{operation:?} {range:?}"));
        match operation {
            Write | WriteDurable => {
                let bytes = self.bytes(range.len());
                let written = match operation {
                    Write => self.file.write_at(&bytes, at).unwrap(),
                    _ => self.file.write_durable(&bytes, at).unwrap(),
                };
                assert_eq!(written, bytes.len());
                self.put(range.start, &bytes);
            }
            Append if self.model.len() + range.len() <= WINDOW => {
                let (bytes, end) = (self.bytes(range.len()), self.model.len());
                assert_eq!(self.file.append(&bytes).unwrap(), self.at(end));
                self.put(end, &bytes);
                self.read(&(end..end + bytes.len()));
            }
            Append => {}
            WriteMany => {
                let pieces: Vec<_> = (0..1 + self.random.below(5)).map(|_| self.range()).collect();
                let bytes: Vec<_> = pieces.iter().map(|piece| self.bytes(piece.len())).collect();
                let mut writes: Vec<_> = pieces
                    .iter()
                    .zip(&bytes)
                    .map(|(piece, bytes)| WriteSlice::new(self.at(piece.start), bytes))
                    .collect();
                self.file.write_many(4, &mut writes).unwrap();
                for (piece, bytes) in pieces.iter().zip(&bytes) {
                    self.put(piece.start, bytes);
                }
                pieces.iter().for_each(|piece| self.read(piece));
            }
            Read => self.read(&range),
            ReadInto => {
                let first = at / BLOCK * BLOCK;
                let mut into = AlignedBuf::new(1 + self.random.below(12));
                let read = self.file.read_into(&mut into, first).unwrap();
                // It may begin before the window.
                let skipped = self.start.saturating_sub(first) as usize;
                let from = (first + skipped as u64 - self.start) as usize;
                let bytes = into.as_bytes();
                if read > skipped {
                    self.compare(&bytes[skipped..read], &(from..from + bytes.len() - skipped), "an aligned read");
                }
            }
            ReadMany => {
                let pieces: Vec<_> = (0..1 + self.random.below(5)).map(|_| self.range()).collect();
                let mut bytes: Vec<_> = pieces.iter().map(|piece| vec![0xEE; piece.len()]).collect();
                let mut reads: Vec<_> = pieces
                    .iter()
                    .zip(&mut bytes)
                    .map(|(piece, bytes)| ReadSlice::new(self.at(piece.start), &mut bytes[..]))
                    .collect();
                self.file.read_many(4, &mut reads).unwrap();
                let read: Vec<_> = reads.iter().map(|slice| slice.read).collect();
                for ((piece, bytes), read) in pieces.iter().zip(&bytes).zip(read) {
                    self.compare(&bytes[..read], piece, "one of many reads");
                }
            }
            Cut => {
                let size = range.start.min(self.model.len());
                self.file.set_len(self.at(size)).unwrap();
                self.model.truncate(size);
            }
            Grow => {
                let size = range.end.max(self.model.len());
                self.file.set_len(self.at(size)).unwrap();
                self.model.resize(size, 0);
            }
            Empty => {
                self.file.set_len(0).unwrap();
                self.file.set_len(self.start).unwrap();
                self.model.clear();
            }
            Reserve | Zero => {
                let keep = self.random.chance(2);
                let what = if matches!(operation, Zero) { AllocateFlags::ZERO_RANGE } else { AllocateFlags::NONE };
                self.file.allocate(at, len, what.keep_size(keep)).unwrap();
                if !keep && self.model.len() < range.end {
                    self.model.resize(range.end, 0);
                }
                if matches!(operation, Zero) {
                    let end = range.end.min(self.model.len());
                    self.model[range.start.min(end)..end].fill(0);
                }
            }
            Punch => {
                self.file.punch_hole(at, len).unwrap();
                let end = range.end.min(self.model.len());
                self.model[range.start.min(end)..end].fill(0);
            }
            CopyWithin => {
                let to = self.random.below(WINDOW - range.len() + 1);
                if to < range.end && range.start < to + range.len() {
                    return;
                }
                let bytes = self.expected(&range).to_vec();
                let copied = self.file.copy_range(at, &self.file, self.at(to), len).unwrap();
                assert_eq!(copied, bytes.len() as u64, "{:?}", self.last.back());
                if copied > 0 {
                    self.put(to, &bytes);
                }
                self.read(&(to..to + bytes.len()));
            }
            CopyFrom => {
                let from = self.random.below(self.source.len());
                let end = (from + range.len()).min(self.source.len());
                let source = self.fs.open_file(SOURCE).unwrap();
                let copied = source.copy_range(from as u64, &self.file, at, len).unwrap();
                assert_eq!(copied, (end - from) as u64, "{:?}", self.last.back());
                let bytes = self.source[from..end].to_vec();
                self.put(range.start, &bytes);
            }
            Seek => self.seek(range.start),
            SyncAll => self.file.sync_all().unwrap(),
            SyncData => self.file.sync_data().unwrap(),
            Checkpoint => drop(self.fs.checkpoint().unwrap()),
            Clean => drop(self.fs.clean().unwrap()),
            OpenAnew => self.file = self.fs.open_file(PATH).unwrap(),
            MountAnew => {
                self.fs.close().unwrap();
                self.fs = FileSystem::open(self.device.clone(), self.options.clone()).unwrap();
                self.file = self.fs.open_file(PATH).unwrap();
            }
        }
        // A block on each side is there, and no more: what else is cached stays as the operations left it.
        let near = range.start.saturating_sub(4096)..(range.end + 4096).min(WINDOW);
        self.read(&near);
        assert_eq!(self.file.size(), self.at(self.model.len()), "{:?}", self.last);
    }

    /// All between two ranges of data is zero.
    fn seek(&self, from: usize) {
        let mut at = from;
        while at < self.model.len() {
            let data = self.file.next_data(self.at(at)).unwrap();
            let (start, end) = match data {
                Some(data) => ((data.start - self.start) as usize, (data.end - self.start) as usize),
                None => (self.model.len(), self.model.len()),
            };
            if start < at || self.model.get(at..start).is_none_or(|hole| hole.iter().any(|byte| *byte != 0)) {
                self.fail(&format!("no data from {at} to {start} of {}", self.model.len()));
            }
            at = end.max(start + 1);
        }
        assert_eq!(self.file.next_data(self.at(self.model.len())).unwrap(), None);
    }
}

fn number(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// The operations in front of a file system with a page cache of so many bytes, the window at each of its places.
fn rounds(cache: u64) {
    let operations = number("F2FS_FSX_OPERATIONS", 4000);
    let seed = number("F2FS_FSX_SEED", 1);
    let drawn: Vec<_> = WEIGHTS.iter().flat_map(|(operation, times)| vec![*operation; *times as usize]).collect();
    for (place, start) in (0..).zip(STARTS) {
        let mut fsx = Fsx::new(Options::new().page_cache(cache), start, seed * 4 + place);
        for number in 0..operations / STARTS.len() as u64 {
            let operation = *fsx.random.one_of(&drawn);
            fsx.step(operation);
            if number % 40 == 39 {
                fsx.whole();
            }
        }
        fsx.whole();
        fsx.fs.close().unwrap();
        assert_clean(&fsx.device);
    }
    println!("{operations} operations from seed {seed}, page cache {cache} bytes: no difference");
}

#[test]
fn without_a_cache() {
    rounds(0);
}

/// Sixteen pages: most writes meet a cache that is full.
#[test]
fn with_a_cache_that_is_full() {
    rounds(16 * 4160);
}

#[test]
fn with_a_cache_that_takes_all() {
    rounds(64 << 20);
}
