use f2fs_format::{BlockAddr, Nid};

use super::*;

fn entry(addr: u32) -> NatEntry {
    NatEntry { ino: Nid(9), addr: BlockAddr(addr), version: 1 }
}

/// A slot with a frame in which all entries are the same one.
struct World {
    pool: FramePool,
    slot: Slot,
    number: u32,
}

impl World {
    fn new() -> World {
        let mut world = World { pool: FramePool::new(4, 4), slot: Slot::new(), number: 0 };
        assert_eq!(world.slot.look(&world.pool, 3), Look::Absent);
        world.number = world.pool.lend(0, |_, _| false).0;
        world.fill();
        world
    }

    fn frame(&self) -> &Frame {
        self.pool.get(self.number).expect("it was lent")
    }

    fn fill(&self) {
        self.lock().fill(self.number, self.frame(), &[entry(100); ENTRIES]);
    }

    fn set(&self, index: usize, addr: u32) -> bool {
        self.lock().set(self.frame(), index, entry(addr))
    }

    fn lock(&self) -> Locked<'_> {
        self.slot.lock(&self.pool)
    }

    fn evict(&self) -> bool {
        self.slot.evict(self.number)
    }

    /// Whether it goes, if need be when it is asked once more.
    fn goes(&self) -> bool {
        self.evict() || self.evict()
    }

    fn goes_after_checkpoint(&self, number: u64) -> bool {
        self.lock().catch_up(number);
        self.lock().thaw();
        self.goes()
    }

    fn image(&self) -> Box<NatBlock> {
        self.lock().take_owed(self.frame())
    }
}

#[test]
fn a_look_gives_an_entry_or_says_that_something_changes() {
    let world = World::new();
    let mut seen = vec![world.slot.version.load(Ordering::Relaxed)];
    for addr in [1, 2, 3] {
        world.set(3, addr);
        assert_eq!(world.slot.look(&world.pool, 3), Look::Entry(entry(addr)));
        seen.push(world.slot.version.load(Ordering::Relaxed));
    }
    let mut marks = world.slot.marks.lock();
    world.slot.change(&mut marks, || assert_eq!(world.slot.look(&world.pool, 3), Look::Torn));
    drop(marks);
    assert_eq!(world.slot.look(&world.pool, 3), Look::Entry(entry(3)));
    seen.push(world.slot.version.load(Ordering::Relaxed));
    assert!(seen.is_sorted_by(|a, b| a < b), "no change has the version of another: {seen:?}");
    assert!(world.goes_after_checkpoint(1));
    assert_eq!(world.slot.look(&world.pool, 3), Look::Absent);
}

#[test]
fn a_block_goes_that_was_not_used_since_it_was_asked_for() {
    let world = World::new();
    assert!(!world.evict(), "it was just read");
    assert!(!world.slot.evict(world.number + 1), "it has another frame");
    assert!(world.evict());
    assert_eq!(world.slot.look(&world.pool, 3), Look::Absent);
    world.fill();
    assert!(!world.evict());
    assert_eq!(world.slot.look(&world.pool, 3), Look::Entry(entry(100)));
    assert!(!world.evict(), "somebody looked");
    assert!(world.evict());
    world.fill();
    let lock = world.lock();
    assert!(!world.goes(), "it is not waited for");
    drop(lock);
}

#[test]
fn what_the_device_lacks_stays() {
    let world = World::new();
    world.set(454, 1);
    assert!(!world.goes(), "dirty");
    world.lock().catch_up(1);
    assert!(!world.goes(), "flushing");
    assert!(world.lock().unfreeze());
    assert!(!world.goes(), "dirty again");
    assert!(world.goes_after_checkpoint(2));

    world.fill();
    world.lock().pin();
    assert!(!world.goes(), "written as a whole");
    assert!(!world.lock().unfreeze(), "nothing is dirty");
    assert!(world.goes());

    world.fill();
    world.lock().pin();
    world.lock().thaw();
    assert!(world.goes());
}

#[test]
fn the_first_change_behind_a_freeze_is_told() {
    let world = World::new();
    assert!(world.set(3, 1));
    assert!(!world.set(3, 2) && !world.set(400, 2));
    world.lock().catch_up(1);
    assert!(world.set(3, 3));
    world.lock().catch_up(1);
    assert!(!world.set(400, 3), "that freeze is known");
    let flushing = world.lock().flushing();
    let dirty = world.lock().dirty();
    assert_eq!(flushing, dirty, "what changed again is of the checkpoint as well");
    assert_eq!(crate::size::members(dirty).collect::<Vec<_>>(), [3, 400]);
    assert!((0..ENTRIES).all(|index| world.lock().is_pending(index) == [3, 400].contains(&index)));
}

#[test]
fn a_frozen_block_is_written_as_it_was() {
    let world = World::new();
    let addr = |image: Box<NatBlock>| (image.entries[3].block_addr.get(), image.entries[4].block_addr.get());
    world.set(3, 1);
    world.lock().catch_up(1);
    world.set(3, 2);
    world.set(4, 3);
    assert_eq!(addr(world.image()), (1, 100));
    assert_eq!(addr(world.image()), (2, 3), "that was taken");
    // A block of the journal, which did not change before.
    world.lock().thaw();
    world.lock().owe();
    world.set(3, 4);
    world.set(3, 5);
    assert_eq!(addr(world.image()), (2, 3));
    // One that is not written after all.
    world.lock().owe();
    world.set(3, 6);
    world.lock().forgive();
    assert_eq!(addr(world.image()), (6, 3));
    // One that is given up.
    world.lock().owe();
    world.set(3, 7);
    assert!(world.lock().unfreeze());
    assert_eq!(addr(world.image()), (7, 3));
}

/// Who changed again is of the next checkpoint.
#[test]
fn a_durable_checkpoint_frees_what_it_has_as_freed() {
    let world = World::new();
    world.set(3, 0);
    world.set(4, 7);
    world.set(5, 0);
    world.set(454, 0);
    world.lock().catch_up(1);
    world.set(4, 0);
    world.set(6, 0);
    world.set(5, 0);
    let freed = world.lock().thaw();
    assert_eq!(crate::size::members(freed).collect::<Vec<_>>(), [3, 454]);
    let pending = (0..ENTRIES).filter(|index| world.lock().is_pending(*index));
    assert_eq!(pending.collect::<Vec<_>>(), [4, 5, 6]);
}

#[test]
fn a_nid_is_taken_once() {
    let slot = Slot::new();
    assert!(!slot.take(70) && !slot.is_free(70) && slot.take_first().is_none());
    slot.put(70);
    slot.put(454);
    assert!(slot.is_free(70) && !slot.is_free(71));
    assert!(slot.take(70) && !slot.take(70));
    assert_eq!((slot.take_first(), slot.take_first()), (Some(454), None));
    let mut bits = [0; WORDS];
    bits[1] = 1 << 6 | 1;
    slot.put_all(&bits);
    assert_eq!(slot.free_bits(), bits);
    assert!(slot.take(70) && !slot.is_free(70) && slot.is_free(64));
}
