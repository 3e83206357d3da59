//! Building the copy with all faults in it.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::Value;

use super::fault::Kind;
use super::sources::{Cloth, Sources};
use super::support;
use super::tree::Tree;
use crate::{Result, process};

/// So often at most the compiler is asked which faults it refuses.
const ROUNDS: usize = 60;

/// What is blamed, one after the other, until there is something: the fault at the place, and then those of the function
/// by their kinds. A statement that is left out leaves a variable without a value, or a value that went in use, and the
/// complaint stands far from it.
const WIDELY: [Option<Kind>; 4] = [None, Some(Kind::Statement), Some(Kind::Entry), Some(Kind::Value)];

/// A program of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The crate's directory below `crates`, and the name of the program.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Where it runs.
    pub(super) home: PathBuf,
}

/// Weaves faults into the copy until the compiler takes it, and adds the numbers of those that it refuses to
/// `refused`.
///
/// # Errors
///
/// If the copy cannot be built for another reason.
pub(super) fn prepare(
    root: &std::path::Path,
    sources: &Sources,
    crates: &[&str],
    refused: &mut BTreeSet<usize>,
) -> Result<Tree> {
    let mut cloth = sources.weave(refused);
    let mut changed = cloth.texts();
    for name in crates {
        let manifest = format!("crates/{name}/Cargo.toml");
        let text = fs::read_to_string(root.join(&manifest)).with_context(|| format!("cannot read {manifest}"))?;
        let with = text.replacen("[dependencies]\n", "[dependencies]\nf2fs-mutation = { path = \"../mutation\" }\n", 1);
        if with == text {
            bail!("{manifest} has no dependencies to add to");
        }
        changed.insert(manifest, with);
    }
    changed.insert(format!("{}/Cargo.toml", support::DIRECTORY), support::MANIFEST.to_owned());
    changed.insert(format!("{}/src/lib.rs", support::DIRECTORY), support::source(sources.faults().len()));
    let tree = Tree::update(root, &changed)?;
    for round in 1..=ROUNDS {
        let complaints = complaints(&tree, crates)?;
        if complaints.is_empty() {
            return Ok(tree);
        }
        let before = refused.len();
        refuse(sources, &cloth, &complaints, refused);
        println!("round {round}: the compiler refuses {} faults", refused.len() - before);
        if refused.len() == before {
            bail!("the copy cannot be built: {:?}", complaints.first().map(|complaint| &complaint.text));
        }
        cloth = sources.weave(refused);
        tree.write(&cloth.texts())?;
    }
    bail!("the compiler still refuses faults in round {ROUNDS}")
}

/// An error of the compiler.
#[derive(Debug)]
struct Complaint {
    text: String,
    /// The places that it is about, in bytes of a file, and behind them those that it mentions.
    primary: Vec<(String, Range<usize>)>,
    others: Vec<(String, Range<usize>)>,
}

/// Adds the faults that complaints are about.
fn refuse(sources: &Sources, cloth: &Cloth, complaints: &[Complaint], refused: &mut BTreeSet<usize>) {
    for complaint in complaints {
        let new = |places: &[(String, Range<usize>)], widely: Option<Kind>, refused: &BTreeSet<usize>| -> Vec<usize> {
            let blamed = places.iter().flat_map(|(file, at)| sources.blamed(cloth, file, at, widely));
            blamed.filter(|number| !refused.contains(number)).collect()
        };
        for widely in WIDELY {
            let blamed = [&complaint.primary, &complaint.others].map(|places| new(places, widely, refused));
            if let Some(blamed) = blamed.into_iter().find(|blamed| !blamed.is_empty()) {
                refused.extend(blamed);
                break;
            }
        }
    }
}

/// What the compiler has against the copy.
fn complaints(tree: &Tree, crates: &[&str]) -> Result<Vec<Complaint>> {
    let mut command = process::cargo(["check", "--keep-going", "--message-format", "json"]);
    command.args(crates.iter().flat_map(|name| ["-p".to_owned(), format!("f2fs-{name}")]));
    tree.prepare(&mut command);
    let output = command.output().context("cannot start cargo")?;
    let complaints: Vec<Complaint> = messages(&output.stdout).filter_map(|message| complaint(&message)).collect();
    if complaints.is_empty() && !output.status.success() {
        bail!("cargo check failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(complaints)
}

fn messages(output: &[u8]) -> impl Iterator<Item = Value> + '_ {
    output.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

fn complaint(message: &Value) -> Option<Complaint> {
    let message = message.get("message")?;
    if message.get("level")?.as_str()? != "error" {
        return None;
    }
    let text = message.get("rendered").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut complaint = Complaint { text, primary: Vec::new(), others: Vec::new() };
    let of = |value: &Value| value.get("spans").and_then(Value::as_array).cloned().unwrap_or_default();
    let children = message.get("children").and_then(Value::as_array).cloned().unwrap_or_default();
    for (spans, child) in std::iter::once((of(message), false)).chain(children.iter().map(|child| (of(child), true))) {
        for span in spans {
            let number = |name: &str| span[name].as_u64().map(|number| number as usize);
            let (Some(file), Some(start), Some(end)) =
                (span["file_name"].as_str(), number("byte_start"), number("byte_end"))
            else {
                continue;
            };
            let place = (file.to_owned(), start..end);
            if !child && span["is_primary"] == true {
                complaint.primary.push(place);
            } else {
                complaint.others.push(place);
            }
        }
    }
    (!complaint.primary.is_empty()).then_some(complaint)
}

/// Builds the programs of tests.
///
/// # Errors
///
/// If they cannot be built.
pub(super) fn programs(tree: &Tree, crates: &[&str]) -> Result<Vec<Program>> {
    let mut command = process::cargo(["test", "--no-run", "--lib", "--tests", "--message-format", "json"]);
    command.args(crates.iter().flat_map(|name| ["-p".to_owned(), format!("f2fs-{name}")]));
    command.args(["--features", "f2fs-files/mutants,f2fs-segment/mutants"]);
    tree.prepare(&mut command);
    let output = process::output(&mut command)?;
    let mut programs = Vec::new();
    for message in messages(&output) {
        let (Some(path), Some(manifest), Some(name)) =
            (message["executable"].as_str(), message["manifest_path"].as_str(), message["target"]["name"].as_str())
        else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let home = PathBuf::from(manifest).parent().context("a manifest lies somewhere")?.to_owned();
        let package = home.file_name().unwrap_or_default().to_string_lossy().into_owned();
        programs.push(Program { name: format!("{package}/{name}"), path: path.into(), home });
    }
    // The order in which cargo tells of them is another each time.
    programs.sort_by(|a: &Program, b| a.path.cmp(&b.path));
    Ok(programs)
}
