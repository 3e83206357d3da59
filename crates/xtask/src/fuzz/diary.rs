//! How many inputs each target was given: in this run, or in all that one file speaks of.
//!
//! A line of the file has a run of a target: its name, the inputs, the seconds, and on which commit. Runs of several
//! programs at once, on one machine or on many, may add to a file, or have theirs put together. The project's own file,
//! `fuzz/executions`, is kept with the sources, so that the sums go on on the next machine. There all turns of a run on
//! one commit are one line of a target.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};

use crate::Result;

/// A run of a target.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) target: String,
    /// Inputs that it was given.
    pub(super) executions: u64,
    pub(super) seconds: f64,
    /// The commit of the sources, with a plus behind it if they were changed since; `-` if git does not say.
    pub(super) commit: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { target, executions, seconds, commit } = self;
        write!(f, "{target} {executions} {seconds:.1} {commit}")
    }
}

impl FromStr for Line {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Line> {
        let words: Vec<&str> = text.split_whitespace().collect();
        // Lines of earlier diaries name no commit.
        let (target, executions, seconds, commit) = match words[..] {
            [target, executions, seconds] => (target, executions, seconds, "-"),
            [target, executions, seconds, commit] => (target, executions, seconds, commit),
            _ => bail!("not a target, its inputs, its seconds and the commit: {text}"),
        };
        let executions = executions.parse().with_context(|| format!("not a number of inputs: {executions}"))?;
        let seconds = seconds.parse().with_context(|| format!("not a number of seconds: {seconds}"))?;
        Ok(Line { target: target.to_owned(), executions, seconds, commit: commit.to_owned() })
    }
}

/// The inputs that the targets were given.
#[derive(Debug, Default)]
pub(super) struct Diary {
    path: Option<PathBuf>,
    lines: Vec<Line>,
}

impl Diary {
    /// Goes on with the counts in the file, which is created if it is missing; without one, begins with nothing.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written, or is no diary.
    pub(super) fn open(path: Option<&Path>) -> Result<Diary> {
        let Some(path) = path else { return Ok(Diary::default()) };
        let what = || format!("the diary {}", path.display());
        let mut file = open_alone(path)?;
        let lines = read(&mut file).with_context(what)?;
        Ok(Diary { path: Some(path.to_owned()), lines })
    }

    /// Inputs of all runs.
    pub(super) fn sum(&self) -> u64 {
        self.lines.iter().map(|line| line.executions).sum()
    }

    /// Seconds that a target had in all runs.
    pub(super) fn seconds(&self, target: &str) -> f64 {
        self.lines.iter().filter(|line| line.target == target).map(|line| line.seconds).sum()
    }

    /// Adds a run: to the line of its target and commit, if there is one.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn add(&mut self, line: &Line) -> Result<()> {
        if let Some(path) = &self.path {
            // Others may have added to it meanwhile, and wait now.
            let mut file = open_alone(path)?;
            self.lines = read(&mut file)?;
            put(&mut self.lines, line);
            let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
            file.rewind()?;
            file.write_all(text.as_bytes())?;
            file.set_len(text.len() as u64)?;
        } else {
            put(&mut self.lines, line);
        }
        Ok(())
    }
}

/// Opens the file, which is created if it is missing, so that no other program can at the same time.
fn open_alone(path: &Path) -> Result<File> {
    let what = || format!("the diary {}", path.display());
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).with_context(what)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).with_context(what)?;
    Ok(file)
}

fn read(file: &mut File) -> Result<Vec<Line>> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    text.lines().map(Line::from_str).collect()
}

fn put(lines: &mut Vec<Line>, new: &Line) {
    let same = |line: &&mut Line| line.target == new.target && line.commit == new.commit;
    match lines.iter_mut().find(same) {
        Some(line) => {
            line.executions += new.executions;
            line.seconds += new.seconds;
        }
        None => lines.push(new.clone()),
    }
}

/// A table, one line for each target.
impl fmt::Display for Diary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut targets: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
        for line in &self.lines {
            let sum = targets.entry(&line.target).or_default();
            *sum = (sum.0 + line.executions, sum.1 + line.seconds);
        }
        writeln!(f, "\n{:<13} {:>12} {:>9} {:>9}", "target", "inputs", "seconds", "a second")?;
        for (target, (executions, seconds)) in targets {
            let rate = executions as f64 / seconds.max(0.001);
            writeln!(f, "{target:<13} {executions:>12} {seconds:>9.0} {rate:>9.0}")?;
        }
        writeln!(f, "{:<13} {:>12}", "all", self.sum())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_diary_adds_up_what_several_runs_did() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let path = dir.path().join("diary");
        let run = |target: &str, executions, commit: &str| Line {
            target: target.into(),
            executions,
            seconds: 2.0,
            commit: commit.into(),
        };
        fs::write(&path, "extent 200 1.0\n").expect("it can be written");
        let mut diary = Diary::open(Some(&path)).expect("a line without a commit is one");
        let mut other = Diary::open(Some(&path)).expect("two may have it");
        diary.add(&run("extent", 60, "abc")).expect("it can be written");
        diary.add(&run("repair", 5, "abc")).expect("it can be written");
        other.add(&run("extent", 40, "abc")).expect("it can be written");
        let text = fs::read_to_string(&path).expect("it can be read");
        assert_eq!(text, "extent 200 1.0 -\nextent 100 4.0 abc\nrepair 5 2.0 abc\n");
        let mut diary = Diary::open(Some(&path)).expect("it can be read");
        diary.add(&run("extent", 100, "def+")).expect("it can be written");
        let table = diary.to_string();
        assert!(table.contains("extent                 400         7        57"), "{table}");
        assert!(table.contains("repair                   5         2         2"), "{table}");
        assert_eq!(diary.sum(), 405);
        assert!((diary.seconds("repair") - 2.0).abs() < 1e-9 && diary.seconds("parsers") == 0.0);
        assert!(table.ends_with("all                    405\n"), "{table}");
        fs::write(&path, "extent many\n").expect("it can be written");
        assert!(Diary::open(Some(&path)).is_err());
    }
}
