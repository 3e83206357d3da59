//! The outcomes of mutants, kept between runs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::name::Mutant;
use crate::Result;

/// The outcome of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test failed.
    Caught,
    /// The tests did not end in time.
    Timeout,
    /// It does not compile.
    Unviable,
    /// No test noticed it.
    Missed,
}

impl Outcome {
    const ALL: [Outcome; 4] = [Outcome::Caught, Outcome::Timeout, Outcome::Unviable, Outcome::Missed];

    /// The name, which is that of cargo-mutants' list too.
    fn name(self) -> &'static str {
        match self {
            Outcome::Caught => "caught",
            Outcome::Timeout => "timeout",
            Outcome::Unviable => "unviable",
            Outcome::Missed => "missed",
        }
    }

    fn named(name: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Finds the mutants in the lists that cargo-mutants left in a directory.
    ///
    /// # Errors
    ///
    /// If a list is there and cannot be read.
    pub(super) fn of_each<'a>(lists: &Path, batch: &[&'a Mutant]) -> Result<Vec<(&'a Mutant, Outcome)>> {
        let mut found = Vec::new();
        for outcome in Outcome::ALL {
            let list = lists.join(outcome.name()).with_extension("txt");
            if !list.exists() {
                continue;
            }
            let text = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
            for line in text.lines() {
                found.extend(batch.iter().find(|mutant| mutant.name() == line).map(|mutant| (*mutant, outcome)));
            }
        }
        Ok(found)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The results so far, in a file with one on each line: outcome, a number of the source file's content, the mutant's
/// key. One that was found in another content of the file does not count.
#[derive(Debug)]
pub(super) struct Results {
    path: PathBuf,
    tree: PathBuf,
    known: BTreeMap<String, (Outcome, u64)>,
}

impl Results {
    /// Reads the results. Lines that are none are left out.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read.
    pub(super) fn open(path: &Path, tree: &Path) -> Result<Results> {
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
        Ok(Results { path: path.to_owned(), tree: tree.to_owned(), known })
    }

    /// The outcome of the mutant, if it was tried since its file last changed.
    pub(super) fn get(&self, mutant: &Mutant) -> Option<Outcome> {
        let (outcome, content) = self.known.get(&mutant.key())?;
        (*content == self.content(mutant)).then_some(*outcome)
    }

    /// Forgets these mutants, for this run.
    pub(super) fn forget(&mut self, mutants: &[Mutant]) {
        for mutant in mutants {
            self.known.remove(&mutant.key());
        }
    }

    /// Keeps a result.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn add(&mut self, mutant: &Mutant, outcome: Outcome) -> Result<()> {
        let content = self.content(mutant);
        let line = format!("{outcome}\t{content}\t{}\n", mutant.key());
        let append = || OpenOptions::new().create(true).append(true).open(&self.path)?.write_all(line.as_bytes());
        append().with_context(|| format!("cannot write {}", self.path.display()))?;
        self.known.insert(mutant.key(), (outcome, content));
        Ok(())
    }

    /// A number of the content of the mutant's file; of one that cannot be read, that of no content.
    fn content(&self, mutant: &Mutant) -> u64 {
        let mut hasher = DefaultHasher::new();
        fs::read(self.tree.join(mutant.file())).unwrap_or_default().hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_last_until_the_file_changes() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("crates/a/src")).unwrap();
        let source = tree.path().join("crates/a/src/b.rs");
        fs::write(&source, "one").unwrap();
        let mutants = Mutant::all("crates/a/src/b.rs:1:2: x in f\ncrates/a/src/b.rs:1:4: x in f");
        let path = tree.path().join("results");
        let mut results = Results::open(&path, tree.path()).unwrap();
        results.add(&mutants[0], Outcome::Missed).unwrap();
        results.add(&mutants[1], Outcome::Caught).unwrap();
        results.add(&mutants[0], Outcome::Timeout).unwrap();
        let mut again = Results::open(&path, tree.path()).unwrap();
        assert_eq!((again.get(&mutants[0]), again.get(&mutants[1])), (Some(Outcome::Timeout), Some(Outcome::Caught)));
        again.forget(&mutants[..1]);
        assert_eq!((again.get(&mutants[0]), again.get(&mutants[1])), (None, Some(Outcome::Caught)));
        fs::write(&source, "two").unwrap();
        assert_eq!(again.get(&mutants[1]), None);
    }

    #[test]
    fn lists_are_read_by_name() {
        let lists = tempfile::tempdir().unwrap();
        let text = "crates/a/src/b.rs:1:2: x in f\ncrates/a/src/b.rs:1:4: y in f\ncrates/a/src/b.rs:9:4: z in f";
        let mutants = Mutant::all(text);
        fs::write(lists.path().join("missed.txt"), format!("{}\n", mutants[1].name())).unwrap();
        fs::write(lists.path().join("caught.txt"), format!("{}\n", mutants[0].name())).unwrap();
        let batch: Vec<&Mutant> = mutants.iter().collect();
        let found = Outcome::of_each(lists.path(), &batch).unwrap();
        assert_eq!(found, [(&mutants[0], Outcome::Caught), (&mutants[1], Outcome::Missed)]);
    }
}
