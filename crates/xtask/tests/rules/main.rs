//! Rules that hold for the sources of all crates: who may hold unsafe code, who may name a lock or an atomic, and that
//! the modules of a crate form no circle.
#![allow(clippy::unwrap_used)]

mod circles;
mod modules;

use std::fs;
use std::path::{Path, PathBuf};

use modules::Modules;

/// Crates with unsafe code.
const UNSAFE: [&str; 5] = ["frames", "fuse-uring", "pmem", "ublk", "uring"];
/// Crates whose locks no model drives: the one that wraps them, programs, and what only tests use.
const LOCKS: [&str; 6] = ["sync", "cli", "guest-agent", "oracle", "test-kit", "xtask"];
/// The items of `std::sync` that are no locks, and shared by all halves of `f2fs-sync`.
const SHARED: [&str; 2] = ["Arc", "Weak"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The source files of a crate, its tests aside, and those that only its models use.
fn sources(krate: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![krate.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "models");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                found.push(path);
            }
        }
    }
    found
}

/// The crates of the workspace: folder and name.
fn all_crates() -> Vec<(PathBuf, String)> {
    let folders = fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path());
    let named = folders.map(|folder| (folder.clone(), folder.file_name().unwrap().to_str().unwrap().to_owned()));
    let mut all: Vec<_> = named.filter(|(folder, _)| folder.join("Cargo.toml").is_file()).collect();
    all.sort();
    all
}

/// The code of a file, without comments, and without the module of tests at its end.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let mut for_tests = false;
    let lines = text.lines().take_while(move |line| {
        let ends = for_tests && line.starts_with("mod ") && line.ends_with('{');
        for_tests = line.starts_with("#[") && (for_tests || (line.starts_with("#[cfg(") && line.contains("test")));
        !ends
    });
    lines.map(|line| line.split("//").next().unwrap_or_default())
}

/// The first lock or atomic that a line takes from somewhere else than `f2fs-sync`.
fn foreign_lock(line: &str) -> Option<&str> {
    if line.contains("parking_lot") {
        return Some("parking_lot");
    }
    let (_, rest) = line.split_once("std::sync::").or_else(|| line.split_once("core::sync::"))?;
    let names = rest.trim_start_matches('{').split(|c: char| !(c.is_alphanumeric() || c == '_'));
    names.filter(|name| !name.is_empty()).take_while(|name| *name != "as").find(|name| !SHARED.contains(name))
}

#[test]
fn unsafe_code_stands_in_few_crates() {
    for (folder, name) in all_crates() {
        let root = ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root)).into_iter().find(|root| root.is_file());
        let text = fs::read_to_string(root.unwrap()).unwrap();
        let forbids = text.lines().any(|line| line == "#![forbid(unsafe_code)]");
        assert_eq!(forbids, !UNSAFE.contains(&&*name), "crates/{name} forbids unsafe code: {forbids}");
    }
}

#[test]
fn only_one_crate_names_a_lock_or_an_atomic() {
    let mut faults = Vec::new();
    for (folder, name) in all_crates().into_iter().filter(|(_, name)| !LOCKS.contains(&&**name)) {
        for path in sources(&folder) {
            let text = fs::read_to_string(&path).unwrap();
            for lock in code(&text).filter_map(foreign_lock) {
                faults.push(format!("crates/{name}: {lock} in {}", path.display()));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "locks and atomics come from f2fs-sync, so that models reach them:\n{}",
        faults.join("\n")
    );
}

#[test]
fn modules_form_no_circle() {
    let mut faults = Vec::new();
    let mut known = circles::KNOWN.to_vec();
    for (folder, name) in all_crates().into_iter().filter(|(folder, _)| folder.join("src/lib.rs").is_file()) {
        if fs::read_to_string(folder.join("Cargo.toml")).unwrap().contains("publish = false") {
            continue;
        }
        for (circle, because) in Modules::of(&folder).circles() {
            let is_known = |(krate, modules, _): &(&str, &[&str], &str)| {
                *krate == name && circle.iter().map(|module| &**module).eq(modules.iter().copied())
            };
            if circles::KNOWN.iter().any(is_known) {
                known.retain(|one| !is_known(one));
                continue;
            }
            let lines = because.iter().map(|found| format!("    {} names {} ({})", found.by, found.of, found.path));
            let circle: Vec<String> = circle.into_iter().collect();
            faults.push(format!("crates/{name}: {}\n{}", circle.join(", "), lines.collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(faults.is_empty(), "modules that need each other in a circle:\n{}", faults.join("\n"));
    assert!(known.is_empty(), "circles that are open now; their lines in circles.rs can go: {known:?}");
}

#[test]
fn locks_from_elsewhere_are_found() {
    assert_eq!(foreign_lock("use std::sync::Mutex;"), Some("Mutex"));
    assert_eq!(foreign_lock("use std::sync::{Arc, RwLock};"), Some("RwLock"));
    assert_eq!(foreign_lock("use core::sync::atomic::AtomicU64;"), Some("atomic"));
    assert_eq!(foreign_lock("let lock = parking_lot::Mutex::new(());"), Some("parking_lot"));
    assert_eq!(foreign_lock("use std::sync::Arc;"), None);
    assert_eq!(foreign_lock("use std::sync::{Arc, Weak};"), None);
    assert_eq!(foreign_lock("use f2fs_sync::Mutex;"), None);
    let text =
        "a // std::sync::Mutex\n#[cfg(test)]\nmod x;\nb\n#[cfg(all(test, not(loom)))]\n#[allow(y)]\nmod tests {\nc";
    assert!(code(text).eq(["a ", "#[cfg(test)]", "mod x;", "b", "#[cfg(all(test, not(loom)))]", "#[allow(y)]"]));
}

/// The fuzz targets are a workspace of their own, which no build of this one compiles.
#[test]
fn the_command_is_fuzzed_with_all_its_modules() {
    let modules = |root: &Path| -> Vec<String> {
        let text = fs::read_to_string(root).unwrap();
        text.lines().filter(|line| line.starts_with("mod ")).map(str::to_owned).collect()
    };
    let [here, fuzzed] = [crates().join("cli/src/main.rs"), crates().join("../fuzz/command/src/main.rs")];
    assert!(modules(&here).len() > 5, "the command has modules");
    assert_eq!(modules(&here), modules(&fuzzed), "crates/cli/src/main.rs, fuzz/command/src/main.rs");
}
