//! Runs tables of mutants: each must be found here as the right kind, and what fsck.f2fs says of it is on record.

use std::fmt::Write;
use std::sync::Mutex;

use super::image::Image;
use crate::check::{FindingKind, Severity};

/// What `fsck.f2fs --dry-run` says of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fsck {
    /// It finds it, or dies of it.
    Finds,
    /// It accepts the volume.
    Blind,
}

/// One thing that is wrong with a volume.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// One of these kinds must be found.
    pub(super) kind: FindingKind,
    pub(super) fsck: Fsck,
    pub(super) change: fn(&Image),
}

/// Short form of a [`Case`].
pub(super) fn case(name: &'static str, kind: FindingKind, fsck: Fsck, change: fn(&Image)) -> Case {
    Case { name, kind, fsck, change }
}

/// Runs all cases on copies of `image`, and fails with a table of those that went otherwise.
pub(super) fn run(image: &Image, cases: &[Case]) {
    let next = Mutex::new(cases.iter());
    let wrong = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = { next.lock().unwrap().next() } {
                    if let Err(text) = run_one(image, case) {
                        writeln!(wrong.lock().unwrap(), "== {}\n{text}", case.name).unwrap();
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong}");
}

fn run_one(image: &Image, case: &Case) -> Result<(), String> {
    let mutant = image.copy();
    (case.change)(&mutant);
    let report = mutant.check();
    let fsck = mutant.fsck();
    let verdict = if fsck.is_accepted() { Fsck::Blind } else { Fsck::Finds };
    let harmless = case.kind.severity() == Severity::Torn;
    if report.has(case.kind) && verdict == case.fsck && report.is_consistent() == harmless {
        return Ok(());
    }
    Err(format!("expected {:?} and {:?}, fsck.f2fs {verdict:?}\n{report}fsck.f2fs: {fsck}", case.kind, case.fsck))
}
