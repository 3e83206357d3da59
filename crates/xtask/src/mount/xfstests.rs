//! xfstests, the suite that the kernel's file systems are held to: its group `quick` of `tests/generic`.
//!
//! It is used where it is built (`--xfstests DIR`), and takes a mount for one of the type `fuse`. Each test runs by
//! itself, with a limit of time. Both volumes must be clean behind it. The tests that cannot apply run together: the
//! suite says of each that it does not run it.
//!
//! [`left_out`] lists all tests that are not run or that fail, with the reasons.

mod left_out;
mod place;
mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::Bench;
use super::volume::How;
use crate::{Result, process, tools};

use left_out::{FAIL, NOT_RUN, QUICK, TOO_LONG};
use place::Place;
use report::Verdict;

/// The ways of mounting.
const WAYS: [How; 3] =
    [How::plain("cache=through"), How::plain("cache=writeback"), How { options: "cache=writeback", page_cache: "64M" }];
/// How long one test may take.
const LIMIT: Duration = Duration::from_secs(300);
/// How long a test may take that is not run.
const LIMIT_NOT_RUN: Duration = Duration::from_secs(20);
/// The programs that the suite needs.
const PROGRAMS: &[&str] =
    &["setpriv", "unshare", "flock", "xfs_io", "mkfs.xfs", "getfattr", "getfacl", "bc", "gawk", "fio", "fsck.f2fs"];

pub(super) fn run(bench: &Bench, suite: &Path, quick: bool, only: &str) -> Result<()> {
    let suite = suite.canonicalize().with_context(|| format!("--xfstests {}", suite.display()))?;
    let group = suite.join("tests/generic/group.list");
    if !suite.join("check").is_file() || !group.is_file() || !suite.join("ltp/fsstress").is_file() {
        bail!("{}: no xfstests that is built; clone github.com/kdave/xfstests, and `make` there", suite.display());
    }
    tools::require(PROGRAMS)?;
    let mut tests = if quick { QUICK.to_vec() } else { in_group(&fs_err::read_to_string(&group)?, "quick") };
    tests.retain(|test| format!("generic/{test:03}").contains(only));
    ensure!(!tests.is_empty(), "{}: no test of the group `quick` has `{only}` in its name", group.display());
    let ways = if quick { &WAYS[..1] } else { &WAYS[..] };
    println!("xfstests of {}: {} tests", version(&suite)?, tests.len());
    let mut wrong = Vec::new();
    for how in ways {
        let begun = Instant::now();
        let place = Place::new(bench, &suite, *how)?;
        let through = how.options == WAYS[0].options;
        let started: Vec<u16> = tests.iter().copied().filter(|test| !through || !lists(TOO_LONG, *test)).collect();
        let verdicts = verdicts(&place, &started)?;
        let count = |wanted: fn(&Verdict) -> bool| verdicts.values().filter(|verdict| wanted(verdict)).count();
        println!(
            "xfstests, {how}: {} passed, {} not run, {} failed; {:.0} s",
            count(|verdict| *verdict == Verdict::Passed),
            count(|verdict| matches!(verdict, Verdict::NotRun(_))),
            count(|verdict| matches!(verdict, Verdict::Failed(_))),
            begun.elapsed().as_secs_f64()
        );
        let unexpected = unexpected(&verdicts, how);
        if unexpected.is_empty() {
            place.remove()?;
        } else {
            println!("what they said is kept in {}", place.results().display());
        }
        wrong.extend(unexpected);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The commit of the sources.
fn version(suite: &Path) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "-C"]).arg(suite).args(["log", "-1", "--format=%cs, commit %h"]);
    Ok(String::from_utf8_lossy(&process::output(&mut git)?).trim().to_owned())
}

/// The tests of a group, by a list of lines such as `001 auto quick rw`.
fn in_group(list: &str, group: &str) -> Vec<u16> {
    let lines = list.lines().filter(|line| line.split_whitespace().skip(1).any(|word| word == group));
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// Whether a list has a test.
fn lists(list: &[(&str, &[u16])], test: u16) -> bool {
    list.iter().any(|(_, tests)| tests.contains(&test))
}

/// Runs the tests; each gets a verdict.
fn verdicts(place: &Place<'_>, tests: &[u16]) -> Result<BTreeMap<u16, Verdict>> {
    let (together, alone): (Vec<u16>, Vec<u16>) = tests.iter().partition(|test| lists(NOT_RUN, **test));
    let mut verdicts = BTreeMap::new();
    if !together.is_empty() {
        let limit = LIMIT_NOT_RUN.saturating_mul(u32::try_from(together.len())?);
        verdicts = run_together(place, &together, limit)?;
    }
    for test in alone {
        let begun = Instant::now();
        let verdict = run_together(place, &[test], LIMIT)?.remove(&test).context("no verdict")?;
        let word = match &verdict {
            Verdict::Passed => "passed",
            Verdict::NotRun(_) => "not run",
            Verdict::Failed(_) => "failed",
        };
        eprintln!("generic/{test:03}: {word}, {:.0} s", begun.elapsed().as_secs_f64());
        verdicts.insert(test, verdict);
    }
    Ok(verdicts)
}

/// Runs tests in one go. Those of which nothing is said have failed, and so has the last one if a volume is not clean.
fn run_together(place: &Place<'_>, tests: &[u16], limit: Duration) -> Result<BTreeMap<u16, Verdict>> {
    let outcome = place.check(tests, limit)?;
    let mut verdicts = report::verdicts(&outcome.stdout);
    for test in tests {
        verdicts.entry(*test).or_insert_with(|| {
            Verdict::Failed(match outcome.timed_out {
                true => format!("has not ended after {} s", limit.as_secs()),
                false => format!("ended without a verdict: {}{}", outcome.stdout, outcome.stderr),
            })
        });
    }
    if !outcome.success && !outcome.timed_out {
        let why = format!("it cannot be unmounted behind it: {}", outcome.stderr);
        verdicts.extend(tests.last().map(|test| (*test, Verdict::Failed(why))));
    }
    if let Err(error) = place.clean() {
        verdicts.extend(tests.last().map(|test| (*test, Verdict::Failed(format!("{error:#}")))));
    }
    Ok(verdicts)
}

/// What is not as [`left_out`] says. A listed test that passes is told, and is no fault.
fn unexpected(verdicts: &BTreeMap<u16, Verdict>, how: &How) -> Vec<String> {
    let mut wrong = Vec::new();
    for (test, verdict) in verdicts {
        match verdict {
            Verdict::Passed if lists(NOT_RUN, *test) || lists(FAIL, *test) => {
                println!("generic/{test:03}, {how}: passes now, and is listed");
            }
            Verdict::NotRun(why) if !lists(NOT_RUN, *test) => {
                wrong.push(format!("generic/{test:03}, {how}: not run, and not listed: {why}"));
            }
            Verdict::Failed(why) if !lists(FAIL, *test) => {
                wrong.push(format!("generic/{test:03}, {how}: failed: {why}"));
            }
            _ => {}
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_words() {
        assert_eq!(in_group("# a list\n\n001 auto quick\n002 quickly\n010 quick rw\n", "quick"), [1, 10]);
    }

    #[test]
    fn a_test_is_listed_once() {
        let mut all: Vec<u16> = NOT_RUN.iter().chain(FAIL).flat_map(|(_, tests)| *tests).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(QUICK.iter().all(|test| !lists(NOT_RUN, *test) && !lists(FAIL, *test)));
    }

    #[test]
    fn what_is_not_listed_is_wrong() {
        let how = &WAYS[0];
        let of = |verdict: Verdict| unexpected(&BTreeMap::from([(1, verdict)]), how);
        assert!(of(Verdict::Passed).is_empty());
        assert!(of(Verdict::NotRun("x".into()))[0].contains("generic/001"));
        assert!(of(Verdict::Failed("x".into()))[0].contains("failed: x"));
    }
}
