//! Faults that are switched by name are no code of the product.
//!
//! `if mutant("name") { ... }` is never true in what ships, and no test of a crate turns it on: a change in there, or of such a
//! condition, says nothing of the tests.

use std::collections::BTreeSet;

/// The numbers, from 1 on, of the lines that ask for a fault by name, and of those that only such a fault runs.
pub(super) fn lines(source: &str) -> BTreeSet<usize> {
    let mut switched = BTreeSet::new();
    // The indentation of the innermost condition that is never true, whose block goes on.
    let mut within: Option<usize> = None;
    for (number, line) in (1..).zip(source.lines()) {
        let indentation = line.len() - line.trim_start().len();
        if let Some(outer) = within {
            if indentation > outer || line.trim().is_empty() {
                switched.insert(number);
                continue;
            }
            within = None;
        }
        if ["mutant(\"", "protocol_step!(", "protocol_value!("].iter().any(|point| line.contains(point)) {
            switched.insert(number);
            if line.trim_start().starts_with("if mutant(\"") && line.ends_with('{') && !line.contains(" || ") {
                within = Some(indentation);
            }
        }
    }
    switched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_their_blocks_are_switched() {
        let source = "\
fn f() {
    if mutant(\"one\") {
        a += 1;

        b();
    }
    if !mutant(\"two\") {
        c += 1;
    }
    let d = if mutant(\"three\") { 1 } else { 2 };
}
";
        assert_eq!(lines(source).into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 7, 10]);
    }
}
