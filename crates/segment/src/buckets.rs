//! Items sorted into buckets by a small key, first in first out, each operation in constant time. Memory is for the
//! items up to the greatest one that was ever placed.

use crate::bitset::BitSet;

const NONE: u32 = u32::MAX;

/// Doubly linked lists through arrays: one list a bucket, an item in at most one of them.
#[derive(Debug)]
pub(crate) struct Buckets {
    ends: Vec<Ends>,
    links: Vec<Link>,
    occupied: BitSet,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    bucket: u32,
    previous: u32,
    next: u32,
}

const UNLINKED: Link = Link { bucket: NONE, previous: NONE, next: NONE };

impl Buckets {
    /// So many buckets; items come as they are placed.
    pub(crate) fn new(buckets: u32) -> Buckets {
        Buckets {
            ends: vec![Ends { first: NONE, last: NONE }; buckets as usize],
            links: Vec::new(),
            occupied: BitSet::new(buckets),
        }
    }

    /// Puts an item at the end of a bucket, out of the one it is in; where it is already there it keeps its place.
    pub(crate) fn place(&mut self, item: u32, bucket: u32) {
        if item as usize >= self.links.len() {
            self.links.resize(item as usize + 1, UNLINKED);
        }
        if self.links[item as usize].bucket == bucket {
            return;
        }
        self.remove(item);
        let ends = &mut self.ends[bucket as usize];
        self.links[item as usize] = Link { bucket, previous: ends.last, next: NONE };
        match ends.last {
            NONE => {
                ends.first = item;
                self.occupied.insert(bucket);
            }
            last => self.links[last as usize].next = item,
        }
        ends.last = item;
    }

    /// Takes an item out of its bucket, if it is in one.
    pub(crate) fn remove(&mut self, item: u32) {
        let Some(&Link { bucket, previous, next }) = self.links.get(item as usize) else { return };
        if bucket == NONE {
            return;
        }
        self.links[item as usize].bucket = NONE;
        let ends = &mut self.ends[bucket as usize];
        match previous {
            NONE => ends.first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => ends.last = previous,
            next => self.links[next as usize].previous = previous,
        }
        if ends.first == NONE {
            self.occupied.remove(bucket);
        }
    }

    /// The items of the buckets from `from` on and below `to`: the lowest bucket first, and in a bucket the items that
    /// have waited longest first.
    pub(crate) fn ascending(&self, from: u32, to: u32) -> impl Iterator<Item = u32> + '_ {
        let buckets = core::iter::successors(self.occupied.next(from), |bucket| self.occupied.next(bucket + 1));
        let items = move |bucket: u32| {
            let some = |item: u32| (item != NONE).then_some(item);
            core::iter::successors(some(self.ends[bucket as usize].first), move |item| {
                some(self.links[*item as usize].next)
            })
        };
        buckets.take_while(move |bucket| *bucket < to).flat_map(items)
    }

    /// The item that has waited longest in the lowest bucket at or above `from` and below `to`.
    pub(crate) fn first(&self, from: u32, to: u32) -> Option<u32> {
        let bucket = self.occupied.next(from)?;
        (bucket < to).then(|| self.ends[bucket as usize].first)
    }
}

#[cfg(test)]
mod tests {
    use super::Buckets;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_queues(ops in prop::collection::vec((0u32..20, prop::option::of(0u32..8)), 1..100), from in 0u32..8, to in 0u32..9) {
            let (mut buckets, mut model) = (Buckets::new(8), vec![VecDeque::new(); 8]);
            for (item, bucket) in ops {
                match bucket {
                    Some(bucket) if model[bucket as usize].contains(&item) => buckets.place(item, bucket),
                    Some(bucket) => {
                        buckets.place(item, bucket);
                        model.iter_mut().for_each(|queue| queue.retain(|&other| other != item));
                        model[bucket as usize].push_back(item);
                    }
                    None => {
                        buckets.remove(item);
                        model.iter_mut().for_each(|queue| queue.retain(|&other| other != item));
                    }
                }
                let expected = (from..to).find_map(|bucket| model[bucket as usize].front().copied());
                let ascending = (from..to.min(8)).flat_map(|bucket| model[bucket as usize].iter().copied());
            prop_assert!(buckets.ascending(from, to).eq(ascending));
            prop_assert_eq!(buckets.first(from, to), expected);
            }
        }
    }
}
