//! Programs that cargo builds, and where it puts them.
//!
//! People choose the target directory (`CARGO_TARGET_DIR`, `build.target-dir`) and the machine that is built for
//! (`build.target`). A program in the usual place may therefore be one of last week. So every chore that builds a
//! program and runs it asks cargo for the file, and does not make up its path.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::{Result, process};

/// A program that a command of cargo has built, or has found to be up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    /// The identity of its package.
    pub(crate) package: String,
    /// The name of the program, the example or the test.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// A line of cargo's JSON output, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Runs a command of cargo that builds, and returns its programs in the order in which cargo names them. What the
/// compiler has to say goes where our errors go.
///
/// # Errors
///
/// If cargo cannot be started or fails, or its output is not what it should be.
pub(crate) fn programs(command: &mut Command) -> Result<Vec<Built>> {
    eprintln!("$ {}", process::shown(command));
    let shown = process::shown(command);
    command.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("cargo wrote something that is not its JSON")?;
        if let Message { package_id: Some(package), target: Some(target), executable: Some(path), reason } = message
            && reason == "compiler-artifact"
        {
            programs.push(Built { package, name: target.name, path });
        }
    }
    Ok(programs)
}

/// Builds a program of the workspace as users have it, and returns its file.
///
/// # Errors
///
/// As [`program`].
pub(crate) fn release(package: &str, name: &str, features: &[&str]) -> Result<PathBuf> {
    let mut command = process::cargo(["build", "--release", "--package", package, "--bin", name]);
    program(command.args(features), name)
}

/// The file of the program of this name, which the command of cargo builds.
///
/// # Errors
///
/// As [`programs`], or if cargo names no such program.
pub(crate) fn program(command: &mut Command, name: &str) -> Result<PathBuf> {
    named(&programs(command)?, name)
}

/// The file of the program of this name among those that were built.
///
/// # Errors
///
/// If there is none.
pub(crate) fn named(programs: &[Built], name: &str) -> Result<PathBuf> {
    let found = programs.iter().find(|built| built.name == name);
    Ok(found.with_context(|| format!("cargo has built no program `{name}`"))?.path.clone())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A package with one program, and a program of the same name from long ago in the usual place.
    fn package() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("it lies in the package")).expect("directories can be made");
            fs::write(path, text).expect("files can be written");
        };
        write("Cargo.toml", "[package]\nname = \"small\"\nedition = \"2024\"\n\n[workspace]\n");
        write("src/main.rs", "fn main() { println!(\"new\") }\n");
        write("target/debug/small", "#!/bin/sh\necho old\n");
        dir
    }

    fn cargo(dir: &tempfile::TempDir) -> Command {
        let mut command = process::cargo(["build", "--offline", "--quiet"]);
        command.current_dir(dir).env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET_DIR");
        command
    }

    fn says(program: PathBuf) -> String {
        String::from_utf8_lossy(&process::output(&mut Command::new(program)).expect("it runs")).into_owned()
    }

    #[test]
    fn a_program_lies_where_cargo_says() {
        let dir = package();
        let elsewhere = dir.path().join("elsewhere");
        let path = program(cargo(&dir).env("CARGO_TARGET_DIR", &elsewhere), "small").expect("it builds");
        assert!(path.starts_with(&elsewhere), "{}", path.display());
        assert_eq!(says(path.clone()), "new\n");
        // What is up to date is named as well.
        let again = program(cargo(&dir).env("CARGO_TARGET_DIR", &elsewhere), "small").expect("it builds");
        assert_eq!(again, path);
        let path = program(cargo(&dir).args(["--config", "build.target-dir='there'"]), "small").expect("it builds");
        assert_eq!(says(path), "new\n");
        let path = program(&mut cargo(&dir), "small").expect("it builds");
        assert_eq!((path.clone(), says(path)), (dir.path().join("target/debug/small"), "new\n".to_owned()));
        let error = program(&mut cargo(&dir), "large").expect_err("there is none");
        assert!(error.to_string().contains("`large`"), "{error:#}");
        fs::write(dir.path().join("src/main.rs"), "fn main() {").expect("it can be written");
        assert!(program(&mut cargo(&dir), "small").is_err(), "it does not compile, and the old one is still there");
    }
}
