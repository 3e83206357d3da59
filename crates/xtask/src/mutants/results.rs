//! The outcomes of faults, kept between runs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::fault::Fault;
use crate::Result;

/// The outcome of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end in time.
    Timeout,
    /// It does not compile.
    Unviable,
    /// No test reaches its place.
    Unreached,
    /// All tests that reach it passed.
    Missed,
    /// The tests that there was time for passed.
    Alive,
}

impl Outcome {
    const ALL: [Outcome; 6] =
        [Outcome::Caught, Outcome::Timeout, Outcome::Unviable, Outcome::Unreached, Outcome::Missed, Outcome::Alive];

    fn name(self) -> &'static str {
        match self {
            Outcome::Caught => "caught",
            Outcome::Timeout => "timeout",
            Outcome::Unviable => "unviable",
            Outcome::Unreached => "unreached",
            Outcome::Missed => "missed",
            Outcome::Alive => "alive",
        }
    }

    fn named(name: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether no test noticed the fault.
    pub(super) fn survived(self) -> bool {
        matches!(self, Outcome::Unreached | Outcome::Missed | Outcome::Alive)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The results so far, in a file with one on each line: outcome, a number of the source file's content, the fault's
/// key. One that was found in another content of the file, its tests aside, does not count.
#[derive(Debug)]
pub(super) struct Results {
    path: PathBuf,
    known: BTreeMap<String, (Outcome, u64)>,
    /// A number of the content that each file had at the beginning.
    contents: BTreeMap<String, u64>,
}

impl Results {
    /// Reads the results, and the files of these faults. Lines that are none are left out.
    ///
    /// # Errors
    ///
    /// If a file is there and cannot be read.
    pub(super) fn open(path: &Path, root: &Path, faults: &[Fault]) -> Result<Results> {
        let mut contents = BTreeMap::new();
        for file in faults.iter().map(Fault::file) {
            if !contents.contains_key(file) {
                let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
                let mut hasher = DefaultHasher::new();
                without_tests(&text).hash(&mut hasher);
                contents.insert(file.to_owned(), hasher.finish());
            }
        }
        let mut known = BTreeMap::new();
        if path.exists() {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            for line in text.lines() {
                let mut fields = line.splitn(3, '\t');
                let (outcome, content, key) = (fields.next(), fields.next(), fields.next());
                if let (Some(outcome), Some(Ok(content)), Some(key)) =
                    (outcome.and_then(Outcome::named), content.map(str::parse), key)
                {
                    known.insert(key.to_owned(), (outcome, content));
                }
            }
        }
        Ok(Results { path: path.to_owned(), known, contents })
    }

    /// The outcome of the fault, if it was tried since its file last changed.
    pub(super) fn get(&self, fault: &Fault) -> Option<Outcome> {
        let (outcome, then) = self.known.get(&fault.key())?;
        (*then == self.content(fault)).then_some(*outcome)
    }

    /// Forgets a result, for this run.
    pub(super) fn forget(&mut self, fault: &Fault) {
        self.known.remove(&fault.key());
    }

    /// Keeps a result.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn add(&mut self, fault: &Fault, outcome: Outcome) -> Result<()> {
        self.write(fault, outcome)?;
        self.know(fault, outcome);
        Ok(())
    }

    /// Keeps a result for later runs. Several threads may do so.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn write(&self, fault: &Fault, outcome: Outcome) -> Result<()> {
        let line = format!("{outcome}\t{}\t{}\n", self.content(fault), fault.key());
        let append = || OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(line.as_bytes());
        append().with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Takes a result into account that is kept.
    pub(super) fn know(&mut self, fault: &Fault, outcome: Outcome) {
        self.known.insert(fault.key(), (outcome, self.content(fault)));
    }

    fn content(&self, fault: &Fault) -> u64 {
        self.contents.get(fault.file()).copied().unwrap_or_default()
    }
}

/// The lines of a source file that are none of the modules of its tests, nor empty.
fn without_tests(text: &str) -> Vec<&str> {
    let mut lines = text.lines().filter(|line| !line.is_empty()).peekable();
    let mut product = Vec::new();
    while let Some(line) = lines.next() {
        if !(line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test, ")) {
            product.push(line);
            continue;
        }
        let mut attributes = vec![line];
        while let Some(more) = lines.next_if(|line| line.starts_with("#[")) {
            attributes.push(more);
        }
        match lines.next_if(|line| line.starts_with("mod ") || line.starts_with("pub(crate) mod ")) {
            Some(module) if module.ends_with('{') => while lines.next().is_some_and(|line| line != "}") {},
            Some(_) => {}
            None => product.extend(attributes),
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::find::find;

    #[test]
    fn tests_are_no_content() {
        let plain = "fn f() {}\n";
        let inline = "fn f() {}\n\n#[cfg(test)]\n#[allow(x)] // why\nmod tests {\n    fn a() {\n    }\n}\n";
        let aside = "fn f() {}\n\n#[cfg(all(test, not(loom)))]\nmod tests;\n";
        for text in [plain, inline, aside] {
            assert_eq!(without_tests(text), ["fn f() {}"]);
        }
        let behind = format!("{inline}#[cfg(test)]\nfn g() {{}}\n");
        assert_eq!(without_tests(&behind), ["fn f() {}", "#[cfg(test)]", "fn g() {}"]);
    }

    #[test]
    fn results_last_until_the_file_changes() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("crates/a/src")).unwrap();
        let source = root.path().join("crates/a/src/b.rs");
        fs::write(&source, "fn f() { a(); a(); }").unwrap();
        let sites = find(&fs::read_to_string(&source).unwrap()).unwrap().sites;
        let faults = Fault::of_file("crates/a/src/b.rs", &sites);
        let path = root.path().join("results");
        let mut results = Results::open(&path, root.path(), &faults).unwrap();
        results.add(&faults[1], Outcome::Missed).unwrap();
        results.add(&faults[2], Outcome::Caught).unwrap();
        results.add(&faults[1], Outcome::Timeout).unwrap();
        let mut again = Results::open(&path, root.path(), &faults).unwrap();
        assert_eq!((again.get(&faults[1]), again.get(&faults[2])), (Some(Outcome::Timeout), Some(Outcome::Caught)));
        again.forget(&faults[1]);
        assert_eq!((again.get(&faults[1]), again.get(&faults[2])), (None, Some(Outcome::Caught)));
        fs::write(&source, "fn f() { a(); a(); } ").unwrap();
        assert_eq!(Results::open(&path, root.path(), &faults).unwrap().get(&faults[2]), None);
    }
}
