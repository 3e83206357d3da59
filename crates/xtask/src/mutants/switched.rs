//! Faults that are switched by name are no code of the product.
//!
//! No test of a crate turns on the fault at a point of a protocol (`protocol_step!`, `protocol_value!`,
//! `protocol_never!`), and the product has none of them: a change there says nothing of the tests.

use std::collections::BTreeSet;

/// The numbers, from 1 on, of the lines of all points of protocols.
pub(super) fn lines(source: &str) -> BTreeSet<usize> {
    let mut switched = BTreeSet::new();
    // The indentation of the point that goes on.
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
        if ["protocol_step!(", "protocol_value!(", "protocol_never!("].iter().any(|point| line.contains(point)) {
            switched.insert(number);
            let code = line.trim_start();
            // A condition of the product may end with an opening bracket, too: its block is the product's.
            if line.ends_with('(') || (line.ends_with('{') && code.starts_with("protocol_")) {
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
    fn points_and_their_blocks_are_switched() {
        let source = "\
fn f() {
    protocol_never!(\"one\", {
        a += 1;

        b();
    });
    if protocol_value!(\"two\", x == 1, true) {
        c += 1;
    }
    let d = protocol_value!(
        \"three\",
        1,
        2
    );
    d + 1
}
";
        assert_eq!(lines(source).into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 7, 10, 11, 12, 13]);
    }
}
