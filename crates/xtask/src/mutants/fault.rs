//! A fault: one change of the sources.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// A place of the sources that can be done wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    /// What stands there, in bytes of its file. Before a function's body it is empty.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    /// The function that it is in, in bytes of its file.
    pub(super) function: Range<usize>,
    /// The ways to do it wrong.
    pub(super) wrongs: Vec<Wrong>,
}

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An expression with a value.
    Value,
    /// A statement, which may be left out.
    Statement,
    /// The beginning of a function's body, which may return at once.
    Entry,
}

/// One way to do something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// What is done instead.
    pub(super) text: String,
    /// How it is told to people: `replace + with - in nid_at`.
    pub(super) what: String,
    /// From 1 on.
    pub(super) line: usize,
}

/// The name of a fault in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    file: String,
    what: String,
    line: usize,
    /// Its number among the faults of its file with the same text, in the order of their places, from 1 on.
    ordinal: usize,
}

impl Fault {
    /// The faults of one file, in the order of their places.
    pub(super) fn of_file(file: &str, sites: &[Site]) -> Vec<Fault> {
        let mut all: Vec<Fault> = Vec::new();
        for wrong in sites.iter().flat_map(|site| &site.wrongs) {
            let same = all.iter().filter(|other| other.what == wrong.what).count();
            all.push(Fault { file: file.to_owned(), what: wrong.what.clone(), line: wrong.line, ordinal: same + 1 });
        }
        all
    }

    /// The name with its place.
    pub(super) fn name(&self) -> String {
        format!("{}:{}: {}", self.file, self.line, self.what)
    }

    /// The changed file, from the root of the tree.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The function that it is in, as its name says it.
    pub(super) fn function(&self) -> Option<&str> {
        self.what.rsplit_once(" in ").map(|(_, function)| function)
    }

    /// The crate's directory below `crates`.
    pub(super) fn package(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// The name without the line, which other changes of the file move: `crates/sync/src/stamp.rs: delete ! in
    /// Stamp::change`, with `#2` behind it for the second of that kind.
    pub(super) fn key(&self) -> String {
        match self.ordinal {
            1 => format!("{}: {}", self.file, self.what),
            more => format!("{}: {} #{more}", self.file, self.what),
        }
    }

    /// Its number when a sample is drawn: the smallest ones are in.
    pub(super) fn lot(&self, seed: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (seed, self.key()).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(line: usize, what: &str) -> Site {
        let wrong = Wrong { text: String::new(), what: what.to_owned(), line };
        Site { range: 0..0, kind: Kind::Statement, function: 0..0, wrongs: vec![wrong] }
    }

    #[test]
    fn names_have_places_and_keys_have_none() {
        let sites = [site(7, "replace + with - in f"), site(7, "replace + with - in f"), site(9, "delete ! in g")];
        let all = Fault::of_file("crates/nat/src/size.rs", &sites);
        assert_eq!(all[0].name(), "crates/nat/src/size.rs:7: replace + with - in f");
        assert_eq!((all[0].package(), all[0].file()), ("nat", "crates/nat/src/size.rs"));
        assert_eq!(all[0].key(), "crates/nat/src/size.rs: replace + with - in f");
        assert_eq!(all[0].function(), Some("f"));
        assert_eq!(all[1].key(), "crates/nat/src/size.rs: replace + with - in f #2");
        assert_eq!(all[2].key(), "crates/nat/src/size.rs: delete ! in g");
    }

    #[test]
    fn a_sample_depends_on_the_seed_and_not_on_lines() {
        let faults = |line| Fault::of_file("crates/a/src/b.rs", &[site(line, "x in f"), site(line + 1, "y in f")]);
        let lots = |faults: &[Fault], seed| faults.iter().map(|fault| fault.lot(seed)).collect::<Vec<_>>();
        assert_eq!(lots(&faults(1), 1), lots(&faults(70), 1));
        assert_ne!(lots(&faults(1), 1), lots(&faults(1), 2));
    }
}
