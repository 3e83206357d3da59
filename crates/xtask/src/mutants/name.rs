//! The name of a mutant.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A change of the sources as cargo-mutants names it: `crates/sync/src/stamp.rs:48:12: delete ! in Stamp::change`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    name: String,
    file: String,
    what: String,
    line: usize,
    /// Its number among the mutants of its file with the same text, in the order of their places, from 1 on.
    ordinal: usize,
}

impl Mutant {
    /// The mutants of a list with one on each line; lines that name none are left out.
    pub(super) fn all(list: &str) -> Vec<Mutant> {
        let mut all: Vec<Mutant> = Vec::new();
        for line in list.lines() {
            let Some((file, number, what)) = parts(line) else { continue };
            let same = all.iter().filter(|other| (other.file.as_str(), other.what.as_str()) == (file, what)).count();
            all.push(Mutant {
                name: line.to_owned(),
                file: file.to_owned(),
                what: what.to_owned(),
                line: number,
                ordinal: same + 1,
            });
        }
        all
    }

    /// The whole name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The changed file, from the root of the tree.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The changed line, from 1 on.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The crate's directory below `crates`.
    pub(super) fn package(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// The name without line and column, which other changes of the file move: `crates/sync/src/stamp.rs: delete ! in
    /// Stamp::change`, with `#2` behind it for the second of that kind.
    pub(super) fn key(&self) -> String {
        match self.ordinal {
            1 => format!("{}: {}", self.file, self.what),
            more => format!("{}: {} #{more}", self.file, self.what),
        }
    }

    /// A regular expression that matches this name and no other.
    pub(super) fn pattern(&self) -> String {
        let mut pattern = String::from("^");
        for char in self.name.chars() {
            if !char.is_alphanumeric()
                && !matches!(char, ' ' | '_' | '/' | ':' | '<' | '>' | '"' | '\'' | ',' | '=' | '!')
            {
                pattern.push('\\');
            }
            pattern.push(char);
        }
        pattern.push('$');
        pattern
    }

    /// Its number when a sample is drawn: the smallest ones are in.
    pub(super) fn lot(&self, seed: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (seed, self.key()).hash(&mut hasher);
        hasher.finish()
    }
}

/// The file, the line, and the change.
fn parts(name: &str) -> Option<(&str, usize, &str)> {
    let (file, rest) = name.split_once(':')?;
    let (line, rest) = rest.split_once(':')?;
    let (column, what) = rest.split_once(": ")?;
    column.parse::<u32>().ok().filter(|_| file.ends_with(".rs"))?;
    Some((file, line.parse().ok()?, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
crates/sync/src/stamp.rs:48:12: delete ! in Stamp::change
warning: something else
crates/nat/src/size.rs:7:9: replace + with - in nid_at
crates/nat/src/size.rs:7:20: replace + with - in nid_at
";

    #[test]
    fn names_have_parts_and_keys_without_places() {
        let all = Mutant::all(LIST);
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].package(), all[0].file()), ("sync", "crates/sync/src/stamp.rs"));
        assert_eq!(all[0].line(), 48);
        assert_eq!(all[0].key(), "crates/sync/src/stamp.rs: delete ! in Stamp::change");
        assert_eq!(all[1].key(), "crates/nat/src/size.rs: replace + with - in nid_at");
        assert_eq!(all[2].key(), "crates/nat/src/size.rs: replace + with - in nid_at #2");
        assert_eq!(all[1].pattern(), r"^crates/nat/src/size\.rs:7:9: replace \+ with \- in nid_at$");
    }

    #[test]
    fn a_sample_depends_on_the_seed_and_not_on_lines() {
        let moved = Mutant::all(&LIST.replace(":7:", ":70:"));
        let all = Mutant::all(LIST);
        let lots = |mutants: &[Mutant], seed| mutants.iter().map(|mutant| mutant.lot(seed)).collect::<Vec<_>>();
        assert_eq!(lots(&all, 1), lots(&moved, 1));
        assert_ne!(lots(&all, 1), lots(&all, 2));
    }
}
