//! Tables of results name what runs: the mutants of the crash explorer, its classes of workloads, the fuzz targets.

use std::collections::BTreeSet;

use crate::sources::source;
use crate::text::{cells, fenced_lines, read};

/// Where the results stand.
const RESULTS: &str = "crates/trials/RESULTS.md";
/// Numbers in words, as sentences begin with them.
const WORDS: [&str; 17] = [
    "Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve",
    "Thirteen", "Fourteen", "Fifteen", "Sixteen",
];

/// The texts in quotes that begin a tuple, in their order.
fn first_of_tuples(text: &str) -> Vec<&str> {
    let tuples = text.split('(').skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
    tuples.filter_map(|rest| rest.split('"').next()).collect()
}

/// The text between `from` and the next `to`.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let rest = text.split_once(from).unwrap_or_else(|| panic!("there is no `{from}`")).1;
    rest.split_once(to).unwrap().0
}

/// The words in the first cells of a table, which begins behind `title`.
fn first_cells<'t>(text: &'t str, title: &str) -> Vec<&'t str> {
    let table = text.split_once(title).unwrap_or_else(|| panic!("there is no `{title}`")).1;
    let rows = table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let first = rows.filter_map(cells).skip(1).map(|row| row[0]);
    first.flat_map(|cell| cell.split(", ")).map(|word| word.trim_matches('`')).collect()
}

fn fuzz_targets(sources: &str) -> Vec<&str> {
    let list = between(sources, "const TARGETS: [", "];").split_once('[').unwrap().1;
    list.split('"').skip(1).step_by(2).collect()
}

#[test]
fn every_mutant_of_the_explorer_stands_in_the_results() {
    let sources = source("trials/mutants.rs").unwrap();
    let mutants = first_of_tuples(&sources);
    assert!(mutants.len() > 20, "{mutants:?}");
    let results = read(RESULTS);
    let found = fenced_lines(&results).into_iter().filter(|line| line.contains(" found after "));
    let found: Vec<&str> = found.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(found, mutants, "the mutants of {RESULTS} and those of the sources");
}

#[test]
fn every_class_of_workloads_stands_in_the_tables() {
    let sources = source("trials/campaign/jobs.rs").unwrap();
    let usual = between(&sources, "pub const USUAL", "];").split("Class::").skip(1);
    let usual: Vec<String> = usual.map(|rest| rest.trim_end().trim_end_matches(',').to_lowercase()).collect();
    let results = read(RESULTS);
    let table = between(&results, "class   workloads", "\nall ").lines().skip(1);
    let rows: Vec<&str> = table.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, usual, "{RESULTS}");
    let testing = read("docs/TESTING.md");
    let told: BTreeSet<&str> = first_cells(&testing, "## How the crash explorer works").into_iter().collect();
    assert_eq!(told, usual.iter().map(String::as_str).collect(), "docs/TESTING.md");
}

#[test]
fn every_fuzz_target_stands_in_the_tables_and_in_that_of_bugs() {
    let sources = source("xtask/fuzz.rs").unwrap();
    let targets = fuzz_targets(&sources);
    let all: BTreeSet<&str> = targets.iter().copied().collect();
    let readme = read("fuzz/README.md");
    assert_eq!(first_cells(&readme, "# Fuzzing").into_iter().collect::<BTreeSet<_>>(), all);
    assert_eq!(first_cells(&readme, "## Each target can fail").into_iter().collect::<BTreeSet<_>>(), all);
    let count = format!("{} targets", WORDS[targets.len()]);
    for text in [&readme, &read(RESULTS)] {
        assert!(text.contains(&count), "{count}");
    }
}

#[test]
fn names_are_read() {
    assert_eq!(first_of_tuples("x: &[(&str)] = &[(\"a\", 1), (\n  \"b\",\n 2)]"), ["a", "b"]);
    assert_eq!(first_cells("t\n\n| a | b |\n|--|--|\n| `c`, d | e |\n\n| f |", "t"), ["c", "d"]);
    assert_eq!(fuzz_targets("const TARGETS: [&str; 2] = [\n\"a\", \"b\"];"), ["a", "b"]);
}
