//! The result of a measurement.

use std::time::Duration;

use super::setting::Setting;
use crate::report::Latencies;

/// One measurement.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The setting.
    pub setting: Setting,
    /// From the first thread's start to the last one's end.
    pub elapsed: Duration,
    /// Of single reads; see the module on what that is beyond depth 1.
    pub latencies: Latencies,
    /// The fastest thread's time by the slowest one's.
    pub slowest_share: f64,
    /// The time that threads waited for ranges of the files, by the time of all threads together.
    pub lock_share: f64,
    /// Reads that had to wait for a range.
    pub lock_waits: u64,
}

impl Measured {
    /// The columns of [`csv`](Measured::csv).
    pub const COLUMNS: &str = "pattern,file,depth,table,threads,reads,seconds,iops,p50_us,p99_us,p999_us,longest_us,lock_share,lock_waits,slowest_share";

    /// Reads a second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.setting.reads as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// A percentile of the latencies in microseconds.
    #[must_use]
    pub fn micros(&self, percent: f64) -> f64 {
        self.latencies.percentile(percent).as_secs_f64() * 1e6
    }

    /// As a line of a CSV file.
    #[must_use]
    pub fn csv(&self) -> String {
        let Setting { pattern, sharing, depth, threads, reads, .. } = &self.setting;
        let table = self.setting.table_name();
        let percentiles = [50.0, 99.0, 99.9].map(|percent| format!("{:.2}", self.micros(percent))).join(",");
        format!(
            "{pattern},{sharing},{depth},{table},{threads},{reads},{:.6},{:.1},{percentiles},{:.2},{:.5},{},{:.3}",
            self.elapsed.as_secs_f64(),
            self.iops(),
            self.latencies.longest().as_secs_f64() * 1e6,
            self.lock_share,
            self.lock_waits,
            self.slowest_share,
        )
    }
}
