//! Searches, in the semantics of Btrfs' extent io tree (`fs/btrfs/extent-io-tree.c`). Its states are [`Run`]s here:
//! neighbouring blocks with equal bits are always one run, however they got them.

use super::chunk::Locked;
use super::{Bits, ExtentBits, Run, View, in_chunk};
use crate::geometry::CHUNK_BLOCKS;
use crate::range::BlockRange;

impl<'a> View<'a> {
    /// The chunk of a block, locked, and its number.
    fn chunk(&self, block: u64) -> Option<(Locked<'a>, u64)> {
        let number = block / CHUNK_BLOCKS;
        Some((self.bits.chunks.get()?.get(number)?.lock(), number))
    }

    /// The blocks around `block` that are not in chunks either, if it is not.
    fn gap(&self, block: u64) -> (u64, u64) {
        let Some(chunks) = self.bits.chunks.get() else { return (0, u64::MAX) };
        let number = block / CHUNK_BLOCKS;
        let first = chunks.previous(number).map_or(0, |previous| (previous + 1) * CHUNK_BLOCKS);
        (first, chunks.next(number).map_or(u64::MAX, |(next, _)| next * CHUNK_BLOCKS - 1))
    }

    /// The bits of a block.
    pub(super) fn bits(&self, block: u64) -> Bits {
        match self.chunk(block) {
            Some((chunk, _)) => chunk.bits(block % CHUNK_BLOCKS),
            None => self.runs.at(block).bits,
        }
    }

    /// The last block up to which all blocks from `first` on have these bits. `first` has them.
    pub(super) fn forward(&self, first: u64, bits: Bits) -> u64 {
        let mut last = None;
        let mut next = Some(first);
        while let Some(block) = next {
            let (reached, end) = match self.chunk(block) {
                Some((chunk, number)) => {
                    let base = number * CHUNK_BLOCKS;
                    let here = in_chunk(number, BlockRange::one(block)).first();
                    (chunk.forward(here, CHUNK_BLOCKS - 1, bits).map(|last| base + last), base + (CHUNK_BLOCKS - 1))
                }
                None => {
                    let run = self.runs.at(block);
                    let end = self.gap(block).1;
                    ((run.bits == bits).then(|| run.range.last().min(end)), end)
                }
            };
            let Some(reached) = reached else { break };
            last = Some(reached);
            next = if reached == end { end.checked_add(1) } else { None };
        }
        last.unwrap_or(first)
    }

    /// The first block from which on all blocks up to `last` have these bits. `last` has them.
    fn backward(&self, last: u64, bits: Bits) -> u64 {
        let mut first = None;
        let mut next = Some(last);
        while let Some(block) = next {
            let (reached, start) = match self.chunk(block) {
                Some((chunk, number)) => {
                    let base = number * CHUNK_BLOCKS;
                    (chunk.backward(0, block - base, bits).map(|first| base + first), base)
                }
                None => {
                    let run = self.runs.at(block);
                    let start = self.gap(block).0;
                    ((run.bits == bits).then(|| run.range.first().max(start)), start)
                }
            };
            let Some(reached) = reached else { break };
            first = Some(reached);
            next = if reached == start { start.checked_sub(1) } else { None };
        }
        first.unwrap_or(last)
    }

    /// The run of a block, without bits too.
    pub(super) fn run(&self, block: u64) -> Run {
        let bits = self.bits(block);
        let range = BlockRange::new(self.backward(block, bits), self.forward(block, bits));
        Run { range: range.unwrap_or(BlockRange::one(block)), bits }
    }

    /// The run after a run.
    fn after(&self, run: Run) -> Option<Run> {
        let first = run.range.last().checked_add(1)?;
        let bits = self.bits(first);
        BlockRange::new(first, self.forward(first, bits)).map(|range| Run { range, bits })
    }

    /// The runs from that of `block` on, those without bits too.
    fn runs_from(&self, block: u64) -> impl Iterator<Item = Run> + '_ {
        std::iter::successors(Some(self.run(block)), |run| self.after(*run))
    }
}

impl ExtentBits {
    pub(super) fn view(&self) -> View<'_> {
        View { bits: self, runs: self.runs.lock() }
    }

    /// The run of a block: all its neighbours with the same bits, or none.
    #[must_use]
    pub fn run_at(&self, block: u64) -> Run {
        self.view().run(block)
    }

    /// The runs with bits, ascending. Each is as it was at one moment; the table may change between two.
    pub fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let run = self.find_from(next?, |bits| !bits.is_empty())?;
            next = run.range.last().checked_add(1);
            Some(run)
        })
    }

    /// The first run that reaches to or beyond `from` and has one of these bits (`find_first_extent_bit`). It may begin
    /// before `from`.
    #[must_use]
    pub fn find_with(&self, from: u64, bits: Bits) -> Option<Run> {
        self.find_from(from, |here| here.has_any(bits))
    }

    fn find_from(&self, from: u64, wanted: impl Fn(Bits) -> bool) -> Option<Run> {
        let view = self.view();
        view.runs_from(from).find(|run| wanted(run.bits))
    }

    /// The first range at or beyond `from` of which no block has one of these bits (`find_first_clear_extent_bit`).
    ///
    /// As there: it begins where the run begins that contains its first block, perhaps before `from`; it goes on over
    /// runs without these bits and gaps between them; and it ends with the last run that has any bits. If no run comes
    /// after the gap in which it begins, it ends with block `u64::MAX`. `None` if every block from `from` on has one of
    /// the bits.
    #[must_use]
    pub fn find_without(&self, from: u64, bits: Bits) -> Option<BlockRange> {
        let view = self.view();
        let mut runs = view.runs_from(from).skip_while(|run| run.bits.has_any(bits));
        let start = runs.next()?;
        // Gaps count only when a run follows them.
        let mut end = if start.bits.is_empty() { None } else { Some(start.range.last()) };
        for run in runs {
            if run.bits.has_any(bits) {
                end = run.range.first().checked_sub(1);
                break;
            }
            if !run.bits.is_empty() {
                end = Some(run.range.last());
            }
        }
        BlockRange::new(start.range.first(), end.unwrap_or(u64::MAX))
    }

    /// The first range at or beyond `from` of which every block has one of these bits (`find_contiguous_extent_bit`),
    /// as long as possible. It may begin before `from`, where the run with its first block begins.
    #[must_use]
    pub fn find_contiguous(&self, from: u64, bits: Bits) -> Option<BlockRange> {
        let view = self.view();
        let mut runs = view.runs_from(from).skip_while(|run| !run.bits.has_any(bits));
        let start = runs.next()?.range;
        let rest = runs.take_while(|run| run.bits.has_any(bits));
        let last = rest.last().map_or(start.last(), |run| run.range.last());
        BlockRange::new(start.first(), last)
    }

    /// Delayed allocation to be written: blocks with [`Bits::DELALLOC`] in a row, the first of them in `within`, at
    /// most `most` of them (`find_lock_delalloc_range` less the locking). They may go on beyond `within`.
    ///
    /// As there, only the first run that reaches to or beyond the start of `within` counts: if it has no delayed
    /// allocation there is none, even if a later run in `within` has.
    #[must_use]
    pub fn find_delalloc(&self, within: BlockRange, most: u64) -> Option<BlockRange> {
        let view = self.view();
        let mut runs = view.runs_from(within.first()).skip_while(|run| run.bits.is_empty());
        let start = runs.next().filter(|run| run.bits.has_any(Bits::DELALLOC))?;
        let rest = runs.take_while(|run| run.bits.has_any(Bits::DELALLOC));
        let first = start.range.first().max(within.first());
        let last = rest.last().map_or(start.range.last(), |run| run.range.last());
        let last = last.min(first.saturating_add(most.checked_sub(1)?));
        BlockRange::new(first, last).filter(|found| within.contains(found.first()))
    }

    /// The first blocks in a row, in the range, that have all of these bits (`count_range_bits` with `contig`).
    #[must_use]
    pub fn first_contiguous(&self, within: BlockRange, bits: Bits) -> Option<BlockRange> {
        let view = self.view();
        let mut runs = view.runs_from(within.first()).skip_while(|run| !run.bits.has_all(bits));
        let start = runs.next()?.range;
        let rest = runs.take_while(|run| run.bits.has_all(bits) && run.range.first() <= within.last());
        let last = rest.last().map_or(start.last(), |run| run.range.last());
        BlockRange::new(start.first(), last)?.intersection(within)
    }
}
