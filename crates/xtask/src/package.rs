//! `cargo xtask package`: every published crate is packaged, and compiled from its package alone; and `f2fs-format` is
//! compiled without the standard library. Nothing is fetched.
//!
//! Each package has the texts of its licences and a README.
//!
//! The packages stand beside each other in a workspace that takes each of them for what a registry would have under its
//! name. They are checked by the compiler, and no code is made of them, which `cargo package` would do.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::{Result, process};

/// Options of `cargo xtask package`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Build `f2fs-format` without the standard library, and package nothing.
    #[arg(long)]
    no_std: bool,
}

/// How long one build may take.
const LIMIT: Duration = Duration::from_secs(1800);

/// A crate that has no standard library, and the handler of panics that only the standard library or such a crate can
/// have: with both, the compiler finds two. So it accepts the crate only if nothing that it is built on uses the
/// standard library.
const BARE: &str = "#![no_std]
extern crate f2fs_format as _;
#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
";

/// Runs the chore.
///
/// # Errors
///
/// If a crate cannot be packaged, or not built from its package; or if `f2fs-format` uses the standard library.
pub(crate) fn run(args: &Args) -> Result<()> {
    let home = process::root().join("target/package-checks");
    no_std(&home.join("no-std"))?;
    if args.no_std {
        return Ok(());
    }
    let crates = published()?;
    let unpacked = packages(&home, &crates)?;
    // One after the other: together, each would have the features that another one turns on.
    for package in &crates {
        let mut command = process::cargo(["check", "--offline", "--quiet", "--package", package, "--manifest-path"]);
        process::run(command.arg(unpacked.join("Cargo.toml")).arg("--target-dir").arg(home.join("target")))?;
    }
    Ok(())
}

/// Packages the crates, and unpacks all of them into one new workspace.
fn packages(home: &Path, crates: &[String]) -> Result<PathBuf> {
    println!("packaging {}", crates.join(", "));
    let (target, unpacked) = (home.join("target"), home.join("unpacked"));
    let packed = target.join("package");
    for old in [&packed, &unpacked] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("{} cannot be removed", old.display()))?;
        }
    }
    let mut command =
        process::cargo(["package", "--offline", "--allow-dirty", "--quiet", "--no-verify", "--target-dir"]);
    command.arg(&target);
    for package in crates {
        command.args(["--package", package]);
    }
    process::run(&mut command)?;
    fs_err::create_dir_all(&unpacked)?;
    let mut manifest = String::from("[workspace]\nresolver = \"3\"\nmembers = [\"f2fs*\"]\n\n[patch.crates-io]\n");
    for package in crates {
        let file = packed_as(&packed, package)?;
        // All files of a package have one time, whatever is in them: cargo would take those of an earlier one for built.
        process::run(Command::new("tar").arg("-xzmf").arg(&file).arg("-C").arg(&unpacked))?;
        let dir = file.file_stem().context("a package has no name")?.to_string_lossy();
        for text in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
            let (ours, packed) = (process::root().join(text), unpacked.join(&*dir).join(text));
            let packed = fs::read(&packed).with_context(|| format!("{package} is packaged without {text}"))?;
            ensure!(text == "README.md" || fs::read(ours)? == packed, "{package} has another {text}");
        }
        writeln!(manifest, "{package} = {{ path = {dir:?} }}")?;
    }
    fs_err::write(unpacked.join("Cargo.toml"), manifest)?;
    // The versions that the workspace was built with, which are on this machine.
    fs::copy(process::root().join("Cargo.lock"), unpacked.join("Cargo.lock"))?;
    Ok(unpacked)
}

/// The file of a package.
fn packed_as(packed: &Path, package: &str) -> Result<PathBuf> {
    let is_version = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    let files = fs::read_dir(packed)?.collect::<std::io::Result<Vec<_>>>()?;
    let file = files.iter().map(fs::DirEntry::path).find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let version = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('-'));
        name.ends_with(".crate") && version.is_some_and(is_version)
    });
    file.with_context(|| format!("cargo made no package of {package}"))
}

/// Builds `f2fs-format` below a crate without the standard library, and, to know that this tells, the same crate with
/// it.
fn no_std(home: &Path) -> Result<()> {
    println!("building f2fs-format without the standard library");
    let plain = build_bare(home, "")?;
    ensure!(plain.success, "f2fs-format does not build without the standard library:\n{}", plain.stderr);
    let with = build_bare(home, "features = [\"std\"], ")?;
    let found = !with.success && with.stderr.contains("panic_impl");
    ensure!(found, "with the standard library below it the crate should not build:\n{}", with.stderr);
    Ok(())
}

fn build_bare(home: &Path, features: &str) -> Result<process::Outcome> {
    let root = process::root();
    fs_err::create_dir_all(home.join("src"))?;
    let format = root.join("crates/format");
    let manifest = format!(
        "[package]\nname = \"bare\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         f2fs-format = {{ {features}default-features = false, path = {format:?} }}\n\n[profile.dev]\npanic = \"abort\"\n"
    );
    fs_err::write(home.join("Cargo.toml"), manifest)?;
    fs_err::write(home.join("src/lib.rs"), BARE)?;
    // The versions that the workspace was built with, which are on this machine.
    fs::copy(root.join("Cargo.lock"), home.join("Cargo.lock"))?;
    let mut command = process::cargo(["check", "--offline", "--quiet", "--manifest-path"]);
    process::capture(command.arg(home.join("Cargo.toml")).arg("--target-dir").arg(home.join("target")), LIMIT)
}

/// The crates of the workspace that are published.
fn published() -> Result<Vec<String>> {
    let metadata = process::output(&mut process::cargo(["metadata", "--offline", "--no-deps", "--format-version=1"]))?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    // `publish = false` becomes an empty list of registries.
    let published = packages.iter().filter(|package| package["publish"].as_array().is_none_or(|to| !to.is_empty()));
    let names: Vec<String> = published.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect();
    if names.is_empty() {
        bail!("no crate of the workspace is published");
    }
    Ok(names)
}
