//! `cargo xtask fuzz`: the targets of the workspace in `fuzz/`.
//!
//! They are built with the compiler that the project uses, and with the coverage counters that libFuzzer reads; the
//! same targets work with cargo-fuzz, which needs a nightly compiler. Inputs found before are kept in `fuzz/corpus`,
//! inputs that broke a target in `fuzz/artifacts`. Copy an input whose fault was mended to `fuzz/regressions/TARGET`:
//! it is tried in every run.
//!
//! `--total 1e9` goes on until all targets together were given that many inputs, where the last run stopped:
//! `fuzz/executions` says how many that were, by target and commit. That file is kept with the sources, so that the
//! next machine goes on. A run may be stopped by Ctrl-C at any time, and several may work on one file.

mod diary;
mod plan;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use self::diary::{Diary, Line};
use self::plan::Total;
use crate::{Result, Usage, built, process, tools};

/// All targets.
const TARGETS: [&str; 13] = [
    "parsers",
    "open_check",
    "read_all",
    "use_corrupt",
    "shapes",
    "two_threads",
    "failing",
    "command",
    "roll_forward",
    "repair",
    "extent",
    "zones",
    "journal",
];
/// Coverage counters for libFuzzer (what cargo-fuzz sets, without the sanitizers, which would need a nightly compiler
/// and find nothing in code without `unsafe`).
const COUNTERS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table";
/// Makes the code report the values that it compares, from which libFuzzer learns the input that a parser expects.
/// Targets that open volumes do without: it would take half of their time, and their inputs hold no such values.
const COMPARES: &str = "-Cllvm-args=-sanitizer-coverage-trace-compares";
/// Seconds after which one input counts as a hang, MiB of memory that a target may take; and all lengths from the
/// beginning.
const LIMITS: [&str; 4] = ["-timeout=120", "-rss_limit_mb=4096", "-len_control=0", "-print_final_stats=1"];
/// Inputs to change are drawn by their age, not by how rare what they reach is. For thousands of inputs that reach tens
/// of thousands of features, keeping count of that took 39 % of the time of `use_corrupt`, which reached 1 % less code
/// without, after as many inputs. The quick targets keep it: `extent` reached 2 % less code.
const BY_AGE: &str = "-entropic=0";
/// What libFuzzer takes for a limit of seconds or inputs: 0 is none at all, and of a larger number it drops the upper
/// bits.
const LIMITED: std::ops::RangeInclusive<i64> = 1..=i32::MAX as i64;
/// How libFuzzer says how many inputs it tried.
const EXECUTED: &str = "stat::number_of_executed_units:";

/// Options of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only this target: parsers, `open_check`, `read_all`, `use_corrupt`, shapes, `two_threads`, failing, command,
    /// `roll_forward`, repair, extent, zones or journal.
    target: Option<String>,
    /// Seconds that each target runs.
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(LIMITED))]
    seconds: u32,
    /// Number of inputs that each target gets, however long that takes.
    #[arg(long, value_name = "INPUTS", conflicts_with = "seconds", value_parser = clap::value_parser!(u32).range(LIMITED))]
    runs: Option<u32>,
    /// Repeat the targets until the diary counts so many inputs, as in 1e9. Each turn of a target takes `--seconds`.
    #[arg(long, value_name = "INPUTS", conflicts_with_all = ["runs", "quick"])]
    total: Option<Total>,
    /// Add a line for each target to this file, and print the sum of all its lines [default with --total:
    /// fuzz/executions].
    #[arg(long, value_name = "FILE")]
    diary: Option<PathBuf>,
    /// Build the targets in half the time, half as fast: for a run of seconds.
    #[arg(long)]
    quick: bool,
}

/// A target that was built.
struct Built {
    target: &'static str,
    program: PathBuf,
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
            None => bail!(Usage(format!("there is no target {name}; the targets are {}", TARGETS.join(", ")))),
        },
    };
    tools::require(tools::FOR_FUZZ)?;
    let fuzz = process::root().join("fuzz");
    if let Some(total) = args.total {
        return plan::run(&fuzz, &build(&fuzz, targets, args.quick)?, args, total);
    }
    let mut diary = Diary::open(args.diary.as_deref())?;
    for built in build(&fuzz, targets, args.quick)? {
        let (line, status) = fuzz_one(&fuzz, &built, args)?;
        // Inputs count that were given before one broke the target.
        diary.add(&line)?;
        if !status.success() {
            bail!("{}: {status}", built.target);
        }
    }
    print!("{diary}");
    Ok(())
}

/// Builds targets.
fn build(fuzz: &Path, targets: Vec<&'static str>, quick: bool) -> Result<Vec<Built>> {
    let triple = host_triple()?;
    let manifest = fuzz.join("Cargo.toml");
    let profile = if quick { "quick" } else { "release" };
    // One build is quicker than two.
    let (comparing, counting): (Vec<&str>, Vec<&str>) =
        targets.into_iter().partition(|target| quick || *target == "parsers");
    let mut all = Vec::new();
    for (targets, flags, dir) in [
        (comparing, format!("{COUNTERS} {COMPARES}"), fuzz.join("target")),
        (counting, COUNTERS.to_owned(), fuzz.join("target/counting")),
    ] {
        if targets.is_empty() {
            continue;
        }
        let mut build = process::cargo(["build", "--locked", "--workspace", "--profile", profile, "--manifest-path"]);
        // A target triple keeps the flags away from build scripts.
        build.arg(&manifest).args(["--target", &triple]).env("RUSTFLAGS", flags).arg("--target-dir").arg(&dir);
        for target in &targets {
            build.args(["--bin", target]);
        }
        let programs = built::programs(&mut build)?;
        for target in targets {
            all.push(Built { target, program: built::named(&programs, target)? });
        }
    }
    Ok(all)
}

/// Bytes of an input at most: a selector and a block; some 24 patches and operations; some 85 steps of the extent
/// table, or 150 of the zones; some 40 patches and records
/// of the journal.
fn longest(target: &str) -> u32 {
    match target {
        "parsers" => 4097,
        "extent" | "zones" | "journal" => 513,
        _ => 2048,
    }
}

/// Runs a target to its end: returns the number of inputs, and how it ended.
fn fuzz_one(fuzz: &Path, Built { target, program }: &Built, args: &Args) -> Result<(Line, ExitStatus)> {
    let limit = match args.runs {
        Some(runs) => format!("-runs={runs}"),
        None => format!("-max_total_time={}", args.seconds),
    };
    let [corpus, artifacts] = ["corpus", "artifacts"].map(|name| fuzz.join(name).join(target));
    fs_err::create_dir_all(&corpus)?;
    fs_err::create_dir_all(&artifacts)?;
    let mut command = Command::new(program);
    command
        .arg(corpus)
        .args(Some(fuzz.join("regressions").join(target)).filter(|known| known.is_dir()))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(limit)
        .arg(format!("-max_len={}", longest(target)))
        .args(LIMITS);
    if !matches!(*target, "parsers" | "extent" | "zones" | "journal") {
        command.arg(BY_AGE);
    }
    if *target == "command" {
        // The target's output and its reports of damage are read by nobody. libFuzzer keeps its own output.
        command.arg("-close_fd_mask=3");
    }
    eprintln!("$ {}", process::shown(&command));
    // While a long run goes on, the sources may go on too.
    let commit = commit();
    let start = Instant::now();
    let mut child = command.stderr(Stdio::piped()).spawn().with_context(|| format!("cannot run {target}"))?;
    let mut executions = 0;
    for line in BufReader::new(child.stderr.take().context("it was piped")?).split(b'\n') {
        let line = line.context("what libFuzzer prints cannot be read")?;
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        if let Some(number) = line.strip_prefix(EXECUTED) {
            executions = number.trim().parse().with_context(|| format!("not a number of executions: {line}"))?;
        }
    }
    let status = child.wait()?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((Line { target: (*target).to_owned(), executions, seconds, commit }, status))
}

/// The commit of the sources, with a plus behind it if they were changed since.
fn commit() -> String {
    let git = |words: &[&str]| {
        let text = process::output(Command::new("git").current_dir(process::root()).args(words)).ok()?;
        Some(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else { return "-".to_owned() };
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        "Cargo.lock",
        "crates",
        "fuzz",
        ":!fuzz/executions",
    ]);
    if changed.is_some_and(|files| files.is_empty()) { commit } else { format!("{commit}+") }
}

/// The triple that the compiler builds for by itself.
fn host_triple() -> Result<String> {
    let text = process::output(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    match text.lines().find_map(|line| line.strip_prefix("host: ")) {
        Some(host) => Ok(host.to_owned()),
        None => bail!("rustc -vV names no host:\n{text}"),
    }
}
