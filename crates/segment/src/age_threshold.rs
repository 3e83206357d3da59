//! Which sections age-threshold cleaning compares.

/// The numbers of age-threshold cleaning. The default is the kernel's (`gc.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgeThreshold {
    /// Candidates are at least so many seconds older than the youngest section; if none is, all are candidates.
    pub threshold: u64,
    /// Of them, the oldest so many per cent are compared,
    pub ratio: u32,
    /// but at least so many.
    pub min_candidates: u32,
    /// The weight of age against free space, per cent.
    pub age_weight: u32,
}

impl AgeThreshold {
    /// Candidates are at least so many seconds older than the youngest section.
    #[must_use]
    pub fn threshold(mut self, seconds: u64) -> AgeThreshold {
        self.threshold = seconds;
        self
    }

    /// The oldest so many per cent of the candidates are compared.
    #[must_use]
    pub fn ratio(mut self, percent: u32) -> AgeThreshold {
        self.ratio = percent;
        self
    }

    /// At least so many candidates are compared.
    #[must_use]
    pub fn min_candidates(mut self, sections: u32) -> AgeThreshold {
        self.min_candidates = sections;
        self
    }

    /// The weight of age against free space, per cent.
    #[must_use]
    pub fn age_weight(mut self, percent: u32) -> AgeThreshold {
        self.age_weight = percent;
        self
    }
}

impl Default for AgeThreshold {
    fn default() -> AgeThreshold {
        AgeThreshold { threshold: 60 * 60 * 24 * 7, ratio: 20, min_candidates: 10, age_weight: 60 }
    }
}

#[cfg(test)]
mod tests {
    use super::AgeThreshold;

    #[test]
    fn the_default_is_the_kernels() {
        let kernel = AgeThreshold { threshold: 604_800, ratio: 20, min_candidates: 10, age_weight: 60 };
        assert_eq!(AgeThreshold::default(), kernel);
        let other = AgeThreshold { threshold: 1, ratio: 2, min_candidates: 3, age_weight: 4 };
        assert_eq!(AgeThreshold::default().threshold(1).ratio(2).min_candidates(3).age_weight(4), other);
    }
}
