//! The command line of `kernel-trials`.
//!
//! | Exit code | Meaning |
//! |---|---|
//! | 0 | everything is as it must be |
//! | 1 | something is not, or could not be looked at: it is printed |
//! | 2 | the command line is wrong |

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use f2fs_device_test::{Cut, CutPlan};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::campaign::{self, Outcome, Settings, image_of};
use super::perform::{self, Perform};
use super::script::{Floor, Ground, Script};
use crate::base::{Base, BaseKind};
use crate::explore::Plan;

#[derive(Debug, Parser)]
#[command(name = "kernel-trials", about = "Judges the crash states that Linux leaves of recorded scripts")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes scripts, and the volumes that they begin on, into a new directory.
    Scripts {
        /// The directory.
        directory: PathBuf,
        /// Random scripts.
        #[arg(long, default_value_t = 40)]
        count: usize,
        /// Where chance begins.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// All sequences of one operation as well.
        #[arg(long)]
        enumerated: bool,
        /// Instead of these: this script. Once for each.
        #[arg(long = "script")]
        scripts: Vec<Script>,
    },
    /// Does operations on a mounted file system, and says after each how long the log of its device is.
    Perform(Perform),
    /// Looks at the states of scripts that the kernel ran.
    Judge(Judge),
}

#[derive(Debug, clap::Args)]
struct Judge {
    /// The directory.
    directory: PathBuf,
    /// Distinct states to look at, about.
    #[arg(long, default_value_t = 100_000)]
    states: u64,
    /// Where chance begins.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; 0: as many as processors.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// One in so many states is used, closed, and looked at again.
    #[arg(long, default_value_t = 8)]
    used: usize,
    /// One in so many of those that are used is given to fsck.f2fs (0: none).
    #[arg(long, default_value_t = 100)]
    fsck: usize,
    /// States of each script that are kept for the kernel to mount.
    #[arg(long, default_value_t = 0)]
    samples: usize,
    /// Look at the states of a device that flushed nothing: they break promises, which has to be seen.
    #[arg(long)]
    lying: bool,
    /// Excuse the known fault of Linux: a sync that returns before its node, the first one after a checkpoint, is
    /// durable. They are counted, excused or not, and no other sync is excused.
    #[arg(long)]
    known: bool,
    /// Violations of each script that are kept.
    #[arg(long, default_value_t = 3)]
    findings: usize,
    /// Only the script of this name.
    #[arg(long)]
    script: Option<String>,
    /// Only this state of it; once more for each crash during recovery.
    #[arg(long, requires = "script")]
    cut: Vec<Cut>,
    /// With --script: print what the kernel did, and look at no state.
    #[arg(long, requires = "script")]
    steps: bool,
    /// For programs.
    #[arg(long)]
    json: bool,
}

/// Does what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Scripts { directory, count, seed, enumerated, scripts } => {
            write_scripts(&directory, count, seed, enumerated, scripts).map(|()| true)
        }
        Command::Perform(arguments) => perform::run(&arguments).map(|()| true),
        Command::Judge(arguments) => judge(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("kernel-trials: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Of so many random scripts how many begin on each ground.
const SHARES: [(Ground, usize); 8] = [
    (Ground::Mkfs, 3),
    (Ground::MkfsChecksums, 1),
    (Ground::Mkfs, 3),
    (Ground::Made(BaseKind::Tight), 1),
    (Ground::Mkfs, 2),
    (Ground::MkfsChecksums, 1),
    (Ground::Made(BaseKind::Broad), 1),
    (Ground::Made(BaseKind::Plain), 1),
];

fn write_scripts(directory: &Path, count: usize, seed: u64, enumerated: bool, own: Vec<Script>) -> anyhow::Result<()> {
    fs::create_dir_all(directory.join("grounds")).with_context(|| directory.display().to_string())?;
    if fs::exists(directory.join("scripts"))? {
        bail!("{} has scripts already", directory.display());
    }
    let make = |ground: Ground| -> anyhow::Result<Floor> {
        let image = image_of(directory, ground);
        ground.make(&image).map_err(anyhow::Error::msg)?;
        Floor::load(ground, &image).map_err(anyhow::Error::msg)
    };
    let mut all = own;
    if all.is_empty() {
        let floors = Ground::ALL.into_iter().map(make).collect::<Result<Vec<_>, _>>()?;
        let grounds: Vec<Ground> = SHARES.iter().flat_map(|(ground, share)| vec![*ground; *share]).collect();
        for index in 0..count {
            let ground = grounds[index % grounds.len()];
            let floor = floors.iter().find(|floor| floor.ground == ground).context("no such ground")?;
            all.push(Script::by_chance(floor, seed << 32 | index as u64));
        }
        if enumerated {
            all.extend(Script::enumerated(&Base::new(BaseKind::Plain)?, 1));
        }
    } else {
        let mut grounds: Vec<Ground> = all.iter().map(|script| script.ground).collect();
        grounds.sort_unstable();
        grounds.dedup();
        grounds.into_iter().try_for_each(|ground| make(ground).map(drop))?;
    }
    let mut text = String::new();
    for (index, script) in all.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{index:04} {script}");
    }
    fs::write(directory.join("scripts"), text)?;
    println!("{} scripts in {}", all.len(), directory.display());
    Ok(())
}

fn judge(arguments: &Judge) -> anyhow::Result<bool> {
    let settings = Settings {
        directory: arguments.directory.clone(),
        states: arguments.states,
        plan: Plan {
            cuts: CutPlan::default(),
            quota: 0,
            used: arguments.used.max(1),
            again: 6,
            again_quota: 12,
            fsck: arguments.fsck,
            whole: true,
            endured: arguments.findings,
        },
        seed: arguments.seed,
        threads: arguments.threads,
        samples: arguments.samples,
        lying: arguments.lying,
        known: arguments.known,
        script: arguments.script.clone(),
        cuts: arguments.cut.clone(),
    };
    if let Some(name) = arguments.script.as_ref().filter(|_| arguments.steps) {
        print!("{}", campaign::steps(&arguments.directory, name).map_err(anyhow::Error::msg)?);
        return Ok(true);
    }
    // A panic is a finding like any other; where it happened is worth a line.
    std::panic::set_hook(Box::new(|info| eprintln!("panic: {info}")));
    let style = ProgressStyle::with_template("[{bar:40}] {pos}/{len} {msg} {eta}");
    let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let outcome = campaign::run(&settings, &|done, all, states| {
        bar.set_length(all);
        bar.set_position(done);
        bar.set_message(format!("{states} distinct states"));
    });
    bar.finish_and_clear();
    let outcome = outcome.map_err(anyhow::Error::msg)?;
    if arguments.json {
        println!("{:#}", as_json(&outcome));
    } else {
        print_outcome(&outcome, &arguments.directory);
    }
    Ok(outcome.findings.is_empty() && outcome.broken.is_empty())
}

fn as_json(outcome: &Outcome) -> serde_json::Value {
    let findings = outcome.findings.iter().map(|finding| {
        json!({
            "name": finding.name, "script": finding.script, "cuts": finding.cuts, "what": finding.what,
            "image": finding.image,
        })
    });
    json!({
        "total": outcome.total(), "grounds": outcome.tallies, "seconds": outcome.took.as_secs_f64(),
        "done": outcome.operations.0, "refused": outcome.operations.1,
        "syncs": outcome.syncs,
        "early": outcome.early.iter().map(|(name, step)| json!({"name": name, "step": step})).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(), "broken": outcome.broken,
    })
}

fn print_outcome(outcome: &Outcome, directory: &Path) {
    println!("ground          scripts   epochs      cuts   states distinct     used    again     torn   fsck");
    let row = |name: &str, tally: &crate::explore::Tally| {
        let crate::explore::Tally { workloads, epochs, cuts, states, distinct, used, again, torn, fsck, .. } = tally;
        println!(
            "{name:<16}{workloads:>7} {epochs:>8} {cuts:>9} {states:>8} {distinct:>8} {used:>8} {again:>8} {torn:>8} {fsck:>6}"
        );
    };
    for (ground, tally) in &outcome.tallies {
        row(ground, tally);
    }
    let (total, seconds) = (outcome.total(), outcome.took.as_secs_f64());
    row("all", &total);
    println!(
        "{} distinct states of {} operations ({} more were refused) in {seconds:.1} s on {} processors, {:.0} a minute; {} violations",
        total.distinct,
        outcome.operations.0,
        outcome.operations.1,
        outcome.threads,
        total.states as f64 / seconds * 60.0,
        outcome.findings.len(),
    );
    if let Some((name, step)) = outcome.early.first() {
        println!(
            "{} of {} syncs returned before their node, the first after a checkpoint, was durable; one is operation {step} of {name}",
            outcome.early.len(),
            outcome.syncs
        );
    }
    for finding in &outcome.findings {
        let cuts: String = finding.cuts.iter().map(|cut| format!(" --cut {cut}")).collect();
        println!("\nVIOLATION in {} `{}`\n  {}", finding.name, finding.script, finding.what);
        if let Some(image) = &finding.image {
            println!("  the state: {}", image.display());
        }
        println!("  again: kernel-trials judge {} --script {}{cuts}", directory.display(), finding.name);
    }
    for (name, why) in &outcome.broken {
        println!("\nNOT LOOKED AT: {name}: {why}");
    }
}
