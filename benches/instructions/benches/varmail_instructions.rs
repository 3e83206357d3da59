//! Instructions and allocations of a mail server's flow, as `f2fs bench varmail` has it, on memory, on one thread.
//!
//! `cargo bench -p f2fs-instructions --bench varmail_instructions` prints a line without a journal, one with a journal
//! in the mode `ordered`, and one in the mode `journal`, each for one of the flow's operations, of which a round has 13:
//!
//! ```text
//!   remove | create, append, sync, close | open, read, append, sync, close | open, read, close
//! ```
//!
//! There is a page cache, and the journal is as large as in the guest test `varmail`, so checkpoints come as often as
//! there, and are counted, with the copies into the memory that stands for the device. The flow's own instructions are few: it makes a path and chooses a file, in 6 of 13
//! operations. It fails if an operation in the mode `journal` takes more instructions than its bound, which leaves a
//! tenth of room over what was measured when it was set.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;

use f2fs::device::{AlignedBuf, BlockDevice, MemoryDevice};
use f2fs::journal::RegionMedium;
use f2fs::pmem::MemoryRegion;
use f2fs::volume::VolumeOptions;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{File, FileSystem, JournalMode, JournalOptions, Options, create_journal};

/// Files that are there.
const FILES: usize = 1000;
/// Bytes of an append at most. A file is made with twice as much.
const APPEND: usize = 16 << 10;
/// Blocks of the device, and of the pieces in which it asks for memory.
const BLOCKS: u64 = 128 * 1024;
const CHUNK: usize = 64;
/// Bytes of the journal and of the page cache.
const JOURNAL: usize = 64 << 20;
const PAGE_CACHE: u64 = 256 << 20;
/// Operations of a round.
const OPERATIONS: f64 = 13.0;
/// Instructions of an operation in the mode `journal`.
const MOST: f64 = 9_700.0;

/// Names of the modes.
const MODES: [(&str, Option<JournalMode>); 3] =
    [("none", None), ("ordered", Some(JournalMode::Ordered)), ("journal", Some(JournalMode::Journal))];

/// The file system, the numbers of the files that are there, and those of files that are not.
struct Flow {
    fs: FileSystem,
    here: Vec<u32>,
    free: Vec<u32>,
    random: u64,
    buffer: Vec<u8>,
}

impl Flow {
    fn new(mode: Option<JournalMode>) -> Flow {
        let device = Arc::new(MemoryDevice::new(BLOCKS));
        // A device's memory is there before it is used, and stays.
        for chunk in (0..BLOCKS).step_by(CHUNK) {
            device.write(chunk, AlignedBuf::from_bytes(&[1])).unwrap();
        }
        let mut format_options = FormatOptions::default();
        format_options.discard = false;
        format(&*device, &format_options).unwrap();
        let volume = VolumeOptions::default().discard(false);
        let mut options = Options::new().volume(volume).page_cache(PAGE_CACHE);
        if let Some(mode) = mode {
            let medium = Arc::new(RegionMedium::new(MemoryRegion::new(JOURNAL).unwrap()));
            create_journal(device.clone(), medium.clone(), false).unwrap();
            options = options.journal(JournalOptions::new(medium, mode));
        }
        let fs = FileSystem::open(device, options).unwrap();
        fs.create_dir("/mail", 0o755).unwrap();
        let numbers = |range: std::ops::Range<usize>| range.map(|number| number as u32).collect();
        let (here, free) = (numbers(0..FILES), numbers(FILES..2 * FILES));
        let mut flow = Flow { fs, here, free, random: 1, buffer: vec![7; 4 * APPEND] };
        for number in 0..FILES as u32 {
            let file = flow.fs.create_file(path(number), 0o644).unwrap();
            let bytes = 1 + flow.below(2 * APPEND);
            file.append(&flow.buffer[..bytes]).unwrap();
        }
        flow.fs.checkpoint().unwrap();
        flow
    }

    /// A number below `end`, of a linear congruential generator.
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) % end as u64) as usize
    }

    fn round(&mut self) {
        let (removed, made) = (self.below(self.here.len()), self.below(self.free.len()));
        let removed = std::mem::replace(&mut self.here[removed], self.free[made]);
        let made = std::mem::replace(&mut self.free[made], removed);
        self.fs.remove_file(path(removed)).unwrap();
        let file = self.fs.create_file(path(made), 0o644).unwrap();
        self.append_and_sync(&file);
        drop(file);
        let file = self.open();
        self.read(&file);
        self.append_and_sync(&file);
        drop(file);
        let file = self.open();
        self.read(&file);
    }

    fn open(&mut self) -> File {
        let number = self.below(self.here.len());
        self.fs.open_file(path(self.here[number])).unwrap()
    }

    fn append_and_sync(&mut self, file: &File) {
        let bytes = 1 + self.below(APPEND);
        file.append(black_box(&self.buffer[..bytes])).unwrap();
        file.sync_all().unwrap();
    }

    fn read(&mut self, file: &File) {
        let mut at = 0;
        loop {
            let read = file.read_at(&mut self.buffer, at).unwrap() as u64;
            at += read;
            if read == 0 {
                break;
            }
        }
        black_box(&self.buffer);
    }
}

fn path(number: u32) -> String {
    format!("/mail/{number:05}")
}

fn main() {
    let run = |mode: &str, rounds| {
        let (_, mode) = MODES.into_iter().find(|(named, _)| *named == mode).unwrap();
        let mut flow = Flow::new(mode);
        (0..rounds).for_each(|_| flow.round());
    };
    if f2fs_instructions::counted(run) {
        return;
    }
    println!("{:<10} {:>12} {:>12}", "journal", "instructions", "allocations");
    let mut of_journal = 0.0;
    for (mode, _) in MODES {
        let count = f2fs_instructions::per_operation(mode).unwrap() / OPERATIONS;
        let allocations = f2fs_instructions::allocations_per_operation(mode).unwrap() / OPERATIONS;
        println!("{mode:<10} {count:>12.0} {allocations:>12.2}");
        of_journal = count;
    }
    assert!(of_journal <= MOST, "an operation in the mode journal: {of_journal:.0} instructions");
}
