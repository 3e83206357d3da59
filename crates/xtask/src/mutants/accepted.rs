//! Survivors that somebody has looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, bail};

use super::fault::Fault;
use crate::Result;

/// Where they stand.
pub(super) const FILE: &str = "docs/mutants-accepted.txt";

/// The survivors that no test has to notice, each with the reason. Lines without indentation name faults (without line
/// and column), the indented lines behind them say why; `any in NAME` in place of a change means all of a function.
/// Lines that begin with `#` are comments.
#[derive(Debug, Default)]
pub(super) struct Accepted(BTreeMap<String, String>);

impl Accepted {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or a survivor has no reason.
    pub(super) fn read(root: &Path) -> Result<Accepted> {
        let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
        Accepted::parse(&text)
    }

    fn parse(text: &str) -> Result<Accepted> {
        // Names, and the reason that they share.
        let mut entries: Vec<(Vec<&str>, String)> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let name = (!line.starts_with(' ')).then_some(line.trim());
            match (name, entries.last_mut()) {
                (Some(name), Some((names, reason))) if reason.is_empty() => names.push(name),
                (Some(name), _) => entries.push((vec![name], String::new())),
                (None, Some((_, reason))) => {
                    reason.push_str(if reason.is_empty() { "" } else { " " });
                    reason.push_str(line.trim());
                }
                (None, None) => bail!("{FILE}: a reason without a survivor: {}", line.trim()),
            }
        }
        if let Some((names, _)) = entries.iter().find(|(_, reason)| reason.is_empty()) {
            bail!("{FILE}: no reason is given for {}", names.join(", "));
        }
        let each = entries.iter().flat_map(|(names, reason)| names.iter().map(move |name| (*name, reason)));
        Ok(Accepted(each.map(|(name, reason)| (name.to_owned(), reason.clone())).collect()))
    }

    /// Why the mutant may survive, if somebody said so.
    pub(super) fn reason(&self, fault: &Fault) -> Option<&str> {
        let any = || self.0.get(&format!("{}: any in {}", fault.file(), fault.function()?));
        self.0.get(&fault.key()).or_else(any).map(String::as_str)
    }

    /// The names that are none of these faults': of changes that the sources no longer have.
    pub(super) fn unknown<'f>(&self, faults: impl Iterator<Item = &'f Fault>) -> Vec<&str> {
        let mut unknown: BTreeSet<&str> = self.0.keys().map(String::as_str).collect();
        for fault in faults {
            unknown.remove(fault.key().as_str());
            if let Some(function) = fault.function() {
                unknown.remove(format!("{}: any in {function}", fault.file()).as_str());
            }
        }
        unknown.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find::find;

    #[test]
    fn survivors_have_reasons() {
        let sites = find("fn f() -> T { !a } fn g() -> T { !b }").unwrap().sites;
        let faults = Fault::of_file("crates/a/src/b.rs", &sites);
        let text = "# comment\n\ncrates/a/src/b.rs: delete ! in f\n    It is the same,\n    only slower.\n";
        let accepted = Accepted::parse(text).unwrap();
        assert_eq!(accepted.reason(&faults[0]), Some("It is the same, only slower."));
        assert_eq!(accepted.reason(&faults[1]), None);
        assert!(Accepted::parse("crates/a/src/b.rs: delete ! in g\n").is_err());
        assert_eq!(accepted.unknown(faults.iter()), Vec::<&str>::new());
        assert!(Accepted::parse("    a reason\n").is_err());
    }

    #[test]
    fn several_share_a_reason_and_one_line_names_all_of_a_function() {
        let sites = find("fn f() -> T { !a } fn g() -> T { !b } fn h() -> T { !c }").unwrap().sites;
        let faults = Fault::of_file("crates/a/src/b.rs", &sites);
        let text = "crates/a/src/b.rs: delete ! in f\ncrates/a/src/b.rs: any in g\n    Both.\n\n\
            crates/a/src/b.rs: delete ! in i\n    Gone.\n";
        let accepted = Accepted::parse(text).unwrap();
        let reasons: Vec<_> = faults.iter().map(|fault| accepted.reason(fault)).collect();
        assert_eq!(reasons, [Some("Both."), Some("Both."), None]);
        assert_eq!(accepted.unknown(faults.iter()), ["crates/a/src/b.rs: delete ! in i"]);
    }
}
