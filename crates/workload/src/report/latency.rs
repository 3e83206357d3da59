//! Times of single operations, and their percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;

/// A histogram of times from 1 ns to a minute, with a relative error of at most 1 %. Longer times count as a minute.
///
/// Each thread fills one of its own; they are [merged](Latencies::merge) when the threads are done. 35 KiB each.
#[derive(Clone, Debug)]
pub struct Latencies {
    nanoseconds: Histogram<u64>,
}

/// The longest time that is told apart, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

impl Latencies {
    /// An empty one.
    #[must_use]
    pub fn new() -> Latencies {
        // The bounds are constants that the constructor accepts; a histogram that grows would do as well.
        let nanoseconds = Histogram::new_with_bounds(1, LONGEST, 2);
        Latencies { nanoseconds: nanoseconds.unwrap_or_else(|_| unreachable!("constant bounds")) }
    }

    /// Adds one time.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        self.nanoseconds.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds all times of another one.
    pub fn merge(&mut self, other: &Latencies) {
        // Both have the same bounds, so nothing can be out of range.
        let _ = self.nanoseconds.add(&other.nanoseconds);
    }

    /// How many times were added.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// Whether none was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nanoseconds.is_empty()
    }

    /// The time that `percent` of the operations did not exceed; zero if there were none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.nanoseconds.value_at_percentile(percent))
    }

    /// The longest time; zero if there was none.
    #[must_use]
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.max())
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_one_per_cent() {
        let (mut low, mut high) = (Latencies::new(), Latencies::new());
        assert!(low.is_empty() && low.percentile(50.0).is_zero());
        for micros in 1..=500 {
            low.record(Duration::from_micros(micros));
            high.record(Duration::from_micros(500 + micros));
        }
        low.merge(&high);
        assert_eq!(low.len(), 1000);
        for (percent, micros) in [(50.0, 500.0), (99.0, 990.0), (100.0, 1000.0)] {
            let found = low.percentile(percent).as_secs_f64() * 1e6;
            assert!((found / micros - 1.0).abs() < 0.011, "p{percent}: {found} us, not {micros}");
        }
        low.record(Duration::MAX);
        low.record(Duration::ZERO);
        assert!(low.longest() >= Duration::from_secs(59), "a time out of range is not lost");
        assert_eq!(low.len(), 1002);
    }
}
