//! What `check` of xfstests says of tests.

use std::collections::BTreeMap;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// The suite did not run it, for this reason.
    NotRun(String),
    /// It failed; what was said of it.
    Failed(String),
}

/// The numbers behind `generic/` of the tests in a line such as `Failures: generic/003 generic/020`.
fn numbers(said: &str, word: &str) -> Vec<u16> {
    let lines = said.lines().filter_map(|line| line.strip_prefix(word));
    lines.flat_map(str::split_whitespace).filter_map(number).collect()
}

fn number(word: &str) -> Option<u16> {
    word.strip_prefix("generic/")?.parse().ok()
}

/// The verdicts that `check` has printed. A test of which it says nothing is not among them.
pub(super) fn verdicts(said: &str) -> BTreeMap<u16, Verdict> {
    let mut found: BTreeMap<u16, Verdict> = numbers(said, "Ran:").into_iter().map(|n| (n, Verdict::Passed)).collect();
    for n in numbers(said, "Not run:") {
        found.insert(n, Verdict::NotRun(about(said, n, "[not run]")));
    }
    for n in numbers(said, "Failures:") {
        found.insert(n, Verdict::Failed(about(said, n, " ")));
    }
    found
}

/// What stands behind `mark` in the line of a test, and in the indented lines that follow.
fn about(said: &str, test: u16, mark: &str) -> String {
    let is_its = |line: &&str| line.split_whitespace().next().and_then(number) == Some(test);
    let mut lines = said.lines().skip_while(|line| !is_its(line));
    let first = lines.next().and_then(|line| line.split_once(mark)).map_or("", |(_, behind)| behind.trim());
    let more = lines.take_while(|line| line.starts_with("    ")).map(str::trim);
    std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
FSTYP         -- fuse

generic/001         22s
generic/003        [failed, exit status 1]- output mismatch (see 003.out.bad)
    --- tests/generic/003.out
    +cycle mount failed
generic/009        [not run] no fiemap
Ran: generic/001 generic/003 generic/009
Not run: generic/009
Failures: generic/003
Failed 1 of 3 tests
";

    #[test]
    fn each_test_has_its_verdict() {
        let found = verdicts(SAID);
        assert_eq!(found.len(), 3);
        assert_eq!(found[&1], Verdict::Passed);
        assert_eq!(found[&9], Verdict::NotRun("no fiemap".into()));
        let Verdict::Failed(why) = &found[&3] else { panic!("{:?}", found[&3]) };
        assert!(why.contains("exit status 1") && why.ends_with("+cycle mount failed"), "{why}");
        assert!(verdicts("").is_empty());
    }
}
