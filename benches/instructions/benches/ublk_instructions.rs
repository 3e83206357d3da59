//! Instructions and allocations of a request to a block device of `f2fs ublk`, as its server spends them, at a depth of
//! 32. `cargo bench -p f2fs-instructions --bench ublk_instructions` prints them for a device in memory.
//!
//! The copy between the memory that stands for the device and that of the request is counted: what 63 blocks more take
//! in the last two lines is that copy. The driver's part is not in it: it copies the data once more, and one system call
//! serves as many requests as there are (`docs/UBLK.md` has counts of those). It fails if a request of 4 KiB takes more
//! instructions than its bound, which leaves a tenth of room over what was measured when it was set.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use f2fs::device::{AlignedBuf, BlockDevice, MemoryDevice};
use f2fs_ublk::{Backend, Rehearsed, rehearse};

/// Blocks of the device.
const BLOCKS: u64 = 4096;
const DEPTH: u16 = 32;
/// Blocks of the longest request.
const MOST: u32 = 64;
/// Cases: whether they write, and blocks.
const CASES: [(&str, bool, u32); 4] =
    [("read 4 KiB", false, 1), ("write 4 KiB", true, 1), ("read 256 KiB", false, 64), ("write 256 KiB", true, 64)];
/// Instructions of a request of 4 KiB.
const BOUND: f64 = 1_170.0;

fn run(case: &str, requests: u64) {
    let (_, writes, blocks) = CASES.into_iter().find(|(name, ..)| *name == case).unwrap();
    let memory = Arc::new(MemoryDevice::new(BLOCKS));
    for block in 0..BLOCKS {
        memory.write(block, AlignedBuf::from_bytes(&[1])).unwrap();
    }
    let places = BLOCKS / u64::from(blocks);
    let script = (0..requests).map(|number| {
        // In no order: an odd factor goes through all places, whose number is a power of two.
        let start = number.wrapping_mul(2_654_435_761) % places * u64::from(blocks);
        if writes { Rehearsed::Write { start, blocks } } else { Rehearsed::Read { start, blocks } }
    });
    let counts = rehearse(&Backend::Plain(memory), DEPTH, MOST, script).unwrap();
    assert_eq!((counts.requests, counts.failed), (requests, 0));
}

fn main() {
    if f2fs_instructions::counted(run) {
        return;
    }
    println!("{:<16} {:>14} {:>14}", "request", "instructions", "allocations");
    let mut too_many = false;
    for (case, _, blocks) in CASES {
        let count = f2fs_instructions::per_operation(case).unwrap();
        let allocations = f2fs_instructions::allocations_per_operation(case).unwrap();
        println!("{case:<16} {count:>14.1} {allocations:>14.2}");
        too_many |= blocks == 1 && count > BOUND;
    }
    assert!(!too_many, "a request of 4 KiB takes more than {BOUND} instructions");
}
