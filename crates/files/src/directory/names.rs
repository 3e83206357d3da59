//! The names that a stripe of a directory knows, so that blocks need not be searched for them.
//!
//! A directory that was made since the volume was opened knows all of its names: for each hash the block and slot, 18
//! bytes or so. A name that is not among them is not there, and no block is looked at; one that is among them is looked
//! for in its slot. A directory that was found on the device knows nothing, and its blocks are searched, level by
//! level, until it has been searched so often that it [learns](super::learn) its names.
//!
//! Names count against a budget of the file system ([`NAMES`]). A stripe that gets no more of the budget forgets its
//! names, and is searched from then on.
//!
//! ```text
//!   found on the device, searched  --- learn --->  known  <--- begin, for a new directory
//!                      |                             |
//!        cannot be read, or no budget         the budget is spent
//!                      |                             |
//!                      +---> searched for good <-----+
//! ```
//!
//! A stripe may know *too much* (a name in a slot where it is not, or more names of a hash than there are): then the
//! name is searched for. It never knows too little: an operation that adds a name notes it before it unlocks the
//! stripe.

use std::collections::hash_map::Entry;

use f2fs_format::hash::locate_block;
use f2fs_sync::Budget;
use f2fs_sync::atomic::{AtomicU32, Ordering};
use rustc_hash::FxHashMap;

/// Names that all directories of a file system know together, at most.
pub(crate) const NAMES: u64 = 8 << 20;
/// Names that a stripe takes from the budget at first; later as many as it has, up to [`MOST_GRANTED`] at once. So
/// directories with few names seldom go to the budget's pool.
const GRANT: u32 = 4;
const MOST_GRANTED: u32 = 64;

/// One name of this hash, in some block.
const SOMEWHERE: u32 = u32::MAX;
/// Searches of a stripe that never learns.
const FOR_GOOD: u32 = u32::MAX;

/// Several names of this hash, or perhaps one that is left of them.
const SEVERAL: u32 = u32::MAX - 1;
/// Blocks of a directory whose slots have a number that fits.
const BLOCKS: u64 = 1 << 24;

/// Where a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere.
    Absent,
    /// Here, or, if this is another name of the same hash, nowhere else.
    Slot { block: u64, slot: usize },
    /// It has to be searched for.
    Unknown,
    /// The same, as any name of the stripe, which knows nothing.
    Unlearned,
}

/// The names that a stripe knows.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Block (24 bits) and slot (8 bits) by hash; `None`: nothing is known.
    known: Option<FxHashMap<u32, u32>>,
    /// Names that were taken from the budget; while nothing is known, the searches for names. One number, so that a
    /// stripe fits into a line.
    count: AtomicU32,
    /// Levels that had no room for a name of 1, 2, 3, 4 slots when it was last looked for.
    crowded: [u8; 4],
}

impl Names {
    /// Knows all names from here on: there is none yet.
    pub(super) fn begin(&mut self) {
        self.known = Some(FxHashMap::default());
    }

    /// Whether all names are known.
    pub(super) fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// The known place of a name with this hash.
    pub(super) fn place(&self, hash: u32) -> Place {
        let Some(known) = &self.known else { return Place::Unlearned };
        match known.get(&hash) {
            None => Place::Absent,
            Some(&(SOMEWHERE | SEVERAL)) => Place::Unknown,
            Some(&place) => Place::Slot { block: u64::from(place >> 8), slot: (place & 0xff) as usize },
        }
    }

    /// Notes a search while nothing is known; tells whether it is the one in `enough`, whose caller reads the names.
    pub(super) fn is_due(&self, enough: u64) -> bool {
        if self.is_known() || self.count.load(Ordering::Relaxed) >= FOR_GOOD - 1 {
            return false;
        }
        // Several may count at once: one of them meets the number.
        u64::from(self.count.fetch_add(1, Ordering::Relaxed)) + 1 == enough
    }

    /// Knows what was read of the stripe, if that was all of it; tells whether.
    pub(super) fn learn(&mut self, read: Names) -> bool {
        debug_assert!(self.known.is_none(), "one thread reads the names of a stripe");
        // What could not be read has the count of those that are searched for good.
        (self.known, self.count) = (read.known, read.count);
        self.is_known()
    }

    /// Notes a name that was added; its place is not given while the directory is inline.
    pub(super) fn note(&mut self, hash: u32, place: Option<(u64, usize)>, budget: &Budget) {
        let Some(known) = &mut self.known else { return };
        let place = match place {
            Some((block, slot)) if block < BLOCKS - 1 && slot < 0xff => (block as u32) << 8 | slot as u32,
            _ => SOMEWHERE,
        };
        let count = known.len();
        match known.entry(hash) {
            Entry::Occupied(mut there) => {
                there.insert(SEVERAL);
            }
            Entry::Vacant(free) => {
                let granted = self.count.load(Ordering::Relaxed);
                if count >= granted as usize {
                    let grant = granted.clamp(GRANT, MOST_GRANTED);
                    if !budget.try_take(grant.into()) {
                        return self.forget(budget);
                    }
                    self.count.store(granted + grant, Ordering::Relaxed);
                }
                free.insert(place);
            }
        }
    }

    /// Notes that a name was removed.
    pub(super) fn gone(&mut self, hash: u32) {
        if let Some(known) = &mut self.known
            && let Entry::Occupied(there) = known.entry(hash)
            && *there.get() != SEVERAL
        {
            there.remove();
        }
    }

    /// Gives everything back; names are searched for from here on.
    pub(super) fn forget(&mut self, budget: &Budget) {
        let count = self.count.load(Ordering::Relaxed);
        self.count = FOR_GOOD.into();
        if self.known.take().is_some() && count > 0 {
            budget.give(count.into());
        }
    }

    /// The level at which to look for room for `slots` slots.
    pub(super) fn first_level(&self, slots: usize) -> u32 {
        self.crowded[class(slots)].into()
    }

    /// Notes the level at which there was room for `slots` slots, after those below it had none.
    pub(super) fn room_at(&mut self, slots: usize, level: u32) {
        // A name too long for its class says nothing of shorter ones.
        if slots <= self.crowded.len() {
            self.crowded[class(slots)] = level as u8;
        }
    }

    /// Notes that there is room at the level of a block: a name was taken out of it.
    pub(super) fn room_in(&mut self, block: u64, dir_level: u8) {
        if self.crowded.iter().any(|level| *level > 0) {
            let level = locate_block(block, dir_level).map_or(0, |(level, _)| level as u8);
            self.crowded.iter_mut().for_each(|crowded| *crowded = (*crowded).min(level));
        }
    }
}

fn class(slots: usize) -> usize {
    slots.clamp(1, 4) - 1
}

#[cfg(test)]
mod tests {
    use f2fs_format::hash::bucket_range;

    use super::*;

    #[test]
    fn names_are_known_until_the_budget_is_spent() {
        let budget = Budget::new(u64::from(GRANT) + 1);
        let mut names = Names::default();
        names.note(5, Some((3, 7)), &budget);
        assert_eq!(names.place(5), Place::Unlearned, "nothing is known of a directory that was found");
        names.begin();
        assert_eq!(names.place(5), Place::Absent);
        for hash in 0..GRANT {
            names.note(hash, Some((u64::from(hash) * 1000, 213)), &budget);
        }
        assert_eq!(names.place(3), Place::Slot { block: 3000, slot: 213 });
        assert_eq!((names.place(GRANT), budget.available_exact()), (Place::Absent, 1));
        names.note(GRANT, Some((1, 1)), &budget);
        assert_eq!((names.place(3), names.place(GRANT)), (Place::Unlearned, Place::Unlearned));
        assert!(!names.is_due(1), "they are searched for from then on");
        assert_eq!(budget.available_exact(), u64::from(GRANT) + 1, "all of it came back");
    }

    #[test]
    fn a_hash_of_several_names_is_searched_for() {
        let budget = Budget::new(1000);
        let mut names = Names::default();
        names.begin();
        names.note(1, None, &budget);
        assert_eq!(names.place(1), Place::Unknown, "it is in the inode");
        names.gone(1);
        assert_eq!(names.place(1), Place::Absent);
        names.note(2, Some((1, 1)), &budget);
        names.note(2, Some((2, 2)), &budget);
        names.gone(2);
        assert_eq!(names.place(2), Place::Unknown, "one of them is left, and nobody knows which");
        names.note(3, Some((BLOCKS, 0)), &budget);
        assert_eq!(names.place(3), Place::Unknown, "too far away");
        names.gone(4);
        assert_eq!(names.place(4), Place::Absent);
    }

    #[test]
    fn crowded_levels_are_passed_over_until_a_name_goes() {
        let mut names = Names::default();
        names.room_at(2, 3);
        names.room_at(9, 5);
        assert_eq!([1, 2, 3, 4, 9].map(|slots| names.first_level(slots)), [0, 3, 0, 0, 0]);
        names.room_at(4, 4);
        assert_eq!(names.first_level(9), 4, "where four slots are too many, nine are, too");
        let block = bucket_range(1, 0, 1).start;
        names.room_in(block, 0);
        assert_eq!([2, 4].map(|slots| names.first_level(slots)), [1, 1]);
    }

    /// A stripe of a directory that was found counts its searches, up to the one whose caller reads the names.
    #[test]
    fn names_are_read_once_and_then_known() {
        let budget = Budget::new(1000);
        let mut names = Names::default();
        assert_eq!([(); 5].map(|()| names.is_due(3)), [false, false, true, false, false]);
        let mut read = Names::default();
        read.begin();
        for hash in 0..10 {
            read.note(hash, Some((7, 5)), &budget);
        }
        assert!(names.learn(read));
        assert_eq!((names.place(9), names.place(10)), (Place::Slot { block: 7, slot: 5 }, Place::Absent));
        let taken = 1000 - budget.available_exact();
        assert!((10..20).contains(&taken), "{taken} of the budget");
        assert!((1..1000).all(|enough| !names.is_due(enough)), "they are known");
        assert_eq!(1000 - budget.available_exact(), taken);
        names.forget(&budget);
        assert_eq!(budget.available_exact(), 1000);
        // What could not be read.
        let mut read = Names::default();
        read.begin();
        read.forget(&budget);
        let mut names = Names::default();
        assert!(!names.learn(read) && names.place(1) == Place::Unlearned);
        assert!((1..1000).all(|enough| !names.is_due(enough)), "searched for good");
    }

    #[test]
    fn the_count_of_searches_ends_below_the_mark_of_those_that_never_learn() {
        let names = Names { count: AtomicU32::new(FOR_GOOD - 2), ..Names::default() };
        assert!(names.is_due(u64::from(FOR_GOOD) - 1));
        for _ in 0..3 {
            assert!(![0, u64::from(FOR_GOOD), u64::from(FOR_GOOD) + 1].into_iter().any(|enough| names.is_due(enough)));
        }
        assert_eq!(names.count.load(Ordering::Relaxed), FOR_GOOD - 1);
    }
}
