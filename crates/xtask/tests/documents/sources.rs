//! Sources as text: where a function is, and what it calls.

use std::fs;

use crate::text::root;

/// A source file by its short name, `CRATE/PATH`, which stands for `crates/CRATE/src/PATH`.
pub(crate) fn source(short: &str) -> Option<String> {
    let (krate, path) = short.split_once('/')?;
    fs::read_to_string(root().join("crates").join(krate).join("src").join(path)).ok()
}

/// Places in `text` where `word` stands by itself.
fn places<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !text[..*at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// Whether `word` stands somewhere in `text` by itself.
pub(crate) fn mentions(text: &str, word: &str) -> bool {
    places(text, word).next().is_some()
}

/// The bodies of all functions with this name; empty ones for those that a trait only declares.
pub(crate) fn bodies<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let starts: Vec<usize> =
        places(text, name).filter(|at| text[..*at].trim_end().ends_with("fn") && !in_comment(text, *at)).collect();
    starts.into_iter().map(|at| body(&text[at..])).collect()
}

fn in_comment(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    text[line..at].trim_start().starts_with("//")
}

/// From the first brace to the one that closes it.
fn body(text: &str) -> &str {
    let Some(open) = text.find(['{', ';']).filter(|at| text[*at..].starts_with('{')) else { return "" };
    let mut depth = 0;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return &text[open..=open + at];
        }
    }
    &text[open..]
}

#[test]
fn functions_are_found_in_a_source() {
    let text =
        "/// fn not_here\nfn one<T>(a: T) -> T { two(a, |b| { b }) }\ntrait Three { fn two(&self); }\nfn two() {}\n";
    assert_eq!(bodies(text, "one"), ["{ two(a, |b| { b }) }"]);
    assert_eq!(bodies(text, "two"), ["", "{}"]);
    assert!(bodies(text, "not_here").is_empty() && bodies(text, "tw").is_empty());
    assert!(mentions(bodies(text, "one")[0], "two") && !mentions(text, "tw"));
    assert!(source("xtask/main.rs").is_some() && source("xtask/none.rs").is_none());
}
