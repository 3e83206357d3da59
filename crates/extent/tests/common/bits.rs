//! State bits beside a naive model of every block.

use super::{CELLS, Source, blocks};
use f2fs_extent::{Bits, BlockRange, ExtentBits, Run};

/// The bits of each cell, and every operation in the plainest way.
struct Model([u8; CELLS]);

impl Model {
    fn change(&mut self, (from, to): (usize, usize), set: u8, clear: u8) -> u128 {
        let mut changed = 0;
        for cell in from..=to {
            let new = (self.0[cell] & !clear) | set;
            changed += if new == self.0[cell] { 0 } else { blocks(cell, cell).blocks() };
            self.0[cell] = new;
        }
        changed
    }

    fn cells(&self, (from, to): (usize, usize)) -> impl Iterator<Item = (usize, u8)> + '_ {
        (from..=to).map(|cell| (cell, self.0[cell]))
    }

    /// The cells of the run of a cell.
    fn run(&self, cell: usize) -> (usize, usize) {
        let same = |&other: &usize| self.0[other] == self.0[cell];
        let from = (0..=cell).rev().take_while(same).last().unwrap_or(cell);
        let to = (cell..CELLS).take_while(same).last().unwrap_or(cell);
        (from, to)
    }

    fn find_with(&self, from: usize, bits: u8) -> Option<Run> {
        let cell = (from..CELLS).find(|&cell| self.0[cell] & bits != 0)?;
        let (start, end) = self.run(cell);
        Some(Run { range: blocks(start, end), bits: Bits::from_raw(self.0[cell]) })
    }

    fn find_without(&self, from: usize, bits: u8) -> Option<BlockRange> {
        let cell = (from..CELLS).find(|&cell| self.0[cell] & bits == 0)?;
        let start = self.run(cell).0;
        let with = (cell..CELLS).find(|&cell| self.0[cell] & bits != 0);
        let end = match with {
            Some(with) => with - 1,
            // To the end of the last run with any bits, unless there is none.
            None => (cell..CELLS).rev().find(|&cell| self.0[cell] != 0).unwrap_or(CELLS - 1),
        };
        Some(blocks(start, end))
    }

    fn find_contiguous(&self, from: usize, bits: u8) -> Option<BlockRange> {
        let cell = (from..CELLS).find(|&cell| self.0[cell] & bits != 0)?;
        let end = (cell..CELLS).take_while(|&cell| self.0[cell] & bits != 0).last()?;
        Some(blocks(self.run(cell).0, end))
    }

    fn first_contiguous(&self, (from, to): (usize, usize), bits: u8) -> Option<BlockRange> {
        let all = |&cell: &usize| self.0[cell] & bits == bits;
        let cell = (from..=to).find(all)?;
        Some(blocks(cell, (cell..=to).take_while(all).last()?))
    }

    fn find_delalloc(&self, (from, to): (usize, usize), most: u64) -> Option<BlockRange> {
        let delalloc = |&cell: &usize| self.0[cell] & Bits::DELALLOC.raw() != 0;
        let cell = (from..CELLS).find(|&cell| self.0[cell] != 0).filter(delalloc).filter(|&cell| cell <= to)?;
        let last = blocks(cell, (cell..CELLS).take_while(delalloc).last()?).last();
        let first = blocks(cell, cell).first();
        BlockRange::new(first, last.min(first.saturating_add(most.checked_sub(1)?)))
    }
}

/// Plays so many steps, with a new table now and then.
pub(crate) fn epoch(random: &mut impl Source, steps: usize) {
    let mut bits = ExtentBits::new();
    let mut model = Model([0; CELLS]);
    for round in 0..steps {
        let cells = random.cells();
        let range = blocks(cells.0, cells.1);
        let span = range.first()..=range.last();
        // Few bits, so that runs meet.
        let raw = [1, 2, 3, 1 << 7, 0x83, 4, 0][random.below(7)];
        let some = Bits::from_raw(raw);
        match random.below(14) {
            0..=2 => assert_eq!(bits.set(span, some), model.change(cells, raw, 0), "{round}: set {range} {some:?}"),
            3..=4 => assert_eq!(bits.clear(span, some), model.change(cells, 0, raw), "{round}: clear {range} {some:?}"),
            5 => {
                let other = [1, 2, 3, 0xff][random.below(4)];
                let changed = bits.convert(span, some, Bits::from_raw(other));
                assert_eq!(changed, model.change(cells, raw, other), "{round}: convert {range} {some:?}");
            }
            6 => {
                let expected = model.cells(cells).any(|(_, here)| here & raw != 0);
                assert_eq!(bits.test_any(span, some), expected, "{round}: any {range} {some:?}");
            }
            7 => {
                let expected = model.cells(cells).all(|(_, here)| here & raw == raw);
                assert_eq!(bits.test_all(span, some), expected, "{round}: all {range} {some:?}");
            }
            8 => {
                let with = model.cells(cells).filter(|(_, here)| here & raw == raw);
                let expected: u128 = with.map(|(cell, _)| blocks(cell, cell).blocks()).sum();
                assert_eq!(bits.count(span, some), expected, "{round}: count {range} {some:?}");
            }
            9 => {
                let expected = model.find_with(cells.0, raw);
                assert_eq!(bits.find_with(range.first(), some), expected, "{round}: with {range} {some:?}");
            }
            10 => {
                let expected = model.find_without(cells.0, raw);
                assert_eq!(bits.find_without(range.first(), some), expected, "{round}: without {range} {some:?}");
            }
            11 => {
                let expected = model.find_contiguous(cells.0, raw);
                assert_eq!(bits.find_contiguous(range.first(), some), expected, "{round}: contiguous {range}");
            }
            12 => {
                let expected = model.first_contiguous(cells, raw);
                assert_eq!(bits.first_contiguous(range, some), expected, "{round}: first of {range} {some:?}");
            }
            _ => {
                let most = [1, 100, u64::MAX][random.below(3)];
                let expected = model.find_delalloc(cells, most);
                assert_eq!(bits.find_delalloc(range, most), expected, "{round}: delalloc in {range}, {most}");
            }
        }
        if round % 256 == 0 {
            for cell in 0..CELLS {
                let block = blocks(cell, cell).last();
                assert_eq!(bits.get(block).raw(), model.0[cell], "{round}: block {block}");
                let (from, to) = model.run(cell);
                assert_eq!(bits.run_at(block).range, blocks(from, to), "{round}: run of block {block}");
            }
        }
        if random.below(2000) == 0 {
            // A new table, in which nothing has a chunk.
            bits = ExtentBits::new();
            model = Model([0; CELLS]);
        }
    }
}
