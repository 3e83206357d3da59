//! Survivors that somebody has looked at.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

use super::fault::Fault;
use crate::Result;

/// Where they stand.
pub(super) const FILE: &str = "docs/mutants-accepted.txt";

/// The survivors that no test has to notice, each with the reason. A line without indentation names one (without line
/// and column), the indented lines behind it say why. Lines that begin with `#` are comments.
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
        let mut accepted: BTreeMap<String, String> = BTreeMap::new();
        let mut last = None;
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            if !line.starts_with(' ') {
                accepted.insert(line.trim().to_owned(), String::new());
                last = Some(line.trim());
                continue;
            }
            let Some(reason) = last.and_then(|key| accepted.get_mut(key)) else {
                bail!("{FILE}: a reason without a survivor: {}", line.trim());
            };
            let space = if reason.is_empty() { "" } else { " " };
            reason.push_str(space);
            reason.push_str(line.trim());
        }
        if let Some((key, _)) = accepted.iter().find(|(_, reason)| reason.is_empty()) {
            bail!("{FILE}: no reason is given for {key}");
        }
        Ok(Accepted(accepted))
    }

    /// Why the mutant may survive, if somebody said so.
    pub(super) fn reason(&self, fault: &Fault) -> Option<&str> {
        self.0.get(&fault.key()).map(String::as_str)
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
        assert!(Accepted::parse("    a reason\n").is_err());
    }
}
