//! Mutants: one-line faults that a model must find.
//!
//! A model that passes proves little until it is seen to fail. Each model therefore has a mutant: the line of
//! production code that the model is about, left out or spoilt when [`mutant`] says so. In production [`mutant`] is the
//! constant `false` and the compiler removes the test; in the halves for models it compares with the environment
//! variable `F2FS_MUTANT`, so one build serves all mutants. So it does with the feature `mutants`, for tests that are
//! no models (`f2fs-trials`); nothing that ships turns it on.
//!
//! A protocol names its steps with [`protocol_step!`](crate::protocol_step), the values, conditions and orderings that
//! it depends on with [`protocol_value!`](crate::protocol_value), and actions that it must not take with
//! [`protocol_never!`](crate::protocol_never). The name is that of the promise, or of the fault that the mutant makes.
//!
//! ```
//! use f2fs_sync::atomic::{Ordering::SeqCst, fence};
//! use f2fs_sync::protocol_step;
//!
//! // Without the fence, neither side of the pair need see the other's store.
//! protocol_step!("gate_enter_fence", fence(SeqCst));
//! ```

/// Runs a step of a protocol. The mutant of this name leaves the step out; in production the step always runs, and the
/// macro costs nothing.
#[macro_export]
macro_rules! protocol_step {
    ($name:literal, $step:expr) => {
        if !$crate::mutant($name) {
            $step;
        }
    };
}

/// A value or memory ordering that a protocol depends on: `$right`. The mutant of this name takes `$wrong` instead; in
/// production `$wrong` is never evaluated, and the macro costs nothing.
#[macro_export]
macro_rules! protocol_value {
    ($name:literal, $right:expr, $wrong:expr) => {
        if $crate::mutant($name) { $wrong } else { $right }
    };
}

/// An action that a protocol never takes here: `$fault`, a step too early, one too many, or a way out. The mutant of
/// this name takes it; in production it is never evaluated, and the macro costs nothing.
#[macro_export]
macro_rules! protocol_never {
    ($name:literal, $fault:expr) => {
        if $crate::mutant($name) {
            $fault;
        }
    };
}

/// Whether the named fault is to be committed: never, in production.
#[cfg(not(any(loom, shuttle, f2fs_manycore, feature = "mutants")))]
#[inline(always)]
#[must_use]
pub const fn mutant(_name: &str) -> bool {
    false
}

/// Whether the named fault is to be committed: if `F2FS_MUTANT` names it.
#[cfg(any(loom, shuttle, f2fs_manycore, feature = "mutants"))]
#[must_use]
pub fn mutant(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("F2FS_MUTANT").ok()).as_deref() == Some(name)
}

/// Runs of a test in which a fault has to show itself once: threads may come by each other without it, more so on a
/// busy machine.
#[cfg(any(f2fs_manycore, feature = "mutants"))]
const RUNS: usize = 5;

/// Runs a test of this test program for each mutant, in a process of its own, and panics unless it fails for each
/// of them, in one of five runs at least.
///
/// `test` is the full name of the test, `sign` what its failure prints: a test that fails for another reason proves
/// nothing.
#[cfg(any(f2fs_manycore, feature = "mutants"))]
#[allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)] // a part of tests
pub fn assert_found(test: &str, mutants: &[&str], sign: &str) {
    let mut survivors = Vec::new();
    for mutant in mutants {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env("F2FS_MUTANT", mutant);
        let said = (0..RUNS).find_map(|_| {
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().find(|line| !output.status.success() && line.contains(sign)).map(str::to_owned)
        });
        std::println!("{mutant}: {}", said.as_deref().unwrap_or("NOT FOUND"));
        if said.is_none() {
            survivors.push(*mutant);
        }
    }
    assert!(survivors.is_empty(), "not found by {test}: {survivors:?}");
}
