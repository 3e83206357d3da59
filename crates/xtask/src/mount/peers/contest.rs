//! Both sides of a row, in turn.

use std::time::Instant;

use anyhow::Context;

use super::Work;
use super::sides::{Images, Side};
use crate::Result;

/// The head of the table.
pub(super) const HEAD: &str =
    "row                              theirs           ours  ratio  least..most  processor s, theirs / ours  load";

/// How a row is run.
#[derive(Debug)]
pub(super) struct Contest<'a> {
    pub(super) images: &'a Images<'a>,
    pub(super) rounds: u32,
}

/// One side's result of one round.
#[derive(Debug, Clone, Copy)]
struct Measure {
    per_second: f64,
    /// Seconds of processor time.
    processor: f64,
}

impl Contest<'_> {
    /// Runs a row; its line of the table.
    pub(super) fn run(&self, work: &mut dyn Work) -> Result<String> {
        let (mut theirs, mut ours) = (self.images.theirs()?, self.images.ours()?);
        let mut rounds = Vec::new();
        for round in 0..self.rounds {
            if round % 2 == 0 {
                let first = measured(work, &mut theirs, round)?;
                rounds.push((first, measured(work, &mut ours, round)?));
            } else {
                let first = measured(work, &mut ours, round)?;
                rounds.push((measured(work, &mut theirs, round)?, first));
            }
        }
        theirs.end()?;
        ours.end()?;
        let ratios = ascending(rounds.iter().map(|(theirs, ours)| ours.per_second / theirs.per_second));
        let median = |pick: fn(&(Measure, Measure)) -> f64| {
            let all = ascending(rounds.iter().map(pick));
            all[all.len() / 2]
        };
        let rate = |per_second: f64| format!("{per_second:.0}/s");
        Ok(format!(
            "{:24} {:>14} {:>14} {:>6.2} {:>12} {:>27} {:>5}",
            work.name(),
            rate(median(|round| round.0.per_second)),
            rate(median(|round| round.1.per_second)),
            ratios[ratios.len() / 2],
            format!("{:.2}..{:.2}", ratios[0], ratios[ratios.len() - 1]),
            format!("{:.2} / {:.2}", median(|round| round.0.processor), median(|round| round.1.processor)),
            load()?,
        ))
    }
}

/// One round of one side.
fn measured(work: &mut dyn Work, side: &mut dyn Side, round: u32) -> Result<Measure> {
    // The kernel knows no file of the rounds before.
    side.again()?;
    let place = format!("on {}", side.dir().display());
    work.prepare(side, round).with_context(|| format!("preparing, {place}"))?;
    side.settle()?;
    if work.begins_cold() {
        side.again()?;
        fs_err::write("/proc/sys/vm/drop_caches", "3")?;
    }
    let (before, start) = (processor(side)?, Instant::now());
    let (amount, seconds) = work.work(side, round).context(place)?;
    let seconds = seconds.unwrap_or_else(|| start.elapsed().as_secs_f64());
    let measure = Measure { per_second: amount / seconds, processor: processor(side)? - before };
    // What is left to do falls into no other round.
    side.settle()?;
    Ok(measure)
}

/// Seconds of processor time of this process, of the children that it waited for, and of the side's server.
fn processor(side: &dyn Side) -> Result<f64> {
    let ticks = |pid: &str, fields: usize| -> Result<f64> {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, rest) = stat.rsplit_once(')').context("a line of another kind")?;
        // User and system, then those of children.
        Ok(rest.split_whitespace().skip(11).take(fields).filter_map(|ticks| ticks.parse::<f64>().ok()).sum())
    };
    // Ticks are hundredths of a second in `/proc`, on all of Linux's machines of today.
    Ok((ticks("self", 4)? + ticks(&side.server()?, 2)?) / 100.0)
}

fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Processes that ran or waited to run in the last minute.
fn load() -> Result<String> {
    let text = fs_err::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}
