//! The result of a measurement.

use std::time::Duration;

use super::error::FxmarkError;
use super::setting::Setting;
use super::work::Work;
use crate::report::Latencies;

/// The state of the volume's node numbers when the workers were released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// NIDs that the volume has.
    pub nids: u64,
    /// NIDs that nodes have.
    pub used_nids: u64,
    /// NIDs that could be allocated.
    pub free_nids: u64,
    /// Entries of the node address table in memory.
    pub cached_nat_entries: u64,
    /// Part of the blocks for users that were in use, 0 to 1.
    pub blocks: f64,
}

/// A measurement.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Measured {
    /// The setting.
    pub setting: Setting,
    /// It was by system calls in a directory; the setting's policy and lock mean nothing then.
    pub in_directory: bool,
    /// Operations of all workers.
    pub operations: u64,
    /// From the first worker's start to the last one's end.
    pub elapsed: Duration,
    /// Rate of the slowest worker by that of the fastest: 1 if all were equally fast.
    pub slowest_share: f64,
    /// Times of single operations.
    pub latencies: Latencies,
    /// Part of the threads' time (from each one's start to its end, added up) spent in scans for free NIDs or waiting
    /// for one.
    pub nid_scan_share: f64,
    /// Scans for free NIDs (under `sharded`: refills of a lane).
    pub nid_scans: u64,
    /// Checkpoints meanwhile, after which freed NIDs were free again: those that the volume needed for space.
    pub checkpoints: u64,
    /// The volume before.
    pub fill: Fill,
}

impl Measured {
    /// The columns of [`csv`](Measured::csv).
    pub const COLUMNS: &'static str =
        "workload,policy,threads,operations,seconds,ops_per_second,slowest_share,p50_us,p99_us,nid_scan_share";

    pub(super) fn new(
        setting: &Setting,
        fill: Fill,
        work: impl IntoIterator<Item = Work>,
        scans: (u64, Duration),
    ) -> Measured {
        let work: Vec<Work> = work.into_iter().filter(|work| work.operations > 0).collect();
        let start = work.iter().map(|work| work.start).min();
        let end = work.iter().map(|work| work.end).max();
        let rates = || work.iter().map(|work| work.operations as f64 / work.time().as_secs_f64().max(1e-9));
        let (slowest, fastest) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
        let threads: Duration = work.iter().map(Work::time).sum();
        let mut latencies = Latencies::new();
        work.iter().for_each(|work| latencies.merge(&work.latencies));
        Measured {
            setting: setting.clone(),
            in_directory: false,
            operations: work.iter().map(|work| work.operations).sum(),
            elapsed: start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start),
            slowest_share: if fastest > 0.0 { slowest / fastest } else { 1.0 },
            latencies,
            nid_scan_share: (scans.1.as_secs_f64() / threads.as_secs_f64().max(1e-9)).min(1.0),
            nid_scans: scans.0,
            checkpoints: 0,
            fill,
        }
    }

    /// Operations a second of all workers together.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The time in microseconds that `percent` of the operations did not exceed.
    #[must_use]
    pub fn micros(&self, percent: f64) -> f64 {
        self.latencies.percentile(percent).as_secs_f64() * 1e6
    }

    /// The name of the policy, or `directory`.
    #[must_use]
    pub fn policy(&self) -> String {
        if self.in_directory { "directory".to_owned() } else { self.setting.policy.to_string() }
    }

    /// Checks that the count of inodes, before and after, shows the files that were made or unlinked.
    pub(super) fn left(&self, before: i64, found: i64) -> Result<(), FxmarkError> {
        let (workload, operations) = (self.setting.workload, self.operations);
        let expected = before + workload.inodes() * operations as i64;
        if found == expected && operations == self.setting.files {
            return Ok(());
        }
        Err(FxmarkError::Inodes { workload, operations, expected, found })
    }

    /// A line of CSV, without a newline.
    #[must_use]
    pub fn csv(&self) -> String {
        format!(
            "{},{},{},{},{:.6},{:.1},{:.4},{:.3},{:.3},{:.6}",
            self.setting.workload,
            self.policy(),
            self.setting.threads,
            self.operations,
            self.elapsed.as_secs_f64(),
            self.rate(),
            self.slowest_share,
            self.micros(50.0),
            self.micros(99.0),
            self.nid_scan_share
        )
    }
}
