//! The scenarios that Btrfs tests its extent io tree with (`fs/btrfs/tests/extent-io-tests.c`), in blocks of 4 KiB
//! where they count in bytes.
#![cfg(not(any(loom, shuttle)))]

use f2fs_extent::{Bits, BlockRange, ExtentBits};

/// Blocks in a MiB.
const MIB: u64 = 256;
/// The longest extent of Btrfs, 128 MiB.
const MOST: u64 = 128 * MIB;

fn found(first: u64, last: u64) -> Option<BlockRange> {
    BlockRange::new(first, last)
}

#[test]
fn delalloc_search() {
    let bits = ExtentBits::new();
    // Delayed allocation exactly where the search begins.
    bits.set(0..1, Bits::DELALLOC);
    assert_eq!(bits.find_delalloc(BlockRange::one(0), MOST), found(0, 0));

    // The search begins in the middle of it.
    bits.set(1..MOST, Bits::DELALLOC);
    let middle = 64 * MIB;
    assert_eq!(bits.find_delalloc(BlockRange::one(middle), MOST), found(middle, MOST - 1));

    // The search begins after it.
    let after = MOST + 1;
    assert_eq!(bits.find_delalloc(BlockRange::one(after), MOST), None);

    // More of it than may be found at once, and the search begins in the second half.
    bits.set(MOST..2 * MOST, Bits::DELALLOC);
    assert_eq!(bits.find_delalloc(BlockRange::one(after), MOST), found(after, 2 * MOST - 1));
    assert_eq!(bits.find_delalloc(BlockRange::one(0), MOST), found(0, MOST - 1), "no more than asked for");

    // A run of other bits between: delayed allocation behind it is not found.
    bits.clear(100..200, Bits::DELALLOC);
    bits.set(100..200, Bits::DIRTY);
    assert_eq!(bits.find_delalloc(BlockRange::one(50), MOST), found(50, 99));
    assert_eq!(bits.find_delalloc(found(150, 300).expect("a range"), MOST), None);
}

#[test]
fn first_clear_range() {
    // Btrfs' device tree has two bits here: allocated and trimmed.
    let (allocated, trimmed) = (Bits::USER_0, Bits::USER_1);
    let both = allocated | trimmed;
    let bits = ExtentBits::new();
    assert_eq!(bits.find_without(0, both), Some(BlockRange::ALL), "an empty table");

    bits.set(MIB..4 * MIB, both);
    assert_eq!(bits.find_without(MIB / 2, both), found(0, MIB - 1), "a gap before the first run");

    bits.set(32 * MIB..64 * MIB, both);
    assert_eq!(bits.find_without(12 * MIB, both), found(4 * MIB, 32 * MIB - 1), "in the middle of a gap");
    assert_eq!(bits.find_without(2 * MIB, both), found(4 * MIB, 32 * MIB - 1), "in the middle of a run");

    bits.set(64 * MIB..72 * MIB, allocated);
    assert_eq!(bits.find_without(65 * MIB, trimmed), found(64 * MIB, 72 * MIB - 1), "inside a run without the bit");
    assert_eq!(
        bits.find_without(56 * MIB, trimmed),
        found(64 * MIB, 72 * MIB - 1),
        "the neighbour has only the other bit"
    );
    assert_eq!(bits.find_without(u64::MAX, trimmed), found(72 * MIB, u64::MAX), "beyond every run");

    assert_eq!(bits.clear(.., both), u128::from(43 * MIB));
    assert_eq!(bits.iter().count(), 0);
}

#[test]
fn ranges_to_the_last_block() {
    let bits = ExtentBits::new();
    bits.set(u64::MAX.., Bits::DIRTY);
    assert!(bits.test_all(u64::MAX.., Bits::DIRTY));
    assert!(!bits.test_any(..u64::MAX, Bits::DIRTY));
    assert_eq!(bits.set(.., Bits::DIRTY), u128::from(u64::MAX));
    assert_eq!(bits.find_without(0, Bits::DIRTY), None);
    assert_eq!(bits.find_with(u64::MAX, Bits::DIRTY).map(|run| run.range), Some(BlockRange::ALL));
    assert_eq!(bits.count(.., Bits::DIRTY), 1 << 64);
    assert_eq!(bits.convert(10.., Bits::WRITEBACK, Bits::DIRTY), (1 << 64) - 10);
    assert_eq!(bits.first_contiguous(BlockRange::ALL, Bits::WRITEBACK), found(10, u64::MAX));
}

#[test]
fn a_range_over_everything_is_one_entry() {
    let bits = ExtentBits::new();
    bits.set(.., Bits::DELALLOC);
    let before = bits.bytes();
    assert!(before < 512, "{before} bytes");
    assert_eq!(bits.get(5), Bits::DELALLOC);
    assert!(bits.bytes() < before + 16_384, "one chunk for block 5");
    assert_eq!(bits.clear(1 << 20..=u64::MAX - 1, Bits::DELALLOC), u128::from(u64::MAX - (1 << 20)));
    let runs: Vec<_> = bits.iter().map(|run| run.range).collect();
    assert_eq!(runs, [BlockRange::of(0..1 << 20).expect("a range"), BlockRange::one(u64::MAX)]);
}
