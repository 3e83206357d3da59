//! The results of the runs.

use std::fmt;
use std::time::Duration;

use super::script::Requests;
use super::way::Way;

/// How the runs of one way went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Runs, one for each request that can fail so.
    pub runs: u64,
    /// Runs in which that request came, at one of several attempts: which requests there are depends a little on the
    /// processors that the threads run on.
    pub reached: u64,
    /// Runs in which an operation gave an error.
    pub surfaced: u64,
    /// Runs in which no operation did: the request was tried again, was not needed, or the device lied.
    pub absorbed: u64,
    /// Runs after which the volume refused changes.
    pub stopped: u64,
    /// Runs after which everything that was promised was there, and nothing that cannot be.
    pub kept: u64,
    /// Runs after which the check found damage (only where the device lies).
    pub damaged: u64,
    /// Runs after which the volume did not open, and said why (only where the device lies).
    pub refused: u64,
    /// Runs after which something else was there, and neither an operation nor the check had said so (only where the
    /// device lies).
    pub silent: u64,
}

impl Row {
    pub(super) fn plus(self, other: Row) -> Row {
        Row {
            runs: self.runs + other.runs,
            reached: self.reached + other.reached,
            surfaced: self.surfaced + other.surfaced,
            absorbed: self.absorbed + other.absorbed,
            stopped: self.stopped + other.stopped,
            kept: self.kept + other.kept,
            damaged: self.damaged + other.damaged,
            refused: self.refused + other.refused,
            silent: self.silent + other.silent,
        }
    }
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Broken {
    /// How the device failed.
    pub way: Way,
    /// In which episode.
    pub episode: usize,
    /// At which of the requests that can fail so.
    pub index: u64,
    /// The fault.
    pub what: String,
}

/// The whole matrix.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// Episodes of the workload.
    pub episodes: usize,
    /// Its requests.
    pub requests: Requests,
    /// By way.
    pub rows: Vec<(Way, Row)>,
    /// Broken promises.
    pub broken: Vec<Broken>,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requests { all, reads, writes, flushes } = self.requests;
        writeln!(f, "{} episodes, {all} requests: {reads} reads, {writes} writes, {flushes} flushes\n", self.episodes)?;
        writeln!(
            f,
            "| fault | runs | reached | an operation fails | none does | volume stops | all kept | check finds | does not open | silent |"
        )?;
        writeln!(f, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")?;
        for (way, row) in &self.rows {
            let Row { runs, reached, surfaced, absorbed, stopped, kept, damaged, refused, silent } = row;
            let name = way.name();
            writeln!(
                f,
                "| {name} | {runs} | {reached} | {surfaced} | {absorbed} | {stopped} | {kept} | {damaged} | {refused} | {silent} |"
            )?;
        }
        writeln!(f, "\n{} broken promises, {:.1} s", self.broken.len(), self.took.as_secs_f64())
    }
}
