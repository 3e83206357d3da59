//! The settings of a measurement.

use std::fmt;
use std::str::FromStr;

use f2fs::DirectoryLock;
use f2fs::nat::Policy;

/// Bytes of a block, and of an operation of the workloads on blocks.
pub(super) const BLOCK: usize = 4096;
/// The most threads.
const MOST_THREADS: usize = 4096;
/// Bytes of a worker's part of a shared file.
pub(super) const PART: u64 = 8 << 20;

/// A workload of FxMark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Workload {
    /// Unlink in private directories.
    Mwul,
    /// Unlink in a shared directory.
    Mwum,
    /// Create empty files in private directories.
    Mwcl,
    /// Create and write in a shared directory.
    Mwcm,
    /// Rename within private directories.
    Mwrl,
    /// Move from private directories into a shared one.
    Mwrm,
    /// Read a block of a private file.
    Drbl,
    /// Read a block of one's own in a shared file.
    Drbm,
    /// Read the same block of a shared file.
    Drbh,
    /// Overwrite a block of a private file.
    Dwol,
    /// Overwrite a block of one's own in a shared file.
    Dwom,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 11] = [
        Workload::Mwul,
        Workload::Mwum,
        Workload::Mwcl,
        Workload::Mwcm,
        Workload::Mwrl,
        Workload::Mwrm,
        Workload::Drbl,
        Workload::Drbm,
        Workload::Drbh,
        Workload::Dwol,
        Workload::Dwom,
    ];

    /// Its name in commands and reports, in small letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Workload::Mwul => "mwul",
            Workload::Mwum => "mwum",
            Workload::Mwcl => "mwcl",
            Workload::Mwcm => "mwcm",
            Workload::Mwrl => "mwrl",
            Workload::Mwrm => "mwrm",
            Workload::Drbl => "drbl",
            Workload::Drbm => "drbm",
            Workload::Drbh => "drbh",
            Workload::Dwol => "dwol",
            Workload::Dwom => "dwom",
        }
    }

    /// The name of its operations, in the plural.
    #[must_use]
    pub fn operations(self) -> &'static str {
        match self {
            Workload::Mwul | Workload::Mwum => "unlinks",
            Workload::Mwcl | Workload::Mwcm => "creates",
            Workload::Mwrl | Workload::Mwrm => "renames",
            Workload::Drbl | Workload::Drbm | Workload::Drbh => "reads",
            Workload::Dwol | Workload::Dwom => "writes",
        }
    }

    /// Whether FxMark fills the volume before it.
    pub(super) fn begins_full(self) -> bool {
        matches!(self, Workload::Mwul | Workload::Mwum)
    }

    /// Inodes that an operation makes or takes away.
    pub(super) fn inodes(self) -> i64 {
        match self {
            Workload::Mwul | Workload::Mwum => -1,
            Workload::Mwcl | Workload::Mwcm => 1,
            _ => 0,
        }
    }

    /// Whether all workers share one file with a part for each.
    pub(super) fn shares_parts(self) -> bool {
        matches!(self, Workload::Drbm | Workload::Dwom)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A workload's name that nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown workload {name:?}: {}", Workload::ALL.map(Workload::name).join(", "))]
pub struct UnknownWorkload {
    /// The name that was given.
    pub name: String,
}

impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Workload::ALL.into_iter().find(|workload| workload.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownWorkload { name: name.to_owned() })
    }
}

/// One measurement: what, how, with how many threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The workload.
    pub workload: Workload,
    /// How free NIDs are found.
    pub policy: Policy,
    /// The lock that is taken when a name changes.
    pub directory_lock: DirectoryLock,
    /// Workers, at least one.
    pub threads: usize,
    /// Operations of all workers together; where an operation is of a file of its own, also the files.
    pub files: u64,
    /// NIDs that are free when it starts, at most; `None`: as in FxMark, none for `mwul` and `mwum`, and all that there
    /// are for the others.
    pub free_nids: Option<u64>,
    /// Bytes of the library's page cache; 0 for none.
    pub page_cache: u64,
    /// Check the closed volume afterwards, as fsck does.
    pub verify: bool,
}

impl Setting {
    /// 100,000 operations on one thread, with the library's defaults.
    #[must_use]
    pub fn new(workload: Workload) -> Setting {
        Setting {
            workload,
            policy: Policy::default(),
            directory_lock: DirectoryLock::default(),
            threads: 1,
            files: 100_000,
            free_nids: None,
            page_cache: 0,
            verify: false,
        }
    }

    /// Files that a worker makes before the start.
    pub(super) fn files_of(&self, worker: usize) -> u64 {
        match self.workload {
            Workload::Mwul | Workload::Mwum | Workload::Mwrm => self.share(worker),
            Workload::Mwrl | Workload::Drbl | Workload::Dwol => 1,
            Workload::Drbh | Workload::Drbm | Workload::Dwom => u64::from(worker == 0),
            Workload::Mwcl | Workload::Mwcm => 0,
        }
    }

    /// Files that are made before the start.
    #[must_use]
    pub fn prepared_files(&self) -> u64 {
        (0..self.threads).map(|worker| self.files_of(worker)).sum()
    }

    /// Operations of one worker: they differ by one at most.
    pub(super) fn share(&self, worker: usize) -> u64 {
        let threads = self.threads.max(1) as u64;
        self.files / threads + u64::from((worker as u64) < self.files % threads)
    }

    /// Whether it can be measured at all; if not, why.
    pub(super) fn validate(&self) -> Result<(), &'static str> {
        if self.threads == 0 || self.threads > MOST_THREADS {
            return Err("a measurement needs 1 to 4096 threads");
        }
        if self.files == 0 {
            return Err("a measurement needs at least one file");
        }
        Ok(())
    }

    /// How many free NIDs to leave, if not all.
    pub(super) fn nids_left(&self) -> Option<u64> {
        self.free_nids.or(self.workload.begins_full().then_some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for workload in Workload::ALL {
            assert_eq!(workload.to_string().parse(), Ok(workload));
            assert_eq!(workload.name().to_uppercase().parse(), Ok(workload));
        }
        let error = "mwux".parse::<Workload>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown workload \"mwux\": mwul, mwum, mwcl, mwcm, mwrl, mwrm, drbl, drbm, drbh, dwol, dwom"
        );
    }

    #[test]
    fn work_is_shared_out_evenly() {
        for (threads, files) in [(1, 10), (3, 10), (7, 3), (128, 1_000_000)] {
            let setting = Setting { threads, files, ..Setting::new(Workload::Mwul) };
            let shares: Vec<u64> = (0..threads).map(|worker| setting.share(worker)).collect();
            assert_eq!(shares.iter().sum::<u64>(), files);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
