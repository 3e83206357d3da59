use f2fs_device::{AlignedBuf, BLOCK_SIZE, BlockDevice, MemoryDevice};

use super::*;

impl UnflushedData {
    /// Blocks that could be kept.
    pub(crate) fn room(&self) -> u64 {
        self.budget.available_exact()
    }
}

const FILE: Nid = Nid(7);
const OTHER: Nid = Nid(8);

/// For records that take so many blocks.
fn of(blocks: u64) -> UnflushedData {
    UnflushedData::new(blocks * BLOCK_SIZE as u64, None)
}

fn write(start: u64, blocks: usize) -> PlainArc<Request> {
    let mut data = AlignedBuf::new(blocks);
    (0..blocks).for_each(|at| data.block_mut(at).fill((start + at as u64) as u8));
    PlainArc::new(Request::write(start, data))
}

fn keep(data: &UnflushedData, ino: Nid, runs: &[(u64, usize)]) {
    data.keep(ino, runs.iter().map(|(start, blocks)| write(*start, *blocks)), true);
}

fn displaced(blocks: core::ops::Range<u32>) -> Displaced {
    let mut displaced = Displaced::default();
    blocks.for_each(|addr| displaced.add(BlockAddr(addr)));
    displaced
}

/// What a sync of the file finds: its blocks, or `None` if the device has to be flushed.
fn sync(data: &UnflushedData, ino: Nid, is_synced: bool) -> Option<Vec<u32>> {
    let mut collected = Collected { is_partial: true, ..Collected::default() };
    data.begin(ino);
    data.collect(ino, &mut collected);
    let blocks: Vec<_> = collected.runs.iter().flat_map(KeptRun::blocks).collect();
    assert!(blocks.iter().all(|(addr, block)| **block == [addr.0 as u8; BLOCK_SIZE]), "its content");
    assert_eq!(collected.blocks, blocks.len());
    let addrs = blocks.iter().map(|(addr, _)| addr.0).collect();
    let found = (!collected.is_partial).then_some(addrs);
    data.end(ino, &mut collected, is_synced);
    assert!(collected.runs.is_empty() && collected.blocks == 0, "its memory serves the next sync");
    found
}

fn is_all_free(data: &UnflushedData) -> bool {
    data.budget.available_exact() == ALL_BLOCKS
}

#[test]
fn a_sync_has_the_data_of_its_file_once() {
    let data = of(64);
    keep(&data, FILE, &[(10, 2), (50, 1)]);
    keep(&data, OTHER, &[(30, 1)]);
    keep(&data, FILE, &[(20, 3)]);
    assert_eq!(data.budget.available_exact(), ALL_BLOCKS - 7);
    // One that fails leaves all of it to the next one, and so does what was written meanwhile.
    assert_eq!(sync(&data, FILE, false), Some(vec![10, 11, 50, 20, 21, 22]));
    assert_eq!(data.budget.available_exact(), ALL_BLOCKS - 7);
    assert_eq!(sync(&data, FILE, true), Some(vec![10, 11, 50, 20, 21, 22]));
    assert_eq!(sync(&data, FILE, true), Some(vec![]));
    assert_eq!(sync(&data, OTHER, true), Some(vec![30]));
    assert_eq!(sync(&data, Nid(9), true), Some(vec![]), "a file that wrote nothing");
    let mut used = Collected { is_partial: true, ..Collected::default() };
    data.collect(Nid(10), &mut used);
    assert!(!used.is_partial, "nor is anything missing of one that is not known");
    assert!(is_all_free(&data));
}

#[test]
fn a_file_with_more_than_a_record_takes_is_flushed() {
    let data = of(3);
    keep(&data, FILE, &[(10, 1), (20, 2)]);
    assert_eq!(sync(&data, FILE, false), Some(vec![10, 20, 21]), "as much as a record takes");
    // Not what it has kept, nor what comes behind in the same write, nor later.
    keep(&data, FILE, &[(30, 1), (40, 1)]);
    keep(&data, FILE, &[(50, 1)]);
    assert!(is_all_free(&data));
    assert_eq!(sync(&data, FILE, false), None);
    assert_eq!(sync(&data, FILE, true), None, "the one that flushed failed");
    keep(&data, FILE, &[(60, 3)]);
    assert_eq!(sync(&data, FILE, true), Some(vec![60, 61, 62]));
    keep(&data, FILE, &[(60, 2), (70, 2)]);
    assert_eq!((sync(&data, FILE, true), is_all_free(&data)), (None, true));
    assert_eq!(of(1000).most, MOST_BLOCKS);
}

#[test]
fn a_file_with_data_that_is_not_kept_is_flushed() {
    let data = of(64);
    keep(&data, FILE, &[(10, 2)]);
    data.keep(FILE, [write(20, 1)].into_iter(), false);
    assert!(is_all_free(&data));
    assert_eq!(sync(&data, FILE, true), None);
    // While a sync is under way that fails then.
    keep(&data, FILE, &[(10, 2)]);
    let mut collected = Collected::default();
    data.collect(FILE, &mut collected);
    data.keep(FILE, core::iter::empty(), false);
    data.end(FILE, &mut collected, false);
    assert_eq!(sync(&data, FILE, true), None);
    assert!(is_all_free(&data));
}

#[test]
fn files_that_find_no_memory_are_flushed() {
    let data = of(64);
    let request = write(64, 64);
    let files = ALL_BLOCKS as u32 / 64;
    (0..files).for_each(|file| data.keep(Nid(100 + file), [request.clone()].into_iter(), true));
    keep(&data, FILE, &[(10, 1)]);
    assert_eq!(sync(&data, FILE, true), None);
    assert_eq!(sync(&data, Nid(100), true).map(|blocks| blocks.len()), Some(64));
    keep(&data, FILE, &[(10, 1)]);
    assert_eq!(sync(&data, FILE, true), Some(vec![10]));
    // With a checkpoint nobody has to sync any of it.
    data.keep(Nid(101), core::iter::empty(), false);
    data.clear();
    assert!(is_all_free(&data));
    assert_eq!((sync(&data, Nid(101), true), sync(&data, Nid(102), true)), (Some(vec![]), Some(vec![])));
}

#[test]
fn what_no_slot_names_any_more_is_forgotten_unless_it_is_being_synced() {
    let data = of(8);
    keep(&data, FILE, &[(10, 4), (20, 4)]);
    // A run goes when the last of its blocks was displaced, in whatever parts.
    for part in [7..11, 13..16, 30..90, 11..12] {
        data.forget(FILE, &displaced(part));
        assert_eq!(data.budget.available_exact(), ALL_BLOCKS - 8);
    }
    data.forget(OTHER, &displaced(10..24));
    assert_eq!(data.budget.available_exact(), ALL_BLOCKS - 8, "those of another file");
    data.forget(FILE, &displaced(12..13));
    assert_eq!(data.budget.available_exact(), ALL_BLOCKS - 4);
    // There is room for others of this file in its place.
    keep(&data, FILE, &[(40, 4)]);
    assert_eq!(sync(&data, FILE, false), Some(vec![20, 21, 22, 23, 40, 41, 42, 43]));
    data.begin(FILE);
    data.forget(FILE, &displaced(20..24));
    data.end(FILE, &mut Collected::default(), false);
    assert_eq!(sync(&data, FILE, false), Some(vec![20, 21, 22, 23, 40, 41, 42, 43]), "its nodes may name it");
    data.forget(FILE, &displaced(20..24));
    assert_eq!(sync(&data, FILE, true), Some(vec![40, 41, 42, 43]));
    assert!(is_all_free(&data));
}

#[test]
fn short_writes_wait_in_front_of_the_device_until_they_are_flushed_or_displaced() {
    let below = PlainArc::new(MemoryDevice::new(100));
    let behind = PlainArc::new(WriteBehind::new(below.clone(), 64));
    let data = UnflushedData::new(4 * BLOCK_SIZE as u64, Some(behind.clone()));
    assert!(!of(4).defer(&write(10, 1)), "there is nothing to wait in");
    assert!(!data.defer(&write(10, 5)), "a long one");
    assert!(!data.defer(&write(99, 2)), "one that the device would refuse");
    assert_eq!(behind.waiting(), 0);
    let defer = |start, blocks| {
        let request = write(start, blocks);
        assert!(data.defer(&request));
        data.keep(FILE, [request].into_iter(), true);
    };
    defer(10, 4);
    data.forget(FILE, &displaced(10..12));
    assert_eq!(behind.waiting(), 2);
    // Of a file that is being synced, and of one whose data somebody is about to name.
    data.begin(FILE);
    data.forget(FILE, &displaced(12..13));
    assert_eq!(behind.waiting(), 2);
    data.end(FILE, &mut Collected::default(), true);
    data.seal();
    data.forget(FILE, &displaced(12..13));
    assert_eq!(behind.waiting(), 2);
    behind.flush().unwrap();
    let written = |block| below.read(block, 1).unwrap().as_bytes()[0];
    assert_eq!([10, 11, 12, 13].map(written), [0, 0, 12, 13]);
}
