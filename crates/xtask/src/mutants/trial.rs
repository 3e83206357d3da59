//! Trying a fault: the tests that reach it run until one fails.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};

use super::judges::Judge;
use super::results::Outcome;
use super::support;
use crate::Result;

/// So many times what a test takes without a fault it may take with one.
const PATIENCE: u32 = 6;
/// What a test may take at least.
const LEAST: Duration = Duration::from_secs(8);

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Passed,
    Failed,
    /// It was killed because its time ran out.
    Late,
}

/// Lets a fault meet its judges, the first ones first, until one notices it (which one is told) or the budget is used up.
///
/// # Errors
///
/// If a test cannot be started.
pub(super) fn of(fault: usize, judges: &[&Judge], budget: Duration) -> Result<(Outcome, Option<usize>)> {
    if judges.is_empty() {
        return Ok((Outcome::Unreached, None));
    }
    let start = Instant::now();
    let mut passed_over = false;
    for (index, judge) in judges.iter().enumerate() {
        if start.elapsed() + judge.took > budget {
            passed_over = true;
            continue;
        }
        let limit = LEAST.max(judge.took * PATIENCE);
        let mut command = judge.command(limit);
        match watch(command.env(support::FAULT, fault.to_string()), limit)?.0 {
            End::Passed => {}
            End::Failed => return Ok((Outcome::Caught, Some(index))),
            End::Late => return Ok((Outcome::Timeout, Some(index))),
        }
    }
    Ok((if passed_over { Outcome::Alive } else { Outcome::Missed }, None))
}

/// Runs a command, whose output nobody reads, and all that it starts, for at most `limit`.
///
/// # Errors
///
/// If it cannot be started or waited for.
pub(super) fn watch(command: &mut Command, limit: Duration) -> Result<(End, Duration)> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start a test")?;
    let group = Pid::from_child(&child);
    let end = loop {
        if let Some(status) = child.try_wait()? {
            break if status.success() { End::Passed } else { End::Failed };
        }
        if start.elapsed() > limit {
            break End::Late;
        }
        thread::sleep(Duration::from_millis(2));
    };
    // What it left behind goes as well.
    let _ = kill_process_group(group, Signal::KILL);
    child.wait()?;
    Ok((end, start.elapsed()))
}
