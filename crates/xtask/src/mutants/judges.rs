//! The tests of the copy without a fault: how long each takes, and which places it reaches.
//!
//! A fault whose place a test does not reach cannot be noticed by it. So each fault meets the tests that reach it, each
//! in a process of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use super::build::Program;
use super::trial::{self, End};
use super::{pool, support};
use crate::{Result, process};

/// The longest time of a test that judges.
const MOST: Duration = Duration::from_secs(60);

/// A test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judge {
    pub(super) program: Program,
    pub(super) test: String,
    /// It was not there, or no judge, when the tests ran for the build before.
    pub(super) is_new: bool,
    pub(super) took: Duration,
    /// The numbers of the faults whose places it reaches.
    pub(super) reaches: Vec<u32>,
}

impl Judge {
    /// Runs it alone, for so long at most.
    pub(super) fn command(&self, limit: Duration) -> Command {
        command(&self.program, &self.test, limit)
    }
}

fn command(program: &Program, test: &str, limit: Duration) -> Command {
    // A fault may ask for all memory: 24 GiB of addresses are enough for every test. And one that hangs ends although
    // this program was stopped meanwhile, a little behind the time at which this one would end it.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 25165824; exec timeout -s KILL \"$0\" \"$@\""]);
    command.arg((limit.as_secs() + 5).to_string()).arg(&program.path);
    command.args(["--exact", test, "--test-threads", "1"]).current_dir(&program.home);
    command.env("CARGO_MANIFEST_DIR", &program.home).env("RUST_BACKTRACE", "0");
    command
}

/// Runs each test of the programs once, or reads from `cache` what it did when the same programs ran before.
///
/// # Errors
///
/// If a program does not list its tests, or hardly a test passes.
pub(super) fn ask(programs: &[Program], cache: &Path, scratch: &Path) -> Result<Vec<Judge>> {
    let stamp = stamp(programs)?;
    if let Some(known) = read(cache, &stamp, programs) {
        return Ok(known);
    }
    let before = names(cache);
    let mut tests = Vec::new();
    for program in programs {
        let listed = |more: &[&str]| -> Result<Vec<String>> {
            let mut command = Command::new(&program.path);
            command.args(["--list", "--format", "terse"]).args(more).current_dir(&program.home);
            let text = String::from_utf8(process::output(&mut command)?).context("names of tests are text")?;
            Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
        };
        let by_hand = listed(&["--ignored"])?;
        tests.extend(listed(&[])?.into_iter().filter(|test| !by_hand.contains(test)).map(|test| (program, test)));
    }
    println!("{} tests run without a fault", tests.len());
    // A run that was stopped may have left lists there, and these are written to their ends.
    if scratch.exists() {
        fs::remove_dir_all(scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    }
    fs::create_dir_all(scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let ran = pool::each(&tests, |index, (program, test)| {
        let list = scratch.join(format!("reached-{index}"));
        let (end, took) = trial::watch(command(program, test, MOST).env(support::REACHED, &list), MOST)?;
        let bytes = fs::read(&list).unwrap_or_default();
        let _ = fs::remove_file(&list);
        let (numbers, _) = bytes.as_chunks::<4>();
        let reaches = numbers.iter().map(|&number| u32::from_le_bytes(number)).collect();
        let is_new = before.as_ref().is_some_and(|before| !before.contains(&format!("{} {test}", program.name)));
        let judge = Judge { program: Program::clone(program), test: test.clone(), is_new, took, reaches };
        Ok(if end == End::Passed { Ok(judge) } else { Err(format!("{} {test}: {end:?}", program.name)) })
    })?;
    let (judges, refused): (Vec<_>, Vec<_>) = ran.into_iter().partition(std::result::Result::is_ok);
    let judges: Vec<Judge> = judges.into_iter().flatten().collect();
    let refused: Vec<String> = refused.into_iter().filter_map(std::result::Result::err).collect();
    for test in &refused {
        println!("no judge: {test}");
    }
    if refused.len() * 10 > tests.len() {
        bail!("{} of {} tests fail without a fault", refused.len(), tests.len());
    }
    write(cache, &stamp, &judges)?;
    Ok(judges)
}

/// Tells builds apart.
fn stamp(programs: &[Program]) -> Result<String> {
    let mut stamp = String::new();
    for program in programs {
        let about = fs::metadata(&program.path).with_context(|| format!("{}", program.path.display()))?;
        let since = about.modified()?.duration_since(std::time::UNIX_EPOCH)?.as_nanos();
        stamp.push_str(&format!("{}:{}:{since} ", program.name, about.len()));
    }
    Ok(stamp)
}

fn write(cache: &Path, stamp: &str, judges: &[Judge]) -> Result<()> {
    let mut text = format!("{stamp}\n");
    for judge in judges {
        let numbers: Vec<String> = judge.reaches.iter().map(u32::to_string).collect();
        text.push_str(&format!(
            "{}\t{} {}\t{}\t{}\t{}\n",
            judge.program.path.display(),
            judge.program.name,
            judge.test,
            if judge.is_new { "new" } else { "" },
            judge.took.as_micros(),
            numbers.join(" ")
        ));
    }
    fs::write(cache, text).with_context(|| format!("cannot write {}", cache.display()))
}

/// Programs and tests of the build before.
fn names(cache: &Path) -> Option<BTreeSet<String>> {
    let text = fs::read_to_string(cache).ok()?;
    Some(text.lines().skip(1).filter_map(|line| line.split('\t').nth(1)).map(str::to_owned).collect())
}

fn read(cache: &Path, stamp: &str, programs: &[Program]) -> Option<Vec<Judge>> {
    let text = fs::read_to_string(cache).ok()?;
    let mut lines = text.lines();
    if lines.next()? != stamp {
        return None;
    }
    let by_path: BTreeMap<PathBuf, &Program> = programs.iter().map(|program| (program.path.clone(), program)).collect();
    lines
        .map(|line| {
            let mut fields = line.split('\t');
            let program = (*by_path.get(Path::new(fields.next()?))?).clone();
            let test = fields.next()?.strip_prefix(&program.name)?.trim_start().to_owned();
            let is_new = fields.next()? == "new";
            let took = Duration::from_micros(fields.next()?.parse().ok()?);
            let reaches =
                fields.next()?.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>().ok()?;
            Some(Judge { program, test, is_new, took, reaches })
        })
        .collect()
}
