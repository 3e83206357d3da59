use f2fs_sync::PlainArc;

use super::*;
use crate::size::{ENTRIES, FIRST_NID, locate};
use crate::source::EmptySource;

/// An empty table and its allocator.
struct World {
    table: Table,
    stats: ScanStats,
    sharded: Sharded,
}

impl World {
    fn new(blocks: u32, lanes: usize, first: u32) -> World {
        let bitmap = vec![0; (blocks as usize).div_ceil(8)];
        let table = Table::new(blocks, usize::MAX, Some(0), PlainArc::new(EmptySource), bitmap, &[]);
        let table = table.expect("the size is right");
        let sharded = Sharded::new(&NatConfig::new(blocks).lanes(lanes), &table, first);
        World { table, stats: ScanStats::new(), sharded }
    }

    /// All blocks are known.
    fn known(blocks: u32, lanes: usize, first: u32) -> World {
        let world = World::new(blocks, lanes, first);
        (0..blocks).for_each(|block| world.know(block));
        world
    }

    fn know(&self, block: u32) {
        self.sharded.know(&self.table, block).expect("it can be read");
    }

    /// The block of the next NID.
    fn allocate(&self) -> Option<u32> {
        let free = self.free();
        let nid = self.sharded.allocate(&self.table, &self.stats).expect("all can be read");
        self.took(free, nid)
    }

    /// The same for a thread of this lane that saw `batch` as the lane's.
    fn refill(&self, lane: usize, batch: u32) -> Option<u32> {
        let free = self.free();
        let nid = self.sharded.refill(&self.table, &self.stats, self.lane(lane), batch).expect("all can be read");
        self.took(free, nid)
    }

    fn took(&self, free: u64, nid: Option<Nid>) -> Option<u32> {
        assert_eq!(self.free() + u64::from(nid.is_some()), free, "one was taken, or none");
        nid.map(|nid| locate(nid).0)
    }

    /// Those that are known one by one and those that are not.
    fn free(&self) -> u64 {
        let known: u32 = self.table.slots.iter().map(|slot| count(&slot.free_bits())).sum();
        u64::from(known) + self.table.unknown_free.load(Ordering::Relaxed)
    }

    /// Takes all NIDs of a block.
    fn take_all(&self, block: u32) {
        while self.table.slot(block).take_first().is_some() {}
    }

    fn lane(&self, lane: usize) -> &AtomicU32 {
        self.sharded.lanes.get(lane).expect("there are as many")
    }

    fn batch(&self, lane: usize) -> u32 {
        self.lane(lane).load(Ordering::Relaxed)
    }

    fn spare(&self) -> Vec<u32> {
        self.sharded.spare.iter().collect()
    }

    fn missed(&self) -> u64 {
        self.stats.read(0, 0, 0).missed_hints
    }

    fn is_exhausted(&self) -> bool {
        self.sharded.exhausted.load(Ordering::Relaxed)
    }
}

#[test]
fn batches_follow_each_other_from_where_the_search_begins() {
    let world = World::new(4, 1, 2);
    assert_eq!(world.sharded.next_nid(), nid_at(2, 0));
    let mut batches = Vec::new();
    while let Some(block) = world.allocate() {
        if batches.last() != Some(&block) {
            batches.push(block);
        }
        assert_eq!((world.batch(0), world.sharded.next_nid()), (block, nid_at(block, 0)));
        assert!(!world.spare().contains(&block), "{block} is a batch");
    }
    assert_eq!(batches, [2, 3, 0, 1]);
    assert_eq!(world.free(), 0);
    assert!(world.is_exhausted());
    assert_eq!((world.allocate(), world.missed()), (None, 0));
    assert_eq!(world.stats.read(0, 0, 0).scans, 4 + 2, "one for each batch, and one for each time that none was free");
}

#[test]
fn two_lanes_begin_side_by_side_and_pass_each_other() {
    let world = World::known(6, 2, 0);
    // Neither has a batch yet.
    assert_eq!([world.refill(0, NONE), world.refill(1, NONE)].map(|block| block.is_some()), [true, true]);
    let [mine, theirs] = [world.batch(0), world.batch(1)];
    assert_ne!(mine, theirs);
    world.take_all(mine);
    world.refill(0, mine);
    assert_eq!(world.batch(0), (mine + 2) % 6, "behind the other one");
}

#[test]
fn what_another_thread_of_the_lane_found_is_used() {
    let world = World::known(2, 1, 0);
    let batch = world.allocate().expect("all are free");
    assert_eq!(world.refill(0, NONE), Some(batch));
    assert_eq!(world.batch(0), batch);
    world.take_all(batch);
    let next = world.refill(0, NONE).expect("the other block has free ones");
    assert_eq!(world.batch(0), next, "the next ones come from there");
    assert_eq!(world.missed(), 0);
}

#[test]
fn a_hint_that_leads_to_nothing_is_passed() {
    let world = World::known(3, 1, 0);
    world.take_all(0);
    assert_eq!(world.allocate(), Some(1));
    assert_eq!((world.batch(0), world.missed()), (1, 0));
    assert_eq!(world.spare(), [2]);
}

#[test]
fn what_other_lanes_have_is_taken_one_by_one() {
    let world = World::known(1, 2, 0);
    assert!(world.sharded.spare.remove(0));
    world.lane(1).store(0, Ordering::Relaxed);
    for _ in FIRST_NID..ENTRIES as u32 {
        assert_eq!(world.refill(0, NONE), Some(0));
        assert_eq!((world.batch(0), world.missed()), (NONE, 0));
    }
    assert_eq!(world.refill(0, NONE), None);
}

#[test]
fn without_a_hint_a_look_at_every_block_finds_what_is_free() {
    let world = World::known(3, 1, 0);
    (0..3).for_each(|block| world.take_all(block));
    world.table.slot(2).put(7);
    for block in world.spare() {
        world.sharded.spare.remove(block);
    }
    assert_eq!((world.allocate(), world.missed()), (Some(2), 1));
    assert!(!world.is_exhausted());
    assert_eq!((world.allocate(), world.missed()), (None, 1));
    assert!(world.is_exhausted());
    // That stays the answer until a NID comes back by a way that says so.
    world.table.slot(2).put(8);
    assert_eq!(world.allocate(), None);
    world.table.slot(2).take(8);
    world.sharded.put(&world.table, 2, 8);
    assert_eq!((world.allocate(), world.allocate(), world.missed()), (Some(2), None, 1));
}

#[test]
fn only_what_was_taken_comes_back() {
    let world = World::new(2, 1, 0);
    world.allocate();
    assert_eq!(world.batch(0), 0);
    let put = |block, index| world.sharded.put(&world.table, block, index);
    let free = world.free();
    put(0, 5);
    put(1, 5);
    assert_eq!((world.free(), world.spare()), (free, vec![]), "one was free, one of a block that is not known");
    assert_eq!(count(&world.table.slot(1).free_bits()), 0);
    world.know(1);
    assert_eq!((world.free(), world.spare()), (free, vec![1]));
    while world.allocate().is_some() {}
    assert!(world.is_exhausted());
    put(1, 5);
    assert_eq!((world.free(), world.spare(), world.is_exhausted()), (1, vec![1], false));
    assert_eq!((world.allocate(), world.allocate(), world.missed()), (Some(1), None, 0));
}

#[test]
fn what_a_checkpoint_freed_comes_back() {
    let world = World::new(2, 1, 0);
    let mut bits = [0; crate::size::WORDS];
    bits[1] = 0b11;
    world.know(0);
    world.take_all(0);
    world.know(1);
    while world.allocate().is_some() {}
    assert!(world.is_exhausted());
    world.sharded.put_all(&world.table, 0, &bits);
    assert_eq!((world.free(), world.spare(), world.is_exhausted()), (2, vec![0], false));
    assert_eq!([(); 3].map(|()| world.allocate()), [Some(0), Some(0), None]);
    assert_eq!(world.missed(), 0);
}

/// Those of a block that nobody looked at are found when somebody does.
#[test]
fn what_a_checkpoint_freed_elsewhere_is_counted() {
    let world = World::new(2, 1, 0);
    let free = world.free();
    world.table.uncount_unknown(2);
    let mut bits = [0; crate::size::WORDS];
    bits[1] = 0b11;
    world.sharded.put_all(&world.table, 1, &bits);
    assert_eq!((world.free(), world.spare()), (free, vec![]));
    assert_eq!(count(&world.table.slot(1).free_bits()), 0);
    for _ in 0..2 {
        world.know(1);
        assert_eq!((world.free(), world.spare()), (free, vec![1]));
    }
}
