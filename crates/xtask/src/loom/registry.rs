//! Which crates have models, and which mutants are announced for them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use super::half::Half;
use crate::{Result, Usage, files};

/// A crate with models.
#[derive(Debug)]
pub(super) struct Crate {
    /// The package's name.
    pub(super) package: String,
    /// The names of its model files, without the ending, sorted.
    pub(super) tests: Vec<String>,
    /// The announcements of the model files.
    pub(super) mutants: Vec<Mutant>,
    /// Where the announcements do not fit the sources.
    pub(super) problems: Vec<String>,
}

/// A mutant, and a model that must kill it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) name: String,
    /// The model file, without the ending.
    pub(super) test: String,
    /// The model's name, with or without the modules it is in.
    pub(super) model: String,
}

/// The crates with models in the workspace at `root`, all or the named ones, in the order of their names.
///
/// # Errors
///
/// If a named crate does not exist, no crate has models, or a file cannot be read.
pub(super) fn discover(root: &Path, packages: &[String], half: Half) -> Result<Vec<Crate>> {
    let others = OTHER_MUTANTS.map(|path| fs::read_to_string(root.join(path)).unwrap_or_default()).concat();
    let dirs = files::entries(root.join("crates"))?;
    let (switched, models_of, scenarios) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut all = Elsewhere { switched, models: models_of, scenarios, others };
    for dir in &dirs {
        all.switched.extend(sources(dir)?);
        all.models.extend(models(dir, Half::Loom)?.1.into_iter().map(|mutant| mutant.name));
        all.scenarios.extend(models(dir, Half::Shuttle)?.1.into_iter().map(|mutant| mutant.name));
    }
    let mut crates = Vec::new();
    let mut seen = BTreeSet::new();
    for dir in dirs {
        let Some(package) = package_name(&dir)? else { continue };
        let short = dir.file_name().unwrap_or_default().to_string_lossy();
        if !packages.is_empty() && !packages.iter().any(|wanted| *wanted == package || *wanted == short) {
            continue;
        }
        seen.extend([package.clone(), short.into_owned()]);
        if let Some(krate) = read_crate(&dir, package, half, &all)? {
            crates.push(krate);
        }
    }
    if let Some(unknown) = packages.iter().find(|wanted| !seen.contains(*wanted)) {
        bail!(Usage(format!("there is no crate `{unknown}`")));
    }
    if crates.is_empty() {
        bail!(Usage(format!("none of these crates has a tests/{}_*.rs", half.name())));
    }
    Ok(crates)
}

/// Where the mutants stand that are found by something else than a model; `cargo xtask crash --mutants` runs them.
const OTHER_MUTANTS: [&str; 16] = [
    "benches/tests/manycore.rs",
    "crates/trials/src/mutants.rs",
    "crates/journal/tests/lines.rs",
    "crates/segment/tests/opening.rs",
    "crates/segment/tests/selective.rs",
    "crates/files/tests/full/recovered.rs",
    "crates/files/tests/checkpoint_room.rs",
    "crates/files/tests/page_cache.rs",
    "crates/files/tests/read_many.rs",
    "crates/files/tests/unnamed.rs",
    "crates/files/tests/appends.rs",
    "crates/files/tests/strict.rs",
    "crates/files/tests/fsync.rs",
    "crates/uring/src/nvme/durability/tests.rs",
    "crates/files/tests/journal/main.rs",
    "crates/files/tests/zoned/full.rs",
];

/// Mutants of crates with models that only a scenario can find. Two show themselves on volumes larger than a model's
/// alone: nothing is written ahead of a checkpoint where so few sections are free. Two take a whole file system with a
/// journal; two take renames in both directions between directories whose paths are looked up.
const FOUND_BY_SCENARIOS: [&str; 6] = [
    "directory_block_clean_before_its_copy",
    "node_ahead_changes_in_place",
    "journal_names_in_no_order",
    "journal_retired_beside_log",
    "rename_waits_with_a_stripe",
    "rename_moves_directories_as_files",
];

/// The mutants of the rest of the workspace.
#[derive(Debug)]
struct Elsewhere {
    /// Mutants in the sources of any crate.
    switched: BTreeSet<String>,
    /// Mutants that a model of any crate announces: the models of a crate may need crates above it.
    models: BTreeSet<String>,
    /// Mutants that a scenario of any crate announces.
    scenarios: BTreeSet<String>,
    /// The text that announces mutants of no model.
    others: String,
}

/// The crate in `dir`, if it has models or mutants.
fn read_crate(dir: &Path, package: String, half: Half, elsewhere: &Elsewhere) -> Result<Option<Crate>> {
    let (tests, mutants) = models(dir, half)?;
    let in_tests: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    let mut problems = Vec::new();
    // Every mutant of a crate that is small enough for loom has a model there; scenarios repeat some of them.
    let small = !models(dir, Half::Loom)?.0.is_empty();
    for name in sources(dir)?.iter().filter(|name| half == Half::Loom && !in_tests.contains(name.as_str())) {
        let modelled = elsewhere.models.contains(name);
        let may_be_a_scenario = !small || FOUND_BY_SCENARIOS.contains(&name.as_str());
        if modelled
            || elsewhere.others.contains(&format!("\"{name}\""))
            || may_be_a_scenario && elsewhere.scenarios.contains(name)
        {
            continue;
        }
        problems.push(format!(
            "the mutant `{name}` in src/ has no `// mutant: {name}, killed by: MODEL` line in tests/loom_*.rs"
        ));
    }
    let missing = in_tests.into_iter().filter(|name| !elsewhere.switched.contains(*name));
    problems.extend(
        missing.map(|name| format!("`{name}` is announced, but src/ has no protocol point or mutant of that name")),
    );
    let found = !tests.is_empty() || !problems.is_empty();
    Ok(found.then_some(Crate { package, tests, mutants, problems }))
}

/// The names of a crate's model files, and what they announce.
fn models(dir: &Path, half: Half) -> Result<(Vec<String>, Vec<Mutant>)> {
    let (mut tests, mut mutants) = (Vec::new(), Vec::new());
    let all = dir.join("tests");
    for file in if all.is_dir() { files::entries(&all)? } else { Vec::new() } {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if half.owns(&name) && file.extension().is_some_and(|ending| ending == "rs") {
            let text = fs_err::read_to_string(&file)?;
            mutants.extend(announced(&text, &name)?);
            tests.push(name);
        }
    }
    Ok((tests, mutants))
}

/// The mutants in a crate's sources.
fn sources(dir: &Path) -> Result<BTreeSet<String>> {
    let (mut found, dir) = (BTreeSet::new(), dir.join("src"));
    if dir.is_dir() {
        each_source(&dir, &mut |text| found.extend(switched(text)))?;
    }
    Ok(found)
}

/// The mutants that a model file announces.
fn announced(text: &str, test: &str) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    for line in text.lines() {
        let Some(comment) = line.strip_prefix("//") else { continue };
        let Some(rest) = comment.trim_start_matches(['!', ' ']).strip_prefix("mutant:") else { continue };
        let Some((name, model)) = rest.split_once(", killed by:") else {
            bail!("{test}.rs: expected `// mutant: NAME, killed by: MODEL`, found `{line}`");
        };
        let [name, model] = [name, model].map(|word| word.trim_matches([' ', '`']).to_owned());
        mutants.push(Mutant { name, test: test.to_owned(), model });
    }
    Ok(mutants)
}

/// The mutants that a source file switches at the points of a protocol, outside of comments.
fn switched(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let points = ["protocol_step!(", "protocol_value!(", "protocol_never!("];
    let calls = points.into_iter().flat_map(|point| code.split(point).skip(1));
    let names = calls.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split_once('"'));
    // Other quoted texts behind such words are no names: this tool's own sources look for them.
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    names.filter(|(name, _)| is_name(name)).map(|(name, _)| name.to_owned()).collect()
}

/// Calls `f` with the text of each Rust file below `dir`.
fn each_source(dir: &Path, f: &mut impl FnMut(&str)) -> Result<()> {
    for path in files::entries(dir)? {
        if path.is_dir() {
            each_source(&path, f)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            f(&fs_err::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The package name in a crate's manifest, if `dir` has one.
fn package_name(dir: &Path) -> Result<Option<String>> {
    let manifest = dir.join("Cargo.toml");
    if !manifest.is_file() {
        return Ok(None);
    }
    let text = fs_err::read_to_string(&manifest)?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(Some(name.with_context(|| format!("{} names no package", manifest.display()))?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_read_from_the_head() {
        let text = "//! The gate.\n#![cfg(loom)]\n\n// mutant: a, killed by: x\n//! mutant: `b`, killed by: `m::y`\n";
        let announcement =
            |name: &str, model: &str| Mutant { name: name.into(), test: "loom_t".into(), model: model.into() };
        assert_eq!(
            announced(text, "loom_t").expect("both are well-formed"),
            [announcement("a", "x"), announcement("b", "m::y")]
        );
        assert!(announced("// mutant: a is killed by x\n", "loom_t").is_err());
    }

    #[test]
    fn switches_in_comments_do_not_count() {
        let text = "//! protocol_step!(\"in_docs\", x)\n    if protocol_value!(\"one\", a, b) && f2fs_sync::protocol_value!(\"two\", a, b) {\n // protocol_step!(\"no\", x)";
        assert_eq!(switched(text), ["one", "two"]);
    }

    #[test]
    fn points_of_protocols_are_switches() {
        let text = "protocol_step!(\"step\", fence(SeqCst));\nlet order = protocol_value!(\n    \"order\", Release, Relaxed);\nprotocol_never!(\"early\", return);\n// protocol_step!(\"no\", ())";
        assert_eq!(switched(text), ["step", "order", "early"]);
        assert!(switched("let points = [\"protocol_value!(\", \"protocol_step!(\"];\nlet other = ';';").is_empty());
    }

    #[test]
    fn announcements_that_do_not_fit_are_problems() {
        let root = tempfile::tempdir().expect("a temporary directory can be made");
        let dir = root.path().join("crates/one");
        fs::create_dir_all(dir.join("src")).expect("directories can be made");
        fs::create_dir_all(dir.join("tests")).expect("directories can be made");
        let write = |name: &str, text: &str| fs::write(dir.join(name), text).expect("files can be written");
        write("Cargo.toml", "[package]\nname = \"f2fs-one\"\n");
        write("src/lib.rs", "fn f() { protocol_step!(\"m\", ()) }\n");
        write("tests/loom_one.rs", "#![cfg(loom)]\n");
        let problems = |what| discover(root.path(), &[], Half::Loom).expect(what).remove(0).problems;
        let silent = problems("the crate is found");
        assert!(silent.len() == 1 && silent[0].contains("has no `// mutant: m"), "{silent:?}");

        write("tests/loom_one.rs", "// mutant: m, killed by: x\n#![cfg(loom)]\n");
        let crates = discover(root.path(), &["one".to_owned()], Half::Loom).expect("all is well");
        assert_eq!((crates[0].package.as_str(), crates[0].mutants.len()), ("f2fs-one", 1));
        assert!(crates[0].problems.is_empty());
        assert!(discover(root.path(), &["two".to_owned()], Half::Loom).is_err());

        write("src/lib.rs", "fn f() {}\n");
        let missing = problems("the crate is found");
        assert!(missing.len() == 1 && missing[0].contains("is announced, but"), "{missing:?}");
    }

    #[test]
    fn what_is_too_large_for_loom_has_scenarios_in_any_crate() {
        let root = tempfile::tempdir().expect("a temporary directory can be made");
        let write = |name: &str, text: &str| {
            let path = root.path().join("crates").join(name);
            fs::create_dir_all(path.parent().expect("it is in a crate")).expect("directories can be made");
            fs::write(path, text).expect("files can be written");
        };
        for name in ["small", "large", "larger"] {
            write(&format!("{name}/Cargo.toml"), &format!("[package]\nname = \"{name}\"\n"));
        }
        write("small/src/lib.rs", "fn f() { protocol_step!(\"s\", ()) }\n");
        write("small/tests/loom_small.rs", "// mutant: s, killed by: x\n");
        write("large/src/lib.rs", "fn f() { protocol_step!(\"l\", ()) }\n");
        let problems = |half| -> Vec<String> {
            let crates = discover(root.path(), &[], half).expect("there are models");
            crates.into_iter().flat_map(|krate| krate.problems).collect()
        };
        assert_eq!(problems(Half::Loom).len(), 1, "nothing kills `l`");
        write("larger/tests/shuttle_all.rs", "// mutant: l, killed by: y\n// mutant: s, killed by: y\n");
        assert_eq!((problems(Half::Loom), problems(Half::Shuttle)), (vec![], vec![]));
        // A model of a crate above does as well as one of its own.
        write("small/tests/loom_small.rs", "#![cfg(loom)]\n");
        write("larger/tests/loom_all.rs", "// mutant: s, killed by: z\n");
        assert_eq!(problems(Half::Loom), Vec::<String>::new());
        write("larger/tests/loom_all.rs", "#![cfg(loom)]\n");
        // A scenario does not replace a model.
        write("small/tests/loom_small.rs", "#![cfg(loom)]\n");
        assert_eq!(problems(Half::Loom).len(), 1);
    }
}
