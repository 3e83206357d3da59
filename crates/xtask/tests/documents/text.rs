//! Documents as text: where they are, and the parts of them that are compared with something.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All documents, by their paths from the root: what stands in `docs`, the READMEs, and the files beside the first one.
pub(crate) fn documents() -> Vec<String> {
    let mut all: Vec<String> = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
            all.push(format!("docs/{name}"));
        }
    }
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let readme = format!("crates/{name}/README.md");
        if root().join(&readme).is_file() {
            all.push(readme);
        }
    }
    all.sort();
    all
}

/// The lines of the fenced block that follows each comment `<!-- KIND -->` or `<!-- KIND: NAME -->`, with the name.
pub(crate) fn marked_blocks<'t>(text: &'t str, kind: &str) -> Vec<(&'t str, Vec<&'t str>)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let comment = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->"));
        let Some(rest) = comment.and_then(|comment| comment.strip_prefix(kind)) else { continue };
        let name = rest.strip_prefix(": ").unwrap_or(rest);
        let opening = lines.next().unwrap_or_default();
        assert!(opening.starts_with("```"), "a fenced block follows `{line}`, not `{opening}`");
        blocks.push((name, lines.by_ref().take_while(|line| !line.starts_with("```")).collect()));
    }
    blocks
}

/// The texts between single backquotes, outside of fenced blocks.
pub(crate) fn code_spans(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut fenced = false;
    for paragraph in text.split("\n\n").flat_map(|part| part.split_inclusive("```")) {
        // A fence changes what the text behind it is.
        if !fenced {
            spans.extend(paragraph.trim_end_matches("```").split('`').skip(1).step_by(2));
        }
        fenced ^= paragraph.ends_with("```");
    }
    spans
}

/// The lines of all fenced blocks.
pub(crate) fn fenced_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            lines.push(line);
        }
    }
    lines
}

/// Cells of a row of a table; `None` for any other line, and for the line below the titles.
pub(crate) fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
    (!cells.iter().all(|cell| cell.chars().all(|c| c == '-' || c == ':'))).then_some(cells)
}

#[test]
fn parts_of_a_text() {
    let text =
        "a `b c` d\n<!-- walk: x -->\n```text\n1\n2\n```\n\n`e` and\n`f\ng`\n```sh\n`no`\n```\n| a | `b` |\n|--|:--|";
    assert_eq!(marked_blocks(text, "walk"), [("x", vec!["1", "2"])]);
    assert_eq!(code_spans(text), ["b c", "e", "f\ng", "b"]);
    assert_eq!(fenced_lines(text), ["1", "2", "`no`"]);
    assert_eq!(cells("| a | `b` |"), Some(vec!["a", "`b`"]));
    assert_eq!((cells("|--|:--|"), cells("text")), (None, None));
}
