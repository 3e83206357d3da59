//! Shared by the oracle tests and the fuzz target: a file cut into cells, so that a naive model of every block of a
//! file of 2^64 blocks is short.
//!
//! Operations begin and end at the borders of cells, so all blocks of a cell are alike. The cells lie densely where the
//! structures have borders: words, lines, chunks, classes, the end of what has words.

pub(crate) mod bits;
pub(crate) mod locks;

use f2fs_extent::BlockRange;

/// The first blocks of the cells; the last cell ends with `u64::MAX`.
const BORDERS: &[u64] = &[
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    9,
    15,
    16,
    23,
    24,
    40,
    62,
    63,
    64,
    65,
    66,
    71,
    72,
    127,
    128,
    200,
    511,
    512,
    1000,
    4087,
    4088,
    4095,
    4096,
    4097,
    4104,
    5000,
    8191,
    8192,
    8193,
    8200,
    12_287,
    12_288,
    20_000,
    262_143,
    262_144,
    (1 << 30) - 4096,
    (1 << 30) - 4095,
    (1 << 30) - 1,
    1 << 30,
    (1 << 30) + 1,
    1 << 40,
    u64::MAX - 4096,
    u64::MAX - 1,
    u64::MAX,
];

/// How many cells there are.
pub(crate) const CELLS: usize = BORDERS.len();

/// The blocks of the cells `from ..= to`.
pub(crate) fn blocks(from: usize, to: usize) -> BlockRange {
    let last = BORDERS.get(to + 1).map_or(u64::MAX, |next| next - 1);
    BlockRange::new(BORDERS[from], last).expect("cells ascend")
}

/// Where choices come from: random numbers, or a fuzzer's bytes.
pub(crate) trait Source {
    /// A number below the bound, which is above zero.
    fn below(&mut self, bound: usize) -> usize;

    /// A range of cells: mostly short, sometimes up to the end.
    fn cells(&mut self) -> (usize, usize) {
        let from = self.below(CELLS);
        let to = match self.below(8) {
            0 => CELLS - 1,
            1 => from + self.below(CELLS - from),
            _ => (from + self.below(4)).min(CELLS - 1),
        };
        (from, to)
    }
}

/// How many operations a test does: `F2FS_EXTENT_OPS` (the full run takes 100,000,000), or 400,000.
pub(crate) fn operations() -> usize {
    std::env::var("F2FS_EXTENT_OPS").ok().and_then(|ops| ops.parse().ok()).unwrap_or(400_000)
}

/// Random numbers, the same on every run unless `F2FS_EXTENT_SEED` is set.
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let seed = std::env::var("F2FS_EXTENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(seed);
        Random(fastrand::Rng::with_seed(seed))
    }
}

impl Source for Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }
}
