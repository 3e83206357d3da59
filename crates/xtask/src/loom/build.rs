//! Builds the models of all crates, and lists them.

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::half::Half;
use super::registry::Crate;
use crate::built::{self, Built};
use crate::{Result, process};

/// A model: one test of one executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Model {
    /// The model file, without the ending.
    pub(super) test: String,
    /// The test's name, with the modules it is in.
    pub(super) name: String,
    pub(super) executable: PathBuf,
}

/// Builds the crates' models, all at once so that shared crates are built once, and lists them for each crate.
///
/// # Errors
///
/// If they do not compile.
pub(super) fn models(crates: &[Crate], half: Half) -> Result<Vec<Vec<Model>>> {
    let mut command = process::cargo(["test", "--quiet", "--no-run"]);
    command.args(["--target-dir", &format!("target/{}", half.name())]);
    for krate in crates.iter().filter(|krate| !krate.tests.is_empty()) {
        command.args(["--package", &krate.package]);
    }
    let tests: BTreeSet<&String> = crates.iter().flat_map(|krate| &krate.tests).collect();
    for test in tests {
        command.args(["--test", test]);
    }
    // Added to the user's own flags. Cargo would prefer the encoded form, if it were set.
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg {}", half.name()).trim()).env_remove("CARGO_ENCODED_RUSTFLAGS");

    let built = built::programs(&mut command).context("the models do not compile")?;
    let mut models: Vec<Vec<Model>> = crates.iter().map(|_| Vec::new()).collect();
    for Built { package, name: test, path: executable } in built {
        let owner = crates.iter().position(|krate| krate.package == package_name(&package));
        if let Some(owner) = owner.filter(|owner| crates[*owner].tests.contains(&test)) {
            let model = |name| Model { test: test.clone(), name, executable: executable.clone() };
            models[owner].extend(list(&executable)?.into_iter().map(model));
        }
    }
    for models in &mut models {
        models.sort_by(|a, b| (&a.test, &a.name).cmp(&(&b.test, &b.name)));
    }
    Ok(models)
}

/// The name in a package's identity: `path+file:///f2fs/crates/nat#f2fs-nat@0.1.0`, or without the name if the
/// directory has the same: `path+file:///f2fs/crates/f2fs#0.1.0`.
fn package_name(id: &str) -> &str {
    let (url, rest) = id.rsplit_once('#').unwrap_or((id, ""));
    match rest.split_once('@') {
        Some((name, _)) => name,
        None => url.rsplit('/').next().unwrap_or(url),
    }
}

/// The tests in an executable.
fn list(executable: &PathBuf) -> Result<Vec<String>> {
    let mut command = Command::new(executable);
    let outcome = process::capture(command.args(["--list", "--format", "terse"]), Duration::from_secs(60))?;
    if !outcome.success {
        bail!("{} does not list its tests:\n{}", executable.display(), outcome.stderr);
    }
    Ok(outcome.stdout.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_known_by_their_identities() {
        assert_eq!(package_name("path+file:///f2fs/crates/nat#f2fs-nat@0.1.0"), "f2fs-nat");
        assert_eq!(package_name("path+file:///f2fs/crates/f2fs#0.1.0"), "f2fs");
    }
}
