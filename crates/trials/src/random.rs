//! Numbers that look random and are the same in every run (`SplitMix64`).

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it has no end, and gives a plain number")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mix = self.0;
        mix = (mix ^ mix >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mix ^ mix >> 31
    }

    /// A number below `end` (0 if `end` is 0).
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True once in `one_in` times.
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

/// `len` bytes that differ from seed to seed and from place to place.
#[must_use]
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut all = Vec::with_capacity(len + 8);
    while all.len() < len {
        all.extend_from_slice(&random.next().to_le_bytes());
    }
    all.truncate(len);
    all
}
