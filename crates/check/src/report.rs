//! The outcome of a check, and the collector that its threads share.
//!
//! # Locking rules
//!
//! One mutex around the list. It is taken for one finding at a time, and no other lock is taken while it is held.
//! Findings are rare; where they are not, [`MAX_PER_KIND`] stops the list from growing and counting is all that goes
//! on.

use std::collections::BTreeMap;
use std::fmt;

use f2fs_sync::Mutex;

use super::finding::{Finding, FindingKind, Place, Problem, Severity};

/// Findings of one kind that are kept; more are only counted, so that no image can fill the memory.
pub const MAX_PER_KIND: usize = 1000;

/// The counts of a check. All but the free segments count what can be reached from the root and the orphans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Blocks in use, reserved ones included.
    pub blocks: u64,
    /// Blocks that are reserved but have no place yet (`NEW_ADDR`).
    pub reserved_blocks: u64,
    /// Nodes in use.
    pub nodes: u64,
    /// Inodes in use.
    pub inodes: u64,
    /// Directories among them.
    pub directories: u64,
    /// Orphans among them.
    pub orphans: u64,
    /// Segments without a valid block that are no log's.
    pub free_segments: u64,
    /// Blocks read by the check.
    pub blocks_read: u64,
}

/// The outcome of a check that could be made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// The findings, ordered by kind and place; at most [`MAX_PER_KIND`] of each kind.
    pub findings: Vec<Finding>,
    /// Findings beyond those that are kept.
    pub suppressed: u64,
    /// The counts.
    pub counts: Counts,
    /// Whether every structure was looked at. When the checkpoint itself is unusable there is nothing behind it to
    /// judge.
    pub complete: bool,
}

impl CheckReport {
    /// Whether nothing at all was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether nothing worse was found than a torn copy: what a crash may leave.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity() == Severity::Torn)
    }

    /// Whether something was found that a repair puts right; [quotas](FindingKind::Quotas) it leaves to `fsck.f2fs`.
    #[must_use]
    pub fn needs_repair(&self) -> bool {
        self.findings.iter().any(|finding| finding.kind != FindingKind::Quotas)
    }

    /// Whether something of this kind was found.
    #[must_use]
    pub fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        if self.suppressed > 0 {
            writeln!(f, "and {} more", self.suppressed)?;
        }
        Ok(())
    }
}

/// The place where the threads of a check put their findings.
#[derive(Debug, Default)]
pub(super) struct Collector {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    findings: Vec<Finding>,
    /// Findings kept, by kind.
    kept: BTreeMap<FindingKind, usize>,
    suppressed: u64,
}

impl Collector {
    pub(super) fn add(&self, kind: FindingKind, place: Place, problem: Problem) {
        let mut state = self.state.lock();
        let count = state.kept.entry(kind).or_default();
        if *count == MAX_PER_KIND {
            state.suppressed += 1;
            return;
        }
        *count += 1;
        state.findings.push(Finding { kind, place, problem });
    }

    /// Adds a mismatch if the two numbers differ.
    pub(super) fn expect(&self, kind: FindingKind, place: &Place, what: &'static str, expected: u64, found: u64) {
        if expected != found {
            self.add(kind, place.clone(), Problem::Mismatch { what, expected, found });
        }
    }

    /// Adds a fault if `ok` is false.
    pub(super) fn require(&self, ok: bool, kind: FindingKind, place: &Place, what: &'static str, found: u64) {
        if !ok {
            self.add(kind, place.clone(), Problem::Fault { what, found });
        }
    }

    /// The report so far, in order.
    pub(super) fn report(&self, counts: Counts, complete: bool) -> CheckReport {
        let mut state = std::mem::take(&mut *self.state.lock());
        state.findings.sort_by_cached_key(|finding| (finding.kind, finding.place.clone(), finding.problem.to_string()));
        CheckReport { findings: state.findings, suppressed: state.suppressed, counts, complete }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_ordered_and_bounded() {
        let collector = Collector::default();
        for nid in (0..MAX_PER_KIND as u32 + 5).rev() {
            collector.expect(FindingKind::Links, &Place::Nid(f2fs_format::Nid(nid)), "i_links", 1, 2);
        }
        collector.require(false, FindingKind::TornPack, &Place::Pack(1), "version", 7);
        collector.require(true, FindingKind::Dots, &Place::Volume, "nothing", 0);
        let report = collector.report(Counts::default(), true);
        assert_eq!((report.findings.len(), report.suppressed), (MAX_PER_KIND + 1, 5));
        assert_eq!(report.findings[0].kind, FindingKind::TornPack);
        assert!(report.findings[1].place < report.findings[2].place);
        assert!(!report.is_clean() && !report.is_consistent() && report.has(FindingKind::Links));
        assert!(report.to_string().ends_with("and 5 more\n"));
    }
}
