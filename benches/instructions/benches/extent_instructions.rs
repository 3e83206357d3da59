//! Instructions, allocations and nanoseconds of a lock and unlock, on one thread without contention.
//!
//! `cargo bench -p f2fs-instructions --bench extent_instructions` prints one line for each case. It fails if a shared
//! lock of one block takes more than 120 instructions or allocates.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use f2fs::extent::{Bits, ExtentBits, ExtentTable};
use f2fs::sync::RwLock;

/// The bound for a shared lock and unlock of one block.
const MOST_INSTRUCTIONS: f64 = 120.0;
/// Blocks of the file: 1 GiB.
const BLOCKS: u64 = 1 << 18;

/// A name, and what is done with a block; the first is the cost of the loop around it, which is taken off the others.
type Case = (&'static str, fn(&Setup, u64));

const CASES: [Case; 10] = [
    ("nothing", |_, _| ()),
    ("file rwlock, read", |setup, _| drop(setup.file.read())),
    ("shared, small file", |setup, block| drop(setup.table.shared(block % 64..=block % 64))),
    ("shared, 1 GiB file", |setup, block| drop(setup.table.shared(block..=block))),
    ("exclusive, 1 GiB file", |setup, block| drop(setup.table.exclusive(block..=block))),
    ("try_shared, 1 GiB file", |setup, block| drop(setup.table.try_shared(block..=block))),
    ("shared, 1 MiB of 1 GiB", |setup, block| drop(setup.table.shared(block & !255..=block | 255))),
    ("exclusive_from, idle 1 GiB", |setup, block| drop(setup.table.exclusive_from(block))),
    ("exclusive_all, idle 1 GiB", |setup, _| drop(setup.table.exclusive_all())),
    ("bits: test one block", |setup, block| {
        black_box(setup.bits.test_all(block..=block, Bits::UPTODATE));
    }),
];

struct Setup {
    table: ExtentTable,
    bits: ExtentBits,
    file: RwLock<()>,
}

/// A file of which every line was locked once, and is idle.
fn setup() -> Setup {
    let table = ExtentTable::new();
    for block in (0..BLOCKS).step_by(64) {
        drop(table.shared(block..=block));
    }
    let bits = ExtentBits::new();
    bits.set(0..BLOCKS, Bits::UPTODATE);
    for block in (0..BLOCKS).step_by(4096) {
        assert!(bits.test_all(block..=block, Bits::UPTODATE));
    }
    drop(table.exclusive_all());
    for block in (0..BLOCKS).step_by(64) {
        drop(table.shared(block..=block));
    }
    Setup { table, bits, file: RwLock::new(()) }
}

fn operations(setup: &Setup, operation: fn(&Setup, u64), count: u64) {
    for n in 0..count {
        operation(setup, black_box(n * 7919 % BLOCKS));
    }
}

/// The shortest of several runs, per operation.
fn nanoseconds(setup: &Setup, (case, operation): Case) -> f64 {
    let count = if case.contains("MiB of") || case.contains("idle") { 5_000 } else { 200_000 };
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let start = Instant::now();
        operations(setup, operation, count);
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / count as f64
}

fn main() {
    let run = |name: &str, count| {
        let (_, operation) = CASES.into_iter().find(|(case, _)| *case == name).unwrap();
        operations(&setup(), operation, count);
    };
    if f2fs_instructions::counted(run) {
        return;
    }
    let setup = setup();
    println!("{:<28} {:>14} {:>12} {:>10}", "operation", "instructions", "allocations", "ns");
    let mut bound = (0.0, 0.0);
    let mut around = (0.0, 0.0);
    for case in CASES {
        let count = f2fs_instructions::per_operation(case.0).unwrap() - around.0;
        let allocations = f2fs_instructions::allocations_per_operation(case.0).unwrap();
        let time = nanoseconds(&setup, case) - around.1;
        println!("{:<28} {count:>14.1} {allocations:>12.3} {time:>10.1}", case.0);
        if case.0 == "nothing" {
            around = (count, time);
        }
        if case.0 == "shared, 1 GiB file" {
            bound = (count, allocations);
        }
    }
    // The first covering lock after every line was locked looks into every line.
    let mut first = Duration::MAX;
    for _ in 0..20 {
        for block in (0..BLOCKS).step_by(64) {
            drop(setup.table.shared(block..=block));
        }
        let start = Instant::now();
        drop(setup.table.exclusive_all());
        first = first.min(start.elapsed());
    }
    println!("exclusive_all after every line of 1 GiB was locked: {:.1} us", first.as_nanos() as f64 / 1e3);
    assert!(bound.0 <= MOST_INSTRUCTIONS, "a shared lock takes more than {MOST_INSTRUCTIONS} instructions");
    assert!(bound.1 == 0.0, "a shared lock allocates");
}
