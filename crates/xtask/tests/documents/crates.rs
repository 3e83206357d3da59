//! The pictures of the crates in `docs/DESIGN.md` equal the dependencies that cargo knows.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::text::{marked_blocks, read, root};

/// The answer of `cargo metadata` for the workspace.
pub(crate) fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Each crate of the workspace, with those crates of the workspace that it is built on: not what its tests use.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let members: BTreeSet<String> = packages.iter().map(name).collect();
    packages
        .iter()
        .map(|package| {
            let all = package["dependencies"].as_array().unwrap().iter();
            let used = all.filter(|dependency| dependency["kind"].is_null()).map(name);
            (name(package), used.filter(|used| members.contains(used)).collect())
        })
        .collect()
}

/// The only block of a kind in the design.
fn block(text: &str, kind: &str) -> Vec<String> {
    let mut blocks = marked_blocks(text, kind);
    assert_eq!(blocks.len(), 1, "blocks marked `{kind}`");
    blocks.remove(0).1.into_iter().map(str::to_owned).collect()
}

/// The table of who uses whom: a row is a number, a name, and a mark for each of the crates above it.
fn matrix(lines: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut rows: Vec<(String, BTreeSet<String>)> = Vec::new();
    for line in lines.iter().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, name, marks @ ..] = &words[..] else { panic!("no row: {line}") };
        assert_eq!(number.parse(), Ok(rows.len() + 1), "rows are numbered: {line}");
        assert_eq!(marks.len(), rows.len(), "a mark for each crate above: {line}");
        let mut used = BTreeSet::new();
        for (mark, (above, _)) in marks.iter().zip(&rows) {
            assert!(matches!(*mark, "x" | "."), "{mark} in {line}");
            if *mark == "x" {
                used.insert(above.clone());
            }
        }
        rows.push(((*name).to_owned(), used));
    }
    rows.into_iter().collect()
}

#[test]
fn the_table_of_crates_is_what_cargo_knows() {
    let drawn = matrix(&block(&read("docs/DESIGN.md"), "crates"));
    let known = dependencies();
    for (name, used) in &known {
        let Some(drawn) = drawn.get(name) else { panic!("{name} is not in the table of docs/DESIGN.md") };
        assert_eq!(drawn, used, "{name}: drawn in docs/DESIGN.md (left), known to cargo (right)");
    }
    assert_eq!(drawn.len(), known.len(), "the table names a crate that there is not");
}

#[test]
fn the_layers_are_those_of_the_crates() {
    let known = dependencies();
    let mut layers = BTreeMap::new();
    for (layer, line) in block(&read("docs/DESIGN.md"), "layers").iter().enumerate() {
        for word in line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
            if known.contains_key(word) {
                assert_eq!(layers.insert(word.to_owned(), layer), None, "{word} is drawn twice");
            }
        }
    }
    for (name, used) in &known {
        let Some(layer) = layers.get(name) else { panic!("{name} is not in the picture of docs/DESIGN.md") };
        for below in used {
            assert!(layers[below] > *layer, "{name} uses {below}, which is not drawn below it");
        }
    }
}

#[test]
fn a_table_is_read_row_by_row() {
    let lines = ["      1 2", "1 a", "2 b  x", "3 c  . x"].map(str::to_owned);
    let rows = matrix(&lines);
    assert_eq!(rows["c"], BTreeSet::from(["b".to_owned()]));
    assert!(rows["a"].is_empty() && rows["b"].contains("a"));
}
