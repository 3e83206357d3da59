//! Commands, paths and links that the documents name lead somewhere.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::crates::metadata;
use crate::sources::{bodies, source};
use crate::text::{code_spans, documents, fenced_lines, read, root};

/// The places that paths in the documents begin with, where they begin at the root.
const PLACES: [&str; 6] = ["crates/", "docs/", "benches/", "examples/", "fuzz/", "target/"];

/// The targets that cargo can run, of each package, as (kind, name).
struct Targets(BTreeMap<String, Vec<(String, String)>>);

impl Targets {
    fn of_the_workspace() -> Targets {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let packages = metadata()["packages"].as_array().unwrap().clone();
        let targets = packages.iter().map(|package| {
            let all = package["targets"].as_array().unwrap().iter();
            let all = all.map(|target| (text(&target["kind"][0]), text(&target["name"])));
            (text(&package["name"]), all.collect())
        });
        Targets(targets.collect())
    }

    fn has(&self, package: Option<&str>, kind: &str, name: &str) -> bool {
        let packages = self.0.iter().filter(|(known, _)| package.is_none_or(|package| *known == package));
        packages.flat_map(|(_, targets)| targets).any(|(of, called)| of == kind && called == name)
    }
}

/// The chores of `cargo xtask`.
fn chores() -> Vec<String> {
    let text = source("xtask/main.rs").unwrap();
    let variants = text.lines().filter_map(|line| line.trim().strip_suffix("::Args),")?.split_once('('));
    variants.map(|(name, _)| with_dashes(name)).collect()
}

/// The name of a chore whose variant is called so: `crash-kernel` for `CrashKernel`.
fn with_dashes(variant: &str) -> String {
    let mut name = String::new();
    for (at, letter) in variant.char_indices() {
        if at > 0 && letter.is_uppercase() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// The fault of a command of cargo's.
fn fault_of(command: &str, targets: &Targets, chores: &[String]) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let behind = |options: [&str; 2]| {
        let at = words.iter().position(|word| options.contains(word))?;
        words.get(at + 1).copied()
    };
    if words.get(1) == Some(&"xtask") {
        let chore = words.get(2)?;
        let known = chores.iter().any(|known| known == chore) || *chore == "help";
        return (!known).then(|| format!("there is no chore {chore}"));
    }
    let package = behind(["-p", "--package"]);
    if let Some(package) = package.filter(|package| !targets.0.contains_key(*package)) {
        return (package != "CRATE").then(|| format!("there is no package {package}"));
    }
    for (option, kind) in [("--test", "test"), ("--bench", "bench"), ("--example", "example")] {
        if let Some(name) = behind([option, option]).filter(|name| *name != "NAME")
            && !targets.has(package, kind, name)
        {
            return Some(format!("{} has no {kind} {name}", package.unwrap_or("the workspace")));
        }
    }
    None
}

/// The commands in a text: lines of fenced blocks, and code spans, that begin with `cargo`.
fn commands(text: &str) -> Vec<String> {
    let lines = fenced_lines(text).into_iter().map(|line| line.strip_prefix("$ ").unwrap_or(line).trim().to_owned());
    let spans = code_spans(text).into_iter().map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.chain(spans).filter(|command| command.starts_with("cargo ")).collect()
}

#[test]
fn the_commands_can_be_run() {
    let (targets, chores) = (Targets::of_the_workspace(), chores());
    assert!(chores.len() >= 10, "{chores:?}");
    let mut faults = Vec::new();
    let mut seen = 0;
    for document in documents() {
        for command in commands(&read(&document)) {
            seen += 1;
            faults
                .extend(fault_of(&command, &targets, &chores).map(|fault| format!("{document}: `{command}`: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(seen > 50, "{seen} commands are few");
}

#[test]
fn commands_that_lead_nowhere_are_found_out() {
    let (targets, chores) = (Targets::of_the_workspace(), chores());
    let fault = |command| fault_of(command, &targets, &chores);
    assert_eq!(fault("cargo xtask loom -p f2fs-sync"), None);
    assert_eq!(fault("cargo test -p xtask --test documents"), None);
    assert!(fault("cargo xtask nothing").is_some());
    assert!(fault("cargo test -p f2fs-nothing").is_some());
    assert!(fault("cargo test -p f2fs-sync --test documents").is_some());
    assert!(fault("cargo run --release --example nothing").is_some());
    let text = "`cargo a\nb` and `d`\n\n```text\n$ cargo e\nf\n```\n";
    assert_eq!(commands(text), ["cargo e", "cargo a b"]);
}

/// Whether a path in a code span leads nowhere. It begins at the root, or it is `CRATE/FILE.rs`, with or without `:
/// FUNCTION`.
fn is_missing(span: &str) -> bool {
    let path = span.split([' ', ':']).next().unwrap_or_default();
    if path.contains(['*', '<', '{', '$']) || path.chars().any(char::is_uppercase) && !path.ends_with(".md") {
        return false;
    }
    if PLACES.iter().any(|place| path.starts_with(place)) {
        return !path.starts_with("target/") && !root().join(path).exists();
    }
    if !(path.contains('/') && path.ends_with(".rs")) {
        return false;
    }
    match (source(path), span.split_once(": ")) {
        (Some(text), Some((_, function))) => bodies(&text, function).is_empty(),
        (Some(_), None) => false,
        (None, _) => !root().join("crates").join(path).exists(),
    }
}

/// The source files that a line of a picture names.
fn sources_in(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.' | '-')));
    words.filter(|word| word.contains('/') && word.ends_with(".rs"))
}

#[test]
fn the_paths_lead_somewhere() {
    let mut faults = Vec::new();
    for document in documents() {
        let text = read(&document);
        let drawn = fenced_lines(&text).into_iter().flat_map(sources_in);
        let all = code_spans(&text).into_iter().chain(drawn);
        faults.extend(all.filter(|span| is_missing(span)).map(|span| format!("{document}: `{span}`")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(is_missing("crates/none/src/lib.rs") && is_missing("files/none.rs") && is_missing("docs/NONE.md"));
    assert!(sources_in("  |  [files/api.rs, =none/b.rs] c.rs").eq(["files/api.rs", "none/b.rs"]));
    assert!(is_missing("nat/nat.rs: nothing") && !is_missing("nat/nat.rs: free"));
    assert!(!is_missing("files/api.rs") && !is_missing("docs/DESIGN.md") && !is_missing("a/b"));
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The targets of links, outside of fenced blocks.
fn links(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut links = Vec::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if !fenced {
            let parts = line.split("](").skip(1);
            links.extend(parts.filter_map(|part| Some(part.split_once(')')?.0.to_owned())));
        }
    }
    links
}

#[test]
fn the_links_lead_somewhere() {
    let mut faults = Vec::new();
    for document in documents() {
        let text = read(&document);
        let folder = root().join(&document).parent().unwrap().to_path_buf();
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { root().join(&document) } else { folder.join(path) };
            let there = match (target.exists(), heading) {
                (true, "") => true,
                (true, heading) => {
                    let text = std::fs::read_to_string(&target).unwrap_or_default();
                    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading)
                }
                (false, _) => false,
            };
            if !there {
                faults.push(format!("{document}: {link}"));
            }
        }
    }
    assert!(faults.is_empty(), "links that lead nowhere:\n{}", faults.join("\n"));
    assert_eq!(anchor("## Lock order, with a `picture`"), "lock-order-with-a-picture");
    assert_eq!(links("a [b](c.md#d) [e](f)\n```\n[no](no)\n```"), ["c.md#d", "f"]);
}

/// The folder of a package below `crates`.
fn folder_of(package: &Value) -> &str {
    let manifest = package["manifest_path"].as_str().unwrap();
    manifest.strip_suffix("/Cargo.toml").and_then(|folder| folder.rsplit('/').next()).unwrap()
}

#[test]
fn every_published_crate_has_its_documents() {
    for package in metadata()["packages"].as_array().unwrap() {
        if package["publish"].as_array().is_some_and(Vec::is_empty) {
            continue;
        }
        let name = package["name"].as_str().unwrap();
        assert_eq!(package["readme"].as_str(), Some("README.md"), "readme of {name}");
        let has_library = package["targets"].as_array().unwrap().iter().any(|target| target["kind"][0] == "lib");
        let documentation = has_library.then(|| format!("https://docs.rs/{name}"));
        assert_eq!(package["documentation"].as_str(), documentation.as_deref(), "documentation of {name}");
        let readme = read(&format!("crates/{}/README.md", folder_of(package)));
        assert!(readme.starts_with(&format!("# {name}\n\n")), "README of {name}");
        // Its example is compiled and run: with the crate's documentation, or, for the command, as a session.
        let library = source(&format!("{}/lib.rs", folder_of(package))).unwrap_or_default();
        let example = if has_library {
            library.contains("include_str!(\"../README.md\")")
        } else {
            readme.contains("```console")
        };
        assert!(example && (readme.contains("```rust") || !has_library), "example of {name}");
    }
}
