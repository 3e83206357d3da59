//! The verdict of `fsck.f2fs --dry-run`.

use std::fmt;
use std::path::Path;

use crate::lines::{LineKind, classify};
use crate::process;
use crate::{OracleError, mkfs::PACKAGE};

/// The verdict of `fsck.f2fs --dry-run` on a volume.
#[derive(Debug, Clone)]
pub struct FsckReport {
    /// The exit status; `None` when a signal killed the tool.
    pub status: Option<i32>,
    /// Everything that the tool printed.
    pub output: String,
    /// The lines that speak of damage, and a line of our own for a bad status or an unfinished run. Empty: accepted.
    pub findings: Vec<String>,
    /// The lines that speak of one torn copy of a superblock or pack, which a crash may leave.
    pub torn_copies: Vec<String>,
}

impl FsckReport {
    /// No finding and no torn copy: what a clean close must leave.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.is_accepted() && self.torn_copies.is_empty()
    }

    /// No finding: what a crash at any point must leave.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.findings.is_empty()
    }

    fn judge(status: std::process::ExitStatus, output: String) -> Self {
        let mut report = Self { status: status.code(), output, findings: Vec::new(), torn_copies: Vec::new() };
        for line in report.output.split(['\n', '\r']) {
            match classify(line) {
                LineKind::Quiet => {}
                LineKind::TornCopy => report.torn_copies.push(line.trim().to_owned()),
                LineKind::Finding => report.findings.push(line.trim().to_owned()),
            }
        }
        if report.status != Some(0) {
            report.findings.push(format!("fsck.f2fs ended with {status}"));
        }
        if !report.output.lines().any(|line| line.starts_with("Done: ")) {
            report.findings.push("fsck.f2fs did not reach its end (no `Done:` line)".to_owned());
        }
        report
    }
}

impl fmt::Display for FsckReport {
    /// The findings and torn copies, one a line; `clean` when there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return f.write_str("clean");
        }
        for line in &self.findings {
            writeln!(f, "finding: {line}")?;
        }
        for line in &self.torn_copies {
            writeln!(f, "torn copy: {line}")?;
        }
        Ok(())
    }
}

/// Runs `yes n | fsck.f2fs --dry-run PATH`, which leaves the volume unchanged, and judges its status and its lines.
///
/// # Errors
///
/// [`OracleError::MissingTool`], [`OracleError::Run`] and [`OracleError::TimedOut`]. Damage is not an error: it is in
/// the report.
pub fn fsck(path: impl AsRef<Path>) -> Result<FsckReport, OracleError> {
    let args = ["--dry-run".as_ref(), path.as_ref().as_os_str()];
    let finished = process::run("fsck.f2fs", PACKAGE, &args)?;
    Ok(FsckReport::judge(finished.status, finished.output))
}

/// Panics unless [`fsck`] finds the volume [clean](FsckReport::is_clean). For tests, after a clean close or a
/// checkpoint.
///
/// # Panics
///
/// With the findings and the whole output; or, when the tool is missing, with the package to install.
#[track_caller]
pub fn assert_clean(path: impl AsRef<Path>) {
    require(path.as_ref(), FsckReport::is_clean);
}

/// Panics unless [`fsck`] [accepts](FsckReport::is_accepted) the volume. For tests, after a crash.
///
/// # Panics
///
/// With the findings and the whole output; or, when the tool is missing, with the package to install.
#[track_caller]
pub fn assert_accepted(path: impl AsRef<Path>) {
    require(path.as_ref(), FsckReport::is_accepted);
}

#[track_caller]
fn require(path: &Path, good: fn(&FsckReport) -> bool) {
    match fsck(path) {
        Ok(report) => assert!(good(&report), "fsck.f2fs on {path:?}:\n{report}\nwhole output:\n{}", report.output),
        Err(error) => panic!("fsck.f2fs on {path:?} gave no verdict: {error}"),
    }
}
