//! Models of the state bits, with chunks of 16 blocks (2 words).
//!
//! ```text
//! mutant: convert_in_two_steps, killed by: a_block_is_converted_in_one_step
//! mutant: bits_change_version, killed by: two_words_are_converted_in_one_step
//! mutant: bits_read_unversioned, killed by: two_words_are_converted_in_one_step
//! mutant: bits_long_change_in_two_steps, killed by: chunks_and_map_are_converted_in_one_step
//! mutant: bits_long_change_in_two_steps, killed by: two_readers_see_a_long_conversion_whole
//! mutant: convert_in_two_steps, killed by: two_readers_and_a_conversion
//! mutant: bits_read_empty_map_unchecked, killed by: bits_are_seen_while_they_move_into_a_chunk
//! ```
#![cfg(loom)]

use f2fs_extent::{Bits, ExtentBits};
use f2fs_sync::model::{bounded, exhaustive};
use f2fs_sync::{Arc, thread};

/// Spawns a thread that does something with the bits.
fn with(bits: &Arc<ExtentBits>, body: impl FnOnce(&ExtentBits) + 'static) -> thread::JoinHandle<()> {
    let bits = Arc::clone(bits);
    thread::spawn(move || body(&bits))
}

#[test]
fn a_block_is_converted_in_one_step() {
    exhaustive("a_block_is_converted_in_one_step", || {
        let bits = Arc::new(ExtentBits::new());
        bits.set(3..=4, Bits::DIRTY);
        let other = with(&bits, |bits| {
            assert_eq!(bits.convert(3..=3, Bits::WRITEBACK, Bits::DIRTY), 1);
        });
        let seen = bits.get(3);
        assert!(seen == Bits::DIRTY || seen == Bits::WRITEBACK, "{seen:?}");
        // The neighbour in the word changes meanwhile.
        bits.set(4..=4, Bits::NEW);
        other.join().unwrap();
        assert_eq!((bits.get(3), bits.get(4)), (Bits::WRITEBACK, Bits::DIRTY | Bits::NEW));
    });
}

#[test]
fn two_words_are_converted_in_one_step() {
    exhaustive("two_words_are_converted_in_one_step", || {
        let bits = Arc::new(ExtentBits::new());
        bits.set(7..=8, Bits::DIRTY);
        let other = with(&bits, |bits| {
            assert_eq!(bits.convert(7..=8, Bits::WRITEBACK, Bits::DIRTY), 2);
        });
        let dirty = bits.count(7..=8, Bits::DIRTY);
        assert!(dirty == 0 || dirty == 2, "{dirty} of 2 blocks are dirty");
        other.join().unwrap();
        assert!(bits.test_all(7..=8, Bits::WRITEBACK));
    });
}

#[test]
fn chunks_and_map_are_converted_in_one_step() {
    exhaustive("chunks_and_map_are_converted_in_one_step", || {
        let bits = Arc::new(ExtentBits::new());
        bits.set(15..=16, Bits::DIRTY);
        // Block 15 gets a chunk, block 16 stays in the map.
        assert_eq!(bits.get(15), Bits::DIRTY);
        let other = with(&bits, |bits| {
            assert_eq!(bits.convert(15..=16, Bits::WRITEBACK, Bits::DIRTY), 2);
        });
        let dirty = bits.count(15..=16, Bits::DIRTY);
        assert!(dirty == 0 || dirty == 2, "{dirty} of 2 blocks are dirty");
        other.join().unwrap();
        assert!(bits.test_all(15..=16, Bits::WRITEBACK));
    });
}

#[test]
fn bits_are_seen_while_they_move_into_a_chunk() {
    exhaustive("bits_are_seen_while_they_move_into_a_chunk", || {
        let bits = Arc::new(ExtentBits::new());
        // Both chunks in the map; then the second gets a chunk, and what the map has left is in the first.
        bits.set(8..=23, Bits::DIRTY);
        bits.clear(16..=23, Bits::DIRTY);
        let other = with(&bits, |bits| assert_eq!(bits.get(8), Bits::DIRTY));
        assert_eq!(bits.get(9), Bits::DIRTY);
        other.join().unwrap();
        assert_eq!(bits.count(.., Bits::DIRTY), 8);
    });
}

#[test]
fn two_readers_and_a_conversion() {
    bounded("two_readers_and_a_conversion", 3, || {
        let bits = Arc::new(ExtentBits::new());
        bits.set(3..=3, Bits::DIRTY);
        let look = |bits: &ExtentBits| {
            let seen = bits.get(3);
            assert!(seen == Bits::DIRTY || seen == Bits::WRITEBACK, "{seen:?}");
        };
        let others =
            [with(&bits, look), with(&bits, |bits| assert_eq!(bits.convert(3..=3, Bits::WRITEBACK, Bits::DIRTY), 1))];
        look(&bits);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(bits.get(3), Bits::WRITEBACK);
    });
}

#[test]
fn two_readers_see_a_long_conversion_whole() {
    bounded("two_readers_see_a_long_conversion_whole", 3, || {
        let bits = Arc::new(ExtentBits::new());
        bits.set(15..=16, Bits::DIRTY);
        assert_eq!(bits.get(15), Bits::DIRTY);
        let look = |bits: &ExtentBits| {
            let dirty = bits.count(15..=16, Bits::DIRTY);
            assert!(dirty == 0 || dirty == 2, "{dirty} of 2 blocks are dirty");
        };
        let others =
            [with(&bits, look), with(&bits, |bits| assert_eq!(bits.convert(15..=16, Bits::WRITEBACK, Bits::DIRTY), 2))];
        look(&bits);
        for other in others {
            other.join().unwrap();
        }
    });
}
