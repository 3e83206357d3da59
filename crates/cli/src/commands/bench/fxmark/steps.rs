//! The measurements one after the other, those among them whose result is thrown away, and the progress bar.

use std::sync::atomic::{AtomicBool, Ordering};

use f2fs_workload::fxmark::{Measured, Observer, Setting};
use indicatif::ProgressBar;

use crate::progress;

/// A measurement.
pub(super) struct Step<'s> {
    pub(super) setting: &'s Setting,
    /// Its result is thrown away.
    pub(super) warms_up: bool,
}

/// The measurements, with the first one of each workload and number of threads twice: the first time it is that one alone
/// that has the kernel fetch memory for so many threads, which the others find in the process.
pub(super) fn steps(settings: &[Setting]) -> impl Iterator<Item = Step<'_>> {
    let mut before = None;
    settings.iter().flat_map(move |setting| {
        let begins = before.replace((setting.workload, setting.threads)) != Some((setting.workload, setting.threads));
        let warm_up = begins.then_some(Step { setting, warms_up: true });
        warm_up.into_iter().chain([Step { setting, warms_up: false }])
    })
}

/// The progress bar, over files made before and operations done in the measurements.
pub(super) struct Watch {
    bar: ProgressBar,
    /// The result of this measurement is thrown away.
    warming: AtomicBool,
}

impl Watch {
    pub(super) fn new(steps: &[Step<'_>]) -> Watch {
        let steps = steps.iter().map(|step| step.setting.prepared_files() + step.setting.files).sum();
        Watch { bar: progress::bar("", Some(steps)), warming: AtomicBool::new(false) }
    }

    /// Whether the next result is thrown away.
    pub(super) fn warms_up(&self, warms_up: bool) {
        self.warming.store(warms_up, Ordering::Relaxed);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Watch {
    fn begin(&self, setting: &Setting, _files: u64) {
        let warming = if self.warming.load(Ordering::Relaxed) { "warm-up: " } else { "" };
        let Setting { workload, policy, threads, .. } = setting;
        self.bar.set_message(format!("{warming}{workload} {policy} {threads} threads"));
    }

    fn advance(&self, files: u64) {
        self.bar.inc(files);
    }

    fn end(&self, measured: &Measured) {
        self.bar.inc(measured.operations);
    }
}

#[cfg(test)]
mod tests {
    use f2fs_workload::fxmark::Workload;

    use super::*;

    #[test]
    fn each_number_of_threads_and_workload_is_warmed_up_for() {
        let with = |workload, threads| Setting { threads, ..Setting::new(workload) };
        let (create, unlink) = (Workload::Mwcl, Workload::Mwul);
        let settings = [with(create, 1), with(create, 1), with(create, 2), with(unlink, 2)];
        let found: Vec<bool> = steps(&settings).map(|step| step.warms_up).collect();
        assert_eq!(found, [true, false, false, true, false, true, false]);
    }
}
