//! What the threads of a storm know together of a file that all of them write: how long it is, where it was cut, and
//! which of its blocks rest.
//!
//! While nobody cuts it, its size lies between what was done and what was asked for. A cut that is under way may have
//! been made or not, and so may a write that met one: what counts then is only what began behind it.
//!
//! # Locking
//!
//! A mutex around sizes and cuts, one around the changes of blocks: leaves. The clock is an atomic.

use std::collections::BTreeMap;
use std::ops::Range;

use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicU64, Ordering};

use super::promise::{UNIT, UNITS_PER_BLOCK};

/// Ordered as the threads see each other: all of it is read behind what it tells of.
const ORDER: Ordering = Ordering::SeqCst;

/// The size of a shared file, and when its blocks changed.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Bytes with which it began, all of them durable.
    first: u64,
    /// When what happens did.
    clock: AtomicU64,
    size: Mutex<Size>,
    /// When the last change of a block ended.
    changed: Mutex<BTreeMap<u64, u64>>,
}

/// Bytes that it has at the least, and at the most, and what made them less.
#[derive(Debug, Default)]
struct Size {
    least: u64,
    most: u64,
    cuts: Vec<Cut>,
    /// Cuts under way.
    under_way: usize,
}

/// Somebody has set its size, or is about to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// The new size.
    pub(super) bytes: u64,
    pub(super) began: u64,
    /// `None`: it is under way.
    ended: Option<u64>,
    /// Whether it was made. An error may have left any part of it undone.
    pub(super) sure: bool,
}

impl Cut {
    /// The first unit that it takes.
    pub(super) fn first_unit(&self) -> u64 {
        self.bytes / UNIT
    }
}

/// Which cuts there were when something began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun {
    cuts: usize,
    under_way: bool,
}

/// How it is when a sync begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Bytes that the sync makes durable at the least.
    pub(super) bytes: u64,
    time: u64,
}

impl Size {
    fn begun(&self) -> Begun {
        Begun { cuts: self.cuts.len(), under_way: self.under_way > 0 }
    }
}

impl Together {
    /// Of a durable file with so many bytes.
    pub(super) fn new(bytes: u64) -> Together {
        let size = Size { least: bytes, most: bytes, ..Size::default() };
        Together { first: bytes, size: Mutex::new(size), ..Together::default() }
    }

    /// Somebody is about to make it so long.
    pub(super) fn asks(&self, bytes: u64) -> Begun {
        let mut size = self.size.lock();
        size.most = size.most.max(bytes);
        size.begun()
    }

    /// Somebody is about to add so many bytes to its end.
    pub(super) fn asks_for_more(&self, bytes: u64) -> Begun {
        let mut size = self.size.lock();
        size.most += bytes;
        size.begun()
    }

    /// It is so long at the least, unless a cut met what made it so.
    pub(super) fn made(&self, bytes: u64, begun: Begun) {
        let mut size = self.size.lock();
        if size.begun() == begun && !begun.under_way {
            size.least = size.least.max(bytes);
        }
    }

    /// Somebody is about to set its size.
    pub(super) fn begins_cut(&self, bytes: u64) -> usize {
        let mut size = self.size.lock();
        (size.least, size.most) = (size.least.min(bytes), size.most.max(bytes));
        size.under_way += 1;
        size.cuts.push(Cut { bytes, began: self.tick(), ended: None, sure: false });
        size.cuts.len() - 1
    }

    /// That has ended.
    pub(super) fn ends_cut(&self, number: usize, sure: bool) {
        let mut size = self.size.lock();
        size.under_way -= 1;
        let (ended, most) = (self.tick(), size.most);
        let cut = &mut size.cuts[number];
        (cut.ended, cut.sure) = (Some(ended), sure);
        let units = cut.first_unit()..most / UNIT;
        drop(size);
        self.changed(units);
    }

    /// The cuts that have ended since then, and the time.
    pub(super) fn cuts_since(&self, time: u64) -> (Vec<Cut>, u64) {
        let size = self.size.lock();
        let cuts = size.cuts.iter().filter(|cut| cut.ended.is_some_and(|ended| ended >= time));
        (cuts.copied().collect(), self.tick())
    }

    /// The smallest size that a cut may have given it since then.
    pub(super) fn least_since(&self, time: u64) -> u64 {
        let size = self.size.lock();
        let cuts = size.cuts.iter().filter(|cut| cut.ended.is_none_or(|ended| ended >= time));
        cuts.map(|cut| cut.bytes).min().unwrap_or(u64::MAX)
    }

    /// A change of these units has ended, whatever came of it; says when.
    pub(super) fn changed(&self, units: Range<u64>) -> u64 {
        let now = self.tick();
        let blocks = units.start / UNITS_PER_BLOCK..units.end.div_ceil(UNITS_PER_BLOCK);
        self.changed.lock().extend(blocks.map(|block| (block, now)));
        now
    }

    pub(super) fn least(&self) -> u64 {
        self.size.lock().least
    }

    pub(super) fn most(&self) -> u64 {
        self.size.lock().most
    }

    /// Before anybody changed it: what is durable for a thread that has not synced it, however late it begins.
    pub(super) fn beginning(&self) -> Moment {
        Moment { bytes: self.first, time: 0 }
    }

    pub(super) fn now(&self) -> Moment {
        Moment { bytes: self.least(), time: self.tick() }
    }

    /// Whether nobody has changed the block of a unit since then; asked when all work has ended.
    pub(super) fn rests_since(&self, unit: u64, moment: Moment) -> bool {
        self.changed.lock().get(&(unit / UNITS_PER_BLOCK)).is_none_or(|&last| last < moment.time)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, ORDER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_rests_until_any_of_its_units_changes() {
        let together = Together::new(8192);
        let first = together.now();
        assert!(together.rests_since(7, first));
        together.changed(UNITS_PER_BLOCK - 1..UNITS_PER_BLOCK + 1);
        let second = together.now();
        for unit in [0, UNITS_PER_BLOCK - 1, UNITS_PER_BLOCK, 2 * UNITS_PER_BLOCK - 1] {
            assert!(!together.rests_since(unit, first) && together.rests_since(unit, second), "unit {unit}");
        }
        assert!(together.rests_since(2 * UNITS_PER_BLOCK, first));
    }

    #[test]
    fn a_thread_that_begins_late_has_been_promised_nothing_of_what_the_others_did() {
        let together = Together::new(100);
        let begun = together.asks(5632);
        together.changed(0..1);
        together.made(5632, begun);
        assert_eq!(together.beginning().bytes, 100);
        assert!(!together.rests_since(0, together.beginning()));
        assert!(together.rests_since(UNITS_PER_BLOCK, together.beginning()));
    }

    #[test]
    fn the_size_lies_between_what_was_done_and_what_was_asked_for() {
        let together = Together::new(100);
        let begun = together.asks(300);
        together.asks(200);
        assert_eq!((together.least(), together.most()), (100, 300));
        together.made(200, begun);
        together.made(150, begun);
        together.asks_for_more(50);
        assert_eq!((together.least(), together.most(), together.now().bytes), (200, 350, 200));
    }

    #[test]
    fn what_met_a_cut_makes_nothing_longer_for_sure() {
        let together = Together::new(10 * UNIT);
        let before = together.asks(20 * UNIT);
        let cut = together.begins_cut(2 * UNIT);
        let within = together.asks(20 * UNIT);
        together.made(20 * UNIT, within);
        assert_eq!((together.least(), together.least_since(0)), (2 * UNIT, 2 * UNIT));
        assert!(together.cuts_since(0).0.is_empty());
        together.ends_cut(cut, true);
        together.made(20 * UNIT, before);
        together.made(20 * UNIT, within);
        assert_eq!((together.least(), together.most()), (2 * UNIT, 20 * UNIT));
        let behind = together.asks(5 * UNIT);
        together.made(5 * UNIT, behind);
        assert_eq!(together.least(), 5 * UNIT);

        let (cuts, time) = together.cuts_since(0);
        assert!(cuts.len() == 1 && cuts[0].first_unit() == 2 && cuts[0].sure);
        assert!(together.cuts_since(time).0.is_empty() && together.least_since(time) == u64::MAX);
        let block = |unit| together.rests_since(unit, together.beginning());
        assert!(!block(2) && !block(19) && block(3 * UNITS_PER_BLOCK));
    }
}
