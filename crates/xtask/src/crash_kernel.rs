//! `cargo xtask crash-kernel`: crash states of Linux's F2FS.
//!
//! ```text
//!   kernel-trials scripts --> DIR/scripts, DIR/grounds
//!   the guest: each script on a device of `f2fs ublk add --record` --> DIR/NAME.log, DIR/NAME.report
//!   kernel-trials judge --> the verdict, DIR/findings, DIR/samples
//!   the guest: each sample and finding is mounted --> its manifest, compared with ours
//! ```
//!
//! It is a chore and no command of `f2fs`: it needs a virtual machine, a kernel's package and the crates of the trials.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::guest::{self, Bench, GuestOutput, bench, cache, kernel, programs};
use crate::{Result, files, process};

/// How long the kernel may take for all scripts of a mode, or all samples.
const LIMIT: Duration = Duration::from_secs(2 * 3600);
/// States that one boot mounts: their images have to fit the host's disk.
const MOUNTED: usize = 48;

/// The promise that Linux gives of an `fsync` (mount option `fsync_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Posix,
    Strict,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Posix => "posix",
            Mode::Strict => "strict",
        }
    }
}

/// The file system of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    F2fs,
}

/// Options of `cargo xtask crash-kernel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file system of the kernel.
    #[arg(long, value_enum, default_value_t = Kind::F2fs)]
    fs: Kind,
    /// The values of the mount option `fsync_mode` to run with, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Mode::Posix, Mode::Strict])]
    fsync_mode: Vec<Mode>,
    /// Number of random scripts.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Number of distinct states to check for each mode, about.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    states: u64,
    /// The seed of the random scripts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run all sequences of one operation as well.
    #[arg(long)]
    enumerated: bool,
    /// States of each script that the kernel mounts: at most so many, and 48 in all.
    #[arg(long, default_value_t = 1)]
    samples: usize,
    /// Run this script instead of random ones, as in `mkfs: create /a; write /a 0 100; sync /a`. It may be given more
    /// than once.
    #[arg(long = "script")]
    scripts: Vec<String>,
    /// Excuse nothing. Without this option, syncs that return early promise nothing (`kernel-trials judge --known`).
    #[arg(long)]
    nothing_excused: bool,
    /// The series of Debian's kernels that runs the scripts, such as 6.12 or 7.3.
    #[arg(long, value_name = "SERIES", default_value = kernel::SERIES, value_parser = guest::series)]
    kernel: String,
    /// Run for a minute or two only.
    #[arg(long)]
    quick: bool,
}

/// Runs the scripts, judges their states, and lets the kernel mount some.
///
/// # Errors
///
/// If something cannot be run, or a state is not as it must be.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Kind::F2fs = args.fs;
    let bench = bench(&args.kernel, args.quick)?;
    // It runs in the guest and here.
    let trials = &programs::build(&cache(), &[("f2fs-trials", "kernel-trials")])?[0];
    let mut bad = Vec::new();
    for mode in &args.fsync_mode {
        let home = process::root().join("target/crash-kernel").join(mode.name());
        if let Err(error) = run_mode(args, *mode, &bench, trials, &home) {
            println!("{}: {error:#}", mode.name());
            bad.push(mode.name());
        }
    }
    if bad.is_empty() {
        Ok(())
    } else {
        bail!("states are not as they must be, or were not looked at: {}", bad.join(", "))
    }
}

fn run_mode(args: &Args, mode: Mode, bench: &Bench, trials: &Path, home: &Path) -> Result<()> {
    files::remove_dir(home)?;
    let (count, states) = if args.quick { (8, 4000) } else { (args.count, args.states) };
    let mut command = Command::new(trials);
    command.arg("scripts").arg(home).args(["--count", &count.to_string(), "--seed", &args.seed.to_string()]);
    command.args(args.enumerated.then_some("--enumerated"));
    for script in &args.scripts {
        command.args(["--script", script]);
    }
    process::run(&mut command)?;

    let begun = Instant::now();
    let performed = perform(bench, mode, trials, home)?;
    println!("{}: the kernel was done after {:.0} s", mode.name(), begun.elapsed().as_secs_f32());
    for path in files::entries(&performed.share)? {
        if path.extension().is_some_and(|kind| kind == "log" || kind == "report")
            && let Some(name) = path.file_name()
        {
            fs::rename(&path, home.join(name)).with_context(|| format!("cannot move {}", path.display()))?;
        }
    }

    let mut command = Command::new(trials);
    command.arg("judge").arg(home).args(["--states", &states.to_string(), "--seed", &args.seed.to_string()]);
    command.args((!args.nothing_excused).then_some("--known"));
    let judged = process::run(command.args(["--samples", &args.samples.to_string()]));
    let mounted = mount(bench, mode, home)?;
    println!("{}: {mounted}", mode.name());
    judged
}

/// Runs the scripts in the kernel.
fn perform(bench: &Bench, mode: Mode, trials: &Path, home: &Path) -> Result<GuestOutput> {
    let mut boot = bench.guest.boot(&format!("crash-kernel-{}", mode.name())).processors(2);
    boot = boot.program(trials).carry(&home.join("scripts"));
    for ground in files::entries(home.join("grounds"))? {
        boot = boot.carry(&ground);
    }
    let script = format!("MODE={}\n{}", mode.name(), include_str!("crash_kernel.sh"));
    let output = boot.run(&script, LIMIT)?;
    if output.status != 0 {
        bail!("exit status {} in the guest\n{}", output.status, output.log.trim());
    }
    Ok(output)
}

/// Lets the kernel mount states, those first that are not as they must be, and compares what it recovers with what is
/// recovered here.
fn mount(bench: &Bench, mode: Mode, home: &Path) -> Result<String> {
    let mut images = Vec::new();
    for directory in ["findings", "samples"] {
        let directory = home.join(directory);
        if directory.exists() {
            images.extend(files::entries(&directory)?);
        }
    }
    images.truncate(MOUNTED);
    let mut boot = bench.guest.boot(&format!("crash-kernel-{}-mount", mode.name()));
    let mut script = String::new();
    let name = |index: usize| format!("state-{index:03}.img");
    let carried = home.join("carried");
    fs_err::create_dir_all(&carried)?;
    for (index, image) in images.iter().enumerate() {
        let link = carried.join(name(index));
        fs::hard_link(image, &link).with_context(|| link.display().to_string())?;
        boot = boot.carry(&link);
        // Writing to a String cannot fail.
        let _ = writeln!(
            script,
            "cp /share/{name} /tmp/state\n\
             losetup /dev/loop0 /tmp/state\n\
             if mount -t f2fs /dev/loop0 /mnt; then\n\
             guest-agent manifest /mnt > /share/{name}.manifest\n\
             umount /mnt\n\
             fi\n\
             losetup -d /dev/loop0",
            name = name(index)
        );
    }
    if images.is_empty() {
        return Ok("no state was kept for the kernel".to_owned());
    }
    let output = boot.run(&script, LIMIT)?;
    let (mut same, mut other) = (0, Vec::new());
    for (index, image) in images.iter().enumerate() {
        let there = fs::read_to_string(output.share.join(format!("{}.manifest", name(index))));
        let here = bench.here.manifest(image);
        let shown = image.strip_prefix(home).unwrap_or(image).display();
        match (here, there) {
            (Ok(here), Ok(there)) if here == there => same += 1,
            (Ok(here), Ok(there)) => other.push(format!("{shown}: {}", difference(&here, &there))),
            (Err(error), _) => other.push(format!("{shown}: not read here: {error:#}")),
            (_, Err(_)) => other.push(format!("{shown}: not mounted by the kernel")),
        }
    }
    files::remove_dir(&carried)?;
    let all = images.len();
    if other.is_empty() {
        return Ok(format!("{same} states were mounted by the kernel, and are there what they are here"));
    }
    bail!("{same} of {all} states are in the kernel what they are here; others:\n{}", other.join("\n"))
}

/// A few lines of two manifests that differ.
fn difference(here: &str, there: &str) -> String {
    let only = |one: &str, other: &str| {
        let lines: Vec<&str> = one.lines().filter(|line| !other.lines().any(|there| there == *line)).take(4).collect();
        lines.join("\n    ")
    };
    format!("only here:\n    {}\n  only in the kernel:\n    {}", only(here, there), only(there, here))
}
