//! `cargo xtask package`: every published crate is packaged, and built from its package alone; and `f2fs-format` is
//! built without the standard library. Nothing is fetched. Packages that build on each other are packaged together,
//! which cargo does since 1.90.

use std::fs;
use std::path::{Path, PathBuf};
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
    println!("packaging {}", crates.join(", "));
    forget_unpacked(&crates)?;
    // All at once: cargo builds each from its package, on the packages of those below it instead of a registry's.
    let mut command = process::cargo(["package", "--offline", "--allow-dirty", "--quiet", "--target-dir"]);
    command.arg(home.join("target"));
    for package in &crates {
        command.args(["--package", package]);
    }
    // Nothing of it runs.
    process::run(command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0"))
}

/// Removes what cargo keeps of these packages from an earlier run: it takes a package that it has unpacked once for the
/// same one forever, since a version does not change in a registry. The registry of packages that are not published
/// yet has no host in its name, which so begins with a hyphen.
fn forget_unpacked(crates: &[String]) -> Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"))) else { return Ok(()) };
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    for kept in ["src", "cache"].map(|kind| home.join("registry").join(kind)) {
        for registry in entries(&kept).filter(|entry| entry.file_name().to_string_lossy().starts_with('-')) {
            for package in entries(&registry.path()) {
                let name = package.file_name().to_string_lossy().into_owned();
                let ours = |krate: &String| {
                    let rest = name.strip_prefix(krate.as_str()).and_then(|rest| rest.strip_prefix('-'));
                    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
                };
                if crates.iter().any(ours) {
                    let path = package.path();
                    let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                    gone.with_context(|| format!("{} cannot be removed", path.display()))?;
                }
            }
        }
    }
    Ok(())
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
    fs::create_dir_all(home.join("src"))?;
    let format = root.join("crates/format");
    let manifest = format!(
        "[package]\nname = \"bare\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         f2fs-format = {{ {features}default-features = false, path = {format:?} }}\n\n[profile.dev]\npanic = \"abort\"\n"
    );
    fs::write(home.join("Cargo.toml"), manifest)?;
    fs::write(home.join("src/lib.rs"), BARE)?;
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
