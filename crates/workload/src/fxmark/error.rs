//! Errors of the driver.

use std::error::Error;

use f2fs::FsError;
use f2fs::check::{CheckError, CheckReport};
use f2fs::volume::format::FormatVolumeError;

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FxmarkError {
    /// The volume could not be laid out.
    #[error("format: {0}")]
    Format(#[from] FormatVolumeError),
    /// An operation on the volume as a whole.
    #[error("{what}: {source}")]
    Volume {
        /// Which.
        what: &'static str,
        /// The file system's error.
        source: Box<FsError>,
    },
    /// An operation of a worker.
    #[error("{what} {path}: {source}")]
    Operation {
        /// Which.
        what: &'static str,
        /// The path.
        path: String,
        /// The library's error, or the system's.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A read or write moved fewer bytes than it should.
    #[error("{what} {path}: {bytes} of {wanted} bytes")]
    Short {
        /// Which.
        what: &'static str,
        /// The file.
        path: String,
        /// Bytes moved.
        bytes: usize,
        /// Bytes wanted.
        wanted: usize,
    },
    /// There are not as many inodes afterwards, or files of a directory, as the operations should leave.
    #[error("{workload}: {found} inodes after {operations} operations, {expected} expected")]
    Inodes {
        /// The workload.
        workload: super::Workload,
        /// Operations done.
        operations: u64,
        /// Inodes that should be there.
        expected: i64,
        /// Inodes that are there.
        found: i64,
    },
    /// A thread could not be started.
    #[error("start thread {thread}: {source}")]
    Thread {
        /// Its number, from 0.
        thread: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The volume could not be checked.
    #[error("check: {0}")]
    Check(#[from] CheckError),
    /// The volume is not sound after the workload.
    #[error("check: {}", first(.report))]
    Unsound {
        /// The findings.
        report: Box<CheckReport>,
    },
    /// The settings make no sense.
    #[error("{0}")]
    Setting(&'static str),
}

fn first(report: &CheckReport) -> String {
    match report.findings.first() {
        Some(finding) => format!("{finding}, and {} more", report.findings.len() - 1),
        None => "not complete".to_owned(),
    }
}

impl FxmarkError {
    /// For operations on the whole volume.
    pub(super) fn volume(what: &'static str) -> impl FnOnce(FsError) -> FxmarkError {
        move |source| FxmarkError::Volume { what, source: Box::new(source) }
    }

    /// For operations on a path.
    pub(super) fn at<E>(what: &'static str, path: &str) -> impl FnOnce(E) -> FxmarkError
    where
        E: Error + Send + Sync + 'static,
    {
        move |source| FxmarkError::Operation { what, path: path.to_owned(), source: Box::new(source) }
    }
}
