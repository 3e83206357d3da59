//! The power cuts of the simulator, and the promises of a device on it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::thread;

use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, Request};
use f2fs_device_test::pmem::{PowerCut, SimulatedRegion, WAYS};
use f2fs_pmem::{PersistentRegion, PmemDevice};
use f2fs_sync::Arc;

/// The words at these offsets, in every state.
fn contents<const N: usize>(cut: &PowerCut, offsets: [usize; N]) -> BTreeSet<[u64; N]> {
    assert!(cut.states() <= 1 << 12, "{} states", cut.states());
    cut.all(u128::MAX).map(|state| offsets.map(|offset| state.load_u64(offset))).collect()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn stores_to_a_line_reach_the_media_in_order_and_lines_in_any() {
    let region = SimulatedRegion::new(4096);
    region.store(0, &words(&[1, 2])).unwrap();
    region.store(0, &words(&[3])).unwrap();
    assert_eq!(contents(&region.cut(), [0, 8]), [[0, 0], [1, 0], [1, 2], [3, 2]].into());
    region.store(64, &words(&[9])).unwrap();
    assert_eq!(contents(&region.cut(), [0, 64]).len(), 6, "0, 1, 3, each with 0 or 9");
    assert_eq!(region.cut().uncertain().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn past_the_cache_there_is_no_order() {
    let region = SimulatedRegion::new(4096);
    region.store_nontemporal(64, &words(&[1, 2, 3, 4, 5, 6, 7, 8])).unwrap();
    assert_eq!(region.cut().states(), 256);
    assert_eq!(contents(&region.cut(), [64, 120]), [[0, 0], [0, 8], [1, 0], [1, 8]].into());
    // Two of the ways to draw: one word is lost, or one alone is there.
    for seed in 0..8 * WAYS {
        let state = region.cut().draw(seed);
        let there = (64..128).step_by(8).filter(|at| state.load_u64(*at) != 0).count();
        match seed % WAYS {
            6 => assert_eq!(there, 7, "{seed}"),
            7 => assert_eq!(there, 1, "{seed}"),
            _ => {}
        }
    }
    region.fence();
    assert_eq!(contents(&region.cut(), [64, 120]), [[1, 8]].into());
    // Through the cache they have an order: the last one is lost, or the first one alone is there.
    region.store(256, &words(&[1, 2, 3])).unwrap();
    assert_eq!(contents(&region.cut(), [256, 264, 272]).len(), 4);
    for seed in 0..8 * WAYS {
        let state = region.cut().draw(seed);
        let found = [256, 264, 272].map(|at| state.load_u64(at));
        match seed % WAYS {
            6 => assert_eq!(found, [1, 2, 0], "{seed}"),
            7 => assert_eq!(found, [1, 0, 0], "{seed}"),
            _ => {}
        }
    }
    region.write_back(256, 24).unwrap();
    region.fence();
    // Part of a line goes through the cache, and is written back.
    region.store_nontemporal(8, &words(&[1, 2])).unwrap();
    assert_eq!(contents(&region.cut(), [8, 16]), [[0, 0], [1, 0], [1, 2]].into());
    region.fence();
    assert_eq!(contents(&region.cut(), [8, 16]), [[1, 2]].into());
}

#[test]
fn only_what_was_written_back_and_fenced_is_certain() {
    let region = SimulatedRegion::new(4096);
    region.store(0, &words(&[1])).unwrap();
    region.fence();
    assert_eq!(contents(&region.cut(), [0]), [[0], [1]].into(), "a fence alone writes nothing back");
    region.write_back(0, 8).unwrap();
    assert_eq!(contents(&region.cut(), [0]), [[0], [1]].into(), "a write-back may still be under way");
    region.store(0, &words(&[2])).unwrap();
    region.fence();
    assert_eq!(contents(&region.cut(), [0]), [[1], [2]].into(), "the store came behind the write-back");
    region.write_back(64, 8).unwrap();
    region.fence();
    assert_eq!(contents(&region.cut(), [0]), [[1], [2]].into(), "another line");
}

#[test]
fn a_fence_is_that_of_its_thread() {
    let region = SimulatedRegion::new(4096);
    let elsewhere = |work: &(dyn Fn() + Sync)| thread::scope(|scope| scope.spawn(work).join().unwrap());
    elsewhere(&|| region.store_nontemporal(0, &words(&[1; 8])).unwrap());
    region.fence();
    assert_eq!(region.cut().states(), 256, "the words are in another processor's buffers");
    region.store(64, &words(&[5])).unwrap();
    elsewhere(&|| {
        region.write_back(64, 8).unwrap();
        region.fence();
    });
    assert_eq!(contents(&region.cut(), [64]), [[5]].into(), "the cache is one");
}

#[test]
fn what_is_certain_wins_over_older_stores() {
    let region = SimulatedRegion::new(4096);
    region.store(0, &words(&[1, 1])).unwrap();
    region.store_nontemporal(0, &words(&[2, 2, 2, 2, 2, 2, 2, 2])).unwrap();
    region.fence();
    assert_eq!(contents(&region.cut(), [0, 8]), [[2, 2]].into());
    let mut loaded = [0; 16];
    region.load(0, &mut loaded).unwrap();
    assert_eq!(loaded.to_vec(), words(&[2, 2]));
}

#[test]
fn unaligned_bytes_are_torn_one_by_one_and_read_back() {
    let region = SimulatedRegion::new(10_000);
    region.store(4090, &[7; 12]).unwrap();
    let mut loaded = [0; 14];
    region.load(4089, &mut loaded).unwrap();
    assert_eq!(loaded, [0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0]);
    // Six single bytes in one line, six in the next.
    assert_eq!(region.cut().states(), 7 * 7);
    region.load(9999, &mut [0]).unwrap();
    region.load(9999, &mut [0; 2]).unwrap_err();
}

#[test]
fn a_replay_cuts_at_every_event_and_draws_are_repeated_by_their_seed() {
    let region = SimulatedRegion::on(&MemoryDevice::from_bytes(&[1; 8192]));
    let device = PmemDevice::new(Arc::new(region));
    device.write(1, AlignedBuf::from_bytes(&[2; 4096])).unwrap();
    let log = device.region().log();
    assert_eq!(log.events().len(), 5, "stores, a fence, the last line's stores, its write-back, a fence");
    let mut replay = log.replay();
    let states: Vec<u128> = std::iter::from_fn(|| replay.advance().map(|_| replay.cut().states())).collect();
    assert_eq!(states, [u128::MAX, 1, 9, 9, 1]);
    let mut replay = log.replay();
    replay.advance();
    let cut = replay.cut();
    let prints = |seed| cut.draw(seed).into_media().to_bytes();
    assert!((0..12).all(|seed| prints(seed) == prints(seed)));
    assert!((0..60).map(prints).collect::<BTreeSet<_>>().len() > 40);
    assert_eq!(cut.lost().media().to_bytes(), [1; 8192]);
}

/// The promise of the device: a block whose last word is new is new, and a completed write is certain, whoever flushes.
#[test]
fn the_last_word_of_a_block_comes_last() {
    let device = PmemDevice::new(Arc::new(SimulatedRegion::new(4 * 4096)));
    for round in 1..=3_u64 {
        let mut bytes = words(&vec![round; 3 * 512]);
        bytes[0] = round as u8;
        let request = Request::write(1, AlignedBuf::from_bytes(&bytes));
        let before = device.region().position();
        thread::scope(|scope| scope.spawn(|| device.execute(request).result.unwrap()).join().unwrap());
        let log = device.region().log();
        let mut replay = log.replay();
        let mut seen = BTreeSet::new();
        while replay.advance().is_some() {
            if replay.position() <= before {
                continue;
            }
            let cut = replay.cut();
            for state in cut.all(300).chain((0..60).map(|seed| cut.draw(seed))) {
                for block in 1..4 {
                    let word = |at: usize| state.load_u64(block * 4096 + at * 8);
                    if word(511) == round {
                        assert!((0..512).all(|at| word(at) == round), "block {block} is torn in round {round}");
                    }
                    seen.insert(word(511) == round);
                }
            }
        }
        assert_eq!(seen.len(), 2, "states with and without");
        assert_eq!(device.region().cut().states(), 1, "a completed write is certain");
    }
    device.flush().unwrap();
}

/// A write of more blocks than one round has, in several buffers: every block comes back, and blocks of a round that is
/// under way are whole or their last word is old.
#[test]
fn a_write_of_several_rounds_keeps_its_blocks_and_their_order() {
    const BLOCKS: usize = 131;
    let device = PmemDevice::new(Arc::new(SimulatedRegion::new((BLOCKS + 1) * 4096)));
    let content = |block: usize| (block + 1) as u64;
    let buf = |blocks: std::ops::Range<usize>| {
        AlignedBuf::from_bytes(&words(&blocks.flat_map(|block| [content(block); 512]).collect::<Vec<_>>()))
    };
    let bufs = vec![buf(0..3), buf(3..66), buf(66..67), buf(67..BLOCKS)];
    device.execute(Request::vectored(f2fs_device::Op::Write, 1, bufs)).result.unwrap();
    let read = device.read(1, BLOCKS).unwrap();
    assert_eq!(read.as_bytes(), buf(0..BLOCKS).as_bytes());
    let log = device.region().log();
    let mut replay = log.replay();
    let mut torn = 0;
    while replay.advance().is_some() {
        let state = replay.cut().draw(replay.position() as u64 * 6);
        for block in (0..BLOCKS).step_by(5).chain([BLOCKS - 1]) {
            let word = |at: usize| state.load_u64((block + 1) * 4096 + at * 8) == content(block);
            let whole = (0..511).step_by(7).all(word);
            assert!(whole || !word(511), "block {block} is torn");
            torn += usize::from(!whole && (0..511).any(word));
        }
    }
    assert!(torn > 100, "{torn} torn blocks were seen");
}
