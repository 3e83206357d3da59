//! Random numbers, the same for the same seed in every run and version (`SplitMix64`).

/// Random numbers, the same for the same seed in every run: what a workload, a choice of cuts or a test is named by
/// and found again.
///
/// ```
/// use f2fs_device_test::Random;
///
/// let (mut one, mut other) = (Random::new(7), Random::new(7));
/// assert_eq!(one.next(), other.next());
/// assert!(one.below(10) < 10);
/// ```
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

    /// A number of at least 0 and below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fills the buffer.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            word.copy_from_slice(&self.next().to_le_bytes()[..word.len()]);
        }
    }

    /// A number below `end` (0 if `end` is 0).
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A number below `end` (0 if `end` is 0).
    pub fn below_u64(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True once in `one_in` times.
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// One of several; `None` if there is none.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    /// One of several.
    ///
    /// # Panics
    /// If there is none.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// `len` bytes that differ from seed to seed and from place to place.
#[must_use]
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut all = vec![0; len];
    Random::new(seed).fill(&mut all);
    all
}
