//! The walks in `docs/DESIGN.md` lead through functions that there are, each called by the one above it.

use crate::sources::{bodies, mentions, source};
use crate::text::{marked_blocks, read};

/// A step of a walk: the function that is called, and by which step.
struct Step<'t> {
    file: &'t str,
    function: &'t str,
    caller: Option<usize>,
    /// The caller is a trait's function, and this is one that implements it.
    implements: bool,
}

impl Step<'_> {
    fn krate(&self) -> &str {
        self.file.split('/').next().unwrap_or_default()
    }
}

/// The steps of a walk. A line is `CRATE/FILE.rs  FUNCTION  remark`, with two more spaces in front than its caller's; a `=` in
/// front of the file says that the function implements the caller's. Other lines are remarks.
fn steps<'t>(lines: &[&'t str]) -> Vec<Step<'t>> {
    let mut steps = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let (implements, text) = text.strip_prefix('=').map_or((false, text), |text| (true, text));
        let mut words = text.split_whitespace();
        let Some(file) = words.next().filter(|word| word.contains('/') && word.ends_with(".rs")) else { continue };
        let function = words.next().unwrap_or_else(|| panic!("no function: {line}"));
        open.retain(|(column, _)| *column < indent);
        steps.push(Step { file, function, caller: open.last().map(|(_, step)| *step), implements });
        open.push((indent, steps.len() - 1));
    }
    steps
}

/// The faults of a walk.
fn faults(name: &str, lines: &[&str]) -> Vec<String> {
    let steps = steps(lines);
    let mut faults = Vec::new();
    for step in &steps {
        let Step { file, function, .. } = step;
        let Some(text) = source(file) else {
            faults.push(format!("{name}: there is no {file}"));
            continue;
        };
        if bodies(&text, function).is_empty() {
            faults.push(format!("{name}: there is no function {function} in {file}"));
            continue;
        }
        let Some(caller) = step.caller.map(|caller| &steps[caller]) else { continue };
        let calls = if step.implements {
            caller.function == *function
        } else {
            let text = source(caller.file).unwrap_or_default();
            bodies(&text, caller.function).iter().any(|body| mentions(body, function))
        };
        if !calls {
            faults.push(format!("{name}: {} in {} does not call {function} of {file}", caller.function, caller.file));
        }
    }
    faults
}

/// Calls from one crate into another one.
fn hops(lines: &[&str]) -> usize {
    let steps = steps(lines);
    steps.iter().filter(|step| step.caller.is_some_and(|caller| steps[caller].krate() != step.krate())).count()
}

const WALKS: [&str; 6] = ["unlink", "rename", "write", "sync", "checkpoint", "open"];

#[test]
fn the_walks_are_those_of_the_sources() {
    let text = read("docs/DESIGN.md");
    let walks = marked_blocks(&text, "walk");
    assert_eq!(walks.iter().map(|(name, _)| *name).collect::<Vec<_>>(), WALKS);
    let faults: Vec<String> = walks.iter().flat_map(|(name, lines)| faults(name, lines)).collect();
    assert!(faults.is_empty(), "docs/DESIGN.md:\n{}", faults.join("\n"));
}

#[test]
fn the_hops_are_counted() {
    let text = read("docs/DESIGN.md");
    let told: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("Calls between crates: ")).collect();
    let walks = marked_blocks(&text, "walk");
    let counted: Vec<String> = walks.iter().map(|(_, lines)| format!("{}.", hops(lines))).collect();
    assert_eq!(told, counted, "told in docs/DESIGN.md (left), counted in its walks (right)");
}

#[test]
fn a_walk_that_is_wrong_is_found_out() {
    let right = ["xtask/main.rs  main  begins", "  xtask/main.rs  run  goes on", "    xtask/loom.rs  run"];
    assert_eq!(faults("right", &right), Vec::<String>::new());
    assert_eq!((hops(&right), steps(&right)[2].caller), (0, Some(1)));
    assert_eq!(faults("file", &["xtask/none.rs  main"]).len(), 1);
    assert_eq!(faults("function", &["xtask/main.rs  nobody"]).len(), 1);
    assert_eq!(faults("call", &["xtask/main.rs  main", "  xtask/loom.rs  run_half"]).len(), 1);
    assert_eq!(hops(&["xtask/main.rs  main", "  sync/gate.rs  enter", "    sync/gate.rs  close"]), 1);
}
