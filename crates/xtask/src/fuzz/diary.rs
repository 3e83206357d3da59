//! How many inputs each target was given: in this run, or in all that one file speaks of.
//!
//! A line of the file is a run of a target: its name, the inputs, the seconds. Runs of several programs at once, on one machine or
//! on many, may add to a file, or have theirs put together.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
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
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { target, executions, seconds } = self;
        write!(f, "{target} {executions} {seconds:.1}")
    }
}

impl FromStr for Line {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Line> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [target, executions, seconds] = words[..] else {
            bail!("not a target, its inputs and its seconds: {text}")
        };
        let executions = executions.parse().with_context(|| format!("not a number of inputs: {executions}"))?;
        let seconds = seconds.parse().with_context(|| format!("not a number of seconds: {seconds}"))?;
        Ok(Line { target: target.to_owned(), executions, seconds })
    }
}

/// The inputs that the targets were given.
#[derive(Debug, Default)]
pub(super) struct Diary {
    file: Option<File>,
    lines: Vec<Line>,
}

impl Diary {
    /// Goes on with what the file says, which is made if it is not there; without one, begins with nothing.
    ///
    /// # Errors
    ///
    /// If it cannot be read or written, or is no diary.
    pub(super) fn open(path: Option<&Path>) -> Result<Diary> {
        let Some(path) = path else { return Ok(Diary::default()) };
        let what = || format!("the diary {}", path.display());
        let file = OpenOptions::new().append(true).create(true).open(path).with_context(what)?;
        let text = fs::read_to_string(path).with_context(what)?;
        let lines = text.lines().map(Line::from_str).collect::<Result<_>>().with_context(what)?;
        Ok(Diary { file: Some(file), lines })
    }

    /// Inputs of all runs.
    pub(super) fn sum(&self) -> u64 {
        self.lines.iter().map(|line| line.executions).sum()
    }

    /// Adds a run.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(super) fn add(&mut self, line: Line) -> Result<()> {
        if let Some(file) = &mut self.file {
            // In one piece: others may write to it at the same time.
            file.write_all(format!("{line}\n").as_bytes())?;
        }
        self.lines.push(line);
        Ok(())
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
    use super::*;

    #[test]
    fn a_diary_adds_up_what_several_runs_did() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let path = dir.path().join("diary");
        let run = |target: &str, executions| Line { target: target.into(), executions, seconds: 2.0 };
        let mut diary = Diary::open(Some(&path)).expect("it is made");
        diary.add(run("extent", 300)).expect("it can be written");
        diary.add(run("repair", 5)).expect("it can be written");
        let mut diary = Diary::open(Some(&path)).expect("it can be read");
        diary.add(run("extent", 100)).expect("it can be written");
        let table = diary.to_string();
        assert!(table.contains("extent                 400         4       100"), "{table}");
        assert!(table.contains("repair                   5         2         2"), "{table}");
        assert_eq!(diary.sum(), 405);
        assert!(table.ends_with("all                    405\n"), "{table}");
        fs::write(&path, "extent many\n").expect("it can be written");
        assert!(Diary::open(Some(&path)).is_err());
    }
}
