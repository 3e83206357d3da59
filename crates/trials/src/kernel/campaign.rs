//! All scripts of a directory: their states are looked at on all processors.
//!
//! | File | What it is |
//! |---|---|
//! | `scripts` | a line for each: its name, and its text |
//! | `grounds/GROUND.img` | the volumes that scripts begin on |
//! | `NAME.log`, `NAME.report` | what the kernel wrote, and what it said |
//! | `samples/NAME-N.img` | states for the kernel to mount |
//! | `findings/NAME-N.img` | states that are not as they must be |

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use f2fs_device::MemoryDevice;
use f2fs_device_test::{CrashLog, Cut, Random};
use f2fs_sync::Mutex;

use super::recording::{Kernel, recording};
use super::script::{Floor, Ground, Script};
use crate::contents::Contents;
use crate::explore::{Explorer, Plan, Tally};
use crate::pool;
use crate::record::Recording;

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory.
    pub directory: PathBuf,
    /// Distinct states to look at, about.
    pub states: u64,
    /// How states of one script are chosen; the quota is set by the campaign.
    pub plan: Plan,
    /// Where chance begins.
    pub seed: u64,
    /// Threads; 0: as many as processors.
    pub threads: usize,
    /// States of each script that are kept for the kernel.
    pub samples: usize,
    /// Whether the device lied whenever it said that it had flushed: the judge has to see that.
    pub lying: bool,
    /// Whether the known fault of Linux, a sync that returns early, is excused ([`early`](super::early)).
    pub known: bool,
    /// Only this script.
    pub script: Option<String>,
    /// Only these states of it: a cut, and those in the recoveries that follow.
    pub cuts: Vec<Cut>,
}

/// A state that is not as it must be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The script's name.
    pub name: String,
    /// Its text.
    pub script: String,
    /// The cuts.
    pub cuts: Vec<String>,
    /// The fault.
    pub what: String,
    /// Where the state is.
    pub image: Option<PathBuf>,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The counts, by ground.
    pub tallies: BTreeMap<&'static str, Tally>,
    /// Operations that the kernel did, and that it refused.
    pub operations: (u64, u64),
    /// The faults that were found.
    pub findings: Vec<Finding>,
    /// Syncs of files.
    pub syncs: u64,
    /// Those that returned early: the script, and the step from 1 on.
    pub early: Vec<(String, usize)>,
    /// Scripts of which no state was looked at, and why.
    pub broken: Vec<(String, String)>,
    /// How long it took.
    pub took: Duration,
    /// Threads that worked.
    pub threads: usize,
}

impl Outcome {
    /// All grounds together.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.tallies.values().fold(Tally::default(), |sum, tally| sum.plus(*tally))
    }
}

/// The scripts of a directory, with their names.
///
/// # Errors
/// What cannot be read, for people.
pub fn scripts(directory: &Path) -> Result<Vec<(String, Script)>, String> {
    let path = directory.join("scripts");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let script = |line: &str| {
        let (name, script) = line.split_once(' ').ok_or_else(|| format!("`{line}` is not a script with a name"))?;
        Ok((name.to_owned(), script.parse()?))
    };
    text.lines().map(script).collect()
}

/// Where the image of a ground lies.
#[must_use]
pub fn image_of(directory: &Path, ground: Ground) -> PathBuf {
    directory.join("grounds").join(format!("{}.img", ground.name()))
}

/// Looks at the states of all scripts. `progress` is told of scripts done, of how many, and of distinct states.
///
/// # Errors
/// What cannot be read, for people.
pub fn run(settings: &Settings, progress: &(dyn Fn(u64, u64, u64) + Sync)) -> Result<Outcome, String> {
    let begun = Instant::now();
    let mut jobs = scripts(&settings.directory)?;
    if let Some(only) = &settings.script {
        jobs.retain(|(name, _)| name == only);
        if jobs.is_empty() {
            return Err(format!("there is no script {only} in {}", settings.directory.display()));
        }
    }
    let mut floors = BTreeMap::new();
    for (_, script) in &jobs {
        if let Entry::Vacant(floor) = floors.entry(script.ground) {
            floor.insert(Floor::load(script.ground, &image_of(&settings.directory, script.ground))?);
        }
    }
    let all = jobs.len() as u64;
    // Many states are the same as others; short scripts have fewer than their part.
    let quota = (settings.states + settings.states / 2).div_ceil(all.max(1)) as usize;
    let contents = Contents::default();
    let outcome = Mutex::new((0, Outcome { threads: pool::threads(settings.threads), ..Outcome::default() }));
    pool::each(&jobs, settings.threads, |index, (name, script)| {
        let floor = &floors[&script.ground];
        let plan = Plan { quota, whole: true, ..settings.plan };
        let random = Random::new(settings.seed ^ (index as u64) << 20);
        let print = script.ground.print();
        let mut explorer = Explorer::new(plan, random.clone(), print, &contents);
        let explored = pool::caught(|| {
            let (mut kernel, refused) = load(&settings.directory, name, script, floor)?;
            if settings.known {
                kernel.excuse();
            }
            let Kernel { mut recording, early } = kernel;
            if settings.lying {
                recording.log = recording.log.without_flushes();
            }
            keep_samples(&recording, settings, name, random)?;
            let result = match settings.cuts.is_empty() {
                true => explorer.explore(&recording),
                false => explorer.repeat(&recording, &settings.cuts),
            };
            explorer.findings.extend(result.err().map(|violation| *violation));
            let steps = &recording.lanes[0].steps;
            let syncs = steps.iter().filter(|step| step.fsynced.is_some()).count();
            Ok((steps.len() as u64, refused, syncs as u64, early))
        });
        let findings = std::mem::take(&mut explorer.findings);
        let finding = |(index, violation): (usize, crate::explore::Violation)| Finding {
            name: name.clone(),
            script: script.to_string(),
            cuts: violation.cuts.iter().map(Cut::to_string).collect(),
            what: violation.what,
            image: save(&violation.image, &settings.directory.join("findings"), &format!("{name}-{index}.img")),
        };
        let findings: Vec<Finding> = findings.into_iter().enumerate().map(finding).collect();
        let mut outcome = outcome.lock();
        let (done, outcome) = &mut *outcome;
        match explored {
            Ok((did, refused, syncs, early)) => {
                outcome.syncs += syncs;
                outcome.early.extend(early.into_iter().map(|step| (name.clone(), step + 1)));
                outcome.operations.0 += did;
                outcome.operations.1 += refused;
            }
            Err(why) => outcome.broken.push((name.clone(), why)),
        }
        let tally = outcome.tallies.entry(script.ground.name()).or_default();
        *tally = tally.plus(explorer.tally);
        outcome.findings.extend(findings);
        *done += 1;
        progress(*done, all, outcome.total().distinct);
        true
    });
    let (_, outcome) = outcome.into_inner();
    Ok(Outcome { took: begun.elapsed(), ..outcome })
}

/// The kernel's answers to a script, for people.
///
/// # Errors
/// What cannot be read, for people.
pub fn steps(directory: &Path, name: &str) -> Result<String, String> {
    let all = scripts(directory)?;
    let (_, script) =
        all.iter().find(|(other, _)| other == name).ok_or_else(|| format!("there is no script {name}"))?;
    let floor = Floor::load(script.ground, &image_of(directory, script.ground))?;
    Ok(load(directory, name, script, &floor)?.0.recording.to_string())
}

/// The recording of a script, and how many operations were refused.
fn load(directory: &Path, name: &str, script: &Script, floor: &Floor) -> Result<(Kernel, u64), String> {
    let about = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let path = directory.join(format!("{name}.report"));
    let text = fs::read_to_string(&path).map_err(|error| about(&path, &error))?;
    let report: Vec<_> =
        text.lines().map(str::parse).collect::<Result<_, String>>().map_err(|error| about(&path, &error))?;
    let path = directory.join(format!("{name}.log"));
    let file = File::open(&path).map_err(|error| about(&path, &error))?;
    let log = CrashLog::from_write_log_on(floor.device.snapshot(), BufReader::new(file));
    let log = log.map_err(|error| about(&path, &error))?;
    let kernel = recording(floor, script, log, &report)?;
    // One line is the beginning.
    let refused = report.len() - 1 - kernel.recording.lanes[0].steps.len();
    Ok((kernel, refused as u64))
}

/// Keeps random states for the kernel to mount.
fn keep_samples(recording: &Recording, settings: &Settings, name: &str, mut random: Random) -> Result<(), String> {
    if settings.samples == 0 {
        return Ok(());
    }
    let directory = settings.directory.join("samples");
    let mut replay = recording.log.replay();
    let (mut starts, mut at) = (Vec::new(), 0);
    loop {
        replay.advance_to(at);
        let end = replay.epoch_end();
        starts.push((at, end));
        let next = replay.epoch_behind(end);
        if next == at || next >= recording.log.events().len() {
            break;
        }
        at = next;
    }
    for index in 0..settings.samples {
        let (start, end) = starts[random.below(starts.len())];
        let mut replay = recording.log.replay();
        replay.advance_to(start);
        let cuts = settings.plan.cuts.cuts(&replay, end, || random.next());
        if let Some(cut) = random.pick(&cuts).cloned() {
            save(&replay.cut(&cut, 0).0, &directory, &format!("{name}-{index}.img"))
                .ok_or_else(|| format!("a sample cannot be written to {}", directory.display()))?;
        }
    }
    Ok(())
}

fn save(image: &MemoryDevice, directory: &Path, name: &str) -> Option<PathBuf> {
    fs::create_dir_all(directory).ok()?;
    let path = directory.join(name);
    image.save(&path).ok()?;
    Some(path)
}
