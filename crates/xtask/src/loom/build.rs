//! Builds the models of a crate and lists them.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::half::Half;
use super::registry::Crate;
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

/// A line of cargo's JSON output, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds the crate's models and lists them.
///
/// # Errors
///
/// If they do not compile.
pub(super) fn models(krate: &Crate, half: Half) -> Result<Vec<Model>> {
    let mut command = process::cargo(["test", "--quiet", "--no-run", "--profile", "checked", "--package"]);
    command.arg(&krate.package).args([
        "--target-dir",
        &format!("target/{}", half.name()),
        "--message-format",
        "json-render-diagnostics",
    ]);
    for test in &krate.tests {
        command.args(["--test", test]);
    }
    // Added to the user's own flags. Cargo would prefer the encoded form, if it were set.
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg {}", half.name()).trim()).env_remove("CARGO_ENCODED_RUSTFLAGS");

    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the models of {} do not compile", krate.package);
    }
    let mut models = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("cargo wrote something that is not its JSON")?;
        let (Some(target), Some(executable)) = (message.target, message.executable) else { continue };
        if message.reason == "compiler-artifact" && krate.tests.contains(&target.name) {
            let names = list(&executable)?;
            models.extend(names.into_iter().map(|name| Model {
                test: target.name.clone(),
                name,
                executable: executable.clone(),
            }));
        }
    }
    models.sort_by(|a, b| (&a.test, &a.name).cmp(&(&b.test, &b.name)));
    Ok(models)
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
