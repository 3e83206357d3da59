//! The dirty blocks of a file, in order.
//!
//! Runs of neighbours are one entry: a file that is written from its start on has one. ([`f2fs_extent::ExtentBits`]
//! keeps a byte a block in chunks of 4096 blocks, for changes without a lock; a small file with one dirty block would
//! take more memory for that than for its data.)
//!
//! # Locking
//!
//! None here: it stands under the mutex in [`FilePages`](super::FilePages).

use std::collections::BTreeMap;

/// Blocks, as runs that do not touch: the first block of each, and how many.
#[derive(Debug, Default)]
pub(super) struct DirtyBlocks {
    runs: BTreeMap<u64, u64>,
    blocks: u64,
}

impl DirtyBlocks {
    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.blocks
    }

    /// The first block at or behind `from`, with the run that it is in from there on.
    pub(super) fn next(&self, from: u64) -> Option<(u64, u64)> {
        if let Some((first, len)) = self.runs.range(..=from).next_back()
            && from < first + len
        {
            return Some((from, first + len - from));
        }
        self.runs.range(from..).next().map(|(first, len)| (*first, *len))
    }

    /// The first and the last one of those within `most` blocks from the first at or behind `from` on.
    pub(super) fn span(&self, from: u64, most: u64) -> Option<(u64, u64)> {
        let (first, len) = self.next(from)?;
        let limit = first.saturating_add(most - 1);
        let last = self.runs.range(..=limit).next_back().map_or(first + len - 1, |(at, len)| at + len - 1);
        Some((first, last.min(limit)))
    }

    /// Adds blocks, those among them that are there already too.
    pub(super) fn insert(&mut self, first: u64, len: u64) {
        let (mut start, mut end) = (first, first + len);
        // From the back, all runs that touch the new one become part of it.
        while let Some((at, run)) = self.runs.range(..=end).next_back().map(|(at, run)| (*at, *run)) {
            if at + run < start {
                break;
            }
            self.runs.remove(&at);
            self.blocks -= run;
            start = start.min(at);
            end = end.max(at + run);
        }
        self.runs.insert(start, end - start);
        self.blocks += end - start;
    }

    /// Takes blocks out.
    pub(super) fn remove(&mut self, first: u64, len: u64) {
        let end = first + len;
        while let Some((at, run)) = self.runs.range(..end).next_back().map(|(at, run)| (*at, *run)) {
            if at + run <= first {
                break;
            }
            self.runs.remove(&at);
            self.blocks -= run;
            if at + run > end {
                self.runs.insert(end, at + run - end);
                self.blocks += at + run - end;
            }
            if at < first {
                self.runs.insert(at, first - at);
                self.blocks += first - at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_of_blocks(steps in prop::collection::vec((any::<bool>(), 0u64..60, 1u64..20), 1..60)) {
            let (mut dirty, mut model) = (DirtyBlocks::default(), BTreeSet::new());
            for (insert, first, len) in steps {
                if insert {
                    dirty.insert(first, len);
                    model.extend(first..first + len);
                } else {
                    dirty.remove(first, len);
                    model.retain(|block| !(first..first + len).contains(block));
                }
                prop_assert_eq!(dirty.len(), model.len() as u64);
                let (mut found, mut at) = (BTreeSet::new(), 0);
                while let Some((first, len)) = dirty.next(at) {
                    found.extend(first..first + len);
                    prop_assert!(dirty.next(first + len).is_none_or(|(next, _)| next > first + len), "runs touch");
                    at = first + len;
                }
                prop_assert_eq!(&found, &model);
                for (from, most) in (0..80).zip([1, 3, 50].into_iter().cycle()) {
                    let span = dirty.span(from, most);
                    prop_assert_eq!(span.map(|(first, _)| first), model.range(from..).next().copied());
                    let within = |(first, _): (u64, u64)| model.range(first..first + most).next_back().copied();
                    prop_assert_eq!(span.map(|(_, last)| last), span.and_then(within));
                }
                for from in 0..80 {
                    let next = model.range(from..).next().copied();
                    prop_assert_eq!(dirty.next(from).map(|(first, _)| first), next);
                }
            }
        }
    }
}
