//! `cargo xtask fuzz`: the targets of the workspace in `fuzz/`.
//!
//! They are built with the compiler that the project uses, and with the coverage counters that libFuzzer reads; the same
//! targets work with cargo-fuzz, which needs a nightly compiler. Inputs found before are kept in `fuzz/corpus`, what broke a
//! target in `fuzz/artifacts`. What was mended is to be copied to `fuzz/regressions/TARGET`, which is tried in every run.

use std::path::Path;

use anyhow::bail;

use crate::{Result, process, tools};

/// All targets.
const TARGETS: [&str; 7] = ["parsers", "open_check", "read_all", "use_corrupt", "roll_forward", "repair", "extent"];
/// Coverage counters for libFuzzer (what cargo-fuzz sets, without the sanitizers, which would need a nightly compiler and find
/// nothing in code without `unsafe`).
const COUNTERS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table";
/// And the values that it compares, from which libFuzzer learns what a parser expects. Half of the time of a target that opens
/// volumes would go into that, and its inputs hold no such values.
const COMPARES: &str = "-Cllvm-args=-sanitizer-coverage-trace-compares";
/// Seconds after which one input counts as a hang, MiB of memory that a target may take, bytes of an input.
const LIMITS: [&str; 4] = ["-timeout=30", "-rss_limit_mb=4096", "-max_len=4097", "-len_control=0"];

/// Options of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this target: parsers, `open_check`, `read_all`, `use_corrupt`, `roll_forward`, repair or extent.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// How many inputs each target is given, however long that takes.
    #[arg(long, conflicts_with = "seconds")]
    runs: Option<u64>,
    /// Builds them in half the time, of code that is half as fast: for a run of seconds.
    #[arg(long)]
    quick: bool,
}

/// Builds the targets, makes inputs to begin with, and runs each for a while.
///
/// # Errors
///
/// If they do not build, or a target finds an input that breaks it: libFuzzer prints where it is kept.
pub(crate) fn run(args: &Args) -> Result<()> {
    let targets: Vec<&str> = match &args.target {
        None => TARGETS.to_vec(),
        Some(name) => match TARGETS.iter().find(|target| *target == name) {
            Some(target) => vec![target],
            None => bail!("there is no target {name}; the targets are {}", TARGETS.join(", ")),
        },
    };
    tools::require(tools::FOR_FUZZ)?;
    let fuzz = process::root().join("fuzz");
    let triple = host_triple()?;
    let manifest = fuzz.join("Cargo.toml");
    let profile = if args.quick { "quick" } else { "release" };
    // One build is quicker than two.
    let (comparing, counting): (Vec<&str>, Vec<&str>) =
        targets.into_iter().partition(|target| args.quick || *target == "parsers");
    for (targets, flags, dir) in [
        (comparing, format!("{COUNTERS} {COMPARES}"), fuzz.join("target")),
        (counting, COUNTERS.to_owned(), fuzz.join("target/counting")),
    ] {
        if targets.is_empty() {
            continue;
        }
        let mut build = process::cargo(["build", "--profile", profile, "--manifest-path"]);
        // A target triple keeps the flags away from build scripts.
        build.arg(&manifest).args(["--target", &triple]).env("RUSTFLAGS", flags).arg("--target-dir").arg(&dir);
        for target in &targets {
            build.args(["--bin", target]);
        }
        process::run(&mut build)?;
        let programs = dir.join(&triple).join(profile);
        for target in targets {
            fuzz_one(&fuzz, &programs.join(target), target, args)?;
        }
    }
    Ok(())
}

fn fuzz_one(fuzz: &Path, program: &Path, target: &str, args: &Args) -> Result<()> {
    let limit = match args.runs {
        Some(runs) => format!("-runs={runs}"),
        None => format!("-max_total_time={}", args.seconds),
    };
    let [corpus, artifacts] = ["corpus", "artifacts"].map(|name| fuzz.join(name).join(target));
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let mut command = std::process::Command::new(program);
    command
        .arg(corpus)
        .args(Some(fuzz.join("regressions").join(target)).filter(|known| known.is_dir()))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(limit)
        // One thread a target: the checks share it.
        .env("RAYON_NUM_THREADS", "1")
        .args(LIMITS);
    process::run(&mut command)
}

/// The triple that the compiler builds for by itself.
fn host_triple() -> Result<String> {
    let text = process::output(std::process::Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    match text.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(host.to_owned()),
        None => bail!("rustc -vV names no host:\n{text}"),
    }
}
