//! A sorted set of numbered items that knows ranks: short sorted pieces, with counts over them.
//!
//! ```text
//!   groups   [ 31744 | 30208 | ... ]               items of 64 pieces each
//!   counts   [ 512 | 480 | ... ]                   items of a piece
//!   lasts    [ (t, n) | (t, n) | ... ]             the greatest of a piece
//!   pieces   [ (t, n) (t, n) ... ] [ ... ] ...     at most 512 items, sorted
//! ```
//!
//! Finding a key is a binary search over `lasts` and one in a piece; finding a rank adds up groups and counts. Both
//! touch a few cache lines that lie together, where a tree of a million nodes misses the cache at each level.

/// Items of a piece at most.
const MOST: usize = 512;
/// Pieces of a group.
const GROUP: usize = 64;

/// An item's key, and the item.
type Entry = (u64, u32);

/// Entries in ascending order. An item may be in the set once.
#[derive(Debug, Default)]
pub(crate) struct Ranked {
    pieces: Vec<Vec<Entry>>,
    lasts: Vec<Entry>,
    counts: Vec<u32>,
    groups: Vec<u32>,
    len: u32,
}

impl Ranked {
    /// A set of these.
    pub(crate) fn new(mut entries: Vec<Entry>) -> Ranked {
        entries.sort_unstable();
        let pieces: Vec<Vec<Entry>> = entries.chunks(MOST / 2).map(<[Entry]>::to_vec).collect();
        let mut set = Ranked { pieces, len: entries.len() as u32, ..Ranked::default() };
        set.lasts = set.pieces.iter().map(|piece| piece[piece.len() - 1]).collect();
        set.counts = set.pieces.iter().map(|piece| piece.len() as u32).collect();
        set.regroup();
        set
    }

    /// Members.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    fn regroup(&mut self) {
        self.groups.clear();
        self.groups.extend(self.counts.chunks(GROUP).map(|counts| counts.iter().sum::<u32>()));
    }

    /// The piece where an entry is or belongs; the last one if it is greater than all.
    fn piece(&self, entry: Entry) -> usize {
        self.lasts.partition_point(|last| *last < entry).min(self.pieces.len().saturating_sub(1))
    }

    /// Adds an item that is not a member.
    pub(crate) fn insert(&mut self, key: u64, item: u32) {
        let entry = (key, item);
        self.len += 1;
        if self.pieces.is_empty() {
            self.pieces.push(vec![entry]);
            self.lasts.push(entry);
            self.counts.push(1);
            self.groups.push(1);
            return;
        }
        let index = self.piece(entry);
        let piece = &mut self.pieces[index];
        let at = piece.partition_point(|other| *other < entry);
        piece.insert(at, entry);
        self.lasts[index] = piece[piece.len() - 1];
        self.counts[index] += 1;
        self.groups[index / GROUP] += 1;
        if self.counts[index] as usize > MOST {
            self.split(index);
        }
    }

    fn split(&mut self, index: usize) {
        let upper = self.pieces[index].split_off(MOST / 2);
        let lower = &self.pieces[index];
        (self.lasts[index], self.counts[index]) = (lower[lower.len() - 1], lower.len() as u32);
        self.lasts.insert(index + 1, upper[upper.len() - 1]);
        self.counts.insert(index + 1, upper.len() as u32);
        self.pieces.insert(index + 1, upper);
        self.regroup();
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, key: u64, item: u32) {
        let entry = (key, item);
        if self.pieces.is_empty() {
            return;
        }
        let index = self.piece(entry);
        let piece = &mut self.pieces[index];
        let Ok(at) = piece.binary_search(&entry) else { return };
        piece.remove(at);
        self.len -= 1;
        self.counts[index] -= 1;
        self.groups[index / GROUP] -= 1;
        match piece.last() {
            Some(last) => self.lasts[index] = *last,
            None => {
                self.pieces.remove(index);
                self.lasts.remove(index);
                self.counts.remove(index);
                self.regroup();
            }
        }
    }

    /// How many members have a key of at most `key`.
    pub(crate) fn count_to(&self, key: u64) -> u32 {
        let index = self.lasts.partition_point(|last| last.0 <= key);
        let whole = index / GROUP;
        let before: u32 =
            self.groups[..whole].iter().sum::<u32>() + self.counts[whole * GROUP..index].iter().sum::<u32>();
        let within = self.pieces.get(index).map_or(0, |piece| piece.partition_point(|entry| entry.0 <= key));
        before + within as u32
    }

    /// The key and item of the member with `rank` others below it.
    pub(crate) fn select(&self, rank: u32) -> Option<Entry> {
        if rank >= self.len {
            return None;
        }
        let mut left = rank;
        let mut group = 0;
        while left >= self.groups[group] {
            left -= self.groups[group];
            group += 1;
        }
        let mut index = group * GROUP;
        while left >= self.counts[index] {
            left -= self.counts[index];
            index += 1;
        }
        self.pieces[index].get(left as usize).copied()
    }

    /// The greatest member.
    pub(crate) fn last(&self) -> Option<Entry> {
        self.lasts.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn agrees(set: &Ranked, model: &BTreeSet<Entry>, probe: u64) -> Result<(), TestCaseError> {
        prop_assert_eq!(set.len() as usize, model.len());
        prop_assert_eq!(set.last(), model.last().copied());
        prop_assert_eq!(set.count_to(probe) as usize, model.iter().filter(|(key, _)| *key <= probe).count());
        for (rank, member) in model.iter().enumerate() {
            prop_assert_eq!(set.select(rank as u32), Some(*member));
        }
        prop_assert_eq!(set.select(set.len()), None);
        Ok(())
    }

    proptest! {
        #[test]
        fn agrees_with_a_tree(
            first in prop::collection::vec(0u64..30, 0..20),
            ops in prop::collection::vec((0u32..60, prop::option::of(0u64..30)), 1..200), probe in 0u64..31,
        ) {
            let first: Vec<Entry> = first.into_iter().zip(0..).collect();
            let mut model: BTreeSet<Entry> = first.iter().copied().collect();
            let mut set = Ranked::new(first);
            for (item, key) in ops {
                if let Some(old) = model.iter().find(|(_, other)| *other == item).copied() {
                    model.remove(&old);
                    set.remove(old.0, old.1);
                }
                if let Some(key) = key {
                    model.insert((key, item));
                    set.insert(key, item);
                }
            }
            agrees(&set, &model, probe)?;
        }

        #[test]
        fn pieces_are_split_and_go(seed in any::<u64>()) {
            let key = |item: u32| (u64::from(item) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50;
            let (mut set, mut model) = (Ranked::default(), BTreeSet::new());
            for item in 0..3000u32 {
                set.insert(key(item), item);
                model.insert((key(item), item));
            }
            agrees(&set, &model, 1 << 13)?;
            for item in (0..3000u32).filter(|item| !item.is_multiple_of(7)) {
                set.remove(key(item), item);
                model.remove(&(key(item), item));
            }
            set.remove(1, 1);
            model.remove(&(1, 1));
            agrees(&set, &model, 1 << 13)?;
        }
    }

    /// Sections that were written in the same second.
    #[test]
    fn equal_keys_fill_more_than_a_piece() {
        let mut set = Ranked::new((0..1000).map(|item| (7, item)).collect());
        (1000..1400).for_each(|item| set.insert(7, item));
        set.insert(6, 5000);
        set.insert(8, 5001);
        assert_eq!([5, 6, 7, 8].map(|key| set.count_to(key)), [0, 1, 1401, 1402]);
        assert_eq!(
            [0, 1, 700, 1400, 1401].map(|rank| set.select(rank)),
            [(6, 5000), (7, 0), (7, 699), (7, 1399), (8, 5001)].map(Some)
        );
        (0..1400).step_by(2).for_each(|item| set.remove(7, item));
        assert_eq!([5, 6, 7, 8].map(|key| set.count_to(key)), [0, 1, 701, 702]);
        assert_eq!(set.select(700), Some((7, 1399)));
    }

    fn agrees_here_and_there(set: &Ranked, members: &[Entry]) {
        assert_eq!((set.len() as usize, set.last()), (members.len(), members.last().copied()));
        for rank in (0..members.len()).step_by(61).chain([members.len() - 1]) {
            let (key, item) = members[rank];
            assert_eq!(set.select(rank as u32), Some((key, item)), "{rank}");
            // Keys are even, and each is there once.
            assert_eq!((set.count_to(key) as usize, set.count_to(key - 1) as usize), (rank + 1, rank));
        }
        assert_eq!(set.select(members.len() as u32), None);
    }

    /// A group is 64 pieces, and a new set has 256 items in each.
    #[test]
    fn ranks_are_right_in_all_groups() {
        let mut members: Vec<Entry> = (0..40_000).map(|item| (u64::from(item) * 8 + 8, item)).collect();
        let mut set = Ranked::new(members.iter().rev().copied().collect());
        agrees_here_and_there(&set, &members);
        // Pieces of the second group go, and those behind move up into it.
        for (key, item) in members.drain(20_000..21_000) {
            set.remove(key, item);
        }
        agrees_here_and_there(&set, &members);
        // Some of a piece in the third.
        for (key, item) in members.drain(34_000..34_100) {
            set.remove(key, item);
        }
        agrees_here_and_there(&set, &members);
        // Pieces of the first group are split.
        let more: Vec<Entry> =
            (0..3000).map(|at| (u64::from(at / 3 + 2000) * 8 + 2 * u64::from(at % 3) + 2, 50_000 + at)).collect();
        for (key, item) in more {
            set.insert(key, item);
            members.push((key, item));
        }
        // And one that is greater than all.
        set.insert(1 << 40, 60_000);
        members.push((1 << 40, 60_000));
        members.sort_unstable();
        agrees_here_and_there(&set, &members);
        // What is not a member does no harm.
        set.remove(3, 3);
        Ranked::default().remove(3, 3);
        agrees_here_and_there(&set, &members);
    }
}
