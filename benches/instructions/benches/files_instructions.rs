//! Instructions, allocations and nanoseconds of operations on files, on the memory device, on one thread without
//! contention.
//!
//! `cargo bench -p f2fs-instructions --bench files_instructions` prints one line for each case. Names are resolved from the root each time, as in
//! FxMark. The last column of a case that undoes itself is for both halves; what an unlink takes is the difference to the
//! create alone, on a line of its own. Checkpoints that the operations cause are counted as theirs. It fails if an operation
//! takes more instructions than its bound, which leaves a fifth of room over what was measured when it was set: create 20,200
//! (of them 4,200 for a block of zeros, which callgrind counts by the byte), unlink 7,000, rename 13,600, look-up 4,000, open
//! 3,400, open of a file that is open 540, read 6,300, overwrite 18,200; allocations 4.1, 0.9, 7, 2, 1, 0, 0 and 6.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use f2fs::device::MemoryDevice;
use f2fs::volume::format::{FormatOptions, format};
use f2fs::{File, FileSystem, Options, RenameMode};

/// Names that the shared directory has beside those of a case.
const OTHERS: u64 = 10_000;
/// Files that are looked up and renamed.
const FILES: u64 = 500;
/// Blocks that are read and overwritten.
const BLOCKS: u64 = 1024;

struct Setup {
    fs: FileSystem,
    data: File,
}

/// A name, what is done, and the most instructions that it may take.
type Case = (&'static str, fn(&Setup, u64), Option<f64>);

const CASES: [Case; 13] = [
    ("nothing", |_, _| (), None),
    ("create, private", |setup, n| create(setup, "private", n), Some(24_300.0)),
    ("create + unlink, private", |setup, n| create_unlink(setup, "private", n), Some(32_700.0)),
    ("create, shared", |setup, n| create(setup, "shared", n), Some(24_100.0)),
    ("create + unlink, shared", |setup, n| create_unlink(setup, "shared", n), Some(32_700.0)),
    ("rename, private", |setup, n| rename(setup, "private", n), Some(16_400.0)),
    ("rename, shared", |setup, n| rename(setup, "shared", n), Some(16_500.0)),
    ("lookup, private", |setup, n| lookup(setup, "private", n), Some(4_900.0)),
    ("lookup, shared", |setup, n| lookup(setup, "shared", n), Some(4_800.0)),
    ("open, private", |setup, n| open(setup, &format!("/private/there-{}", n % FILES)), Some(4_100.0)),
    ("open, open already", |setup, _| open(setup, "/data"), Some(650.0)),
    (
        "read 4 KiB",
        |setup, n| {
            let mut block = [0; 4096];
            setup.data.read_at(&mut block, n % BLOCKS * 4096).unwrap();
            black_box(block);
        },
        Some(7_500.0),
    ),
    (
        "overwrite 4 KiB",
        |setup, n| {
            setup.data.write_at(black_box(&[n as u8; 4096]), n % BLOCKS * 4096).unwrap();
        },
        Some(21_900.0),
    ),
];

fn create(setup: &Setup, directory: &str, n: u64) {
    drop(setup.fs.create_file(format!("/{directory}/u_file_rm-{n}.dat"), 0o644).unwrap());
}

fn create_unlink(setup: &Setup, directory: &str, n: u64) {
    create(setup, directory, n);
    setup.fs.remove_file(format!("/{directory}/u_file_rm-{n}.dat")).unwrap();
}

/// There and, the next time, back.
fn rename(setup: &Setup, directory: &str, n: u64) {
    let name = |kind: &str| format!("/{directory}/{kind}-{}", n % FILES);
    let (from, to) = if (n / FILES).is_multiple_of(2) { ("there", "moved") } else { ("moved", "there") };
    setup.fs.rename(name(from), name(to), RenameMode::Replace).unwrap();
}

fn lookup(setup: &Setup, directory: &str, n: u64) {
    black_box(setup.fs.metadata(format!("/{directory}/there-{}", n % FILES)).unwrap());
}

fn open(setup: &Setup, path: &str) {
    drop(black_box(setup.fs.open_file(path).unwrap()));
}

fn setup() -> Setup {
    let device = Arc::new(MemoryDevice::new(128 * 1024));
    format(&*device, &FormatOptions::default()).unwrap();
    let fs = FileSystem::open(device, Options::new()).unwrap();
    for (directory, others) in [("private", 0), ("shared", OTHERS)] {
        fs.create_dir(format!("/{directory}"), 0o755).unwrap();
        for n in 0..FILES {
            fs.create_file(format!("/{directory}/there-{n}"), 0o644).unwrap();
        }
        for n in 0..others {
            fs.create_file(format!("/{directory}/other-{n}"), 0o644).unwrap();
        }
    }
    let data = fs.create_file("/data", 0o644).unwrap();
    data.write_at(&vec![7; 4096 * BLOCKS as usize], 0).unwrap();
    fs.checkpoint().unwrap();
    Setup { fs, data }
}

/// The shortest of several runs, per operation.
fn nanoseconds((_, operation, _): Case) -> f64 {
    const COUNT: u64 = 5_000;
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let setup = setup();
        let start = Instant::now();
        (0..COUNT).for_each(|n| operation(&setup, n));
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / COUNT as f64
}

fn main() {
    let run = |name: &str, count| {
        let (_, operation, _) = CASES.into_iter().find(|(case, ..)| *case == name).unwrap();
        let setup = setup();
        (0..count).for_each(|n| operation(&setup, n));
    };
    if f2fs_instructions::counted(run) {
        return;
    }
    println!("{:<26} {:>12} {:>12} {:>10}", "operation", "instructions", "allocations", "ns");
    let mut last = (0.0, 0.0, 0.0);
    let mut too_many = Vec::new();
    for case in CASES {
        let count = f2fs_instructions::per_operation(case.0).unwrap();
        let allocations = f2fs_instructions::allocations_per_operation(case.0).unwrap();
        let time = nanoseconds(case);
        println!("{:<26} {count:>12.0} {allocations:>12.2} {time:>10.0}", case.0);
        if let Some(place) = case.0.strip_prefix("create + unlink, ") {
            let of_unlink = (count - last.0, allocations - last.1, time - last.2);
            let name = format!("unlink, {place}");
            println!("{name:<26} {:>12.0} {:>12.2} {:>10.0}", of_unlink.0, of_unlink.1, of_unlink.2);
        }
        last = (count, allocations, time);
        if case.2.is_some_and(|most| count > most) {
            too_many.push(case.0);
        }
    }
    assert!(too_many.is_empty(), "more instructions than their bounds: {too_many:?}");
}
