//! The pressure on the space of a volume: blocks that are dirty in memory and need a place at the next checkpoint.
//!
//! The segment manager keeps that much free from users' data ([`f2fs_segment::Class`]), as of the last call of
//! [`SegmentManager::set_pressure`](f2fs_segment::SegmentManager::set_pressure).
//!
//! # Locking
//!
//! No locks. The limits never change, and each other field is an atomic by itself: two of them need not be of the same
//! moment. `dentries` has a part for each processor, since operations change it; the others change seldom.

use f2fs_sync::ShardedCounter;
use f2fs_sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::node_store::NodeStore;
use crate::segments::Segments;
use crate::space::Space;
use f2fs_segment::SegmentManager;

/// Blocks of users' data that were written since a cleaning fell short when an operation that finds no room tries again.
const WORTH_TRYING: u64 = 128;

/// Free sections beyond the floor from which on dirty blocks are counted seldom. With at most 128 processors, and
/// [`SELDOM`], fewer than 2 x 128 x 128 blocks are dirty without being told, which are 64 segments.
const ROOMY_SECTIONS: u32 = 128;
/// Blocks of which the segment manager is told whole ones while there is much room, rounded up: 4 segments. The line
/// of the number is read by every operation.
const ROUGHLY: u64 = 2048;
/// How many blocks become dirty in a part before all parts are added up, while there is much room.
const SELDOM: u64 = 128;
/// How many nodes become dirty on a processor before all are added up, while there is not.
const OFTEN: u64 = 8;

/// The limits on dirty blocks.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// Dirty nodes beyond which a checkpoint is due.
    dirty_limit: u64,
    /// Dirty nodes that a checkpoint leaves to the freeze.
    left_to_freeze: u64,
    /// Directory blocks that wait for the checkpoint.
    dentries: ShardedCounter,
    /// Blocks in use or free when cleaning last fell short. The others are those that it can gain: it is not tried again
    /// before there are more of them.
    fell_short_at: AtomicU64,
    /// Blocks of users' data that were written until then.
    written_until_short: AtomicU64,
    /// Free sections when none was worth emptying ahead: none is looked for before their number changes.
    step_failed_at: AtomicU32,
    /// Sections of nodes that operations emptied, in the low 16 bits, and in which epoch: they are free with its
    /// checkpoint.
    emptied_of_nodes: AtomicU64,
    /// The last epoch in which a node was freed.
    freed_node_in: AtomicU64,
}

impl Pressure {
    pub(crate) fn new(dirty_limit: u64, left_to_freeze: u64) -> Pressure {
        Pressure {
            dirty_limit,
            left_to_freeze,
            dentries: ShardedCounter::new(0),
            fell_short_at: AtomicU64::new(u64::MAX),
            written_until_short: AtomicU64::new(0),
            step_failed_at: AtomicU32::new(u32::MAX),
            emptied_of_nodes: AtomicU64::new(0),
            freed_node_in: AtomicU64::new(0),
        }
    }

    /// Whether so much is dirty that a checkpoint writes it before its freeze. A directory block counts as eight nodes:
    /// what is left of them to the freeze is written there, while operations wait.
    pub(crate) fn is_worth_writing_ahead(&self, store: &NodeStore) -> bool {
        if store.kept() > self.dirty_limit.saturating_mul(2) {
            return false;
        }
        let dentries = self.dentries.sum().max(0).unsigned_abs();
        store.dirty().saturating_add(dentries.saturating_mul(8)) > self.left_to_freeze
    }

    /// Dirty nodes beyond which a checkpoint is due.
    pub(crate) fn dirty_limit(&self) -> u64 {
        self.dirty_limit
    }

    /// Whether so many nodes are dirty that a checkpoint is due. A processor that has few of them may not see it.
    pub(crate) fn has_many_nodes(&self, store: &NodeStore) -> bool {
        store.is_dirty_beyond(self.dirty_limit)
    }

    /// The same, also if few of them are this processor's.
    pub(crate) fn has_many_nodes_in_all(&self, store: &NodeStore) -> bool {
        store.been_listed() > self.dirty_limit
    }

    /// Whether nodes may become dirty although a checkpoint is being written. It keeps at most three times the limit in
    /// memory ([`is_worth_writing_ahead`](Self::is_worth_writing_ahead)), and those that are dirty are no more than the
    /// limit beside that.
    pub(crate) fn may_go_on(&self, store: &NodeStore) -> bool {
        store.been_listed().saturating_add(store.kept()) <= self.dirty_limit.saturating_mul(2)
    }

    /// Whether a cleaning can gain `least` blocks more than the last one that fell short, if one did: blocks were freed
    /// since, or written elsewhere, which leaves holes behind.
    pub(crate) fn cleaning_may_help(&self, least: u64, space: &Space, segments: &SegmentManager) -> bool {
        let fell_short_at = self.fell_short_at.load(Ordering::Relaxed);
        fell_short_at == u64::MAX || in_use_or_free(space, segments).saturating_add(least) <= fell_short_at
    }

    /// Whether so much was written since the last cleaning that fell short, if one did, that it may have left holes: what
    /// is left of the segments where logs stand counts as holes, so that those do not show while these are used up.
    pub(crate) fn holes_may_be_new(&self, written: u64) -> bool {
        written.saturating_sub(self.written_until_short.load(Ordering::Relaxed)) >= WORTH_TRYING
    }

    /// A cleaning left fewer free segments than it was asked for, when so many blocks of users' data had been written.
    pub(crate) fn cleaning_fell_short(&self, written: u64, space: &Space, segments: &SegmentManager) {
        self.written_until_short.store(written, Ordering::Relaxed);
        self.fell_short_at.store(in_use_or_free(space, segments), Ordering::Relaxed);
    }

    /// Whether a section may be worth emptying while so many are free.
    pub(crate) fn step_may_help(&self, free_sections: u32) -> bool {
        self.step_failed_at.load(Ordering::Relaxed) != free_sections
    }

    /// With so many free sections none was worth emptying.
    pub(crate) fn step_gained_nothing(&self, free_sections: u32) {
        self.step_failed_at.store(free_sections, Ordering::Relaxed);
    }

    /// Sections of nodes that operations emptied in this epoch.
    pub(crate) fn emptied_of_nodes(&self, epoch: u64) -> u32 {
        let state = self.emptied_of_nodes.load(Ordering::Relaxed);
        if state >> 16 == epoch { (state & 0xffff) as u32 } else { 0 }
    }

    /// A section of nodes was emptied. One that is not counted is emptied all the same.
    pub(crate) fn emptied_one_of_nodes(&self, epoch: u64) {
        let count = (self.emptied_of_nodes(epoch) + 1).min(0xffff);
        self.emptied_of_nodes.store(epoch << 16 | u64::from(count), Ordering::Relaxed);
    }

    /// A node was freed. Its line is written once an epoch.
    pub(crate) fn freed_node(&self, epoch: u64) {
        if self.freed_node_in.load(Ordering::Relaxed) != epoch {
            self.freed_node_in.store(epoch, Ordering::Relaxed);
        }
    }

    /// Whether nodes were freed in this epoch, or in the one before.
    pub(crate) fn has_freed_nodes(&self, epoch: u64, or_before: bool) -> bool {
        let freed_in = self.freed_node_in.load(Ordering::Relaxed);
        freed_in == epoch || (or_before && freed_in + 1 == epoch)
    }

    /// Counts directory blocks that became dirty, or clean.
    pub(crate) fn count_dentries(&self, blocks: i64, store: &NodeStore, segments: &Segments) {
        let here = self.dentries.add(blocks);
        self.look(here.unsigned_abs(), 1, store, segments);
    }

    /// A node became dirty, one of so many on this processor.
    pub(crate) fn node_became_dirty(&self, here: u64, store: &NodeStore, segments: &Segments) {
        self.look(here, OFTEN, store, segments);
    }

    /// Tells the segment manager how much is dirty, if it is time to. `counted` is the number of dirty nodes, or
    /// of directory blocks, that this processor counted.
    ///
    /// The sum of the dirty blocks reads a line of every processor, and telling it writes a line that all read. So it
    /// is done seldom while many sections are free: less is dirty without being told than fits into those that make the
    /// difference.
    fn look(&self, counted: u64, often: u64, store: &NodeStore, segments: &Segments) {
        let is_roomy = segments.manager().is_ok_and(|segments| segments.is_roomy(ROOMY_SECTIONS));
        let (every, exact) = if is_roomy { (SELDOM, ROUGHLY) } else { (often, 1) };
        if counted.is_multiple_of(every) {
            self.tell_in(exact, store, segments);
        }
    }

    /// Tells the segment manager how many blocks the next checkpoint has to write.
    pub(crate) fn tell(&self, store: &NodeStore, segments: &Segments) {
        self.tell_in(1, store, segments);
    }

    /// The same, in whole numbers of so many blocks.
    fn tell_in(&self, unit: u64, store: &NodeStore, segments: &Segments) {
        let blocks = |count: u64| u32::try_from(count.next_multiple_of(unit)).unwrap_or(u32::MAX);
        let nodes = blocks(store.dirty());
        let dentries = blocks(u64::try_from(self.dentries.sum()).unwrap_or(0));
        if let Ok(segments) = segments.manager() {
            segments.set_pressure(nodes, dentries);
        }
    }
}

/// Blocks in use, and those that can be written in free segments.
fn in_use_or_free(space: &Space, segments: &SegmentManager) -> u64 {
    space.blocks() + segments.blocks_in(segments.free_segments())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn freed_nodes_count_until_the_next_epoch_is_durable() {
        let pressure = Pressure::new(100, 10);
        pressure.freed_node(5);
        pressure.freed_node(5);
        assert!(pressure.has_freed_nodes(5, false) && pressure.has_freed_nodes(6, true));
        assert!(!pressure.has_freed_nodes(6, false), "the checkpoint of 5 is durable");
        assert!(![4, 7].iter().any(|epoch| pressure.has_freed_nodes(*epoch, true)));
        pressure.freed_node(7);
        assert!(pressure.has_freed_nodes(7, false) && !pressure.has_freed_nodes(6, true));
    }

    #[test]
    fn emptied_sections_of_nodes_count_in_their_epoch() {
        let pressure = Pressure::new(100, 10);
        (0..3).for_each(|_| pressure.emptied_one_of_nodes(70_000));
        assert_eq!((pressure.emptied_of_nodes(70_000), pressure.emptied_of_nodes(70_001)), (3, 0));
        pressure.emptied_one_of_nodes(70_001);
        assert_eq!((pressure.emptied_of_nodes(70_000), pressure.emptied_of_nodes(70_001)), (0, 1));
        (0..70_000).for_each(|_| pressure.emptied_one_of_nodes(70_001));
        assert_eq!((pressure.emptied_of_nodes(70_001), pressure.emptied_of_nodes(70_002)), (0xffff, 0));
    }

    use crate::samples::{inode, leave_free, made, plain, segments};
    use crate::{Reason, Volume, VolumeOptions};

    /// A volume on which more than four dirty nodes need a checkpoint, which writes more than three of them ahead, and so
    /// many of them.
    fn with_dirty_nodes(count: u32) -> Volume {
        let device = f2fs_sync::PlainArc::new(f2fs_device::MemoryDevice::new(64 << 8));
        drop(made(device.clone(), &crate::format::FormatOptions::default()));
        let options = VolumeOptions::new().dirty_nodes(4).nodes_left_to_freeze(3).lanes(1);
        let volume = Volume::open(device, &options).expect("it was made just now");
        (0..count).for_each(|_| drop(inode(&volume)));
        volume
    }

    #[test]
    fn more_than_is_left_to_the_freeze_is_written_ahead() {
        for (nodes, dentries, expected) in [(3, 0, false), (4, 0, true), (0, 1, true), (0, 0, false)] {
            let volume = with_dirty_nodes(nodes);
            volume.balance().add_dirty_dentries(dentries);
            assert_eq!(volume.pressure.is_worth_writing_ahead(&volume.store), expected, "{nodes}, {dentries}");
        }
        // Nodes that were taken stay in memory until their checkpoint is durable: twice as many as need one.
        for (nodes, expected) in [(8, true), (9, false)] {
            let volume = with_dirty_nodes(nodes);
            drop(volume.store.take_for_ahead());
            assert_eq!(volume.pressure.is_worth_writing_ahead(&volume.store), expected, "{nodes}");
            // Eight more may be dirty beside none of them, and so on.
            assert_eq!(volume.pressure.may_go_on(&volume.store), expected, "{nodes}");
        }
    }

    #[test]
    fn nodes_are_many_beyond_the_limit() {
        for (nodes, many, may_go_on) in [(4, false, true), (5, true, true), (8, true, true), (9, true, false)] {
            let volume = with_dirty_nodes(nodes);
            assert_eq!(volume.pressure.has_many_nodes_in_all(&volume.store), many, "{nodes}");
            assert_eq!(volume.pressure.may_go_on(&volume.store), may_go_on, "{nodes}");
        }
        assert_eq!(Pressure::new(4, 3).dirty_limit(), 4);
        // A processor that has some of them sees it sooner or later.
        let volume = with_dirty_nodes(4);
        assert!(!volume.pressure.has_many_nodes(&volume.store));
        let sees_it = (0..10_000).any(|_| {
            drop(inode(&volume));
            volume.pressure.has_many_nodes(&volume.store)
        });
        assert!(sees_it);
    }

    #[test]
    fn a_cleaning_that_fell_short_waits_for_what_it_could_gain() {
        let volume = plain(64);
        let (pressure, all) = (Pressure::new(100, 10), segments(&volume));
        assert!(pressure.cleaning_may_help(u64::MAX, &volume.space, all), "none fell short");
        assert!(!pressure.holes_may_be_new(127) && pressure.holes_may_be_new(128));
        volume.space.take_blocks(10).expect("it is empty");
        pressure.cleaning_fell_short(1000, &volume.space, all);
        assert!(!pressure.holes_may_be_new(1127) && pressure.holes_may_be_new(1128));
        assert!(
            pressure.cleaning_may_help(0, &volume.space, all) && !pressure.cleaning_may_help(1, &volume.space, all)
        );
        volume.space.give_blocks(3);
        assert!(
            pressure.cleaning_may_help(3, &volume.space, all) && !pressure.cleaning_may_help(4, &volume.space, all)
        );
        // A free segment that is taken is gone from the free ones, and its blocks are in use, or holes.
        leave_free(&volume, all.free_sections() - 1);
        assert!(pressure.cleaning_may_help(515, &volume.space, all));
        assert!(!pressure.cleaning_may_help(516, &volume.space, all));
    }

    #[test]
    fn a_section_is_looked_for_once_the_number_of_free_ones_changed() {
        let pressure = Pressure::new(100, 10);
        assert!(pressure.step_may_help(0) && pressure.step_may_help(7));
        pressure.step_gained_nothing(7);
        assert!(!pressure.step_may_help(7) && pressure.step_may_help(6) && pressure.step_may_help(8));
    }

    /// The segment manager is told of dirty nodes now and then: seldom, and roughly, while many sections are free.
    #[test]
    fn what_is_dirty_is_told() {
        for (mib, seldom, sections) in [(64, 8, 1), (512, 128, 4)] {
            let volume = plain(mib);
            drop(inode(&volume));
            let told = |counted| {
                segments(&volume).set_pressure(0, 0);
                volume.pressure.node_became_dirty(counted, &volume.store, &volume.segments);
                segments(&volume).dirty_sections()
            };
            assert_eq!((told(seldom - 1), told(seldom), told(seldom + 1)), (0, sections, 0), "{mib} MiB");
            // Who asks for it has it exactly.
            volume.pressure.tell(&volume.store, &volume.segments);
            assert_eq!(segments(&volume).dirty_sections(), 1);
            volume.checkpoints().write(Reason::Sync).expect("there is room");
            volume.pressure.tell(&volume.store, &volume.segments);
            assert_eq!(segments(&volume).dirty_sections(), 0);
        }
        // Directory blocks where there is little room: each of them.
        let volume = plain(64);
        for blocks in 1..4 {
            volume.pressure.count_dentries(1, &volume.store, &volume.segments);
            segments(&volume).set_pressure(0, 0);
            volume.pressure.count_dentries(1, &volume.store, &volume.segments);
            assert_eq!(segments(&volume).dirty_sections(), 2, "{blocks}");
            volume.pressure.count_dentries(-1, &volume.store, &volume.segments);
        }
        volume.pressure.count_dentries(-3, &volume.store, &volume.segments);
        assert_eq!(segments(&volume).dirty_sections(), 0);
    }
}
