//! The tests of the tree without a fault.
//!
//! They have to pass, or every fault would be noticed. What each program of them takes is asked for two reasons. A fault
//! that makes the tests hang is noticed by time, and time must not run out because the tests are slow or the machine is
//! busy. And most faults are noticed by tests that take no second: these go first, in a pass of their own, and only
//! what survives them meets the others.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};

use super::{judges, tree::Tree};
use crate::{Result, process};

/// A program of tests is quick that takes so long at most.
const QUICK: Duration = Duration::from_secs(2);
/// So many times what the tests take without a fault they may take with one.
const PATIENCE: u32 = 4;
/// The longest time for building and running the tests once.
const MOST: Duration = Duration::from_secs(2 * 3600);

/// Some of the tests, and how long they may take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pass {
    /// What cargo is told to choose them: `--lib`, `--test NAME`.
    pub(super) chosen: Vec<String>,
    /// How long they took without a fault.
    pub(super) took: Duration,
}

impl Pass {
    /// Seconds that they may take with a fault, `least` or more.
    pub(super) fn limit(&self, least: u64) -> u64 {
        least.max((self.took * PATIENCE).as_secs())
    }
}

/// Runs the tests that judge the faults of a crate, without one, and divides them: quick ones, and the others if there
/// are any.
///
/// # Errors
///
/// If the tests fail or their times cannot be read.
pub(super) fn passes(tree: &Tree, package: &str) -> Result<Vec<Pass>> {
    let mut command = process::cargo(["test", "--lib", "--tests"]);
    for judge in judges(package) {
        command.args(["--package", &judge]);
    }
    tree.prepare(&mut command);
    let outcome = process::capture(&mut command, MOST)?;
    if !outcome.success {
        bail!("the tests of {package} fail without a fault:\n{}\n{}", outcome.stdout, outcome.stderr);
    }
    let times = times(&outcome.stderr, &outcome.stdout).context("cannot tell how long the tests took")?;
    let passes = divided(&times);
    let seconds: Vec<_> = passes.iter().map(|pass| format!("{:.0} s", pass.took.as_secs_f64())).collect();
    println!("{package}: without a fault its tests take {}, with building {:.0?}", seconds.join(" and "), outcome.took);
    Ok(passes)
}

/// What each program of tests took, by the name that chooses it (of all crates, so that equal names are one); `None` is
/// the unit tests. Cargo names the programs in one stream, and they tell their results in the other.
fn times(started: &str, results: &str) -> Option<BTreeMap<Option<String>, Duration>> {
    let names = started.lines().filter_map(|line| {
        let (what, program) = line.trim_start().strip_prefix("Running ")?.split_once(" (")?;
        let program = program.strip_suffix(')')?.rsplit('/').next()?;
        let name = program.rsplit_once('-').map_or(program, |(name, _)| name);
        Some((!what.starts_with("unittests ")).then(|| name.to_owned()))
    });
    let took = results.lines().filter_map(|line| {
        let seconds = line.strip_prefix("test result: ")?.rsplit_once("finished in ")?.1.strip_suffix('s')?;
        Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
    });
    let (names, took) = (names.collect::<Vec<_>>(), took.collect::<Vec<_>>());
    let mut times = BTreeMap::new();
    if names.is_empty() || names.len() != took.len() {
        return None;
    }
    for (name, took) in names.into_iter().zip(took) {
        *times.entry(name).or_insert(Duration::ZERO) += took;
    }
    Some(times)
}

/// The quick ones, and the others.
fn divided(times: &BTreeMap<Option<String>, Duration>) -> Vec<Pass> {
    let pass = |quick: bool| {
        let some = times.iter().filter(|(_, took)| (**took <= QUICK) == quick);
        let chosen = some.clone().flat_map(|(name, _)| match name {
            Some(name) => vec!["--test".to_owned(), name.clone()],
            None => vec!["--lib".to_owned()],
        });
        Pass { chosen: chosen.collect(), took: some.map(|(_, took)| *took).sum() }
    };
    [pass(true), pass(false)].into_iter().filter(|pass| !pass.chosen.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED: &str = "\
   Compiling f2fs-files v0.1.0 (/tree/crates/files)
     Running unittests src/lib.rs (/build/debug/deps/f2fs_files-0a1b)
     Running tests/smoke.rs (/build/debug/deps/smoke-0a1b)
     Running tests/full/main.rs (/build/debug/deps/full-0a1b)
";
    const RESULTS: &str = "
running 1 test
test tests::one ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.50s
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 40.00s
";

    #[test]
    fn quick_tests_go_first() {
        let passes = divided(&times(STARTED, RESULTS).unwrap());
        let pass = |chosen: &[&str], seconds| Pass {
            chosen: chosen.iter().map(|&word| word.to_owned()).collect(),
            took: Duration::from_secs(seconds),
        };
        assert_eq!(passes, [pass(&["--lib", "--test", "smoke"], 2), pass(&["--test", "full"], 40)]);
    }

    #[test]
    fn slow_tests_have_more_time() {
        let passes = divided(&times(STARTED, RESULTS).unwrap());
        assert_eq!(passes.iter().map(|pass| pass.limit(60)).collect::<Vec<_>>(), [60, 160]);
    }

    #[test]
    fn a_result_that_is_missing_is_seen() {
        assert_eq!(times(STARTED, &RESULTS.replace("finished in 1.50s", "")), None);
        assert_eq!(times("", ""), None);
    }
}
