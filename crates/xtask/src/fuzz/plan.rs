//! Runs that go on where the last one stopped, until a number of inputs is reached.
//!
//! Targets take turns of some minutes: always the one that had the least time of all runs so far. A turn adds its line
//! to the diary when it ends, also when Ctrl-C ends it: libFuzzer hears that signal itself, says how many inputs it
//! gave, and this program ends with it. A target that breaks takes no further turns.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use signal_hook::consts::SIGINT;

use super::diary::{Diary, Line};
use super::{Args, Built, fuzz_one};
use crate::Result;

/// A number of inputs, which may be written as 1e9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Total(u64);

impl FromStr for Total {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Total> {
        let what = || format!("{text} is not a number of inputs, like 1000000 or 1e9");
        let (digits, zeros) = text.split_once('e').unwrap_or((text, "0"));
        let power = zeros.parse().ok().and_then(|zeros| 10_u64.checked_pow(zeros));
        let number = digits.parse::<u64>().ok().zip(power).and_then(|(digits, power)| digits.checked_mul(power));
        number.filter(|number| *number > 0).map(Total).with_context(what)
    }
}

/// Gives the targets turns until the diary comes to `total`.
///
/// # Errors
///
/// If the diary cannot be read or written, or a target found an input that breaks it.
pub(super) fn run(fuzz: &Path, targets: &[Built], args: &Args, Total(total): Total) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
    let path = args.diary.clone().unwrap_or_else(|| fuzz.join("executions"));
    let mut broken: Vec<&str> = Vec::new();
    loop {
        // Others may have added to it.
        let mut diary = Diary::open(Some(&path))?;
        if diary.sum() >= total || stop.load(Ordering::Relaxed) {
            break;
        }
        let least = |built: &&Built| diary.seconds(built.target);
        let whole = targets.iter().filter(|built| !broken.contains(&built.target));
        let Some(built) = whole.min_by(|a, b| least(a).total_cmp(&least(b))) else { break };
        let (line, status) = fuzz_one(fuzz, built, args)?;
        diary.add(&line)?;
        let Line { target, executions, seconds, .. } = line;
        println!(
            "{target}: {executions} inputs, {:.0} a second; {} in all, {} of {total} are left",
            executions as f64 / seconds.max(0.001),
            diary.sum(),
            total.saturating_sub(diary.sum())
        );
        if !status.success() && !stop.load(Ordering::Relaxed) {
            println!("{target}: {status}; it takes no further turns");
            broken.push(built.target);
        }
    }
    print!("{}", Diary::open(Some(&path))?);
    if !broken.is_empty() {
        bail!("broken: {}", broken.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Total;

    #[test]
    fn totals_are_written_in_either_way() {
        let total = |text: &str| text.parse::<Total>().ok();
        assert_eq!(total("1e9"), Some(Total(1_000_000_000)));
        assert_eq!(total("25"), Some(Total(25)));
        for wrong in ["", "e", "1e", "e9", "1.5e9", "1e30", "-1", "99e18", "0", "0e9"] {
            assert_eq!(total(wrong), None, "{wrong}");
        }
    }
}
