//! Instructions and allocations of operations on files with a journal and without, on memory, on one thread.
//!
//! `cargo bench -p f2fs-instructions --bench journal_instructions` prints a line for each operation: without a journal, with
//! one in the mode `ordered`, and in the mode `journal`, with the ratio of each to none. What a sync takes is the
//! difference between a write with a sync and the write alone, on a line of its own. Checkpoints that the operations
//! cause are counted as theirs. It fails if a sync of 4 KiB in the mode `journal` allocates, or takes more instructions
//! than its bound, which leaves a fifth of room over what was measured when it was set.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;

use f2fs::device::MemoryDevice;
use f2fs::journal::RegionMedium;
use f2fs::pmem::MemoryRegion;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{File, FileSystem, JournalMode, JournalOptions, Options, RenameMode, create_journal};

/// Files that are looked up and renamed.
const FILES: u64 = 500;
/// Blocks that are read and overwritten.
const BLOCKS: u64 = 64;
/// Bytes of the journal.
const JOURNAL: usize = 256 << 20;
/// Instructions of a sync of 4 KiB in the mode `journal`.
const MOST: f64 = 13_300.0;

struct Setup {
    fs: FileSystem,
    data: File,
}

type Case = (&'static str, fn(&Setup, u64));

const CASES: [Case; 6] = [
    ("create + unlink", |setup, n| {
        let name = format!("/there/file-{n}");
        drop(setup.fs.create_file(&name, 0o644).unwrap());
        setup.fs.remove_file(name).unwrap();
    }),
    ("rename", |setup, n| {
        let name = |kind: &str| format!("/there/{kind}-{}", n % FILES);
        let (from, to) = if (n / FILES).is_multiple_of(2) { ("there", "moved") } else { ("moved", "there") };
        setup.fs.rename(name(from), name(to), RenameMode::Replace).unwrap();
    }),
    ("look-up", |setup, n| {
        black_box(setup.fs.metadata(format!("/there/there-{}", n % FILES)).unwrap());
    }),
    ("read 4 KiB", |setup, n| {
        let mut block = [0; 4096];
        setup.data.read_at(&mut block, n % BLOCKS * 4096).unwrap();
        black_box(block);
    }),
    ("overwrite 4 KiB", overwrite),
    ("overwrite and sync 4 KiB", |setup, n| {
        overwrite(setup, n);
        setup.data.sync_data().unwrap();
    }),
];

/// Names of the modes, as a case's name ends.
const MODES: [(&str, Option<JournalMode>); 3] =
    [("none", None), ("ordered", Some(JournalMode::Ordered)), ("journal", Some(JournalMode::Journal))];

fn overwrite(setup: &Setup, n: u64) {
    setup.data.write_at(black_box(&[n as u8; 4096]), n % BLOCKS * 4096).unwrap();
}

fn setup(mode: Option<JournalMode>) -> Setup {
    let device = Arc::new(MemoryDevice::new(128 * 1024));
    format(&*device, &FormatOptions::default()).unwrap();
    let mut options = Options::new();
    if let Some(mode) = mode {
        let medium = Arc::new(RegionMedium::new(MemoryRegion::new(JOURNAL).unwrap()));
        create_journal(device.clone(), medium.clone(), false).unwrap();
        options = options.journal(JournalOptions::new(medium, mode));
    }
    let fs = FileSystem::open(device, options).unwrap();
    fs.create_dir("/there", 0o755).unwrap();
    for n in 0..FILES {
        fs.create_file(format!("/there/there-{n}"), 0o644).unwrap();
    }
    let data = fs.create_file("/data", 0o644).unwrap();
    data.write_at(&vec![7; 4096 * BLOCKS as usize], 0).unwrap();
    fs.checkpoint().unwrap();
    Setup { fs, data }
}

fn main() {
    let run = |name: &str, count| {
        let (operation, mode) = name.split_once(", ").unwrap();
        let (_, operation) = CASES.into_iter().find(|(case, _)| *case == operation).unwrap();
        let (_, mode) = MODES.into_iter().find(|(named, _)| *named == mode).unwrap();
        let setup = setup(mode);
        (0..count).for_each(|n| operation(&setup, n));
    };
    if f2fs_instructions::counted(run) {
        return;
    }
    println!("{:<26} {:>10} {:>12} {:>12} {:>7}", "operation", "journal", "instructions", "allocations", "ratio");
    let mut last = [(0.0, 0.0); 3];
    let mut of_sync = (0.0, 0.0);
    for (name, _) in CASES {
        let counts = MODES.map(|(mode, _)| {
            let case = format!("{name}, {mode}");
            let count = f2fs_instructions::per_operation(&case).unwrap();
            (count, f2fs_instructions::allocations_per_operation(&case).unwrap())
        });
        let line = |name: &str, counts: [(f64, f64); 3]| {
            for ((mode, _), (count, allocations)) in MODES.iter().zip(counts) {
                let ratio = count / counts[0].0;
                println!("{name:<26} {mode:>10} {count:>12.0} {allocations:>12.2} {ratio:>7.2}");
            }
        };
        line(name, counts);
        if name == "overwrite and sync 4 KiB" {
            let syncs = std::array::from_fn(|at| (counts[at].0 - last[at].0, counts[at].1 - last[at].1));
            line("sync 4 KiB", syncs);
            of_sync = syncs[2];
        }
        last = counts;
    }
    let (count, allocations) = of_sync;
    assert!(count <= MOST && allocations < 0.01, "a sync of 4 KiB: {count:.0} instructions, {allocations} allocations");
}
